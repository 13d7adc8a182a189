package dev.kullback.testing;

import dev.kullback.testing.Batch.Kind;
import java.util.Arrays;
import java.util.List;
import java.util.Random;

/** Families of inputs, each of which breaks some usual way of computing the divergence. */
public enum Regime {
  /** A variational autoencoder's posteriors: some dimensions used, the rest near the prior. */
  VAE(Kinds.ALL_PAIRS) {
    @Override
    void fill(Rows rows, Random random) {
      rows.each((row, h) -> {
        boolean used = h % 3 == 0;
        rows.mean[row][h] = random.nextGaussian() * (used ? 1.5 : 0.05);
        rows.std[row][h] =
            used ? Math.exp(random.nextGaussian() - 1.5) : 1 - 0.1 * random.nextDouble();
      });
    }
  },
  /** Spread by 0.1 to 0.45: about where the float kernels' error bounds pass and fail. */
  ALIKE(Kinds.ALL_PAIRS) {
    @Override
    void fill(Rows rows, Random random) {
      rows.each((row, h) -> {
        double spread = 0.1 + 0.05 * (row % 8);
        rows.mean[row][h] = spread * random.nextGaussian();
        rows.std[row][h] = Math.exp(spread * random.nextGaussian());
      });
    }
  },
  /** Spread by 1 to 0 about one row, many rows alike one after the other: each form of the float kernels, and what lies between two. */
  EVERY_SPREAD(Kinds.SAME) {
    @Override
    void fill(Rows rows, Random random) {
      double[] spreads = {1, 0.3, 0.1, 0.03, 1e-3, 1e-4, 5e-5, 2e-5, 1e-5, 1e-7, 0};
      rows.each((row, h) -> {
        double spread = spreads[row * spreads.length / rows.mean.length];
        rows.mean[row][h] = Math.sin(h) + spread * random.nextGaussian();
        rows.std[row][h] = Math.exp(0.3 * Math.cos(h) + spread * random.nextGaussian());
      });
    }
  },
  /** One row, its mean and scale changed by about 1e-2 in every dimension. */
  NEAR_1E_2(Kinds.ALL_PAIRS, 1e-2),
  NEAR_1E_3(Kinds.ALL_PAIRS, 1e-3),
  NEAR_1E_4(Kinds.ALL_PAIRS, 1e-4),
  NEAR_1E_5(Kinds.ALL_PAIRS, 1e-5),
  NEAR_1E_6(Kinds.ALL_PAIRS, 1e-6),
  /**
   * One row throughout, which differs between q and p by the rounding of its scales where their
   * kinds differ.
   */
  EQUAL_BUT_FOR_KIND(Kinds.ALL_PAIRS, 0),
  /** One row; every number moved by -1, 0 or 1 units in the last place. */
  NEAR_ULP(Kinds.SAME) {
    @Override
    void fill(Rows rows, Random random) {
      rows.spread(VAE, 0, random);
      rows.moveByUlps(random, 1);
    }
  },
  /** Equal rows but for one unit in the last place of one number. */
  NEAR_ONE_ULP_IN_ONE_DIMENSION(Kinds.SAME) {
    @Override
    void fill(Rows rows, Random random) {
      rows.spread(VAE, 0, random);
      rows.moveByUlps(random, rows.dimension);
    }
  },
  /** Clusters of near-duplicates among unlike rows: both kernels in one tile. */
  NEAR_AND_FAR(Kinds.SAME) {
    @Override
    void fill(Rows rows, Random random) {
      VAE.fill(rows, random);
      rows.each((row, h) -> {
        if (row % 5 < 2) {
          rows.mean[row][h] = rows.mean[row % 2][h] * (1 + 1e-5 * random.nextGaussian());
          rows.std[row][h] = rows.std[row % 2][h] * (1 + 1e-5 * random.nextGaussian());
        }
      });
    }
  },
  /** Equal scales, and means that differ by 1e-5 to 1e-40 standard deviations, many rows alike one after the other. */
  EQUAL_SCALES(Kinds.ALL_PAIRS) {
    @Override
    void fill(Rows rows, Random random) {
      double[] spreads = {
        1e-5, 1e-9, 1e-11, 1e-15, 1e-18, 1e-19, 1e-20, 1e-25, 1e-30, 1e-32, 1e-40
      };
      rows.each((row, h) -> {
        double spread = spreads[row * spreads.length / rows.mean.length];
        rows.std[row][h] = h % 2 == 0 ? 1 : Math.exp(Math.cos(h));
        rows.mean[row][h] = spread * rows.std[row][h] * random.nextGaussian();
      });
    }
  },
  /** The same of scales that some kinds or all state alike, 1, 2 and 1.5, or 1.5 one unit in the last place apart. */
  EXACT_SCALES(Kinds.ALL_PAIRS) {
    @Override
    void fill(Rows rows, Random random) {
      EQUAL_SCALES.fill(rows, random);
      rows.each((row, h) -> {
        double std = rows.std[row][h];
        double[] scales = {1, 2, 1.5, row % 5 < 3 ? 1.5 : Math.nextUp(1.5f)};
        rows.std[row][h] = scales[row / 2 % 4];
        rows.mean[row][h] *= rows.std[row][h] / std;
      });
    }
  },
  /** Equal means, and log-variances that differ by 1e-4 to 1e-17, which the oracle still tells apart where an order is near 0 or 1. */
  EQUAL_MEANS(Kinds.LOG) {
    @Override
    void fill(Rows rows, Random random) {
      double[] spreads = {1e-4, 1e-8, 1e-12, 1e-15, 1e-17};
      rows.each((row, h) -> {
        double spread = spreads[row * spreads.length / rows.mean.length];
        rows.mean[row][h] = 0.5;
        rows.logVariance[row][h] = spread * random.nextGaussian();
      });
    }
  },
  /** Whole rows repeated: exactly 0 there. */
  DUPLICATES(Kinds.SAME) {
    @Override
    void fill(Rows rows, Random random) {
      VAE.fill(rows, random);
      rows.each((row, h) -> {
        rows.mean[row][h] = rows.mean[row % 4][h];
        rows.std[row][h] = rows.std[row % 4][h];
      });
    }
  },
  /** Means near 1000, standard deviations near 0.05. */
  OFFSET_1E3(Kinds.SAME) {
    @Override
    void fill(Rows rows, Random random) {
      rows.around(1000, 0.05, random);
    }
  },
  /** Means near a million. */
  OFFSET_1E6(Kinds.SAME) {
    @Override
    void fill(Rows rows, Random random) {
      rows.around(1e6, 0.05, random);
    }
  },
  /** Standard deviations from 1e-5 to 1e5 side by side. */
  WIDE(Kinds.ALL_PAIRS) {
    @Override
    void fill(Rows rows, Random random) {
      rows.each((row, h) -> {
        rows.mean[row][h] = random.nextGaussian();
        rows.std[row][h] = Math.pow(10, random.nextDouble(-5, 5));
      });
    }
  },
  /** Collapsed posteriors: within 1e-4 of the standard normal, which is every third row. */
  COLLAPSED(Kinds.SAME) {
    @Override
    void fill(Rows rows, Random random) {
      rows.each((row, h) -> {
        rows.mean[row][h] = row % 3 == 0 ? 0 : 1e-4 * random.nextGaussian();
        rows.std[row][h] = row % 3 == 0 ? 1 : 1 + 1e-4 * random.nextGaussian();
      });
    }
  },
  /** All dimensions of a row equal: rounding errors that all have one sign. */
  EQUAL_DIMENSIONS(Kinds.SAME) {
    @Override
    void fill(Rows rows, Random random) {
      rows.each((row, h) -> {
        rows.mean[row][h] = h == 0 ? random.nextGaussian() : rows.mean[row][0];
        rows.std[row][h] = h == 0 ? random.nextDouble(0.3, 1.2) : rows.std[row][0];
      });
    }
  },
  /** All dimensions of a row equal, and the rows nearly equal. */
  EQUAL_DIMENSIONS_NEAR(Kinds.SAME) {
    @Override
    void fill(Rows rows, Random random) {
      rows.each((row, h) -> {
        rows.mean[row][h] = h == 0 ? 0.7 + 1e-3 * random.nextGaussian() : rows.mean[row][0];
        rows.std[row][h] = h == 0 ? 0.3 + 1e-4 * random.nextGaussian() : rows.std[row][0];
      });
    }
  },
  /** A huge dimension first, then tiny ones. */
  HUGE_FIRST(Kinds.SAME) {
    @Override
    void fill(Rows rows, Random random) {
      rows.oneHuge(0, random);
    }
  },
  /** Tiny dimensions, then a huge one. */
  HUGE_LAST(Kinds.SAME) {
    @Override
    void fill(Rows rows, Random random) {
      rows.oneHuge(rows.dimension - 1, random);
    }
  },
  SIGMA_1E_MINUS_20(Kinds.STD_AND_LOG) {
    @Override
    void fill(Rows rows, Random random) {
      rows.around(0, 1e-20, random);
    }
  },
  SIGMA_1E_MINUS_30(Kinds.STD_AND_LOG) {
    @Override
    void fill(Rows rows, Random random) {
      rows.around(0, 1e-30, random);
    }
  },
  SIGMA_1E20(Kinds.STD_AND_LOG) {
    @Override
    void fill(Rows rows, Random random) {
      rows.around(0, 1e20, random);
    }
  },
  SIGMA_1E30(Kinds.STD_AND_LOG) {
    @Override
    void fill(Rows rows, Random random) {
      rows.around(0, 1e30, random);
    }
  },
  /** Standard deviations and means that are subnormal floats. */
  SUBNORMAL(Kinds.STD) {
    @Override
    void fill(Rows rows, Random random) {
      rows.each((row, h) -> {
        rows.mean[row][h] = Float.MIN_VALUE * random.nextInt(-100, 101);
        rows.std[row][h] = Float.MIN_VALUE * random.nextInt(1, 100);
      });
    }
  },
  /** Rows of standard deviation from 1e-30 to 1e30: most entries overflow float. */
  EXTREME_MIX(Kinds.STD) {
    @Override
    void fill(Rows rows, Random random) {
      rows.each((row, h) -> {
        double magnitude = Math.pow(10, row * 7 % 61 - 30);
        rows.mean[row][h] = magnitude * random.nextGaussian();
        rows.std[row][h] = magnitude * random.nextDouble(0.5, 2);
      });
    }
  },
  /**
   * Means near the largest float with ordinary deviations: everything overflows float but equal
   * rows.
   */
  LARGEST_MEANS(Kinds.SAME) {
    @Override
    void fill(Rows rows, Random random) {
      rows.each((row, h) -> {
        rows.mean[row][h] = (row % 4 < 2 ? 1 : -1) * 3.4e38;
        rows.std[row][h] = row % 4 < 2 ? 0.5 : random.nextDouble(0.5, 2);
      });
    }
  },
  /**
   * Means near the largest float, deviations too: finite, though differences of means overflow
   * float.
   */
  LARGEST_MEANS_AND_SIGMAS(Kinds.STD_AND_LOG) {
    @Override
    void fill(Rows rows, Random random) {
      rows.each((row, h) -> {
        rows.mean[row][h] = random.nextDouble(-3.4e38, 3.4e38);
        rows.std[row][h] = random.nextDouble(1e37, 3.4e38);
      });
    }
  },
  LOG_VARIANCE_100(Kinds.LOG) {
    @Override
    void fill(Rows rows, Random random) {
      rows.logVariance(100, 1, random);
    }
  },
  LOG_VARIANCE_MINUS_100(Kinds.LOG) {
    @Override
    void fill(Rows rows, Random random) {
      rows.logVariance(-100, 1, random);
    }
  },
  /** Variances beyond double's range; their ratios are not. */
  LOG_VARIANCE_1000(Kinds.LOG) {
    @Override
    void fill(Rows rows, Random random) {
      rows.logVariance(1000, 1, random);
    }
  },
  LOG_VARIANCE_MINUS_1000(Kinds.LOG) {
    @Override
    void fill(Rows rows, Random random) {
      rows.logVariance(-1000, 1, random);
    }
  },
  LOG_VARIANCE_1000_EQUAL(Kinds.LOG) {
    @Override
    void fill(Rows rows, Random random) {
      rows.logVariance(1000, 0, random);
    }
  },
  LOG_VARIANCE_MINUS_1000_EQUAL(Kinds.LOG) {
    @Override
    void fill(Rows rows, Random random) {
      rows.logVariance(-1000, 0, random);
    }
  },
  /** Rows of log-variance -1000, -100, 0, 100 and 1000. */
  LOG_VARIANCE_MIX(Kinds.LOG) {
    @Override
    void fill(Rows rows, Random random) {
      double[] levels = {-1000, -100, 0, 100, 1000};
      rows.each((row, h) -> {
        rows.mean[row][h] = row % 2 == 0 ? 0 : random.nextGaussian();
        rows.logVariance[row][h] = levels[row % levels.length];
      });
    }
  },
  /** Double only: deviations whose squares leave double's range. */
  SIGMA_1E_MINUS_200(Kinds.STD_DOUBLE) {
    @Override
    void fill(Rows rows, Random random) {
      rows.around(0, 1e-200, random);
    }
  },
  SIGMA_1E200(Kinds.STD_DOUBLE) {
    @Override
    void fill(Rows rows, Random random) {
      rows.around(0, 1e200, random);
    }
  };

  private final Kinds kinds;
  private final double distance;

  Regime(Kinds kinds) {
    this(kinds, 0);
  }

  Regime(Kinds kinds, double distance) {
    this.kinds = kinds;
    this.distance = distance;
  }

  /** Repeats a row of {@link #VAE} at a relative distance, unless a regime does otherwise. */
  void fill(Rows rows, Random random) {
    rows.spread(VAE, distance, random);
  }

  public List<Pair> kindPairs() {
    return kinds.pairs;
  }

  public boolean appliesTo(boolean isDouble) {
    return isDouble || kinds != Kinds.STD_DOUBLE;
  }

  /** Kinds of scales of q and p that a regime is run with. */
  private enum Kinds {
    STD(same(Kind.STD)),
    STD_DOUBLE(same(Kind.STD)),
    LOG(same(Kind.LOG_VARIANCE)),
    STD_AND_LOG(same(Kind.STD, Kind.LOG_VARIANCE)),
    SAME(same(Kind.values())),
    ALL_PAIRS(allPairs());

    final List<Pair> pairs;

    Kinds(List<Pair> pairs) {
      this.pairs = pairs;
    }

    private static List<Pair> allPairs() {
      return Arrays.stream(Kind.values())
          .flatMap(q -> Arrays.stream(Kind.values()).map(p -> new Pair(q, p)))
          .toList();
    }

    private static List<Pair> same(Kind... kinds) {
      return Arrays.stream(kinds).map(kind -> new Pair(kind, kind)).toList();
    }
  }

  /** The kinds of scale of q and p. */
  public record Pair(Kind q, Kind p) {}

  /** The two batches of one case. */
  public record Case(Batch q, Batch p) {
    public double[] expected() {
      return Oracle.pairwise(q, p);
    }
  }

  /**
   * N rows of q and M of p drawn together, so that they share base rows; q takes every other row as
   * long as it needs any.
   */
  public Case draw(Pair kinds, boolean isDouble, int n, int m, int dimension) {
    Random random = new Random(31L * name().hashCode() + dimension);
    Rows rows = new Rows(isDouble, n + m, dimension);
    fill(rows, random);
    int[] q = new int[n];
    int[] p = new int[m];
    int inQ = 0;
    int inP = 0;
    for (int row = 0; row < n + m; row++) {
      if (inP == m || (row % 2 == 0 && inQ < n)) {
        q[inQ++] = row;
      } else {
        p[inP++] = row;
      }
    }
    return new Case(rows.batch(kinds.q, q), rows.batch(kinds.p, p));
  }

  /** Draws with standard deviations, like {@link #draw(Pair, boolean, int, int, int)}. */
  public Case draw(boolean isDouble, int n, int m, int dimension) {
    return draw(new Pair(Kind.STD, Kind.STD), isDouble, n, m, dimension);
  }

  /**
   * Rows under construction: standard deviations or, where they would leave double's range,
   * log-variances.
   */
  private static final class Rows {
    final boolean isDouble;
    final int dimension;
    final double[][] mean;
    final double[][] std;
    final double[][] logVariance;
    private Random ulps;
    private int every;

    Rows(boolean isDouble, int size, int dimension) {
      this.isDouble = isDouble;
      this.dimension = dimension;
      mean = new double[size][dimension];
      std = new double[size][dimension];
      logVariance = new double[size][dimension];
    }

    interface Cell {
      void fill(int row, int h);
    }

    void each(Cell cell) {
      for (int row = 0; row < mean.length; row++) {
        for (int h = 0; h < dimension; h++) {
          cell.fill(row, h);
        }
      }
    }

    void spread(Regime base, double distance, Random random) {
      base.fill(this, random);
      each((row, h) -> {
        mean[row][h] = mean[0][h] * (1 + (row == 0 ? 0 : distance * random.nextGaussian()));
        std[row][h] = std[0][h] * (1 + (row == 0 ? 0 : distance * random.nextGaussian()));
      });
    }

    void around(double center, double sigma, Random random) {
      each((row, h) -> {
        mean[row][h] = center + sigma * random.nextGaussian();
        std[row][h] = sigma * random.nextDouble(0.5, 2);
      });
    }

    void oneHuge(int huge, Random random) {
      each((row, h) -> {
        mean[row][h] = h == huge ? 1e3 * random.nextGaussian() : 1e-3 * random.nextGaussian();
        std[row][h] = h == huge ? 1e-3 : 1 + 1e-3 * random.nextGaussian();
      });
    }

    /** Means at the scale of the deviation where float holds them, and equal in every other row. */
    void logVariance(double center, double halfWidth, Random random) {
      double sigma = Math.abs(center) > 150 ? 1 : Math.exp(center / 2);
      each((row, h) -> {
        mean[row][h] = row % 4 < 2 ? 0 : sigma * random.nextGaussian();
        logVariance[row][h] = center + halfWidth * random.nextDouble(-1, 1);
      });
    }

    /**
     * Asks that in the finished batch one number in {@code every} be moved by -1, 0 or 1 units in
     * the last place.
     */
    void moveByUlps(Random random, int every) {
      ulps = random;
      this.every = every;
    }

    Batch batch(Kind kind, int[] chosen) {
      double[] means = new double[chosen.length * dimension];
      double[] scales = new double[means.length];
      for (int at = 0; at < means.length; at++) {
        int row = chosen[at / dimension];
        int h = at % dimension;
        means[at] = moved(mean[row][h]);
        scales[at] =
            moved(std[row][h] == 0 ? logVariance[row][h] : kind.fromStd.applyAsDouble(std[row][h]));
      }
      return new Batch(kind, isDouble, means, scales, dimension);
    }

    private double moved(double value) {
      if (ulps == null || ulps.nextInt(every) != 0) {
        return value;
      }
      int step = ulps.nextInt(3) - 1;
      return isDouble
          ? value + step * Math.ulp(value)
          : (float) value + step * (double) Math.ulp((float) value);
    }
  }
}
