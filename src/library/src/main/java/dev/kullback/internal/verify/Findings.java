package dev.kullback.internal.verify;

import java.util.List;

/**
 * What was found.
 *
 * @param operations findings about each
 * @param tried number of pairs of batches that were tried
 * @param all number of those that there are
 */
public record Findings(List<Finding> operations, int tried, int all) {
  /** What was tried, in a line. */
  public String scope() {
    return tried == all
        ? "tried with all %d pairs of batches".formatted(all)
        : "tried with %d of %d pairs of batches, of each kind one at least; more time tries more"
            .formatted(tried, all);
  }
}
