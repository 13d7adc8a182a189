// Checks the library's results against a reference of higher precision, on the emulated device or on a real one.
#include <quadmath.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "kullback_cuda.h"

#ifdef KULLBACK_EMULATED_CHECK
#include "../emulated/cuda_runtime_subset.h"
#include "../emulated/kullback_emulated.h"
#else
#include <cuda_runtime_api.h>
#endif

namespace {

// The reference's numbers: differences of variances are taken in quadruple precision, for they cancel, all else in 64 bits, a hundred
// times as fast.
using Quad = __float128;
using Real = long double;

constexpr double INFINITE = std::numeric_limits<double>::infinity();

int violations = 0;

void violation(const std::string &what) {
  if (violations++ < 50) {
    printf("VIOLATION %s\n", what.c_str());
  }
}

void expect(bool holds, const std::string &what) {
  if (!holds) {
    violation(what);
  }
}

void run(int status, const char *what) {
  if (status != 0) {
    printf("%s: %d %s\n", what, status, status > 0 ? cudaGetErrorString((cudaError_t)status) : "invalid");
    exit(2);
  }
}

#define RUN(call) run((int)(call), #call)

thread_local cudaStream_t stream = nullptr;

bool isSlowInDouble = false; // the device

struct Memory {
  void *at = nullptr;

  explicit Memory(int64_t bytes) {
    if (bytes > 0) {
      RUN(cudaMalloc(&at, bytes));
    }
  }
  Memory(const Memory &) = delete;
  ~Memory() { cudaFree(at); }

  void write(const void *from, int64_t bytes, int64_t offset = 0) {
    RUN(cudaMemcpyAsync((char *)at + offset, from, bytes, cudaMemcpyHostToDevice, stream));
    RUN(cudaStreamSynchronize(stream));
  }

  void read(void *to, int64_t bytes) {
    RUN(cudaMemcpyAsync(to, at, bytes, cudaMemcpyDeviceToHost, stream));
    RUN(cudaStreamSynchronize(stream));
  }
};

const char *KINDS[] = {"std", "variance", "logVariance", "precision", "scaleTril", "scaleTrilParts"};

// ---- Batches on host and device ----

struct Batch {
  int64_t n;
  int d;
  int kind;
  bool wide;
  std::vector<double> mean, scale; // as the device gets them
  std::vector<double> low;         // the second part of KULLBACK_SCALE_TRIL_PARTS

  bool isFull() const { return kind >= KULLBACK_SCALE_TRIL; }
  int64_t length() const { return isFull() ? (int64_t)d * (d + 1) / 2 : d; }
};

struct OnDevice {
  kullback_cuda_batch batch;
  Memory memory;

  explicit OnDevice(const Batch &b)
      : batch{nullptr, b.n, b.d, b.kind, b.wide}, memory(kullback_cuda_batch_bytes(&batch)) {
    batch.data = memory.at;
    int64_t offset = kullback_cuda_scale_offset(&batch);
    if (b.wide || b.isFull()) {
      memory.write(b.mean.data(), b.mean.size() * 8);
      memory.write(b.scale.data(), b.scale.size() * 8, offset);
      if (!b.low.empty()) {
        memory.write(b.low.data(), b.low.size() * 8, offset + b.scale.size() * 8);
      }
    } else {
      std::vector<float> mean(b.mean.begin(), b.mean.end());
      std::vector<float> scale(b.scale.begin(), b.scale.end());
      memory.write(mean.data(), mean.size() * 4);
      memory.write(scale.data(), scale.size() * 4, offset);
    }
    RUN(kullback_cuda_prepare(&batch, stream));
  }
};

// A region's result, with every byte of it poisoned before, and what lies around it checked after.
struct Result {
  int64_t rows, columns, stride;
  bool wide;
  std::vector<char> bytes;

  static constexpr int64_t GUARD = 96; // elements; keeps alignment, or not, by `shift`

  Result(
      const std::function<int(void *, int64_t, int)> &compute, int64_t rows, int64_t columns, bool wide, int64_t gap, int64_t shift)
      : rows(rows), columns(columns), stride(columns + gap), wide(wide) {
    int64_t element = wide ? 8 : 4;
    int64_t front = GUARD + shift;
    bytes.resize((front + rows * stride + GUARD) * element);
    std::vector<char> before(bytes.size());
    for (size_t n = 0; n < bytes.size() / element; n++) { // signalling NaNs
      uint64_t pattern = wide ? 0x7ff40000deadbeef : 0x7fa0dead;
      memcpy(&before[n * element], &pattern, element);
    }
    Memory out(bytes.size());
    out.write(before.data(), before.size());
    RUN(compute((char *)out.at + front * element, stride, wide));
    out.read(bytes.data(), bytes.size());
    for (int64_t n = 0; n < (int64_t)bytes.size() / element; n++) {
      int64_t k = n - front;
      bool within = k >= 0 && k < rows * stride && k % stride < columns;
      if (!within && memcmp(&bytes[n * element], &before[n * element], element) != 0) {
        violation("written outside the region");
        break;
      }
    }
    bytes.erase(bytes.begin(), bytes.begin() + front * element);
    for (int64_t i = 0; i < rows; i++) {
      for (int64_t j = 0; j < columns; j++) {
        if (!(at(i, j) >= 0) || std::signbit(at(i, j))) {
          violation("entry " + std::to_string(i) + ", " + std::to_string(j) + " is " + std::to_string(at(i, j)));
          return;
        }
      }
    }
  }

  double at(int64_t i, int64_t j) const {
    int64_t k = i * stride + j;
    return wide ? ((const double *)bytes.data())[k] : ((const float *)bytes.data())[k];
  }
};

Result pairwise(
    const OnDevice &q,
    const OnDevice &p,
    int64_t row0,
    int64_t rows,
    int64_t column0,
    int64_t columns,
    bool same,
    bool wide,
    int64_t gap = 0,
    int64_t shift = 0,
    bool transposed = false) {
  Memory scratch(kullback_cuda_scratch_bytes(&q.batch, &p.batch, rows, columns));
  return Result(
      [&](void *out, int64_t stride, int outWide) {
        return kullback_cuda_pairwise(
            &q.batch, &p.batch, row0, rows, column0, columns, same, out, stride, outWide, transposed, scratch.at, stream);
      },
      transposed ? columns : rows,
      transposed ? rows : columns,
      wide,
      gap,
      shift);
}

Result aligned(const OnDevice &q, const OnDevice &p, bool same, bool wide) {
  Memory scratch(kullback_cuda_scratch_bytes(&q.batch, &p.batch, q.batch.size, 1));
  return Result(
      [&](void *out, int64_t, int outWide) {
        return kullback_cuda_aligned(&q.batch, &p.batch, same, out, outWide, scratch.at, stream);
      },
      1,
      q.batch.size,
      wide,
      0,
      0);
}

Result standard(const OnDevice &q, bool wide) {
  return Result(
      [&](void *out, int64_t, int outWide) { return kullback_cuda_standard(&q.batch, out, outWide, stream); },
      1,
      q.batch.size,
      wide,
      0,
      0);
}

// ---- The reference ----

Quad variance(int kind, double s) {
  switch (kind) {
    case KULLBACK_STD: return (Quad)s * s;
    case KULLBACK_VARIANCE: return s;
    case KULLBACK_LOG_VARIANCE: return expq(s);
    default: return 1 / (Quad)s;
  }
}

// x − ln(1+x), ratio being 1+x
Real excess(Real x, Real ratio) {
  if (std::fabs(x) >= 0x1p-8L) { // 9 bits cancel at most
    return x - (std::fabs(x) < 0.5L ? std::log1p(x) : std::log(ratio));
  }
  Real series = 0;
  for (int n = 10; n >= 2; n--) series = (n % 2 == 0 ? 1 : -1) / (Real)n + series * x;
  return series * x * x;
}

Real diagonalTerm(Real mq, Quad vq, Real mp, Quad vp) {
  Real of = (Real)vp;
  return ((mq - mp) * (mq - mp) / of + excess((Real)(vq - vp) / of, (Real)vq / of)) / 2;
}

// A Gaussian's factor, packed, in one part or two.
struct Factor {
  const double *high, *low;

  Factor(const Batch &b, int64_t i) : high(&b.scale[i * b.length()]), low(b.low.empty() ? nullptr : &b.low[i * b.length()]) {}

  Real rest(int k) const { return low == nullptr ? 0 : low[k]; }
  Real operator()(int r, int c) const { return high[r * (r + 1) / 2 + c] + rest(r * (r + 1) / 2 + c); }

  Real less(const Factor &o, int r, int c) const {
    int k = r * (r + 1) / 2 + c;
    return (Real)high[k] - o.high[k] + (rest(k) - o.rest(k));
  }
};

// Solves L x = b from row `start` on, above which b is 0.
template <typename Right>
void solve(int d, const Factor &l, int start, const Right &right, std::vector<Real> &x) {
  for (int k = start; k < d; k++) {
    Real sum = right(k);
    for (int c = start; c < k; c++) sum -= l(k, c) * x[c];
    x[k] = sum / l(k, k);
  }
}

// ‖L‖‖L⁻¹‖
double conditionOf(int d, const Factor &l) {
  std::vector<Real> x(d);
  Real norm = 0;
  Real inverseNorm = 0;
  for (int c = 0; c < d; c++) {
    solve(d, l, c, [&](int k) { return k == c; }, x);
    for (int k = c; k < d; k++) {
      norm += l(k, c) * l(k, c);
      inverseNorm += x[k] * x[k];
    }
  }
  return (double)(std::sqrt(norm) * std::sqrt(inverseNorm));
}

// The factors' KL by triangular solves, to 64 bits less those of the condition: what is allowed grows with it likewise.
Real fullKl(int d, const double *mq, const Factor &lq, const double *mp, const Factor &lp) {
  std::vector<Real> e(d);
  Real sum = 0;
  solve(d, lp, 0, [&](int k) { return (Real)mq[k] - mp[k]; }, e);
  for (int k = 0; k < d; k++) {
    sum += e[k] * e[k] / 2;
  }
  for (int c = 0; c < d; c++) {
    solve(d, lp, c, [&](int k) { return lq.less(lp, k, c); }, e);
    sum += excess(e[c], lq(c, c) / lp(c, c)); // and ½x²: ½x² + x − ln(1+x)
    for (int k = c; k < d; k++) {
      sum += e[k] * e[k] / 2;
    }
  }
  return sum;
}

Real kl(const Batch &q, int64_t i, const Batch &p, int64_t j, double *condition) {
  if (q.isFull()) {
    *condition = conditionOf(p.d, Factor(p, j));
    return fullKl(q.d, &q.mean[i * q.d], Factor(q, i), &p.mean[j * p.d], Factor(p, j));
  }
  *condition = 1;
  Real sum = 0;
  for (int h = 0; h < q.d; h++) {
    int64_t a = i * q.d + h;
    int64_t b = j * p.d + h;
    sum += diagonalTerm(q.mean[a], variance(q.kind, q.scale[a]), p.mean[b], variance(p.kind, p.scale[b]));
  }
  return sum;
}

struct Exact {
  int64_t i, j;
  Real kl;
  double condition;
};

// The divergences of these pairs, by all processors: a quadruple-precision operation takes as long as a hundred others.
void compute(const Batch &q, const Batch &p, std::vector<Exact> &pairs) {
  std::atomic<size_t> next = 0;
  auto work = [&] {
    for (size_t n; (n = next++) < pairs.size();) {
      pairs[n].kl = kl(q, pairs[n].i, p, pairs[n].j, &pairs[n].condition);
    }
  };
  std::vector<std::jthread> others;
  for (unsigned n = 1; n < std::thread::hardware_concurrency(); n++) {
    others.emplace_back(work);
  }
  work();
}

Batch unit(const Batch &like) {
  Batch p{1, like.d, like.isFull() ? KULLBACK_SCALE_TRIL : like.kind, like.wide, {}, {}, {}};
  p.mean.assign(like.d, 0);
  p.scale.assign(like.length(), like.kind == KULLBACK_LOG_VARIANCE || like.isFull() ? 0 : 1);
  for (int h = 0; h < like.d && like.isFull(); h++) {
    p.scale[h * (h + 3) / 2] = 1;
  }
  return p;
}

// Relative error of a result against the reference, rounding to float aside; 0 for what must overflow or underflow and does.
double errorOf(double value, Real exact, bool wide) {
  double most = wide ? std::numeric_limits<double>::max() : std::numeric_limits<float>::max();
  double least = wide ? 1e-290 : 1e-37;
  if (exact == 0) {
    return value == 0 ? 0 : INFINITE;
  }
  if (exact > most * (1 - 1e-6L)) {
    return value == INFINITE || exact < most * (1 + 1e-6L) ? 0 : INFINITE;
  }
  if (exact < least) {
    return std::fabs(value) <= 2 * least ? 0 : INFINITE;
  }
  return (double)(std::fabs(value - exact) / exact);
}

// ---- The table ----

struct Regime {
  std::string name;
  double worst = 0;     // relative error
  double worstShare = 0; // of what is allowed
  int64_t pairs = 0;
};

std::vector<Regime> regimes;

Regime &regime(const std::string &name) {
  for (auto &r : regimes) {
    if (r.name == name) {
      return r;
    }
  }
  regimes.push_back({name});
  return regimes.back();
}

void record(const std::string &name, double error, double allowed, const std::string &where) {
  Regime &r = regime(name);
  r.pairs++;
  r.worst = std::max(r.worst, error);
  r.worstShare = std::max(r.worstShare, error / allowed);
  if (!(error <= allowed)) {
    violation(name + ": " + where + ": relative error " + std::to_string(error / allowed) + " times what is allowed");
  }
}

std::mt19937_64 generator(42);

double normal() { return std::normal_distribution<double>()(generator); }
int64_t below(int64_t n) { return std::uniform_int_distribution<int64_t>(0, n - 1)(generator); }

// What is allowed: 1e-5, or 1e-12 times the condition; and the rounding to a float result.
double allowed(const Batch &q, const Batch &p, double condition, bool wide) {
  return q.wide || p.wide ? 1e-12 * std::max(1.0, condition) + (wide ? 0 : 0x1p-24) : 1e-5;
}

std::string describe(const Batch &q, const Batch &p, int64_t i, int64_t j) {
  return std::string(KINDS[q.kind]) + " x " + KINDS[p.kind] + " [" + std::to_string(q.n) + ", " + std::to_string(p.n) + ", " +
         std::to_string(q.d) + "] at " + std::to_string(i) + ", " + std::to_string(j);
}

std::string precisionOf(const Batch &q, const Batch &p, bool wide) {
  std::string in = q.wide != p.wide ? ", float and double" : q.wide ? ", double" : ", float";
  return (q.wide || p.wide) && !wide ? in + ", to float" : in;
}

// `count` of a batch's rows, from `first` on.
Batch someOf(const Batch &b, int64_t first, int64_t count) {
  auto part = [&](const std::vector<double> &all, int64_t length) {
    auto begin = all.begin() + (all.empty() ? 0 : first * length);
    return std::vector<double>(begin, all.empty() ? begin : begin + count * length);
  };
  return {count, b.d, b.kind, b.wide, part(b.mean, b.d), part(b.scale, b.length()), part(b.low, b.length())};
}

// Every result of two batches, in float and in double; so many entries of each against the reference.
void compare(const std::string &name, const Batch &q, const Batch &p, int64_t sample, bool same = false) {
  OnDevice onQ(q);
  std::unique_ptr<OnDevice> other(same ? nullptr : new OnDevice(p));
  const OnDevice &onP = same ? onQ : *other;
  int64_t entries = q.n * p.n;
  std::vector<Exact> anywhere;
  for (int64_t n = 0; n < std::min(sample, entries); n++) {
    int64_t k = n == 0 ? 0 : n == 1 ? entries - 1 : sample >= entries ? n : below(entries);
    anywhere.push_back({k / p.n, k % p.n, 0, 0});
  }
  compute(q, p, anywhere);
  std::vector<Exact> pairs, toOne;
  for (int64_t n = 0; n < std::min(sample, q.n); n++) {
    pairs.push_back({n, n, 0, 0});
    toOne.push_back({n, 0, 0, 0});
  }
  if (q.n == p.n) {
    compute(q, p, pairs);
  }
  Batch one = unit(q);
  compute(q, one, toOne);
  for (bool wide : {false, true}) {
    if (!wide && (q.wide || p.wide) && q.n > 1 && below(3) != 0) {
      continue;
    }
    int64_t gap = below(2) ? 0 : below(9);
    int64_t shift = below(4);
    Result all = pairwise(onQ, onP, 0, q.n, 0, p.n, same, wide, gap, shift);
    for (auto &[i, j, exact, condition] : anywhere) {
      record(
          name + precisionOf(q, p, wide),
          errorOf(all.at(i, j), exact, wide),
          allowed(q, p, condition, wide),
          describe(q, p, i, j));
    }
    for (int64_t i = 0; same && i < q.n; i++) {
      expect(all.at(i, i) == 0, name + ": diagonal");
    }
    // a region, also transposed, to the same bits
    int64_t row0 = below(q.n);
    int64_t rows = 1 + below(q.n - row0);
    int64_t column0 = below(p.n);
    int64_t columns = 1 + below(p.n - column0);
    bool transposed = below(2);
    Result part = pairwise(onQ, onP, row0, rows, column0, columns, same, wide, 3, 1, transposed);
    for (int64_t i = 0; i < rows; i++) {
      for (int64_t j = 0; j < columns; j++) {
        if ((transposed ? part.at(j, i) : part.at(i, j)) != all.at(row0 + i, column0 + j)) {
          violation(name + ": a region differs, " + describe(q, p, row0 + i, column0 + j));
          i = rows;
          break;
        }
      }
    }
    // without most of q's others, to the same bits
    Result toUnit = standard(onQ, wide);
    if (!same && (!q.isFull() || q.d <= 100)) { // larger ones do not fit beside each other
      int64_t count = 1 + below(std::min<int64_t>(2, q.n - row0));
      OnDevice few(someOf(q, row0, count));
      Result alone = pairwise(few, onP, 0, count, 0, p.n, false, wide);
      Result ofFew = standard(few, wide);
      for (int64_t i = 0; i < count; i++) {
        expect(ofFew.at(0, i) == toUnit.at(0, row0 + i), name + ": standard depends on q's others");
        for (int64_t j = 0; j < p.n; j++) {
          expect(alone.at(i, j) == all.at(row0 + i, j), name + ": an entry depends on q's others");
        }
      }
    }
    if (q.n == p.n) {
      Result results = aligned(onQ, onP, same, wide);
      for (auto &[i, j, exact, condition] : pairs) {
        record(
            "aligned" + precisionOf(q, p, wide),
            errorOf(results.at(0, i), exact, wide),
            allowed(q, p, condition, wide),
            describe(q, p, i, j));
        record(
            name + precisionOf(q, p, wide),
            errorOf(all.at(i, i), exact, wide),
            allowed(q, p, condition, wide),
            describe(q, p, i, j));
      }
    }
    for (auto &[i, j, exact, condition] : toOne) {
      record(
          "standard" + precisionOf(q, q, wide),
          errorOf(toUnit.at(0, i), exact, wide),
          allowed(q, q, condition, wide),
          describe(q, one, i, j));
    }
  }
}

// ---- Inputs ----

double scaleOf(int kind, double std) {
  switch (kind) {
    case KULLBACK_STD: return std;
    case KULLBACK_VARIANCE: return std * std;
    case KULLBACK_LOG_VARIANCE: return 2 * std::log(std);
    default: return 1 / (std * std);
  }
}

double rounded(double x, bool wide) { return wide ? x : (float)x; }

// As given, or the nearest that a type's normal numbers hold.
double scaleWithin(int kind, double s, bool wide) {
  double most = wide ? 0x1p1022 : 0x1p126;
  return kind == KULLBACK_LOG_VARIANCE ? rounded(s, wide) : rounded(std::clamp(s, 1 / most, most), wide);
}

using Element = std::function<double()>;

Batch diagonal(int64_t n, int d, int kind, bool wide, const Element &mean, const Element &std) {
  Batch b{n, d, kind, wide, {}, {}, {}};
  for (int64_t k = 0; k < n * d; k++) {
    b.mean.push_back(rounded(mean(), wide));
    b.scale.push_back(scaleWithin(kind, scaleOf(kind, std()), wide));
  }
  return b;
}

// The rows of a batch again, moved by so much of their σ, in another kind and precision.
Batch jittered(const Batch &b, double jitter, int kind, bool wide) {
  Batch o{b.n, b.d, kind, wide, {}, {}, {}};
  for (size_t k = 0; k < b.mean.size(); k++) {
    double std = std::sqrt((double)variance(b.kind, b.scale[k]));
    o.mean.push_back(rounded(b.mean[k] + jitter * std * normal(), wide));
    bool keep = kind == b.kind && jitter == 0;
    o.scale.push_back(rounded(keep ? b.scale[k] : scaleOf(kind, std * std::exp(jitter * normal())), wide));
  }
  return o;
}

// Lower triangular factors whose diagonal spans so many orders, in random order.
Batch factors(int64_t n, int d, bool wide, double condition, double mean) {
  Batch b{n, d, KULLBACK_SCALE_TRIL, wide, {}, {}, {}};
  for (int64_t i = 0; i < n; i++) {
    for (int h = 0; h < d; h++) {
      b.mean.push_back(rounded(mean + normal(), wide));
    }
    std::vector<double> scale(d);
    for (int h = 0; h < d; h++) {
      scale[h] = std::pow(condition, d == 1 ? 0 : -(double)h / (d - 1));
    }
    std::shuffle(scale.begin(), scale.end(), generator);
    for (int r = 0; r < d; r++) {
      for (int c = 0; c <= r; c++) {
        b.scale.push_back(rounded(r == c ? scale[r] * std::exp(0.1 * normal()) : 0.5 / std::sqrt(d) * scale[c] * normal(), wide));
      }
    }
  }
  return b;
}

Batch jitteredFactors(const Batch &b, double jitter) {
  Batch o = b;
  for (auto &m : o.mean) {
    m = rounded(m + jitter * normal(), b.wide);
  }
  for (auto &l : o.scale) {
    l = rounded(l * std::exp(jitter * normal()), b.wide);
  }
  return o;
}

// So many of a batch's first Gaussian, moved by so much of their σ.
Batch alike(const Batch &like, int64_t n, double jitter) {
  Batch b{n, like.d, like.kind, like.wide, {}, {}, {}};
  for (int64_t i = 0; i < n; i++) {
    b.mean.insert(b.mean.end(), like.mean.begin(), like.mean.begin() + like.d);
    b.scale.insert(b.scale.end(), like.scale.begin(), like.scale.begin() + like.length());
  }
  b = jitteredFactors(b, jitter);
  for (int64_t k = 0; k < n * b.d; k++) {
    int64_t h = k % b.d;
    b.mean[k] = rounded(like.mean[h] + jitter * like.scale[h * (h + 3) / 2] * normal(), b.wide);
  }
  return b;
}

// The same as computed factors: in two parts, the second of which is what double does not hold of the sum.
Batch inParts(const Batch &b) {
  Batch o = b;
  o.kind = KULLBACK_SCALE_TRIL_PARTS;
  for (auto l : b.scale) {
    o.low.push_back(l * 0x1p-54 * normal());
  }
  return o;
}

// A batch's rows again and again, n in all.
Batch repeated(Batch b, int64_t n) {
  for (int64_t size = b.n * b.d, k = 0; b.n < n; b.n++) {
    for (int h = 0; h < b.d; h++, k++) {
      b.mean.push_back(b.mean[k % size]);
      b.scale.push_back(b.scale[k % size]);
    }
  }
  return b;
}

Element around(double centre, double spread) {
  return [=] { return centre + spread * normal(); };
}

Element logNormal(double centre, double spread) {
  return [=] { return centre * std::exp(spread * normal()); };
}

// ---- The checks ----

const int DIMENSIONS[] = {1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 130, 255, 256, 257};

void checkShapes() {
  const int sizes[] = {1, 7, 8, 9, 63, 64, 65, 127, 128, 129, 130};
  int turn = 0;
  for (int n : sizes) {
    for (int m : sizes) {
      int kindQ = turn % 4;
      int kindP = turn / 4 % 4;
      bool wideQ = turn % 3 == 1;
      bool wideP = turn % 3 == 1 || turn % 9 == 5;
      int d = DIMENSIONS[turn++ % 22];
      compare(
          "odd shapes",
          diagonal(n, d, kindQ, wideQ, around(0, 1), logNormal(0.7, 0.4)),
          diagonal(m, d, kindP, wideP, around(0, 1), logNormal(0.9, 0.4)),
          24);
    }
  }
}

void checkRegimes() {
  for (bool wide : {false, true}) {
#ifdef KULLBACK_EMULATED_CHECK
    if (wide && isSlowInDouble) {
      break; // that goes as what other devices flagged, and takes the emulation a minute
    }
#endif
    for (int kind = 0; kind < 4; kind++) {
      for (int d : {1, 32, 257}) {
        int64_t sample = d > 100 ? 40 : 100;
        int share = d > 100 ? 2 : 1; // half as many Gaussians, in the first two batches still more than a tile holds
        auto of = [&](int64_t n, const Element &mean, const Element &std) { return diagonal(n / share, d, kind, wide, mean, std); };
        Batch q = of(70, around(0, 1), logNormal(0.5, 0.5));
        compare("posteriors", q, of(66, around(0, 1), logNormal(0.5, 0.5)), sample);
        compare("posteriors, q is p", q, q, sample, true);
        compare("collapsed", of(40, around(0, 1e-3), logNormal(1, 1e-3)),
                of(41, around(0, 1e-3), logNormal(1, 1e-3)), sample);
        for (double mean : {500.0, 1000.0}) {
          compare("means at 500, 1000", of(40, around(mean, 1), logNormal(0.05, 0.1)),
                  of(33, around(mean, 1), logNormal(0.05, 0.1)), sample);
        }
        Batch one = diagonal(1, d, kind, wide, around(0, 1), logNormal(0.5, 0.5));
        Batch copies = one;
        copies.n = 37 / share;
        for (int n = 1; n < copies.n; n++) {
          copies.mean.insert(copies.mean.end(), one.mean.begin(), one.mean.end());
          copies.scale.insert(copies.scale.end(), one.scale.begin(), one.scale.end());
        }
        for (double jitter : {1e-2, 1e-5, 1e-9}) {
          char name[64];
          snprintf(name, sizeof name, "near-duplicates %.0e", jitter);
          compare(name, jittered(copies, jitter, kind, wide), jittered(copies, jitter, kind, wide), sample);
        }
        compare("identical", copies, copies, sample, false);
        for (int other = 0; other < 4; other++) {
          if (other != kind) {
            for (double jitter : {0.0, 1e-5, 1e-9}) {
              compare("mixed kinds, near-duplicates", copies, jittered(copies, jitter, other, wide), 40);
            }
            compare("mixed kinds", q, of(20, around(0, 1), logNormal(0.5, 0.5)), 40);
          }
          compare("near-duplicates of float and double", copies, jittered(copies, 1e-8, other, !wide), 40);
        }
        compare("sum cancels log-determinants", of(30, around(0, 1e-3), logNormal(30, 1e-3)),
                of(31, around(0, 1e-3), logNormal(31, 1e-3)), sample);
        compare("ln sigma to +-69", of(30, around(0, 1), logNormal(1, 17)),
                of(31, around(0, 1), logNormal(1, 17)), sample);
        auto extreme = [&](double exponent) {
          Element std = [=] { return std::exp2((below(2) ? 1 : -1) * exponent * (0.9 + 0.1 * (below(100) / 100.0))); };
          return of(24, around(0, 1), std);
        };
        compare("variances at 2^+-100", extreme(50), extreme(50), sample);
        compare("edges of the type", extreme(wide ? 510 : 62), extreme(wide ? 510 : 62), sample);
        compare("far means", of(20, around(0, wide ? 1e100 : 1e12), logNormal(1, 1)),
                of(21, around(0, 1e12), logNormal(1, 1)), sample);
        compare("overflow", of(20, around(0, wide ? 1e300 : 1e37), logNormal(1, 1)),
                of(21, around(0, 1e18), logNormal(1e-3, 1)), sample);
      }
    }
  }
  for (int d : {1000, 4096}) { // many chunks; every rounding alike
    for (bool wide : {false, true}) {
      compare("many dimensions", diagonal(9, d, 0, wide, around(0, 1), logNormal(0.7, 0.3)),
              diagonal(8, d, 0, wide, around(0, 1), logNormal(0.8, 0.3)), 20);
      auto alike = [&](double m, double s) {
        return diagonal(8, d, 0, wide, [=] { return m; }, [=] { return s; });
      };
      compare("terms alike", alike(0.1, 0.9), alike(0.7, 1.1), 8);
      compare("terms alike", alike(0, 1.0 / 3), alike(0, 1.0 / 3.2), 8);
      for (double std : {1e-3, 1e3}) { // log-determinants of one sign, and bounds of both precisions
        Batch one = diagonal(9, d, 0, wide, around(0, 0.1 * std), logNormal(std, 0.1));
        for (double jitter : {1e-6, 3e-2, 6e-2}) {
          Batch other = jittered(one, jitter, 0, !wide);
          compare("near-duplicates of float and double, all std small or large", one, other, 20);
          compare("near-duplicates of float and double, all std small or large", other, one, 20);
        }
      }
    }
  }
}

Real realVariance(int kind, Real s) {
  return kind == KULLBACK_STD ? s * s : kind == KULLBACK_VARIANCE ? s : kind == KULLBACK_LOG_VARIANCE ? std::exp(s) : 1 / s;
}

// Near-duplicates in any two statements, up to where the forms end: alike, so that products are relative to a centre, and in clusters that
// have none.
void checkNear(int clusters) {
  for (int turn = 0; turn < 2 * 4 * 4 * 3; turn++) {
    bool wide = turn % 2;
    int kindQ = turn / 2 % 4;
    int kindP = turn / 8 % 4;
    int d = std::vector<int>{1, 40, 130}[turn / 32];
    auto copies = [&](int64_t n, int kind, const Element &std) { return repeated(diagonal(clusters, d, kind, wide, around(0, 1), std), n); };
    Batch one = copies(19, kindQ, logNormal(0.5, 0.5));
    Batch several = clusters == 1 ? repeated(one, 128) : one; // as many as may have a centre
    for (double jitter : {0.0, 1e-14, 1e-10, 1e-7, 1e-4, 3e-3, 1e-2, 3e-2}) {
      compare("near-duplicates in two statements", jittered(one, jitter, kindQ, wide), jittered(several, jitter, kindP, wide), 12);
    }
    for (double z : {0.0214, 0.0217, 0.109, 0.11, 0.249, 0.251, 0.7, 3.0, 1e3}) { // σ² of one dimension in another ratio
      Batch p = jittered(several, 1e-5, kindP, wide);
      for (int64_t i = 0; i < p.n; i++) {
        double v = (double)variance(p.kind, p.scale[i * d + i % d]);
        p.scale[i * d + i % d] = rounded(scaleOf(kindP, std::sqrt(i % 2 ? v * (1 + z) : z < 0.5 ? v * (1 - z) : v / (1 + z))), wide);
      }
      compare("near-duplicates but in one dimension", one, p, 12);
    }
    // σ² that both statements hold; and one as close as the type has it, where float in two parts ends
    bool isLog = kindQ == KULLBACK_LOG_VARIANCE || kindP == KULLBACK_LOG_VARIANCE;
    auto equal = [&](int kind) { return copies(19, kind, [&] { return isLog ? 1 : 0.25; }); };
    Batch p = equal(kindP);
    Batch q = equal(kindQ);
    q.mean = p.mean;
    compare("equal in two statements", q, p, 12);
    for (int64_t i = 0; i < p.n; i++) {
      double &s = p.scale[i * d + i % d];
      double ulp = wide ? 0x1p-52 : 0x1p-23;
      s = kindP == KULLBACK_LOG_VARIANCE ? std::ldexp(ulp, -3 * (int)(i % 3)) : s * (1 + (i % 3 + 1) * ulp);
    }
    compare("equal but for a last bit in two statements", q, p, 12);
    // the closest of many floats that are not equal; of doubles they would be closer than 100 bits tell
    for (int h = 0; h < d && !wide; h++) {
      Real closest = INFINITE;
      for (int n = 0; n < 1000; n++) {
        double std = logNormal(0.5, 0.5)();
        double a = rounded(scaleOf(kindQ, std), wide);
        double b = rounded(scaleOf(kindP, std), wide);
        Real z = std::fabs(realVariance(kindQ, a) / realVariance(kindP, b) - 1);
        if (z > 0 && z < closest) {
          closest = z;
          for (int64_t i = 0; i < p.n; i++) {
            q.scale[i * d + h] = a;
            p.scale[i * d + h] = b;
          }
        }
      }
    }
    compare("closest in two statements", q, p, 12);
  }
}

// Batches that are alike, at the edge of it, or not, with others among them on either side; far from 0, and as large and small as a centre
// may be.
void checkCentre() {
  for (int turn = 0; turn < 4 * 4 * 4; turn++) {
    int kindQ = turn % 4;
    int kindP = turn / 4 % 4;
    bool wideQ = turn / 16 % 2;
    bool wideP = turn / 32;
    for (double size : {1.0, 1e-15, 1e15, 1e64, 1e66, 1e-64, 1e-66}) {
      if (!(wideQ && wideP) && std::fabs(std::log10(size)) > 16) {
        continue;
      }
      int d = 1 + below(40);
      Batch one = diagonal(1, d, kindP, wideP, around(3 * size, size), logNormal(0.5 * size, 0.5));
      for (double spread : {1e-3, 0.1, 0.3, 0.6}) {
        if (below(3) != 0) {
          continue;
        }
        Batch p = jittered(repeated(one, 120 + below(60)), spread, kindP, wideP);
        Batch q = jittered(repeated(one, 30), spread, kindQ, wideQ);
        for (Batch *b : {&p, &q}) {
          Batch other = diagonal(b->n, d, b->kind, b->wide, around(0, 20 * size), logNormal(size, 2));
          for (int64_t i = below(20); i < b->n; i += 20) {
            std::copy_n(other.mean.begin() + i * d, d, b->mean.begin() + i * d);
            std::copy_n(other.scale.begin() + i * d, d, b->scale.begin() + i * d);
          }
        }
        compare("alike but a few", q, p, 20);
        compare("alike but a few, near (i, i)", p, jittered(p, 1e-7, kindQ, wideP), 10);
        if (spread < 0.01) {
          compare("alike but a few, q is p", q, q, 20, true);
        }
      }
    }
  }
}

// Batches that are near, at the edge of it, or not; with Gaussians far from them among them, on either side.
void checkNearFull(int d, bool wide, int64_t sample) {
  auto replace = [&](Batch &b, int64_t i, const Batch &by) {
    std::copy(by.mean.begin(), by.mean.begin() + d, b.mean.begin() + i * d);
    std::copy(by.scale.begin(), by.scale.begin() + by.length(), b.scale.begin() + i * by.length());
  };
  for (double condition : {1.0, 30.0, 100.0, 1e3, 1e6}) {
    if (!wide && condition > 1e3) {
      continue;
    }
    char name[64];
    snprintf(name, sizeof name, "full, near, cond %.0e", condition * condition);
    Batch one = factors(1, d, wide, condition, 0);
    Batch far = factors(20, d, wide, condition, 0);
    for (double jitter : {0.3, 1e-2, 1e-7, 0.0}) {
      Batch q = alike(one, 33, jitter);
      Batch p = alike(one, 40, jitter);
      compare(name, q, p, sample);
      compare(name, p, p, sample, true);
      compare(std::string(name) + ", q far", far, p, sample);
      replace(p, 5, far);
      replace(q, 32, far);
      compare(std::string(name) + ", one far", q, p, sample);
      replace(p, p.n / 2, far); // what others would be relative to
      compare(std::string(name) + ", one far", q, p, sample);
    }
    Batch q = alike(one, 15, 1e-2);
    compare(std::string(name) + ", in parts", inParts(alike(one, 33, 1e-9)), inParts(alike(one, 20, 1e-9)), sample);
    compare(std::string(name) + ", in parts", inParts(alike(one, 33, 0)), inParts(alike(one, 20, 0)), sample);
    compare(std::string(name) + ", few", q, alike(one, 1, 1e-2), sample);
    compare(std::string(name) + ", few", q, alike(one, 15, 1e-2), sample);
    compare(std::string(name) + ", few", q, alike(one, 16, 1e-2), sample);
  }
}

void checkFull() {
  for (bool wide : {false, true}) {
    int turn = 0;
    for (int d : DIMENSIONS) {
      int n = d > 100 ? 9 : std::vector<int>{1, 7, 63, 64, 65, 66, 130}[turn % 7];
      int m = d > 100 ? 5 : std::vector<int>{65, 64, 8, 129, 9, 1}[turn % 6];
      turn++;
      compare("full, odd shapes", factors(n, d, wide, 10, 0), factors(m, d, wide, 10, 0), d > 200 ? 2 : d > 100 ? 5 : 20);
    }
    for (int d : {1, 5, 33, 64}) {
      int64_t sample = d > 50 ? 12 : 40;
      for (double condition : {1e3, 1e6}) { // of L
        if (!wide && condition > 1e3) {
          continue; // 1e12 is beyond the contract for float
        }
        std::string name = condition > 1e3 ? "full, cond 1e12" : "full, cond 1e6";
        compare(name, factors(20, d, wide, condition, 0), factors(21, d, wide, condition, 0), sample);
      }
      Batch q = factors(22, d, wide, 10, 0);
      compare("full, q is p", q, q, sample, true);
      Batch parts = inParts(q);
      compare("full, in parts", parts, parts, sample, true);
      compare("full, in parts", parts, factors(20, d, wide, 10, 0), sample);
      compare("full, in parts, near-duplicates", parts, inParts(q), sample);
      compare("full, in parts, near-duplicates", q, parts, sample);
      compare("full, identical", q, q, sample, false);
      for (double jitter : {1e-2, 1e-5, 1e-9}) {
        compare("full, near-duplicates", q, jitteredFactors(q, jitter), sample);
      }
      checkNearFull(d, wide, sample / 3);
      for (double mean : {500.0, 1000.0}) {
        compare("full, means at 500, 1000", factors(20, d, wide, 30, mean), factors(21, d, wide, 30, mean), sample);
      }
      Batch huge = q;
      Batch tiny = q;
      for (auto &l : huge.scale) {
        l *= wide ? 0x1p400 : 0x1p60;
      }
      for (auto &l : tiny.scale) {
        l *= wide ? 0x1p-400 : 0x1p-60;
      }
      compare("full, huge and tiny", huge, tiny, 12);
      compare("full, huge and tiny", tiny, huge, 12);
      compare("full, huge and tiny", huge, huge, 12, true);
      compare("full, huge and tiny", tiny, jitteredFactors(tiny, 1e-3), 12);
    }
    for (double least : {1e-16, 1e-17, 1e-18}) { // singular, as far as double tells: any value, but of a divergence
      Batch b{40, 2, KULLBACK_SCALE_TRIL, wide, {}, {}, {}};
      for (int64_t i = 0; i < b.n; i++) {
        double l = rounded(logNormal(0.8, 0.2)(), wide);
        b.mean.insert(b.mean.end(), {0, 0});
        b.scale.insert(b.scale.end(), {l, rounded(0.77 * l, wide), rounded(logNormal(least, 0.1)(), wide)});
      }
      OnDevice q(b);
      Result all = pairwise(q, q, 0, b.n, 0, b.n, false, true, 0);
      for (int64_t i = 0; i < b.n; i++) {
        for (int64_t j = 0; j < b.n; j++) expect(all.at(i, j) >= 0, "full, singular: negative or NaN");
      }
    }
    compare("full, mixed precision", factors(20, 12, wide, 10, 0), factors(19, 12, !wide, 10, 0), 40);
  }
}

// A large output, of which pieces are made with smaller tiles.
void checkLarge() {
  Batch q = diagonal(2070, 5, KULLBACK_STD, false, around(0, 1), logNormal(0.5, 0.5));
  Batch p = diagonal(2055, 5, KULLBACK_STD, false, around(0, 1), logNormal(0.5, 0.5));
  OnDevice onQ(q);
  OnDevice onP(p);
  Result all = pairwise(onQ, onP, 3, 2067, 5, 2050, false, false, 2);
  double condition;
  for (int n = 0; n < 2000; n++) {
    int64_t i = below(2067);
    int64_t j = below(2050);
    Real exact = kl(q, i + 3, p, j + 5, &condition);
    record("large output, float", errorOf(all.at(i, j), exact, false), 1e-5, describe(q, p, i + 3, j + 5));
  }
  for (int n = 0; n < 20; n++) {
    int64_t row = below(2000);
    int64_t column = below(2000);
    Result part = pairwise(onQ, onP, row + 3, 50, column + 5, 50, false, false);
    for (int64_t k = 0; k < 2500; k++) {
      if (part.at(k / 50, k % 50) != all.at(row + k / 50, column + k % 50)) {
        violation("the tiles' results differ");
        break;
      }
    }
  }
  Batch wide = diagonal(2070, 70, KULLBACK_STD, false, around(0, 1), logNormal(0.5, 0.5));
  OnDevice onWide(wide);
  Result square = pairwise(onWide, onWide, 0, 2070, 0, 2070, true, false);
  for (int n = 0; n < 500; n++) {
    int64_t i = below(2070);
    int64_t j = below(2070);
    Real exact = kl(wide, i, wide, j, &condition);
    record("large output, float", errorOf(square.at(i, j), exact, false), 1e-5, describe(wide, wide, i, j));
  }
}

// That the tiles' results are what is stored: recomputing all, which aligned pairs are by other means, would hide a tile that is wrong.
void checkTilesCount() {
  auto check = [](const char *name, const Batch &q, const Batch &p, int part = 2) {
    OnDevice onQ(q);
    OnDevice onP(p);
    Result all = pairwise(onQ, onP, 0, q.n, 0, p.n, false, true);
    Result one = aligned(onQ, onP, false, true);
    int64_t different = 0;
    for (int64_t i = 0; i < q.n; i++) {
      different += all.at(i, i) != one.at(0, i);
    }
    expect(different > q.n / part, std::string(name) + ": tiles are not used");
  };
  auto posteriors = [](int64_t n, int d, bool wide) {
    return diagonal(n, d, KULLBACK_STD, wide, around(0, 1), logNormal(0.5, 0.5));
  };
  check("float", posteriors(100, 70, false), posteriors(100, 70, false));
  check("float, large", posteriors(2050, 9, false), posteriors(2050, 9, false));
  if (!isSlowInDouble) { // where one way serves all
    check("double", posteriors(100, 70, true), posteriors(100, 70, true));
    check("float and double", posteriors(100, 70, false), posteriors(100, 70, true));
  }
  check("full", factors(100, 20, false, 10, 0), factors(100, 20, false, 10, 0));
  // near ones, full by the product relative to one of them, diagonal ones of two clusters in squares; single pairs have neither
  Batch one = factors(1, 20, false, 10, 0);
  check("full, near", alike(one, 100, 1e-2), alike(one, 100, 1e-2));
  for (bool wide : {false, true}) {
    Batch equal = repeated(diagonal(2, 70, KULLBACK_STD, wide, around(0, 1), logNormal(0.5, 0.5)), 100);
    // in double some 40 of 100 have other bits, as both forms err by little
    check("near", jittered(equal, 1e-5, KULLBACK_STD, wide), jittered(equal, 1e-5, KULLBACK_STD, wide), wide ? 5 : 2);
    // alike ones relative to a centre, which half of them have elsewhere
    Batch p = jittered(someOf(equal, 0, 1), 0, KULLBACK_STD, wide);
    p = jittered(repeated(p, 300), 0.1, KULLBACK_STD, wide);
    OnDevice onP(p);
    OnDevice half(someOf(p, 0, 150));
    Result whole = pairwise(onP, onP, 0, 300, 0, 300, false, true);
    Result part = pairwise(onP, half, 0, 300, 0, 150, false, true);
    int64_t different = 0;
    for (int64_t k = 0; k < 300 * 150; k++) different += whole.at(k / 150, k % 150) != part.at(k / 150, k % 150);
    expect(isSlowInDouble ? different == 0 : different > 300 * 150 / 2, "a centre is not used, or where there is none");
  }
}

// Calls on several streams at once, of batches that they share, give the bits of calls one by one.
void checkConcurrency() {
  std::vector<Batch> batches = {
      diagonal(300, 40, KULLBACK_STD, false, around(0, 1), logNormal(0.5, 0.5)),
      jittered(diagonal(200, 40, KULLBACK_STD, false, around(0, 1), logNormal(0.5, 0.5)), 1e-5, KULLBACK_STD, false),
      diagonal(150, 40, KULLBACK_VARIANCE, true, around(0, 1e-3), logNormal(1, 1e-3)),
      factors(100, 12, false, 10, 0),
      alike(factors(1, 12, false, 10, 0), 90, 1e-2),
  };
  std::vector<std::unique_ptr<OnDevice>> on;
  std::vector<Result> expected;
  for (const Batch &b : batches) {
    on.push_back(std::make_unique<OnDevice>(b));
    expected.push_back(pairwise(*on.back(), *on.back(), 0, b.n, 0, b.n, false, b.wide));
  }
  RUN(cudaStreamSynchronize(stream));
  std::atomic<int> different = 0;
  auto work = [&](int thread) {
    RUN(cudaStreamCreateWithFlags(&stream, 1));
    for (int round = 0; round < 8; round++) {
      size_t n = (thread + round) % batches.size();
      int64_t size = batches[n].n;
      Result again = pairwise(*on[n], *on[n], 0, size, 0, size, false, batches[n].wide);
      int64_t bytes = size * size * (again.wide ? 8 : 4);
      different += memcmp(again.bytes.data(), expected[n].bytes.data(), bytes) != 0;
    }
    RUN(cudaStreamDestroy(stream));
  };
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 4; thread++) {
      threads.emplace_back(work, thread);
    }
  }
  expect(different == 0, "calls at once differ from calls one by one");
}

// More than 2³¹ entries, where the device has the memory.
void checkHuge() {
  const int64_t n = 46400;
  size_t free, total;
  RUN(cudaMemGetInfo(&free, &total));
  if (free < (size_t)(n * n * 4 + (1 << 30))) {
    printf("a huge output needs more memory than there is\n");
    return;
  }
  Batch q = diagonal(n, 4, KULLBACK_STD, false, around(0, 1), logNormal(0.5, 0.5));
  OnDevice on(q);
  Memory out(n * n * 4);
  Memory scratch(kullback_cuda_scratch_bytes(&on.batch, &on.batch, n, n));
  RUN(kullback_cuda_pairwise(&on.batch, &on.batch, 0, n, 0, n, 0, out.at, n, 0, 0, scratch.at, stream));
  for (int sample = 0; sample < 2000; sample++) {
    int64_t i = sample % 2 ? below(n) : n - 1 - below(100);
    int64_t j = below(n);
    float value;
    double condition;
    RUN(cudaMemcpyAsync(&value, (float *)out.at + i * n + j, 4, cudaMemcpyDeviceToHost, stream));
    RUN(cudaStreamSynchronize(stream));
    record("huge output, float", errorOf(value, kl(q, i, q, j, &condition), false), 1e-5, describe(q, q, i, j));
  }
}

void checkArguments() {
  Batch b = diagonal(4, 3, KULLBACK_STD, false, around(0, 1), logNormal(1, 1));
  Batch f = factors(4, 3, false, 10, 0);
  OnDevice on(b);
  OnDevice full(f);
  Memory memory(1 << 16);
  kullback_cuda_batch good = on.batch;
  auto with = [&](auto change) {
    kullback_cuda_batch bad = good;
    change(bad);
    return bad;
  };
  std::vector<kullback_cuda_batch> bad = {
      with([](auto &x) { x.size = 0; }),
      with([](auto &x) { x.size = -1; }),
      with([](auto &x) { x.size = INT64_MAX; }),
      with([](auto &x) { x.dimension = 0; }),
      with([](auto &x) { x.dimension = INT64_MAX; }),
      with([](auto &x) { x.size = x.dimension = 1 << 30; x.size <<= 20; x.size <<= 10; }),
      with([](auto &x) { x.kind = 6; }),
      with([](auto &x) { x.kind = -1; }),
      with([](auto &x) { x.kind = KULLBACK_SCALE_TRIL; x.dimension = 1 << 20; }),
      with([](auto &x) { x.kind = KULLBACK_SCALE_TRIL_PARTS; x.dimension = 1 << 20; }),
      with([](auto &x) { x.wide = 2; }),
  };
  for (size_t n = 0; n < bad.size(); n++) {
    expect(kullback_cuda_batch_bytes(&bad[n]) == -1, "bytes of bad batch " + std::to_string(n));
    expect(kullback_cuda_scale_offset(&bad[n]) == -1, "scale offset of bad batch " + std::to_string(n));
    expect(kullback_cuda_prepare(&bad[n], stream) == -1, "prepare of bad batch " + std::to_string(n));
    expect(kullback_cuda_standard(&bad[n], memory.at, 0, stream) == -1, "standard of bad batch " + std::to_string(n));
    expect(kullback_cuda_scratch_bytes(&bad[n], &good, 1, 1) == -1, "scratch of bad batch " + std::to_string(n));
  }
  expect(kullback_cuda_batch_bytes(nullptr) == -1, "bytes of null");
  kullback_cuda_batch noData = with([](auto &x) { x.data = nullptr; });
  expect(kullback_cuda_prepare(&noData, stream) == -1, "prepare without data");
  Memory scratch(kullback_cuda_scratch_bytes(&good, &good, 4, 4));
  auto pair = [&](const kullback_cuda_batch *q, const kullback_cuda_batch *p, int64_t row0, int64_t rows, int64_t column0,
                  int64_t columns, int64_t stride, void *out, int wide) {
    return kullback_cuda_pairwise(q, p, row0, rows, column0, columns, 0, out, stride, wide, 0, scratch.at, stream);
  };
  kullback_cuda_batch other = with([](auto &x) { x.dimension = 2; });
  expect(pair(&good, &good, 0, 4, 0, 4, 4, memory.at, 0) == 0, "good region");
  expect(pair(&good, &good, 1, 4, 0, 4, 4, memory.at, 0) == -1, "rows beyond");
  expect(pair(&good, &good, 0, 4, 1, 4, 4, memory.at, 0) == -1, "columns beyond");
  expect(pair(&good, &good, -1, 2, 0, 4, 4, memory.at, 0) == -1, "row below 0");
  expect(pair(&good, &good, 0, 0, 0, 4, 4, memory.at, 0) == -1, "no rows");
  expect(pair(&good, &good, 0, 4, 0, 0, 4, memory.at, 0) == -1, "no columns");
  expect(pair(&good, &good, INT64_MAX, 1, 0, 4, 4, memory.at, 0) == -1, "row0 overflows");
  expect(pair(&good, &good, 0, 4, 0, 4, 3, memory.at, 0) == -1, "stride");
  expect(pair(&good, &good, 0, 4, 0, 4, INT64_MAX, memory.at, 0) == -1, "stride overflows");
  expect(pair(&good, &good, 0, 4, 0, 4, 4, nullptr, 0) == -1, "no output");
  expect(pair(&good, &good, 0, 4, 0, 4, 4, (char *)memory.at + 2, 0) == -1, "output misaligned");
  expect(pair(&good, &good, 0, 4, 0, 4, 4, memory.at, 2) == -1, "out_wide");
  expect(pair(&good, &other, 0, 4, 0, 4, 4, memory.at, 0) == -1, "dimensions");
  expect(pair(&good, &full.batch, 0, 4, 0, 4, 4, memory.at, 0) == -1, "diagonal and full");
  expect(kullback_cuda_pairwise(&good, &good, 0, 4, 0, 4, 0, memory.at, 4, 0, 0, nullptr, stream) == -1, "without scratch");
  auto transposed = [&](int64_t stride) {
    return kullback_cuda_pairwise(&good, &good, 0, 2, 0, 4, 0, memory.at, stride, 0, 1, scratch.at, stream);
  };
  expect(transposed(2) == 0 && transposed(1) == -1 && transposed(INT64_MAX) == -1, "stride of a transpose");
  expect(pair(nullptr, &good, 0, 4, 0, 4, 4, memory.at, 0) == -1, "null batch");
  kullback_cuda_batch fewer = with([](auto &x) { x.size = 3; });
  expect(kullback_cuda_aligned(&good, &fewer, 0, memory.at, 0, nullptr, stream) == -1, "aligned of different sizes");
  expect(kullback_cuda_standard(&good, nullptr, 0, stream) == -1, "standard without output");
  char name[8];
  expect(kullback_cuda_device_name(0, name, sizeof name) == 0 && strlen(name) < sizeof name, "device name");
  expect(kullback_cuda_device_name(0, nullptr, 8) == -1, "device name without memory");
  expect(kullback_cuda_device_name(99, name, sizeof name) > 0, "name of no device");
  expect(kullback_cuda_abi_version() == KULLBACK_CUDA_ABI_VERSION, "ABI version");
  RUN(cudaStreamSynchronize(stream));
}

// Every kernel and both paths that recompute, on little data: with checkTiles for tools that slow a device down a hundredfold.
void checkSmall() {
  int turn = 0;
  for (bool wide : {false, true}) {
    for (int kind = 0; kind < 4; kind++) {
      int d = std::vector<int>{3, 33, 66, 130}[turn % 4];
      Batch q = diagonal(66, d, kind, wide, around(0, 1), logNormal(0.5, 0.5));
      compare("small", q, diagonal(35, d, (kind + turn++ / 4) % 4, wide, around(0, 1), logNormal(0.5, 0.5)), 6);
      Batch near = diagonal(11, d, kind, wide, around(0, 1e-3), logNormal(1, 1e-3));
      compare("small, q is p", near, near, 6, true);
      compare("small, near-duplicates", near, jittered(near, 1e-9, kind, wide), 6);
      compare("small, float and double", near, jittered(near, 1e-5, kind, !wide), 6);
      compare("small, beyond the tiles' range", near, diagonal(9, d, kind, wide, around(0, 1), logNormal(1, wide ? 90 : 17)), 6);
    }
    for (int d : {1, 5, 18}) {
      Batch q = factors(66, d, wide, 10, 0);
      compare("small, full", q, factors(9, d, wide, 10, 0), 6);
      Batch near = factors(11, d, wide, 10, 0);
      compare("small, full, q is p", near, near, 6, true);
      compare("small, full, near-duplicates", near, jitteredFactors(near, 1e-9), 6);
      compare("small, full, in parts", inParts(near), inParts(near), 6);
      compare("small, full, alike", alike(near, 9, 1e-3), alike(near, 17, 1e-3), 6);
    }
    compare("small, full, wide", factors(3, 66, wide, 10, 0), factors(2, 66, wide, 10, 0), 6);
  }
}

// A size of the product's tiles, which it takes for a matrix as high as one and as wide as one for each multiprocessor: see `cost` in
// launchers.h. In the first tile a quarter of the rows is like all columns: more entries than a list holds; in others like one column.
void checkTile(int64_t rows, int64_t columns, int64_t across, bool wide, bool isFull, int kind) {
  int64_t n = rows - 3;
  int64_t m = columns * across - 5;
  int d = isFull ? (wide ? 16 : 9) : wide ? 73 : 41; // at least four stages of the product; in double two chunks
  auto make = [&](int64_t size) {
    return isFull ? factors(size, d, wide, 10, 0) : diagonal(size, d, kind, wide, around(0, 1), logNormal(0.7, 0.4));
  };
  Batch one = make(1);
  Batch q = make(n);
  Batch p = make(m);
  auto liken = [&](Batch &b, int64_t i) {
    Batch like = isFull ? jitteredFactors(one, 1e-4) : jittered(one, 1e-4, kind, wide);
    std::copy(like.mean.begin(), like.mean.end(), b.mean.begin() + i * d);
    std::copy(like.scale.begin(), like.scale.end(), b.scale.begin() + i * b.length());
  };
  for (int64_t i = 0; i < n; i += 4) liken(q, i);
  for (int64_t j = 0; j < columns; j++) liken(p, j);
  for (int64_t j = columns + 17; j < m; j += columns) liken(p, j);
  std::vector<Exact> pairs;
  for (int k = 0; k < 60; k++) {
    int64_t j = k % 3 == 0 ? below(columns) : k % 3 == 1 ? (1 + below(across - 1)) * columns + 17 : below(m);
    pairs.push_back({std::max<int64_t>(k % 2 == 0 ? below(n) : below(n / 4) * 4, 1), std::max<int64_t>(j, 2), 0, 0});
  }
  compute(q, p, pairs);
  std::string name = (isFull ? "full, tiles of " : "tiles of ") + std::to_string(rows) + " x " + std::to_string(columns);
  OnDevice onQ(q);
  OnDevice onP(p);
  for (bool outWide : {false, true}) {
    Result all = pairwise(onQ, onP, 1, n - 1, 2, m - 2, false, outWide, 2, 1);
    for (auto &[i, j, exact, condition] : pairs) {
      record(name + precisionOf(q, p, outWide), errorOf(all.at(i - 1, j - 2), exact, outWide), allowed(q, p, condition, outWide),
             describe(q, p, i, j));
    }
    // alone, by small tiles or one by one, to the same bits
    for (int64_t column : {columns - 10, m - 20}) {
      Result part = pairwise(onQ, onP, 5, 20, column, 20, false, outWide);
      for (int64_t k = 0; k < 400; k++) {
        if (part.at(k / 20, k % 20) != all.at(k / 20 + 4, column + k % 20 - 2)) {
          violation(name + ": the tiles' results differ, " + describe(q, p, k / 20 + 5, column + k % 20));
          break;
        }
      }
    }
  }
}

void checkTiles() {
  int multiprocessors;
  RUN(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0));
  int64_t across = std::max(multiprocessors, 2);
  int kind = 0;
  for (bool isFull : {false, true}) {
    for (int64_t size : {32, 64, 128}) checkTile(size, size, across, false, isFull, kind++ % 4);
    checkTile(32, 32, across, true, isFull, kind++ % 4);
    checkTile(64, 128, across, true, isFull, kind++ % 4);
  }
}

#include "reductions.h"
#include "times.h"

} // namespace

// Without an argument, all checks; with `small`, all kernels on little data; with `time`, times. With `float` after it, the emulated
// device is one whose double is slow.
int main(int count, char **arguments) {
  std::string mode = count > 1 ? arguments[1] : "all";
  setvbuf(stdout, nullptr, _IOLBF, 1 << 12);
#ifdef KULLBACK_EMULATED_CHECK
  if (count > 2 && arguments[2] == std::string("float")) {
    RUN(kullback_emulated_set("compute_major", 8));
    RUN(kullback_emulated_set("compute_minor", 6));
  }
#endif
  RUN(cudaStreamCreateWithFlags(&stream, 1));
  char name[256];
  RUN(kullback_cuda_device_name(0, name, sizeof name));
  isSlowInDouble = strstr(name, "differences") != nullptr;
  printf("%s, %s\n", name, kullback_cuda_description());
  struct Mode {
    const char *name;
    void (*checks)();
    bool isPart; // of all; the parts can run side by side
  };
  const Mode modes[] = {
      {"shapes", [] { checkArguments(); checkShapes(); }, true},
      {"regimes", checkRegimes, true},
      {"near", [] { checkNear(2); if (!isSlowInDouble) { checkNear(1); checkCentre(); } }, true},
      {"full", checkFull, true},
      {"large", [] { checkLarge(); checkTilesCount(); checkConcurrency(); checkHuge(); }, true},
      {"tiles", checkTiles, true},
      {"reductions", checkReductions, true},
      {"small", [] { checkSmall(); checkTiles(); checkSelections(60); checkFold({3, 300, 0, exponential()}, 200, nullptr); }, false},
      {"time", measure, false},
      {"kinds", [] { measureKinds(false); }, false},
      {"kinds-counted", [] { measureKinds(true); }, false},
  };
  bool known = false;
  for (auto &m : modes) {
    if (mode == m.name || (mode == "all" && m.isPart)) {
      m.checks();
      known = true;
    }
  }
  if (!known) {
    printf("usage: %s [shapes | regimes | near | full | large | tiles | reductions | small | time | kinds | kinds-counted]\n",
        arguments[0]);
    return 2;
  }
  printf("%-56s %8s %10s %s\n", "regime", "pairs", "worst", "of allowed");
  for (auto &r : regimes) {
    printf("%-56s %8ld %10.2e %9.1f%%\n", r.name.c_str(), (long)r.pairs, r.worst, 100 * r.worstShare);
  }
  RUN(cudaStreamDestroy(stream));
  printf("%d violations\n", violations);
  return violations > 0;
}
