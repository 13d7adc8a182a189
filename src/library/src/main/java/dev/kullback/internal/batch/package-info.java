/**
 * Batches: checked values, their log-determinants, and what kernels keep with them under a
 * {@link dev.kullback.internal.batch.DerivedForm}. It may use api, numerics and work. Start with
 * {@link dev.kullback.internal.batch.DiagonalBatch}.
 */
@NullMarked
package dev.kullback.internal.batch;

import org.jspecify.annotations.NullMarked;
