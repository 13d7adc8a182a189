// Checks, on the host, how the lanes of a warp share a tile: what FragmentMap loads, multiplied as the PTX ISA says that
// mma.m16n8k8 does, is the product of the tile's rows and columns, each entry once; loads are without bank conflicts. And the near
// form's series, and sets of devices.
#include <cmath>
#include <cstdio>
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

// The series against its function, and above what a run's sum is compared with, also where it is far from its function.
template <class T>
void checkNear() {
  using Form = NearForm<T>;
  for (int kind : {STD, VARIANCE, LOG_VARIANCE, PRECISION}) {
    Form form(kind);
    auto term = [&](double z) { // of means alike, and σ² of p such that z is the difference
      T q[2] = {0, (T)z};
      T p[4] = {0, 0, 1, 1};
      return (double)form.add(q, p, 0);
    };
    auto exact = [&](long double z) {
      long double x = kind == STD ? z * z + 2 * z : kind == VARIANCE ? z : kind == LOG_VARIANCE ? expm1l(z) : -z / (1 + z);
      return 0.5L * (x - (kind == LOG_VARIANCE ? z : log1pl(x)));
    };
    double worst = 0;
    for (int n = -64; n <= 64; n++) {
      double z = n / 64.0 * Form::MOST;
      if (std::fabs(z) > Form::MOST / 8) { // closer, the function's own rounding shows
        worst = std::fmax(worst, (double)std::fabs((long double)term(z) / exact(z) - 1));
      }
    }
    expect(worst < (sizeof(T) == 4 ? 3e-6 : 4e-15), "series", kind, sizeof(T));
    for (double z = -40; z < 40; z += 1e-3) {
      expect(term(z) >= form.series[0] * z * z / 3, "series far away", kind, sizeof(T));
    }
  }
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
  checkNear<float>();
  checkNear<double>();
  printf("%d failures\n", failures);
  return failures > 0;
}
