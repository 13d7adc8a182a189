/**
 * Full covariances: KL and Jeffreys' divergence as matrix products, Chernoff's by a factorization of each pair in a lane, and what recomputes
 * their uncertain entries. It may use vector and what that may. Start with {@link dev.kullback.internal.vector.full.FullVectorKernel}.
 */
@NullMarked
package dev.kullback.internal.vector.full;

import org.jspecify.annotations.NullMarked;
