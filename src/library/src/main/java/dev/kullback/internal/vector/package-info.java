/**
 * Vector kernels of diagonal covariances, to the bits of plain code: packing, micro-kernels, the epilogue that bounds each entry's error.
 * With {@code vector.full} and {@code vector.scan} it is the only room that sees {@code jdk.incubator.vector}, and it may use formula and what formula may. Start with
 * {@link dev.kullback.internal.vector.TileKernel}.
 */
@NullMarked
package dev.kullback.internal.vector;

import org.jspecify.annotations.NullMarked;
