package dev.kullback.testing;

import static org.junit.jupiter.api.Assertions.fail;

import dev.kullback.Backend;
import dev.kullback.Gaussians;
import dev.kullback.KlEngine;
import java.nio.DoubleBuffer;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.DoubleStream;
import java.util.stream.IntStream;

/** Compares results of full covariances with the oracle, each entry by what is due in its column. */
public final class FullCheck {
  /** The relative error that an entry may have. */
  public enum Due {
    /** The library's promise: for double, 1e-12 times {@code ‖L_p‖‖L_p⁻¹‖}. */
    CONTRACT {
      @Override
      double of(boolean isDouble, double condition) {
        return isDouble ? Check.DOUBLE_CONTRACT * Math.max(1, condition) : Check.FLOAT_CONTRACT;
      }
    },

    /**
     * The error that the bounds of the matrix product leave, and triangular solves attain unless their
     * operands are contrived: for double, no more than a condition number of 100 excuses.
     */
    AIM {
      @Override
      double of(boolean isDouble, double condition) {
        return isDouble ? Check.DOUBLE_CONTRACT * Math.clamp(condition, 1, 100) : 2e-6;
      }
    };

    /**
     * @param condition of L_p
     */
    abstract double of(boolean isDouble, double condition);
  }

  /** KL, row-major; the condition number of each column's L. */
  private record Exact(double[] kl, double[] condition) {}

  /** Exact values by parameters: every backend is held to them, and the oracle takes most of the time. */
  private static final Map<List<Object>, Exact> ASKED = new ConcurrentHashMap<>();

  private FullCheck() {}

  private static Exact exact(FullBatch q, FullBatch p) {
    List<Object> key =
        List.of(
            q.dimension(),
            q.kind(),
            DoubleBuffer.wrap(q.mean()),
            DoubleBuffer.wrap(q.matrix()),
            p.kind(),
            DoubleBuffer.wrap(p.mean()),
            DoubleBuffer.wrap(p.matrix()));
    return ASKED.computeIfAbsent(
        key,
        _ -> {
          double[] found = Known.answer(() -> ask(q, p), "full, with condition numbers", q, p);
          int entries = q.size() * p.size();
          return new Exact(
              Arrays.copyOf(found, entries), Arrays.copyOfRange(found, entries, found.length));
        });
  }

  /** Divergences, then conditions. */
  private static double[] ask(FullBatch q, FullBatch p) {
    FullOracle oracle = new FullOracle(q, p);
    return DoubleStream.concat(
            Arrays.stream(oracle.pairwise()),
            IntStream.range(0, p.size()).mapToDouble(oracle::condition))
        .toArray();
  }

  public static void check(Backend backend, String what, FullBatch q, FullBatch p, Due due) {
    check(backend, what, q, q.gaussians(), p, p.gaussians(), due);
  }

  /** The batches themselves besides, where a diagonal one has the parameters of q or p. */
  public static void check(
      Backend backend, String what, FullBatch q, Gaussians a, FullBatch p, Gaussians b, Due due) {
    Exact exact = exact(q, p);
    double[] actual = new double[exact.kl.length];
    try (KlEngine engine = Engines.on(backend)) {
      engine.pairwise(a, b, actual);
    }
    boolean isDouble = q.isDouble() || p.isDouble();
    matrix(backend + ", " + what, exact.kl, exact.condition, actual, isDouble, due);
  }

  /** Entry by entry of {@code aligned}. */
  public static void aligned(Backend backend, String what, FullBatch q, FullBatch p, Due due) {
    int n = q.size();
    boolean isDouble = q.isDouble() || p.isDouble();
    try (KlEngine engine = Engines.on(backend)) {
      double[] actual = engine.aligned(q.gaussians(), p.gaussians(), new double[n]);
      for (int i = 0; i < n; i++) {
        Exact exact = exact(q.rows(i, i + 1), p.rows(i, i + 1));
        matrix(
            backend + ", aligned, row " + i + ", " + what,
            exact.kl,
            exact.condition,
            new double[] {actual[i]},
            isDouble,
            due);
      }
    }
  }

  private static void matrix(
      String what,
      double[] expected,
      double[] condition,
      double[] actual,
      boolean isDouble,
      Due due) {
    int columns = condition.length;
    double smallest = isDouble ? Double.MIN_NORMAL : Float.MIN_NORMAL;
    double worst = 0;
    int worstAt = 0;
    int wrong = 0;
    for (int at = 0; at < expected.length; at++) {
      double limit = due.of(isDouble, condition[at % columns]);
      double error =
          new Check.Precision(limit, smallest, Double.MAX_VALUE).error(expected[at], actual[at])
              / limit;
      if (error > worst) {
        worst = error;
        worstAt = at;
      }
      if (error > 1) {
        wrong++;
      }
    }
    if (System.getProperty("show") != null) {
      System.out.printf("%s: %.2g of %s%n", what, worst, due);
    }
    if (wrong > 0) {
      int j = worstAt % columns;
      fail(
          ("%s: %d of %d entries outside the %s; worst [i=%d, j=%d]: expected %s, actual %s, "
                  + "condition number %.3g, relative error %.3g, %.3g times what is due")
              .formatted(
                  what,
                  wrong,
                  expected.length,
                  due,
                  worstAt / columns,
                  j,
                  expected[worstAt],
                  actual[worstAt],
                  condition[j],
                  worst * due.of(isDouble, condition[j]),
                  worst));
    }
  }
}
