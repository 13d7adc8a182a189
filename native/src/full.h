// Full covariances: what a device keeps of a batch, its preparation, the operands of its product, and pairs one by one.
#pragma once

#include "product.h"

namespace kullback {

// By Gaussian: what RowTerms and ColumnTerms are made of. The rows' weight has ‖m_q‖² added for the centre of p's means; where p's batch is
// near, NearRows makes all of a row's terms anew.
struct FullMoments {
  double offsetQ, noiseQ, weightQ;
  double offsetP, noiseP, weightP, residual, condition;
};

// A full batch in device memory, K = D(D+1)/2 + D:
//
//     mean       [N][D]         as given
//     scaleTril  [N][D(D+1)/2]  as given; and the low parts, if there are any
//     rows       [K][padded]    Σ packed, and the mean; while preparing W = L⁻¹ packed, turned around, [N][D(D+1)/2]
//     columns    [depth][padded]  ½P = ½Σ⁻¹ packed, twice what is off the diagonal, and −P m; m relative to the centre
//     terms      [padded]       of columns
//     solved     [N][D]         W m
//     triangle   [K]            row and column of entry k of a packed triangle
//     centre     [D]            the mean of the means
//     spreads    [LANES + 1]    KL(Gaussian N/2 ‖ some others), LANES where it is 1 or more; and the mean of these
//     moments    [N]
//
// Where the batch is near, W and W m give way to F and y, and the columns are those of the near form (NearFull).
struct Full {
  const double *mean, *scaleTril, *scaleTrilLow;
  double *rows, *columns, *solved, *centre, *spreads;
  int *triangle;
  FullMoments *moments;
  ColumnTerms *terms;
  int64_t size, padded, length; // of a packed triangle
  int dimension, k, depth, wide;

  KB_FN const double *factor(int64_t i) const { return scaleTril + i * length; }
  KB_FN const double *low(int64_t i) const { return scaleTrilLow == nullptr ? nullptr : scaleTrilLow + i * length; }
  KB_FN FullGaussian gaussian(int64_t i) const { return {mean + i * dimension, factor(i), low(i)}; }
  KB_FN bool isBeyond(int64_t i) const { return !(moments[i].offsetQ == moments[i].offsetQ); } // FULL_MOST
  KB_FN double *inverse(int64_t i) const { return rows + i * length; }

  // Where entry (r, c) of a lower triangle is in one whose rows are its columns, last ones first: a lower triangle, too, in which a column
  // lies in one piece.
  KB_FN int64_t turned(int r, int c) const { return packedLength(dimension - 1 - c) + (dimension - 1 - r); }

  // Column c of F, or y for c = D.
  KB_FN Walk solution(int64_t i, int c) const {
    return c == dimension ? Walk{solved + i * dimension, 1, 0} : Walk{inverse(i) + turned(0, c), -1, 0};
  }

  // The Gaussian that others are relative to where the batch is near. A mean would be far from all if one is far from the others.
  KB_FN int64_t middle() const { return size / 2; }
  KB_FN int samples() const { return size < LANES ? (int)size : LANES; } // by which that is told
  KB_FN bool isNear() const { return spreads[LANES] <= 0.25; }
};

// Error bounds, in units of rounding, with g = roundings(K), norms ‖·‖ of Frobenius, and ν(L) ≥ ‖|L||Lᵀ|‖:
//
//     product          g·‖P‖·(‖Σq‖ + 2‖mq‖² + ‖mp‖²)     as 2‖mq‖‖P mp‖ ≤ ‖P‖(‖mq‖² + ‖mp‖²)
//     Σq = LLᵀ         (D+3)·ν(Lq)·‖P‖                   L itself is rounded
//     P = WᵀW, P mp    D·ν(Wᵀ)·(‖Σq‖ + 3‖mq‖² + 5‖mp‖²)
//     m = μ − centre   4·‖P‖·(‖mq‖² + ‖mp‖²)
//
// half of which is at most weightQ·weightP + noiseP. W = Lp⁻¹ is computed such that W Lp = I + G with |G| ≤ (D+6)|W||Lp|
// (N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., 14.2.1), so G only scales what it is used for.

// The share of ‖m_q‖² in a row's weight.
KB_FN double meanWeight(const Full &q) { return 0.5 * PRODUCT_UNIT * (2 * roundings(q.k, q.wide) + 4); }

// A lane's part of KL(q ‖ p), by columns in rounds of y, 0, 1, …, 30; 31, …, 62; … Column c goes to at(c).
template <bool SCALED, bool FUSED, class At>
KB_FN double solveColumns(int lane, int d, const FullGaussian &q, const FullGaussian &p, const At &at) {
  double sum = 0;
  for (int round = 0; round <= d; round += LANES) {
    int n = round + lane;
    int c = n == 0 ? d : n - 1;
    if (n <= d) {
      sum += solveColumn<SCALED, FUSED>(c, round == 0 ? 0 : round - 1, d, q, p, at(c));
    }
  }
  return sum;
}

// The centre and the table of the triangle: a warp has a dimension, a lane every 32nd Gaussian and then entry of the row.
struct CentreFull {
  Full g;

  int64_t blocks() const { return ceilDiv(g.dimension, WARPS); }

  template <class Block>
  KB_FN void operator()(Block &block) const {
    typename Block::template Own<Sum<double>> own(block);
    block.lanes([&](int t) {
      int64_t h = block.index * WARPS + t / LANES;
      if (h < g.dimension) {
        KB_UNROLL_4 for (int64_t i = t % LANES; i < g.size; i += LANES) own[t].x += g.mean[i * g.dimension + h];
      }
    });
    block.reduce(own);
    block.lanes([&](int t) {
      int h = (int)block.index * WARPS + t / LANES;
      if (h < g.dimension) {
        if (t % LANES == 0) {
          g.centre[h] = own[t].x / (double)g.size;
          g.triangle[g.length + h] = h << 16;
        }
        for (int c = t % LANES; c <= h; c += LANES) {
          g.triangle[packedLength(h) + c] = h << 16 | c;
        }
      }
    });
  }
};

// Tells how far some Gaussians are from the middle: a warp has one of them, a lane every 32nd column of its F. F's diagonal may do.
struct SpreadFull {
  static constexpr int LEAST = 16; // of fewer columns, pairs one by one cost no more than rows of their own

  Full g;

  int64_t blocks() const { return ceilDiv(g.samples(), WARPS); }

  template <class Block>
  KB_FN void operator()(Block &block) const {
    typename Block::template Own<Sum<double>> own(block);
    int n = (int)block.index * WARPS;
    FullGaussian middle = g.gaussian(g.middle());
    block.lanes([&](int t) {
      int64_t i = sample(n + t / LANES);
      for (int h = t % LANES; i < g.size && h < g.dimension; h += LANES) {
        double s = middle.factor[packedLength(h) + h];
        double pivot = g.factor(i)[packedLength(h) + h];
        own[t].x += factorExcess((s - pivot) / pivot, s, pivot);
      }
    });
    block.reduce(own);
    block.lanes([&](int t) {
      int64_t i = sample(n + t / LANES);
      if (own[t].x < 1 && g.size >= LEAST && i < g.size) {
        own[t].x = solveColumns<false, true>(t % LANES, g.dimension, middle, g.gaussian(i), [&](int c) { return g.solution(i, c); });
      } else {
        own[t].x = 1; // of each lane
      }
    });
    block.reduce(own);
    block.lanes([&](int t) {
      if (t % LANES == 0) { // also of none
        g.spreads[n + t / LANES] = own[t].x < 1 ? own[t].x : LANES; // or NaN; one of these rules the near form out
      }
    });
  }

  // With no fixed stride, in which a batch of several kinds by turns would show one of them.
  KB_FN int64_t sample(int n) const { return n * g.size / g.samples() + n % (g.size / g.samples()); }
};

// W = L⁻¹, W m, −Wᵀ(W m), what of the moments does not need Σ and P, and the mean of the spreads: a warp has a Gaussian, a lane every 32nd
// of its rows.
struct InvertFull {
  Full g;

  // Of a factor: largest sum of a row's magnitudes, of a column's, and sum of squares.
  struct Norms {
    double rows = 0, columns = 0, squares = 0;

    KB_FN Norms operator+(const Norms &o) const {
      return {rows > o.rows ? rows : o.rows, columns > o.columns ? columns : o.columns, squares + o.squares};
    }

    KB_FN double norm() const { return sqrt(squares); }

    // ν(L) = √(‖L‖₁‖L‖_∞)·‖L‖ ≥ ‖|L||Lᵀ|‖, ‖|Lᵀ||L|‖
    KB_FN double spread() const { return sqrt(rows * columns) * norm(); }
  };

  struct State {
    Norms l, w;
    LogProduct product;
    double means = 0, mahalanobis = 0;
    bool beyond = false;

    KB_FN State operator+(const State &o) const {
      return {l + o.l, w + o.w, product + o.product, means + o.means, mahalanobis + o.mahalanobis, beyond || o.beyond};
    }
  };

  int64_t blocks() const { return ceilDiv(g.size, WARPS); }

  template <class Block>
  KB_FN void operator()(Block &block) const {
    typename Block::template Own<State> own(block);
    int64_t first = block.index * WARPS;
    int d = g.dimension;
    block.each([&](int t) {
      int64_t i = first + t / LANES;
      for (int r0 = 0; i < g.size && r0 < d; r0 += LANES) {
        int r = r0 + t % LANES;
        invertRow(g.factor(i), r, r0 + LANES <= d ? r0 + LANES - 1 : d - 1, g.inverse(i));
        if (r < d) {
          addRow(own[t], i, r);
        }
      }
    });
    block.lanes([&](int t) {
      int64_t i = first + t / LANES;
      for (int c = t % LANES; i < g.size && c < d; c += LANES) {
        own[t].l = own[t].l + normsOf(g.factor(i), c);
        own[t].w = own[t].w + normsOf(g.inverse(i), c); // turned around, of the same norms
        double sum = 0;
        for (int r = c; r < d; r++) {
          sum = fma(g.inverse(i)[g.turned(r, c)], g.solved[i * d + r], sum);
        }
        g.columns[(g.length + c) * g.padded + i] = -sum;
      }
    });
    block.reduce(own);
    block.lanes([&](int t) {
      int64_t i = first + t / LANES;
      if (t % LANES == 0 && i < g.size) {
        g.moments[i] = moments(own[t]);
      }
      if (block.index == 0 && t == 0) {
        double sum = 0;
        for (int n = 0; n < g.samples(); n++) sum += g.spreads[n];
        g.spreads[LANES] = sum / g.samples();
      }
    });
  }

  // Row r of W from right to left, for the residual W L − I is small that way; eight columns at once, which is 3
  // instructions a term on sm_90 (one at a time, 10; by indices, 45). A warp's rows, of which `last` is the last, walk L together.
  KB_FN void invertRow(const double *l, int r, int last, double *w) const {
    constexpr int COLUMNS = 8;
    int start;
    for (int c1 = last; c1 >= 0; c1 = start - 1) { // columns c1, c1 − 1, …, start
      start = c1 / COLUMNS * COLUMNS;
      double sums[COLUMNS] = {};
      const double *own = w + g.turned(r, last); // the next of the row is as far as the turned row is long
      const double *common = l + packedLength(last) + start;
      for (int i = last; i > c1; i--) { // none in the first round, the only one with fewer columns
        if (i <= r && r <= last) {
          KB_UNROLL for (int n = 0; n < COLUMNS; n++) sums[n] = fma(*own, common[n], sums[n]);
        }
        own += g.dimension - i;
        common -= i;
      }
      KB_UNROLL for (int n = COLUMNS - 1; n >= 0; n--) {
        int c = start + n;
        if (c <= c1 && c <= r && r <= last) {
          const double *row = l + packedLength(c) + start;
          double pivot = 1 / row[n];
          double x = c == r ? pivot : -sums[n] * pivot;
          w[g.turned(r, c)] = x;
          KB_UNROLL for (int m = 0; m < n; m++) sums[m] = fma(x, row[m], sums[m]);
        }
      }
    }
  }

  KB_FN void addRow(State &own, int64_t i, int r) const {
    int d = g.dimension;
    double y = 0;
    for (int c = 0; c <= r; c++) {
      y = fma(g.inverse(i)[g.turned(r, c)], g.mean[i * d + c] - g.centre[c], y);
    }
    g.solved[i * d + r] = y;
    double mean = g.mean[i * d + r];
    double m = mean - g.centre[r];
    own.mahalanobis = fma(y, y, own.mahalanobis);
    own.means = fma(m, m, own.means);
    const double *row = g.factor(i) + packedLength(r);
    own.product.multiply(row[r]);
    bool ordinary = fabs(mean) <= FULL_MOST && row[r] >= 1 / FULL_MOST;
    for (int c = 0; c <= r; c++) {
      ordinary = ordinary && fabs(row[c]) <= FULL_MOST;
    }
    own.beyond |= !ordinary;
  }

  // Of row and column n.
  KB_FN Norms normsOf(const double *l, int n) const {
    Norms norms;
    for (int c = 0; c <= n; c++) {
      double x = fabs(l[packedLength(n) + c]);
      norms.rows += x;
      norms.squares = fma(x, x, norms.squares);
    }
    for (int r = n; r < g.dimension; r++) {
      norms.columns += fabs(l[packedLength(r) + n]);
    }
    return norms;
  }

  // weightQ and weightP, and noiseP in part: FinishFull adds the norms of Σ and P.
  KB_FN FullMoments moments(const State &s) const {
    int d = g.dimension;
    double logDet = s.product.log();
    double bound = 0x1p-53 * (2 * d + 16 + 4 * fabs(logDet));
    double a = s.l.spread() / s.l.norm() * s.w.norm();
    double b = s.w.spread() / s.w.norm() * s.l.norm();
    double residual = PRODUCT_UNIT * (d + 6) * (a < b ? a : b);
    FullMoments m;
    m.offsetQ = s.beyond ? FLAG : -logDet;
    m.noiseQ = bound + 4 * PRODUCT_UNIT * fabs(logDet);
    m.weightQ = 0.5 * PRODUCT_UNIT * (d + 3) * s.l.spread();
    m.offsetP = s.beyond ? FLAG : logDet + 0.5 * (s.mahalanobis - d);
    m.noiseP = bound + 4 * PRODUCT_UNIT * (fabs(logDet) + d + s.mahalanobis) +
               0.5 * PRODUCT_UNIT * s.means * 5 * d * s.w.spread() + residual * s.mahalanobis;
    m.weightP = 1.5 * d / roundings(g.k, true) * s.w.spread(); // a row's weight has no fewer
    m.residual = residual;
    m.condition = s.l.norm() * s.w.norm();
    return m;
  }
};

// The near form, where p's batch is near: q and p relative to its middle c. With
//
//     E = L_c⁻¹(L_q − L_c),  u = L_c⁻¹(μ_q − μ_c),  A = E + Eᵀ + EEᵀ + uuᵀ       Σ_q = L_c (I + A − uuᵀ) L_cᵀ
//     F = L_p⁻¹(L_c − L_p),  y = L_p⁻¹(μ_c − μ_p),  B = F + Fᵀ + FᵀF              P = L_c⁻ᵀ (I + B) L_c⁻¹
//
//     KL(q ‖ p) = KL(q ‖ c) + KL(c ‖ p) + ½ tr(A B) + uᵀ(y + Fᵀy)
//
// which is the same product, and no part of it is larger than the squares of the two's distances from c, where these are below 1:
//
//     a_i = [ A, packed;                                     u       ]
//     b_j = [ ½B, packed, twice what is off the diagonal;    y + Fᵀy ]
//
// Error bounds, with the residuals ρ of moments (by substitution there are no more roundings): E and u are within ρ_c of their norms, F
// and y within ρ_p. With s = 2 KL(q ‖ c) ≥ ‖E‖² + ‖u‖²
//
//     ‖A‖ ≤ 2‖E‖ + ‖E‖² + ‖u‖²,   √(½‖A‖² + ‖u‖²) ≤ w(s) = √s (√2 + √s),       A within 3ρ_c of that bound
//
// and likewise of p, with s = 2 KL(c ‖ p) ≥ ‖F‖² + ‖y‖²; B and y + Fᵀy within 3ρ_p. So the product's error is within
// (g + 3ρ_c + 3ρ_p)·w·w. That of KL(q ‖ c) is within 2ρ_c of it and some roundings, of which factorExcess takes up to 512.

KB_FN double nearWeight(double kl) {
  double root = sqrt(2 * kl);
  return root * (1.4142135623730951 + root);
}

KB_FN double nearNoise(double kl, double residual, int d) { return kl * (2 * residual + PRODUCT_UNIT * (d + 600)); }

// A near batch's F, y, y + Fᵀy and moments: a warp has a Gaussian, a lane every 32nd column of F.
struct NearFull {
  Full g;

  int64_t blocks() const { return ceilDiv(g.size, WARPS); }

  template <class Block>
  KB_FN void operator()(Block &block) const {
    if (!g.isNear()) {
      return;
    }
    typename Block::template Own<Sum<double>> own(block);
    int64_t first = block.index * WARPS;
    int d = g.dimension;
    block.each([&](int t) {
      int64_t i = first + t / LANES;
      if (i < g.size) {
        own[t].x = solveColumns<false, true>(t % LANES, d, g.gaussian(g.middle()), g.gaussian(i), [&](int c) { return g.solution(i, c); });
      }
    });
    block.lanes([&](int t) {
      int64_t i = first + t / LANES;
      for (int c = t % LANES; i < g.size && c < d; c += LANES) {
        const double *y = g.solved + i * d;
        const double *f = g.inverse(i) + g.turned(0, c);
        double sum = y[c];
        for (int r = c; r < d; r++) {
          sum = fma(f[-r], y[r], sum);
        }
        g.columns[(g.length + c) * g.padded + i] = sum;
      }
    });
    block.reduce(own);
    block.lanes([&](int t) {
      int64_t i = first + t / LANES;
      if (t % LANES == 0 && i < g.size) {
        FullMoments &o = g.moments[i];
        double both = o.residual + g.moments[g.middle()].residual;
        o.offsetP = g.isBeyond(i) || g.isBeyond(g.middle()) ? FLAG : own[t].x;
        o.noiseP = nearNoise(own[t].x, o.residual, d);
        o.weightP = (PRODUCT_UNIT * roundings(g.k, g.wide) + 3 * both) * nearWeight(own[t].x);
      }
    });
  }
};

// The products F Fᵀ of triangular factors, packed, in squares of 32: Σ = LLᵀ; ½P = ½WᵀW with twice what is off the diagonal, from W turned
// around, and where the batch is near ½B likewise; or A of a near batch's rows. A block has one square of four Gaussians, for they lie side
// by side in what it writes; a thread 4 × 4 of one.
struct SquareFull {
  enum Of { ROWS, COLUMNS, NEAR_ROWS };

  static constexpr int SIDE = 32;
  static constexpr int GROUP = 4;
  static constexpr int MICRO = 4;
  static constexpr int DEPTH = 16;

  Full g;
  Of of;
  const double *factors; // [size][D(D+1)/2]
  double *to;            // [D(D+1)/2][padded]
  int64_t size, count, padded; // zero from Gaussian `size` on

  // Planes are 32 bytes longer than a multiple of 128: of 8 threads, which read 16 bytes each, four side by side do so from one each.
  struct alignas(16) Plane {
    double at[DEPTH][SIDE + 2], rest[4];
  };

  struct Shared {
    Plane row[GROUP], column[GROUP];
  };

  KB_FN int64_t groups() const { return count / GROUP; }

  int64_t blocks() const { return groups() * packedLength(ceilDiv(g.dimension, SIDE)); }

  template <class Block>
  KB_FN void operator()(Block &block) const {
    struct Sums {
      double x[MICRO][MICRO];
    };
    bool isNear = of != ROWS && g.isNear();
    if (of == NEAR_ROWS && !isNear) {
      return;
    }
    Shared &shared = block.template shared<Shared>();
    typename Block::template Own<Sums> own(block);
    int64_t i0 = block.index % groups() * GROUP;
    int square = (int)(block.index / groups());
    int r0 = g.triangle[square] >> 16 << 5; // the squares make a triangle, too
    int c0 = (g.triangle[square] & 0xffff) << 5;
    const Plane *column = r0 == c0 ? shared.row : shared.column;
    int depth = i0 < size ? g.dimension : 0; // padding is zero
    for (int h0 = 0; h0 < c0 + SIDE && h0 < depth; h0 += DEPTH) {
      block.each([&](int t) {
        load(t, i0, r0, h0, shared.row);
        if (r0 != c0) {
          load(t, i0, c0, h0, shared.column);
        }
      });
      block.each([&](int t) {
        int n = t % GROUP;
        int last = r0 + rowOf(t, MICRO - 1) - h0; // the rest of the warp's rows is 0
        KB_NO_UNROLL for (int first = 0; first < DEPTH && first <= last; first += MICRO) {
          KB_UNROLL for (int h = first; h < first + MICRO; h++) {
            double row[MICRO], other[MICRO];
            KB_UNROLL for (int a = 0; a < MICRO; a += 2) {
              two(shared.row[n].at[h][rowOf(t, a)], row[a], row[a + 1]);
              two(column[n].at[h][columnOf(t, a)], other[a], other[a + 1]);
            }
            KB_UNROLL for (int a = 0; a < MICRO; a++) {
              KB_UNROLL for (int b = 0; b < MICRO; b++) own[t].x[a][b] = fma(row[a], other[b], own[t].x[a][b]);
            }
          }
        }
      });
    }
    block.lanes([&](int t) {
      int64_t i = i0 + t % GROUP;
      KB_UNROLL for (int a = 0; a < MICRO; a++) {
        KB_UNROLL for (int b = 0; b < MICRO; b++) {
          int r = r0 + rowOf(t, a);
          int c = c0 + columnOf(t, b);
          if (r < g.dimension && c <= r) {
            store(i, r, c, own[t].x[a][b], isNear);
          }
        }
      }
    });
  }

  KB_FN static int rowOf(int t, int a) { return t / LANES * MICRO + a; }
  KB_FN static int columnOf(int t, int b) { return b / 2 * (SIDE / 2) + t % LANES / GROUP * 2 + b % 2; }

  KB_FN static void two(const double &from, double &a, double &b) {
    auto both = *(const Vec<double, 2> *)&from;
    a = both.x[0];
    b = both.x[1];
  }

  // Entries h0, h0 + 1, … of rows from `first` on, always the same h of a thread; 0 beyond the triangle and the batch.
  KB_FN void load(int t, int64_t i0, int first, int h0, Plane (&to)[GROUP]) const {
    int h = h0 + t % DEPTH;
    KB_UNROLL for (int k = 0; k < SIDE; k += THREADS / DEPTH) {
      int row = t / DEPTH + k;
      int r = first + row;
      bool within = r < g.dimension && h <= r;
      const double *from = factors + i0 * g.length + packedLength(r) + h;
      KB_UNROLL for (int n = 0; n < GROUP; n++) to[n].at[t % DEPTH][row] = within && i0 + n < size ? from[n * g.length] : 0;
    }
  }

  KB_FN void store(int64_t i, int r, int c, double x, bool isNear) const {
    int64_t k = packedLength(r) + c;
    if (isNear && i < size) {
      double f = factors[i * g.length + k];
      x += r == c ? 2 * f : f;
      if (of == NEAR_ROWS) {
        x = fma(to[(g.length + r) * padded + i], to[(g.length + c) * padded + i], x);
      }
    }
    if (of == COLUMNS) {
      to[g.turned(r, c) * padded + i] = r == c ? 0.5 * x : x;
    } else {
      to[k * padded + i] = x;
    }
  }
};

// What follows the triangles: the means, and zeros; a thread an entry.
struct CompleteFull {
  Full g;

  int64_t blocks() const { return ceilDiv((g.depth - g.length) * g.padded, THREADS); }

  template <class Block>
  KB_FN void operator()(Block &block) const {
    block.lanes([&](int t) {
      int64_t n = block.index * THREADS + t;
      int64_t h = n / g.padded;
      int64_t i = n % g.padded;
      int64_t k = g.length + h;
      if (k < g.k) {
        g.rows[k * g.padded + i] = i < g.size ? g.mean[i * g.dimension + h] : 0;
      }
      if (k < g.depth && (k >= g.k || i >= g.size)) { // before, −P m is there
        g.columns[k * g.padded + i] = 0;
      }
    });
  }
};

// Completes the moments by the norms of Σ and P, and the columns' terms: a block has 32 Gaussians, a lane one of them, a warp every eighth
// of the entries.
struct FinishFull {
  Full g;

  struct Shared {
    double rows[WARPS][LANES], columns[WARPS][LANES];
  };

  int64_t blocks() const { return ceilDiv(g.padded, LANES); }

  template <class Block>
  KB_FN void operator()(Block &block) const {
    Shared &shared = block.template shared<Shared>();
    block.each([&](int t) {
      int64_t i = block.index * LANES + t % LANES;
      double rows = 0;
      double columns = 0;
      for (int64_t k = t / LANES; i < g.size && k < g.length; k += WARPS) {
        bool diagonal = g.triangle[k] >> 16 == (g.triangle[k] & 0xffff);
        double a = g.rows[k * g.padded + i];
        double b = g.columns[k * g.padded + i];
        rows += a * a * (diagonal ? 1 : 2);
        columns += b * b * (diagonal ? 4 : 2);
      }
      shared.rows[t / LANES][t % LANES] = rows;
      shared.columns[t / LANES][t % LANES] = columns;
    });
    block.lanes([&](int t) {
      int64_t i = block.index * LANES + t;
      if (t < LANES && i >= g.size && i < g.padded) {
        g.terms[i] = {};
      } else if (t < LANES && i < g.size) {
        double rows = 0;
        double columns = 0;
        for (int n = 0; n < WARPS; n++) {
          rows += shared.rows[n][t];
          columns += shared.columns[n][t];
        }
        double means = 0;
        for (int h = 0; h < g.dimension; h++) {
          double m = g.mean[i * g.dimension + h] - g.centre[h];
          means = fma(m, m, means);
        }
        double units = roundings(g.k, g.wide);
        double precision = sqrt(columns);
        FullMoments &o = g.moments[i];
        bool isNear = g.isNear(); // where the weight has the residual
        o.weightQ += 0.5 * PRODUCT_UNIT * units * sqrt(rows);
        if (!isNear) {
          o.weightP += precision;
          o.noiseP += 0.5 * PRODUCT_UNIT * means * (units + 4) * precision;
        }
        float inverseError = isNear ? 0 : upper(o.residual);
        g.terms[i] = {o.offsetP, upper(o.noiseP), upper(o.weightP), inverseError, (float)fullTolerance(o.condition, isNear)};
      }
    });
  }
};

// The rows of the product, with means relative to the centre of p's:
//
//     a_i = [ Σ_q + m_q m_qᵀ, packed;                       m_q    ]
//     b_j = [ ½P, packed, twice what is off the diagonal;   −P m_p ]
//
//     ½ [tr(P Σ_q) + (m_q − m_p)ᵀ P (m_q − m_p)] = a_i · b_j + ½ m_pᵀ P m_p
//
// A block has 32 rows and ENTRIES of each, a lane a row, a warp every eighth of the entries; none where p's batch is near.
struct FullRows {
  static constexpr int ENTRIES = 256;

  Full q, p;
  ProductRows to;
  int64_t count; // of rows

  KB_FN int64_t across() const { return ceilDiv(count, LANES); }
  int64_t blocks() const { return across() * ceilDiv(p.depth, ENTRIES); }

  template <class Block>
  KB_FN void operator()(Block &block) const {
    if (p.isNear()) {
      return;
    }
    block.lanes([&](int t) {
      int64_t column = block.index % across() * LANES + t % LANES;
      int64_t i = to.first + column;
      int k0 = (int)(block.index / across()) * ENTRIES;
      if (column >= count) {
        return;
      }
      for (int k = k0 + t / LANES; k < k0 + ENTRIES && k < p.depth; k += WARPS) {
        to.values[k * to.padded + column] = i < q.size && k < q.k ? entry(k, i) : 0;
      }
      if (k0 == 0 && t < LANES) {
        to.terms[column] = i < q.size ? termsOf(i) : RowTerms{};
      }
    });
  }

  KB_FN double entry(int k, int64_t i) const {
    int rc = p.triangle[k];
    double m = mean(rc >> 16, i);
    return k < q.length ? fma(m, mean(rc & 0xffff, i), q.rows[k * q.padded + i]) : m;
  }

  KB_FN double mean(int h, int64_t i) const { return q.rows[(q.length + h) * q.padded + i] - p.centre[h]; }

  KB_FN RowTerms termsOf(int64_t i) const {
    double squares = 0;
    for (int h = 0; h < q.dimension; h++) {
      double m = mean(h, i);
      squares = fma(m, m, squares);
    }
    const FullMoments &m = q.moments[i];
    return {m.offsetQ, upper(m.noiseQ), upper(m.weightQ + meanWeight(q) * squares)};
  }
};

// The rows of the product where p's batch is near, except for A, which SquareFull makes of E: a warp has a row, a lane every 32nd column
// of E.
struct NearRows {
  Full q, p;
  ProductRows to;
  double *e;          // [padded][D(D+1)/2], of the same rows
  int64_t end, count; // of rows, which are zero from row `end` on

  int64_t blocks() const { return ceilDiv(count, WARPS); }

  template <class Block>
  KB_FN void operator()(Block &block) const {
    if (!p.isNear()) {
      return;
    }
    typename Block::template Own<Sum<double>> own(block);
    int d = p.dimension;
    block.lanes([&](int t) {
      int64_t n = block.index * WARPS + t / LANES;
      bool isRow = n < count && to.first + n < end;
      if (isRow) {
        own[t].x = solveColumns<false, true>(
            t % LANES, d, q.gaussian(to.first + n), p.gaussian(p.middle()), [&](int c) {
              return c == d ? Walk{to.values + p.length * to.padded + n, to.padded, 0} : Walk{e + n * p.length + c, 1, 1};
            });
      }
      for (int k = (isRow ? p.k : (int)p.length) + t % LANES; n < count && k < p.depth; k += LANES) {
        to.values[k * to.padded + n] = 0;
      }
    });
    block.reduce(own);
    block.lanes([&](int t) {
      int64_t n = block.index * WARPS + t / LANES;
      if (t % LANES == 0 && n < count) {
        to.terms[n] = to.first + n < end ? termsOf(to.first + n, own[t].x) : RowTerms{};
      }
    });
  }

  KB_FN RowTerms termsOf(int64_t i, double kl) const {
    double noise = nearNoise(kl, p.moments[p.middle()].residual, p.dimension);
    return {q.isBeyond(i) ? FLAG : kl, upper(noise), upper(nearWeight(kl))};
  }
};

// KL(q_i ‖ p_j) by triangular solves: a warp has a pair, a lane every 32nd column.
struct FullPairs {
  struct Squares {};

  Full q, p;
  double *scratch; // [warp][D][LANES]
  int same;

  KB_FN int pairsOfBlock() const { return WARPS; }

  // There is no faster way for many.
  template <class Block>
  KB_FN bool settleSquare(Block &, Squares &, const Region &, const Output &) const {
    return true;
  }

  template <class Block, class At, class Put>
  KB_FN void operator()(Block &block, At at, Put put) const {
    typename Block::template Own<Sum<double>> own(block);
    block.lanes([&](int t) {
      Pair x = at(t / LANES);
      own[t] = {};
      if (x.valid && !(same && x.i == x.j)) {
        double *e = scratch + (block.index * WARPS + t / LANES) * q.dimension * LANES + t % LANES;
        auto column = [&](int) { return Walk{e, LANES, 0}; };
        bool isBeyond = q.isBeyond(x.i) || p.isBeyond(x.j);
        own[t].x = isBeyond ? solveColumns<true, false>(t % LANES, q.dimension, q.gaussian(x.i), p.gaussian(x.j), column)
                            : solveColumns<false, false>(t % LANES, q.dimension, q.gaussian(x.i), p.gaussian(x.j), column);
      }
    });
    block.reduce(own);
    block.lanes([&](int t) {
      Pair x = at(t / LANES);
      if (x.valid && t % LANES == 0) {
        put(x, own[t].x >= 0 ? own[t].x : INFINITE); // NaN: ∞ − ∞ within E
      }
    });
  }
};

// KL(q_i ‖ N(0, I)): the same with E = L_q − I and y = μ_q; a warp has a Gaussian, a lane every 32nd of its rows.
struct StandardFull {
  Full q;
  Output out;

  int64_t blocks() const { return ceilDiv(q.size, WARPS); }

  template <class Block>
  KB_FN void operator()(Block &block) const {
    typename Block::template Own<Sum<double>> own(block);
    int64_t first = block.index * WARPS;
    block.lanes([&](int t) {
      int64_t i = first + t / LANES;
      for (int r = t % LANES; i < q.size && r < q.dimension; r += LANES) {
        const double *l = q.factor(i) + packedLength(r);
        double m = q.mean[i * q.dimension + r];
        double squares = m * m;
        for (int c = 0; c < r; c++) {
          squares += l[c] * l[c];
        }
        double low = q.low(i) == nullptr ? 0 : q.low(i)[packedLength(r) + r];
        own[t].x += 0.5 * squares + factorExcess(l[r] - 1 + low, l[r], 1);
      }
    });
    block.reduce(own);
    block.lanes([&](int t) {
      if (t % LANES == 0 && first + t / LANES < q.size) {
        out.put(0, first + t / LANES, own[t].x);
      }
    });
  }
};

} // namespace kullback
