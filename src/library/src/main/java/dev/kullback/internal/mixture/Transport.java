package dev.kullback.internal.mixture;

import dev.kullback.internal.work.Checkpoint;
import java.util.Arrays;

/**
 * The transport of weights a to weights b of the same sum that costs least, {@code min Σ x_ij c_ij} with {@code Σ_j x_ij = a_i}, {@code Σ_i x_ij =
 * b_j} and {@code x ≥ 0}, by shortest paths in the residual graph one after the other, with potentials that keep its costs {@code c_ij + u_i − v_j
 * ≥ 0} (J. Edmonds and R. M. Karp, "Theoretical improvements in algorithmic efficiency for network flow problems", Journal of the ACM 19, 1972;
 * N. Tomizawa, Networks 1, 1971). A path is found in {@code O((n + m)²)}, and takes all that is left at one of its ends, or an x to 0. Used once.
 */
final class Transport {
  private static final int NONE = -1;

  /** Weight that rounding may leave, of the sum 1. */
  private static final double ROUNDING = 0x1p-40;

  private final int n;
  private final int m;
  private final double[] cost;
  private final double[] flow;

  /** What is left of the weights, and the potentials: those of a, and then those of b. */
  private final double[] left;

  private final double[] potential;

  /** Distance of each node from the source, whether it is known to be the least, and the node before. */
  private final double[] distance;

  private final boolean[] isKnown;
  private final int[] before;

  /** Takes weights above 0 of the sum 1 and costs ≥ 0, row-major. */
  Transport(double[] a, double[] b, double[] cost) {
    n = a.length;
    m = b.length;
    this.cost = cost;
    flow = new double[n * m];
    left = Arrays.copyOf(a, n + m);
    System.arraycopy(b, 0, left, n, m);
    potential = new double[n + m];
    distance = new double[n + m];
    isKnown = new boolean[n + m];
    before = new int[n + m];
  }

  /** Returns the least cost. */
  double compute() {
    Checkpoint checkpoint = new Checkpoint();
    for (int i = 0; i < n; i++) {
      start(i);
      for (int sink = 0; left[i] > 0 && sink != NONE; ) {
        checkpoint.pass(Checkpoint.ofPlain((long) (n + m) * (n + m)));
        sink = nearestSink(i);
        if (sink != NONE) {
          send(i, sink);
        }
      }
    }
    // more than rounding on either side, where costs are infinite
    boolean isInfinite = left(0, n) > ROUNDING && left(n, n + m) > ROUNDING;
    double total = isInfinite ? Double.POSITIVE_INFINITY : 0;
    for (int k = 0; k < flow.length; k++) {
      total += flow[k] > 0 ? flow[k] * cost[k] : 0;
    }
    return total;
  }

  private double left(int from, int to) {
    return Arrays.stream(left, from, to).sum();
  }

  /** Sets the potential of a row to the least that keeps its costs ≥ 0. From 0, a far row would raise all others, whose differences rounding takes. */
  private void start(int i) {
    potential[i] = Double.NEGATIVE_INFINITY;
    for (int j = 0; j < m; j++) {
      potential[i] = Math.max(potential[i], potential[n + j] - cost[i * m + j]);
    }
  }

  /** Finds the nearest node of b that takes more, by E. W. Dijkstra's algorithm, and moves the potentials; {@link #NONE} if all are full. */
  private int nearestSink(int source) {
    Arrays.fill(distance, Double.POSITIVE_INFINITY);
    Arrays.fill(isKnown, false);
    distance[source] = 0;
    int node = source;
    while (node != NONE && (node < n || left[node] == 0)) {
      isKnown[node] = true;
      for (int to = node < n ? n : 0; to < (node < n ? n + m : n); to++) {
        boolean isForward = node < n;
        if (isKnown[to] || (!isForward && flow[to * m + node - n] == 0)) {
          continue;
        }
        double c = isForward ? cost[node * m + to - n] : -cost[to * m + node - n];
        double length = distance[node] + Math.max(0, c + potential[node] - potential[to]);
        if (length < distance[to]) {
          distance[to] = length;
          before[to] = node;
        }
      }
      node = NONE;
      for (int k = 0; k < n + m; k++) {
        if (!isKnown[k]
            && distance[k] < (node == NONE ? Double.POSITIVE_INFINITY : distance[node])) {
          node = k;
        }
      }
    }
    for (int k = 0; k < n + m && node != NONE; k++) {
      potential[k] += Math.min(distance[k], distance[node]);
    }
    return node;
  }

  /** Sends what the path from a source to a sink takes. */
  private void send(int source, int sink) {
    double most = Math.min(left[source], left[sink]);
    for (int to = sink; to != source; to = before[to]) {
      most = to < n ? Math.min(most, flow[to * m + before[to] - n]) : most;
    }
    left[source] -= most;
    left[sink] -= most;
    for (int to = sink; to != source; to = before[to]) {
      if (to < n) {
        flow[to * m + before[to] - n] -= most;
      } else {
        flow[before[to] * m + to - n] += most;
      }
    }
  }
}
