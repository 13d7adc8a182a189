/**
 * Searches of an index. A search sums terms of codes of eight bits, which bounds each divergence from below, or of floats, which bounds it
 * from above, too; a {@link dev.kullback.internal.rows.Ranking} keeps the candidates that the bounds leave and decides between them by exact
 * values. It may use index.store, engine, rows and what they may. Start with {@link dev.kullback.internal.index.search.Searcher}.
 */
@NullMarked
package dev.kullback.internal.index.search;

import org.jspecify.annotations.NullMarked;
