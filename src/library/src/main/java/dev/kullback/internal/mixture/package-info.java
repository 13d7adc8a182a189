/**
 * Mixtures of Gaussians. To reduce them: components, what merging two of them costs, and the order in which they are merged. To compare
 * them: overlaps of components, a bound's iteration, and samples, those of pairs of Gaussians among them. It may use engine, rows, formula,
 * batch, numerics and work. Start with {@link dev.kullback.internal.mixture.Components}, and with {@link
 * dev.kullback.internal.mixture.MixtureSampler} for samples.
 */
@NullMarked
package dev.kullback.internal.mixture;

import org.jspecify.annotations.NullMarked;
