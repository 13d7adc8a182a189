/**
 * Nearest Gaussians by Kullback–Leibler divergence between Spark's datasets. {@link dev.kullback.spark.KlNeighbors} is
 * the API; {@link dev.kullback.spark.Main} is the same as a command, {@link dev.kullback.spark.KullbackExtensions} in SQL.
 *
 * <p>{@code Plan} says into how many blocks both inputs are cut. {@code Job} brings each block to one partition, as a
 * {@code BlockReader} that a task reads only if its executor has not yet got that block, and makes a task of each two of
 * them, on the engine and the blocks that the tasks of an executor have in {@code Shared}. {@code Candidates} are its
 * result, merged over the blocks of references; {@code Sums} those of sums.
 *
 * <p>{@code Columns} finds the three columns in an input, and {@code Identified} numbers rows whose ids are no integers.
 *
 * <p>{@link dev.kullback.spark.KlNeighborsEstimator} and {@link dev.kullback.spark.KlNeighborsModel} are the same as stages of MLlib, and
 * {@code ModelParams} says what their parameters mean.
 *
 * <p>In SQL, {@code KlDivergence} is the function, and {@code NearestBy} has the rule, the strategy and the nodes that make
 * a search of a join; {@code NearestByPushDown} takes below it what chooses rows on its left. {@code JoinSearch} carries it out
 * where a side is small enough to be {@code Gathered}. Otherwise the rows, which have no ids, get some from
 * {@code NumberedRows}.
 *
 * @since 0.1.0
 */
@NullMarked
package dev.kullback.spark;

import org.jspecify.annotations.NullMarked;
