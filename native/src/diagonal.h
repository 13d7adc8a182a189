// Diagonal batches: what a device keeps of them, its preparation, and tiles in difference form.
#pragma once

#include "product.h"

namespace kullback {

// By Gaussian. `held32` and `held64` are 0, or NaN where a variance is beyond what forms in float or double hold; `least32` and
// `least64` likewise, and above what the near form loses to underflow where it may lose something.
struct Moments {
  double logDet, logDetBound, held32, held64, least32, least64;
};

// A diagonal batch in device memory:
//
//     mean, scale   [N][D]             as given
//     moments       [N]
//
// and for the product, of which dimension h has the terms 2h and 2h + 1, in double
//
//     a             [depth][padded]    v + μ², μ
//     b             [depth][padded]    r/2, −μ r, with r = 1/v
//     rows, columns [padded]
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

// The product's error. With u a unit of rounding, A = ½R and w = Σ μp² r:
//
//     operands       v + μ² is made to 4u, r to 3u, μ r to 4u: a product of two to 7u of itself
//     sum            n u of the sum of magnitudes, n = roundings(2D): however it is ordered
//     offsetP        ½w, of terms that are positive, to (D/32 + 16) u; and the logarithm of the determinant
//     last additions u·KL and 4u of the offsets
//
// The magnitudes are ½ Σ r (v + μq² + 2 |μq μp|). With d = μq − μp, μq² ≤ 2d² + 2μp² and 2 |μq μp| ≤ d² + 3μp², so they are at most
// 3A + 5w/2; and A = KL − offsetQ − offsetP + ½w. The means need no centre: 3u·n·w is 1e-5 of KL only where means are thousands of
// their standard deviations from 0, and without one an entry depends on its two Gaussians alone.
KB_FN double productUnits(int dimension, bool wide) { return roundings(2 * (int64_t)dimension, wide) + 7; }

// What multiplies the weights: 3A + 5w/2 without KL is three times logDetQ + D/2 − logDetP + 5w/6.
KB_FN double productShare(int dimension, bool wide) { return PRODUCT_UNIT * 3 * productUnits(dimension, wide); }

// The share of KL in it.
KB_FN double productUnit(int dimension, bool wide) { return productShare(dimension, wide) + PRODUCT_UNIT; }

// Of what is added up last, of that size: the additions, and what comparing in float may lose.
KB_FN double lastNoise(double size, int dimension, bool wide) {
  return (4 * PRODUCT_UNIT + productShare(dimension, wide) * FLOAT_SLACK) * size;
}

KB_FN RowTerms productRow(const Moments &m, int dimension, bool wide) {
  double noise = m.logDetBound + lastNoise(fabs(m.logDet), dimension, wide);
  return {m.held64 - m.logDet, upper(noise), upper(m.logDet)};
}

KB_FN ColumnTerms productColumn(const Moments &m, double w, int dimension, bool wide) {
  double size = fabs(m.logDet) + 0.5 * dimension + w;
  double noise = m.logDetBound + lastNoise(size, dimension, wide) + PRODUCT_UNIT * (dimension / 32.0 + 16) * w;
  return {m.held64 + m.logDet - 0.5 * dimension + 0.5 * w, upper(noise), upper(0.5 * dimension - m.logDet + 5.0 / 6 * w), 0, 0};
}

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

// The operands, transposed by way of shared memory: a block has a square of 32 Gaussians by 32 dimensions, a warp lines of it, a lane a
// dimension as it loads and a Gaussian as it stores.
template <class T>
struct TransposeDiagonal {
  Diagonal g;

  struct Shared {
    T mean[LANES][LANES + 1], scale[LANES][LANES + 1];
  };

  KB_FN int dimensions() const { return g.product ? g.depth / 2 : g.depth; }

  int64_t blocks() const { return ceilDiv(g.padded, LANES) * ceilDiv(dimensions(), LANES); }

  template <class Block>
  KB_FN void operator()(Block &block) const {
    Shared &square = block.template shared<Shared>();
    int64_t across = ceilDiv(g.padded, LANES);
    int64_t i0 = block.index % across * LANES;
    int h0 = (int)(block.index / across) * LANES;
    block.each([&](int t) {
      for (int n = t / LANES, h = h0 + t % LANES; n < LANES; n += WARPS) {
        bool within = i0 + n < g.size && h < g.dimension;
        int64_t k = (i0 + n) * g.dimension + h;
        square.mean[n][t % LANES] = within ? ((const T *)g.mean)[k] : 0;
        square.scale[n][t % LANES] = within ? ((const T *)g.scale)[k] : 0;
      }
    });
    block.lanes([&](int t) {
      int64_t i = i0 + t % LANES;
      for (int n = t / LANES; n < LANES && h0 + n < dimensions() && i < g.padded; n += WARPS) {
        bool within = i < g.size && h0 + n < g.dimension;
        double m = square.mean[t % LANES][n];
        double v = within ? variance(g.kind, square.scale[t % LANES][n]) : 0;
        double r = within ? precision(g.kind, square.scale[t % LANES][n]) : 0;
        if (g.product) {
          int64_t k = 2 * (h0 + n) * g.padded + i;
          g.a[k] = fma(m, m, v);
          g.a[k + g.padded] = m;
          g.b[k] = 0.5 * r;
          g.b[k + g.padded] = -m * r;
        } else {
          int64_t k = (h0 + n) * g.padded + i;
          g.operands[k] = (float)m;
          g.operands[k + g.depth * g.padded] = (float)v;
          g.operands[k + 2 * g.depth * g.padded] = (float)r;
        }
      }
    });
  }
};

// The moments and what the product knows of a Gaussian: a warp has one, a lane every 32nd of its dimensions.
struct MeasureDiagonal {
  Diagonal g;

  struct Measured {
    LogProduct product;
    CompensatedSum sum;
    double w = 0;
    int beyond32 = 0, beyond64 = 0, tiny32 = 0, tiny64 = 0;

    KB_FN Measured operator+(Measured o) const {
      o.product = product + o.product;
      o.sum = sum + o.sum;
      o.w += w;
      o.beyond32 |= beyond32;
      o.beyond64 |= beyond64;
      o.tiny32 |= tiny32;
      o.tiny64 |= tiny64;
      return o;
    }
  };

  int64_t blocks() const { return ceilDiv(g.product ? g.padded : g.size, WARPS); }

  template <class Block>
  KB_FN void operator()(Block &block) const {
    typename Block::template Own<Measured> own(block);
    int64_t first = block.index * WARPS;
    block.lanes([&](int t) {
      int64_t i = first + t / LANES;
      for (int h = t % LANES; i < g.size && h < g.dimension; h += LANES) {
        measure(own[t], g.meanAt(i, h), g.scaleAt(i, h));
      }
    });
    block.reduce(own);
    block.lanes([&](int t) {
      int64_t i = first + t / LANES;
      if (t % LANES != 0 || i >= g.padded) {
        return;
      }
      Moments m = {};
      if (i < g.size) {
        m = g.moments[i] = moments(own[t]);
      }
      if (g.product) {
        g.rows[i] = productRow(m, g.dimension, g.wide);
        g.columns[i] = productColumn(m, own[t].w, g.dimension, g.wide);
      }
    });
  }

  KB_FN void measure(Measured &own, double m, double s) const {
    own.w = fma(m * m, precision(g.kind, s), own.w);
    own.beyond32 |= isBeyond(g.kind, s, RANGE32);
    own.beyond64 |= isBeyond(g.kind, s, RANGE64);
    // Differences of a batch of float are no smaller than its numbers, less 24 bits.
    double share = fabs(m) * inverseStd(g.kind, s);
    double state = g.kind == LOG_VARIANCE ? fabs(s) : 1;
    double less = g.wide ? 0x1p53 : 0x1p24;
    own.tiny32 |= isBetween(share, less * 0x1p-54) || isBetween(state, less * 0x1p-54);
    own.tiny64 |= isBetween(share, less * 0x1p-453) || isBetween(state, less * 0x1p-453);
    if (g.kind == LOG_VARIANCE) {
      own.sum.add(s);
    } else {
      own.product.multiply(s);
    }
  }

  KB_FN static bool isBetween(double x, double most) { return x > 0 && x < most; }

  KB_FN Moments moments(const Measured &all) const {
    Moments m;
    if (g.kind == LOG_VARIANCE) {
      m.logDet = 0.5 * (all.sum.sum + all.sum.rest);
      m.logDetBound = 0x1p-53 * 2 * fabs(m.logDet);
    } else {
      m.logDet = (g.kind == STD ? 1 : g.kind == VARIANCE ? 0.5 : -0.5) * all.product.log();
      m.logDetBound = 0x1p-53 * (g.dimension + 16 + 4 * fabs(m.logDet));
    }
    m.held32 = all.beyond32 ? FLAG : 0;
    m.held64 = all.beyond64 ? FLAG : 0;
    m.least32 = m.held32 + (all.tiny32 ? g.dimension * 0x1p-100 : 0);
    m.least64 = m.held64 + (all.tiny64 ? g.dimension * 0x1p-900 : 0);
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
