package dev.kullback.cli.command;

import dev.kullback.Divergence;
import dev.kullback.Query;
import dev.kullback.cli.batch.BatchOptions;
import dev.kullback.cli.terminal.Report;
import dev.kullback.cli.terminal.UserError;

/** What a search of points, if they are given, ranks by in the place of the divergence. */
record PointOptions(BatchOptions.QOrPoints rows, EngineOptions engine) {
  boolean areGiven() {
    return rows.files().arePoints();
  }

  boolean areByDensity() {
    return rows.isLogDensity(); // which is refused where no points are given
  }

  /** Throws where options of Gaussians are given with points. */
  void check(boolean reverse) {
    if (!areGiven()) {
      return;
    }
    if (reverse) {
      throw new UserError("points have no density: leave out --reverse-divergence");
    }
    if (!engine.divergence().equals(Divergence.KL)) {
      throw new UserError("points have no divergence: leave out --divergence");
    }
  }

  Query of(Query query) {
    return areByDensity() ? query.byLogDensity() : query;
  }

  /** Returns what is computed of a row and a column as summaries write it. */
  String formula(boolean reverse) {
    if (!areGiven()) {
      return reverse ? engine.formula("p_j", "q_i") : engine.formula("q_i", "p_j");
    }
    return rows.isLogDensity() ? "-ln p_j(x_i)" : "mahalanobis(x_i, p_j)";
  }

  /** Replaces the name of the divergence in a report. */
  void describe(Report report) {
    if (areGiven()) {
      report.put("divergence", rows.isLogDensity() ? "negative-log-density" : "mahalanobis");
    }
  }
}
