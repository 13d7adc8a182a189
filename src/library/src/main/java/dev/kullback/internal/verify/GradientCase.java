package dev.kullback.internal.verify;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.batch.FullBatch;
import dev.kullback.internal.engine.Engine;
import dev.kullback.internal.engine.GradientCall;
import dev.kullback.internal.formula.FullPair;
import dev.kullback.internal.formula.Pair;
import dev.kullback.internal.formula.PairGradient;
import dev.kullback.internal.formula.PairGradient.Term;
import dev.kullback.internal.formula.Unrounded;
import dev.kullback.internal.numerics.Cholesky;
import dev.kullback.internal.numerics.Scale;
import dev.kullback.internal.work.Worker;
import java.util.Arrays;

/**
 * Gradients of the matrix of a case's Gaussians, both diagonal or both of factors, and what they are pair by pair; by some parameters of diagonal ones, central
 * differences of the divergence in twice the precision of double.
 */
final class GradientCase {
  /** Steps of differences, over σ, a scale, or 1 of a log-variance: their error is some 2⁻⁶⁴ of third derivatives, and 2⁻⁵³ of themselves. */
  private static final int STEP_EXPONENT = -32;

  private final Case c;
  private final double[] cotangents;

  /** By q's means and scales, and by p's. */
  private final double[][] parts;

  private final GradientCall call = new GradientCall();

  GradientCase(Case c) {
    this.c = c;
    cotangents = new double[c.n * c.m];
    for (int k = 0; k < cotangents.length; k++) {
      cotangents[k] = k % 7 - 3;
    }
    parts =
        new double[][] {
          new double[c.n * c.d],
          new double[c.n * c.q.scaleLength()],
          new double[c.m * c.d],
          new double[c.m * c.p.scaleLength()]
        };
    call.send(true, parts[0], parts[1]);
    call.send(false, parts[2], parts[3]);
  }

  void run(Engine engine, Batch q, Batch p, Result r) {
    call.set(null, cotangents, c.m);
    engine.ofGradients().begin().gradient("gradient.pairwise", call, q, p);
    int to = 0;
    for (double[] part : parts) {
      System.arraycopy(part, 0, r.values, to, part.length);
      to += part.length;
    }
  }

  Expected expected(Term term, Pair pair) {
    int length = Arrays.stream(parts).mapToInt(part -> part.length).sum();
    double[] values = new double[length];
    double[] allowed = new double[length];
    if (c.q instanceof FullBatch q && c.p instanceof FullBatch p) {
      addFull(term, q, p, values, allowed);
    } else {
      addDiagonal(term, (DiagonalBatch) c.q, (DiagonalBatch) c.p, values, allowed);
      putDifferences(pair, (DiagonalBatch) c.q, (DiagonalBatch) c.p, values);
    }
    for (int k = 0; k < allowed.length; k++) {
      allowed[k] = c.contract * allowed[k] + 1e-30;
    }
    return new Expected(values, allowed, Expected.NONE);
  }

  private void addDiagonal(
      Term term, DiagonalBatch q, DiagonalBatch p, double[] values, double[] allowed) {
    int ofP = 2 * c.n * c.d;
    PairGradient pair = new PairGradient(term);
    for (int at = 0; at < cotangents.length; at++) {
      for (int h = 0; h < c.d; h++) {
        int a = at / c.m * c.d + h;
        int b = at % c.m * c.d + h;
        pair.set(q, a, p, b);
        double g = cotangents[at];
        double mean = g * term.byMean(pair.meanQ());
        add(values, allowed, a, mean, mean);
        add(values, allowed, ofP + b, -mean, mean);
        double byQ = byScale(term, q, a, g * pair.scaleQ());
        add(values, allowed, c.n * c.d + a, byQ, byScale(term, q, a, g * pair.sizeQ()));
        double byP = byScale(term, p, b, g * pair.scaleP());
        add(values, allowed, ofP + c.m * c.d + b, byP, byScale(term, p, b, g * pair.sizeP()));
      }
    }
  }

  /** Puts the differences by the first and the last parameter of each part in the place of what formulas of derivatives give. */
  private void putDifferences(Pair pair, DiagonalBatch q, DiagonalBatch p, double[] values) {
    int from = 0;
    for (int part = 0; part < parts.length; part++) {
      int last = parts[part].length - 1;
      values[from] = difference(pair, q, p, part < 2, part % 2 == 1, 0);
      values[from + last] = difference(pair, q, p, part < 2, part % 2 == 1, last);
      from += parts[part].length;
    }
  }

  /** Returns the difference by element k of q's or p's means or scales, of whose dimension alone the divergence changes. */
  private double difference(
      Pair pair, DiagonalBatch q, DiagonalBatch p, boolean ofQ, boolean byScale, int k) {
    DiagonalBatch own = ofQ ? q : p;
    double x = byScale ? own.scale(k) : own.mean(k);
    double unit =
        !byScale ? own.kind().std(own.scale(k)) : own.kind() == Scale.LOG_VARIANCE ? 1 : x;
    double step = Math.max(Math.scalb(1.0, Math.getExponent(unit) + STEP_EXPONENT), Math.ulp(x));
    DiagonalBatch slotQ = DiagonalBatch.ofSlot(1, q.kind(), true);
    DiagonalBatch slotP = DiagonalBatch.ofSlot(1, p.kind(), true);
    double sum = 0;
    for (int o = 0; o < (ofQ ? c.m : c.n); o++) {
      int i = ofQ ? k / c.d : o;
      int j = ofQ ? o : k / c.d;
      fill(slotQ, q, i * c.d + k % c.d);
      fill(slotP, p, j * c.d + k % c.d);
      double value = 0;
      double rest = 0;
      for (int sign = -1; sign <= 1; sign += 2) {
        DiagonalBatch slot = ofQ ? slotQ : slotP;
        double mean = byScale ? own.mean(k) : x + sign * step;
        double scale = byScale ? x + sign * step : own.scale(k);
        slot.fill(new double[] {mean}, new double[] {scale});
        Unrounded divergence = pair.exact(slotQ, 0, slotP, 0, Double.MIN_NORMAL);
        value += sign * divergence.value; // exact, as the two are near or one is 0
        rest += sign * divergence.value * divergence.rest;
      }
      sum += cotangents[i * c.m + j] * (value + rest) / (2 * step);
    }
    return sum;
  }

  private static void fill(DiagonalBatch slot, DiagonalBatch from, int at) {
    slot.fill(new double[] {from.mean(at)}, new double[] {from.scale(at)});
  }

  private void addFull(Term term, FullBatch q, FullBatch p, double[] values, double[] allowed) {
    int ofP = parts[0].length + parts[1].length;
    FullPair pair = new FullPair(new Worker());
    for (int at = 0; at < cotangents.length; at++) {
      int i = at / c.m;
      int j = at % c.m;
      addFull(pair, cotangents[at], q, i, c.n, 0, p, j, c.m, ofP, values, allowed);
      if (term == Term.JEFFREYS) {
        addFull(pair, cotangents[at], p, j, c.m, ofP, q, i, c.n, 0, values, allowed);
      }
    }
  }

  /** Adds g times the derivatives of KL(q_i ‖ p_j), of n and m Gaussians whose parts begin at {@code ofQ} and {@code ofP}. */
  private void addFull(
      FullPair pair,
      double g,
      FullBatch q,
      int i,
      int n,
      int ofQ,
      FullBatch p,
      int j,
      int m,
      int ofP,
      double[] values,
      double[] allowed) {
    int d = c.d;
    int length = Cholesky.packedLength(d);
    double[] e = new double[length];
    double[] y = new double[d];
    pair.solve(q, i, p, j, e, y, 0, 1);
    double[] x = e.clone();
    double[] products = new double[length];
    for (int r = 0, k = 0; r < d; r++) {
      for (int col = 0; col <= r; col++, k++) {
        products[k] = y[r] * y[col] + e[k] + (r == col ? e[k] : 0);
        for (int l = 0; l <= col; l++) {
          products[k] += e[Cholesky.packedLength(r) + l] * e[Cholesky.packedLength(col) + l];
        }
      }
    }
    double[] l = p.scaleTril();
    int ofL = p.factorFrom(j);
    for (int r = d - 1; r >= 0; r--) {
      int row = Cholesky.packedLength(r);
      double pivot = l[ofL + row + r];
      for (int k = r + 1; k < d; k++) {
        int below = Cholesky.packedLength(k);
        double f = l[ofL + below + r];
        y[r] -= f * y[k];
        for (int col = 0; col <= r; col++) {
          x[row + col] -= f * x[below + col];
          products[row + col] -= f * products[below + col];
        }
      }
      y[r] /= pivot;
      double mean = g * y[r];
      add(values, allowed, ofQ + i * d + r, mean, mean);
      add(values, allowed, ofP + j * d + r, -mean, mean);
      for (int col = 0; col <= r; col++) {
        x[row + col] /= pivot;
        products[row + col] /= pivot;
        double byQ = x[row + col];
        byQ += r == col ? e[row + r] / q.scaleTril()[q.factorFrom(i) + row + r] : 0;
        int to = r * d + col;
        add(values, allowed, ofQ + (n + i * d) * d + to, g * byQ, g * byQ);
        double byP = -g * products[row + col];
        add(values, allowed, ofP + (m + j * d) * d + to, byP, byP);
      }
    }
  }

  /** Returns the derivative by a scale as it was given, of what {@link PairGradient} has. */
  private static double byScale(Term term, DiagonalBatch g, int at, double sum) {
    double[] sums = {sum};
    term.byScale(g.kind(), new double[] {g.scale(at)}, sums, 1);
    return sums[0];
  }

  private static void add(double[] values, double[] allowed, int at, double term, double size) {
    values[at] += term;
    allowed[at] += Math.abs(size);
  }
}
