// The arithmetic of single values and of single pairs, the same text on a device and in the emulation.
//
// Compiled without contraction of products and sums (-fmad=false, -ffp-contract=off): an fma is one where it says fma.
#pragma once

#include <math.h>
#include <stdint.h>
#include <string.h>

#include <limits>

#ifdef __CUDACC__
#define KB_FN __host__ __device__ inline
#else
#define KB_FN inline
#endif

// Before a loop whose indices must be constants for arrays to live in registers.
#ifdef __CUDA_ARCH__
#define KB_UNROLL _Pragma("unroll")
#define KB_UNROLL_4 _Pragma("unroll 4")
#define KB_NO_UNROLL _Pragma("unroll 1")
#else
#define KB_UNROLL
#define KB_UNROLL_4
#define KB_NO_UNROLL
#endif

namespace kullback {

enum Kind : int32_t { STD, VARIANCE, LOG_VARIANCE, PRECISION, SCALE_TRIL, SCALE_TRIL_PARTS };

// Both batches of float: the contract, less two roundings. What is recomputed is held below the rounding of a float result.
constexpr double FLOAT_TOLERANCE = 1e-5 - 0x1p-23;
constexpr double REFINED_TOLERANCE = 1e-7;
constexpr double DOUBLE_TOLERANCE = 1e-12;
constexpr double FULL_FLOAT_TOLERANCE = 1e-6;

// A = ½R, R being the sum over dimensions of [(μq − μp)² + vq]/vp, no term of which is negative. In double, rounding d, v,
// 1/v and the numerator costs at most 8 units of a term, exp included, and adding up a run of 8 dimensions 8; the runs add up one
// after the other. The rest is the epilogue's.
constexpr double UNITS64 = 8 + 8 + 4;

// In float entries that 58·u·A leaves within the contract are so whatever the order of terms and roundings: the library's
// PairKl.java derives it.
constexpr double UNITS32 = 58;

// Terms in one accumulator of float.
constexpr int CHUNK = 64;

constexpr int LANES = 32;

constexpr double INFINITE = std::numeric_limits<double>::infinity();
constexpr double LARGEST = std::numeric_limits<double>::max();
constexpr double NORMAL = std::numeric_limits<double>::min();

// An entry that is to be recomputed. No result is NaN.
constexpr double FLAG = std::numeric_limits<double>::quiet_NaN();

KB_FN constexpr double unit32() { return UNITS32 * 0x1p-24; }

KB_FN double unit64(int dimension) { return (UNITS64 + dimension / 8.0) * 0x1p-53; }

// Whether the error bound unit·kl + noise is within tolerance·kl, margin being tolerance − unit; false for what overflowed, is
// negative or is NaN.
KB_FN bool isCertain(double kl, double noise, double margin) {
  double rest = kl * margin - noise;
  return kl >= 0 && margin > 0 && rest >= 0 && rest < INFINITE;
}

KB_FN int64_t bits(double x) {
  int64_t b;
  memcpy(&b, &x, sizeof b);
  return b;
}

KB_FN double fromBits(int64_t b) {
  double x;
  memcpy(&x, &b, sizeof x);
  return x;
}

// The exponent of a normal number; −1023 of 0 and subnormals, 1024 of infinities.
KB_FN int exponentOf(double x) { return (int)(bits(x) >> 52 & 0x7ff) - 1023; }

// The mantissa of a normal number, in [1, 2).
KB_FN double mantissaOf(double x) {
  return fromBits((bits(x) & 0x000FFFFFFFFFFFFF) | 0x3FF0000000000000);
}

// ln(a/b) of positive a and b.
KB_FN double logQuotient(double a, double b) {
  double r = a / b;
  return r > 0x1p-1000 && r < 0x1p1000 ? log(r) : log(a) - log(b);
}

// ---- How a batch states its scales ----

// σ².
KB_FN double variance(int kind, double s) {
  switch (kind) {
    case STD: return s * s;
    case LOG_VARIANCE: return exp(s);
    case PRECISION: return 1 / s;
    default: return s;
  }
}

// 1/σ².
KB_FN double precision(int kind, double s) { return kind == PRECISION ? s : 1 / variance(kind, s); }

// 1/σ.
KB_FN double inverseStd(int kind, double s) {
  switch (kind) {
    case STD: return 1 / s;
    case LOG_VARIANCE: return exp(-0.5 * s);
    case PRECISION: return sqrt(s);
    default: return 1 / sqrt(s);
  }
}

// ln(σq²/σp²).
KB_FN double logRatio(int kind, double q, double p) {
  switch (kind) {
    case STD: return 2 * logQuotient(q, p);
    case LOG_VARIANCE: return q - p;
    case PRECISION: return logQuotient(p, q);
    default: return logQuotient(q, p);
  }
}

// The scale whose σ is 1.
KB_FN double unitScale(int kind) { return kind == LOG_VARIANCE ? 0 : 1; }

// ln σ².
KB_FN double logVariance(int kind, double s) { return logRatio(kind, s, unitScale(kind)); }

// σq²/σp² − 1, to a relative error of a few roundings however close the two are. `low` is of the difference of the scales, beyond double.
KB_FN double excess(int kind, double q, double p, double low = 0) {
  double d = q - p + low;
  switch (kind) {
    case STD: return d / p * (d / p + 2);
    case LOG_VARIANCE: return expm1(d);
    case PRECISION: return -d / q;
    default: return d / p;
  }
}

// d/σ.
KB_FN double standardize(int kind, double d, double s) {
  switch (kind) {
    case STD: return d / s;
    case LOG_VARIANCE: {
      double h = exp(-0.25 * s); // in two steps: exp(-s/2) alone can overflow where the product does not
      return d == 0 ? 0 : d * h * h;
    }
    case PRECISION: return d * sqrt(s);
    default: return d / sqrt(s);
  }
}

// Whether σ² is outside [2^−exponent, 2^exponent].
KB_FN bool isBeyond(int kind, double s, int exponent) {
  double most = kind == LOG_VARIANCE ? exponent * 0.6931471805599453
                                     : scalbn(1.0, kind == STD ? exponent / 2 : exponent);
  double least = kind == LOG_VARIANCE ? -most : 1 / most;
  return !(s >= least && s <= most);
}

// Variances that float and double tiles take; r = 1/v and d²·r then lose nothing to under- or overflow that matters.
constexpr int RANGE32 = 100;
constexpr int RANGE64 = 500;

// (high + low)·2^exponent to some 100 bits, by error-free transformations (T. J. Dekker 1971): for the difference of variances
// that are close but stated in different ways, which rounding to double would swamp.
struct Variance {
  double high, low;
  int exponent;
};

// ln 2 in three parts; whole multiples up to 2²⁰ of the first two are exact.
constexpr double LN2_HIGH = 0x1.62e42fef00000p-1;
constexpr double LN2_MIDDLE = 0x1.473de6af00000p-34;
constexpr double LN2_LOW = 0x1.3c7673007e5edp-69;

// A power of two, or the nearest within double's range.
KB_FN double powerOfTwo(int e) { return fromBits((int64_t)((e < -1022 ? -1022 : e > 1023 ? 1023 : e) + 1023) << 52); }

// e^s by s = k ln 2 + 2⁹ r, the series of e^r − 1, and e^2r − 1 = 2p + p² of p = e^r − 1.
KB_FN Variance exactExp(double s) {
  constexpr int HALVINGS = 9;
  constexpr double SIXTH_REST = 0x1.5555555555555p-57; // 1/6 less what double has of it; a quarter of it 1/24 less that
  if (fabs(s) > 1e5) { // far beyond every other kind
    return {1, 0, s > 0 ? 1 << 20 : -(1 << 20)};
  }
  double k = rint(s / LN2_HIGH);
  double a = s - k * LN2_HIGH; // exact
  double b = k * LN2_MIDDLE;
  double r = a - b;
  double t = a - r;
  double rest = a - (r + t) + (t - b) - k * LN2_LOW;
  r *= powerOfTwo(-HALVINGS);
  rest *= powerOfTwo(-HALVINGS);
  // |r| < 2^-10.5, so that of r⁵/120 and on, rounded, 2⁻¹⁰² is lost
  double tail = r * (1 / 120.0 + r * (1 / 720.0 + r * (1 / 5040.0 + r / 40320)));
  double p = 1 / 24.0 + tail;
  double low = 1 / 24.0 - p + tail + 0.25 * SIXTH_REST;
  KB_NO_UNROLL for (int n = 3; n >= 0; n--) {
    double product = p * r;
    double c = n == 3 ? 1 / 6.0 : n == 2 ? 0.5 : n;
    low = fma(p, r, -product) + (low * r + p * rest) + (n == 3 ? SIXTH_REST : 0);
    p = c + product;
    low += c - p + product;
  }
  for (int i = 0; i < HALVINGS; i++) {
    double square = p * p;
    double squareRest = fma(p, p, -square) + 2 * p * low;
    double sum = 2 * p + square;
    double sumRest = 2 * p - sum + square + (2 * low + squareRest);
    p = sum + sumRest;
    low = sum - p + sumRest;
  }
  double high = 1 + p;
  return {high, 1 - high + p + low, (int)k};
}

KB_FN Variance exactVariance(int kind, double s) {
  if (kind == LOG_VARIANCE) {
    return exactExp(s);
  }
  bool subnormal = s < NORMAL;
  double normal = subnormal ? s * 0x1p54 : s;
  int e = exponentOf(normal) - (subnormal ? 54 : 0);
  double m = mantissaOf(normal);
  switch (kind) {
    case STD: return {m * m, fma(m, m, -(m * m)), 2 * e};
    case PRECISION: return {1 / m, fma(-(1 / m), m, 1.0) / m, -e};
    default: return {m, 0, e};
  }
}

// Whether the two are within a factor of some 100, so that logRatio is accurate.
KB_FN bool isComparable(Variance q, Variance p) {
  int e = q.exponent - p.exponent;
  return -4 <= e && e <= 4;
}

// σq²/σp² − 1.
KB_FN double excess(Variance q, Variance p) {
  int e = q.exponent - p.exponent;
  if (!isComparable(q, p)) {
    return scalbn(q.high / p.high, e) - 1;
  }
  return (scalbn(q.high, e) - p.high + (scalbn(q.low, e) - p.low)) / p.high;
}

// ln(σq²/σp²) of comparable variances.
KB_FN double logRatio(Variance q, Variance p) {
  return log(q.high / p.high) + (q.exponent - p.exponent) * (LN2_HIGH + LN2_MIDDLE);
}

// ---- A term of the divergence, without cancellation ----

// ½ (x − ln(1+x)); the logarithm is given where x is far from 0.
KB_FN double excessTerm(double x, double logRatio) {
  if (fabs(x) < 0x1p-8) { // the series' next term is x⁹/18
    double series = 1 / 6.0 - x * (1 / 7.0 - x / 8);
    return 0.5 * x * x * (1 / 2.0 - x * (1 / 3.0 - x * (1 / 4.0 - x * (1 / 5.0 - x * series))));
  }
  if (fabs(x) < 0.5) {
    return 0.5 * (x - log1p(x));
  }
  return x == INFINITE ? x : 0.5 * x - 0.5 * logRatio;
}

// ½ (μq − μp)²/σp².
KB_FN double meanTerm(double mq, double mp, int kind, double sp) {
  double d = mq - mp;
  double y = fabs(d) <= LARGEST ? standardize(kind, d, sp)
                                : 2 * standardize(kind, 0.5 * mq - 0.5 * mp, sp); // the difference overflows
  return 0.5 * y * y;
}

// One dimension's part of KL. No part is negative and none cancels, so the relative error of the sum is that of a term.
KB_FN double stableTerm(double mq, int kindQ, double sq, double mp, int kindP, double sp) {
  double x;
  double log = FLAG;
  if (kindQ == kindP) {
    x = excess(kindQ, sq, sp);
    if (!(fabs(x) < 0.5)) {
      log = logRatio(kindQ, sq, sp);
    }
  } else {
    Variance vq = exactVariance(kindQ, sq);
    Variance vp = exactVariance(kindP, sp);
    x = excess(vq, vp);
    if (!(fabs(x) < 0.5)) {
      log = isComparable(vq, vp) ? logRatio(vq, vp) : logVariance(kindQ, sq) - logVariance(kindP, sp);
    }
  }
  return excessTerm(x, log) + meanTerm(mq, mp, kindP, sp);
}

// ---- Sums of logarithms ----

// Π s over mantissas with the exponents summed apart: one logarithm, and no over- or underflow.
struct LogProduct {
  double mantissa = 1;
  double exponent = 0;

  KB_FN void multiply(double s) {
    double x = s;
    if (x < NORMAL) {
      x *= 0x1p54;
      exponent -= 54;
    }
    exponent += exponentOf(x);
    mantissa *= mantissaOf(x);
    exponent += exponentOf(mantissa);
    mantissa = mantissaOf(mantissa);
  }

  // Up to 32 mantissas, each below 2, cannot overflow.
  KB_FN LogProduct operator+(LogProduct o) const {
    LogProduct product;
    product.mantissa = mantissa * o.mantissa;
    product.exponent = exponent + o.exponent;
    return product;
  }

  KB_FN double log() const { return ::log(mantissa) + exponent * 0.6931471805599453; }
};

// A sum and what rounding took from it (A. Neumaier 1974).
struct CompensatedSum {
  double sum = 0;
  double rest = 0;

  KB_FN void add(double x) {
    double t = sum + x;
    rest += fabs(sum) >= fabs(x) ? (sum - t) + x : (x - t) + sum;
    sum = t;
  }

  // In the same bits whichever way round.
  KB_FN CompensatedSum operator+(CompensatedSum o) const {
    CompensatedSum total;
    bool swap = fabs(o.sum) > fabs(sum);
    double a = swap ? o.sum : sum;
    double b = swap ? sum : o.sum;
    total.sum = a + b;
    total.rest = (a - total.sum) + b + (rest + o.rest);
    return total;
  }
};

// ---- Full covariances ----

KB_FN int64_t packedLength(int64_t dimension) { return dimension * (dimension + 1) / 2; }

// Entries of L, and its diagonal's inverse, whose products the matrix kernel can neither over- nor underflow.
constexpr double FULL_MOST = 0x1p250;

// ½x² + x − ln(1+x) for x = s/t − 1.
KB_FN double factorExcess(double x, double s, double t) {
  if (fabs(x) < 0x1p-8) { // the series' next term is x⁹/9
    double series = 1 / 6.0 - x * (1 / 7.0 - x / 8);
    return x * x * (1 - x * (1 / 3.0 - x * (1 / 4.0 - x * (1 / 5.0 - x * series))));
  }
  if (fabs(x) < 0.5) {
    return 0.5 * x * x + (x - log1p(x));
  }
  return x == INFINITE ? x : 0.5 * x * x + (x - logQuotient(s, t));
}

// (a − b)·t, where a − b may overflow.
KB_FN double scaledDifference(double a, double b, double t) {
  double d = a - b;
  return fabs(d) <= LARGEST ? d * t : a * t - b * t;
}

// A power of two near 1/x, within double's range.
KB_FN double inversePower(double x) { return powerOfTwo(-exponentOf(x)); }

// Relative error allowed for batches of double: 1e-12 times the condition number ‖L‖‖L⁻¹‖, up to where it would show. The bounds
// are those of the worst case; in the near form most of a bound is what substitution may lose, and pairs one by one lose that, too.
KB_FN double fullTolerance(double condition, bool isNear) {
  double most = isNear ? 1e5 : 100;
  return DOUBLE_TOLERANCE * (condition > most ? most : condition >= 1 ? condition : 1);
}

// A Gaussian's mean, its packed factor, and the low part of that, if there is one.
struct FullGaussian {
  const double *mean, *factor, *low;
};

// Numbers in memory one after the other, `step` apart, and `growth` further each time.
struct Walk {
  double *at;
  int64_t step, growth;

  KB_FN void next() {
    at += step;
    step += growth;
  }

  KB_FN void skip(int64_t n) {
    at += n * step + n * (n - 1) / 2 * growth;
    step += n * growth;
  }
};

// Column c of E = L_p⁻¹(L_q − L_p), or for c = D of y = L_p⁻¹(μ_q − μ_p), by forward substitution:
//
//     KL = ½ (‖y‖² + Σ_{r>c} E_rc²) + Σ_k [½ E_kk² + E_kk − ln(1 + E_kk)]
//
// Returns the column's part of it. The solution goes to e, from entry c or 0 on. Lanes that solve columns from `first` on walk the rows
// together, eight at once, which is 3 instructions a term on sm_90. SCALED: rows are scaled by powers of two, exactly, so that nothing
// overflows that KL does not, and go one by one; without, for Gaussians within FULL_MOST. FUSED: products are not rounded, which saves an
// instruction; rounded, that of a quotient and its divisor mostly is the dividend, and ill-conditioned factors may be solved exactly.
template <bool SCALED, bool FUSED>
KB_FN double solveColumn(int c, int first, int d, const FullGaussian &q, const FullGaussian &p, Walk e) {
  constexpr int ROWS = SCALED ? 1 : 8;
  bool isMean = c == d;
  int start = isMean ? 0 : c;
  const double *right = isMean ? q.mean : q.factor + c;
  const double *less = isMean ? p.mean : p.factor + c;
  const double *low = isMean || q.low == nullptr ? nullptr : q.low + c;
  const double *lowLess = isMean || p.low == nullptr ? nullptr : p.low + c;
  // Entry k of the right-hand side, at `at`, times a power of two: to three roundings of what is stated however close the two are.
  auto difference = [&](int at, double t) {
    double x = SCALED ? scaledDifference(right[at], less[at], t) : right[at] - less[at];
    if (low != nullptr) {
      x += low[at] * t;
    }
    return lowLess != nullptr ? x - lowLess[at] * t : x;
  };
  double excess = 0;
  double squares = 0;
  double diagonal = 0; // of E, of which the excess has the square
  if (!isMean) {
    int at = (int)packedLength(c);
    diagonal = difference(at, 1) / less[at];
    excess = factorExcess(diagonal, right[at], less[at]);
  }
  first = first / ROWS * ROWS;
  e.skip(first);
  for (int k0 = first; k0 < d; k0 += ROWS) {
    Walk x = e;
    const double *rows[ROWS]; // of L_p, from column l on; beyond the last one, that again
    double scales[ROWS];
    double sums[ROWS] = {};
    const double *row = p.factor + packedLength(k0) + first;
    KB_UNROLL for (int n = 0; n < ROWS; n++) {
      int next = k0 + n + 1;
      rows[n] = row;
      scales[n] = SCALED ? inversePower(row[(next < d ? next : d) - 1 - first]) : 1;
      row += next < d ? next : 0;
    }
    auto add = [&](int n, int l, double x) {
      if (SCALED) {
        sums[n] += x == 0 ? 0 : rows[n][l] * scales[n] * x; // the factor may have overflowed
      } else {
        sums[n] = FUSED ? fma(rows[n][l], x, sums[n]) : sums[n] + rows[n][l] * x;
      }
    };
    KB_NO_UNROLL for (int l0 = first; l0 < k0; l0 += ROWS) {
      KB_UNROLL for (int l = 0; l < ROWS; l++) {
        double y = l0 + l >= start ? *x.at : 0;
        x.next();
        KB_UNROLL for (int n = 0; n < ROWS; n++) add(n, l, y);
      }
      KB_UNROLL for (int n = 0; n < ROWS; n++) rows[n] += ROWS;
    }
    int at = (int)packedLength(k0);
    KB_UNROLL for (int n = 0; n < ROWS; n++) {
      int k = k0 + n;
      if (k < d) {
        double t = scales[n];
        double y = (difference(isMean ? k : at, t) - sums[n]) * (1 / (rows[n][n] * t));
        y = k == c ? diagonal : k >= start ? y : 0;
        if (k >= start) {
          *x.at = y;
        }
        squares = k == c ? squares : fma(y, y, squares);
        x.next();
        KB_UNROLL for (int m = n + 1; m < ROWS; m++) add(m, n, y);
        at += k + 1;
      }
    }
  }
  return excess + 0.5 * squares;
}

} // namespace kullback
