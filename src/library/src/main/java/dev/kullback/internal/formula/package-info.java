/**
 * The mathematics in plain Java, the text to read first: one pair's divergence in every form, and kernels that compute pair by pair. It
 * may use kernel, batch, numerics and work. Start with {@link dev.kullback.internal.formula.PairKl}.
 */
@NullMarked
package dev.kullback.internal.formula;

import org.jspecify.annotations.NullMarked;
