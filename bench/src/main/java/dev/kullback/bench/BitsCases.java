package dev.kullback.bench;

import dev.kullback.DiagonalGaussians;
import dev.kullback.FullGaussians;
import dev.kullback.Gaussians;
import dev.kullback.ScaleKind;
import dev.kullback.ScalePolicy;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import java.util.function.Supplier;

/** The batches of {@link Bits}: the sample data, and made-up ones of every kind, of seeds and {@link StrictMath}. */
final class BitsCases {
  private static final int[] DIMENSIONS = {1, 2, 3, 7, 17, 64, 65, 130, 300};

  /** Scales by which a diagonal batch is stated. */
  private enum Kind {
    STD,
    VARIANCE,
    LOG_VARIANCE,
    PRECISION;

    /** Another one. */
    Kind next() {
      return switch (this) {
        case STD -> VARIANCE;
        case VARIANCE -> LOG_VARIANCE;
        case LOG_VARIANCE -> PRECISION;
        case PRECISION -> STD;
      };
    }
  }

  /** Matrices by which a full batch is stated. */
  private enum Matrix {
    SCALE_TRIL,
    PACKED,
    PACKED_LOG,
    COVARIANCE,
    PRECISION
  }

  /** Diagonal Gaussians in double: means and ln σ², row-major [N, D]. */
  private record Values(double[] mean, double[] logVariance, int dimension) {
    /** Means N(0, spread²), ln σ² N(0, (0.6 spread)²). */
    static Values random(int n, int dimension, double spread, long seed) {
      SplittableRandom random = new SplittableRandom(seed);
      Values v = new Values(new double[n * dimension], new double[n * dimension], dimension);
      for (int i = 0; i < v.mean.length; i++) {
        v.mean[i] = spread * random.nextGaussian();
        v.logVariance[i] = 0.6 * spread * random.nextGaussian();
      }
      return v;
    }

    /** Repeats one Gaussian, its parameters perturbed by ε relative, ε going round those given from row to row. */
    static Values near(int n, int dimension, long seed, double... epsilons) {
      Values base = random(1, dimension, 1, seed);
      Values v = random(n, dimension, 1, seed + 1);
      for (int i = 0; i < v.mean.length; i++) {
        double epsilon = epsilons[i / dimension % epsilons.length];
        int h = i % dimension;
        v.mean[i] = base.mean[h] * (1 + epsilon * v.mean[i]);
        v.logVariance[i] = base.logVariance[h] * (1 + epsilon * v.logVariance[i]);
      }
      return v;
    }

    Values shifted(double mean) {
      Arrays.setAll(this.mean, i -> this.mean[i] + mean);
      return this;
    }

    /** Log-variances of ±{@code most} in every {@code step}-th row, the sign going round. */
    Values extreme(double most, int step) {
      for (int i = 0; i < logVariance.length; i++) {
        if (i / dimension % step == 0) {
          logVariance[i] = (i % 3 == 0 ? -most : most) * (1 - 1e-3 * (i % 7));
        }
      }
      return this;
    }

    /** Rows i + count copies of rows i. */
    Values repeated(int count) {
      int length = count * dimension;
      for (int i = length; i < mean.length; i++) {
        mean[i] = mean[i - length];
        logVariance[i] = logVariance[i - length];
      }
      return this;
    }

    DiagonalGaussians gaussians(Kind kind, boolean isDouble) {
      double[] scale = new double[mean.length];
      Arrays.setAll(scale, i -> scale(kind, logVariance[i]));
      float[] mean32 = floats(mean);
      float[] scale32 = floats(scale);
      return switch (kind) {
        case STD ->
            isDouble
                ? DiagonalGaussians.ofStd(mean, scale, dimension)
                : DiagonalGaussians.ofStd(mean32, scale32, dimension);
        case VARIANCE ->
            isDouble
                ? DiagonalGaussians.ofVariance(mean, scale, dimension)
                : DiagonalGaussians.ofVariance(mean32, scale32, dimension);
        case LOG_VARIANCE ->
            isDouble
                ? DiagonalGaussians.ofLogVariance(mean, scale, dimension)
                : DiagonalGaussians.ofLogVariance(mean32, scale32, dimension);
        case PRECISION ->
            isDouble
                ? DiagonalGaussians.ofPrecision(mean, scale, dimension)
                : DiagonalGaussians.ofPrecision(mean32, scale32, dimension);
      };
    }

    private static double scale(Kind kind, double logVariance) {
      return switch (kind) {
        case STD -> StrictMath.exp(0.5 * logVariance);
        case VARIANCE -> StrictMath.exp(logVariance);
        case LOG_VARIANCE -> logVariance;
        case PRECISION -> StrictMath.exp(-logVariance);
      };
    }
  }

  /** Full Gaussians in double: means [N, D] and factors L [N, D, D], row-major. */
  private record Factors(double[] mean, double[] scaleTril, int dimension) {
    static Factors random(int n, int dimension, long seed) {
      FullBatch batch = FullBatch.ordinary(new Shape(n, dimension), seed);
      return new Factors(batch.mean(), batch.scaleTril(), dimension);
    }

    /** Rows i copies of row 0, perturbed by ε relative; ε 0 in every third. */
    static Factors near(int n, int dimension, double epsilon, long seed) {
      Factors f = random(n, dimension, seed);
      perturb(f.mean, dimension, epsilon, seed + 1);
      perturb(f.scaleTril, dimension * dimension, epsilon, seed + 2);
      return f;
    }

    private static void perturb(double[] values, int row, double epsilon, long seed) {
      SplittableRandom random = new SplittableRandom(seed);
      for (int i = row; i < values.length; i++) {
        double e = i / row % 3 == 0 ? 0 : epsilon;
        values[i] = values[i % row] * (1 + e * random.nextGaussian());
      }
    }

    /** Every {@code step}-th covariance times {@code factor} squared. */
    Factors scaled(double factor, int step) {
      int length = dimension * dimension;
      for (int i = 0; i < scaleTril.length; i++) {
        if (i / length % step == 0) {
          scaleTril[i] *= factor;
        }
      }
      return this;
    }

    Gaussians gaussians(Matrix matrix, boolean isDouble) {
      double[] values =
          switch (matrix) {
            case SCALE_TRIL -> scaleTril;
            case PACKED -> packed(false);
            case PACKED_LOG -> packed(true);
            case COVARIANCE, PRECISION -> products();
          };
      float[] mean32 = floats(mean);
      float[] values32 = floats(values);
      return switch (matrix) {
        case SCALE_TRIL ->
            isDouble
                ? FullGaussians.ofScaleTril(mean, values, dimension)
                : FullGaussians.ofScaleTril(mean32, values32, dimension);
        case PACKED ->
            isDouble
                ? Gaussians.of(ScaleKind.PLAIN_PACKED_SCALE_TRIL, mean, values, dimension)
                : Gaussians.of(ScaleKind.PLAIN_PACKED_SCALE_TRIL, mean32, values32, dimension);
        case PACKED_LOG ->
            isDouble
                ? FullGaussians.ofPackedScaleTril(mean, values, dimension)
                : FullGaussians.ofPackedScaleTril(mean32, values32, dimension);
        case COVARIANCE ->
            isDouble
                ? FullGaussians.ofCovariance(mean, values, dimension)
                : FullGaussians.ofCovariance(mean32, values32, dimension);
        case PRECISION ->
            isDouble
                ? Gaussians.of(ScaleKind.PRECISION_MATRIX, mean, values, dimension)
                : Gaussians.of(ScaleKind.PRECISION_MATRIX, mean32, values32, dimension);
      };
    }

    private double[] packed(boolean logDiagonal) {
      int d = dimension;
      double[] packed = new double[mean.length / d * (d * (d + 1) / 2)];
      for (int row = 0, to = 0; row < mean.length; row++) {
        for (int c = 0; c <= row % d; c++) {
          double x = scaleTril[row * d + c];
          packed[to++] = logDiagonal && c == row % d ? StrictMath.log(x) : x;
        }
      }
      return packed;
    }

    private double[] products() {
      FullBatch batch =
          new FullBatch(mean, scaleTril, new Shape(mean.length / dimension, dimension));
      double[] products = new double[scaleTril.length];
      for (int i = 0; i < batch.shape().size(); i++) {
        double[] product = batch.covariance(i);
        System.arraycopy(product, 0, products, i * product.length, product.length);
      }
      return products;
    }
  }

  private BitsCases() {}

  private static Bits.Case of(
      String name, Supplier<? extends Gaussians> q, Supplier<? extends Gaussians> p) {
    return new Bits.Case(name, () -> new Bits.Pair(q.get(), p.get()), Bits.Extent.ALL);
  }

  private static Bits.Case self(String name, Supplier<? extends Gaussians> q) {
    return new Bits.Case(
        name,
        () -> {
          Gaussians batch = q.get();
          return new Bits.Pair(batch, batch);
        },
        Bits.Extent.ALL);
  }

  private static Bits.Case large(Bits.Case c) {
    return new Bits.Case(c.name(), c.make(), Bits.Extent.VECTOR);
  }

  /** The sample data: diagonal of two kinds, full, both, and as double. */
  static List<Bits.Case> digits(Path folder) throws IOException {
    float[] mean = npy(folder.resolve("digits_mean.npy"));
    float[] std = npy(folder.resolve("digits_std.npy"));
    float[] logVariance = npy(folder.resolve("digits_logvar.npy"));
    float[] localMean = npy(folder.resolve("local_mean.npy"));
    float[] localTril = npy(folder.resolve("local_scale_tril.npy"));
    Supplier<Gaussians> digits = () -> DiagonalGaussians.ofStd(mean, std, 32);
    Supplier<Gaussians> some =
        () -> DiagonalGaussians.ofStd(head(mean, 33 * 32), head(std, 33 * 32), 32);
    Supplier<Gaussians> local = () -> FullGaussians.ofScaleTril(localMean, localTril, 8);
    Supplier<Gaussians> halfLocal =
        () -> FullGaussians.ofScaleTril(head(localMean, 500 * 8), head(localTril, 500 * 64), 8);
    Supplier<Gaussians> someLocal =
        () -> FullGaussians.ofScaleTril(head(localMean, 12 * 8), head(localTril, 12 * 64), 8);
    return List.of(
        large(self("digits", digits)),
        large(
            self(
                "500 digits double",
                () ->
                    DiagonalGaussians.ofStd(
                        wide(head(mean, 500 * 32)), wide(head(std, 500 * 32)), 32))),
        of("33 digits, all", some, digits),
        self("33 digits", some),
        large(
            self(
                "500 digits log-variance",
                () ->
                    DiagonalGaussians.ofLogVariance(
                        head(mean, 500 * 32), head(logVariance, 500 * 32), 32))),
        large(self("500 local", halfLocal)),
        of("12 local, all", someLocal, local),
        self("12 local", someLocal),
        of(
            "12 local, diagonal",
            someLocal,
            () -> DiagonalGaussians.ofStd(head(mean, 50 * 8), head(std, 50 * 8), 8)));
  }

  static List<Bits.Case> diagonal() {
    List<Bits.Case> cases = new ArrayList<>();
    int[][] sizes = {{1, 200}, {5, 33}, {33, 33}, {70, 200}};
    for (boolean isDouble : new boolean[] {false, true}) {
      String type = isDouble ? "double" : "float";
      for (int d : DIMENSIONS) {
        for (int[] size : sizes) {
          cases.add(
              of(
                  "std %s %dx%d D=%d".formatted(type, size[0], size[1], d),
                  () -> Values.random(size[0], d, 1, d).gaussians(Kind.STD, isDouble),
                  () -> Values.random(size[1], d, 1, d + 1).gaussians(Kind.STD, isDouble)));
        }
        cases.add(
            self(
                "std %s self D=%d".formatted(type, d),
                () -> Values.random(41, d, 1, d + 2).gaussians(Kind.STD, isDouble)));
      }
      for (Kind q : Kind.values()) {
        for (Kind p : Kind.values()) {
          cases.add(
              of(
                  "%s and %s %s".formatted(q, p, type),
                  () -> Values.random(21, 19, 1, 5).gaussians(q, isDouble),
                  () -> Values.random(21, 19, 1, 6).gaussians(p, isDouble)));
        }
        Kind p = q.next();
        cases.add(
            of(
                "%s and %s %s, near".formatted(q, p, type),
                () -> Values.near(17, 19, 5, 1e-3, 1e-6).gaussians(q, isDouble),
                () -> Values.near(17, 19, 5, 1e-2, 1e-7).gaussians(p, isDouble)));
        cases.addAll(unusual(q, isDouble));
      }
      cases.add(
          large(
              of(
                  type + " of several blocks",
                  () -> Values.random(300, 3, 1, 9).gaussians(Kind.VARIANCE, isDouble),
                  () -> Values.random(4200, 3, 1, 10).gaussians(Kind.VARIANCE, isDouble))));
      cases.add(
          of(
              type + " of many dimensions",
              () -> Values.random(40, 1100, 0.3, 9).gaussians(Kind.STD, isDouble),
              () -> Values.random(40, 1100, 0.3, 10).gaussians(Kind.STD, isDouble)));
    }
    for (Kind kind : Kind.values()) {
      cases.add(
          of(
              kind + " float and double",
              () -> Values.random(21, 33, 1, 11).gaussians(kind, false),
              () -> Values.random(21, 33, 1, 12).gaussians(kind, true)));
      cases.add(
          of(
              kind + " double and float",
              () -> Values.random(21, 33, 1, 11).gaussians(kind, true),
              () -> Values.random(70, 33, 1, 12).gaussians(Kind.STD, false)));
    }
    cases.addAll(policies());
    cases.addAll(segments());
    return cases;
  }

  /** Batches of one kind that are close, equal, far apart, or at the end of the range. */
  private static List<Bits.Case> unusual(Kind kind, boolean isDouble) {
    String name = kind + (isDouble ? " double" : " float");
    List<Bits.Case> cases = new ArrayList<>();
    for (double spread : new double[] {0.1, 0.25}) {
      cases.add(
          self(
              "%s, spread %s".formatted(name, spread),
              () -> Values.random(40, 64, spread, 21).gaussians(kind, isDouble)));
    }
    for (int d : new int[] {3, 65}) {
      cases.add(
          self(
              "%s, near D=%d".formatted(name, d),
              () ->
                  Values.near(24, d, 22, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-9, 1e-13)
                      .gaussians(kind, isDouble)));
      cases.add(
          of(
              "%s, duplicates D=%d".formatted(name, d),
              () -> Values.random(20, d, 1, 23).repeated(5).gaussians(kind, isDouble),
              () -> Values.random(50, d, 1, 23).repeated(5).gaussians(kind, isDouble)));
    }
    for (double mean :
        isDouble ? new double[] {1e6, 1e150, 1e300} : new double[] {1e6, 1e18, 1e37}) {
      cases.add(
          of(
              "%s, means %s".formatted(name, mean),
              () -> Values.random(20, 17, 1, 24).shifted(mean).gaussians(kind, isDouble),
              () -> Values.random(20, 17, 1, 25).shifted(-mean).gaussians(kind, isDouble)));
      cases.add(
          self(
              "%s, all means %s".formatted(name, mean),
              () -> Values.random(20, 17, 1, 24).shifted(mean).gaussians(kind, isDouble)));
    }
    // 2^±110 and, where they can be stated, 2^±510 and e^±600 and beyond
    List<Double> extremes = new ArrayList<>(List.of(60.0, 76.2));
    if (kind == Kind.LOG_VARIANCE) {
      extremes.addAll(List.of(600.0, 1390.0, 5000.0));
    } else if (isDouble) {
      extremes.addAll(List.of(353.5, 600.0));
    }
    for (double most : extremes) {
      cases.add(
          of(
              "%s, log-variances %s".formatted(name, most),
              () -> Values.random(35, 7, 1, 26).extreme(most, 4).gaussians(kind, isDouble),
              () -> Values.random(35, 7, 1, 27).extreme(most, 1).gaussians(kind, isDouble)));
    }
    return cases;
  }

  private static List<Bits.Case> policies() {
    Supplier<Gaussians> zero =
        () ->
            Gaussians.of(
                ScaleKind.STD, new float[60], new float[60], 3, ScalePolicy.DETERMINISTIC_IF_ZERO);
    Supplier<Gaussians> zeros =
        () ->
            Gaussians.of(
                ScaleKind.VARIANCE,
                new double[60],
                new double[60],
                3,
                ScalePolicy.DETERMINISTIC_IF_ZERO);
    Supplier<Gaussians> other = () -> Values.random(20, 3, 1, 31).gaussians(Kind.STD, false);
    Supplier<Gaussians> full = () -> Factors.random(20, 3, 32).gaussians(Matrix.SCALE_TRIL, true);
    double[] raw = {0, 1e-9, 1, -2, 40, 3e16, -0.0, 7, 0.5};
    float[] raw32 = floats(raw);
    return List.of(
        of("deterministic q", zero, other),
        of("deterministic q, full p", zeros, full),
        of("deterministic both", zero, zeros),
        of("deterministic p", other, zero),
        self(
            "clamped std",
            () -> Gaussians.of(ScaleKind.STD, new float[9], raw32, 3, ScalePolicy.CLAMPED)),
        self(
            "clamped variance",
            () -> Gaussians.of(ScaleKind.VARIANCE, new double[9], raw, 3, ScalePolicy.CLAMPED)),
        self(
            "clamped log-variance",
            () ->
                Gaussians.of(ScaleKind.LOG_VARIANCE, new float[9], raw32, 3, ScalePolicy.CLAMPED)),
        self(
            "clamped precision",
            () ->
                Gaussians.of(
                    ScaleKind.PRECISION,
                    new double[] {1, 2, 3},
                    new double[] {1e-3, 1, 1e17},
                    3,
                    ScalePolicy.CLAMPED)));
  }

  /** Batches read from memory, of both byte orders. */
  private static List<Bits.Case> segments() {
    Values q = Values.random(9, 6, 1, 33);
    Values p = Values.random(12, 6, 1, 34);
    Factors f = Factors.random(7, 6, 35);
    ScalePolicy strict = ScalePolicy.STRICT;
    ScalePolicy clamped = ScalePolicy.CLAMPED;
    return List.of(
        of(
            "segments log-variance",
            () -> ofFloats(ScaleKind.LOG_VARIANCE, q.mean, q.logVariance, strict),
            () -> ofBigEndian(ScaleKind.LOG_VARIANCE, p.mean, p.logVariance, strict)),
        of(
            "segments clamped",
            () -> ofFloats(ScaleKind.STD, q.mean, q.logVariance, clamped),
            () -> ofBigEndian(ScaleKind.VARIANCE, p.mean, p.logVariance, clamped)),
        self(
            "segments scaleTril",
            () -> ofBigEndian(ScaleKind.SCALE_TRIL, f.mean, f.scaleTril, strict)),
        of(
            "segments covariance and precision",
            () -> ofFloats(ScaleKind.COVARIANCE, f.mean, f.products(), strict),
            () -> ofBigEndian(ScaleKind.PRECISION_MATRIX, f.mean, f.products(), strict)),
        of(
            "segments packed",
            () -> ofFloats(ScaleKind.PACKED_SCALE_TRIL, f.mean, f.packed(true), strict),
            () -> ofBigEndian(ScaleKind.PLAIN_PACKED_SCALE_TRIL, f.mean, f.packed(false), strict)));
  }

  private static Gaussians ofFloats(
      ScaleKind kind, double[] mean, double[] scale, ScalePolicy policy) {
    ValueLayout element = ValueLayout.JAVA_FLOAT;
    MemorySegment means = MemorySegment.ofArray(floats(mean));
    MemorySegment scales = MemorySegment.ofArray(floats(scale));
    return Gaussians.of(kind, means, element, scales, element, 6, policy);
  }

  private static Gaussians ofBigEndian(
      ScaleKind kind, double[] mean, double[] scale, ScalePolicy policy) {
    ValueLayout element = ValueLayout.JAVA_DOUBLE.withOrder(ByteOrder.BIG_ENDIAN);
    return Gaussians.of(kind, bigEndian(mean), element, bigEndian(scale), element, 6, policy);
  }

  static List<Bits.Case> full() {
    List<Bits.Case> cases = new ArrayList<>();
    for (boolean isDouble : new boolean[] {false, true}) {
      String type = isDouble ? "double" : "float";
      for (int d : DIMENSIONS) {
        int[][] sizes =
            d <= 7
                ? new int[][] {{1, 200}, {5, 33}, {19, 19}, {70, 100}}
                : d <= 65 ? new int[][] {{1, 20}, {5, 5}} : new int[][] {{1, 3}};
        for (int[] size : sizes) {
          cases.add(
              of(
                  "full %s %dx%d D=%d".formatted(type, size[0], size[1], d),
                  () -> Factors.random(size[0], d, d).gaussians(Matrix.SCALE_TRIL, isDouble),
                  () -> Factors.random(size[1], d, d + 1).gaussians(Matrix.SCALE_TRIL, isDouble)));
        }
        if (d <= 130) {
          cases.add(
              self(
                  "full %s self D=%d".formatted(type, d),
                  () ->
                      Factors.random(d <= 17 ? 9 : 3, d, d + 2)
                          .gaussians(Matrix.SCALE_TRIL, isDouble)));
        }
      }
      for (Matrix q : Matrix.values()) {
        for (Matrix p : isDouble ? Matrix.values() : new Matrix[] {q}) {
          cases.add(
              of(
                  "full %s and %s %s".formatted(q, p, type),
                  () -> Factors.random(11, 5, 41).gaussians(q, isDouble),
                  () -> Factors.random(11, 5, 42).gaussians(p, isDouble)));
        }
        for (double epsilon : new double[] {1e-3, 1e-7, 1e-12}) {
          cases.add(
              of(
                  "full %s %s, near %s".formatted(q, type, epsilon),
                  () -> Factors.near(13, 8, epsilon, 43).gaussians(q, isDouble),
                  () -> Factors.near(17, 8, epsilon, 43).gaussians(q, isDouble)));
        }
        cases.add(
            self(
                "full %s %s D=20".formatted(q, type),
                () -> Factors.random(13, 20, 44).gaussians(q, isDouble)));
        for (double factor : isDouble ? new double[] {1e20, 1e-70} : new double[] {1e10, 1e-12}) {
          cases.add(
              of(
                  "full %s %s, scaled %s".formatted(q, type, factor),
                  () -> Factors.random(9, 4, 45).scaled(factor, 2).gaussians(q, isDouble),
                  () -> Factors.random(9, 4, 46).scaled(factor, 3).gaussians(q, isDouble)));
        }
      }
      cases.add(
          large(
              of(
                  "full %s of several blocks".formatted(type),
                  () -> Factors.random(70, 2, 47).gaussians(Matrix.PACKED, isDouble),
                  () -> Factors.random(4200, 2, 48).gaussians(Matrix.PACKED, isDouble))));
    }
    cases.add(
        of(
            "full float and double",
            () -> Factors.random(15, 6, 49).gaussians(Matrix.SCALE_TRIL, false),
            () -> Factors.random(15, 6, 50).gaussians(Matrix.COVARIANCE, true)));
    cases.add(
        of(
            "full beyond the matrix kernel",
            () -> Factors.random(9, 4, 45).scaled(0x1p260, 2).gaussians(Matrix.SCALE_TRIL, true),
            () -> Factors.random(9, 4, 46).scaled(0x1p-260, 3).gaussians(Matrix.SCALE_TRIL, true)));
    return cases;
  }

  /** A diagonal batch against a full one. */
  static List<Bits.Case> mixed() {
    List<Bits.Case> cases = new ArrayList<>();
    for (boolean isDouble : new boolean[] {false, true}) {
      String type = isDouble ? "double" : "float";
      for (Kind kind : Kind.values()) {
        for (int d : new int[] {1, 3, 17}) {
          Supplier<Gaussians> diagonal = () -> Values.random(9, d, 1, 51).gaussians(kind, isDouble);
          Supplier<Gaussians> full =
              () -> Factors.random(9, d, 52).gaussians(Matrix.SCALE_TRIL, true);
          Supplier<Gaussians> floats =
              () -> Factors.random(14, d, 53).gaussians(Matrix.COVARIANCE, false);
          cases.add(of("%s %s and full D=%d".formatted(kind, type, d), diagonal, full));
          cases.add(of("full and %s %s D=%d".formatted(kind, type, d), full, diagonal));
          cases.add(of("%s %s and full float D=%d".formatted(kind, type, d), diagonal, floats));
        }
      }
    }
    // Too large to be written out as factors: pairs are computed one by one.
    cases.add(
        new Bits.Case(
            "full and STD, pair by pair",
            () ->
                new Bits.Pair(
                    Factors.random(1, 24, 54).gaussians(Matrix.SCALE_TRIL, true),
                    Values.random(60_000, 24, 1, 55).gaussians(Kind.STD, true)),
            Bits.Extent.BRIEF));
    for (double most : new double[] {600, 1390, 5000}) {
      cases.add(
          of(
              "full and log-variances %s".formatted(most),
              () -> Factors.random(9, 4, 56).gaussians(Matrix.PACKED_LOG, true),
              () ->
                  Values.random(9, 4, 1, 57).extreme(most, 2).gaussians(Kind.LOG_VARIANCE, true)));
    }
    return cases;
  }

  static float[] floats(double[] values) {
    float[] floats = new float[values.length];
    for (int i = 0; i < floats.length; i++) {
      floats[i] = (float) values[i];
    }
    return floats;
  }

  private static double[] wide(float[] values) {
    double[] wide = new double[values.length];
    Arrays.setAll(wide, i -> values[i]);
    return wide;
  }

  private static float[] head(float[] values, int length) {
    return Arrays.copyOf(values, length);
  }

  /** Stores the values in big-endian order in an array of bytes, from the second byte on. */
  private static MemorySegment bigEndian(double[] values) {
    MemorySegment segment =
        MemorySegment.ofArray(new byte[1 + Double.BYTES * values.length]).asSlice(1);
    ValueLayout.OfDouble layout = ValueLayout.JAVA_DOUBLE_UNALIGNED.withOrder(ByteOrder.BIG_ENDIAN);
    MemorySegment.copy(values, 0, segment, layout, 0, values.length);
    return segment;
  }

  /** The numbers of a .npy file of version 1, little-endian float in C order. */
  private static float[] npy(Path file) throws IOException {
    ByteBuffer bytes = ByteBuffer.wrap(Files.readAllBytes(file)).order(ByteOrder.LITTLE_ENDIAN);
    int start = 10 + bytes.getShort(8);
    String header = new String(bytes.array(), 10, start - 10, StandardCharsets.ISO_8859_1);
    if (!header.contains("'<f4'") || !header.contains("'fortran_order': False")) {
      throw new IOException(file + " is not of float in C order: " + header.strip());
    }
    float[] values = new float[(bytes.limit() - start) / Float.BYTES];
    bytes.position(start).slice().order(ByteOrder.LITTLE_ENDIAN).asFloatBuffer().get(values);
    return values;
  }
}
