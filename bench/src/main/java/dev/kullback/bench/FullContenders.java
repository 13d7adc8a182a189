package dev.kullback.bench;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import dev.kullback.FullGaussians;
import dev.kullback.KlEngine;
import java.lang.foreign.MemorySegment;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.function.Function;
import org.ejml.data.DMatrixRMaj;
import org.ejml.dense.row.CommonOps_DDRM;
import org.ejml.dense.row.factory.LinearSolverFactory_DDRM;
import org.ejml.interfaces.decomposition.CholeskyDecomposition_F64;
import org.ejml.interfaces.linsol.LinearSolverDense;

/**
 * Contenders with full covariances, by name. The matrix is [B, B], of two batches of B rows; {@code -aligned} is B pairs.
 */
final class FullContenders {
  private static final Map<String, Function<Shape, Contender>> ALL = new LinkedHashMap<>();

  static {
    ALL.put("openblas-dgemm", FullContenders::openBlas);
    torch("torch-full", false, DataType.FLOAT32);
    torch("torch-full-double", false, DataType.FLOAT64);
    torch("torch-full-aligned", true, DataType.FLOAT32);
    java(
        "kl-full",
        false,
        1e-12,
        (q, p, out) -> {
          KlEngine engine = KlEngine.builder().build();
          return () -> engine.pairwise(gaussians(q), gaussians(p), out);
        });
    java(
        "kl-full-prepared",
        false,
        1e-12,
        (q, p, out) -> {
          KlEngine engine = KlEngine.builder().build();
          FullGaussians a = gaussians(q);
          FullGaussians b = gaussians(p);
          return () -> engine.pairwise(a, b, out);
        });
    java(
        "kl-full-aligned",
        true,
        1e-12,
        (q, p, out) -> {
          KlEngine engine = KlEngine.builder().build();
          FullGaussians a = gaussians(q);
          FullGaussians b = gaussians(p);
          return () -> engine.aligned(a, b, out);
        });
    java("ejml-full", false, 1e-10, FullContenders::ejml);
    java("ejml-full-hoisted", false, 1e-10, FullContenders::ejmlHoisted);
    java("ejml-full-aligned", true, 1e-10, FullContenders::ejmlAligned);
  }

  private FullContenders() {}

  static Map<String, Function<Shape, Contender>> all() {
    return Collections.unmodifiableMap(ALL);
  }

  /** Prepares what is not timed, and returns what is. */
  private interface Kl {
    Runnable prepare(FullBatch q, FullBatch p, double[] out);
  }

  /** KL in Java arrays: a matrix or, aligned, a vector. The tolerance is relative to KL + D. */
  private static void java(String name, boolean aligned, double tolerance, Kl kl) {
    ALL.put(name, shape -> java(name, shape, aligned, tolerance, kl));
  }

  private static Contender java(
      String name, Shape shape, boolean aligned, double tolerance, Kl kl) {
    FullBatch q = FullBatch.ordinary(shape, Batch.Q_SEED);
    FullBatch p = FullBatch.ordinary(shape, Batch.P_SEED);
    double[] out =
        new double[aligned ? shape.size() : Math.multiplyExact(shape.size(), shape.size())];
    Runnable timed = kl.prepare(q, p, out);
    return new Contender() {
      @Override
      public Object call() {
        timed.run();
        return out;
      }

      @Override
      public void check() {
        Agreement.full(name, q, p, aligned, out, tolerance);
      }

      @Override
      public double terms(Shape shape) {
        return FullContenders.terms(shape, aligned);
      }
    };
  }

  /** The multiply-adds of the results as a matrix product, whatever a contender makes of them. */
  static double terms(Shape shape, boolean aligned) {
    double pairs = aligned ? shape.size() : (double) shape.size() * shape.size();
    return pairs * FullBatch.features(shape.dimension());
  }

  static FullGaussians gaussians(FullBatch batch) {
    return FullGaussians.ofScaleTril(batch.mean(), batch.scaleTril(), batch.shape().dimension());
  }

  /** The product that the matrix can be had as, [B, K] · [B, K]ᵀ; its time does not depend on the values. */
  private static Contender openBlas(Shape shape) {
    OpenBlas blas = OpenBlas.load();
    Shape features = new Shape(shape.size(), FullBatch.features(shape.dimension()));
    double[] q = gaussian(features, Batch.Q_SEED);
    double[] p = gaussian(features, Batch.P_SEED);
    double[] out = new double[Math.multiplyExact(shape.size(), shape.size())];
    MemorySegment a = MemorySegment.ofArray(q);
    MemorySegment b = MemorySegment.ofArray(p);
    MemorySegment c = MemorySegment.ofArray(out);
    return new Contender() {
      @Override
      public Object call() {
        blas.multiplyTransposedDouble(a, b, c, features);
        return out;
      }

      @Override
      public void check() {
        Agreement.product("openblas-dgemm", features, q, p, out);
      }

      @Override
      public double terms(Shape shape) {
        return FullContenders.terms(shape, false);
      }
    };
  }

  private static double[] gaussian(Shape shape, long seed) {
    SplittableRandom random = new SplittableRandom(seed);
    double[] values = new double[Math.multiplyExact(shape.size(), shape.dimension())];
    for (int i = 0; i < values.length; i++) {
      values[i] = random.nextGaussian();
    }
    return values;
  }

  /** A Cholesky solve a pair, by a function of two Gaussians: it decomposes both covariances each time. */
  private static Runnable ejml(FullBatch q, FullBatch p, double[] out) {
    int n = q.shape().size();
    EjmlPairs pairs = new EjmlPairs(q, p);
    return () -> {
      for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++) {
          out[i * n + j] = pairs.kl(i, j);
        }
      }
    };
  }

  /** A Cholesky solve a pair; each covariance is decomposed once a matrix. */
  private static Runnable ejmlHoisted(FullBatch q, FullBatch p, double[] out) {
    int n = q.shape().size();
    EjmlPairs pairs = new EjmlPairs(q, p);
    double[] logDetQ = new double[n];
    return () -> {
      for (int i = 0; i < n; i++) {
        logDetQ[i] = pairs.decompose(pairs.q[i]);
      }
      for (int j = 0; j < n; j++) {
        double logDetP = pairs.decompose(pairs.p[j]);
        for (int i = 0; i < n; i++) {
          out[i * n + j] = pairs.solve(i, j, logDetQ[i], logDetP);
        }
      }
    };
  }

  private static Runnable ejmlAligned(FullBatch q, FullBatch p, double[] out) {
    EjmlPairs pairs = new EjmlPairs(q, p);
    return () -> {
      for (int i = 0; i < out.length; i++) {
        out[i] = pairs.kl(i, i);
      }
    };
  }

  private static final class EjmlPairs {
    final DMatrixRMaj[] q;
    final DMatrixRMaj[] p;
    private final DMatrixRMaj[] meanQ;
    private final DMatrixRMaj[] meanP;
    private final LinearSolverDense<DMatrixRMaj> solver;
    private final CholeskyDecomposition_F64<DMatrixRMaj> cholesky;
    private final DMatrixRMaj decomposed;
    private final DMatrixRMaj lower;
    private final DMatrixRMaj x;
    private final DMatrixRMaj difference;
    private final DMatrixRMaj y;

    EjmlPairs(FullBatch q, FullBatch p) {
      int d = q.shape().dimension();
      this.q = covariances(q);
      this.p = covariances(p);
      meanQ = means(q);
      meanP = means(p);
      solver = LinearSolverFactory_DDRM.chol(d);
      cholesky = solver.getDecomposition();
      decomposed = new DMatrixRMaj(d, d);
      lower = new DMatrixRMaj(d, d);
      x = new DMatrixRMaj(d, d);
      difference = new DMatrixRMaj(d, 1);
      y = new DMatrixRMaj(d, 1);
    }

    double kl(int i, int j) {
      double logDetQ = decompose(q[i]);
      return solve(i, j, logDetQ, decompose(p[j]));
    }

    /** Computes, for p_j that was decomposed last, ½ (tr Σp⁻¹Σq + δᵀΣp⁻¹δ − D + ln det Σp − ln det Σq). */
    double solve(int i, int j, double logDetQ, double logDetP) {
      solver.solve(q[i], x);
      CommonOps_DDRM.subtract(meanP[j], meanQ[i], difference);
      solver.solve(difference, y);
      double mahalanobis = CommonOps_DDRM.dot(difference, y);
      return 0.5 * (CommonOps_DDRM.trace(x) + mahalanobis - x.numRows + logDetP - logDetQ);
    }

    /** Decomposes a covariance for the solver, which works in place; returns the logarithm of the determinant. */
    double decompose(DMatrixRMaj covariance) {
      decomposed.setTo(covariance);
      if (!solver.setA(decomposed)) {
        throw new AssertionError("the inputs are positive definite");
      }
      cholesky.getT(lower);
      double sum = 0;
      for (int k = 0; k < lower.numRows; k++) {
        sum += Math.log(lower.unsafe_get(k, k));
      }
      return 2 * sum;
    }

    private static DMatrixRMaj[] covariances(FullBatch batch) {
      int d = batch.shape().dimension();
      DMatrixRMaj[] matrices = new DMatrixRMaj[batch.shape().size()];
      for (int i = 0; i < matrices.length; i++) {
        matrices[i] = DMatrixRMaj.wrap(d, d, batch.covariance(i));
      }
      return matrices;
    }

    private static DMatrixRMaj[] means(FullBatch batch) {
      int d = batch.shape().dimension();
      DMatrixRMaj[] vectors = new DMatrixRMaj[batch.shape().size()];
      for (int i = 0; i < vectors.length; i++) {
        vectors[i] = new DMatrixRMaj(d, 1);
        System.arraycopy(batch.mean(), i * d, vectors[i].data, 0, d);
      }
      return vectors;
    }
  }

  /** Tensors in, tensor out: no conversion is timed. */
  private static void torch(String name, boolean aligned, DataType type) {
    ALL.put(name, shape -> torch(name, shape, aligned, type));
  }

  private static Contender torch(String name, Shape shape, boolean aligned, DataType type) {
    FullBatch q = FullBatch.ordinary(shape, Batch.Q_SEED);
    FullBatch p = FullBatch.ordinary(shape, Batch.P_SEED);
    NDManager manager = Torch.load().newManager();
    int n = shape.size();
    int d = shape.dimension();
    TorchScript script =
        new TorchScript(
            manager,
            aligned ? Torch.FULL_ALIGNED : Torch.FULL_PAIRWISE,
            Torch.tensor(manager, q.mean(), type, n, d),
            Torch.tensor(manager, q.scaleTril(), type, n, d, d),
            Torch.tensor(manager, p.mean(), type, n, d),
            Torch.tensor(manager, p.scaleTril(), type, n, d, d));
    return new Contender() {
      private NDArray result;

      @Override
      public Object call() {
        if (result != null) {
          result.close();
        }
        result = script.call();
        return result;
      }

      @Override
      public void check() {
        double tolerance = type == DataType.FLOAT32 ? 1e-4 : 1e-10;
        try (NDArray doubles = result.toType(DataType.FLOAT64, true)) {
          Agreement.full(name, q, p, aligned, doubles.toDoubleArray(), tolerance);
        }
      }

      @Override
      public double terms(Shape shape) {
        return FullContenders.terms(shape, aligned);
      }

      @Override
      public void close() {
        script.close();
        manager.close();
      }
    };
  }
}
