package dev.kullback.spark;

import dev.kullback.Gaussians;
import dev.kullback.KlEngine;
import dev.kullback.Neighbors;
import dev.kullback.Query;
import dev.kullback.ScaleKind;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import java.util.Random;
import java.util.function.LongUnaryOperator;
import java.util.stream.IntStream;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/** Gaussians with ids, as rows of a dataset and as a batch by ascending id. */
record Sample(ScaleKind kind, boolean isDouble, int dimension, List<Member> members) {
  /** Arrays are of float or double. */
  record Member(long id, Object mean, Object scale) {}

  /** A neighbor of a query. */
  record Found(long id, int rank, long neighbor, double kl) {}

  /**
   * Gaussians of which every second is a near twin of one before it, and every fifth equal to one before it, under ids
   * without order or gaps of one size.
   */
  static Sample twins(ScaleKind kind, boolean isDouble, int n, int dimension, long seed) {
    Random random = new Random(seed);
    int length = kind.isFull() ? dimension * dimension : dimension;
    List<double[]> means = new ArrayList<>();
    List<double[]> scales = new ArrayList<>();
    for (int i = 0; i < n; i++) {
      double[] mean = random.doubles(dimension, -1, 1).toArray();
      double[] scale = random.doubles(length, 0.5, 2).toArray();
      if (length > dimension) {
        for (int row = 0; row < dimension; row++) {
          for (int column = 0; column < dimension; column++) {
            double lower =
                column == row ? 1 + 0.1 * random.nextDouble() : 0.1 * random.nextDouble();
            scale[row * dimension + column] = column > row ? 0 : lower;
          }
        }
      }
      if (i > 0 && (i % 2 == 1 || i % 5 == 0)) {
        int other = random.nextInt(i);
        mean = means.get(other).clone();
        scale = scales.get(other).clone();
        if (i % 5 != 0) {
          mean[random.nextInt(dimension)] *= 1 + 1e-6 * random.nextInt(1, 4);
          scale[0] *= 1 + 1e-6 * random.nextInt(1, 4);
        }
      }
      means.add(mean);
      scales.add(scale);
    }
    List<Long> ids =
        new ArrayList<>(IntStream.range(0, n).mapToObj(i -> i * 37L - 1000L + i % 7).toList());
    Collections.shuffle(ids, random);
    List<Member> members =
        IntStream.range(0, n)
            .mapToObj(i ->
                new Member(ids.get(i), cast(means.get(i), isDouble), cast(scales.get(i), isDouble)))
            .toList();
    return new Sample(kind, isDouble, dimension, members);
  }

  private static Object cast(double[] values, boolean isDouble) {
    if (isDouble) {
      return values;
    }
    float[] floats = new float[values.length];
    for (int h = 0; h < values.length; h++) {
      floats[h] = (float) values[h];
    }
    return floats;
  }

  Sample first(int n) {
    return new Sample(kind, isDouble, dimension, members.subList(0, n));
  }

  /** The same Gaussians with other ids. */
  Sample renumbered(LongUnaryOperator ids) {
    List<Member> others =
        members.stream().map(m -> new Member(ids.applyAsLong(m.id), m.mean, m.scale)).toList();
    return new Sample(kind, isDouble, dimension, others);
  }

  Sample last(int n) {
    return new Sample(
        kind, isDouble, dimension, members.subList(members.size() - n, members.size()));
  }

  Dataset<Row> dataset(SparkSession spark) {
    var array = DataTypes.createArrayType(isDouble ? DataTypes.DoubleType : DataTypes.FloatType);
    StructType schema =
        new StructType().add("id", DataTypes.LongType).add("mean", array).add("std", array);
    List<Row> rows = members.stream().map(m -> RowFactory.create(m.id, m.mean, m.scale)).toList();
    return spark.createDataFrame(rows, schema);
  }

  private List<Member> ordered() {
    return members.stream().sorted(Comparator.comparingLong(Member::id)).toList();
  }

  long[] ids() {
    return ordered().stream().mapToLong(Member::id).toArray();
  }

  Gaussians batch() {
    Input input =
        new Input("sample", new Columns("id", "mean", "std", kind), isDouble, dimension, "");
    List<Member> ordered = ordered();
    int length = input.scaleLength();
    Object mean = input.array(ordered.size() * dimension);
    Object scale = input.array(ordered.size() * length);
    for (int i = 0; i < ordered.size(); i++) {
      System.arraycopy(ordered.get(i).mean, 0, mean, i * dimension, dimension);
      System.arraycopy(ordered.get(i).scale, 0, scale, i * length, length);
    }
    return input.batch(mean, scale);
  }

  /** Finds neighbors with one engine among all references at once, by query and rank. */
  List<Found> nearest(Sample references, int k, boolean reverse) {
    Query query = Query.nearest(k).exact();
    try (KlEngine engine = KlEngine.builder().build()) {
      Neighbors found =
          engine.search(batch(), references.batch(), reverse ? query.reverse() : query);
      long[] ids = ids();
      long[] neighbors = references.ids();
      List<Found> all = new ArrayList<>();
      for (int i = 0; i < found.size(); i++) {
        for (int r = 0; r < found.count(i); r++) {
          all.add(new Found(ids[i], r + 1, neighbors[found.index(i, r)], found.value(i, r)));
        }
      }
      return all;
    }
  }

  /** The rows of a result, by query and rank. */
  static List<Found> found(Dataset<Row> result) {
    return result.collectAsList().stream()
        .map(row -> new Found(row.getLong(0), row.getInt(1), row.getLong(2), row.getDouble(3)))
        .sorted(Comparator.comparingLong(Found::id).thenComparingInt(Found::rank))
        .toList();
  }
}
