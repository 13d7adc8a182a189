package dev.kullback.bench;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import dev.kullback.Divergence;
import dev.kullback.Gaussians;
import dev.kullback.KlEngine;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.stream.Collectors;

/**
 * Divergences other than KL: {@code NAME-prepared} and {@code torch-NAME} on diagonal Gaussians of float, {@code NAME-full-prepared} and
 * {@code torch-NAME-full} on full covariances of double. The matrix is [B, B], of two batches of B rows. libtorch's formulas are those that
 * its users write, broadcast to [B, B, D] or [B, B, D, D].
 */
final class DivergenceContenders {
  /** Names, as {@link Divergence#of} takes them, of what has contenders. */
  static final List<String> NAMES =
      List.of("jeffreys", "bhattacharyya", "hellinger", "renyi:0.3", "squared-wasserstein-2");

  private static final Map<String, Function<Shape, Contender>> ALL = new LinkedHashMap<>();

  /** Begins a function of two diagonal batches, whose variables have the shapes [B, 1, D] and [1, B, D]. */
  private static final String DIAGONAL =
      """
        def forward(self: __torch__.Function,
            mean_q: Tensor, std_q: Tensor, mean_p: Tensor, std_p: Tensor) -> Tensor:
          d2 = (mean_q.unsqueeze(1) - mean_p.unsqueeze(0)).pow(2)
          s1 = std_q.unsqueeze(1)
          s2 = std_p.unsqueeze(0)
          v1 = s1.pow(2)
          v2 = s2.pow(2)
      """;

  private static final Map<String, String> DIAGONAL_FORMULAS =
      Map.of(
          "jeffreys",
          """
                return 0.5 * (v1 / v2 + v2 / v1 - 2 + d2 * (1 / v1 + 1 / v2)).sum([-1])
          """,
          "bhattacharyya",
          """
                return (0.25 * d2 / (v1 + v2) + 0.5 * ((v1 + v2) / (2 * s1 * s2)).log()).sum([-1])
          """,
          "hellinger",
          """
                b = (0.25 * d2 / (v1 + v2) + 0.5 * ((v1 + v2) / (2 * s1 * s2)).log()).sum([-1])
                return (1 - (-b).exp()).sqrt()
          """,
          "renyi:0.3",
          """
                v = 0.7 * v1 + 0.3 * v2
                return (0.15 * d2 / v + (v.log() - 1.4 * s1.log() - 0.6 * s2.log()) / 1.4).sum([-1])
          """,
          "squared-wasserstein-2",
          """
                return (d2 + (s1 - s2).pow(2)).sum([-1])
          """);

  /** Begins a function of two full batches. */
  private static final String FULL =
      """
        def forward(self: __torch__.Function,
            mean_q: Tensor, tril_q: Tensor, mean_p: Tensor, tril_p: Tensor) -> Tensor:
          cov_q = torch.matmul(tril_q, tril_q.transpose(-2, -1))
          cov_p = torch.matmul(tril_p, tril_p.transpose(-2, -1))
          log_q = tril_q.diagonal(dim1=-2, dim2=-1).log().sum([-1]).unsqueeze(1)
          log_p = tril_p.diagonal(dim1=-2, dim2=-1).log().sum([-1]).unsqueeze(0)
          difference = (mean_q.unsqueeze(1) - mean_p.unsqueeze(0)).unsqueeze(-1)
          n = mean_q.size(0)
          m = mean_p.size(0)
          d = mean_q.size(1)
      """;

  /** Chernoff's divergence by the Cholesky factor of the mean covariance, with weights w1 and w2. */
  private static final String FULL_CHERNOFF =
      """
          l = torch.linalg_cholesky(w1 * cov_q.unsqueeze(1) + w2 * cov_p.unsqueeze(0))
          y = torch.linalg_solve_triangular(l, difference, upper=False)
          squares = y.squeeze(-1).pow(2).sum([-1])
          log = l.diagonal(dim1=-2, dim2=-1).log().sum([-1])
          c = 0.5 * w1 * w2 * squares + log - w1 * log_q - w2 * log_p
      """;

  private static final String HALVES = "    w1 = 0.5\n    w2 = 0.5\n";

  private static final Map<String, String> FULL_FORMULAS =
      Map.of(
          "jeffreys",
          """
                lp = tril_p.unsqueeze(0).expand([n, m, d, d])
                lq = tril_q.unsqueeze(1).expand([n, m, d, d])
                x = torch.linalg_solve_triangular(lp, lq, upper=False)
                z = torch.linalg_solve_triangular(lq, lp, upper=False)
                y1 = torch.linalg_solve_triangular(lp, difference, upper=False)
                y2 = torch.linalg_solve_triangular(lq, difference, upper=False)
                traces = x.pow(2).sum([-2, -1]) + z.pow(2).sum([-2, -1])
                squares = y1.pow(2).sum([-2, -1]) + y2.pow(2).sum([-2, -1])
                return 0.5 * (traces + squares) - d
          """,
          "bhattacharyya",
          HALVES + FULL_CHERNOFF + "    return c\n",
          "hellinger",
          HALVES + FULL_CHERNOFF + "    return (1 - (-c).exp()).sqrt()\n",
          "renyi:0.3",
          "    w1 = 0.7\n    w2 = 0.3\n" + FULL_CHERNOFF + "    return c / w1\n",
          "squared-wasserstein-2",
          """
                values, vectors = torch.linalg_eigh(cov_q)
                root = torch.matmul(vectors * values.sqrt().unsqueeze(-2), vectors.transpose(-2, -1))
                root = root.unsqueeze(1)
                inner = torch.matmul(torch.matmul(root, cov_p.unsqueeze(0)), root)
                cross = torch.linalg_eigvalsh(inner).clamp(min=0).sqrt().sum([-1])
                trace_q = tril_q.pow(2).sum([-2, -1]).unsqueeze(1)
                trace_p = tril_p.pow(2).sum([-2, -1]).unsqueeze(0)
                return difference.pow(2).sum([-2, -1]) + trace_q + trace_p - 2 * cross
          """);

  static {
    for (String name : NAMES) {
      ALL.put(name + "-prepared", shape -> library(name, shape));
      ALL.put("torch-" + name, shape -> torch(name, shape));
      ALL.put(name + "-full-prepared", shape -> libraryFull(name, shape));
      ALL.put("torch-" + name + "-full", shape -> torchFull(name, shape));
    }
  }

  private DivergenceContenders() {}

  static Map<String, Function<Shape, Contender>> all() {
    return Map.copyOf(ALL);
  }

  /** Indents the statements of a formula as a method's. */
  private static String body(String formula) {
    return formula.lines().map(line -> "    " + line.strip() + "\n").collect(Collectors.joining());
  }

  private static Contender library(String name, Shape shape) {
    Batch q = Batch.ordinary(shape, Batch.Q_SEED);
    Batch p = Batch.ordinary(shape, Batch.P_SEED);
    float[] out = new float[Math.multiplyExact(shape.size(), shape.size())];
    KlEngine engine = KlEngine.builder().divergence(Divergence.of(name)).build();
    Gaussians a = q.gaussians();
    Gaussians b = p.gaussians();
    return new Contender() {
      @Override
      public Object call() {
        return engine.pairwise(a, b, out);
      }

      @Override
      public void check() {
        Agreement.divergence(name, q, p, out, 1e-5);
      }

      @Override
      public void close() {
        engine.close();
      }
    };
  }

  private static Contender libraryFull(String name, Shape shape) {
    FullBatch q = FullBatch.ordinary(shape, Batch.Q_SEED);
    FullBatch p = FullBatch.ordinary(shape, Batch.P_SEED);
    double[] out = new double[Math.multiplyExact(shape.size(), shape.size())];
    KlEngine engine = KlEngine.builder().divergence(Divergence.of(name)).build();
    Gaussians a = FullContenders.gaussians(q);
    Gaussians b = FullContenders.gaussians(p);
    return new Contender() {
      @Override
      public Object call() {
        return engine.pairwise(a, b, out);
      }

      @Override
      public void check() {
        Agreement.fullDivergence(name, q, p, out, 1e-10);
      }

      @Override
      public double terms(Shape shape) {
        return FullContenders.terms(shape, false);
      }

      @Override
      public void close() {
        engine.close();
      }
    };
  }

  private static Contender torch(String name, Shape shape) {
    Batch q = Batch.ordinary(shape, Batch.Q_SEED);
    Batch p = Batch.ordinary(shape, Batch.P_SEED);
    NDManager manager = Torch.load().newManager();
    return new TorchContender(
        manager,
        DIAGONAL + body(DIAGONAL_FORMULAS.get(name)),
        Torch.tensor(manager, q.mean(), shape),
        Torch.tensor(manager, q.std(), shape),
        Torch.tensor(manager, p.mean(), shape),
        Torch.tensor(manager, p.std(), shape)) {
      @Override
      void check(NDArray result) {
        Agreement.divergence(name, q, p, result.toFloatArray(), 1e-3);
      }
    };
  }

  private static Contender torchFull(String name, Shape shape) {
    FullBatch q = FullBatch.ordinary(shape, Batch.Q_SEED);
    FullBatch p = FullBatch.ordinary(shape, Batch.P_SEED);
    NDManager manager = Torch.load().newManager();
    int n = shape.size();
    int d = shape.dimension();
    return new TorchContender(
        manager,
        FULL + body(FULL_FORMULAS.get(name)),
        Torch.tensor(manager, q.mean(), DataType.FLOAT64, n, d),
        Torch.tensor(manager, q.scaleTril(), DataType.FLOAT64, n, d, d),
        Torch.tensor(manager, p.mean(), DataType.FLOAT64, n, d),
        Torch.tensor(manager, p.scaleTril(), DataType.FLOAT64, n, d, d)) {
      @Override
      void check(NDArray result) {
        Agreement.fullDivergence(name, q, p, result.toDoubleArray(), 1e-9);
      }

      @Override
      public double terms(Shape shape) {
        return FullContenders.terms(shape, false);
      }
    };
  }

  /** Tensors in, tensor out. */
  private abstract static class TorchContender implements Contender {
    private final NDManager manager;
    private final TorchScript script;
    private NDArray result;

    TorchContender(NDManager manager, String forward, NDArray... arguments) {
      this.manager = manager;
      script = new TorchScript(manager, forward, arguments);
    }

    abstract void check(NDArray result);

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
      check(result);
    }

    @Override
    public void close() {
      script.close();
      manager.close();
    }
  }
}
