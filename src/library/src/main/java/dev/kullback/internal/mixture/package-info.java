/**
 * Mixtures of Gaussians. To reduce them: components, what merging two of them costs, and the order in which they are merged. To compare
 * them: densities, overlaps of components, and a bound's iteration. It may use formula, batch, numerics and work. Start with {@link
 * dev.kullback.internal.mixture.Components}.
 */
@NullMarked
package dev.kullback.internal.mixture;

import org.jspecify.annotations.NullMarked;
