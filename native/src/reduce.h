// A strip of the matrix in memory → short lists or numbers of its rows, so that no strip has to leave the device.
//
// Rows are cut into pieces, a block each. On sm_90 a product leaves 32 registers a thread for one block beside it (kullback_cuda.cu), so a
// thread loads as many values at once as these can hold.
#pragma once

#include "block.h"

namespace kullback {

// [rows, columns], rows `stride` apart, each cut into pieces of `width` columns of which the last may be shorter.
struct Strip {
  const double *values;
  int64_t rows, columns, stride, width, pieces;

  int64_t blocks() const { return rows * pieces; }
};

struct Piece {
  int64_t row;
  int first, count; // columns
  const double *values;

  KB_FN Piece(const Strip &s, int64_t index)
      : row(index / s.pieces),
        first((int)((index - row * s.pieces) * s.width)),
        count((int)(s.columns - first < s.width ? s.columns - first : s.width)),
        values(s.values + row * s.stride + first) {}

  // use(n, load(n)) for n = from, from + step, …
  template <class Load, class Use>
  KB_FN void visit(unsigned from, unsigned step, Load load, Use use) const {
    constexpr int DEEP = 6;
    KB_NO_UNROLL for (unsigned n = from; n < (unsigned)count; n += DEEP * step) {
      double x[DEEP];
      KB_UNROLL for (int i = 0; i < DEEP; i++) x[i] = n + i * step < (unsigned)count ? load(n + i * step) : FLAG;
      KB_UNROLL for (int i = 0; i < DEEP; i++) {
        if (x[i] == x[i]) {
          use(n + i * step, x[i]);
        }
      }
    }
  }
};

struct Least {
  double x = INFINITE;

  KB_FN Least operator+(Least o) const { return {x < o.x ? x : o.x}; }
};

// What all threads' f(t) add up to, in a fixed order. The memory may be used again after another barrier.
template <class T, class Block, class F>
KB_FN T combine(Block &block, T (&ofWarps)[WARPS], F f) {
  typename Block::template Own<T> own(block);
  block.lanes([&](int t) { own[t] = f(t); });
  block.reduce(own);
  block.each([&](int t) {
    if (t % LANES == 0) {
      ofWarps[t / LANES] = own[t];
    }
  });
  T all = ofWarps[0];
  for (int warp = 1; warp < WARPS; warp++) all = all + ofWarps[warp];
  return all;
}

// A block has a piece, a thread every 256th of its entries. Of each piece the entries within a limit; with k > 0 a limit that also follows
// the piece's k-th least entry.
struct Select {
  static constexpr int MOST = 2048;
  static constexpr int GROUPS = 16; // of a thread

  struct Shared {
    union {
      double minima[GROUPS][THREADS];
      struct {
        double values[MOST];
        int columns[MOST];
      } list;
    };
    Sum<int> counts[2][WARPS];
    int found;
  };

  Strip strip;
  int64_t skip, k;
  double slack;
  const double *limits;
  int capacity;
  int *counts, *columns;
  double *values;

  int64_t blocks() const { return strip.blocks(); }

  template <class Block>
  KB_FN void operator()(Block &block) const {
    Shared &shared = block.template shared<Shared>();
    Piece piece(strip, block.index);
    int64_t out = piece.row + skip - piece.first;
    int left = out >= 0 && out < piece.count ? (int)out : -1; // out
    auto load = [&](int n) { return n == left ? FLAG : piece.values[n]; };
    double limit = limits[piece.row];
    if (k > 0 && k <= piece.count) {
      double lower = slack * bound(block, shared, piece, load, limit);
      limit = lower < limit ? lower : limit;
    }
    block.each([&](int t) {
      if (t == 0) {
        shared.found = 0;
      }
    });
    block.each([&](int t) {
      piece.visit(t, THREADS, load, [&](unsigned n, double x) {
        if (x <= limit) {
          int at = block.add(shared.found, 1);
          if (at < capacity) {
            shared.list.values[at] = x;
            shared.list.columns[at] = piece.first + (int)n;
          }
        }
      });
    });
    block.lanes([&](int t) { store(block.index, shared, t); });
  }

  // Entries go where as many come before.
  KB_FN void store(int64_t index, const Shared &shared, int t) const {
    int found = shared.found;
    if (t == 0) {
      counts[index] = found;
    }
    KB_NO_UNROLL for (int n = t; n < found && found <= capacity; n += THREADS) {
      double value = shared.list.values[n];
      int column = shared.list.columns[n];
      int before = 0;
      for (int m = 0; m < found; m++) {
        double other = shared.list.values[m];
        before += k == 0 || other == value ? shared.list.columns[m] < column : other < value;
      }
      values[index * capacity + before] = value;
      columns[index * capacity + before] = column;
    }
  }

  // At least the k-th least entry if that is within the limit, which is the result if it is not. Entries are parted into groups, neighbours
  // into different ones. The k-th least of the groups' minima will do: of 4k groups few have two of the k least entries. Where there
  // is no memory for so many, the entries themselves are counted.
  template <class Block, class Load>
  KB_FN double bound(Block &block, Shared &shared, const Piece &piece, Load load, double limit) const {
    int64_t wanted = ceilDiv(k < piece.count / 4 ? 4 * k : piece.count, THREADS);
    bool isGrouped = wanted <= GROUPS;
    int groups = isGrouped ? (int)wanted : 0;
    block.lanes([&](int t) {
      for (int g = 0; g < groups; g++) {
        double least = INFINITE;
        piece.visit(t + g * THREADS, groups * THREADS, load, [&](unsigned, double x) { least = x < least ? x : least; });
        shared.minima[g][t] = least;
      }
    });
    int turn = 0;
    auto countWithin = [&](double x) {
      turn = 1 - turn;
      return combine(block, shared.counts[turn], [&](int t) {
        Sum<int> count;
        for (int g = 0; g < groups; g++) count.x += shared.minima[g][t] <= x;
        if (!isGrouped) {
          piece.visit(t, THREADS, load, [&](unsigned, double y) { count.x += y <= x; });
        }
        return count;
      });
    };
    // Doubles that are not negative go in the order of their bits.
    int count = countWithin(limit).x;
    int64_t low = -1;
    int64_t high = bits(limit);
    while (count > k && high - low > 1) {
      int64_t middle = low + (high - low) / 2;
      int n = countWithin(fromBits(middle)).x;
      if (n >= k) {
        high = middle;
        count = n;
      } else {
        low = middle;
      }
    }
    return fromBits(high);
  }
};

// A block has a piece, a thread every 256th of its entries. Of each piece two numbers: KULLBACK_MIN the least entry, KULLBACK_SUM the sum,
// and 0; KULLBACK_LOG_SUM_EXP m, the least entry after its weight was taken from it, and Σ exp(m − entry).
struct Fold {
  static constexpr double NEGLIGIBLE = 60; // e⁻⁶⁰ < 2⁻⁸⁶

  struct Shared {
    Least least[WARPS];
    Sum<double> sum[WARPS];
  };

  Strip strip;
  bool isLeast, isSum; // both: of exponentials
  const double *logWeights;
  double *out;

  int64_t blocks() const { return strip.blocks(); }

  template <class Block>
  KB_FN void operator()(Block &block) const {
    Shared &shared = block.template shared<Shared>();
    Piece piece(strip, block.index);
    auto load = [&](unsigned n) { return logWeights == nullptr ? piece.values[n] : piece.values[n] - logWeights[piece.first + n]; };
    Least least;
    Sum<double> sum;
    if (isLeast) {
      least = combine(block, shared.least, [&](int t) {
        Least own;
        piece.visit(t, THREADS, load, [&](unsigned, double x) { own = own + Least{x}; });
        return own;
      });
    }
    if (isSum) {
      sum = combine(block, shared.sum, [&](int t) {
        Sum<double> own;
        piece.visit(t, THREADS, load, [&](unsigned, double x) {
          if (!isLeast) {
            own.x += x;
          } else if (x - least.x < NEGLIGIBLE) { // not where both are infinite
            own.x += exp(least.x - x);
          }
        });
        return own;
      });
    }
    block.lanes([&](int t) {
      if (t == 0) {
        out[2 * block.index] = isLeast ? least.x : sum.x;
        out[2 * block.index + 1] = isLeast && isSum ? sum.x : 0;
      }
    });
  }
};

} // namespace kullback
