// The matrix of divergences as one matrix product in double, on tensor cores where the device has them:
//
//     KL(q_i ‖ p_j) = Σ_k a_ik b_kj + offsetQ_i + offsetP_j
//
// diagonal.h and full.h say what a, b and the offsets are.
#pragma once

#include <type_traits>

#include "tiles.h"

namespace kullback {

// What an entry's row and column know of it. Its error is at most
//
//     unit·KL + noiseQ + noiseP + weightQ·weightP + inverseError·AB,   AB ≤ 2 (KL + |offsetQ| + |offsetP|)
//
// or, with a launch's `share` of what they have of the magnitudes, which may be negative and depends on the precision of both batches,
//
//     unit·KL + noiseQ + noiseP + share·(weightQ + weightP)
//
// and it stays if that is within its tolerance. The bounds are rounded up to float; an offset is NaN where the product cannot hold a
// Gaussian.
struct alignas(16) RowTerms {
  double offset;
  float noise, weight;
};

struct alignas(16) ColumnTerms {
  double offset;
  float noise, weight;
  float inverseError, tolerance; // for batches of double
  double padding = 0;            // copied with the rest, so not left unwritten
};

// Roundings of a sum of k products: in one accumulator, or in chunks that add up with compensation (ChunkSums), which costs
// nothing that shows, however many there are.
constexpr int PRODUCT_CHUNK = 128;

KB_FN double roundings(int64_t k, bool chunked) {
  return (double)(chunked && k > PRODUCT_CHUNK ? PRODUCT_CHUNK + ceilDiv(k, PRODUCT_CHUNK) : k) + 2;
}

// Terms in a stage of shared memory; what operands are padded to.
constexpr int PRODUCT_DEPTH = 16;

constexpr int LARGEST_TILE = 128;
constexpr int SMALLEST_TILE = 32;

// A unit of rounding, and some for what bounds of first order leave out.
constexpr double PRODUCT_UNIT = 0x1p-53 * 1.0625;

// What comparing in float may lose of a term of that size.
constexpr double FLOAT_SLACK = 0x1p-20;

// A bound in float that is no less.
KB_FN float upper(double x) {
#ifdef __CUDA_ARCH__
  return __double2float_ru(x);
#else
  float y = (float)x;
  return y < x ? nextafterf(y, std::numeric_limits<float>::infinity()) : y;
#endif
}

// A thread's R × C sums: of whole chunks, and of the present one. What rounding takes from the former (D. E. Knuth's TwoSum) the next
// chunk begins with, so chunks add up as if in twice the precision, to some D·u² of the sum.
template <class T, int R, int C = R>
struct ChunkSums {
  T chunk[R][C], sum[R][C];

  KB_FN void clear() {
    KB_UNROLL for (int r = 0; r < R; r++) {
      KB_UNROLL for (int c = 0; c < C; c++) chunk[r][c] = sum[r][c] = 0;
    }
  }

  KB_FN void fold() {
    KB_UNROLL for (int r = 0; r < R; r++) {
      KB_UNROLL for (int c = 0; c < C; c++) {
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

// The same of one chunk.
template <int R, int C>
struct PlainSums {
  double chunk[R][C];

  KB_FN void clear() {
    KB_UNROLL for (int r = 0; r < R; r++) {
      KB_UNROLL for (int c = 0; c < C; c++) chunk[r][c] = 0;
    }
  }

  KB_FN void fold() {}

  KB_FN double total(int r, int c) const { return chunk[r][c]; }
};

// How the threads of a block share a tile. It is 2 × 4 warps of M × N fragments of 16 × 8, the shape of mma.m16n8k8, in which lane
// 4g + l holds (PTX ISA, "Matrix fragments for mma.m16n8k8 with .f64")
//
//     a  rows g, g + 8, g, g + 8, each at k = l, l, l + 4, l + 4
//     b  column g at k = l, l + 4
//     c  row g at columns 2l, 2l + 1, and row g + 8 at the same
//
// Fragment rows g and g + 8 are the tile's rows 2g and 2g + 1; columns g of two fragments side by side likewise. So a lane loads 16 bytes
// at once, without bank conflicts if rows in shared memory are 32 bytes longer than a multiple of 128, and of the result it has
// 4 entries in a row.
template <int M, int N>
struct FragmentMap {
  static constexpr int ROWS = 2 * 16 * M;
  static constexpr int COLUMNS = 4 * 8 * N;
  static constexpr int TWINS = N % 2 == 0 ? 2 : 1; // fragments side by side
  static constexpr int RUN = 2 * TWINS;            // entries in a row

  // Of a thread's 2M × 2N entries: where entry (r, c) is in the tile.
  KB_FN static int row(int t, int r) { return firstRow(t) + r / 2 * 16 + r % 2; }
  KB_FN static int column(int t, int c) { return firstColumn(t) + c / RUN * 8 * TWINS + t % 4 * RUN + c % RUN; }

  // Which entry is element e = 0, 1 of a row of fragment n.
  KB_FN static constexpr int entry(int n, int e) { return n / TWINS * RUN + e * TWINS + n % TWINS; }

  // Thread t's part of the fragments of 8 rows of shared memory.
  template <class Row, class Column>
  KB_FN static void load(const Row *rows, const Column *columns, int t, double (&a)[M][4], double (&b)[N][2]) {
    int l = t % 4;
    KB_UNROLL for (int half = 0; half < 2; half++) {
      KB_UNROLL for (int m = 0; m < M; m++) {
        auto two = *(const Vec<double, 2> *)&rows[l + 4 * half][firstRow(t) + 16 * m];
        a[m][2 * half] = two.x[0];
        a[m][2 * half + 1] = two.x[1];
      }
      KB_UNROLL for (int n = 0; n < N; n += TWINS) {
        auto twins = *(const Vec<double, TWINS> *)&columns[l + 4 * half][firstColumn(t) + 8 * n + t % 32 / 4 * TWINS];
        KB_UNROLL for (int w = 0; w < TWINS; w++) b[n + w][half] = twins.x[w];
      }
    }
  }

private:
  KB_FN static int firstRow(int t) { return t / 32 % 2 * 16 * M + t % 32 / 4 * 2; }
  KB_FN static int firstColumn(int t) { return t / 64 * 8 * N; }
};

#ifdef __CUDA_ARCH__
// c += a·b. m8n8k4 is half of one dimension and half of another.
KB_FN void multiplyFragments(
    double &c0, double &c1, double &c2, double &c3, const double (&a)[4], const double (&b)[2]) {
#if __CUDA_ARCH__ >= 900
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+d"(c0), "+d"(c1), "+d"(c2), "+d"(c3)
      : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]));
#else
  KB_UNROLL for (int half = 0; half < 2; half++) {
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
        : "+d"(c0), "+d"(c1)
        : "d"(a[2 * half]), "d"(b[half]));
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
        : "+d"(c2), "+d"(c3)
        : "d"(a[2 * half + 1]), "d"(b[half]));
  }
#endif
}
#endif

// a of rows from `first` on, [depth][padded], and of columns b; zero where they pad.
struct ProductRows {
  double *values;
  RowTerms *terms;
  int64_t padded, first;
};

// Rows, or others if either mark is set; null where there are none.
struct ChosenRows {
  ProductRows rows, others;
  const int *marks[2];

  KB_FN ProductRows get() const { return marks[0] != nullptr && (*marks[0] | *marks[1]) ? others : rows; }
};

struct ProductColumns {
  const double *values;
  const ColumnTerms *terms;
  int64_t padded;
};

// What a launch knows of its entries' errors. Share 0: weights are multiplied. Tolerance 0: the column's.
struct ProductBound {
  float unit, share, tolerance;
};

// A row's and a column's part of an entry's bound, in float.
struct RowBound {
  double offset;
  float noise, weight, size;

  KB_FN RowBound(const ProductBound &b, const RowTerms &q)
      : offset(q.offset), noise(q.noise + b.share * q.weight), weight(q.weight), size(fabsf((float)q.offset)) {}
};

struct ColumnBound {
  double offset;
  float noise, weight, inverse, margin; // margin: NaN where nothing stays

  ColumnBound() = default;
  KB_FN ColumnBound(const ProductBound &b, const ColumnTerms &p)
      : offset(p.offset),
        noise(fmaf(2 * p.inverseError, fabsf((float)p.offset), p.noise + b.share * p.weight)),
        weight(p.weight),
        inverse(2 * p.inverseError) {
    float rest = (b.tolerance == 0 ? p.tolerance : b.tolerance) - b.unit - inverse;
    margin = rest > 0 ? rest * (1 - (float)FLOAT_SLACK) : (float)FLAG;
  }
};

// Whether an entry of that value stays; SHARED_WEIGHTS where the launch's share is not 0. If so, with u = 2⁻²⁴ and to first order,
//
//     error ≤ kl·margin ≤ KL·rest·(1 − 13u)              16u are FLOAT_SLACK's; kl, rest and the product take 3u
//
// where `error` is in float. Without a share no part of it is negative, and five roundings take 5u of it. With one it is the sum of
// a row's noise + share·weight and a column's, of which the weights may be negative. Rounding then takes
//
//     3u·share·(|weightQ| + |weightP|)                   less than the noises have been given for it: FLOAT_SLACK·share of no less
//     2u·(noiseQ + noiseP) ≤ 2u·(error + share·KL)       as weights are no less than −KL; the former is within 13u
//
// and share·KL ≤ unit·KL, of which PRODUCT_UNIT has 1/17 to spare.
template <bool SHARED_WEIGHTS>
KB_FN bool staysWithin(float kl, const RowBound &q, const ColumnBound &p) {
  float error = q.noise + p.noise;
  if (!SHARED_WEIGHTS) {
    error = fmaf(q.weight, p.weight, fmaf(p.inverse, q.size, error));
  }
  float rest = fmaf(kl, p.margin, -error);
  // both at least 0, and finite: not so NaN, infinity and what is negative, by their bits
  uint32_t bits[2];
  memcpy(&bits[0], &kl, 4);
  memcpy(&bits[1], &rest, 4);
  return (bits[0] > bits[1] ? bits[0] : bits[1]) < 0x7f800000;
}

// A block computes a tile of entries; a warp M × N fragments of it; a lane loads its share of their terms, stage by stage, and judges and
// stores 2M × 2N entries. CHUNKED: sums with compensation, for batches of double.
template <int M, int N, bool CHUNKED>
struct Product {
  using Map = FragmentMap<M, N>;
  static constexpr int ROWS = Map::ROWS;
  static constexpr int COLUMNS = Map::COLUMNS;
  static constexpr int DEPTH = PRODUCT_DEPTH;
  static constexpr int STAGES = 3;

  using Sums = std::conditional_t<CHUNKED, ChunkSums<double, 2 * M, 2 * N>, PlainSums<2 * M, 2 * N>>;

  struct Stage {
    double row[DEPTH][ROWS + 4], column[DEPTH][COLUMNS + 4];
  };

  struct Shared {
    Stage stages[STAGES];
    RowTerms row[ROWS];
    ColumnTerms column[COLUMNS + COLUMNS / Map::RUN]; // see place
    int flagged;
  };

  // One of padding after a lane's, so that lanes side by side read from different banks.
  KB_FN static int place(int column) { return column + column / Map::RUN; }

  ChosenRows chosen;
  ProductColumns p;
  int depth; // a multiple of DEPTH
  ProductBound bound;
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
    int stages = depth / DEPTH;
    ProductRows q = chosen.get();
    // What is loaded next, and where it goes: by steps. In the 128² tile's loop on sm_90 the first tensor instruction is the 27th of 235;
    // with indices from the start, and loads before it, it would be the 118th of 269 (SASS).
    const double *rows = q.values + corner.i - q.first;
    const double *columns = p.values + corner.j;
    int to = 0;
    auto load = [&](int t) {
      copySide<ROWS>(block, t, shared.stages[to].row, rows, q.padded);
      copySide<COLUMNS>(block, t, shared.stages[to].column, columns, p.padded);
    };
    auto advance = [&] {
      rows += DEPTH * q.padded;
      columns += DEPTH * p.padded;
      to = to + 1 < STAGES ? to + 1 : 0;
    };
    block.lanes([&](int t) {
      own[t].clear();
      if (t == 0) {
        shared.flagged = 0;
      }
      copyAll<ROWS>(block, t, shared.row, q.terms + corner.i - q.first, [](int n) { return n; });
      copyAll<COLUMNS>(block, t, shared.column, p.terms + corner.j, place);
    });
    for (int s = 0; s < STAGES - 1; s++) { // a group even where nothing is left to load
      block.lanes([&](int t) {
        if (s < stages) {
          load(t);
        }
        block.commit(t);
      });
      advance();
    }
    int from = 0;
    KB_NO_UNROLL for (int s = 0; s < stages; s++) { // unrolled, the smallest tile takes 94 registers, so 52
      // one barrier: it also says that the stage before has been read, where the next one goes
      block.each([&](int t) { block.template wait<STAGES - 2>(t); });
      block.lanes([&](int t) {
        // loads are issued when the tensor cores have work
        step(shared.stages[from], 0, t, own[t]);
        if (s + STAGES - 1 < stages) {
          load(t);
        }
        block.commit(t);
        step(shared.stages[from], DEPTH / 2, t, own[t]);
        if ((s + 1) * DEPTH % PRODUCT_CHUNK == 0 || s + 1 == stages) {
          own[t].fold();
        }
      });
      advance();
      from = from + 1 < STAGES ? from + 1 : 0;
    }
    flags.record(block, shared.flagged, [&](int t) { finish(block, shared, t, own[t], corner); });
  }

  template <int COUNT, class Block, class T, class Place>
  KB_FN static void copyAll(Block &block, int t, T *to, const T *from, Place place) {
    constexpr int PARTS = sizeof(T) / 16;
    for (int n = t; n < COUNT * PARTS; n += THREADS) {
      block.copy(t, (Vec<double, 2> *)(to + place(n / PARTS)) + n % PARTS, (const double *)from + 2 * n);
    }
  }

  // Thread t's share of DEPTH lines: always the same place in a line.
  template <int SIDE, class Block, class Line>
  KB_FN static void copySide(Block &block, int t, Line *to, const double *from, int64_t stride) {
    constexpr int LINE = SIDE / 2; // copies
    static_assert(THREADS % LINE == 0 && DEPTH * LINE % THREADS == 0, "whole lines at a time");
    int v = t % LINE * 2;
    const double *next = from + t / LINE * stride + v;
    KB_UNROLL for (int h = 0; h < DEPTH; h += THREADS / LINE) {
      block.copy(t, (Vec<double, 2> *)&to[h + t / LINE][v], next);
      next += THREADS / LINE * stride;
    }
  }

  // Adds half a stage's terms, from k on.
  KB_FN static void step(const Stage &s, int k, int t, Sums &sums) {
#ifdef __CUDA_ARCH__
    double a[M][4], b[N][2];
    Map::load(&s.row[k], &s.column[k], t, a, b);
    KB_UNROLL for (int m = 0; m < M; m++) {
      KB_UNROLL for (int n = 0; n < N; n++) {
        double(&c)[2 * M][2 * N] = sums.chunk;
        int left = Map::entry(n, 0);
        int right = Map::entry(n, 1);
        multiplyFragments(c[2 * m][left], c[2 * m][right], c[2 * m + 1][left], c[2 * m + 1][right], a[m], b[n]);
      }
    }
#else
    for (int end = k + DEPTH / 2; k < end; k++) {
      for (int r = 0; r < 2 * M; r++) {
        double a = s.row[k][Map::row(t, r)];
        for (int c = 0; c < 2 * N; c++) {
          sums.chunk[r][c] = fma(a, s.column[k][Map::column(t, c)], sums.chunk[r][c]);
        }
      }
    }
#endif
  }

  // Stores thread t's entries, and appends those that its bounds do not let stay.
  template <class Block>
  KB_FN void finish(Block &block, Shared &shared, int t, const Sums &sums, Pair corner) const {
    uint64_t flagged = bound.share != 0 ? judge<true>(shared, t, sums, corner) : judge<false>(shared, t, sums, corner);
    uint64_t mask = 0;
    KB_NO_UNROLL for (int bit = 0; bit < 64 && flagged >> bit != 0; bit++) { // none, as a rule
      int64_t i = corner.i + Map::row(t, bit / (2 * N));
      int64_t j = corner.j + Map::column(t, bit % (2 * N));
      mask |= (flagged >> bit & tiling.region.has(i, j)) << bit;
    }
    flags.append(block, shared.flagged, mask, [&](int bit) {
      return Map::row(t, bit / (2 * N)) * COLUMNS + Map::column(t, bit % (2 * N));
    });
  }

  // Stores them, and tells which are flagged, also outside of the region.
  template <bool SHARED_WEIGHTS>
  KB_FN uint64_t judge(const Shared &shared, int t, const Sums &sums, Pair corner) const {
    constexpr int RUN = Map::RUN;
    const Region &region = tiling.region;
    bool isWhole = out.hasRuns(region, corner, ROWS, COLUMNS, RUN);
    bool hasDiagonal = same && corner.i < corner.j + COLUMNS && corner.j < corner.i + ROWS;
    ColumnBound p[2 * N];
    KB_UNROLL for (int c = 0; c < 2 * N; c++) p[c] = ColumnBound(bound, shared.column[place(Map::column(t, c))]);
    int toDiagonal = hasDiagonal ? (int)(corner.i - corner.j) : ROWS + COLUMNS;
    int64_t start = out.at(corner.i + Map::row(t, 0), corner.j + Map::column(t, 0));
    uint32_t flagged[2] = {};
    KB_UNROLL for (int r = 0; r < 2 * M; r++) {
      RowBound q(bound, shared.row[Map::row(t, r)]);
      KB_UNROLL for (int g = 0; g < 2 * N; g += RUN) {
        double kl[RUN];
        float rounded[RUN]; // or FLAG
        int first = r * 2 * N + g;
        KB_UNROLL for (int n = 0; n < RUN; n++) {
          kl[n] = sums.total(r, g + n) + (q.offset + p[g + n].offset);
          float x = (float)kl[n];
          bool stays = staysWithin<SHARED_WEIGHTS>(x, q, p[g + n]);
          rounded[n] = stays ? x : (float)FLAG;
          flagged[first / 32] |= stays ? 0 : 1u << (first % 32 + n);
        }
        int zero = toDiagonal + Map::row(t, r) - Map::column(t, g); // where q is p
        if (zero >= 0 && zero < RUN) {
          KB_UNROLL for (int n = 0; n < RUN; n++) {
            if (zero == n) {
              kl[n] = rounded[n] = 0;
              flagged[first / 32] &= ~(1u << (first % 32 + n));
            }
          }
        }
        if (isWhole) {
          int down = Map::row(0, r) - Map::row(0, 0);
          out.storeRun(start + down * out.stride + (Map::column(0, g) - Map::column(0, 0)), kl, rounded);
        } else {
          out.store(region, corner.i + Map::row(t, r), corner.j + Map::column(t, g), kl, rounded);
        }
      }
    }
    return (uint64_t)flagged[1] << 32 | flagged[0];
  }
};

} // namespace kullback
