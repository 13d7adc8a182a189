package dev.kullback.internal.verify;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.engine.Engine;
import dev.kullback.internal.engine.GradientCall;
import dev.kullback.internal.formula.PairGradient;
import dev.kullback.internal.formula.PairGradient.Term;

/** Gradients of the matrix of a case's diagonal Gaussians, and what they are pair by pair. */
final class GradientCase {
  private final Case c;
  private final DiagonalBatch q;
  private final DiagonalBatch p;
  private final double[] cotangents;
  private final double[][] parts;
  private final GradientCall call = new GradientCall();

  GradientCase(Case c) {
    this.c = c;
    q = (DiagonalBatch) c.q;
    p = (DiagonalBatch) c.p;
    cotangents = new double[c.n * c.m];
    for (int k = 0; k < cotangents.length; k++) {
      cotangents[k] = k % 7 - 3;
    }
    parts =
        new double[][] {
          new double[c.n * c.d], new double[c.n * c.d], new double[c.m * c.d], new double[c.m * c.d]
        };
    call.send(true, parts[0], parts[1]);
    call.send(false, parts[2], parts[3]);
  }

  void run(Engine engine, Batch q, Batch p, Result r) {
    call.set(null, cotangents, true, false, null, q.isDouble() || p.isDouble());
    engine
        .ofGradients()
        .begin()
        .gradient("gradient.pairwise", call, (DiagonalBatch) q, (DiagonalBatch) p);
    int to = 0;
    for (double[] part : parts) {
      System.arraycopy(part, 0, r.values, to, part.length);
      to += part.length;
    }
  }

  Expected expected(Term term) {
    int ofP = 2 * c.n * c.d;
    double[] values = new double[ofP + 2 * c.m * c.d];
    double[] allowed = new double[values.length];
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
        double byQ = g * byScale(term, q, a);
        add(values, allowed, c.n * c.d + a, byQ * pair.scaleQ(), byQ * pair.sizeQ());
        double byP = g * byScale(term, p, b);
        add(values, allowed, ofP + c.m * c.d + b, byP * pair.scaleP(), byP * pair.sizeP());
      }
    }
    for (int k = 0; k < allowed.length; k++) {
      allowed[k] = c.contract * allowed[k] + 1e-30;
    }
    return new Expected(values, allowed, Expected.NONE);
  }

  /** Returns a derivative by a scale as it was given, of a sum of 1. */
  private static double byScale(Term term, DiagonalBatch g, int at) {
    double[] sum = {1};
    term.byScale(g.kind(), new double[] {g.scale(at)}, sum, 1);
    return sum[0];
  }

  private static void add(double[] values, double[] allowed, int at, double term, double size) {
    values[at] += term;
    allowed[at] += Math.abs(size);
  }
}
