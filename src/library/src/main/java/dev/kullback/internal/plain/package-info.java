/**
 * The mathematics in plain Java, the text to read first: one pair's divergence in every form, and kernels that compute pair by pair. It
 * may use kernel, batch, numerics and work. Start with {@link dev.kullback.internal.plain.PairKl}.
 */
@NullMarked
package dev.kullback.internal.plain;

import org.jspecify.annotations.NullMarked;
