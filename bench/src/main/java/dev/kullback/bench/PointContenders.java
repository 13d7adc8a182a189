package dev.kullback.bench;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import dev.kullback.DiagonalGaussians;
import dev.kullback.KlEngine;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.Function;

/** Log-densities {@code ln p_j(x_i)} of points, the means of a batch, under another batch's Gaussians, by name. */
final class PointContenders {
  private static final Map<String, Function<Shape, Contender>> ALL = new LinkedHashMap<>();

  static {
    ALL.put("log-density", Prepared::new);
    ALL.put("plain-log-density", Plain::new);
    ALL.put("torch-log-density", Broadcast::new);
  }

  private PointContenders() {}

  static Map<String, Function<Shape, Contender>> all() {
    return Collections.unmodifiableMap(ALL);
  }

  /** The batch whose means are points, and the Gaussians. */
  private abstract static class Points implements Contender {
    final Batch q;
    final Batch p;
    private final String name;
    private final double tolerance;

    Points(Shape shape, String name, double tolerance) {
      q = Batch.ordinary(shape, Batch.Q_SEED);
      p = Batch.ordinary(shape, Batch.P_SEED);
      this.name = name;
      this.tolerance = tolerance;
    }

    /** Returns the last call's matrix. */
    abstract float[] result();

    @Override
    public void check() {
      Agreement.logDensity(name, q, p, result(), tolerance);
    }
  }

  /** By the library, of batches that are kept, into the caller's array. */
  private static final class Prepared extends Points {
    private final DiagonalGaussians points;
    private final DiagonalGaussians gaussians;
    private final KlEngine engine = KlEngine.builder().build();
    private final float[] out;

    Prepared(Shape shape) {
      super(shape, "log-density", 1e-5);
      points = DiagonalGaussians.ofPoints(q.mean(), shape.dimension());
      gaussians = p.gaussians();
      out = new float[Math.multiplyExact(shape.size(), shape.size())];
    }

    @Override
    public Object call() {
      return engine.logDensity(points, gaussians, out);
    }

    @Override
    float[] result() {
      return out;
    }

    @Override
    public void close() {
      engine.close();
    }
  }

  /** By the loop that one writes, in float, with logarithms and divisions once a Gaussian. */
  private static final class Plain extends Points {
    private final float[] out;

    Plain(Shape shape) {
      super(shape, "plain-log-density", 1e-4);
      out = new float[Math.multiplyExact(shape.size(), shape.size())];
    }

    @Override
    public Object call() {
      PlainJava.logDensity(q.mean(), p.mean(), p.std(), out, q.shape());
      return out;
    }

    @Override
    float[] result() {
      return out;
    }
  }

  /** By libtorch, from a tensor [B, B, D]. */
  private static final class Broadcast extends Points {
    private final NDManager manager = Torch.load().newManager();
    private final NDArray points;
    private final NDArray mean;
    private final NDArray std;
    private NDArray result;

    Broadcast(Shape shape) {
      super(shape, "torch-log-density", 1e-4);
      points = Torch.tensor(manager, q.mean(), shape);
      mean = Torch.tensor(manager, p.mean(), shape);
      std = Torch.tensor(manager, p.std(), shape);
    }

    @Override
    public Object call() {
      if (result != null) {
        result.close();
      }
      result = Torch.broadcastLogDensity(points, mean, std);
      return result;
    }

    @Override
    float[] result() {
      return result.toFloatArray();
    }

    @Override
    public void close() {
      manager.close();
    }
  }
}
