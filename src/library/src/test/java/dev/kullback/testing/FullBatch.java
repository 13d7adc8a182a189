package dev.kullback.testing;

import dev.kullback.FullGaussians;
import dev.kullback.Gaussians;
import dev.kullback.ScaleKind;
import java.util.Arrays;
import java.util.Random;

/**
 * The parameters of a batch with full covariance as the tests know them: what the library is given,
 * exactly. Values of a float batch are floats widened to double.
 */
public record FullBatch(
    Kind kind, boolean isDouble, double[] mean, double[] matrix, int dimension) {
  /** Kinds of matrices. */
  public enum Kind {
    SCALE_TRIL,
    PACKED,
    PACKED_LOG,
    COVARIANCE,
    PRECISION;

    /** The library's name of it. */
    public ScaleKind scaleKind() {
      return switch (this) {
        case SCALE_TRIL -> ScaleKind.SCALE_TRIL;
        case PACKED -> ScaleKind.PLAIN_PACKED_SCALE_TRIL;
        case PACKED_LOG -> ScaleKind.PACKED_SCALE_TRIL;
        case COVARIANCE -> ScaleKind.COVARIANCE;
        case PRECISION -> ScaleKind.PRECISION_MATRIX;
      };
    }

    boolean isPacked() {
      return this == PACKED || this == PACKED_LOG;
    }
  }

  public FullBatch {
    if (!isDouble) {
      mean = Batch.widened(Batch.narrowed(mean));
      matrix = Batch.widened(Batch.narrowed(matrix));
    }
  }

  /**
   * Covariances of condition number {@code condition}: a random rotation of variances spread
   * evenly, as logarithms, from 1 down; means in {@code [center, center + 1]}.
   */
  public static FullBatch random(
      boolean isDouble, int size, int dimension, double condition, double center, Random random) {
    int d = dimension;
    double[] mean = random.doubles((long) size * d, center, center + 1).toArray();
    double[] tril = new double[size * d * d];
    for (int i = 0; i < size; i++) {
      double[][] root = rotation(d, random);
      for (int k = 0; k < d; k++) {
        double std = d == 1 ? 1 : Math.pow(condition, -0.5 * k / (d - 1));
        for (int r = 0; r < d; r++) {
          root[k][r] *= std;
        }
      }
      // R in root = QR, by Gram-Schmidt twice over, is the transposed factor of rootᵀ root
      double[][] l = lower(root);
      for (int r = 0; r < d; r++) {
        System.arraycopy(l[r], 0, tril, (i * d + r) * d, r + 1);
      }
    }
    return new FullBatch(Kind.SCALE_TRIL, isDouble, mean, tril, d);
  }

  /** A diagonal batch with its matrices written out, exactly: half of a logarithm of a variance is one of a deviation. */
  public static FullBatch of(Batch b) {
    int d = b.dimension();
    Kind kind =
        switch (b.kind()) {
          case STD -> Kind.SCALE_TRIL;
          case VARIANCE -> Kind.COVARIANCE;
          case LOG_VARIANCE -> Kind.PACKED_LOG;
          case PRECISION -> Kind.PRECISION;
        };
    int each = kind.isPacked() ? d * (d + 1) / 2 : d * d;
    double[] matrix = new double[b.size() * each];
    for (int h = 0; h < b.mean().length; h++) {
      int k = h % d;
      double s = b.scale()[h];
      matrix[h / d * each + (kind.isPacked() ? k * (k + 3) / 2 : k * (d + 1))] =
          kind.isPacked() ? 0.5 * s : s;
    }
    return new FullBatch(kind, b.isDouble(), b.mean(), matrix, d);
  }

  /** Scales, an even number, from one end of what a diagonal Gaussian may have beside a full one to the other. */
  public static double[] magnitudes(Batch.Kind kind) {
    if (kind == Batch.Kind.LOG_VARIANCE) {
      return new double[] {
        -1400, -1399.7, -1370.3, -1000.1, -745, -708.3, -100.7, -1e-3, 0.1, 3, 350.3, 709.2, 1399.9,
        1400
      };
    }
    return new double[] {
      Double.MIN_VALUE,
      3e-323,
      1e-315,
      Double.MIN_NORMAL,
      3e-308,
      1e-300,
      1e-290,
      1e-200,
      1e-160,
      1e-20,
      3,
      1e20,
      1e154,
      1e300,
      1.7e308,
      Double.MAX_VALUE
    };
  }

  private static double[][] rotation(int d, Random random) {
    double[][] rows = new double[d][d];
    for (int r = 0; r < d; r++) {
      for (int c = 0; c < d; c++) {
        rows[r][c] = random.nextGaussian();
      }
    }
    for (int r = 0; r < d; r++) {
      for (int pass = 0; pass < 2; pass++) {
        for (int k = 0; k < r; k++) {
          double dot = dot(rows[r], rows[k]);
          for (int c = 0; c < d; c++) {
            rows[r][c] -= dot * rows[k][c];
          }
        }
      }
      double norm = Math.sqrt(dot(rows[r], rows[r]));
      for (int c = 0; c < d; c++) {
        rows[r][c] /= norm;
      }
    }
    return rows;
  }

  /** L with {@code LLᵀ = aᵀa}. */
  private static double[][] lower(double[][] a) {
    int d = a.length;
    double[][] columns = new double[d][d];
    double[][] l = new double[d][d];
    for (int j = 0; j < d; j++) {
      for (int i = 0; i < d; i++) {
        columns[j][i] = a[i][j];
      }
      for (int pass = 0; pass < 2; pass++) {
        for (int k = 0; k < j; k++) {
          double dot = dot(columns[j], columns[k]);
          l[j][k] += dot;
          for (int i = 0; i < d; i++) {
            columns[j][i] -= dot * columns[k][i];
          }
        }
      }
      l[j][j] = Math.sqrt(dot(columns[j], columns[j]));
      for (int i = 0; i < d; i++) {
        columns[j][i] /= l[j][j];
      }
    }
    return l;
  }

  private static double dot(double[] a, double[] b) {
    double sum = 0;
    for (int i = 0; i < a.length; i++) {
      sum += a[i] * b[i];
    }
    return sum;
  }

  public int size() {
    return mean.length / dimension;
  }

  /** Elements of one matrix. */
  int stride() {
    return kind.isPacked() ? dimension * (dimension + 1) / 2 : dimension * dimension;
  }

  public FullGaussians gaussians() {
    ScaleKind of = kind.scaleKind();
    return (FullGaussians)
        (isDouble
            ? Gaussians.of(of, mean, matrix, dimension)
            : Gaussians.of(of, Batch.narrowed(mean), Batch.narrowed(matrix), dimension));
  }

  /** Rows {@code from} to {@code to}, the latter excluded. */
  public FullBatch rows(int from, int to) {
    return new FullBatch(
        kind,
        isDouble,
        Arrays.copyOfRange(mean, from * dimension, to * dimension),
        Arrays.copyOfRange(matrix, from * stride(), to * stride()),
        dimension);
  }

  /** Converts a batch of factors to another kind; the Gaussians are near these, as the conversion rounds. */
  public FullBatch as(Kind other) {
    int d = dimension;
    int each = other.isPacked() ? d * (d + 1) / 2 : d * d;
    double[] out = new double[size() * each];
    for (int i = 0; i < size(); i++) {
      double[][] l = new double[d][d];
      for (int r = 0; r < d; r++) {
        System.arraycopy(matrix, (i * d + r) * d, l[r], 0, r + 1);
      }
      double[][] full = l;
      if (other == Kind.COVARIANCE || other == Kind.PRECISION) {
        if (other == Kind.PRECISION) {
          double[][] inverse = new double[d][d]; // transposed
          for (int c = 0; c < d; c++) {
            for (int r = c; r < d; r++) {
              double sum = r == c ? 1 : 0;
              for (int k = c; k < r; k++) {
                sum -= l[r][k] * inverse[c][k];
              }
              inverse[c][r] = sum / l[r][r];
            }
          }
          full = inverse;
        }
        double[][] product = new double[d][d];
        for (int r = 0; r < d; r++) {
          for (int c = 0; c < d; c++) {
            product[r][c] = dot(full[r], full[c]);
          }
        }
        full = product;
      }
      for (int r = 0, k = i * each; r < d; r++) {
        for (int c = 0; c < (other.isPacked() ? r + 1 : d); c++, k++) {
          out[k] = other == Kind.PACKED_LOG && r == c ? Math.log(full[r][c]) : full[r][c];
        }
      }
    }
    return new FullBatch(other, isDouble, mean, out, d);
  }
}
