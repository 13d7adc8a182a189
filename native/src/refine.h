// What tiles flag is computed again: a few entries one by one; of a tile with many, all in squares. Either way in the same
// operations and order, so that an entry's bits do not depend on its neighbours.
#pragma once

#include "diagonal.h"

namespace kullback {

// Dimensions that are summed one after the other; then these sums are.
constexpr int RUN = 8;

// Forms of twice KL's terms, as a sum over dimensions in T from a row's and a column's operands, DEPTH dimensions at a time in a square.

// [(μq − μp)² + vq]·(1/vp), in double; of R, so without the logarithms.
struct DifferenceForm {
  using T = double;
  static constexpr int ROW = 2, COLUMN = 2, DEPTH = 2 * RUN; // operands
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

  // Whether an entry with such a sum of a run may be in this form.
  KB_FN static bool stays(T) { return true; }
};

// (μq − μp)²/vp + x − ln(1+x), x = σq²/σp² − 1, where no term is negative and nothing cancels. The latter two are z² times a series,
// economized (C. Lanczos 1938) on |z| ≤ MOST to a relative error of 2e-6 in float and 1e-13 in double, where z is
//
//     PARTS 1   (sq − sp)/sp, or sq − sp of log-variances: differences of what both batches state in the same way are exact
//     PARTS 2   x, of variances high + low: in double from some 100 bits, in float from 48, so with an error of 2⁻⁴⁶, which takes
//               2⁻⁴⁶·√(D·KL) of KL, 4e-6 of one that is no less than D·LEAST
//
// Roundings, of which a term takes 14, a run 16 and adding D/8 runs as many in double, are 1.8e-6 and 4e-15 + D·2⁻⁵⁶. FAR has the logarithm
// itself where |z| > MOST, to 1e-13 of its term. Else a run's sum tells whether every z is within MOST: the series is above c/3, c being
// its first term, for any z, so that sum is above c·MOST²/3 if one is not.
template <class T_, int PARTS = 1, bool FAR = false>
struct NearForm {
  using T = T_;
  static constexpr bool IS_FLOAT = sizeof(T) == sizeof(float);
  static constexpr int ROW = 1 + PARTS, COLUMN = 4, DEPTH = FAR ? RUN : 2 * RUN;
  static constexpr int TERMS = IS_FLOAT ? 5 : FAR ? 14 : 7;
  static constexpr double MOST = IS_FLOAT ? 0x1.cp-4 : FAR ? 0x1p-2 : 0x1.6p-6;
  static constexpr double LEAST = IS_FLOAT && PARTS == 2 ? 0x1p-56 : 0;
  int kindQ, kindP;
  T series[TERMS];

  NearForm(int kindQ, int kindP) : kindQ(kindQ), kindP(kindP) {
    constexpr int ALL = 3 * TERMS;
    int kind = PARTS == 1 ? kindQ : VARIANCE;
    double c[ALL];
    double factorial = 2;
    for (int n = 0; n < ALL; factorial *= ++n + 2) {
      double alternating = n % 2 == 0 ? 1 : -1;
      c[n] = kind == STD            ? (n == 0 ? 2 : 2 * alternating / (n + 2)) // z² + 2z − 2 ln(1+z)
             : kind == VARIANCE     ? alternating / (n + 2)                    // z − ln(1+z)
             : kind == LOG_VARIANCE ? 1 / factorial                            // e^z − 1 − z
                                    : alternating * (n + 1) / (n + 2);         // ln(1+z) − z/(1+z)
    }
    for (int n = ALL - 1; n >= TERMS; n--) { // less a multiple of the Chebyshev polynomial T_n(z/MOST)
      double t = c[n];
      for (int k = n; k >= 2; k -= 2) {
        t *= -MOST * MOST * k * (k - 1) / ((n - k + 2) * (n + k - 2));
        c[k - 2] -= t;
      }
    }
    for (int n = 0; n < TERMS; n++) series[n] = (T)c[n];
  }

  KB_FN void row(double m, double s, T (&o)[ROW]) const {
    o[0] = (T)m;
    state(kindQ, s, &o[1]);
  }

  KB_FN void column(double m, double s, T (&o)[COLUMN]) const {
    double r = 1 / s;
    o[0] = (T)m;
    o[2] = kindP == LOG_VARIANCE ? 1 : (T)r;
    state(kindP, s, &o[1]);
    o[3] = (T)(kindP == STD ? r * r : precision(kindP, s));
  }

  // The scale as it is stated, or its variance in two parts.
  KB_FN static void state(int kind, double s, T *o) {
    o[0] = (T)s;
    if (PARTS == 2) {
      Variance v = IS_FLOAT ? Variance{variance(kind, s), 0, 0} : exactVariance(kind, s);
      double unit = powerOfTwo(v.exponent);
      o[0] = (T)(v.high * unit);
      o[1] = (T)(v.high * unit - o[0] + v.low * unit);
    }
  }

  KB_FN T add(const T (&q)[ROW], const T (&p)[COLUMN], T sum) const {
    T d = q[0] - p[0];
    sum = fusedMultiplyAdd(d * p[3], d, sum);
    T z = PARTS == 1 ? (q[1] - p[1]) * p[2] : (q[1] - p[1] + (q[PARTS] - p[2])) * p[3];
    T square = z * z;
    if (FAR && !(square <= MOST * MOST)) {
      return sum + (z - log(q[1] * p[3]));
    }
    T x = series[TERMS - 1];
    KB_UNROLL for (int n = TERMS - 2; n >= 0; n--) x = fusedMultiplyAdd(x, z, series[n]);
    return fusedMultiplyAdd(square, x, sum);
  }

  KB_FN bool stays(T run) const { return FAR || run < series[0] * (T)(MOST * MOST / 3); }
};

// The divergences of diagonal batches, in the first form that is right for a pair: near, where it is asked for; difference; far, likewise; and
// term by term without cancellation.
template <class P, class Near>
struct DiagonalPairs {
  using Parts = NearForm<typename Near::T, 2>;
  using Far = NearForm<double, 2, true>;

  static constexpr int SIDE = 64; // of a square
  static constexpr int MICRO = 4; // of a thread in it

  // Lines are so much longer that threads which store in eight of them, and load 16 bytes side by side, use all banks.
  template <class Form>
  struct Operands {
    static constexpr int LINE = SIDE + 16 / sizeof(typename Form::T);
    typename Form::T row[Form::ROW][Form::DEPTH][LINE], column[Form::COLUMN][Form::DEPTH][LINE];
  };

  struct Squares {
    union {
      Operands<Near> near;
      Operands<Parts> parts;
      Operands<Far> far;
      Operands<DifferenceForm> difference;
    };
    double totals[MICRO * MICRO][THREADS]; // a thread has no registers for them
    int open[2], left; // threads that have entries which may be in a form, which are in none so far
  };

  Diagonal q;
  P p;
  Near near;
  Parts parts;
  Far far;
  bool isNear;
  double unit, margin;
  int same;
  int laneBits = 0; // of a pair's lanes: as many as it has runs, up to a warp's

  DiagonalPairs(const Diagonal &q, const P &p, bool isNear, int same)
      : q(q),
        p(p),
        near(q.kind, p.kind),
        parts(q.kind, p.kind),
        far(q.kind, p.kind),
        isNear(isNear),
        unit(unit64(q.dimension)),
        margin((q.wide || p.wide ? DOUBLE_TOLERANCE : REFINED_TOLERANCE) - unit),
        same(same) {
    while (RUN << laneBits < q.dimension && 1 << laneBits < LANES) laneBits++;
  }

  struct State {
    Pair pair;
    double part, total, kl;
  };

  // Runs settle(form, operands) with one form after the other for as long as it says that entries are left, and says it.
  template <class Settle>
  KB_FN bool settleAll(Settle settle) const {
    using S = Squares;
    bool isLeft = !isNear || (q.kind == p.kind ? settle(near, &S::near) : settle(parts, &S::parts));
    isLeft = isLeft && settle(DifferenceForm{q.kind, p.kind}, &S::difference);
    return isLeft && (!isNear || settle(far, &S::far));
  }

  // A form's value; NaN if it is not right.
  template <class T, int PARTS, bool FAR>
  KB_FN double judge(const NearForm<T, PARTS, FAR> &form, int64_t i, int64_t j, double sum) const {
    constexpr bool WIDE = sizeof(T) == sizeof(double);
    double least = q.least(i, WIDE) + p.least(j, WIDE) + q.dimension * form.LEAST;
    return sum >= 2 * least && sum <= LARGEST ? 0.5 * sum : FLAG;
  }

  KB_FN double judge(const DifferenceForm &, int64_t i, int64_t j, double sum) const {
    double kl = 0.5 * sum + (p.offsetP(j, true) + q.offsetQ(i, true));
    return isCertain(kl, q.noiseQ(i, unit) + p.noiseP(j, unit), margin) ? kl : FLAG;
  }

  KB_FN double judge(const DiagonalPairs &, int64_t, int64_t, double sum) const { return sum; }

  // ---- Pair by pair: a warp has one, or several of few dimensions ----

  KB_FN int lanes() const { return 1 << laneBits; } // of a pair
  KB_FN int pairsOfBlock() const { return THREADS >> laneBits; }

  template <class Block, class At, class Put>
  KB_FN void operator()(Block &block, At at, Put put) const {
    typename Block::template Own<State> own(block);
    block.lanes([&](int t) {
      Pair x = own[t].pair = at(t >> laneBits);
      own[t].kl = x.valid && !(same && x.i == x.j) ? FLAG : 0;
    });
    if (settleAll([&](const auto &form, auto) { return settle(block, own, form); })) {
      settle(block, own, *this);
    }
    block.lanes([&](int t) {
      if (own[t].pair.valid && t % lanes() == 0) {
        put(own[t].pair, own[t].kl);
      }
    });
  }

  // The pairs that are still open, a run of dimensions a lane; whether any is left.
  template <class Block, class Own, class Form>
  KB_FN bool settle(Block &block, Own &own, const Form &form) const {
    block.lanes([&](int t) { own[t].total = 0; });
    for (int h0 = 0; h0 < q.dimension; h0 += RUN * lanes()) {
      block.lanes([&](int t) {
        int h = h0 + t % lanes() * RUN;
        int end = q.dimension - h < RUN ? q.dimension : h + RUN;
        own[t].part = own[t].kl == own[t].kl ? 0 : partOf(form, own[t].pair, h, end);
      });
      block.sumInOrder(own, (int)ceilDiv(q.dimension - h0, RUN), lanes());
    }
    block.lanes([&](int t) {
      if (own[t].kl != own[t].kl) {
        own[t].kl = judge(form, own[t].pair.i, own[t].pair.j, own[t].total);
      }
    });
    return block.isOpen([&](int t) { return own[t].kl != own[t].kl; }, lanes());
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
    return form.stays(sum) ? sum : FLAG;
  }

  KB_FN double partOf(const DiagonalPairs &, Pair x, int h, int end) const {
    double sum = 0;
    KB_NO_UNROLL for (; h < end; h++) {
      sum += stableTerm(q.meanAt(x.i, h), q.kind, q.scaleAt(x.i, h), p.meanAt(x.j, h), p.kind, p.scaleAt(x.j, h));
    }
    return sum;
  }

  // ---- A square at once ----

  // The flagged entries of a square by all forms but the last; whether any is left, as they are when they are too few for all to be done.
  template <class Block>
  KB_FN bool settleSquare(Block &block, Squares &shared, const Region &square, const Output &out) const {
    bool isFirst = true;
    return settleAll([&](const auto &form, auto operands) {
      bool isFew = !isFirst && shared.left <= THREADS / 16;
      isFirst = false;
      return isFew || settleSquare(block, shared, shared.*operands, form, square, out);
    });
  }

  template <class Block, class Form>
  KB_FN bool settleSquare(
      Block &block, Squares &shared, Operands<Form> &operands, const Form &form, const Region &square, const Output &out) const {
    typename Block::template Own<unsigned> flagged(block), open(block); // entries
    block.each([&](int t) {
      flagged[t] = 0;
      KB_NO_UNROLL for (int n = 0; n < MICRO * MICRO; n++) {
        Pair x = entry<Form>(square, t, n);
        flagged[t] |= (unsigned)(x.valid && out.isFlagged(x.i, x.j)) << n;
        shared.totals[n][t] = 0;
      }
      open[t] = flagged[t];
    });
    bool isOpen = true;
    for (int h0 = 0; h0 < q.dimension && isOpen; h0 += Form::DEPTH) {
      int turn = h0 / Form::DEPTH % 2;
      block.each([&](int t) {
        if (t == 0) {
          shared.open[turn] = shared.left = 0;
        }
        side(t, q, square.row0, square.rows(), h0, operands.row, [&](double m, double s, auto &o) { form.row(m, s, o); });
        side(t, p, square.column0, square.columns(), h0, operands.column,
             [&](double m, double s, auto &o) { form.column(m, s, o); });
      });
      block.each([&](int t) {
        KB_NO_UNROLL for (int h = 0; h < Form::DEPTH && open[t] != 0; h += RUN) open[t] &= addRun(operands, form, h, t, shared.totals);
        if (open[t] != 0) {
          block.add(shared.open[turn], 1);
        }
      });
      isOpen = shared.open[turn] > 0;
    }
    block.each([&](int t) {
      KB_NO_UNROLL for (unsigned n = 0; open[t] >> n != 0; n++) {
        Pair x = entry<Form>(square, t, n);
        double kl = open[t] >> n & 1 ? judge(form, x.i, x.j, shared.totals[n][t]) : FLAG;
        if (kl == kl) {
          out.put(x.i, x.j, kl);
          flagged[t] ^= 1u << n;
        }
      }
      if (flagged[t] != 0) {
        block.add(shared.left, 1);
      }
    });
    return shared.left > 0;
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
  template <class G, class T, int COUNT, int DEPTH, int LINE, class Make>
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

  // Which entries may be in the form.
  template <class Form>
  KB_FN static unsigned addRun(
      const Operands<Form> &operands, const Form &form, int h0, int t, double (&totals)[MICRO * MICRO][THREADS]) {
    using T = typename Form::T;
    T sums[MICRO * MICRO] = {};
    KB_NO_UNROLL for (int h = h0; h < h0 + RUN; h++) {
      constexpr int TOGETHER = 16 / sizeof(T); // rows, for there are no registers for more
      T column[MICRO][Form::COLUMN];
      load(operands.column, h, t % 16, 0, column);
      KB_UNROLL for (int r = 0; r < MICRO; r += TOGETHER) {
        T row[TOGETHER][Form::ROW];
        load(operands.row, h, t / 16, r, row);
        KB_UNROLL for (int n = r * MICRO; n < (r + TOGETHER) * MICRO; n++) {
          sums[n] = form.add(row[n / MICRO - r], column[n % MICRO], sums[n]);
        }
      }
    }
    unsigned open = 0;
    KB_UNROLL for (int n = 0; n < MICRO * MICRO; n++) {
      totals[n][t] += sums[n];
      open |= (unsigned)form.stays(sums[n]) << n;
    }
    return open;
  }

  // Operands of some of a group's rows or columns.
  template <class T, int COUNT, int DEPTH, int LINE, int SOME>
  KB_FN static void load(const T (&from)[COUNT][DEPTH][LINE], int h, int group, int first, T (&to)[SOME][COUNT]) {
    constexpr int WIDTH = 16 / sizeof(T);
    KB_UNROLL for (int c = 0; c < COUNT; c++) {
      KB_UNROLL for (int n = 0; n < SOME; n += WIDTH) {
        auto some = *(const Vec<T, WIDTH> *)&from[c][h][place<T>(group, first + n)];
        KB_UNROLL for (int k = 0; k < WIDTH; k++) to[n + k][c] = some.x[k];
      }
    }
  }
};

// Computes the flagged entries again: of a tile with few, those of its list one by one; of others a square of 64 at a time, a thread
// 4 × 4 of it, and what is left of it one by one. Blocks stride over the tiles.
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
    if (!pairs.settleSquare(block, shared.squares, square, out)) {
      return;
    }
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
    for (int n = from; n < to; n += pairs.pairsOfBlock()) {
      pairs(
          block,
          [&](int k) {
            int entry = n + k < to ? entries[n + k] : 0;
            return Pair{corner.i + entry / columns, corner.j + entry % columns, n + k < to};
          },
          [&](const Pair &x, double kl) { out.put(x.i, x.j, kl); });
    }
  }
};

// out[i] = KL(q_i ‖ p_i), pair by pair; blocks stride over the pairs.
template <class Pairs>
struct Aligned {
  Pairs pairs;
  Output out;
  int64_t size;
  int64_t launched; // blocks

  int64_t blocks() const { return launched; }

  template <class Block>
  KB_FN void operator()(Block &block) const {
    int count = pairs.pairsOfBlock();
    for (int64_t first = block.index * count; first < size; first += launched * count) {
      pairs(
          block,
          [&](int k) { return Pair{first + k, first + k, first + k < size}; },
          [&](const Pair &x, double kl) { out.put(0, x.i, kl); });
    }
  }
};

} // namespace kullback
