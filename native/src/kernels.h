// The kernels, as bodies that a device and its emulation run alike.
//
// A body is a plain struct of arguments with `template <class Block> void operator()(Block &) const`, the work of one block of
// THREADS threads. A Block has
//
//     index                    of the block
//     each(f), lanes(f)        f(t) for every thread t, with and without a barrier after it
//     Own<T> x(block); x[t]    a thread's own variable
//     shared<T>()              the block's shared memory, once in a body
//     reduce(own)              leaves the sum (operator+) over each warp with all its threads, in a fixed order
//     add(counter)             the counter before it was atomically incremented
//     copy(t, to, from, n), commit(t), wait<k>(t)
//                              asynchronous copies to shared memory, in groups; wait until at most k groups are under way
//
// The macro-loop PairTiles serves every product: Core says what is loaded, multiplied and judged; Epilogue what becomes of it.
#pragma once

#include "numerics.h"

namespace kullback {

constexpr int THREADS = 256;
constexpr int WARPS = THREADS / LANES;

// Batches are padded to whole tiles at any first row that is a multiple of ALIGN.
constexpr int64_t ALIGN = 4;
constexpr int64_t PADDING = 128;

KB_FN constexpr int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

KB_FN constexpr int64_t roundUp(int64_t a, int64_t b) { return ceilDiv(a, b) * b; }

// W values that are loaded and stored together.
template <class T, int W>
struct alignas(sizeof(T) * W < 16 ? sizeof(T) * W : 16) Vec {
  T x[W];
};

struct Sum {
  double x = 0;

  KB_FN Sum operator+(Sum o) const {
    o.x += x;
    return o;
  }
};

// ---- Diagonal batches ----

// By Gaussian. `held32` and `held64` are 0, or NaN where a variance is beyond what float or double tiles hold.
struct Moments {
  double logDet, logDetBound, held32, held64;
};

// A diagonal batch in device memory:
//
//     mean, scale   [N][D]             as given
//     operands      3 × [depth][padded]  μ, v and 1/v, by dimension; zero where they pad
//     moments       [N]
struct Diagonal {
  const void *mean, *scale;
  void *operands;
  Moments *moments;
  int64_t size, padded;
  int dimension, depth, kind, wide;

  KB_FN double meanAt(int64_t i, int h) const { return at(mean, i, h); }

  KB_FN double scaleAt(int64_t i, int h) const { return at(scale, i, h); }

  KB_FN double at(const void *values, int64_t i, int h) const {
    int64_t k = i * dimension + h;
    return wide ? ((const double *)values)[k] : ((const float *)values)[k];
  }

  template <class T>
  KB_FN T *operand(int which) const {
    return (T *)operands + which * depth * padded;
  }

  // With S + D of a pair, KL = ½(S + D) + offsetQ + offsetP, and its error is at most unit·KL + noiseQ + noiseP.

  KB_FN double offsetQ(int64_t i, bool pairWide) const { return held(i, pairWide) - moments[i].logDet; }

  KB_FN double offsetP(int64_t i, bool pairWide) const {
    return held(i, pairWide) + moments[i].logDet - 0.5 * dimension;
  }

  KB_FN double noiseQ(int64_t i, double unit) const {
    return moments[i].logDetBound + unit * (0.5 * dimension + moments[i].logDet);
  }

  KB_FN double noiseP(int64_t i, double unit) const { return moments[i].logDetBound - unit * moments[i].logDet; }

  KB_FN double held(int64_t i, bool pairWide) const { return pairWide ? moments[i].held64 : moments[i].held32; }
};

// N(0, I), as the p of a pair.
struct UnitNormal {
  int kind, dimension;
  static constexpr int wide = 0;

  KB_FN double meanAt(int64_t, int) const { return 0; }
  KB_FN double scaleAt(int64_t, int) const { return unitScale(kind); }
  KB_FN double offsetP(int64_t, bool) const { return -0.5 * dimension; }
  KB_FN double noiseP(int64_t, double) const { return 0; }
};

// The operands, transposed by way of shared memory in squares of 32.
template <class T>
struct TransposeDiagonal {
  Diagonal g;

  struct Square {
    T mean[LANES][LANES + 1], scale[LANES][LANES + 1];
  };

  int64_t blocks() const { return ceilDiv(g.padded, LANES) * ceilDiv(g.depth, LANES); }

  template <class Block>
  KB_FN void operator()(Block &block) const {
    Square &square = block.template shared<Square>();
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
      for (int n = t / LANES; n < LANES && h0 + n < g.depth && i < g.padded; n += WARPS) {
        bool within = i < g.size && h0 + n < g.dimension;
        double s = square.scale[t % LANES][n];
        int64_t k = (h0 + n) * g.padded + i;
        g.template operand<T>(0)[k] = square.mean[t % LANES][n];
        g.template operand<T>(1)[k] = within ? (T)variance(g.kind, s) : 0;
        g.template operand<T>(2)[k] = within ? (T)precision(g.kind, s) : 0;
      }
    });
  }
};

// The moments, by a warp a Gaussian.
struct MeasureDiagonal {
  Diagonal g;

  struct Measured {
    LogProduct product;
    CompensatedSum sum;
    bool beyond32 = false, beyond64 = false;

    KB_FN Measured operator+(Measured o) const {
      o.product = product + o.product;
      o.sum = sum + o.sum;
      o.beyond32 |= beyond32;
      o.beyond64 |= beyond64;
      return o;
    }
  };

  int64_t blocks() const { return ceilDiv(g.size, WARPS); }

  template <class Block>
  KB_FN void operator()(Block &block) const {
    typename Block::template Own<Measured> own(block);
    int64_t first = block.index * WARPS;
    block.lanes([&](int t) {
      int64_t i = first + t / LANES;
      for (int h = t % LANES; i < g.size && h < g.dimension; h += LANES) {
        double s = g.scaleAt(i, h);
        own[t].beyond32 |= isBeyond(g.kind, s, RANGE32);
        own[t].beyond64 |= isBeyond(g.kind, s, RANGE64);
        if (g.kind == LOG_VARIANCE) {
          own[t].sum.add(s);
        } else {
          own[t].product.multiply(s);
        }
      }
    });
    block.reduce(own);
    block.lanes([&](int t) {
      int64_t i = first + t / LANES;
      if (t % LANES == 0 && i < g.size) {
        g.moments[i] = moments(own[t]);
      }
    });
  }

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
    return m;
  }
};

// ---- Pairs, tile by tile ----

// Rows [row0, rowEnd) and columns [column0, columnEnd) of the matrix.
struct Region {
  int64_t row0, rowEnd, column0, columnEnd;

  KB_FN int64_t rows() const { return rowEnd - row0; }
  KB_FN int64_t columns() const { return columnEnd - column0; }
};

// The result, where a pair's divergence goes.
struct Output {
  void *data;
  int64_t stride, row0, column0;
  int wide;

  KB_FN int64_t at(int64_t i, int64_t j) const { return (i - row0) * stride + (j - column0); }

  KB_FN void put(int64_t i, int64_t j, double kl) const {
    if (wide) {
      ((double *)data)[at(i, j)] = kl;
    } else {
      ((float *)data)[at(i, j)] = (float)kl;
    }
  }

  KB_FN bool isFlagged(int64_t i, int64_t j) const {
    double kl = wide ? ((const double *)data)[at(i, j)] : ((const float *)data)[at(i, j)];
    return kl != kl;
  }
};

template <class T, int W>
KB_FN void storeVector(T *to, const Vec<T, W> &values) {
  *(Vec<T, W> *)to = values;
}

#ifdef __CUDA_ARCH__
// Left to itself the compiler stores the elements one by one.

KB_FN void storeVector(float *to, const Vec<float, 2> &v) {
  asm volatile("st.v2.f32 [%0], {%1, %2};" ::"l"(to), "f"(v.x[0]), "f"(v.x[1]) : "memory");
}

KB_FN void storeVector(float *to, const Vec<float, 4> &v) {
  asm volatile("st.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to), "f"(v.x[0]), "f"(v.x[1]), "f"(v.x[2]), "f"(v.x[3])
               : "memory");
}

KB_FN void storeVector(double *to, const Vec<double, 2> &v) {
  asm volatile("st.v2.f64 [%0], {%1, %2};" ::"l"(to), "d"(v.x[0]), "d"(v.x[1]) : "memory");
}

KB_FN void storeVector(double *to, const Vec<double, 4> &v) {
  storeVector(to, Vec<double, 2>{{v.x[0], v.x[1]}});
  storeVector(to + 2, Vec<double, 2>{{v.x[2], v.x[3]}});
}
#endif

// The epilogue of the matrix itself: stores W entries of row i from column j on, those within the region.
struct Store {
  Output out;

  template <int W>
  KB_FN void operator()(const Region &r, int64_t i, int64_t j, const double (&kl)[W]) const {
    if (out.wide) {
      store<double>(r, i, j, kl);
    } else {
      store<float>(r, i, j, kl);
    }
  }

  template <class O, int W>
  KB_FN void store(const Region &r, int64_t i, int64_t j, const double (&kl)[W]) const {
    O *to = (O *)out.data + out.at(i, j);
    if (j >= r.column0 && j + W <= r.columnEnd && (uintptr_t)to % alignof(Vec<O, W>) == 0) {
      Vec<O, W> all;
      KB_UNROLL for (int n = 0; n < W; n++) all.x[n] = (O)kl[n];
      storeVector(to, all);
      return;
    }
    KB_UNROLL for (int n = 0; n < W; n++) {
      if (j + n >= r.column0 && j + n < r.columnEnd) {
        to[n] = (O)kl[n];
      }
    }
  }
};

// Where thread t's values lie in a side of a tile of 16·MICRO: MICRO/W vectors of W, so that the 16 threads of a side read
// shared memory without bank conflicts. Rows go by t / 16, columns by t % 16.
template <int W>
KB_FN constexpr int vectorOf(int group, int thread) {
  return group * 16 + thread;
}

// The walk over tiles: bands of 16 tiles of rows, column by column, so that what one band reads stays in the L2 cache.
struct TileAt {
  int64_t row, column;

  KB_FN TileAt(int64_t index, int64_t rowTiles, int64_t columnTiles) {
    constexpr int64_t BAND = 16;
    int64_t band = index / (BAND * columnTiles) * BAND;
    int64_t height = rowTiles - band < BAND ? rowTiles - band : BAND;
    int64_t rest = index - band * columnTiles;
    row = band + rest % height;
    column = rest / height;
  }
};

template <class Core, class Epilogue>
struct PairTiles {
  static constexpr int TILE = Core::TILE;
  static constexpr int MICRO = Core::MICRO;
  static constexpr int W = Core::W;

  Core core;
  Region region;
  Epilogue epilogue;
  int same;

  KB_FN int64_t rowStart() const { return region.row0 / ALIGN * ALIGN; }
  KB_FN int64_t columnStart() const { return region.column0 / ALIGN * ALIGN; }
  KB_FN int64_t rowTiles() const { return ceilDiv(region.rowEnd - rowStart(), TILE); }
  KB_FN int64_t columnTiles() const { return ceilDiv(region.columnEnd - columnStart(), TILE); }

  int64_t blocks() const { return rowTiles() * columnTiles(); }

  template <class Block>
  KB_FN void operator()(Block &block) const {
    typename Core::Shared &shared = block.template shared<typename Core::Shared>();
    typename Block::template Own<typename Core::Sums> own(block);
    TileAt tile(block.index, rowTiles(), columnTiles());
    int64_t row = rowStart() + tile.row * TILE;
    int64_t column = columnStart() + tile.column * TILE;
    int stages = core.stages();
    block.lanes([&](int t) {
      own[t].clear();
      core.begin(t, shared, row);
      core.load(block, t, shared.stages[0], 0, row, column);
      block.commit(t);
    });
    for (int s = 0; s < stages; s++) {
      block.each([&](int t) {
        if (s + 1 < stages) {
          core.load(block, t, shared.stages[(s + 1) % 2], s + 1, row, column);
        }
        block.commit(t);
        block.template wait<1>(t);
      });
      block.each([&](int t) {
        KB_UNROLL_4 for (int h = 0; h < Core::DEPTH; h++) Core::step(shared.stages[s % 2], h, t, own[t]);
        if ((s + 1) * Core::DEPTH % Core::CHUNK == 0 || s + 1 == stages) {
          own[t].fold();
        }
      });
    }
    block.lanes([&](int t) { finish(shared, t, own[t], row, column); });
  }

  KB_FN void finish(
      const typename Core::Shared &shared, int t, const typename Core::Sums &sums, int64_t row, int64_t column) const {
    KB_UNROLL for (int g = 0; g < MICRO / W; g++) {
      int64_t j = column + vectorOf<W>(g, t % 16) * W;
      typename Core::Column p[W];
      KB_UNROLL for (int n = 0; n < W; n++) p[n] = core.column(j + n < region.columnEnd ? j + n : region.columnEnd - 1);
      KB_UNROLL for (int r = 0; r < MICRO; r++) {
        int local = vectorOf<W>(r / W, t / 16) * W + r % W;
        int64_t i = row + local;
        if (i >= region.row0 && i < region.rowEnd) {
          typename Core::Row q = core.row(shared, local, i);
          double kl[W];
          KB_UNROLL for (int n = 0; n < W; n++) {
            kl[n] = same && i == j + n ? 0 : core.judge(q, p[n], sums.total(r, g * W + n));
          }
          epilogue(region, i, j, kl);
        }
      }
    }
  }
};

// A thread's MICRO × MICRO sums: of whole chunks, and of the present one. What rounding takes from the former (D. E. Knuth's
// TwoSum) the next chunk begins with, so chunks add up as if in twice the precision, to some D·u² of S. Promoting to double
// instead takes half as many registers again, more than there are, and time where sums of double are slow.
template <class T, int MICRO>
struct ChunkSums {
  T chunk[MICRO][MICRO], sum[MICRO][MICRO];

  KB_FN void clear() {
    KB_UNROLL for (int r = 0; r < MICRO; r++) {
      KB_UNROLL for (int c = 0; c < MICRO; c++) chunk[r][c] = sum[r][c] = 0;
    }
  }

  KB_FN void fold() {
    KB_UNROLL for (int r = 0; r < MICRO; r++) {
      KB_UNROLL for (int c = 0; c < MICRO; c++) {
        T a = sum[r][c];
        T b = chunk[r][c];
        T s = a + b;
        T z = s - a;
        chunk[r][c] = (a - (s - z)) + (b - z);
        sum[r][c] = s;
      }
    }
  }

  KB_FN double total(int r, int c) const { return (double)sum[r][c] + chunk[r][c]; }
};

KB_FN float fusedMultiplyAdd(float a, float b, float c) { return fmaf(a, b, c); }

KB_FN double fusedMultiplyAdd(double a, double b, double c) { return fma(a, b, c); }

// Diagonal pairs in difference form: S + D = Σ_h [(μq − μp)² + vq]·(1/vp). Means enter as differences, so large ones do not
// cancel.
template <class T, int MICRO_>
struct DiagonalCore {
  static constexpr int MICRO = MICRO_;
  static constexpr int TILE = 16 * MICRO;
  static constexpr int W = 16 / sizeof(T);
  static constexpr int DEPTH = 8; // two stages of the widest tile are 32 KiB
  static constexpr int CHUNK = kullback::CHUNK;
  static constexpr bool WIDE = sizeof(T) == sizeof(double);

  using V = Vec<T, W>;
  using Sums = ChunkSums<T, MICRO>;

  struct Stage {
    V rowMean[DEPTH][TILE / W], rowVariance[DEPTH][TILE / W];
    V columnMean[DEPTH][TILE / W], columnPrecision[DEPTH][TILE / W];
  };

  struct Shared {
    Stage stages[2];
  };

  struct Row {
    double offset, noise;
  };

  using Column = Row;

  Diagonal q, p;
  double unit, margin;

  KB_FN int stages() const { return q.depth / DEPTH; }

  KB_FN void begin(int, Shared &, int64_t) const {}

  template <class Block>
  KB_FN void load(Block &block, int t, Stage &to, int s, int64_t row, int64_t column) const {
    side(block, t, q, 1, s * DEPTH, row, to.rowMean, to.rowVariance);
    side(block, t, p, 2, s * DEPTH, column, to.columnMean, to.columnPrecision);
  }

  // A batch of float in a pair of double has no operands of double: they are made on the way.
  template <class Block>
  KB_FN static void side(
      Block &block, int t, const Diagonal &g, int operand, int h0, int64_t start, V (*mean)[TILE / W], V (*other)[TILE / W]) {
    if (g.wide == WIDE) {
      for (int n = t; n < DEPTH * (TILE / W); n += THREADS) {
        int h = n / (TILE / W);
        int v = n % (TILE / W);
        int64_t k = (h0 + h) * g.padded + start + v * W;
        block.copy(t, &mean[h][v], g.template operand<T>(0) + k);
        block.copy(t, &other[h][v], g.template operand<T>(operand) + k);
      }
    } else {
      for (int n = t; n < DEPTH * TILE; n += THREADS) {
        int h = n % DEPTH;
        int v = n / DEPTH;
        bool within = start + v < g.size && h0 + h < g.dimension;
        double s = within ? g.scaleAt(start + v, h0 + h) : 0;
        mean[h][v / W].x[v % W] = within ? (T)g.meanAt(start + v, h0 + h) : 0;
        other[h][v / W].x[v % W] = !within ? 0 : (T)(operand == 1 ? variance(g.kind, s) : precision(g.kind, s));
      }
    }
  }

  KB_FN static void step(const Stage &s, int h, int t, Sums &a) {
    V mq[MICRO / W], vq[MICRO / W], mp[MICRO / W], rp[MICRO / W];
    KB_UNROLL for (int g = 0; g < MICRO / W; g++) {
      mq[g] = s.rowMean[h][vectorOf<W>(g, t / 16)];
      vq[g] = s.rowVariance[h][vectorOf<W>(g, t / 16)];
      mp[g] = s.columnMean[h][vectorOf<W>(g, t % 16)];
      rp[g] = s.columnPrecision[h][vectorOf<W>(g, t % 16)];
    }
    KB_UNROLL for (int r = 0; r < MICRO; r++) {
      KB_UNROLL for (int c = 0; c < MICRO; c++) {
        T d = mq[r / W].x[r % W] - mp[c / W].x[c % W];
        T v = fusedMultiplyAdd(d, d, vq[r / W].x[r % W]);
        a.chunk[r][c] = fusedMultiplyAdd(v, rp[c / W].x[c % W], a.chunk[r][c]);
      }
    }
  }

  KB_FN Row row(const Shared &, int, int64_t i) const { return {q.offsetQ(i, WIDE), q.noiseQ(i, unit)}; }

  KB_FN Column column(int64_t j) const { return {p.offsetP(j, WIDE), p.noiseP(j, unit)}; }

  // KL of S + D, or FLAG.
  KB_FN double judge(const Row &q, const Column &p, double sum) const {
    double kl = 0.5 * sum + (p.offset + q.offset);
    return isCertain(kl, p.noise + q.noise, margin) ? kl : FLAG;
  }
};

// ---- Pairs one by one, a warp each ----

struct Pair {
  int64_t i, j;
  bool valid;
};

// KL(q_i ‖ p_j) in double: the difference form, and where its bound is not enough the stable form.
template <class P>
struct DiagonalPair {
  Diagonal q;
  P p;
  double unit, margin;
  int same;

  struct State {
    Sum sum;
    double kl = FLAG;

    KB_FN State operator+(const State &o) const {
      State all = *this;
      all.sum = sum + o.sum;
      return all;
    }
  };

  template <class Block, class At, class Put>
  KB_FN void operator()(Block &block, At at, Put put) const {
    typename Block::template Own<State> own(block);
    block.lanes([&](int t) {
      Pair x = at(t / LANES);
      own[t] = State();
      if (x.valid && !(same && x.i == x.j)) {
        own[t].sum.x = difference(x.i, x.j, t % LANES);
      }
    });
    block.reduce(own);
    block.lanes([&](int t) {
      Pair x = at(t / LANES);
      if (x.valid) {
        double kl = 0.5 * own[t].sum.x + (p.offsetP(x.j, true) + q.offsetQ(x.i, true));
        if (same && x.i == x.j) {
          own[t].kl = 0;
        } else if (isCertain(kl, q.noiseQ(x.i, unit) + p.noiseP(x.j, unit), margin)) {
          own[t].kl = kl;
        } else {
          own[t].sum.x = stable(x.i, x.j, t % LANES);
        }
      }
    });
    block.reduce(own);
    block.lanes([&](int t) {
      Pair x = at(t / LANES);
      if (x.valid && t % LANES == 0) {
        put(x, own[t].kl == own[t].kl ? own[t].kl : own[t].sum.x);
      }
    });
  }

  KB_FN double difference(int64_t i, int64_t j, int lane) const {
    double sum = 0;
    for (int h = lane; h < q.dimension; h += LANES) {
      double d = q.meanAt(i, h) - p.meanAt(j, h);
      sum = fma(fma(d, d, variance(q.kind, q.scaleAt(i, h))), precision(p.kind, p.scaleAt(j, h)), sum);
    }
    return sum;
  }

  KB_FN double stable(int64_t i, int64_t j, int lane) const {
    double sum = 0;
    for (int h = lane; h < q.dimension; h += LANES) {
      sum += stableTerm(q.meanAt(i, h), q.kind, q.scaleAt(i, h), p.meanAt(j, h), p.kind, p.scaleAt(j, h));
    }
    return sum;
  }
};

// Recomputes the flagged entries of a region, section by section of its entries in row-major order.
template <class Pairs>
struct Refine {
  static constexpr int MOST = 8 * THREADS;

  Pairs pairs;
  Region region;
  Output out;
  int section; // entries, at most MOST
  int64_t launched; // blocks

  struct Flagged {
    int count;
    int entry[MOST];
  };

  static int sectionOf(int64_t entries) { return entries < 1 << 22 ? THREADS : MOST; }

  int64_t blocks() const { return launched; }

  template <class Block>
  KB_FN void operator()(Block &block) const {
    Flagged &flagged = block.template shared<Flagged>();
    int64_t entries = region.rows() * region.columns();
    for (int64_t first = block.index * section; first < entries; first += launched * section) {
      block.each([&](int t) {
        if (t == 0) {
          flagged.count = 0;
        }
      });
      block.each([&](int t) {
        for (int n = t; n < section && first + n < entries; n += THREADS) {
          Pair x = at(first, n);
          if (out.isFlagged(x.i, x.j)) {
            flagged.entry[block.add(flagged.count)] = n;
          }
        }
      });
      int count = flagged.count;
      for (int n = 0; n < count; n += WARPS) {
        pairs(
            block,
            [&](int warp) {
              return n + warp < count ? at(first, flagged.entry[n + warp]) : Pair{0, 0, false};
            },
            [&](const Pair &x, double kl) { out.put(x.i, x.j, kl); });
      }
      block.each([](int) {}); // before the list is used again
    }
  }

  // The n-th entry of the section that begins with an entry.
  KB_FN Pair at(int64_t first, int n) const {
    int64_t columns = region.columns();
    int64_t row = first / columns;
    int64_t column = first - row * columns + n;
    int64_t more = column < columns       ? 0
                   : column < 0x7fffffff ? (uint32_t)column / (uint32_t)columns
                                         : column / columns;
    return {region.row0 + row + more, region.column0 + column - more * columns, true};
  }
};

// out[i] = KL(q_i ‖ p_i).
template <class Pairs>
struct Aligned {
  Pairs pairs;
  Output out;
  int64_t size;
  int64_t launched; // blocks

  int64_t blocks() const { return launched; }

  template <class Block>
  KB_FN void operator()(Block &block) const {
    for (int64_t first = block.index * WARPS; first < size; first += launched * WARPS) {
      pairs(
          block,
          [&](int warp) { return Pair{first + warp, first + warp, first + warp < size}; },
          [&](const Pair &x, double kl) { out.put(0, x.i, kl); });
    }
  }
};

// ---- Full covariances ----

// By Gaussian. With AB of FullCore, KL = ½AB + offsetQ + offsetP, and its error is at most
//
//     weightQ·weightP + noiseQ + noiseP + inverseError·AB
//
// where weightQ has ‖m_q‖² added for the centre of p's means. Offsets are NaN where the product cannot hold a Gaussian.
struct FullMoments {
  double offsetQ, noiseQ, weightQ;
  double offsetP, noiseP, weightP, inverseError, tolerance;
};

// A full batch in device memory, K = D(D+1)/2 + D:
//
//     mean       [N][D]         as given
//     scaleTril  [N][D(D+1)/2]  as given; and the low parts, if there are any
//     rows       [K][padded]    Σ packed, and the mean; while preparing W = L⁻¹ packed, [N][D(D+1)/2]
//     columns    [depth][padded]  P = Σ⁻¹ packed, twice what is off the diagonal, and −2 P m; m relative to the centre
//     solved     [N][D]         W m
//     triangle   [K]            row and column of entry k of a packed triangle
//     centre     [D]            the mean of the means
//     moments    [N]
struct Full {
  const double *mean, *scaleTril, *scaleTrilLow;
  double *rows, *columns, *solved, *centre;
  int *triangle;
  FullMoments *moments;
  int64_t size, padded, length; // of a packed triangle
  int dimension, k, depth, wide;

  KB_FN const double *factor(int64_t i) const { return scaleTril + i * length; }
  KB_FN const double *low(int64_t i) const { return scaleTrilLow == nullptr ? nullptr : scaleTrilLow + i * length; }
  KB_FN double *inverse(int64_t i) const { return rows + i * length; }
};

constexpr int FULL_CHUNK = 128;

// For what the first-order error bounds leave out.
constexpr double FULL_UNIT = 0x1p-53 * 1.0625;

// Roundings of a product: those of a chunk, and one for each chunk.
KB_FN double roundings(int k) { return (k < FULL_CHUNK ? k : FULL_CHUNK) + ceilDiv(k, FULL_CHUNK) + 1; }

// Error bounds, in units of rounding, with g = roundings(k), norms ‖·‖ of Frobenius, and ν(L) ≥ ‖|L||Lᵀ|‖:
//
//     product          g·‖P‖·(‖Σq‖ + 2‖mq‖² + ‖mp‖²)     as 2‖mq‖‖P mp‖ ≤ ‖P‖(‖mq‖² + ‖mp‖²)
//     Σq = LLᵀ         (D+3)·ν(Lq)·‖P‖                   L itself is rounded
//     P = WᵀW, P mp    D·ν(Wᵀ)·(‖Σq‖ + 3‖mq‖² + 5‖mp‖²)
//     m = μ − centre   4·‖P‖·(‖mq‖² + ‖mp‖²)
//
// half of which is at most weightQ·weightP + noiseP. W = Lp⁻¹ is computed such that W Lp = I + G with |G| ≤ (D+6)|W||Lp|
// (N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., 14.2.1), so G only scales what it is used for.

// The share of ‖m_q‖² in a row's weight.
KB_FN double meanWeight(int k) { return 0.5 * FULL_UNIT * (2 * roundings(k) + 4); }

// The centre, a warp a dimension, and the table of the triangle.
struct CentreFull {
  Full g;

  int64_t blocks() const { return ceilDiv(g.dimension, WARPS); }

  template <class Block>
  KB_FN void operator()(Block &block) const {
    typename Block::template Own<Sum> own(block);
    block.lanes([&](int t) {
      int64_t h = block.index * WARPS + t / LANES;
      for (int64_t i = t % LANES; h < g.dimension && i < g.size; i += LANES) {
        own[t].x += g.mean[i * g.dimension + h];
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

// W = L⁻¹, W m, −2 Wᵀ(W m) and what of the moments does not need Σ and P; a warp a Gaussian.
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
      for (int r = t % LANES; i < g.size && r < d; r += LANES) {
        double *w = g.inverse(i) + packedLength(r);
        const double *l = g.factor(i);
        invertRow(l, r, w);
        double y = 0;
        for (int c = 0; c <= r; c++) {
          y = fma(w[c], g.mean[i * d + c] - g.centre[c], y);
        }
        g.solved[i * d + r] = y;
        double mean = g.mean[i * d + r];
        double m = mean - g.centre[r];
        own[t].mahalanobis = fma(y, y, own[t].mahalanobis);
        own[t].means = fma(m, m, own[t].means);
        const double *row = l + packedLength(r);
        own[t].product.multiply(row[r]);
        bool ordinary = fabs(mean) <= FULL_MOST && row[r] >= 1 / FULL_MOST;
        for (int c = 0; c <= r; c++) {
          ordinary = ordinary && fabs(row[c]) <= FULL_MOST;
        }
        own[t].beyond |= !ordinary;
      }
    });
    block.lanes([&](int t) {
      int64_t i = first + t / LANES;
      for (int c = t % LANES; i < g.size && c < d; c += LANES) {
        own[t].l = own[t].l + normsOf(g.factor(i), c);
        own[t].w = own[t].w + normsOf(g.inverse(i), c);
        double sum = 0;
        for (int r = c; r < d; r++) {
          sum = fma(g.inverse(i)[packedLength(r) + c], g.solved[i * d + r], sum);
        }
        g.columns[(g.length + c) * g.padded + i] = -2 * sum;
      }
    });
    block.reduce(own);
    block.lanes([&](int t) {
      int64_t i = first + t / LANES;
      if (t % LANES == 0 && i < g.size) {
        g.moments[i] = moments(own[t]);
      }
    });
  }

  // Row r of W from right to left, for the residual W L − I is small that way.
  KB_FN static void invertRow(const double *l, int r, double *w) {
    w[r] = 1 / l[packedLength(r) + r];
    for (int c = r - 1; c >= 0; c--) {
      double sum = 0;
      for (int i = r; i > c; i--) {
        sum = fma(w[i], l[packedLength(i) + c], sum);
      }
      w[c] = -sum * (1 / l[packedLength(c) + c]);
    }
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
    double residual = FULL_UNIT * (d + 6) * (a < b ? a : b);
    FullMoments m;
    m.offsetQ = s.beyond ? FLAG : -logDet;
    m.noiseQ = bound + 4 * FULL_UNIT * fabs(logDet);
    m.weightQ = 0.5 * FULL_UNIT * (d + 3) * s.l.spread();
    m.offsetP = s.beyond ? FLAG : logDet + 0.5 * (s.mahalanobis - d);
    m.noiseP = bound + 4 * FULL_UNIT * (fabs(logDet) + d + s.mahalanobis) +
               0.5 * FULL_UNIT * s.means * 5 * d * s.w.spread() + residual * s.mahalanobis;
    m.weightP = 1.5 * d / roundings(g.k) * s.w.spread();
    m.inverseError = residual;
    m.tolerance = fullTolerance(s.l.norm() * s.w.norm());
    return m;
  }
};

// Entries of P = WᵀW, a thread each.
struct SquareColumns {
  Full g;

  int64_t blocks() const { return ceilDiv(g.depth * g.padded, THREADS); }

  template <class Block>
  KB_FN void operator()(Block &block) const {
    block.lanes([&](int t) {
      int64_t n = block.index * THREADS + t;
      int k = (int)(n / g.padded);
      int64_t i = n % g.padded;
      if (k >= g.depth || (i < g.size && k >= g.length && k < g.k)) {
        return; // −2 P m is there
      }
      double sum = 0;
      if (i < g.size && k < g.length) {
        int r = g.triangle[k] >> 16;
        int c = g.triangle[k] & 0xffff;
        const double *w = g.inverse(i);
        for (int l = r; l < g.dimension; l++) {
          sum = fma(w[packedLength(l) + r], w[packedLength(l) + c], sum);
        }
        sum = r == c ? sum : 2 * sum;
      }
      g.columns[n] = sum;
    });
  }
};

// Entries of Σ = LLᵀ, a thread each, and the means.
struct SquareRows {
  Full g;

  int64_t blocks() const { return ceilDiv(g.k * g.padded, THREADS); }

  template <class Block>
  KB_FN void operator()(Block &block) const {
    block.lanes([&](int t) {
      int64_t n = block.index * THREADS + t;
      int k = (int)(n / g.padded);
      int64_t i = n % g.padded;
      if (k >= g.k) {
        return;
      }
      double value = 0;
      if (i < g.size && k >= g.length) {
        value = g.mean[i * g.dimension + (k - g.length)];
      } else if (i < g.size) {
        int r = g.triangle[k] >> 16;
        int c = g.triangle[k] & 0xffff;
        const double *l = g.factor(i);
        for (int h = 0; h <= c; h++) {
          value = fma(l[packedLength(r) + h], l[packedLength(c) + h], value);
        }
      }
      g.rows[n] = value;
    });
  }
};

// Completes the moments by the norms of Σ and P: a warp of 32 Gaussians, eight shares of the entries.
struct FinishFull {
  Full g;

  struct Shared {
    double rows[WARPS][LANES], columns[WARPS][LANES];
  };

  int64_t blocks() const { return ceilDiv(g.size, LANES); }

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
        columns += b * b * (diagonal ? 1 : 0.5);
      }
      shared.rows[t / LANES][t % LANES] = rows;
      shared.columns[t / LANES][t % LANES] = columns;
    });
    block.lanes([&](int t) {
      int64_t i = block.index * LANES + t;
      if (t < LANES && i < g.size) {
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
        double units = roundings(g.k);
        double precision = sqrt(columns);
        g.moments[i].weightQ += 0.5 * FULL_UNIT * units * sqrt(rows);
        g.moments[i].weightP += precision;
        g.moments[i].noiseP += 0.5 * FULL_UNIT * means * (units + 4) * precision;
      }
    });
  }
};

// Full pairs as a matrix product, with means relative to the centre of p's:
//
//     A_i = [ Σ_q + m_q m_qᵀ, packed;                   m_q      ]
//     B_j = [ P, packed, twice what is off the diagonal; −2 P m_p ]
//
//     tr(P Σ_q) + (m_q − m_p)ᵀ P (m_q − m_p) = A_i · B_j + m_pᵀ P m_p
struct FullCore {
  static constexpr int MICRO = 4;
  static constexpr int TILE = 16 * MICRO;
  static constexpr int W = 2;
  static constexpr int DEPTH = 16;
  static constexpr int CHUNK = FULL_CHUNK;

  using V = Vec<double, W>;
  using Sums = ChunkSums<double, MICRO>;

  struct Stage {
    V row[DEPTH][TILE / W], column[DEPTH][TILE / W];
  };

  struct Shared {
    Stage stages[2];
    double weight[TILE];
  };

  struct Row {
    double offset, noise, weight;
  };

  struct Column {
    double offset, noise, weight, inverseError, tolerance;
  };

  Full q, p;
  int wide;

  KB_FN int stages() const { return p.depth / DEPTH; }

  // The rows' weights.
  KB_FN void begin(int t, Shared &shared, int64_t row) const {
    if (t < TILE && row + t < q.size) {
      double squares = 0;
      for (int h = 0; h < q.dimension; h++) {
        double m = q.rows[(q.length + h) * q.padded + row + t] - p.centre[h];
        squares += m * m;
      }
      shared.weight[t] = q.moments[row + t].weightQ + meanWeight(q.k) * squares;
    }
  }

  template <class Block>
  KB_FN void load(Block &block, int t, Stage &to, int s, int64_t row, int64_t column) const {
    for (int n = t; n < DEPTH * (TILE / W); n += THREADS) {
      int h = n / (TILE / W);
      int v = n % (TILE / W);
      block.copy(t, &to.column[h][v], p.columns + (s * DEPTH + h) * p.padded + column + v * W);
    }
    for (int n = t; n < DEPTH * TILE; n += THREADS) {
      int k = s * DEPTH + n / TILE;
      int v = n % TILE;
      to.row[n / TILE][v / W].x[v % W] = k < q.k ? entry(k, row + v) : 0;
    }
  }

  // A_ik.
  KB_FN double entry(int k, int64_t i) const {
    int rc = p.triangle[k];
    double value = q.rows[k * q.padded + i];
    double m = mean(rc >> 16, i);
    return k < q.length ? fma(m, mean(rc & 0xffff, i), value) : m;
  }

  KB_FN double mean(int h, int64_t i) const { return q.rows[(q.length + h) * q.padded + i] - p.centre[h]; }

  KB_FN static void step(const Stage &s, int h, int t, Sums &a) {
    V x[MICRO / W], y[MICRO / W];
    KB_UNROLL for (int g = 0; g < MICRO / W; g++) {
      x[g] = s.row[h][vectorOf<W>(g, t / 16)];
      y[g] = s.column[h][vectorOf<W>(g, t % 16)];
    }
    KB_UNROLL for (int r = 0; r < MICRO; r++) {
      KB_UNROLL for (int c = 0; c < MICRO; c++) {
        a.chunk[r][c] = fma(x[r / W].x[r % W], y[c / W].x[c % W], a.chunk[r][c]);
      }
    }
  }

  KB_FN Row row(const Shared &shared, int local, int64_t i) const {
    return {q.moments[i].offsetQ, q.moments[i].noiseQ, shared.weight[local]};
  }

  KB_FN Column column(int64_t j) const {
    const FullMoments &m = p.moments[j];
    return {m.offsetP, m.noiseP, m.weightP, m.inverseError, wide ? m.tolerance : FULL_FLOAT_TOLERANCE};
  }

  KB_FN double judge(const Row &q, const Column &p, double sum) const {
    double kl = 0.5 * sum + (p.offset + q.offset);
    double error = fma(p.weight, q.weight, fma(p.inverseError, sum, p.noise + q.noise));
    return isCertain(kl, error, p.tolerance) ? kl : FLAG;
  }
};

// KL(q_i ‖ p_j) by triangular solves, a column a lane, in rounds of y, 0, 1, …, 30; 31, …, 62; …
struct FullPair {
  Full q, p;
  double *scratch; // [warp][D][LANES]
  int same;

  template <class Block, class At, class Put>
  KB_FN void operator()(Block &block, At at, Put put) const {
    typename Block::template Own<Sum> own(block);
    int d = q.dimension;
    block.lanes([&](int t) {
      Pair x = at(t / LANES);
      own[t] = Sum();
      if (x.valid && !(same && x.i == x.j)) {
        double *e = scratch + (block.index * WARPS + t / LANES) * d * LANES + t % LANES;
        for (int round = 0; round <= d; round += LANES) {
          int n = round + t % LANES;
          int first = round == 0 ? 0 : round - 1;
          if (n <= d) {
            own[t].x += solveColumn(
                n == 0 ? d : n - 1, first, d, q.mean + x.i * d, q.factor(x.i), q.low(x.i), p.mean + x.j * d, p.factor(x.j),
                p.low(x.j), e, LANES);
          }
        }
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

// KL(q_i ‖ N(0, I)): the same with E = L_q − I and y = μ_q, a row a lane.
struct StandardFull {
  Full q;
  Output out;

  int64_t blocks() const { return ceilDiv(q.size, WARPS); }

  template <class Block>
  KB_FN void operator()(Block &block) const {
    typename Block::template Own<Sum> own(block);
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
