/**
 * Batches from files: the options that name them, their checks, and the blocks of rows in which commands go through them. It may use npy
 * and terminal. Start with {@link dev.kullback.cli.batch.Batch}.
 */
@NullMarked
package dev.kullback.cli.batch;

import org.jspecify.annotations.NullMarked;
