package dev.kullback.cli.command;

import dev.kullback.Divergence;
import dev.kullback.Query;
import dev.kullback.cli.batch.BatchOptions;
import dev.kullback.cli.terminal.Report;
import dev.kullback.cli.terminal.Text;
import dev.kullback.cli.terminal.UserError;

/** What a search of points, if they are given, ranks by in the place of the divergence. */
record PointOptions(BatchOptions.QOrPoints rows) {
  boolean areGiven() {
    return rows.files().arePoints();
  }

  boolean areByDensity() {
    return rows.isLogDensity(); // which is refused where no points are given
  }

  /** Throws where options of Gaussians are given with points. */
  void check(boolean reverse, EngineOptions engine) {
    check(reverse);
    if (areGiven() && !engine.divergence().equals(Divergence.KL)) {
      throw new UserError("points have no divergence: leave out --divergence");
    }
  }

  /** Throws where a direction is given with points. */
  void check(boolean reverse) {
    if (areGiven() && reverse) {
      throw new UserError("points have no density: leave out --reverse-divergence");
    }
  }

  /** Throws unless a search can be for all within this. */
  void checkRadius(double radius) {
    if (radius < 0 && !areByDensity()) {
      throw new UserError("'--radius': " + Within.error(Text.number(radius)));
    }
  }

  Query nearest(int k) {
    return areByDensity() ? Query.nearest(k).byLogDensity() : Query.nearest(k);
  }

  Query within(double radius) {
    return areByDensity() ? Query.denserThan(-radius) : Query.within(radius);
  }

  /**
   * Returns what is computed of a row and a column as summaries write it.
   *
   * @param p the column
   */
  String formula(boolean reverse, Divergence divergence, String p) {
    if (areGiven()) {
      return areByDensity() ? "-ln %s(x_i)".formatted(p) : "mahalanobis(x_i, %s)^2".formatted(p);
    }
    return reverse
        ? EngineOptions.formula(divergence, p, "q_i")
        : EngineOptions.formula(divergence, "q_i", p);
  }

  /** Replaces the name of the divergence in a report. */
  void describe(Report report) {
    if (areGiven()) {
      report.put("divergence", rows.isLogDensity() ? "negative-log-density" : "mahalanobis");
    }
  }
}
