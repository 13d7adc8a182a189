package dev.kullback.bench;

import dev.kullback.KlEngine;
import dev.kullback.LowRankGaussians;
import dev.kullback.ScaleKind;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.function.Function;
import org.ejml.data.DMatrixRMaj;
import org.ejml.dense.row.CommonOps_DDRM;

/** Contenders with covariances V + WWᵀ, W of {@link #RANK} columns, by name. The matrix is [B, B] in double, of prepared batches. */
final class LowRankContenders {
  /** Columns of W, about as many as SWAG and factor analysers have in use. */
  static final int RANK = 8;

  /** Error that passes, relative to KL + D: the reference cancels. */
  private static final double TOLERANCE = 1e-10;

  private LowRankContenders() {}

  static Map<String, Function<Shape, Contender>> all() {
    Map<String, Function<Shape, Contender>> all = new LinkedHashMap<>();
    all.put(
        "kl-low-rank-prepared",
        shape ->
            kl(
                "kl-low-rank-prepared",
                Data.ordinary(shape, Batch.Q_SEED),
                Data.ordinary(shape, Batch.P_SEED)));
    for (String epsilon : new String[] {"1e-2", "1e-4", "1e-6"}) {
      String name = "kl-low-rank-near-" + epsilon;
      all.put(
          name,
          shape -> {
            Data batch = Data.nearDuplicates(shape, Double.parseDouble(epsilon), Batch.Q_SEED);
            return kl(name, batch, batch);
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

    LowRankGaussians gaussians() {
      return LowRankGaussians.of(ScaleKind.VARIANCE, mean, factor, variance, shape.dimension());
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

  private static Contender kl(String name, Data q, Data p) {
    Shape shape = q.shape;
    KlEngine engine = KlEngine.builder().build();
    LowRankGaussians preparedQ = q.gaussians();
    LowRankGaussians preparedP = p == q ? preparedQ : p.gaussians();
    double[] out = new double[Math.multiplyExact(shape.size(), shape.size())];
    return new Contender() {
      @Override
      public Object call() {
        return engine.pairwise(preparedQ, preparedP, out);
      }

      @Override
      public void check() {
        Agreement.forSampledEntries(
            shape,
            shape,
            (i, j, at) -> {
              double expected = p == q && i == j ? 0 : reference(q, i, p, j);
              if (!(Math.abs(out[at] - expected) <= TOLERANCE * (expected + shape.dimension()))) {
                throw Agreement.differs(name, i, j, out[at], expected);
              }
            });
      }

      @Override
      public double terms(Shape shape) { // the multiply-adds of [B·r, D] · [D, B·(r+1)]
        return (double) shape.size() * shape.size() * shape.dimension() * RANK * (RANK + 1);
      }

      @Override
      public void close() {
        engine.close();
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
