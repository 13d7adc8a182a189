package dev.kullback.spark;

import dev.kullback.Gaussians;
import dev.kullback.KlEngine;
import dev.kullback.Neighbors;
import dev.kullback.Query;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.Objects;
import java.util.UUID;
import java.util.function.IntFunction;
import org.apache.spark.TaskContext;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.JoinedRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection$;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.execution.metric.SQLMetric;
import org.jspecify.annotations.Nullable;
import scala.collection.immutable.Seq;

/**
 * Carries a nearest-by join out without a shuffle where a side is small. Few rows on the left are brought to the tasks that read the right
 * side, each of which gives its k nearest to every one of them. Otherwise the rows on the right, if they fit an executor as one block, are
 * brought to the tasks that read the left side.
 */
final class JoinSearch {
  /** Most rows on the left that are compared with each of the right's partitions, whose lists come together on the driver. */
  private static final int FEW_ROWS = 4096;

  private static final long FEW_BYTES = 16L << 20;

  /** Setting that bounds the bytes of rows that go through the driver. */
  static final String MOST_BYTES = "spark.kullback.join.driverBytes";

  /** Its default, and the most that it can be. */
  static final long GREATEST_BYTES = 1L << 30;

  /** Most entries of those lists. */
  private static final long FEW_NEIGHBORS = 1 << 16;

  /** Rows on the right of which a task makes a batch. */
  private static final int CHUNK_REFERENCES = 16_384;

  /** Rows on the left that are searched for in one call. */
  private static final int CHUNK_QUERIES = 4096;

  private static final int CHUNK_BYTES = 64 << 20;

  private JoinSearch() {}

  /**
   * What a join asks for.
   *
   * @param q the left side
   * @param p the right side
   * @param reverse ranks by {@code KL(p ‖ q)}
   * @param outer keeps rows on the left that match nothing
   * @param mostBytes most bytes of rows that go through the driver
   * @param counts the plan's metrics
   * @param output expressions of the input's columns
   * @param input the left side's, the right's, and the divergence
   */
  @SuppressWarnings("serial") // Catalyst's classes and Scala's lists, which executors have
  record Request(
      JoinSide q,
      JoinSide p,
      int k,
      boolean reverse,
      boolean outer,
      long mostBytes,
      Counts counts,
      Seq<Expression> output,
      Seq<Attribute> input)
      implements Serializable {
    Neighbors nearest(KlEngine engine, Gaussians a, Gaussians b, @Nullable Neighbors bounds) {
      Query query = Query.nearest(k).exact();
      query = reverse ? query.reverse() : query;
      Neighbors found = engine.search(a, b, bounds == null ? query : query.resumeAfter(bounds, 0));
      counts.pairs.add((long) a.size() * b.size());
      counts.exact.add(
          bounds == null
              ? found.values().length
              : Arrays.stream(found.indices()).filter(j -> j < b.size()).count());
      return found;
    }
  }

  /** Metrics of the plan, of rows, pairs and exact divergences. */
  record Counts(SQLMetric rows, SQLMetric pairs, SQLMetric exact) implements Serializable {}

  /** Returns the join of few rows, or null where they are too many. */
  static @Nullable RDD<InternalRow> ofFew(
      Request request, RDD<InternalRow> left, RDD<InternalRow> right, JavaSparkContext spark) {
    long rows = Math.min(FEW_ROWS, FEW_NEIGHBORS / request.k);
    long bytes = Math.min(FEW_BYTES, request.mostBytes);
    Gathered few = Gathered.of(left, request.q.types(), bytes, rows, spark.sc());
    if (few == null) {
      return null;
    }
    RowBuffer queries = new RowBuffer(request.q, null, request.outer);
    Gathered.addTo(queries, few.bytes(), request.q.types().length);
    NearestLists lists = new NearestLists(queries.gaussians(), request.k);
    if (queries.gaussians() > 0) {
      queries.batch(); // what is wrong with them is told once
      byte[] sent = few.bytes();
      String text = "Kullback: search, %d rows on the left".formatted(queries.size());
      try (var _ = new Described(spark, text)) {
        right
            .toJavaRDD()
            .mapPartitionsWithIndex(
                (partition, part) -> List.of(lists(request, sent, partition, part)).iterator(),
                true)
            .collect()
            .forEach(lists::offer);
      }
    }
    Joiner joiner = new Joiner(request);
    List<InternalRow> joined = new ArrayList<>();
    UnsafeRow view = new UnsafeRow(request.p.types().length);
    for (int row = 0, g = 0; row < queries.size(); row++) {
      boolean isGaussian = g < queries.gaussians() && queries.rowOf(g) == row;
      int count = isGaussian ? lists.count(g) : 0;
      for (int r = 0; r < count; r++) {
        lists.point(view, g, r);
        joined.add(joiner.joined(queries.row(row), view, lists.kl(g, r)).copy());
      }
      if (count == 0 && request.outer) {
        joined.add(joiner.alone(queries.row(row)).copy());
      }
      g += isGaussian ? 1 : 0;
    }
    int slices = Math.clamp(joined.size() / CHUNK_QUERIES, 1, spark.defaultParallelism());
    return spark.parallelize(joined, slices).rdd();
  }

  /** Searches a partition of references for few queries: one task's work. */
  private static byte[] lists(
      Request request, byte[] few, int partition, Iterator<InternalRow> rows) {
    KlEngine engine = Shared.engine(TaskContext.get(), "kl");
    RowBuffer queries = new RowBuffer(request.q, null, false);
    Gathered.addTo(queries, few, request.q.types().length);
    Gaussians q = queries.batch();
    NearestLists lists = new NearestLists(q.size(), request.k);
    RowBuffer references = new RowBuffer(request.p, like(queries, request), false);
    Numbered input = new Numbered(rows, request.p, partition);
    while (input.fill(references, CHUNK_REFERENCES)) {
      if (references.gaussians() > 0) {
        Gaussians p = references.batch();
        lists.offer(request.nearest(engine, q, p, lists.bounds(p.size())), references);
      }
    }
    return lists.encoded();
  }

  /** Properties of the other side's Gaussians, whose dimension must be the same. */
  private static Input like(RowBuffer known, Request request) {
    Input input = known.input();
    return (known.side() == request.q ? request.p : request.q)
        .input(input.dimension(), input.measured());
  }

  /** References as the tasks of an executor share them. */
  private record References(RowBuffer rows, @Nullable Gaussians batch) {}

  /**
   * Returns the join with all rows on the right in one block, or null where they are too many for an executor or the driver.
   *
   * @param left gives the rows on the left by the number of Gaussians on the right
   */
  static @Nullable RDD<InternalRow> ofBlock(
      Request request,
      IntFunction<RDD<InternalRow>> left,
      RDD<InternalRow> right,
      JavaSparkContext spark) {
    double memory = Plan.memory(spark.sc());
    Gathered all =
        Gathered.of(
            right,
            request.p.types(),
            mostBytes(request, memory, spark),
            Integer.MAX_VALUE,
            spark.sc());
    if (all == null) {
      return null;
    }
    RowBuffer first = new RowBuffer(request.p, null, false);
    Gathered.addTo(first, all.bytes(), request.p.types().length);
    if (first.gaussians() > 0
        && first.bytes() + first.gaussians() * Plan.rowBytes(first.input()) > memory / 4) {
      return null;
    }
    Broadcast<byte[]> bytes = spark.broadcast(all.bytes());
    Shared.Key key = new Shared.Key(UUID.randomUUID().toString(), 0);
    return left.apply(first.gaussians())
        .toJavaRDD()
        .mapPartitionsWithIndex(
            (partition, rows) -> {
              References p =
                  Shared.block(key, () -> references(request, bytes.value()), TaskContext.get());
              return new Joined(request, p, new Numbered(rows, request.q, partition));
            },
            true)
        .rdd();
  }

  /** Most bytes of rows that the driver holds, twice for a while, and can be a quarter of an executor's memory once they are prepared. */
  private static long mostBytes(Request request, double memory, JavaSparkContext spark) {
    long result = spark.getConf().getSizeAsBytes("spark.driver.maxResultSize", "1g");
    long driver = Runtime.getRuntime().maxMemory() / 8;
    long most = result > 0 ? Math.min(result / 2, driver) : driver;
    return Math.min(Math.min(most, (long) (memory / 8)), request.mostBytes);
  }

  /** Makes the output of joined rows. */
  static RDD<InternalRow> project(Request request, RDD<InternalRow> joined) {
    return joined
        .toJavaRDD()
        .mapPartitions(
            rows -> {
              UnsafeProjection projection =
                  UnsafeProjection$.MODULE$.create(request.output, request.input);
              return new Iterator<InternalRow>() {
                @Override
                public boolean hasNext() {
                  return rows.hasNext();
                }

                @Override
                public InternalRow next() {
                  request.counts.rows.add(1);
                  return projection.apply(rows.next());
                }
              };
            },
            true)
        .rdd();
  }

  private static References references(Request request, byte[] bytes) {
    RowBuffer rows = new RowBuffer(request.p, null, false);
    Gathered.addTo(rows, bytes, request.p.types().length);
    return new References(rows, rows.gaussians() == 0 ? null : rows.batch());
  }

  /** Rows of a partition with their numbers, in chunks. */
  private static final class Numbered {
    private final Iterator<UnsafeRow> rows;
    private long next;

    Numbered(Iterator<InternalRow> rows, JoinSide side, int partition) {
      this.rows = Gathered.unsafe(rows, side.types());
      next = NumberedRows.number(partition, 0);
    }

    /** Fills a buffer anew; returns false where there are no more rows. */
    boolean fill(RowBuffer buffer, int most) {
      buffer.clear();
      boolean any = false;
      while (buffer.size() < most && buffer.bytes() < CHUNK_BYTES && rows.hasNext()) {
        buffer.add(rows.next(), next++);
        any = true;
      }
      return any;
    }
  }

  /** Makes output rows. For one thread. */
  private static final class Joiner {
    private final UnsafeProjection projection;
    private final JoinedRow both = new JoinedRow();
    private final JoinedRow all = new JoinedRow();
    private final GenericInternalRow kl = new GenericInternalRow(1);
    private final GenericInternalRow none;

    private final SQLMetric rows;

    Joiner(Request request) {
      rows = request.counts.rows;
      projection = UnsafeProjection$.MODULE$.create(request.output, request.input);
      none = new GenericInternalRow(request.p.types().length);
    }

    UnsafeRow joined(InternalRow left, InternalRow right, double value) {
      kl.update(0, value);
      rows.add(1);
      return projection.apply(all.apply(both.apply(left, right), kl));
    }

    UnsafeRow alone(InternalRow left) {
      kl.setNullAt(0);
      rows.add(1);
      return projection.apply(all.apply(both.apply(left, none), kl));
    }
  }

  /** Joined rows of a partition of queries: one task's work. */
  private static final class Joined implements Iterator<InternalRow> {
    private final Request request;
    private final References references;
    private final Numbered input;
    private final RowBuffer queries;
    private final UnsafeRow reference;
    private final Joiner joiner;
    private final KlEngine engine = Shared.engine(TaskContext.get(), "kl");

    private @Nullable Neighbors found;
    private int row;
    private int gaussian;
    private int rank;
    private boolean isReady;

    Joined(Request request, References references, Numbered input) {
      this.request = request;
      this.references = references;
      this.input = input;
      Input like = references.batch == null ? null : like(references.rows, request);
      queries = new RowBuffer(request.q, like, request.outer);
      reference = new UnsafeRow(request.p.types().length);
      joiner = new Joiner(request);
    }

    private boolean isGaussian() {
      return gaussian < queries.gaussians() && queries.rowOf(gaussian) == row;
    }

    private int count() {
      return found == null || !isGaussian() ? 0 : found.count(gaussian);
    }

    @Override
    public boolean hasNext() {
      while (!isReady) {
        if (row == queries.size()) {
          if (!input.fill(queries, CHUNK_QUERIES)) {
            return false;
          }
          row = 0;
          gaussian = 0;
          rank = 0;
          found = search();
        } else if (rank < count() || (rank == 0 && request.outer)) {
          isReady = true;
        } else {
          gaussian += isGaussian() ? 1 : 0;
          row++;
          rank = 0;
        }
      }
      return true;
    }

    private @Nullable Neighbors search() {
      if (queries.gaussians() == 0) {
        return null;
      }
      Gaussians q = queries.batch();
      return references.batch == null ? null : request.nearest(engine, q, references.batch, null);
    }

    @Override
    public InternalRow next() {
      if (!hasNext()) {
        throw new NoSuchElementException();
      }
      isReady = false;
      int r = rank++;
      if (r >= count()) {
        return joiner.alone(queries.row(row));
      }
      Neighbors lists = Objects.requireNonNull(found);
      references.rows.point(reference, references.rows.rowOf(lists.index(gaussian, r)));
      return joiner.joined(queries.row(row), reference, lists.value(gaussian, r));
    }
  }
}
