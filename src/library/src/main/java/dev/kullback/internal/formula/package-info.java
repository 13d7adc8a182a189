/**
 * The mathematics in plain Java, the text to read first: a file for each divergence, one pair's divergence in every form, and kernels
 * that compute pair by pair. It may use kernel, batch, numerics and work. Start with {@link dev.kullback.internal.formula.Formula}, and with
 * {@link dev.kullback.internal.formula.PairKl} for KL.
 */
@NullMarked
package dev.kullback.internal.formula;

import org.jspecify.annotations.NullMarked;
