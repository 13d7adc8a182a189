/**
 * Tries every operation on the machine it runs on, and compares the results with the plain text. It may use index.search,
 * index.store, engine, rows, formula, batch, numerics and work. Start with {@link dev.kullback.internal.verify.Verify}.
 */
@NullMarked
package dev.kullback.internal.verify;

import org.jspecify.annotations.NullMarked;
