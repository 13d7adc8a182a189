package dev.kullback.internal.formula;

import dev.kullback.internal.numerics.Compensation;

/** Mean of numbers and its standard error, by B. P. Welford's recurrence, 1962, with the mean in two parts. */
public final class RunningMean {
  private long count;
  private double sum;
  private double rest;
  private double squares;

  public void add(double x) {
    double change = x - sum - rest;
    double next = sum + change / ++count;
    rest += Compensation.error(sum, change / count, next);
    sum = next;
    squares += change * (x - sum - rest);
  }

  public double mean() {
    return sum + rest;
  }

  /** Returns the standard error of the mean of at least two numbers; where these have an infinite one, it is infinite. */
  public double standardError() {
    double error = Math.sqrt(squares / (count - 1) / count);
    return error >= 0 ? error : Double.POSITIVE_INFINITY;
  }
}
