/**
 * What an index holds: Gaussians under ids, in immutable segments in memory outside the heap or in mapped files, which one writer replaces,
 * merges and commits. It may use kernel, batch, numerics and work. Start with {@link dev.kullback.internal.index.store.Segment}.
 */
@NullMarked
package dev.kullback.internal.index.store;

import org.jspecify.annotations.NullMarked;
