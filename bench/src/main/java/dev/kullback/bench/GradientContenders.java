package dev.kullback.bench;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.training.GradientCollector;
import dev.kullback.DiagonalGaussians;
import dev.kullback.KlEngine;
import dev.kullback.KlGradient;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.Function;
import java.util.stream.Stream;

/**
 * Gradients of KL by the parameters of q and p, with cotangents of 1, and the pairs of rows that two of them are of, by name. Batches are prepared
 * and different, results go to the caller's arrays.
 */
final class GradientContenders {
  private static final Map<String, Function<Shape, Contender>> ALL = new LinkedHashMap<>();

  static {
    ALL.put("aligned", shape -> new Pairs(shape, false));
    ALL.put("standard", shape -> new Pairs(shape, true));
    ALL.put("gradient-aligned", shape -> new Gradient(shape, "gradient-aligned"));
    ALL.put("gradient-standard", shape -> new Gradient(shape, "gradient-standard"));
    ALL.put("gradient", shape -> new Gradient(shape, "gradient"));
    ALL.put("torch-gradient", TorchGradient::new);
  }

  private GradientContenders() {}

  static Map<String, Function<Shape, Contender>> all() {
    return Collections.unmodifiableMap(ALL);
  }

  /** Two batches, prepared, and the check of what is computed of them. */
  private abstract static class Prepared implements Contender {
    final Batch q;
    final Batch p;
    final DiagonalGaussians preparedQ;
    final DiagonalGaussians preparedP;
    final KlEngine engine = KlEngine.builder().build();

    /** Of a row and a column. */
    final boolean isPair;

    Prepared(Shape shape, boolean isStandard, boolean isPair) {
      q = Batch.ordinary(shape, Batch.Q_SEED);
      p = isStandard ? Batch.standard(shape) : Batch.ordinary(shape, Batch.P_SEED);
      preparedQ = q.gaussians();
      preparedP = p.gaussians();
      this.isPair = isPair;
    }

    @Override
    public double terms(Shape shape) {
      return isPair ? (double) shape.size() * shape.dimension() : shape.terms();
    }

    @Override
    public void close() {
      engine.close();
    }
  }

  private static final class Pairs extends Prepared {
    private final boolean isStandard;
    private final float[] out;

    Pairs(Shape shape, boolean isStandard) {
      super(shape, isStandard, true);
      this.isStandard = isStandard;
      out = new float[shape.size()];
    }

    @Override
    public Object call() {
      if (isStandard) {
        engine.toStandardNormal(preparedQ, out);
      } else {
        engine.aligned(preparedQ, preparedP, out);
      }
      return out;
    }

    @Override
    public void check() {
      Agreement.pairs("pairs", q, p, out);
    }
  }

  /** libtorch's autograd of the broadcast, tensors in, tensors out. */
  private static final class TorchGradient implements Contender {
    private final Torch torch = Torch.load();
    private final NDManager manager = torch.newManager();
    private final Batch q;
    private final Batch p;
    private final NDArray[] parameters;

    TorchGradient(Shape shape) {
      q = Batch.ordinary(shape, Batch.Q_SEED);
      p = Batch.ordinary(shape, Batch.P_SEED);
      parameters =
          Stream.of(q.mean(), q.std(), p.mean(), p.std())
              .map(values -> Torch.tensor(manager, values, shape))
              .toArray(NDArray[]::new);
      for (NDArray parameter : parameters) {
        parameter.setRequiresGradient(true);
      }
    }

    @Override
    public Object call() {
      try (GradientCollector collector = torch.newGradientCollector()) {
        for (NDArray parameter : parameters) { // backward adds to what is there
          if (parameter.hasGradient()) {
            try (NDArray gradient = parameter.getGradient()) {
              gradient.muli(0);
            }
          }
        }
        try (NDArray kl =
                Torch.broadcastKl(parameters[0], parameters[1], parameters[2], parameters[3]);
            NDArray loss = kl.sum()) {
          collector.backward(loss);
        }
      }
      return parameters;
    }

    @Override
    public void check() {
      try (NDArray byMean = parameters[0].getGradient();
          NDArray byStd = parameters[1].getGradient()) {
        Agreement.gradient(
            "torch-gradient", q, p, false, 1e-4, byMean.toFloatArray(), byStd.toFloatArray());
      }
    }

    @Override
    public void close() {
      manager.close();
    }
  }

  private static final class Gradient extends Prepared {
    private final String name;
    private final float[] mean;
    private final float[] std;
    private final Runnable call;

    Gradient(Shape shape, String name) {
      super(shape, name.equals("gradient-standard"), !name.equals("gradient"));
      this.name = name;
      mean = new float[q.mean().length];
      std = new float[q.std().length];
      KlGradient gradient = engine.gradient().q(mean, std);
      if (name.equals("gradient-standard")) {
        double[] ones = ones(shape.size());
        call = () -> gradient.toStandardNormal(preparedQ, ones);
        return;
      }
      gradient.p(new float[mean.length], new float[std.length]);
      double[] ones = ones(isPair ? shape.size() : Math.multiplyExact(shape.size(), shape.size()));
      call =
          isPair
              ? () -> gradient.aligned(preparedQ, preparedP, ones)
              : () -> gradient.pairwise(preparedQ, preparedP, ones);
    }

    private static double[] ones(int length) {
      double[] ones = new double[length];
      Arrays.fill(ones, 1);
      return ones;
    }

    @Override
    public Object call() {
      call.run();
      return mean;
    }

    @Override
    public void check() {
      Agreement.gradient(name, q, p, isPair, 1e-5, mean, std);
    }
  }
}
