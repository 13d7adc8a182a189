package dev.kullback.bench;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import dev.kullback.KlEngine;
import dev.kullback.LowRankGaussians;
import dev.kullback.ScaleKind;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.function.Function;
import java.util.function.IntToDoubleFunction;
import java.util.stream.DoubleStream;
import java.util.stream.Stream;
import org.ejml.data.DMatrixRMaj;
import org.ejml.dense.row.CommonOps_DDRM;

/** Contenders with covariances V + WWᵀ, W of {@link #RANK} columns, by name. The matrix is [B, B] in double, of prepared batches. */
final class LowRankContenders {
  /** Columns of W, about as many as SWAG and factor analysers have in use. */
  static final int RANK = 8;

  /** Error that passes, relative to KL + D: the reference cancels. */
  private static final double TOLERANCE = 1e-10;

  /** The same of floats, which round the parameters, too. */
  private static final double FLOAT_TOLERANCE = 1e-5;

  /** The same of libtorch, whose floats have rounded parameters, too. */
  private static final double TORCH_TOLERANCE = 1e-4;

  /**
   * Rows of q that libtorch takes at once, with temporaries of 67 MB each at 256x512 in float. One row takes .9 of its time in float, 4 or 64 rows
   * 1.2 (Zen 4).
   */
  private static final int TORCH_ROWS = 16;

  private LowRankContenders() {}

  static Map<String, Function<Shape, Contender>> all() {
    Map<String, Function<Shape, Contender>> all = new LinkedHashMap<>();
    all.put("kl-low-rank-prepared", shape -> kl("kl-low-rank-prepared", shape, true));
    all.put("kl-low-rank-float-prepared", shape -> kl("kl-low-rank-float-prepared", shape, false));
    all.put("openblas-low-rank-dgemm", LowRankContenders::product);
    all.put("torch-low-rank", shape -> torch("torch-low-rank", shape, DataType.FLOAT32));
    all.put(
        "torch-low-rank-double", shape -> torch("torch-low-rank-double", shape, DataType.FLOAT64));
    for (String epsilon : new String[] {"1e-2", "1e-4", "1e-6"}) {
      String name = "kl-low-rank-near-" + epsilon;
      all.put(
          name,
          shape -> {
            Data batch = Data.nearDuplicates(shape, Double.parseDouble(epsilon), Batch.Q_SEED);
            return kl(name, batch, batch, true);
          });
    }
    return all;
  }

  /** Row-major means and v, [B, D], and W, [B, D, r]. */
  private record Data(double[] mean, double[] variance, double[] factor, Shape shape) {
    /** Means N(0, 1), ln v N(0, 0.6²), W N(0, 1/r): a diagonal of about 2. */
    static Data ordinary(Shape shape, long seed) {
      return new Data(shape, new SplittableRandom(seed));
    }

    private Data(Shape shape, SplittableRandom random) {
      int length = Math.multiplyExact(shape.size(), shape.dimension());
      this(new double[length], new double[length], new double[length * RANK], shape);
      for (int k = 0; k < length; k++) {
        mean[k] = random.nextGaussian();
        variance[k] = Math.exp(0.6 * random.nextGaussian());
      }
      for (int k = 0; k < factor.length; k++) {
        factor[k] = random.nextGaussian() / Math.sqrt(RANK);
      }
    }

    /** One row, whose numbers are perturbed by ε·N(0, 1), those of v and W relatively. */
    static Data nearDuplicates(Shape shape, double epsilon, long seed) {
      SplittableRandom random = new SplittableRandom(seed);
      Data row = new Data(new Shape(1, shape.dimension()), random);
      Data all = new Data(shape, random);
      int d = shape.dimension();
      for (int k = 0; k < all.mean.length; k++) {
        all.mean[k] = row.mean[k % d] + epsilon * random.nextGaussian();
        all.variance[k] = row.variance[k % d] * Math.exp(epsilon * random.nextGaussian());
      }
      for (int k = 0; k < all.factor.length; k++) {
        all.factor[k] = row.factor[k % (d * RANK)] * (1 + epsilon * random.nextGaussian());
      }
      return all;
    }

    /** Means, factors, diagonals and libtorch's factors of the capacitance, of rows [from, to). */
    NDArray[] tensors(NDManager manager, DataType type, int from, int to) {
      int n = to - from;
      int d = shape.dimension();
      NDArray means = tensor(manager, type, mean, from, to, n, d);
      NDArray factors = tensor(manager, type, factor, from, to, n, d, RANK);
      NDArray diagonals = tensor(manager, type, variance, from, to, n, d);
      try (TorchScript capacitance =
          new TorchScript(manager, Torch.CAPACITANCE, factors, diagonals)) {
        return new NDArray[] {means, factors, diagonals, capacitance.call()};
      }
    }

    private NDArray tensor(
        NDManager manager, DataType type, double[] values, int from, int to, long... shape) {
      int row = values.length / this.shape.size();
      double[] rows = Arrays.copyOfRange(values, from * row, to * row);
      return Torch.tensor(manager, rows, type, shape);
    }

    LowRankGaussians gaussians(boolean isDouble) {
      int d = shape.dimension();
      return isDouble
          ? LowRankGaussians.of(ScaleKind.VARIANCE, mean, factor, variance, d)
          : LowRankGaussians.of(
              ScaleKind.VARIANCE, floats(mean), floats(factor), floats(variance), d);
    }

    private static float[] floats(double[] values) {
      float[] floats = new float[values.length];
      for (int k = 0; k < values.length; k++) {
        floats[k] = (float) values[k];
      }
      return floats;
    }

    /** Returns W_i over the roots of another batch's v_j. */
    DMatrixRMaj whitened(int i, Data by, int j) {
      int d = shape.dimension();
      DMatrixRMaj w = new DMatrixRMaj(d, RANK);
      for (int k = 0; k < d * RANK; k++) {
        w.data[k] = factor[i * d * RANK + k] / Math.sqrt(by.variance[j * d + k / RANK]);
      }
      return w;
    }
  }

  private static Contender kl(String name, Shape shape, boolean isDouble) {
    return kl(
        name, Data.ordinary(shape, Batch.Q_SEED), Data.ordinary(shape, Batch.P_SEED), isDouble);
  }

  private static Contender kl(String name, Data q, Data p, boolean isDouble) {
    Shape shape = q.shape;
    KlEngine engine = KlEngine.builder().build();
    LowRankGaussians preparedQ = q.gaussians(isDouble);
    LowRankGaussians preparedP = p == q ? preparedQ : p.gaussians(isDouble);
    double[] out = new double[Math.multiplyExact(shape.size(), shape.size())];
    return new Contender() {
      @Override
      public Object call() {
        return engine.pairwise(preparedQ, preparedP, out);
      }

      @Override
      public void check() {
        LowRankContenders.check(name, q, p, at -> out[at], isDouble ? TOLERANCE : FLOAT_TOLERANCE);
      }

      @Override
      public double terms(Shape shape) {
        return LowRankContenders.terms(shape);
      }

      @Override
      public void close() {
        engine.close();
      }
    };
  }

  /** The product of the same operands, [B·r, D] · [D, B·(r+1)]; its time does not depend on the values. */
  private static Contender product(Shape shape) {
    OpenBlas blas = OpenBlas.load();
    int d = shape.dimension();
    int m = shape.size() * RANK;
    int n = shape.size() * (RANK + 1);
    MemorySegment a = gaussian((long) m * d);
    MemorySegment b = gaussian((long) n * d);
    MemorySegment out = MemorySegment.ofArray(new double[Math.multiplyExact(m, n)]);
    return new Contender() {
      @Override
      public Object call() {
        blas.multiplyTransposedDouble(a, b, out, m, n, d);
        return out;
      }

      @Override
      public void check() {
        double expected = 0;
        for (int h = 0; h < d; h++) {
          expected += value(a, h) * value(b, h);
        }
        if (!(Math.abs(value(out, 0) - expected) <= TOLERANCE * d)) {
          throw Agreement.differs("openblas-low-rank-dgemm", 0, 0, value(out, 0), expected);
        }
      }

      @Override
      public double terms(Shape shape) {
        return LowRankContenders.terms(shape);
      }
    };
  }

  private static double value(MemorySegment values, int at) {
    return values.getAtIndex(ValueLayout.JAVA_DOUBLE, at);
  }

  private static MemorySegment gaussian(long length) {
    SplittableRandom random = new SplittableRandom(Batch.Q_SEED);
    return MemorySegment.ofArray(
        DoubleStream.generate(random::nextGaussian).limit(length).toArray());
  }

  /** The multiply-adds of [B·r, D] · [D, B·(r+1)]. */
  private static double terms(Shape shape) {
    return (double) shape.size() * shape.size() * shape.dimension() * RANK * (RANK + 1);
  }

  private static void check(
      String name, Data q, Data p, IntToDoubleFunction out, double tolerance) {
    Shape shape = q.shape;
    Agreement.forSampledEntries(
        shape,
        shape,
        (i, j, at) -> {
          double expected = p == q && i == j ? 0 : reference(q, i, p, j);
          double actual = out.applyAsDouble(at);
          if (!(Math.abs(actual - expected) <= tolerance * (expected + shape.dimension()))) {
            throw Agreement.differs(name, i, j, actual, expected);
          }
        });
  }

  /** By libtorch, from tensors [{@link #TORCH_ROWS}, B, D, r]. */
  private static Contender torch(String name, Shape shape, DataType type) {
    Data q = Data.ordinary(shape, Batch.Q_SEED);
    Data p = Data.ordinary(shape, Batch.P_SEED);
    NDManager manager = Torch.load().newManager();
    NDArray[] all = p.tensors(manager, type, 0, shape.size());
    TorchScript[] blocks = new TorchScript[Math.ceilDiv(shape.size(), TORCH_ROWS)];
    for (int b = 0; b < blocks.length; b++) {
      int end = Math.min(shape.size(), (b + 1) * TORCH_ROWS);
      NDArray[] some = q.tensors(manager, type, b * TORCH_ROWS, end);
      NDArray[] arguments = Stream.of(some, all).flatMap(Stream::of).toArray(NDArray[]::new);
      blocks[b] = new TorchScript(manager, Torch.LOW_RANK, arguments);
    }
    NDArray[] results = new NDArray[blocks.length];
    return new Contender() {
      @Override
      public Object call() {
        for (int b = 0; b < blocks.length; b++) {
          if (results[b] != null) {
            results[b].close();
          }
          results[b] = blocks[b].call();
        }
        return results;
      }

      @Override
      public void check() {
        int each = TORCH_ROWS * shape.size();
        Number[][] out = Stream.of(results).map(NDArray::toArray).toArray(Number[][]::new);
        LowRankContenders.check(
            name, q, p, at -> out[at / each][at % each].doubleValue(), TORCH_TOLERANCE);
      }

      @Override
      public double terms(Shape shape) {
        return LowRankContenders.terms(shape);
      }

      @Override
      public void close() {
        Stream.of(blocks).forEach(TorchScript::close);
        manager.close();
      }
    };
  }

  /** KL by the textbook formula: with U, G and y, W_p, W_q and μ_q − μ_p over √v_p, and x = v_q/v_p. */
  private static double reference(Data q, int i, Data p, int j) {
    int d = q.shape.dimension();
    DMatrixRMaj u = p.whitened(j, p, j);
    DMatrixRMaj g = q.whitened(i, p, j);
    DMatrixRMaj y = new DMatrixRMaj(d, 1);
    DMatrixRMaj xu = u.copy(); // with √x
    double sum = -d;
    for (int h = 0; h < d; h++) {
      double v = p.variance[j * d + h];
      double x = q.variance[i * d + h] / v;
      y.data[h] = (q.mean[i * d + h] - p.mean[j * d + h]) / Math.sqrt(v);
      sum += x - Math.log(x) + y.data[h] * y.data[h];
      for (int k = 0; k < RANK; k++) {
        xu.data[h * RANK + k] *= Math.sqrt(x);
        sum += g.get(h, k) * g.get(h, k);
      }
    }
    DMatrixRMaj m = capacitance(u);
    sum +=
        Math.log(CommonOps_DDRM.det(m))
            - Math.log(CommonOps_DDRM.det(capacitance(q.whitened(i, q, i))));
    DMatrixRMaj x = new DMatrixRMaj(RANK, RANK);
    CommonOps_DDRM.multTransA(xu, xu, x);
    for (DMatrixRMaj other : new DMatrixRMaj[] {g, y}) {
      DMatrixRMaj product = new DMatrixRMaj(RANK, other.numCols);
      CommonOps_DDRM.multTransA(u, other, product);
      CommonOps_DDRM.multAddTransB(product, product, x);
    }
    CommonOps_DDRM.invert(m);
    CommonOps_DDRM.elementMult(
        m, x); // both are symmetric: their elements' products have the trace of the product as sum
    return 0.5 * (sum - CommonOps_DDRM.elementSum(m));
  }

  /** I + WᵀW. */
  private static DMatrixRMaj capacitance(DMatrixRMaj w) {
    DMatrixRMaj m = CommonOps_DDRM.identity(RANK);
    CommonOps_DDRM.multAddTransA(w, w, m);
    return m;
  }
}
