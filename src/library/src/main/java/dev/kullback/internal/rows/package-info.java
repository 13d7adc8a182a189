/**
 * Reductions of the matrix's rows, block by block while they are in the cache: nearest, within, one number of each row, a stream of
 * tiles. It may use formula, for what a kernel's error bound leaves open, and what formula may. Start with {@link
 * dev.kullback.internal.rows.RowReduction}, or with {@link dev.kullback.internal.rows.Ranking}, which decides between the candidates of a search,
 * be it here or in an index.
 */
@NullMarked
package dev.kullback.internal.rows;

import org.jspecify.annotations.NullMarked;
