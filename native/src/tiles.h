// The matrix of divergences: its regions and tiles, where results go, and which entries are to be recomputed.
#pragma once

#include "block.h"

namespace kullback {

// Rows [row0, rowEnd) and columns [column0, columnEnd) of the matrix.
struct Region {
  int64_t row0, rowEnd, column0, columnEnd;

  KB_FN int64_t rows() const { return rowEnd - row0; }
  KB_FN int64_t columns() const { return columnEnd - column0; }
  KB_FN bool has(int64_t i, int64_t j) const { return i >= row0 && i < rowEnd && j >= column0 && j < columnEnd; }
};

struct Pair {
  int64_t i, j;
  bool valid;
};

// A region in tiles, which begin at multiples of ALIGN. They go in bands of 16 tiles of rows, column by column, so that what one
// band reads stays in the L2 cache.
struct Tiling {
  Region region;
  int rows, columns; // of a tile

  KB_FN int64_t rowStart() const { return region.row0 / ALIGN * ALIGN; }
  KB_FN int64_t columnStart() const { return region.column0 / ALIGN * ALIGN; }
  KB_FN int64_t down() const { return ceilDiv(region.rowEnd - rowStart(), rows); }
  KB_FN int64_t across() const { return ceilDiv(region.columnEnd - columnStart(), columns); }
  KB_FN int64_t count() const { return down() * across(); }

  // The first entry of a tile, which may lie before the region.
  KB_FN Pair corner(int64_t index) const {
    constexpr int64_t BAND = 16;
    int64_t band = index / (BAND * across()) * BAND;
    int64_t height = down() - band < BAND ? down() - band : BAND;
    int64_t rest = index - band * across();
    return {rowStart() + (band + rest % height) * rows, columnStart() + rest / height * columns, true};
  }
};

// Left to itself the compiler stores the elements one by one.
#ifdef __CUDA_ARCH__
KB_FN void storeVector(float *to, const float (&v)[2]) {
  asm volatile("st.v2.f32 [%0], {%1, %2};" ::"l"(to), "f"(v[0]), "f"(v[1]) : "memory");
}

KB_FN void storeVector(float *to, const float (&v)[4]) {
  asm volatile("st.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to), "f"(v[0]), "f"(v[1]), "f"(v[2]), "f"(v[3]) : "memory");
}

KB_FN void storeVector(double *to, const double (&v)[2]) {
  asm volatile("st.v2.f64 [%0], {%1, %2};" ::"l"(to), "d"(v[0]), "d"(v[1]) : "memory");
}

// Two lanes, whose fours are side by side, store those of the even lane and then those of the odd one, two each: whole sectors of 32 bytes.
KB_FN void storeVector(double *to, const double (&v)[4]) {
  bool isOdd = threadIdx.x % 2;
  double two[2][2];
  KB_UNROLL for (int n = 0; n < 2; n++) {
    double other = __shfl_xor_sync(0xffffffff, isOdd ? v[n] : v[n + 2], 1);
    two[0][n] = isOdd ? other : v[n];
    two[1][n] = isOdd ? v[n + 2] : other;
  }
  KB_UNROLL for (int n = 0; n < 2; n++) storeVector(to + (isOdd ? 4 * n - 2 : 4 * n), two[n]);
}
#else
template <class T, int W>
void storeVector(T *to, const T (&v)[W]) {
  memcpy(to, v, sizeof v);
}
#endif

// The result, where a pair's divergence goes; transposed, a column of the matrix lies in a row. An entry that is to be recomputed is
// FLAG until then.
struct Output {
  void *data;
  int64_t stride, row0, column0;
  int wide, transposed;

  KB_FN int64_t at(int64_t i, int64_t j) const {
    return transposed ? (j - column0) * stride + (i - row0) : (i - row0) * stride + (j - column0);
  }

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

  // Whether all of a tile is within the region, and can be stored in runs of so many entries of a row, at addresses that are multiples of
  // a run's bytes, or of 16.
  KB_FN bool hasRuns(const Region &r, Pair corner, int rows, int columns, int run) const {
    int element = wide ? sizeof(double) : sizeof(float);
    int bytes = run * element < 16 ? run * element : 16;
    return !transposed && r.has(corner.i, corner.j) && r.has(corner.i + rows - 1, corner.j + columns - 1) &&
           ((uintptr_t)data + at(corner.i, corner.j) * element) % bytes == 0 && stride * element % bytes == 0;
  }

  // Entries of a row in double and, with those that are to be recomputed, in float: all of them, where hasRuns, from at(i, j) on.
  template <int W>
  KB_FN void storeRun(int64_t start, const double (&kl)[W], const float (&rounded)[W]) const {
    if (wide) {
      double all[W];
      KB_UNROLL for (int n = 0; n < W; n++) all[n] = rounded[n] == rounded[n] ? kl[n] : FLAG;
      storeVector((double *)data + start, all);
    } else {
      storeVector((float *)data + start, rounded);
    }
  }

  // Those of row i from column j on that are within the region.
  template <int W>
  KB_FN void store(const Region &r, int64_t i, int64_t j, const double (&kl)[W], const float (&rounded)[W]) const {
    int64_t next = transposed ? stride : 1;
    int64_t first = at(i, j);
    if (i < r.row0 || i >= r.rowEnd) {
      return;
    }
    KB_UNROLL for (int n = 0; n < W; n++) {
      if (j + n >= r.column0 && j + n < r.columnEnd) {
        if (wide) {
          ((double *)data)[first + n * next] = rounded[n] == rounded[n] ? kl[n] : FLAG;
        } else {
          ((float *)data)[first + n * next] = rounded[n];
        }
      }
    }
  }
};

// The flagged entries, tile by tile: how many, and if they are at most `most`, which, as row·(a tile's columns) + column. Each tile's
// block writes its own count, so nothing needs to be cleared.
struct Flags {
  int *counts;
  uint16_t *entries; // [tile][most]
  int most;

  // A tile with more is done again whole: 1.6 % of its entries, a warp each, are expected to take as long.
  static constexpr int SHARE = 64;

  KB_FN static constexpr int mostOf(int64_t entries) { return (int)(entries / SHARE); }

  // Runs finish(t), which appends, and writes the tile's count.
  template <class Block, class Finish>
  KB_FN void record(Block &block, const int &count, Finish finish) const {
    block.each(finish);
    block.lanes([&](int t) {
      if (t == 0) {
        counts[block.index] = count;
      }
    });
  }

  // Appends thread t's flagged entries, the bits of `mask`; `count` is the block's. `entry(n)` is that of bit n.
  template <class Block, class Entry>
  KB_FN void append(Block &block, int &count, uint64_t mask, Entry entry) const {
    if (mask == 0) {
      return;
    }
    int n = 0;
    for (uint64_t rest = mask; rest != 0; rest &= rest - 1) n++;
    int at = block.add(count, n);
    for (int bit = 0; bit < 64 && at < most; bit++) {
      if (mask >> bit & 1) {
        entries[block.index * most + at++] = (uint16_t)entry(bit);
      }
    }
  }
};

// Leaves a region to be computed again, whole: a block a tile, a thread every 256th of its entries.
struct FlagAll {
  Tiling tiling;
  Output out;
  Flags flags;
  int same;

  int64_t blocks() const { return tiling.count(); }

  template <class Block>
  KB_FN void operator()(Block &block) const {
    Pair corner = tiling.corner(block.index);
    block.lanes([&](int t) {
      for (int n = t; n < tiling.rows * tiling.columns; n += THREADS) {
        int64_t i = corner.i + n / tiling.columns;
        int64_t j = corner.j + n % tiling.columns;
        if (tiling.region.has(i, j)) {
          out.put(i, j, same && i == j ? 0 : FLAG);
        }
      }
      if (t == 0) {
        flags.counts[block.index] = tiling.rows * tiling.columns;
      }
    });
  }
};

} // namespace kullback
