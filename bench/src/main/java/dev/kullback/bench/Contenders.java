package dev.kullback.bench;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import dev.kullback.DiagonalGaussians;
import dev.kullback.KlEngine;
import dev.ludovic.netlib.blas.BLAS;
import dev.ludovic.netlib.blas.JavaBLAS;
import java.lang.foreign.MemorySegment;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.stream.IntStream;
import org.ejml.data.FMatrixRMaj;
import org.ejml.dense.row.CommonOps_FDRM;

/**
 * Everything that is timed, by name; with full covariances, {@link FullContenders}, low-rank ones, {@link LowRankContenders}, other divergences, {@link DivergenceContenders}, reductions and queries, {@link
 * ReductionContenders}, gradients, {@link GradientContenders}. The matrix is square, [B, B]; {@code -rect} takes a second batch of B rows for its columns where the
 * others compare the batch with itself.
 */
final class Contenders {
  /** Spreads of Gaussians that are alike; see {@link Batch#alike}. */
  static final List<String> SPREADS = List.of("0.3", "0.1", "0.05", "0.03", "0.01");

  private static final Map<String, Function<Shape, Contender>> ALL = new LinkedHashMap<>();

  static {
    for (int threads = 1; threads <= 2; threads++) {
      int count = threads;
      String suffix = threads == 1 ? "" : "-" + threads + "-threads";
      ALL.put("kl" + suffix, shape -> kl(ordinary(shape), false, false, count));
      ALL.put("kl-prepared" + suffix, shape -> kl(ordinary(shape), false, true, count));
      ALL.put("kl-rect" + suffix, shape -> kl(ordinary(shape), true, false, count));
      ALL.put("kl-rect-prepared" + suffix, shape -> kl(ordinary(shape), true, true, count));
    }
    for (String epsilon : new String[] {"1e-2", "1e-3", "1e-4", "1e-5", "1e-6"}) {
      double e = Double.parseDouble(epsilon);
      ALL.put(
          "kl-near-" + epsilon,
          shape -> kl(Batch.nearDuplicates(shape, e, Batch.Q_SEED), false, true, 1));
    }
    ALL.put(
        "kl-near-mixed", shape -> kl(Batch.nearDuplicates(shape, Batch.Q_SEED), false, true, 1));
    for (String spread : SPREADS) {
      double s = Double.parseDouble(spread);
      ALL.put(
          "kl-alike-" + spread, shape -> kl(Batch.alike(shape, s, Batch.Q_SEED), false, true, 1));
    }
    ALL.put("openblas", shape -> openBlas(shape, false));
    ALL.put("openblas-rect", shape -> openBlas(shape, true));
    ALL.put("vectorblas", Contenders::vectorBlas);
    ALL.put("ejml", Contenders::ejml);
    ALL.put("plain-product", Contenders::plainProduct);
    ALL.put("plain-broadcast-kl", Contenders::plainBroadcastKl);
    ALL.put("plain-hoisted-kl", Contenders::plainHoistedKl);
    ALL.put("torch-product", shape -> new TorchContender("torch-product", shape));
    ALL.put("torch-product-kl", shape -> new TorchContender("torch-product-kl", shape));
    ALL.put("torch-broadcast-kl", shape -> new TorchContender("torch-broadcast-kl", shape));
    ALL.putAll(FullContenders.all());
    ALL.putAll(LowRankContenders.all());
    ALL.putAll(DivergenceContenders.all());
    ALL.putAll(ReductionContenders.all());
    ALL.putAll(GradientContenders.all());
    ALL.putAll(PointContenders.all());
  }

  private Contenders() {}

  static Map<String, Function<Shape, Contender>> all() {
    return Collections.unmodifiableMap(ALL);
  }

  /** A contender that has run once and agreed with its reference. */
  static Contender checked(String name, Shape shape) {
    Function<Shape, Contender> factory = ALL.get(name);
    if (factory == null) {
      throw new IllegalArgumentException(
          "no contender '" + name + "'; there are " + String.join(", ", ALL.keySet()));
    }
    Contender contender = factory.apply(shape);
    contender.call();
    contender.check();
    return contender;
  }

  private static Batch ordinary(Shape shape) {
    return Batch.ordinary(shape, Batch.Q_SEED);
  }

  private static float[] matrix(Shape shape) {
    return new float[Math.multiplyExact(shape.size(), shape.size())];
  }

  /** The library. Unless prepared, a call starts from the arrays: the batches are built in it. */
  private static Contender kl(Batch q, boolean rectangular, boolean prepared, int threads) {
    Batch p = rectangular ? Batch.ordinary(q.shape(), Batch.P_SEED) : q;
    float[] out = matrix(q.shape());
    KlEngine engine = KlEngine.builder().threads(threads).build();
    DiagonalGaussians preparedQ = q.gaussians();
    DiagonalGaussians preparedP = rectangular ? p.gaussians() : preparedQ;
    return new Contender() {
      @Override
      public Object call() {
        if (prepared) {
          return engine.pairwise(preparedQ, preparedP, out);
        }
        DiagonalGaussians fresh = q.gaussians();
        return engine.pairwise(fresh, rectangular ? p.gaussians() : fresh, out);
      }

      @Override
      public void check() {
        Agreement.contract("kl", q, p, out);
      }

      @Override
      public void close() {
        engine.close();
      }
    };
  }

  private static Contender openBlas(Shape shape, boolean rectangular) {
    OpenBlas blas = OpenBlas.load();
    Batch q = ordinary(shape);
    Batch p = rectangular ? Batch.ordinary(shape, Batch.P_SEED) : q;
    float[] out = matrix(shape);
    MemorySegment a = MemorySegment.ofArray(q.mean());
    MemorySegment b = MemorySegment.ofArray(p.mean());
    MemorySegment c = MemorySegment.ofArray(out);
    return new Contender() {
      @Override
      public Object call() {
        blas.multiplyTransposed(a, b, c, shape);
        return out;
      }

      @Override
      public void check() {
        Agreement.product("openblas", q, p, out);
      }
    };
  }

  private static Contender vectorBlas(Shape shape) {
    BLAS blas = JavaBLAS.getInstance();
    if (!blas.getClass().getSimpleName().equals("VectorBLAS")) {
      throw new Unavailable(
          "netlib chose "
              + blas.getClass().getSimpleName()
              + " instead of VectorBLAS; add --add-modules jdk.incubator.vector");
    }
    int n = shape.size();
    int d = shape.dimension();
    // Row-major [n, d] is column-major [d, n]; the result is symmetric, its order does not matter.
    return product(
        "vectorblas",
        shape,
        (mu, out) -> blas.sgemm("T", "N", n, n, d, 1, mu, d, mu, d, 0, out, n));
  }

  private static Contender ejml(Shape shape) {
    int n = shape.size();
    int d = shape.dimension();
    Batch q = ordinary(shape);
    float[] out = matrix(shape);
    FMatrixRMaj a = FMatrixRMaj.wrap(n, d, q.mean());
    FMatrixRMaj c = FMatrixRMaj.wrap(n, n, out);
    return new Contender() {
      @Override
      public Object call() {
        CommonOps_FDRM.multTransB(a, a, c);
        return c;
      }

      @Override
      public void check() {
        Agreement.product("ejml", q, q, c.data);
      }
    };
  }

  private static Contender plainProduct(Shape shape) {
    return product("plain-product", shape, (mu, out) -> PlainJava.product(mu, mu, out, shape));
  }

  private interface Product {
    void into(float[] mu, float[] out);
  }

  private static Contender product(String name, Shape shape, Product product) {
    Batch q = ordinary(shape);
    float[] out = matrix(shape);
    return new Contender() {
      @Override
      public Object call() {
        product.into(q.mean(), out);
        return out;
      }

      @Override
      public void check() {
        Agreement.product(name, q, q, out);
      }
    };
  }

  private static Contender plainBroadcastKl(Shape shape) {
    Batch q = ordinary(shape);
    return plainKl(
        "plain-broadcast-kl", q, out -> PlainJava.broadcastKl(q.mean(), q.std(), out, shape));
  }

  private static Contender plainHoistedKl(Shape shape) {
    Batch q = ordinary(shape);
    double[] mean = doubles(q.mean());
    double[] std = doubles(q.std());
    return plainKl("plain-hoisted-kl", q, out -> PlainJava.hoistedKl(mean, std, out, shape));
  }

  private static double[] doubles(float[] values) {
    return IntStream.range(0, values.length).mapToDouble(i -> values[i]).toArray();
  }

  private static Contender plainKl(String name, Batch q, Consumer<float[]> kl) {
    float[] out = matrix(q.shape());
    return new Contender() {
      @Override
      public Object call() {
        kl.accept(out);
        return out;
      }

      @Override
      public void check() {
        Agreement.roughKl(name, q, q, out);
      }
    };
  }

  private static final class TorchContender implements Contender {
    private final String name;
    private final Batch q;
    private final NDManager manager;
    private final NDArray mean;
    private final NDArray std;
    private NDArray result;

    TorchContender(String name, Shape shape) {
      this.name = name;
      this.q = ordinary(shape);
      this.manager = Torch.load().newManager();
      this.mean = Torch.tensor(manager, q.mean(), shape);
      this.std = Torch.tensor(manager, q.std(), shape);
    }

    @Override
    public Object call() {
      if (result != null) {
        result.close();
      }
      result =
          switch (name) {
            case "torch-product" -> Torch.product(mean, mean);
            case "torch-product-kl" -> Torch.productKl(mean, std);
            case "torch-broadcast-kl" -> Torch.broadcastKl(mean, std, mean, std);
            default -> throw new AssertionError(name);
          };
      return result;
    }

    @Override
    public void check() {
      float[] out = result.toFloatArray();
      if (name.equals("torch-product")) {
        Agreement.product(name, q, q, out);
      } else {
        Agreement.roughKl(name, q, q, out);
      }
    }

    @Override
    public void close() {
      manager.close();
    }
  }
}
