/**
 * Full covariances as one matrix product: packing a Gaussian in each lane, the product, and what recomputes its uncertain entries. It may
 * use vector and what that may. Start with {@link dev.kullback.internal.vector.full.FullVectorKernel}.
 */
@NullMarked
package dev.kullback.internal.vector.full;

import org.jspecify.annotations.NullMarked;
