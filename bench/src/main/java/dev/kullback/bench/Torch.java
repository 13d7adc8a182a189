package dev.kullback.bench;

import ai.djl.Device;
import ai.djl.engine.Engine;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.pytorch.jni.JniUtils;
import ai.djl.training.GradientCollector;
import java.io.IOException;

/**
 * libtorch through DJL, on one thread: the formulas its users write. Tensors in, tensor out: nothing is converted, and every
 * temporary is freed as soon as Python would free it.
 */
final class Torch {
  /**
   * Does what {@code torch.distributions.kl_divergence} does with two {@code MultivariateNormal}s, (q[:, None], p[None]), but for the
   * validation of arguments: a triangular solve a pair for the trace, over [N, M, D, D] temporaries, and one a column, with N
   * right-hand sides, for the means.
   */
  static final String FULL_PAIRWISE =
      """
        def forward(self: __torch__.Function,
            mean_q: Tensor, tril_q: Tensor, mean_p: Tensor, tril_p: Tensor) -> Tensor:
          n = mean_q.size(0)
          m = mean_p.size(0)
          d = mean_q.size(1)
          log_p = tril_p.diagonal(dim1=-2, dim2=-1).log().sum([-1])
          log_q = tril_q.diagonal(dim1=-2, dim2=-1).log().sum([-1])
          half_term1 = log_p.unsqueeze(0) - log_q.unsqueeze(1)
          x = torch.linalg_solve_triangular(
              tril_p.unsqueeze(0).expand([n, m, d, d]),
              tril_q.unsqueeze(1).expand([n, m, d, d]), upper=False)
          term2 = x.reshape([n, m, d * d]).pow(2).sum([-1])
          difference = mean_p.unsqueeze(0) - mean_q.unsqueeze(1)
          y = torch.linalg_solve_triangular(tril_p, difference.permute([1, 2, 0]), upper=False)
          term3 = y.pow(2).sum([-2]).t()
          return half_term1 + 0.5 * (term2 + term3 - d)
      """;

  /** Divergences of pairs (q, p), a pair a row. */
  static final String FULL_ALIGNED =
      """
        def forward(self: __torch__.Function,
            mean_q: Tensor, tril_q: Tensor, mean_p: Tensor, tril_p: Tensor) -> Tensor:
          n = mean_q.size(0)
          d = mean_q.size(1)
          log_p = tril_p.diagonal(dim1=-2, dim2=-1).log().sum([-1])
          log_q = tril_q.diagonal(dim1=-2, dim2=-1).log().sum([-1])
          half_term1 = log_p - log_q
          x = torch.linalg_solve_triangular(tril_p, tril_q, upper=False)
          term2 = x.reshape([n, d * d]).pow(2).sum([-1])
          difference = (mean_p - mean_q).unsqueeze(-1)
          y = torch.linalg_solve_triangular(tril_p, difference, upper=False)
          term3 = y.pow(2).sum([-2]).squeeze(-1)
          return half_term1 + 0.5 * (term2 + term3 - d)
      """;

  /** {@code LowRankMultivariateNormal}'s factor of {@code I + WᵀV⁻¹W}, which it keeps. */
  static final String CAPACITANCE =
      """
        def forward(self: __torch__.Function, factor: Tensor, diag: Tensor) -> Tensor:
          scaled = factor.transpose(-2, -1) / diag.unsqueeze(-2)
          r = factor.size(-1)
          return torch.linalg_cholesky(torch.matmul(scaled, factor) + torch.eye(r, dtype=factor.dtype))
      """;

  /**
   * Does what {@code torch.distributions.kl_divergence} does with two {@code LowRankMultivariateNormal}s, (q[:, None], p[None]), but for the
   * validation of arguments, over [N, M, D, r] temporaries.
   */
  static final String LOW_RANK =
      """
        def forward(self: __torch__.Function,
            mean_q: Tensor, factor_q: Tensor, diag_q: Tensor, tril_q: Tensor,
            mean_p: Tensor, factor_p: Tensor, diag_p: Tensor, tril_p: Tensor) -> Tensor:
          log_q = 2 * tril_q.diagonal(dim1=-2, dim2=-1).log().sum([-1]) + diag_q.log().sum([-1])
          log_p = 2 * tril_p.diagonal(dim1=-2, dim2=-1).log().sum([-1]) + diag_p.log().sum([-1])
          term1 = log_p.unsqueeze(0) - log_q.unsqueeze(1)
          scaled = factor_p.transpose(-2, -1) / diag_p.unsqueeze(-2)
          x = mean_p.unsqueeze(0) - mean_q.unsqueeze(1)
          y = torch.matmul(scaled.unsqueeze(0), x.unsqueeze(-1)).squeeze(-1)
          z = torch.linalg_solve_triangular(tril_p, y.permute([1, 2, 0]), upper=False)
          term3 = (x.pow(2) / diag_p.unsqueeze(0)).sum([-1]) - z.pow(2).sum([-2]).t()
          a = torch.linalg_solve_triangular(tril_p, scaled, upper=False)
          w = factor_q.unsqueeze(1)
          v = diag_q.unsqueeze(1)
          term21 = (v / diag_p.unsqueeze(0)).sum([-1])
          term22 = (w * diag_p.rsqrt().unsqueeze(-1).unsqueeze(0)).pow(2).sum([-1, -2])
          term23 = (a.unsqueeze(0) * v.sqrt().unsqueeze(-2)).pow(2).sum([-1, -2])
          term24 = torch.matmul(a.unsqueeze(0), w).pow(2).sum([-1, -2])
          term2 = term21 + term22 - term23 - term24
          return 0.5 * (term1 + term2 + term3 - mean_q.size(1))
      """;

  private static final int[] LAST = {-1};

  private static Torch loaded;

  private final Engine engine;

  /** The one copy of this process, from the class path and without network. */
  static synchronized Torch load() {
    if (loaded == null) {
      Unavailable.unlessLinuxX64("libtorch");
      try {
        loaded = new Torch();
      } catch (Unavailable e) {
        throw e;
      } catch (Exception | LinkageError e) {
        throw new Unavailable("libtorch does not load", e);
      }
    }
    return loaded;
  }

  private Torch() throws IOException {
    String cache = TempFolder.create("torch").toString();
    System.setProperty("DJL_CACHE_DIR", cache);
    System.setProperty("ENGINE_CACHE_DIR", cache);
    System.setProperty("ai.djl.offline", "true");
    System.setProperty("OPT_OUT_TRACKING", "true"); // DJL calls home otherwise
    System.setProperty("PYTORCH_FLAVOR", "cpu");
    System.setProperty("ai.djl.pytorch.num_threads", "1");
    System.setProperty("ai.djl.pytorch.num_interop_threads", "1");
    // Huge pages, where the kernel grants them on request: the broadcast's 1 GB temporaries are
    // three times as dear without (5.6 s for 1.9 s at 1024x256). libtorch at its best.
    NativeEnvironment.set("THP_MEM_ALLOC_ENABLE", "1");
    engine = Engine.getEngine("PyTorch");
    if (JniUtils.getNumThreads() != 1) {
      throw new Unavailable(
          "libtorch keeps " + JniUtils.getNumThreads() + " threads, the comparison wants 1");
    }
  }

  /** Has what is computed from now on recorded, to go back through; one at a time. */
  GradientCollector newGradientCollector() {
    return engine.newGradientCollector();
  }

  NDManager newManager() {
    return engine.newBaseManager(Device.cpu());
  }

  static NDArray tensor(NDManager manager, float[] data, dev.kullback.bench.Shape shape) {
    return manager.create(data, new Shape(shape.size(), shape.dimension()));
  }

  static NDArray tensor(NDManager manager, double[] data, DataType type, long... shape) {
    return manager.create(data, new Shape(shape)).toType(type, false);
  }

  /** Describes the library for the results' conditions. */
  String describe() {
    return engine.getVersion()
        + " (DJL "
        + Engine.getDjlVersion()
        + "), "
        + JniUtils.getNumThreads()
        + " thread";
  }

  /** {@code q @ p.T}. */
  static NDArray product(NDArray q, NDArray p) {
    try (NDArray transposed = p.transpose()) {
      return q.matMul(transposed);
    }
  }

  /**
   * The formula as it is usually written, over [B, B, H] temporaries:
   *
   * <pre>{@code
   * s1, s2 = std.clamp(1e-8)[:, None], std.clamp(1e-8)[None]
   * ((s2 / s1).log() + (s1**2 + (mu[:, None] - mu[None])**2) / (2 * s2**2) - 0.5).sum(-1)
   * }</pre>
   */
  static NDArray broadcastKl(NDArray mean, NDArray std, NDArray meanP, NDArray stdP) {
    try (NDArray clamped = std.maximum(1e-8f);
        NDArray clampedP = stdP.maximum(1e-8f);
        NDArray s1 = clamped.expandDims(1);
        NDArray s2 = clampedP.expandDims(0);
        NDArray mu1 = mean.expandDims(1);
        NDArray mu2 = meanP.expandDims(0);
        NDArray v1 = s1.pow(2);
        NDArray v2 = s2.pow(2);
        NDArray two = v2.mul(2)) {
      NDArray log = freeing(s2.div(s1), NDArray::log);
      NDArray squares = freeing(mu1.sub(mu2), difference -> difference.pow(2));
      NDArray quotient = freeing(freeing(squares, v1::add), numerator -> numerator.div(two));
      NDArray sum = freeing(quotient, quotients -> freeing(log, quotients::add));
      return freeing(freeing(sum, terms -> terms.sub(0.5f)), terms -> terms.sum(LAST));
    }
  }

  /** {@code −½ Σ ((x_i − μ_j)/σ_j)² − Σ ln σ_j − D/2·ln 2π}, by way of [N, M, D]. */
  static NDArray broadcastLogDensity(NDArray points, NDArray mean, NDArray std) {
    double constant = 0.5 * mean.getShape().get(1) * Math.log(2 * Math.PI);
    try (NDArray x = points.expandDims(1);
        NDArray mu = mean.expandDims(0);
        NDArray sigma = std.expandDims(0);
        NDArray logs = freeing(std.log(), all -> all.sum(LAST));
        NDArray constants = logs.add((float) constant)) {
      NDArray z = freeing(x.sub(mu), difference -> difference.div(sigma));
      NDArray squares = freeing(freeing(z, all -> all.pow(2)), all -> all.sum(LAST));
      return freeing(freeing(squares, all -> all.mul(-0.5f)), all -> all.sub(constants));
    }
  }

  /**
   * The rewrite as one product, {@code [σ²+μ², μ] @ [1/σ², −2μ/σ²].T}: fast, and wrong where KL is small beside its terms.
   */
  static NDArray productKl(NDArray mean, NDArray std) {
    try (NDArray v = std.pow(2);
        NDArray mu2 = mean.pow(2);
        NDArray second = v.add(mu2);
        NDArray left = second.concat(mean, 1);
        NDArray inverse = v.pow(-1);
        NDArray cross = freeing(mean.mul(inverse), m -> m.mul(-2));
        NDArray right = inverse.concat(cross, 1);
        NDArray squares = freeing(mu2.mul(inverse), s -> s.sum(LAST));
        NDArray logs = freeing(std.log(), l -> l.sum(LAST));
        NDArray half = freeing(squares.sub(std.getShape().get(1)), s -> s.mul(0.5f));
        NDArray columns = half.add(logs);
        NDArray rows = logs.expandDims(1);
        NDArray matrix = freeing(product(left, right), m -> m.mul(0.5f));
        NDArray shifted = matrix.add(columns)) {
      return shifted.sub(rows);
    }
  }

  private interface Operation {
    NDArray apply(NDArray argument);
  }

  private static NDArray freeing(NDArray argument, Operation operation) {
    try (argument) {
      return operation.apply(argument);
    }
  }
}
