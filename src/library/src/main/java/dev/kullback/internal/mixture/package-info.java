/**
 * Mixtures of Gaussians that are reduced: components, what merging two of them costs, and the order in which they are merged. It may use
 * plain, batch, numerics and work. Start with {@link dev.kullback.internal.mixture.Components}.
 */
@NullMarked
package dev.kullback.internal.mixture;

import org.jspecify.annotations.NullMarked;
