package dev.kullback.internal.mixture;

import java.util.function.IntConsumer;

/**
 * How mixtures are reduced.
 *
 * @param size components that are left of each, at most
 * @param maxCost the most that a merger may cost
 * @param progress takes the number of components that are left in all mixtures, before the first merger and after each
 */
public record ReductionOptions(int size, double maxCost, IntConsumer progress) {}
