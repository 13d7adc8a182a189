// Checks, on the host, how the lanes of a warp share a tile: what FragmentMap loads, multiplied as the PTX ISA says that
// mma.m16n8k8 does, is the product of the tile's rows and columns, each entry once; loads are without bank conflicts. And the near
// form's series, what may stay by its bound in float, and sets of devices.
#include <cmath>
#include <cstdio>
#include <random>
#include <set>

#include "../src/refine.h"

using namespace kullback;

namespace {

int failures = 0;

void expect(bool holds, const char *what, int m, int n) {
  if (!holds) {
    printf("FAILED %s (%d, %d)\n", what, m, n);
    failures++;
  }
}

// Rows of shared memory that note what is read of them.
template <int SIDE>
struct Lines {
  static constexpr int LEADING = SIDE + 4;
  double line[8][LEADING];
};

// Whether eight lanes after another, which read 16 bytes each, or sixteen of 8, read from different banks.
template <int BYTES, class Address>
bool isFreeOfConflicts(Address addressOf) {
  constexpr int TOGETHER = 128 / BYTES;
  for (int first = 0; first < LANES; first += TOGETHER) {
    std::set<int64_t> banks;
    for (int lane = first; lane < first + TOGETHER; lane++) {
      banks.insert(addressOf(lane) % 128 / BYTES);
    }
    if ((int)banks.size() != TOGETHER) {
      return false;
    }
  }
  return true;
}

template <int M, int N>
void check() {
  using Map = FragmentMap<M, N>;
  static Lines<Map::ROWS> rows;
  static Lines<Map::COLUMNS> columns;
  for (int k = 0; k < 8; k++) {
    for (int i = 0; i < Map::ROWS; i++) rows.line[k][i] = 1 + k * 31 + i * 7 % 113;
    for (int j = 0; j < Map::COLUMNS; j++) columns.line[k][j] = 2 + k * 17 + j * 5 % 97;
  }
  std::set<int> seen;
  for (int warp = 0; warp < WARPS; warp++) {
    double a[LANES][M][4], b[LANES][N][2], c[LANES][2 * M][2 * N];
    for (int lane = 0; lane < LANES; lane++) {
      Map::load(rows.line, columns.line, warp * LANES + lane, a[lane], b[lane]);
    }
    for (int m = 0; m < M; m++) {
      for (int n = 0; n < N; n++) {
        double left[16][8], right[8][8];
        for (int lane = 0; lane < LANES; lane++) {
          int g = lane / 4;
          int l = lane % 4;
          left[g][l] = a[lane][m][0];
          left[g + 8][l] = a[lane][m][1];
          left[g][l + 4] = a[lane][m][2];
          left[g + 8][l + 4] = a[lane][m][3];
          right[l][g] = b[lane][n][0];
          right[l + 4][g] = b[lane][n][1];
        }
        for (int lane = 0; lane < LANES; lane++) {
          for (int e = 0; e < 4; e++) {
            double sum = 0;
            for (int k = 0; k < 8; k++) sum += left[lane / 4 + e / 2 * 8][k] * right[k][lane % 4 * 2 + e % 2];
            c[lane][2 * m + e / 2][Map::entry(n, e % 2)] = sum;
          }
        }
      }
    }
    for (int lane = 0; lane < LANES; lane++) {
      int t = warp * LANES + lane;
      for (int r = 0; r < 2 * M; r++) {
        for (int x = 0; x < 2 * N; x++) {
          int i = Map::row(t, r);
          int j = Map::column(t, x);
          double sum = 0;
          for (int k = 0; k < 8; k++) sum += rows.line[k][i] * columns.line[k][j];
          expect(c[lane][r][x] == sum, "product", M, N);
          expect(i >= 0 && i < Map::ROWS && j >= 0 && j < Map::COLUMNS && seen.insert(i * Map::COLUMNS + j).second, "entry", M, N);
          expect(j == Map::column(t, x / Map::RUN * Map::RUN) + x % Map::RUN, "entries in a row", M, N);
        }
      }
    }
  }
  expect((int)seen.size() == Map::ROWS * Map::COLUMNS, "tile", M, N);
  // the lanes' addresses are those of their first rows and columns, a line of k for each l
  auto address = [](int leading, int lane, int at) { return (int64_t)(lane % 4 * leading + at) * 8; };
  expect(isFreeOfConflicts<16>([&](int lane) { return address(rows.LEADING, lane, Map::row(lane, 0)); }), "banks of rows", M, N);
  expect(isFreeOfConflicts<8 * Map::TWINS>([&](int lane) { return address(columns.LEADING, lane, lane / 4 * Map::TWINS); }),
         "banks of columns", M, N);
}

// The series against its function and, where a run's sum is compared, above that also far away.
template <class Form>
void checkNear(double allowed) {
  using T = typename Form::T;
  bool hasParts = Form::ROW == 3;
  for (int kind : {STD, VARIANCE, LOG_VARIANCE, PRECISION}) {
    if (hasParts && kind != VARIANCE) {
      continue;
    }
    Form form(kind, kind);
    auto term = [&](T z) { // of means alike, and σ² of p such that z is the difference
      T q[Form::ROW] = {0, z};
      T p[Form::COLUMN] = {0, 0, 1, 1};
      if (hasParts) {
        q[1] = 1 + z;
        q[Form::ROW - 1] = z - (q[1] - 1);
        p[1] = 1;
        p[2] = 0;
      }
      return (double)form.add(q, p, 0);
    };
    auto exact = [&](long double z) {
      long double x = kind == STD ? z * z + 2 * z : kind == VARIANCE ? z : kind == LOG_VARIANCE ? expm1l(z) : -z / (1 + z);
      return x - (kind == LOG_VARIANCE ? z : log1pl(x));
    };
    double worst = 0;
    for (int n = -64; n <= 64; n++) {
      T z = (T)(n / 64.0 * Form::MOST);
      if (std::fabs(z) > Form::MOST / 8) { // closer, the function's own rounding shows
        worst = std::fmax(worst, (double)std::fabs((long double)term(z) / exact(z) - 1));
      }
    }
    expect(worst < allowed, "series", kind, sizeof(T));
    for (double z = -40; z < 40; z += 1e-3) {
      bool isRight = form.stays(1) ? z <= -0.99 || std::fabs(z) <= Form::MOST || std::fabs(term(z) / exact(z) - 1) < allowed
                                      : term(z) >= form.series[0] * z * z / 3;
      expect(isRight, "series far away", kind, sizeof(T));
    }
  }
}

// The least float that stays of a row and a column, as near to 0 as it may be in double; or 0 if none does.
template <bool SHARED_WEIGHTS>
long double leastThatStays(const ProductBound &bound, const RowTerms &row, const ColumnTerms &column) {
  RowBound q(bound, row);
  ColumnBound p(bound, column);
  auto of = [](uint32_t bits) {
    float x;
    memcpy(&x, &bits, 4);
    return x;
  };
  uint32_t low = 0;
  uint32_t high = 0x7f7fffff; // the largest
  if (!staysWithin<SHARED_WEIGHTS>(of(high), q, p) && !staysWithin<SHARED_WEIGHTS>(1e20f, q, p)) {
    return 0;
  }
  high = staysWithin<SHARED_WEIGHTS>(of(high), q, p) ? high : 0x60ad78ec; // 1e20
  while (high - low > 1) {
    uint32_t middle = low + (high - low) / 2;
    (staysWithin<SHARED_WEIGHTS>(of(middle), q, p) ? high : low) = middle;
  }
  return of(high) * (1 - 0x1p-24L);
}

// That bounds compared in float let nothing stay that they exclude, with half of what PRODUCT_UNIT has to spare.
void checkBounds() {
  std::mt19937_64 random(5);
  auto uniform = [&](double a, double b) { return std::uniform_real_distribution<double>(a, b)(random); };
  auto below = [&](int n) { return (int)(random() % n); };
  auto around = [&](double size) { return uniform(-1, 1) * size * std::pow(10, uniform(-6, 2)); };
  int kept = 0;
  for (int n = 0; n < 100000; n++) {
    bool wide = n % 2;
    int d = (int)std::exp2(uniform(0, 22));
    auto small = [&] { return std::pow(10, uniform(-20, 2)); };
    ProductSums sums[2];
    for (ProductSums &s : sums) {
      s.far.count = below(3) == 0 ? 0 : d;
      s.far.product.exponent = s.far.count == 0 ? 0 : around(d);
      s.w = s.far.count == 0 ? small() : std::fabs(around(100 * d));
      s.nearQ = s.nearP = small();
      s.weightQ = s.weightP = small();
    }
    const ProductSums &q = sums[0];
    ProductSums &p = sums[1];
    p.far.count = q.far.count;
    ProductBound bound = {upper(productUnit(d, wide)), upper(productShare(d, wide)), (float)(wide ? DOUBLE_TOLERANCE : FLOAT_TOLERANCE)};
    long double kl = leastThatStays<true>(bound, q.row(STD, 0, d, wide), p.column(STD, 0, d, wide));
    double halfQ = q.far.value(STD);
    double halfP = p.far.value(STD);
    long double weight = (long double)halfQ - halfP + 0.5L * q.far.count + 5 / 6.0L * p.w + q.weightQ + p.weightP;
    kl = kl > 0 ? std::fmax(kl, -weight) : 0; // three times their sum is no less than magnitudes
    long double u = 0x1p-53L * (1 + 1 / 32.0L);
    long double share = 3 * u * productUnits(d, wide);
    long double near = q.nearQ + p.nearP;
    long double error = (share + u) * kl + q.far.bound(STD) + p.far.bound(STD) +
                        4 * u * (std::fabs(halfQ) + std::fabs(halfP) + 0.5L * q.far.count + p.w + near) + u * (d / 32.0L + 16) * p.w +
                        u * (d / 32.0L + 1200) * near + share * weight;
    expect(kl == 0 || error <= (wide ? (long double)DOUBLE_TOLERANCE : (long double)FLOAT_TOLERANCE) * (1 + 0x1p-24L) * kl,
           "a diagonal pair's bound", d, wide);
    kept += kl > 0;

    double tolerance = std::pow(10, uniform(-12, -10));
    double sizes[2] = {around(d), around(d)};
    double noises[2], weights[2];
    for (int k = 0; k < 2; k++) {
      noises[k] = std::fabs(around(d * 1e-15));
      weights[k] = std::pow(10, uniform(-10, -4));
    }
    double inverse = tolerance * uniform(0, 0.6);
    ProductBound full = {upper(2 * PRODUCT_UNIT), 0, 0};
    kl = leastThatStays<false>(full, {sizes[0], upper(noises[0]), upper(weights[0])},
                               {sizes[1], upper(noises[1]), upper(weights[1]), upper(inverse), (float)tolerance});
    error = 2 * u * kl + noises[0] + noises[1] + (long double)weights[0] * weights[1] +
            inverse * 2 * (kl + std::fabs(sizes[0]) + std::fabs(sizes[1]));
    expect(kl == 0 || error <= tolerance * (1 + 0x1p-24L) * kl, "a full pair's bound", d, wide);
    kept += kl > 0;
  }
  expect(kept > 100000, "bounds that let something stay", kept, 0);
}

void checkDeviceSet() {
  DeviceSet set;
  for (int ordinal : {-1, 0, 5, 63, 64, 1000}) {
    bool fits = ordinal >= 0 && ordinal < 64;
    expect(!set.has(ordinal), "device not yet in a set", ordinal, 0);
    set.add(ordinal);
    expect(set.has(ordinal) == fits, "device in a set", ordinal, 0);
    expect(!set.has(ordinal + 1), "another device in a set", ordinal, 0);
  }
  set.remove(-1);
  set.remove(5);
  expect(set.has(0) && !set.has(5) && set.has(63), "device removed from a set", 5, 0);
}

} // namespace

int main() {
  checkDeviceSet();
  check<4, 4>();
  check<2, 4>();
  check<2, 2>();
  check<1, 1>();
  checkNear<NearForm<float>>(3e-6);
  checkNear<NearForm<float, 2>>(3e-6);
  checkNear<NearForm<double>>(1.1e-13);
  checkNear<NearForm<double, 2, true>>(1.1e-13);
  checkBounds();
  printf("%d failures\n", failures);
  return failures > 0;
}
