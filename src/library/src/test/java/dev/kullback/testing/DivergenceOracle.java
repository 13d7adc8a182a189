package dev.kullback.testing;

import dev.kullback.Divergence;
import java.util.Arrays;
import java.util.stream.IntStream;

/** Divergences of the exact parameters, in {@link BigFloat}, by their textbook formulas. */
public final class DivergenceOracle {
  /** Below this, a logarithm of determinants is rounding: equal distributions. */
  private static final int ZERO_POWER = -180;

  /** Stands for −∞, below what double holds. */
  private static final BigFloat LEAST =
      BigFloat.of(Double.MAX_VALUE).times(BigFloat.of(Double.MAX_VALUE)).negate();

  private DivergenceOracle() {}

  /** Row-major [N, M], rounded to double; infinite beyond its range. */
  public static double[] pairwise(Divergence divergence, Batch q, Batch p) {
    return Known.answer(
        () -> Arrays.stream(exact(divergence, q, p)).mapToDouble(BigFloat::toDouble).toArray(),
        "diagonal, " + divergence.name(),
        q,
        p);
  }

  /** Compares the divergences of the one Gaussian of q and the two of p, 0 where they differ by rounding. */
  public static int compare(Divergence divergence, Batch q, Batch p) {
    BigFloat[] both = exact(divergence, q, p);
    BigFloat difference = both[0].minus(both[1]);
    return difference.below(-150) ? 0 : difference.signum();
  }

  /** The divergence of two of a pair of batches, by their places. */
  private interface Pair {
    BigFloat of(int i, int j);
  }

  private static BigFloat[] exact(Divergence divergence, Batch q, Batch p) {
    Pair pair = pair(divergence.name(), q, p);
    BigFloat[] result = new BigFloat[q.size() * p.size()];
    Arrays.setAll(result, at -> pair.of(at / p.size(), at % p.size()));
    return result;
  }

  private static Pair pair(String name, Batch q, Batch p) {
    return switch (family(name)) {
      case "kl" -> new Oracle(q, p)::kl;
      case "reverse-kl" -> {
        Oracle backward = new Oracle(p, q);
        yield (i, j) -> backward.kl(j, i);
      }
      case "jeffreys" -> {
        Oracle forward = new Oracle(q, p);
        Oracle backward = new Oracle(p, q);
        yield (i, j) -> forward.kl(i, j).plus(backward.kl(j, i));
      }
      default -> ofVariances(name, q, Oracle.variances(q), p, Oracle.variances(p));
    };
  }

  private static Pair ofVariances(String name, Batch q, BigFloat[] vq, Batch p, BigFloat[] vp) {
    return switch (family(name)) {
      case "wasserstein-2" -> (i, j) -> wasserstein(q, vq, i, p, vp, j).sqrt();
      case "squared-wasserstein-2" -> (i, j) -> wasserstein(q, vq, i, p, vp, j);
      case "bhattacharyya", "hellinger", "renyi", "chernoff" ->
          (i, j) -> ofChernoff(name, chernoff(alpha(name), q, vq, i, p, vp, j));
      default -> throw new IllegalArgumentException(name);
    };
  }

  /** Row-major [N, M], of full covariances. */
  public static double[] pairwise(Divergence divergence, FullBatch q, FullBatch p) {
    return Known.answer(() -> ask(divergence, q, p), "full, " + divergence.name(), q, p);
  }

  private static double[] ask(Divergence divergence, FullBatch q, FullBatch p) {
    FullOracle forward = new FullOracle(q, p);
    FullOracle backward = new FullOracle(p, q);
    double[] result = new double[q.size() * p.size()];
    for (int at = 0; at < result.length; at++) {
      int i = at / p.size();
      int j = at % p.size();
      FullOracle.Moments a = forward.q(i);
      FullOracle.Moments b = forward.p(j);
      String name = divergence.name();
      result[at] =
          (switch (family(name)) {
                case "kl" -> forward.kl(i, j);
                case "reverse-kl" -> backward.kl(j, i);
                case "jeffreys" -> forward.kl(i, j).plus(backward.kl(j, i));
                case "wasserstein-2" -> bures(q.dimension(), a, b).sqrt();
                case "squared-wasserstein-2" -> bures(q.dimension(), a, b);
                case "bhattacharyya", "hellinger", "renyi", "chernoff" ->
                    ofChernoff(name, chernoff(forward, alpha(name), q.dimension(), a, b));
                default -> throw new IllegalArgumentException(name);
              })
              .toDouble();
    }
    return result;
  }

  /** Greater condition number {@code ‖L‖‖L⁻¹‖} of each pair, row-major. */
  public static double[] conditions(FullBatch q, FullBatch p) {
    return Known.answer(
        () -> {
          FullOracle forward = new FullOracle(q, p);
          FullOracle backward = new FullOracle(p, q);
          return IntStream.range(0, q.size() * p.size())
              .mapToDouble(at ->
                  Math.max(forward.condition(at % p.size()), backward.condition(at / p.size())))
              .toArray();
        },
        "full, greater conditions",
        q,
        p);
  }

  /** Returns a name without its order. */
  private static String family(String name) {
    return name.replaceFirst(":.*", "");
  }

  private static double alpha(String name) {
    int colon = name.indexOf(':');
    return colon < 0 ? 0.5 : Double.parseDouble(name.substring(colon + 1));
  }

  private static BigFloat ofChernoff(String name, BigFloat c) {
    if (name.startsWith("renyi")) {
      return c.dividedBy(BigFloat.ONE.minus(BigFloat.of(alpha(name))));
    }
    if (!name.equals("hellinger")) {
      return c;
    }
    if (c.below(-100)) {
      return c.minus(c.times(c).half()).sqrt(); // 1 − e^−c loses its digits
    }
    return BigFloat.of(1000).minus(c).signum() < 0
        ? BigFloat.ONE
        : BigFloat.ONE.minus(c.negate().exp()).sqrt();
  }

  private static BigFloat chernoff(
      double order, Batch q, BigFloat[] vq, int i, Batch p, BigFloat[] vp, int j) {
    int d = q.dimension();
    BigFloat alpha = BigFloat.of(order);
    BigFloat rest = BigFloat.ONE.minus(alpha);
    BigFloat squares = BigFloat.ZERO;
    BigFloat mixed = BigFloat.ONE;
    BigFloat productQ = BigFloat.ONE;
    BigFloat productP = BigFloat.ONE;
    for (int h = 0; h < d; h++) {
      BigFloat v = vq[i * d + h];
      BigFloat w = vp[j * d + h];
      BigFloat u = rest.times(v).plus(alpha.times(w));
      if (u.signum() <= 0) {
        return LEAST;
      }
      BigFloat difference =
          BigFloat.of(q.mean()[i * d + h]).minus(BigFloat.of(p.mean()[j * d + h]));
      squares = squares.plus(difference.times(difference).dividedBy(u));
      mixed = mixed.times(u);
      productQ = productQ.times(v);
      productP = productP.times(w);
    }
    BigFloat log = mixed.ln().minus(rest.times(productQ.ln())).minus(alpha.times(productP.ln()));
    BigFloat shape = log.below(ZERO_POWER) ? BigFloat.ZERO : log;
    return alpha.times(rest).times(squares).plus(shape).half();
  }

  private static BigFloat wasserstein(
      Batch q, BigFloat[] vq, int i, Batch p, BigFloat[] vp, int j) {
    int d = q.dimension();
    BigFloat sum = BigFloat.ZERO;
    for (int h = 0; h < d; h++) {
      BigFloat m = BigFloat.of(q.mean()[i * d + h]).minus(BigFloat.of(p.mean()[j * d + h]));
      BigFloat s = vq[i * d + h].sqrt().minus(vp[j * d + h].sqrt());
      BigFloat squares = s.times(s);
      // what is below their digits is rounding
      boolean isEqual = squares.signum() == 0 || s.dividedBy(vq[i * d + h].sqrt()).below(-230);
      sum = sum.plus(m.times(m)).plus(isEqual ? BigFloat.ZERO : squares);
    }
    return sum;
  }

  private static BigFloat chernoff(
      FullOracle oracle, double order, int d, FullOracle.Moments q, FullOracle.Moments p) {
    BigFloat alpha = BigFloat.of(order);
    BigFloat rest = BigFloat.ONE.minus(alpha);
    BigFloat[] mixed = new BigFloat[d * d];
    for (int k = 0; k < mixed.length; k++) {
      mixed[k] = rest.times(q.covariance()[k]).plus(alpha.times(p.covariance()[k]));
    }
    FullOracle.Inverse inverse;
    try {
      inverse = oracle.invert(mixed);
    } catch (ArithmeticException _) { // not positive definite
      return LEAST;
    }
    BigFloat squares = BigFloat.ZERO;
    for (int r = 0; r < d; r++) {
      for (int c = 0; c < d; c++) {
        BigFloat x = q.mean()[r].minus(p.mean()[r]);
        BigFloat y = q.mean()[c].minus(p.mean()[c]);
        squares = squares.plus(x.times(y).times(inverse.matrix()[r * d + c]));
      }
    }
    BigFloat log = inverse.logDet().minus(rest.times(q.logDet())).minus(alpha.times(p.logDet()));
    BigFloat shape = log.below(ZERO_POWER) ? BigFloat.ZERO : log;
    return alpha.times(rest).times(squares).plus(shape).half();
  }

  /** The trace of the root of {@code Σq Σp} by E. Denman's and A. Beavers' iteration (1976). */
  private static BigFloat bures(int d, FullOracle.Moments q, FullOracle.Moments p) {
    BigFloat sum = BigFloat.ZERO;
    for (int h = 0; h < d; h++) {
      BigFloat m = q.mean()[h].minus(p.mean()[h]);
      sum = sum.plus(m.times(m));
    }
    if (Arrays.equals(q.covariance(), p.covariance())) {
      return sum;
    }
    BigFloat[] y = new BigFloat[d * d];
    BigFloat[] z = new BigFloat[d * d];
    for (int r = 0; r < d; r++) {
      for (int c = 0; c < d; c++) {
        BigFloat product = BigFloat.ZERO;
        for (int k = 0; k < d; k++) {
          product = product.plus(q.covariance()[r * d + k].times(p.covariance()[k * d + c]));
        }
        y[r * d + c] = product;
        z[r * d + c] = r == c ? BigFloat.ONE : BigFloat.ZERO;
      }
    }
    BigFloat before = BigFloat.ZERO;
    for (int n = 0; n < 200; n++) {
      BigFloat[] inverseY = inverse(d, y);
      BigFloat[] inverseZ = inverse(d, z);
      BigFloat trace = BigFloat.ZERO;
      for (int k = 0; k < d * d; k++) {
        y[k] = y[k].plus(inverseZ[k]).half();
        z[k] = z[k].plus(inverseY[k]).half();
        trace = k % (d + 1) == 0 ? trace.plus(y[k]) : trace;
      }
      BigFloat change = trace.minus(before).dividedBy(trace);
      before = trace;
      if (change.below(-210)) {
        break;
      }
    }
    BigFloat traces = BigFloat.ZERO;
    for (int k = 0; k < d * d; k += d + 1) {
      traces = traces.plus(q.covariance()[k]).plus(p.covariance()[k]);
    }
    BigFloat shape = traces.minus(before).minus(before);
    return sum.plus(shape.dividedBy(traces).below(ZERO_POWER) ? BigFloat.ZERO : shape);
  }

  /** Inverts any matrix, by elimination with pivots. */
  private static BigFloat[] inverse(int d, BigFloat[] of) {
    BigFloat[] a = of.clone();
    BigFloat[] x = new BigFloat[d * d];
    for (int k = 0; k < d * d; k++) {
      x[k] = k % (d + 1) == 0 ? BigFloat.ONE : BigFloat.ZERO;
    }
    for (int c = 0; c < d; c++) {
      int pivot = c;
      for (int r = c + 1; r < d; r++) {
        BigFloat best = a[pivot * d + c];
        BigFloat other = a[r * d + c];
        if (other.times(other).minus(best.times(best)).signum() > 0) {
          pivot = r;
        }
      }
      for (int k = 0; k < d; k++) {
        BigFloat t = a[c * d + k];
        a[c * d + k] = a[pivot * d + k];
        a[pivot * d + k] = t;
        t = x[c * d + k];
        x[c * d + k] = x[pivot * d + k];
        x[pivot * d + k] = t;
      }
      BigFloat inverse = BigFloat.ONE.dividedBy(a[c * d + c]);
      for (int k = 0; k < d; k++) {
        a[c * d + k] = a[c * d + k].times(inverse);
        x[c * d + k] = x[c * d + k].times(inverse);
      }
      for (int r = 0; r < d; r++) {
        BigFloat factor = a[r * d + c];
        for (int k = 0; r != c && k < d; k++) {
          a[r * d + k] = a[r * d + k].minus(factor.times(a[c * d + k]));
          x[r * d + k] = x[r * d + k].minus(factor.times(x[c * d + k]));
        }
      }
    }
    return x;
  }
}
