package dev.kullback.bench;

import static dev.kullback.bench.Report.header;
import static dev.kullback.bench.Report.number;
import static dev.kullback.bench.Report.quantile;
import static dev.kullback.bench.Report.row;

import dev.kullback.FullGaussians;
import dev.kullback.MixtureReduction;
import dev.kullback.Mixtures;
import java.util.Arrays;
import java.util.Map;
import java.util.Random;
import java.util.function.Supplier;
import java.util.stream.DoubleStream;
import org.ejml.data.DMatrixRMaj;
import org.ejml.dense.row.CommonOps_DDRM;
import org.ejml.dense.row.factory.DecompositionFactory_DDRM;
import org.ejml.interfaces.decomposition.CholeskyDecomposition_F64;

/** The reduction of a mixture beside two loops that users write with EJML. */
final class Reduction {
  private static final String USAGE =
      """
      Reduces a mixture with full covariances and prints the times of Kullback and of two loops with EJML as a markdown table:
      one that computes the costs of all pairs for each merger, and one that keeps them in a matrix and computes those of
      the merged component anew. Both compute the determinants of components once, and reuse their matrices.
        --size N         components (default 1000)
        --dimension D    (default 4)
        --to K           components left (default 50)
        --rounds R       of Kullback and of the loop with a matrix (default 9)
      Exit status: 0, or 1 when a figure missed its limit or results disagree, or 2 for wrong usage.
      """;

  /** Least quotient of the times that is wanted, of the loop that computes all. */
  private static final double WANTED = 50;

  private Reduction() {}

  public static void main(String[] args) {
    Command.run(
        "reduction",
        USAGE,
        Map.of("--size", 1000, "--dimension", 4, "--to", 50, "--rounds", 9),
        args,
        options ->
            run(
                new Shape(options.get("--size"), options.get("--dimension")),
                options.get("--to"),
                options.get("--rounds")));
  }

  private static boolean run(Shape shape, int to, int rounds) {
    FullBatch batch = FullBatch.ordinary(shape, Batch.Q_SEED);
    double[] mean = new double[shape.size() * shape.dimension()];
    Arrays.setAll(mean, k -> 3.0 * batch.mean()[k]);
    int square = shape.dimension() * shape.dimension();
    double[] covariance = new double[shape.size() * square];
    for (int i = 0; i < shape.size(); i++) {
      System.arraycopy(batch.covariance(i), 0, covariance, i * square, square);
    }
    double[] weights = new Random(1).doubles(shape.size(), 0.1, 1).toArray();
    double sum = DoubleStream.of(weights).sum();
    Arrays.setAll(weights, i -> weights[i] / sum);
    FullGaussians components = FullGaussians.ofCovariance(mean, covariance, shape.dimension());
    Mixtures mixture = Mixtures.unnormalized(components, weights);
    System.out.println(Report.conditions(1));

    Supplier<Double> kullback = () -> MixtureReduction.runnalls(mixture, to).totalCost();
    Supplier<Double> matrix = () -> new Loop(mean, covariance, weights).withMatrix(to);
    System.err.println("Kullback and the loop with a matrix, " + rounds + " times …");
    double cost = kullback.get();
    agree(cost, matrix.get());
    double[] ours = new double[rounds];
    double[] kept = new double[rounds];
    for (int r = 0; r < rounds; r++) {
      ours[r] = seconds(kullback);
      kept[r] = seconds(matrix);
    }
    System.err.println("the loop that computes all …");
    long start = System.nanoTime();
    agree(cost, new Loop(mean, covariance, weights).withAll(to));
    double all = (System.nanoTime() - start) * 1e-9;
    double own = quantile(ours, 0.5);

    header(
        "%d components of D = %d to %d, full covariances, one thread"
            .formatted(shape.size(), shape.dimension(), to),
        "",
        "over Kullback");
    row("`MixtureReduction.runnalls`", number(own * 1e3) + " ms", "");
    row(
        "EJML, all costs for each merger",
        number(all) + " s",
        "**%s**".formatted(number(all / own)));
    double median = quantile(kept, 0.5);
    row(
        "EJML, costs kept in a matrix",
        number(median * 1e3) + " ms",
        "**%s**".formatted(number(median / own)));
    return Bound.AT_LEAST.missed("EJML, all costs for each merger", all / own, WANTED);
  }

  private static double seconds(Supplier<Double> reduction) {
    long start = System.nanoTime();
    double cost = reduction.get();
    return cost < 0 ? Double.NaN : (System.nanoTime() - start) * 1e-9;
  }

  private static void agree(double expected, double cost) {
    if (!(Math.abs(cost - expected) <= 1e-9 * expected)) {
      throw new Agreement.Disagreement("total cost is " + cost + ", not " + expected);
    }
  }

  /** The components of a mixture as matrices, and the cost by its definition. */
  private static final class Loop {
    private final int d;
    private final double[] weight;
    private final DMatrixRMaj[] mean;
    private final DMatrixRMaj[] covariance;
    private final double[] logDet;
    private int size;

    private final CholeskyDecomposition_F64<DMatrixRMaj> cholesky;
    private final DMatrixRMaj difference;
    private final DMatrixRMaj merged;

    Loop(double[] means, double[] covariances, double[] weights) {
      size = weights.length;
      d = means.length / size;
      weight = weights.clone();
      mean = new DMatrixRMaj[size];
      covariance = new DMatrixRMaj[size];
      logDet = new double[size];
      cholesky = DecompositionFactory_DDRM.chol(d, true);
      difference = new DMatrixRMaj(d, 1);
      merged = new DMatrixRMaj(d, d);
      for (int i = 0; i < size; i++) {
        mean[i] = new DMatrixRMaj(d, 1, true, Arrays.copyOfRange(means, i * d, (i + 1) * d));
        covariance[i] =
            new DMatrixRMaj(
                d, d, true, Arrays.copyOfRange(covariances, i * d * d, (i + 1) * d * d));
        merged.setTo(covariance[i]);
        logDet[i] = decompose();
      }
    }

    /** Returns the logarithm of the determinant of {@link #merged}, which becomes its factor. */
    private double decompose() {
      if (!cholesky.decompose(merged)) {
        throw new AssertionError("the inputs are positive definite");
      }
      double sum = 0;
      for (int k = 0; k < d; k++) {
        sum += Math.log(merged.unsafe_get(k, k));
      }
      return 2 * sum;
    }

    private void setMerged(int i, int j) {
      double a = weight[i] / (weight[i] + weight[j]);
      CommonOps_DDRM.subtract(mean[i], mean[j], difference);
      CommonOps_DDRM.add(a, covariance[i], 1 - a, covariance[j], merged);
      CommonOps_DDRM.multAddTransB(a * (1 - a), difference, difference, merged);
    }

    private double cost(int i, int j) {
      setMerged(i, j);
      return 0.5
          * ((weight[i] + weight[j]) * decompose() - weight[i] * logDet[i] - weight[j] * logDet[j]);
    }

    /** Merges j, the higher index, into i, and moves the last component to its place; returns where the last was. */
    private int merge(int i, int j) {
      setMerged(i, j);
      double w = weight[i] + weight[j];
      CommonOps_DDRM.add(weight[i] / w, mean[i], weight[j] / w, mean[j], mean[i]);
      covariance[i].setTo(merged);
      weight[i] = w;
      logDet[i] = decompose();
      int last = --size;
      weight[j] = weight[last];
      mean[j] = mean[last];
      covariance[j] = covariance[last];
      logDet[j] = logDet[last];
      return last;
    }

    double withAll(int to) {
      double total = 0;
      while (size > to) {
        int best = 0;
        int with = 1;
        double least = Double.POSITIVE_INFINITY;
        for (int i = 0; i < size; i++) {
          for (int j = i + 1; j < size; j++) {
            double cost = cost(i, j);
            if (cost < least) {
              least = cost;
              best = i;
              with = j;
            }
          }
        }
        total += least;
        merge(best, with);
      }
      return total;
    }

    double withMatrix(int to) {
      double[][] costs = new double[size][size];
      for (int i = 0; i < size; i++) {
        for (int j = 0; j < i; j++) {
          costs[i][j] = cost(j, i);
        }
      }
      double total = 0;
      while (size > to) {
        int best = 0;
        int with = 1;
        double least = Double.POSITIVE_INFINITY;
        for (int i = 0; i < size; i++) {
          for (int j = 0; j < i; j++) {
            if (costs[i][j] < least) {
              least = costs[i][j];
              best = j;
              with = i;
            }
          }
        }
        total += least;
        int last = merge(best, with);
        for (int k = 0; k < size; k++) {
          if (k != with) {
            costs[Math.max(k, with)][Math.min(k, with)] = costs[last][k];
          }
        }
        for (int k = 0; k < size; k++) {
          if (k != best) {
            costs[Math.max(k, best)][Math.min(k, best)] = cost(k, best);
          }
        }
      }
      return total;
    }
  }
}
