/**
 * Calls: which kernel computes one, how its matrix is cut into blocks, what a thread works with, and what the process can run. It may use
 * every room but verify, index and mixture. Start with {@link dev.kullback.internal.engine.Engine}.
 */
@NullMarked
package dev.kullback.internal.engine;

import org.jspecify.annotations.NullMarked;
