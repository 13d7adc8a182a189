// Diagonal batches: what a device keeps of them, its preparation, and tiles in difference form.
#pragma once

#include "product.h"

namespace kullback {

// By Gaussian. `held32` and `held64` are 0, or NaN where a variance is beyond what forms in float or double hold; `least32` and
// `least64` likewise, and above what the near form loses to underflow where it may lose something.
struct Moments {
  double logDet, logDetBound, held32, held64, least32, least64;
};

// The Gaussian c that operands of the product are relative to, by dimension. Where a batch is alike in a dimension (`isNear`), its scale
// is the median of some of the batch's, and high + low state it in each kind, to some 100 bits; elsewhere it is 1. The mean is 0 unless the
// batch is alike or its means are far from 0.
struct Centre {
  double mean, inverseStd;
  double high[4], low[4];
  int isNear;
};

KB_FN bool isNear(const Centre *c) { return c != nullptr && c->isNear; }

// A diagonal batch in device memory:
//
//     mean, scale   [N][D]             as given
//     moments       [N]
//
// and for the product, of which dimension h has the terms 2h and 2h + 1, in double
//
//     a             [depth][padded]    as q, relative to the batch's own centre
//     b             [depth][padded]    as p, likewise
//     rows, columns [padded]
//     centre        [D]                null for batches that have none whatever they hold
//     isCentred     [1]                whether it is other than N(0, 1) anywhere
//
// or for tiles in difference form, in float
//
//     operands      3 × [depth][padded]  μ, v and r
//
// by dimension, and zero where they pad.
struct Diagonal {
  const void *mean, *scale;
  Moments *moments;
  double *a, *b;
  RowTerms *rows;
  ColumnTerms *columns;
  Centre *centre;
  int *isCentred;
  float *operands;
  int64_t size, padded;
  int dimension, depth, kind, wide, product;

  KB_FN double meanAt(int64_t i, int h) const { return at(mean, i, h); }

  KB_FN double scaleAt(int64_t i, int h) const { return at(scale, i, h); }

  KB_FN double at(const void *values, int64_t i, int h) const {
    int64_t k = i * dimension + h;
    return wide ? ((const double *)values)[k] : ((const float *)values)[k];
  }

  KB_FN const float *operand(int which) const { return operands + which * depth * padded; }

  // With R of a pair, KL = ½R + offsetQ + offsetP, and its error is at most unit·KL + noiseQ + noiseP.

  KB_FN double offsetQ(int64_t i, bool pairWide) const { return held(i, pairWide) - moments[i].logDet; }

  KB_FN double offsetP(int64_t i, bool pairWide) const {
    return held(i, pairWide) + moments[i].logDet - 0.5 * dimension;
  }

  KB_FN double noiseQ(int64_t i, double unit) const {
    return moments[i].logDetBound + unit * (0.5 * dimension + moments[i].logDet);
  }

  KB_FN double noiseP(int64_t i, double unit) const { return moments[i].logDetBound - unit * moments[i].logDet; }

  KB_FN double held(int64_t i, bool pairWide) const { return pairWide ? moments[i].held64 : moments[i].held32; }

  KB_FN double least(int64_t i, bool pairWide) const { return pairWide ? moments[i].least64 : moments[i].least32; }
};

// A dimension's part of KL by the product. With d = μ − μc of q and of p, v of q, r = 1/v of p:
//
//     ½ (vq + dq²) rp − dq·dp rp + ½ dp² rp − ½ ln vq + ½ ln vp − ½
//
// which cancels where the two are alike. There, with a = vq/vc − 1, b = vc/vp − 1 and s = b + 1, and d divided by σc, the same is
//
//     ½ (a + dq²) b − dq·dp s + ½ dp² s + ½ [a − ln(1+a)] + ½ dq² + ½ [b − ln(1+b)]
//
// in which nothing is larger than the squares of the two's distances from c. Each is a product of two terms and a sum of q's and p's own.
struct Relative {
  double excess = 0; // v, or r of p; a, or b of p
  double d = 0, ratio = 0; // d or d/σc; a + 1, or b + 1 of p

  Relative() = default;
  KB_FN Relative(const Centre *c, bool isP, int kind, double m, double s)
      : excess(isP ? precision(kind, s) : variance(kind, s)), d(c == nullptr ? m : m - c->mean), ratio(excess) {
    if (isNear(c)) {
      double high = c->high[kind];
      d *= c->inverseStd;
      ratio *= c->high[isP ? VARIANCE : PRECISION];
      excess = !(fabs(ratio - 1) < 0.5) ? ratio - 1
               : isP                    ? kullback::excess(kind, high, s, c->low[kind])
                                        : kullback::excess(kind, s, high, -c->low[kind]);
    }
  }

  // ½ [a − ln(1+a)].
  KB_FN double own() const { return excessTerm(excess, fabs(excess) < 0.5 ? FLAG : log(ratio)); }
};

// The product's error. With u a unit of rounding, A = ½R and w = Σ dp² r over the dimensions that are not near:
//
//     operands       v + d² is made to 6u, r to 3u, d r to 5u; a and b to 16u, d to 4u, s to 5u: a product of two to 34u of its magnitudes
//     sum            n u of the sum of magnitudes, n = roundings(2D): however it is ordered
//     ½w             of terms that are positive, to (D/32 + 16) u; and the logarithm of the determinant
//     ½ [a − ln(1+a)]  to 1200u, most of it at a = 2⁻⁸
//     centre         where two kinds state it, to 2⁻⁹⁶: that takes ½ 2⁻⁹⁶ Σ |a + b| ≤ 2⁻⁹⁶ √(6 D·weight)
//     last additions u·KL and 4u of the offsets
//
// The magnitudes are ½ Σ r (v + dq² + 2 |dq dp|). With d = dq − dp, dq² ≤ 2d² + 2dp² and 2 |dq dp| ≤ d² + 3dp², so they are at most
// 3A + 5w/2; and A = KL − offsetQ − offsetP + ½w. Where a dimension is near, they are ½ (|a| + dq²) |b| + |dq dp| s. As |b| is below s or
// 1, that is at most ¼a² + ¼b² + ½dq² and, as above, 3KL + 5w/2 with s for r.
KB_FN double productUnits(int dimension, bool wide) { return roundings(2 * (int64_t)dimension, wide) + 34; }

// What multiplies the weights: 3A + 5w/2 without KL is three times logDetQ + D/2 − logDetP + 5w/6.
KB_FN double productShare(int dimension, bool wide) { return PRODUCT_UNIT * 3 * productUnits(dimension, wide); }

// The share of KL in it.
KB_FN double productUnit(int dimension, bool wide) { return productShare(dimension, wide) + PRODUCT_UNIT; }

// ½ ln det Σ over some dimensions, and its error bound.
struct LogDeterminant {
  LogProduct product;
  CompensatedSum sum;
  int count = 0;

  KB_FN void add(int kind, double s) {
    count++;
    if (kind == LOG_VARIANCE) {
      sum.add(s);
    } else {
      product.multiply(s);
    }
  }

  KB_FN LogDeterminant operator+(const LogDeterminant &o) const { return {product + o.product, sum + o.sum, count + o.count}; }

  KB_FN double value(int kind) const {
    return kind == LOG_VARIANCE ? 0.5 * (sum.sum + sum.rest)
                                : (kind == STD ? 1 : kind == VARIANCE ? 0.5 : -0.5) * product.log();
  }

  KB_FN double bound(int kind) const {
    double size = fabs(value(kind));
    return count == 0 ? 0 : 0x1p-53 * (kind == LOG_VARIANCE ? 2 * size : count + 16 + 4 * size);
  }
};

// Sums over a Gaussian's dimensions for its terms of the product: of those that are not near, the determinant; of others, the parts that are
// not multiplied and the weights; w of all.
struct ProductSums {
  LogDeterminant far;
  double w = 0, nearQ = 0, nearP = 0, weightQ = 0, weightP = 0;

  KB_FN ProductSums operator+(const ProductSums &o) const {
    return {far + o.far, w + o.w, nearQ + o.nearQ, nearP + o.nearP, weightQ + o.weightQ, weightP + o.weightP};
  }

  KB_FN void addQ(const Centre *c, const Relative &q) {
    if (isNear(c)) {
      nearQ += q.own() + 0.5 * q.d * q.d;
      weightQ += (0.5 * q.d * q.d + 0.25 * q.excess * q.excess) / 3;
    }
  }

  KB_FN void addP(const Centre *c, const Relative &p) {
    w = fma(p.d * p.d, p.ratio, w);
    if (isNear(c)) {
      nearP += p.own();
      weightP += 0.25 / 3 * p.excess * p.excess;
    }
  }

  KB_FN RowTerms row(int kind, double held, int dimension, bool wide) const {
    double half = far.value(kind);
    return {held - half + nearQ, upper(far.bound(kind) + noise(fabs(half), nearQ, weightQ, dimension, wide)), upper(half + weightQ)};
  }

  KB_FN ColumnTerms column(int kind, double held, int dimension, bool wide) const {
    double half = far.value(kind);
    double size = fabs(half) + 0.5 * far.count + w;
    double bound = far.bound(kind) + PRODUCT_UNIT * (dimension / 32.0 + 16) * w;
    return {held + half - 0.5 * far.count + 0.5 * w + nearP, upper(bound + noise(size, nearP, weightP, dimension, wide)),
            upper(0.5 * far.count - half + 5.0 / 6 * w + weightP), 0, 0};
  }

private:
  // Of the last additions, and what comparing in float may lose; and of what is near.
  KB_FN static double noise(double size, double near, double weight, int dimension, bool wide) {
    return (4 * PRODUCT_UNIT + productShare(dimension, wide) * FLOAT_SLACK) * (size + near + weight) +
           PRODUCT_UNIT * (dimension / 32.0 + 1200) * near + 0x1p-94 * sqrt(dimension * weight);
  }
};

// N(0, I), as the p of a pair.
struct UnitNormal {
  int kind, dimension;
  static constexpr int wide = 0;

  KB_FN double meanAt(int64_t, int) const { return 0; }
  KB_FN double scaleAt(int64_t, int) const { return unitScale(kind); }
  KB_FN double offsetP(int64_t, bool) const { return -0.5 * dimension; }
  KB_FN double noiseP(int64_t, double) const { return 0; }
  KB_FN double least(int64_t, bool) const { return FLAG; }
};

// The centre: a warp has a dimension, a lane one of 32 Gaussians of the batch. The medians of their means and of their scales are the
// centre's, and their distances from it tell how much alike the batch is; four lanes then state it in a kind each.
struct CentreDiagonal {
  static constexpr double MOST = 300; // of |ln σ²|
  static constexpr double FAR = 4;    // a mean is so many σ from 0, and so many times the means' distances from the centre

  Diagonal g;

  struct Median {
    double mean = 0, scale = 0;

    KB_FN Median operator+(const Median &o) const { return {mean + o.mean, scale + o.scale}; }
  };

  // Sums of some twice the divergence from the centre, 1 at most; and of |μ − μc|.
  struct Spread {
    double divergence = 0, distance = 0;

    KB_FN Spread operator+(const Spread &o) const { return {divergence + o.divergence, distance + o.distance}; }
  };

  // The Gaussian that lane n has, by multiples of the golden ratio, so that no cluster that recurs has them all.
  KB_FN int64_t sample(int n) const { return (int64_t)(((uint64_t)((uint32_t)n * 0x9e3779b9u) * (uint64_t)g.size) >> 32); }

  int64_t blocks() const { return ceilDiv(g.dimension, WARPS); }

  template <class Block>
  KB_FN void operator()(Block &block) const {
    typename Block::template Own<Median> median(block);
    typename Block::template Own<Spread> spread(block);
    int h0 = (int)block.index * WARPS;
    auto has = [&](int t) { return h0 + t / LANES < g.dimension; };
    block.lanes([&](int t) {
      if (has(t)) {
        median[t] = own(t % LANES, h0 + t / LANES);
      }
    });
    block.reduce(median);
    block.lanes([&](int t) {
      if (has(t)) {
        spread[t] = spreadOf(sample(t % LANES), h0 + t / LANES, median[t]);
      }
    });
    block.reduce(spread);
    block.lanes([&](int t) {
      if (has(t) && t % LANES < 4) {
        state(t % LANES, g.centre[h0 + t / LANES], median[t], spread[t]);
      }
    });
  }

  // The sample's mean and scale where they are in the middle of all, and 0 where not.
  KB_FN Median own(int n, int h) const {
    double m = g.meanAt(sample(n), h);
    double s = g.scaleAt(sample(n), h);
    int below[2] = {};
    for (int k = 0; k < LANES; k++) {
      double other[2] = {g.meanAt(sample(k), h), g.scaleAt(sample(k), h)};
      below[0] += other[0] < m || (other[0] == m && k < n);
      below[1] += other[1] < s || (other[1] == s && k < n);
    }
    return {below[0] == LANES / 2 ? m : 0, below[1] == LANES / 2 ? s : 0};
  }

  KB_FN Spread spreadOf(int64_t i, int h, const Median &c) const {
    double d = g.meanAt(i, h) - c.mean;
    double l = logRatio(g.kind, g.scaleAt(i, h), c.scale);
    double divergence = d * d * precision(g.kind, c.scale) + 0.5 * l * l;
    return {divergence < 1 ? divergence : 1, fabs(d)};
  }

  KB_FN void state(int kind, Centre &c, const Median &median, const Spread &sum) const {
    bool isNear = sum.divergence <= 0.25 * LANES && fabs(logVariance(g.kind, median.scale)) <= MOST;
    double share = median.mean * median.mean * precision(g.kind, median.scale);
    bool isFar = share > FAR * FAR && fabs(median.mean) * LANES > FAR * sum.distance;
    Variance e = isNear ? restated(kind, median.scale) : Variance{1, 0, 0};
    c.high[kind] = scalbn(e.high, e.exponent);
    c.low[kind] = scalbn(e.low, e.exponent);
    if (kind == STD) {
      c.inverseStd = 1 / c.high[STD];
      c.isNear = isNear;
      c.mean = isNear || isFar ? median.mean : 0;
    }
  }

  // The scale in another kind, to some 100 bits, and as it is in its own.
  KB_FN Variance restated(int kind, double s) const {
    if (kind == g.kind) {
      return {s, 0, 0};
    }
    Variance v = exactVariance(g.kind, s);
    if (kind == LOG_VARIANCE) {
      double log = logVariance(g.kind, s);
      return {log, log1p(excess(v, exactExp(log))), 0};
    }
    if (kind == PRECISION) {
      double r = 1 / v.high;
      return {r, (fma(-r, v.high, 1.0) - r * v.low) / v.high, -v.exponent};
    }
    if (kind == STD) {
      double odd = v.exponent & 1 ? 2 : 1;
      double root = sqrt(v.high * odd);
      return {root, (fma(-root, root, v.high * odd) + v.low * odd) / (2 * root), v.exponent >> 1};
    }
    return v;
  }
};

// A batch's operands of the product: as q and p relative to its own centre, with the moments; or, as `other` says, of its rows as q relative
// to another batch's, unless neither of the two has one. A block has a square of 32 Gaussians by 32 dimensions, which it transposes by way
// of shared memory, a warp lines of it, a lane a dimension as it loads and a Gaussian as it stores; or else 8 Gaussians' sums, a warp one,
// a lane every 32nd of its dimensions.
struct PrepareDiagonal {
  Diagonal g;
  const Centre *centre; // null where there is none
  ProductRows to;
  const int *other; // whether that one has a centre

  struct Shared {
    double mean[LANES][LANES + 1], scale[LANES][LANES + 1];
  };

  struct Measured {
    LogDeterminant all;
    ProductSums sums;
    int beyond32 = 0, beyond64 = 0, tiny32 = 0, tiny64 = 0, isCentred = 0;

    KB_FN Measured operator+(const Measured &o) const {
      return {all + o.all, sums + o.sums, beyond32 | o.beyond32, beyond64 | o.beyond64, tiny32 | o.tiny32, tiny64 | o.tiny64,
              isCentred | o.isCentred};
    }
  };

  KB_FN const Centre *at(int h) const { return centre == nullptr ? nullptr : centre + h; }

  KB_FN int dimensions() const { return g.product ? g.depth / 2 : g.depth; }

  KB_FN int64_t squares() const { return ceilDiv(to.padded, LANES) * ceilDiv(dimensions(), LANES); }

  int64_t blocks() const { return squares() + ceilDiv(to.padded, WARPS); }

  template <class Block>
  KB_FN void operator()(Block &block) const {
    if (other != nullptr && !*other && !*g.isCentred) {
      return;
    }
    if (block.index < squares()) {
      transpose(block);
    } else {
      measure(block, to.first + (block.index - squares()) * WARPS);
    }
  }

  template <class Block>
  KB_FN void transpose(Block &block) const {
    Shared &square = block.template shared<Shared>();
    int64_t across = ceilDiv(to.padded, LANES);
    int64_t n0 = block.index % across * LANES;
    int h0 = (int)(block.index / across) * LANES;
    block.each([&](int t) {
      for (int n = t / LANES, h = h0 + t % LANES; n < LANES; n += WARPS) {
        int64_t i = to.first + n0 + n;
        bool within = i < g.size && h < g.dimension;
        square.mean[n][t % LANES] = within ? g.meanAt(i, h) : 0;
        square.scale[n][t % LANES] = within ? g.scaleAt(i, h) : 0;
      }
    });
    block.lanes([&](int t) {
      int64_t column = n0 + t % LANES;
      for (int n = t / LANES; n < LANES && h0 + n < dimensions() && column < to.padded; n += WARPS) {
        bool within = to.first + column < g.size && h0 + n < g.dimension;
        store(h0 + n, column, square.mean[t % LANES][n], square.scale[t % LANES][n], within);
      }
    });
  }

  KB_FN void store(int h, int64_t column, double m, double s, bool within) const {
    if (!g.product) {
      int64_t k = h * g.padded + column;
      g.operands[k] = (float)m;
      g.operands[k + g.depth * g.padded] = within ? (float)variance(g.kind, s) : 0;
      g.operands[k + 2 * g.depth * g.padded] = within ? (float)precision(g.kind, s) : 0;
      return;
    }
    double *a = to.values + 2 * h * to.padded + column;
    double *b = g.b + 2 * h * g.padded + column;
    Relative q = within ? Relative(at(h), false, g.kind, m, s) : Relative();
    a[0] = fma(q.d, q.d, q.excess);
    a[to.padded] = q.d;
    if (other == nullptr) {
      Relative p = within ? Relative(at(h), true, g.kind, m, s) : Relative();
      b[0] = 0.5 * p.excess;
      b[g.padded] = -p.d * p.ratio;
    }
  }

  template <class Block>
  KB_FN void measure(Block &block, int64_t first) const {
    typename Block::template Own<Measured> own(block);
    block.lanes([&](int t) {
      int64_t i = first + t / LANES;
      for (int h = t % LANES; i < g.size && h < g.dimension; h += LANES) {
        add(own[t], h, g.meanAt(i, h), g.scaleAt(i, h));
      }
    });
    block.reduce(own);
    block.lanes([&](int t) {
      int64_t i = first + t / LANES;
      if (t % LANES != 0 || i - to.first >= to.padded) {
        return;
      }
      const ProductSums &sums = own[t].sums;
      if (other == nullptr && i < g.size) {
        g.moments[i] = moments(own[t]);
      }
      double held = i < g.size ? g.moments[i].held64 : 0;
      if (g.product) {
        to.terms[i - to.first] = sums.row(g.kind, held, g.dimension, g.wide);
      }
      if (g.product && other == nullptr) {
        g.columns[i] = sums.column(g.kind, held, g.dimension, g.wide);
        if (i == 0) {
          *g.isCentred = own[t].isCentred;
        }
      }
    });
  }

  KB_FN void add(Measured &own, int h, double m, double s) const {
    const Centre *c = at(h);
    if (g.product && !isNear(c)) {
      own.sums.far.add(g.kind, s);
    }
    if (g.product) {
      own.sums.addQ(c, Relative(c, false, g.kind, m, s));
    }
    if (other != nullptr) {
      return;
    }
    own.all.add(g.kind, s); // in this order whatever is near, so that it depends on the Gaussian alone
    if (g.product) {
      own.sums.addP(c, Relative(c, true, g.kind, m, s));
      own.isCentred |= c != nullptr && (c->isNear || c->mean != 0);
    }
    own.beyond32 |= isBeyond(g.kind, s, RANGE32);
    own.beyond64 |= isBeyond(g.kind, s, RANGE64);
    // Differences of a batch of float are no smaller than its numbers, less 24 bits.
    double share = fabs(m) * inverseStd(g.kind, s);
    double state = g.kind == LOG_VARIANCE ? fabs(s) : 1;
    double less = g.wide ? 0x1p53 : 0x1p24;
    own.tiny32 |= isBetween(share, less * 0x1p-54) || isBetween(state, less * 0x1p-54);
    own.tiny64 |= isBetween(share, less * 0x1p-453) || isBetween(state, less * 0x1p-453);
  }

  KB_FN static bool isBetween(double x, double most) { return x > 0 && x < most; }

  KB_FN Moments moments(const Measured &own) const {
    Moments m;
    m.logDet = own.all.value(g.kind);
    m.logDetBound = own.all.bound(g.kind);
    m.held32 = own.beyond32 ? FLAG : 0;
    m.held64 = own.beyond64 ? FLAG : 0;
    m.least32 = m.held32 + (own.tiny32 ? g.dimension * 0x1p-100 : 0);
    m.least64 = m.held64 + (own.tiny64 ? g.dimension * 0x1p-900 : 0);
    return m;
  }
};

KB_FN float fusedMultiplyAdd(float a, float b, float c) { return fmaf(a, b, c); }

KB_FN double fusedMultiplyAdd(double a, double b, double c) { return fma(a, b, c); }

// Tiles of float for devices whose double is slow: R = Σ_h [(μq − μp)² + vq]·(1/vp) by differences, so large means do not cancel. A
// block has a tile of 64², a thread MICRO × MICRO entries of it.
struct DifferenceTiles {
  static constexpr int MICRO = 4;
  static constexpr int TILE = 16 * MICRO;
  static constexpr int DEPTH = 8;
  static constexpr int STAGES = 2;

  using V = Vec<float, MICRO>;
  using Sums = ChunkSums<float, MICRO>;

  struct Stage {
    V rowMean[DEPTH][16], rowVariance[DEPTH][16], columnMean[DEPTH][16], columnPrecision[DEPTH][16];
  };

  struct Shared {
    Stage stages[STAGES];
    int flagged;
  };

  struct Terms {
    double offset, noise;
  };

  Diagonal q, p;
  double margin;
  int same;
  Tiling tiling;
  Output out;
  Flags flags;

  int64_t blocks() const { return tiling.count(); }

  template <class Block>
  KB_FN void operator()(Block &block) const {
    Shared &shared = block.template shared<Shared>();
    typename Block::template Own<Sums> own(block);
    Pair corner = tiling.corner(block.index);
    int stages = q.depth / DEPTH;
    block.lanes([&](int t) {
      own[t].clear();
      if (t == 0) {
        shared.flagged = 0;
      }
      load(block, t, shared.stages[0], 0, corner);
    });
    for (int s = 0; s < stages; s++) {
      block.each([&](int t) {
        load(block, t, shared.stages[(s + 1) % STAGES], s + 1, corner);
        block.template wait<1>(t);
      });
      block.each([&](int t) {
        KB_UNROLL_4 for (int h = 0; h < DEPTH; h++) step(shared.stages[s % STAGES], h, t, own[t]);
        if ((s + 1) * DEPTH % CHUNK == 0 || s + 1 == stages) {
          own[t].fold();
        }
      });
    }
    flags.record(block, shared.flagged, [&](int t) { finish(block, shared, t, own[t], corner); });
  }

  template <class Block>
  KB_FN void load(Block &block, int t, Stage &to, int s, Pair corner) const {
    int h = t / 16;
    if (s * DEPTH < q.depth && h < DEPTH) {
      int64_t row = (s * DEPTH + h) * q.padded + corner.i + t % 16 * MICRO;
      int64_t column = (s * DEPTH + h) * p.padded + corner.j + t % 16 * MICRO;
      block.copy(t, &to.rowMean[h][t % 16], q.operand(0) + row);
      block.copy(t, &to.rowVariance[h][t % 16], q.operand(1) + row);
      block.copy(t, &to.columnMean[h][t % 16], p.operand(0) + column);
      block.copy(t, &to.columnPrecision[h][t % 16], p.operand(2) + column);
    }
    block.commit(t);
  }

  // Rows go by t / 16, columns by t % 16.
  KB_FN static void step(const Stage &s, int h, int t, Sums &a) {
    V mq = s.rowMean[h][t / 16];
    V vq = s.rowVariance[h][t / 16];
    V mp = s.columnMean[h][t % 16];
    V rp = s.columnPrecision[h][t % 16];
    KB_UNROLL for (int r = 0; r < MICRO; r++) {
      KB_UNROLL for (int c = 0; c < MICRO; c++) {
        float d = mq.x[r] - mp.x[c];
        a.chunk[r][c] = fmaf(fmaf(d, d, vq.x[r]), rp.x[c], a.chunk[r][c]);
      }
    }
  }

  template <class Block>
  KB_FN void finish(Block &block, Shared &shared, int t, const Sums &sums, Pair corner) const {
    const Region &region = tiling.region;
    double unit = unit32();
    bool isWhole = out.hasRuns(region, corner, TILE, TILE, MICRO);
    int64_t j = corner.j + t % 16 * MICRO;
    Terms column[MICRO];
    KB_UNROLL for (int n = 0; n < MICRO; n++) {
      int64_t within = j + n < p.size ? j + n : p.size - 1;
      column[n] = {p.offsetP(within, false), p.noiseP(within, unit)};
    }
    uint64_t mask = 0;
    KB_UNROLL for (int r = 0; r < MICRO; r++) {
      int64_t i = corner.i + t / 16 * MICRO + r;
      if (i < region.row0 || i >= region.rowEnd) {
        continue;
      }
      Terms row = {q.offsetQ(i, false), q.noiseQ(i, unit)};
      double kl[MICRO];
      float rounded[MICRO];
      KB_UNROLL for (int n = 0; n < MICRO; n++) {
        kl[n] = 0.5 * sums.total(r, n) + (column[n].offset + row.offset);
        if (same && i == j + n) {
          kl[n] = 0;
        } else if (!isCertain(kl[n], column[n].noise + row.noise, margin)) {
          kl[n] = FLAG;
          mask |= (uint64_t)region.has(i, j + n) << (r * MICRO + n);
        }
        rounded[n] = (float)kl[n];
      }
      if (isWhole) {
        out.storeRun(out.at(i, j), kl, rounded);
      } else {
        out.store(region, i, j, kl, rounded);
      }
    }
    flags.append(block, shared.flagged, mask, [&](int bit) {
      return (t / 16 * MICRO + bit / MICRO) * TILE + t % 16 * MICRO + bit % MICRO;
    });
  }
};

} // namespace kullback
