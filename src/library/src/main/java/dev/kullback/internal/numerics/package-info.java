/**
 * Numbers: scales and variances, twice double's precision, compensated sums, Cholesky factors, logarithms of products. It uses nothing but
 * the JDK. Start with {@link dev.kullback.internal.numerics.Scale}.
 */
@NullMarked
package dev.kullback.internal.numerics;

import org.jspecify.annotations.NullMarked;
