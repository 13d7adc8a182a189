/**
 * Reductions of the matrix's rows, block by block while they are in the cache: nearest, within, one number of each row, a stream of
 * tiles. It may use formula, for what a kernel's error bound leaves open, and what formula may. Start with {@link
 * dev.kullback.internal.rows.RowReduction}.
 */
@NullMarked
package dev.kullback.internal.rows;

import org.jspecify.annotations.NullMarked;
