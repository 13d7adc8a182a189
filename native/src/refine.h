// What tiles flag is computed again: a few entries by a warp each; of a tile with many, all in squares. Either way in the same
// operations and order, so that an entry's bits do not depend on its neighbours.
#pragma once

#include "diagonal.h"

namespace kullback {

// Dimensions that are summed one after the other; then these sums are.
constexpr int RUN = 8;

// Two forms of the terms of ½R or of KL, as a sum over dimensions in T from a row's and a column's operands.

// [(μq − μp)² + vq]·(1/vp), in double.
struct DifferenceForm {
  using T = double;
  static constexpr int ROW = 2, COLUMN = 2; // operands
  int kindQ, kindP;

  KB_FN void row(double m, double s, T (&o)[ROW]) const {
    o[0] = m;
    o[1] = variance(kindQ, s);
  }

  KB_FN void column(double m, double s, T (&o)[COLUMN]) const {
    o[0] = m;
    o[1] = precision(kindP, s);
  }

  KB_FN T add(const T (&q)[ROW], const T (&p)[COLUMN], T sum) const {
    T d = q[0] - p[0];
    return fma(fma(d, d, q[1]), p[1], sum);
  }

  // A run's sum as it is added to the others.
  KB_FN static double run(T sum) { return sum; }
};

// The terms of KL where variances are alike and stated in the same way: differences of what is stated are exact, no term is negative
// and nothing cancels. With z = (sq − sp)/sp, or sq − sp of log-variances, ½(x − ln(1+x)) of x = σq²/σp² − 1 is z² times a series. Where z
// is within MOST its terms beyond those here are less than 2e-6 of it in float and 1e-15 in double, and roundings, of which z² and y² take
// 12 and a run 16, 1.7e-6 and 4e-15. The series is above c/3, c being its first term, for any z; so a run's sum below c·MOST²/4 tells that
// every z is.
template <class T_>
struct NearForm {
  using T = T_;
  static constexpr int ROW = 2, COLUMN = 4;
  static constexpr int TERMS = sizeof(T) == sizeof(float) ? 5 : 9;
  static constexpr T MOST = sizeof(T) == sizeof(float) ? 0x1p-4 : 0x1p-6;
  int kind;
  T series[TERMS];

  explicit NearForm(int kind) : kind(kind) {
    double factorial = 2;
    for (int n = 0; n < TERMS; factorial *= ++n + 2) {
      double alternating = n % 2 == 0 ? 1 : -1;
      series[n] = (T)(kind == STD            ? (n == 0 ? 1 : alternating / (n + 2)) // z²/2 + z − ln(1+z)
                      : kind == VARIANCE     ? alternating * 0.5 / (n + 2)           // ½ [z − ln(1+z)]
                      : kind == LOG_VARIANCE ? 0.5 / factorial                       // ½ [e^z − 1 − z]
                                             : alternating * 0.5 * (n + 1) / (n + 2)); // ½ [ln(1+z) − z/(1+z)]
    }
  }

  KB_FN void row(double m, double s, T (&o)[ROW]) const {
    o[0] = (T)m;
    o[1] = (T)s;
  }

  KB_FN void column(double m, double s, T (&o)[COLUMN]) const {
    o[0] = (T)m;
    o[1] = (T)s;
    o[2] = kind == LOG_VARIANCE ? 1 : (T)(1 / s);
    o[3] = (T)(0.7071067811865476 * inverseStd(kind, s));
  }

  KB_FN T add(const T (&q)[ROW], const T (&p)[COLUMN], T sum) const {
    T y = (q[0] - p[0]) * p[3];
    T z = (q[1] - p[1]) * p[2];
    T x = series[TERMS - 1];
    KB_UNROLL for (int n = TERMS - 2; n >= 0; n--) x = fusedMultiplyAdd(x, z, series[n]);
    return fusedMultiplyAdd(z * z, x, fusedMultiplyAdd(y, y, sum));
  }

  KB_FN double run(T sum) const { return sum < series[0] * (MOST * MOST / 4) ? sum : FLAG; }
};

// The divergences of diagonal batches, in the first form that is right for a pair: near, where it is asked for; difference; and term by
// term without cancellation.
template <class P, class Near>
struct DiagonalPairs {
  static constexpr int SIDE = 64; // of a square
  static constexpr int MICRO = 4; // of a thread in it
  static constexpr int DEPTH = 2 * RUN;

  // Lines are so much longer that threads which store in eight of them, and load 16 bytes side by side, use all banks.
  template <class Form>
  struct Operands {
    static constexpr int LINE = SIDE + 16 / sizeof(typename Form::T);
    typename Form::T row[Form::ROW][DEPTH][LINE], column[Form::COLUMN][DEPTH][LINE];
  };

  struct Squares {
    union {
      Operands<Near> near;
      Operands<DifferenceForm> difference;
    };
    double totals[MICRO * MICRO][THREADS]; // a thread has no registers for them
    int open[2]; // threads that have open entries
  };

  Diagonal q;
  P p;
  Near near;
  bool isNear, wide;
  double unit, margin;
  int same;

  struct State {
    Pair pair;
    double part, total, kl;
  };

  // A form's value; NaN if it is not right.
  KB_FN double judge(const Near &, int64_t i, int64_t j, double sum) const {
    return sum >= q.least(i, wide) + p.least(j, wide) ? sum : FLAG;
  }

  KB_FN double judge(const DifferenceForm &, int64_t i, int64_t j, double sum) const {
    double kl = 0.5 * sum + (p.offsetP(j, true) + q.offsetQ(i, true));
    return isCertain(kl, q.noiseQ(i, unit) + p.noiseP(j, unit), margin) ? kl : FLAG;
  }

  KB_FN double judge(const DiagonalPairs &, int64_t, int64_t, double sum) const { return sum; }

  // ---- A warp a pair ----

  template <class Block, class At, class Put>
  KB_FN void operator()(Block &block, At at, Put put) const {
    typename Block::template Own<State> own(block);
    block.lanes([&](int t) {
      Pair x = own[t].pair = at(t / LANES);
      own[t].kl = x.valid && !(same && x.i == x.j) ? FLAG : 0;
    });
    if (isNear) {
      settle(block, own, near);
    }
    settle(block, own, DifferenceForm{q.kind, p.kind});
    settle(block, own, *this);
    block.lanes([&](int t) {
      if (own[t].pair.valid && t % LANES == 0) {
        put(own[t].pair, own[t].kl);
      }
    });
  }

  // The pairs that are still open, a run of dimensions a lane.
  template <class Block, class Own, class Form>
  KB_FN void settle(Block &block, Own &own, const Form &form) const {
    if (!block.isOpen([&](int t) { return own[t].kl != own[t].kl; })) {
      return;
    }
    block.lanes([&](int t) { own[t].total = 0; });
    for (int h0 = 0; h0 < q.dimension; h0 += RUN * LANES) {
      block.lanes([&](int t) {
        int h = h0 + t % LANES * RUN;
        int end = q.dimension - h < RUN ? q.dimension : h + RUN;
        own[t].part = own[t].kl == own[t].kl ? 0 : partOf(form, own[t].pair, h, end);
      });
      block.sumInOrder(own, (int)ceilDiv(q.dimension - h0, RUN));
    }
    block.lanes([&](int t) {
      if (own[t].kl != own[t].kl) {
        own[t].kl = judge(form, own[t].pair.i, own[t].pair.j, own[t].total);
      }
    });
  }

  template <class Form>
  KB_FN double partOf(const Form &form, Pair x, int h, int end) const {
    typename Form::T sum = 0;
    for (; h < end; h++) {
      typename Form::T row[Form::ROW], column[Form::COLUMN];
      form.row(q.meanAt(x.i, h), q.scaleAt(x.i, h), row);
      form.column(p.meanAt(x.j, h), p.scaleAt(x.j, h), column);
      sum = form.add(row, column, sum);
    }
    return form.run(sum);
  }

  KB_FN double partOf(const DiagonalPairs &, Pair x, int h, int end) const {
    double sum = 0;
    KB_NO_UNROLL for (; h < end; h++) {
      sum += stableTerm(q.meanAt(x.i, h), q.kind, q.scaleAt(x.i, h), p.meanAt(x.j, h), p.kind, p.scaleAt(x.j, h));
    }
    return sum;
  }

  // ---- A square at once ----

  // What can be settled of the flagged entries of a square by the first two forms.
  template <class Block>
  KB_FN void settleSquare(Block &block, Squares &shared, const Region &square, const Output &out) const {
    if (isNear) {
      settleSquare(block, shared, shared.near, near, square, out);
    }
    settleSquare(block, shared, shared.difference, DifferenceForm{q.kind, p.kind}, square, out);
  }

  template <class Block, class Form>
  KB_FN void settleSquare(
      Block &block, Squares &shared, Operands<Form> &operands, const Form &form, const Region &square, const Output &out) const {
    typename Block::template Own<unsigned> open(block); // entries
    block.lanes([&](int t) {
      open[t] = 0;
      KB_NO_UNROLL for (int n = 0; n < MICRO * MICRO; n++) {
        Pair x = entry<Form>(square, t, n);
        open[t] |= (unsigned)(x.valid && out.isFlagged(x.i, x.j)) << n;
        shared.totals[n][t] = 0;
      }
    });
    bool isOpen = true;
    for (int h0 = 0; h0 < q.dimension && isOpen; h0 += DEPTH) {
      int turn = h0 / DEPTH % 2;
      block.each([&](int t) {
        if (t == 0) {
          shared.open[turn] = 0;
        }
        side(t, q, square.row0, square.rows(), h0, operands.row, [&](double m, double s, auto &o) { form.row(m, s, o); });
        side(t, p, square.column0, square.columns(), h0, operands.column,
             [&](double m, double s, auto &o) { form.column(m, s, o); });
      });
      block.each([&](int t) {
        KB_NO_UNROLL for (int h = 0; h < DEPTH; h += RUN) open[t] &= addRun(operands, form, h, t, shared.totals);
        if (open[t] != 0) {
          block.add(shared.open[turn], 1);
        }
      });
      isOpen = shared.open[turn] > 0;
    }
    block.each([&](int t) {
      KB_NO_UNROLL for (int n = 0; n < MICRO * MICRO; n++) {
        Pair x = entry<Form>(square, t, n);
        double kl = open[t] >> n & 1 ? judge(form, x.i, x.j, shared.totals[n][t]) : FLAG;
        if (kl == kl) {
          out.put(x.i, x.j, kl);
        }
      }
    });
  }

  // Where number n of the rows or columns of one of 16 groups of threads is: groups have 16 bytes side by side.
  template <class T>
  KB_FN static int place(int group, int n) {
    constexpr int WIDTH = 16 / sizeof(T);
    return n / WIDTH * 16 * WIDTH + group * WIDTH + n % WIDTH;
  }

  // Thread t's entries of a square.
  template <class Form>
  KB_FN static Pair entry(const Region &square, int t, int n) {
    int64_t i = square.row0 + place<typename Form::T>(t / 16, n / MICRO);
    int64_t j = square.column0 + place<typename Form::T>(t % 16, n % MICRO);
    return {i, j, square.has(i, j)};
  }

  // Operands of a side for some dimensions; 0 beyond the square and the dimensions, which adds nothing.
  template <class G, class T, int COUNT, int LINE, class Make>
  KB_FN void side(
      int t, const G &g, int64_t first, int64_t count, int h0, T (&to)[COUNT][DEPTH][LINE], Make make) const {
    constexpr int LINES = 8; // of a warp, in which a line has THREADS / DEPTH at once
    int h = t * DEPTH / (LINES * THREADS) * LINES + t % LINES;
    KB_NO_UNROLL for (int n = t / LINES % (THREADS / DEPTH); n < SIDE; n += THREADS / DEPTH) {
      T o[COUNT] = {};
      if (n < count && h0 + h < q.dimension) {
        make(g.meanAt(first + n, h0 + h), g.scaleAt(first + n, h0 + h), o);
      }
      KB_UNROLL for (int c = 0; c < COUNT; c++) to[c][h][n] = o[c];
    }
  }

  // Which entries' sums are not NaN.
  template <class Form>
  KB_FN static unsigned addRun(
      const Operands<Form> &operands, const Form &form, int h0, int t, double (&totals)[MICRO * MICRO][THREADS]) {
    using T = typename Form::T;
    T sums[MICRO * MICRO] = {};
    KB_NO_UNROLL for (int h = h0; h < h0 + RUN; h++) {
      T row[MICRO][Form::ROW], column[MICRO][Form::COLUMN];
      load(operands.row, h, t / 16, row);
      load(operands.column, h, t % 16, column);
      KB_UNROLL for (int n = 0; n < MICRO * MICRO; n++) sums[n] = form.add(row[n / MICRO], column[n % MICRO], sums[n]);
    }
    unsigned open = 0;
    KB_UNROLL for (int n = 0; n < MICRO * MICRO; n++) {
      double total = totals[n][t] += form.run(sums[n]);
      open |= (unsigned)(total == total) << n;
    }
    return open;
  }

  template <class T, int COUNT, int LINE>
  KB_FN static void load(const T (&from)[COUNT][DEPTH][LINE], int h, int group, T (&to)[MICRO][COUNT]) {
    constexpr int WIDTH = 16 / sizeof(T);
    KB_UNROLL for (int c = 0; c < COUNT; c++) {
      KB_UNROLL for (int n = 0; n < MICRO; n += WIDTH) {
        auto some = *(const Vec<T, WIDTH> *)&from[c][h][place<T>(group, n)];
        KB_UNROLL for (int k = 0; k < WIDTH; k++) to[n + k][c] = some.x[k];
      }
    }
  }
};

// Computes the flagged entries again: of a tile with few, those of its list, a warp an entry; of others a square of 64 at a time, a thread
// 4 × 4 of it, and what is left of it a warp an entry. Blocks stride over the tiles.
template <class Pairs>
struct Refine {
  static constexpr int SIDE = 64;

  struct Shared {
    typename Pairs::Squares squares;
    int parts[THREADS], partCount;
    uint16_t entries[SIDE * SIDE];
    int entryCount;
  };
  static_assert(sizeof(Shared) <= 99 << 10, "what a block of any device can have");

  Pairs pairs;
  Tiling tiling;
  Output out;
  Flags flags;
  int64_t launched; // blocks

  // Of a tile; also the shares of its list.
  KB_FN int squaresDown() const { return tiling.rows > SIDE ? tiling.rows / SIDE : 1; }
  KB_FN int squaresAcross() const { return tiling.columns > SIDE ? tiling.columns / SIDE : 1; }
  KB_FN int squares() const { return squaresDown() * squaresAcross(); }

  int64_t blocks() const { return launched; }

  template <class Block>
  KB_FN void operator()(Block &block) const {
    Shared &shared = block.template shared<Shared>();
    int64_t all = tiling.count() * squares();
    for (int64_t round = 0; round < all; round += launched * THREADS) {
      block.each([&](int t) {
        if (t == 0) {
          shared.partCount = 0;
        }
      });
      block.each([&](int t) {
        int64_t part = round + t * launched + block.index;
        if (part < all && flags.counts[part / squares()] > 0) {
          shared.parts[block.add(shared.partCount, 1)] = t;
        }
      });
      int count = shared.partCount;
      for (int n = 0; n < count; n++) {
        refine(block, shared, round + shared.parts[n] * launched + block.index);
      }
      block.each([](int) {}); // before the lists are used again
    }
  }

  template <class Block>
  KB_FN void refine(Block &block, Shared &shared, int64_t part) const {
    int64_t tile = part / squares();
    int share = (int)(part % squares());
    int flagged = flags.counts[tile];
    Pair corner = tiling.corner(tile);
    if (flagged <= flags.most) {
      compute(block, corner, tiling.columns, flags.entries + tile * flags.most, flagged * share / squares(),
              flagged * (share + 1) / squares());
      return;
    }
    const Region &r = tiling.region;
    Pair at = {corner.i + share / squaresAcross() * SIDE, corner.j + share % squaresAcross() * SIDE, true};
    int rows = tiling.rows < SIDE ? tiling.rows : SIDE;
    int columns = tiling.columns < SIDE ? tiling.columns : SIDE;
    Region square = {at.i > r.row0 ? at.i : r.row0, at.i + rows < r.rowEnd ? at.i + rows : r.rowEnd,
                     at.j > r.column0 ? at.j : r.column0, at.j + columns < r.columnEnd ? at.j + columns : r.columnEnd};
    if (square.rows() <= 0 || square.columns() <= 0) {
      return;
    }
    pairs.settleSquare(block, shared.squares, square, out);
    block.each([&](int t) {
      if (t == 0) {
        shared.entryCount = 0;
      }
    });
    block.each([&](int t) {
      KB_NO_UNROLL for (int n = t; n < SIDE * SIDE; n += THREADS) {
        int64_t i = square.row0 + n / SIDE;
        int64_t j = square.column0 + n % SIDE;
        if (square.has(i, j) && out.isFlagged(i, j)) {
          shared.entries[block.add(shared.entryCount, 1)] = (uint16_t)n;
        }
      }
    });
    compute(block, {square.row0, square.column0, true}, SIDE, shared.entries, 0, shared.entryCount);
    block.each([](int) {});
  }

  template <class Block>
  KB_FN void compute(Block &block, Pair corner, int columns, const uint16_t *entries, int from, int to) const {
    for (int n = from; n < to; n += WARPS) {
      pairs(
          block,
          [&](int warp) {
            int entry = n + warp < to ? entries[n + warp] : 0;
            return Pair{corner.i + entry / columns, corner.j + entry % columns, n + warp < to};
          },
          [&](const Pair &x, double kl) { out.put(x.i, x.j, kl); });
    }
  }
};

// out[i] = KL(q_i ‖ p_i), a warp each; blocks stride over the pairs.
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

} // namespace kullback
