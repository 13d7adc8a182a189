package dev.kullback.internal.mixture;

import dev.kullback.internal.work.Checkpoint;
import java.util.Arrays;

/**
 * Newton's equations of {@link VariationalBound}, for steps u of the rows and λ of the columns, with {@code θ_ab = x_ab/s_ab}:
 *
 * <pre>
 * Σ_b θ_ab (u_a − λ_b) = −Σ_b e_ab
 * Φ_b λ_b + Σ_a π_a θ_ab (λ_b − u_a) = Σ_a π_a e_ab
 * </pre>
 *
 * <p>Rows or columns are eliminated, whichever are more, and of the others a matrix is left, with an excess of the diagonal over the sum of
 * the other elements' magnitudes. That matrix is eliminated in terms of its excesses and other elements (W. K. Grassmann, M. I. Taksar, D.
 * P. Heyman, "Regenerative analysis and steady state distributions for Markov chains", Operations Research 33, 1985), which are all
 * positive: nothing cancels, whatever the range of θ.
 */
final class NewtonSystem {
  private final double[] pi;
  private final int columns;

  /** Whether the columns are eliminated. */
  private final boolean keepsRows;

  private final int kept;
  private final int eliminated;

  /** Magnitudes of the elements beside the diagonal, by rows; on it the pivots, and below it the factors. */
  private final double[] matrix;

  private final double[] excess;

  /** Pivots of what is eliminated, and its θ, by what is eliminated. */
  private final double[] pivots;

  private final double[] theta;

  /** The right-hand sides, and then the solutions. */
  private final double[] left;

  private final double[] right;
  private final Checkpoint checkpoint;

  NewtonSystem(double[] pi, int columns, Checkpoint checkpoint) {
    this.pi = pi;
    this.columns = columns;
    this.checkpoint = checkpoint;
    keepsRows = pi.length <= columns;
    kept = Math.min(pi.length, columns);
    eliminated = Math.max(pi.length, columns);
    matrix = new double[kept * kept];
    excess = new double[kept];
    pivots = new double[eliminated];
    theta = new double[kept * eliminated];
    left = new double[kept];
    right = new double[eliminated];
  }

  /** The step of u_a. */
  double row(int a) {
    return keepsRows ? left[a] : right[a];
  }

  /** The step of λ_b. */
  double column(int b) {
    return keepsRows ? right[b] : left[b];
  }

  /** Solves for x and s, Φ, and e, which are 0 where x is. */
  void solve(double[] x, double[] s, double[] sums, double[] e) {
    set(x, s, e);
    reduce(sums);
    factor();
    for (int k = 0; k < kept; k++) {
      for (int i = k + 1; i < kept; i++) {
        left[i] += matrix[i * kept + k] * left[k];
      }
    }
    for (int k = kept - 1; k >= 0; k--) {
      double t = left[k];
      for (int i = k + 1; i < kept; i++) {
        t += matrix[k * kept + i] * left[i];
      }
      left[k] = t / matrix[k * kept + k];
    }
    for (int j = 0; j < eliminated; j++) {
      double t = right[j];
      for (int i = 0; i < kept; i++) {
        t += (keepsRows ? pi[i] : 1) * theta[j * kept + i] * left[i];
      }
      right[j] = t / pivots[j];
    }
  }

  private void set(double[] x, double[] s, double[] e) {
    Arrays.fill(left, 0);
    Arrays.fill(right, 0);
    double[] ofRows = keepsRows ? left : right;
    double[] ofColumns = keepsRows ? right : left;
    for (int a = 0, k = 0; a < pi.length; a++) {
      for (int b = 0; b < columns; b++, k++) {
        theta[keepsRows ? b * kept + a : k] = x[k] / s[k];
        ofRows[a] -= e[k];
        ofColumns[b] += pi[a] * e[k];
      }
    }
  }

  /** Eliminates the more numerous of rows and columns. */
  private void reduce(double[] sums) {
    Arrays.fill(matrix, 0);
    Arrays.fill(excess, 0);
    if (!keepsRows) {
      System.arraycopy(sums, 0, excess, 0, kept);
    }
    for (int j = 0; j < eliminated; j++) {
      checkpoint.pass(Checkpoint.ofPlain((long) kept * kept / 2));
      int at = j * kept;
      double own = keepsRows ? sums[j] : 0;
      double pivot = own;
      for (int i = 0; i < kept; i++) {
        pivot += (keepsRows ? pi[i] : 1) * theta[at + i];
      }
      pivots[j] = pivot;
      for (int i = 0; i < kept; i++) {
        double factor = (keepsRows ? 1 : pi[j]) * (theta[at + i] / pivot);
        excess[i] += factor * own;
        left[i] += factor * right[j];
        for (int l = i + 1; l < kept; l++) {
          matrix[i * kept + l] += factor * theta[at + l];
        }
      }
    }
    for (int i = 0; i < kept; i++) {
      for (int l = i + 1; l < kept; l++) {
        double element = matrix[i * kept + l];
        matrix[i * kept + l] = keepsRows ? pi[l] * element : element;
        matrix[l * kept + i] = keepsRows ? pi[i] * element : element;
      }
    }
  }

  private void factor() {
    for (int k = 0; k < kept; k++) {
      checkpoint.pass(Checkpoint.ofPlain((long) (kept - k) * (kept - k)));
      double pivot = excess[k];
      for (int l = k + 1; l < kept; l++) {
        pivot += matrix[k * kept + l];
      }
      matrix[k * kept + k] = pivot;
      for (int i = k + 1; i < kept; i++) {
        double factor = matrix[i * kept + k] / pivot;
        matrix[i * kept + k] = factor;
        excess[i] += factor * excess[k];
        for (int l = k + 1; l < kept; l++) {
          matrix[i * kept + l] += factor * matrix[k * kept + l];
        }
      }
    }
  }
}
