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

  // Entries of row i from column j on, those within the region.
  template <int W>
  KB_FN void store(const Region &r, int64_t i, int64_t j, const double (&kl)[W]) const {
    if (wide) {
      storeAs<double>(r, i, j, kl);
    } else {
      storeAs<float>(r, i, j, kl);
    }
  }

private:
  template <class O, int W>
  KB_FN void storeAs(const Region &r, int64_t i, int64_t j, const double (&kl)[W]) const;
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

template <class O, int W>
KB_FN void Output::storeAs(const Region &r, int64_t i, int64_t j, const double (&kl)[W]) const {
  O *to = (O *)data + at(i, j);
  if (!transposed && j >= r.column0 && j + W <= r.columnEnd && (uintptr_t)to % alignof(Vec<O, W>) == 0) {
    Vec<O, W> all;
    KB_UNROLL for (int n = 0; n < W; n++) all.x[n] = (O)kl[n];
    storeVector(to, all);
    return;
  }
  int64_t next = transposed ? stride : 1;
  KB_UNROLL for (int n = 0; n < W; n++) {
    if (j + n >= r.column0 && j + n < r.columnEnd) {
      to[n * next] = (O)kl[n];
    }
  }
}

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

// Leaves a region to be computed again, whole.
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
