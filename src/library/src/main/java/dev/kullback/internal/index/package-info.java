/**
 * The index: Gaussians under ids, in immutable segments that searches read and one writer replaces. A search sums terms of
 * codes of eight bits, which bounds each divergence from below, or of floats, which bounds it from above, too, and computes exact values of the
 * few that the bounds leave. It may use engine, formula, kernel, batch, numerics and work. Start with {@link dev.kullback.internal.index.Segment}.
 */
@NullMarked
package dev.kullback.internal.index;

import org.jspecify.annotations.NullMarked;
