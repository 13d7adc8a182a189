package dev.kullback.internal.index;

/**
 * References that a search found: those of query i are at {@code start[i] … start[i + 1] − 1}, the nearest by divergence and then by id,
 * those within a radius by id.
 */
@SuppressWarnings("ArrayRecordComponent") // handed on as they are
public record Found(long[] ids, double[] values, int[] start) {}
