// The checks of reductions on the device, which check.cpp includes: what is selected and folded of a strip, and copied to the host,
// against plain loops on the host.
#pragma once

// Elements of device memory between guards.
template <class T>
struct Guarded {
  static constexpr int64_t GUARD = 64;
  static constexpr int PATTERN = 0xa5;

  int64_t size;
  Memory memory;

  explicit Guarded(int64_t size) : size(size), memory((size + 2 * GUARD) * sizeof(T)) {
    std::vector<char> pattern((size + 2 * GUARD) * sizeof(T), (char)PATTERN);
    memory.write(pattern.data(), pattern.size());
  }

  T *at() { return (T *)memory.at + GUARD; }

  static bool isTouched(const T &x) {
    for (size_t n = 0; n < sizeof(T); n++) {
      if (((const unsigned char *)&x)[n] != PATTERN) {
        return true;
      }
    }
    return false;
  }

  std::vector<T> read(const std::string &what) {
    std::vector<T> all(size + 2 * GUARD);
    memory.read(all.data(), all.size() * sizeof(T));
    for (int64_t n = 0; n < GUARD; n++) {
      if (isTouched(all[n]) || isTouched(all[GUARD + size + n])) {
        violation(what + ": written outside its memory");
        break;
      }
    }
    return std::vector<T>(all.begin() + GUARD, all.end() - GUARD);
  }
};

// A strip on host and device; what lies between its rows is least, and would show.
struct Values {
  int64_t rows, columns, stride;
  std::vector<double> host;
  Memory memory;

  Values(int64_t rows, int64_t columns, int64_t gap, const Element &element)
      : rows(rows), columns(columns), stride(columns + gap), host(rows * stride, -1e9), memory(host.size() * 8) {
    for (int64_t i = 0; i < rows; i++) {
      for (int64_t j = 0; j < columns; j++) host[i * stride + j] = element();
    }
    memory.write(host.data(), host.size() * 8);
  }

  const double *row(int64_t i) const { return &host[i * stride]; }
};

struct Selection {
  int64_t width, skip, k;
  double slack;
  int64_t capacity;
};

struct Found {
  double value;
  int column;

  bool operator==(const Found &) const = default;
};

// Checks every list of a strip; where `most` is not 0, none of them may have more.
void checkSelect(const char *name, const Values &x, const Selection &s, const std::vector<double> &limits, double most = 0) {
  char what[300];
  snprintf(what, sizeof what, "%s: [%ld, %ld], width %ld, skip %ld, k %ld, slack %g, capacity %ld", name, (long)x.rows,
           (long)x.columns, (long)s.width, (long)s.skip, (long)s.k, s.slack, (long)s.capacity);
  int64_t width = std::min(s.width, x.columns);
  int64_t pieces = (x.columns + width - 1) / width;
  Guarded<int32_t> counts(x.rows * pieces), columns(x.rows * pieces * s.capacity);
  Guarded<double> values(x.rows * pieces * s.capacity);
  Memory limit(x.rows * 8);
  limit.write(limits.data(), x.rows * 8);
  RUN(kullback_cuda_select((const double *)x.memory.at, x.rows, x.columns, x.stride, s.width, s.skip, s.k, s.slack,
                           (const double *)limit.at, s.capacity, counts.at(), columns.at(), values.at(), stream));
  std::vector<int32_t> count = counts.read(what);
  std::vector<int32_t> column = columns.read(what);
  std::vector<double> value = values.read(what);
  for (int64_t i = 0; i < x.rows; i++) {
    for (int64_t piece = 0; piece < pieces; piece++) {
      std::vector<Found> all;
      for (int64_t j = piece * width; j < std::min(x.columns, (piece + 1) * width); j++) {
        if (j - i != s.skip) {
          all.push_back({x.row(i)[j], (int)j});
        }
      }
      auto before = [](const Found &a, const Found &b) { return std::pair(a.value, a.column) < std::pair(b.value, b.column); };
      std::sort(all.begin(), all.end(), before);
      auto within = [&](double limit) {
        return std::count_if(all.begin(), all.end(), [&](const Found &f) { return f.value <= limit; });
      };
      bool follows = s.k > 0 && s.k <= (int64_t)all.size();
      int64_t largest = within(limits[i]);
      int64_t least = follows ? within(std::min(limits[i], s.slack * all[s.k - 1].value)) : largest;
      int64_t at = i * pieces + piece;
      int64_t n = count[at];
      if (n < least || n > largest || (most > 0 && n > most)) {
        violation(std::string(what) + ": " + std::to_string(n) + " of " + std::to_string(least) + " to " +
                  std::to_string(most > 0 ? (int64_t)most : largest));
        return;
      }
      if (n > 0 && n < largest && all[n - 1].value == all[n].value) {
        violation(std::string(what) + ": some of equal entries");
        return;
      }
      if (n > s.capacity) {
        continue;
      }
      all.resize(n);
      if (s.k == 0) {
        std::sort(all.begin(), all.end(), [](const Found &a, const Found &b) { return a.column < b.column; });
      }
      bool isRight = true;
      for (int64_t m = 0; m < s.capacity; m++) {
        int64_t to = at * s.capacity + m;
        isRight &= m < n ? Found{value[to], column[to]} == all[m]
                         : !Guarded<double>::isTouched(value[to]) && !Guarded<int32_t>::isTouched(column[to]);
      }
      if (!isRight) {
        violation(std::string(what) + ": a list is wrong");
        return;
      }
    }
  }
}

Element exponential() {
  return [] { return std::exponential_distribution<double>()(generator); };
}

// Neighbours alike.
Element clustered() {
  return [n = 0, centre = 0.0]() mutable {
    centre = n++ % 700 == 0 ? std::exponential_distribution<double>()(generator) : centre;
    return centre * (1 + 1e-3 * std::fabs(normal()));
  };
}

const std::vector<Element> &elements() {
  static const std::vector<Element> all = {
      exponential(),
      clustered(),
      [] { return std::exp(30 * normal()); },
      [] { return 3.0; },
      [] { return 0.0; },
      [] { return INFINITE; },
      [] { return (double)below(4); },
      [] { return below(3) ? 0.0 : 5e-324 * below(3); },
      [] { return below(2) ? INFINITE : std::fabs(normal()); },
      [] { return below(50) ? INFINITE : 1e308 * (1 + below(2) * 0.5); },
  };
  return all;
}

template <class T>
const T &anyOf(const std::vector<T> &of) {
  return of[below(of.size())];
}

void checkSelections(int rounds) {
  const std::vector<int64_t> sizes = {1, 2, 7, 31, 255, 256, 257, 1000, 2049, 4096, 4097, 5000};
  for (int n = 0; n < rounds; n++) {
    int64_t size = anyOf(sizes);
    Values x(1 + below(4), size, anyOf<int64_t>({0, 1, 3}), elements()[n % elements().size()]);
    Selection s;
    s.width = anyOf<int64_t>({size, size, size / 2 + 1, size / 3 + 1, 100, 257, size + 10, INT64_MAX});
    s.width = size > 1000 ? std::max<int64_t>(s.width, 100) : s.width;
    s.skip = anyOf<int64_t>({0, 0, -1, below(size), size - 1, size, -x.rows, below(size) - 2, INT64_MIN, INT64_MAX});
    s.k = anyOf<int64_t>({0, 1, 10, 100, 700, 1500, size - 1, size, size + 1, INT64_MAX});
    s.slack = anyOf<double>({1, 1, 1.25, 1e300});
    s.capacity = anyOf<int64_t>({1, 15, 200, 2048});
    std::vector<double> limits;
    for (int64_t i = 0; i < x.rows; i++) {
      limits.push_back(anyOf<double>({INFINITE, INFINITE, x.row(i)[below(size)], x.row(i)[below(size)] * 0.1, 1, 0, -1}));
    }
    checkSelect("select", x, s, limits);
  }
}

// That few entries come with the k least, whatever the order of the columns.
void checkThatBoundsAreTight(int64_t columns) {
  for (const Element &element : {exponential(), clustered()}) {
    for (int64_t k : {1, 10, 100, 700, 1200}) {
      Values x(6, columns, 1, element);
      std::vector<double> limits(6, INFINITE);
      checkSelect("bound", x, {columns, 0, k, 1, 2048}, limits, 1.3 * k + 16);
      limits.assign(6, x.row(0)[5]);
      checkSelect("bound below a limit", x, {columns, 0, k, 1, 2048}, limits, 1.3 * k + 16);
    }
  }
}

void checkFold(const Values &x, int64_t width, const Element *weight) {
  std::string what = "fold: [" + std::to_string(x.rows) + ", " + std::to_string(x.columns) + "], width " + std::to_string(width);
  int64_t pieces = (x.columns + width - 1) / width;
  std::vector<double> weights;
  for (int64_t j = 0; j < x.columns && weight != nullptr; j++) {
    weights.push_back((*weight)());
  }
  Memory onDevice(weights.size() * 8);
  if (weight != nullptr) {
    onDevice.write(weights.data(), weights.size() * 8);
  }
  for (int kind : {KULLBACK_MIN, KULLBACK_SUM, KULLBACK_LOG_SUM_EXP}) {
    std::vector<double> first;
    for (int turn = 0; turn < 2; turn++) {
      Guarded<double> out(x.rows * pieces * 2);
      RUN(kullback_cuda_fold(kind, (const double *)x.memory.at, x.rows, x.columns, x.stride, width, (const double *)onDevice.at,
                             out.at(), stream));
      std::vector<double> result = out.read(what);
      if (turn == 1) {
        expect(memcmp(first.data(), result.data(), first.size() * 8) == 0, what + ": other bits the second time");
      }
      first = result;
    }
    for (int64_t i = 0; i < x.rows; i++) {
      for (int64_t piece = 0; piece < pieces; piece++) {
        auto each = [&](auto f) {
          for (int64_t j = piece * width; j < std::min(x.columns, (piece + 1) * width); j++) {
            f(kind != KULLBACK_LOG_SUM_EXP || weights.empty() ? x.row(i)[j] : x.row(i)[j] - weights[j]);
          }
        };
        double least = INFINITE;
        long double sum = 0;
        each([&](double v) { least = std::min(least, v); });
        each([&](double v) { sum += kind == KULLBACK_SUM ? (long double)v : v < INFINITE ? expl((long double)least - v) : 0; });
        const double *got = &first[(i * pieces + piece) * 2];
        if (kind != KULLBACK_SUM) {
          expect(got[0] == least, what + ": least");
        }
        double total = got[kind == KULLBACK_SUM ? 0 : 1];
        bool isRight = kind == KULLBACK_MIN ? total == 0 : total == (double)sum || std::fabs(total - sum) <= 1e-13L * sum;
        expect(isRight && (kind != KULLBACK_SUM || got[1] == 0),
               what + ": sum of kind " + std::to_string(kind) + " is " + std::to_string(total));
      }
    }
  }
}

void checkFolds() {
  const double INF = INFINITE;
  const std::vector<Element> weights = {
      [] { return 0.0; },
      [] { return normal(); },
      [] { return 1e3 * normal(); },
      [=] { return below(2) ? -INF : normal(); },
      [=] { return -INF; },
  };
  for (int64_t columns : {1, 2, 255, 256, 257, 3000}) {
    for (const Element &element : elements()) {
      Values x(3, columns, below(2), element);
      for (int64_t width : {columns, columns / 2 + 1, columns / 7 + 1}) {
        checkFold(x, width, below(6) ? &anyOf(weights) : nullptr);
      }
    }
  }
}

// Rows of device memory in host memory, and nothing beside them.
void checkDownload() {
  const int64_t size = 10000;
  std::vector<unsigned char> values(size);
  for (auto &v : values) v = (unsigned char)below(256);
  Memory memory(size);
  memory.write(values.data(), size);
  void *pinned;
  RUN(cudaHostAlloc(&pinned, size, 0));
  std::vector<unsigned char> pageable(size);
  for (unsigned char *to : {(unsigned char *)pinned, pageable.data()}) {
    for (auto [width, height, toGap, fromGap] : {std::array<int64_t, 4>{1, 1, 0, 0}, {1000, 9, 0, 0}, {13, 100, 3, 0}, {13, 100, 0, 7},
                                                 {13, 100, 3, 7}, {8, 100, 8, 24}, {4001, 1, 5000, 6000}, {1, 3000, 1, 2}}) {
      memset(to, 0xa5, size);
      int64_t toStride = width + toGap;
      int64_t fromStride = width + fromGap;
      int64_t shift = below(20);
      RUN(kullback_cuda_download(to + 50, toStride, (char *)memory.at + shift, fromStride, width, height, stream));
      bool isRight = true;
      for (int64_t n = 0; n < size; n++) {
        int64_t k = n - 50;
        bool within = k >= 0 && k / toStride < height && k % toStride < width;
        isRight &= to[n] == (within ? values[shift + k / toStride * fromStride + k % toStride] : 0xa5);
      }
      expect(isRight, "download of " + std::to_string(height) + " rows of " + std::to_string(width));
    }
  }
  RUN(cudaFreeHost(pinned));

  // Rows farther apart than a pitch may be, in memory of which only they are touched.
  const int64_t stride = (int64_t)1 << 31;
  std::unique_ptr<unsigned char, void (*)(void *)> apart((unsigned char *)malloc(2 * stride + 8), free);
  expect(apart != nullptr, "memory for rows 2 GiB apart");
  if (apart == nullptr) {
    return;
  }
  RUN(kullback_cuda_download(apart.get(), stride, memory.at, 9, 8, 3, stream));
  for (int64_t n = 0; n < 3; n++) {
    expect(memcmp(apart.get() + n * stride, &values[n * 9], 8) == 0, "download to rows 2 GiB apart");
  }
}

void checkReductionArguments() {
  Memory memory(1 << 16);
  double *at = (double *)memory.at;
  int32_t *ints = (int32_t *)at + 4096;
  int32_t *found = ints + 16;
  auto select = [&](const double *matrix, int64_t rows, int64_t columns, int64_t stride, int64_t width, int64_t k, double slack,
                    const double *limits, int64_t capacity, int32_t *counts, int32_t *columnsFound, double *values) {
    return kullback_cuda_select(matrix, rows, columns, stride, width, 0, k, slack, limits, capacity, counts, columnsFound, values, stream);
  };
  double *odd = (double *)((char *)at + 4);
  int32_t *oddInts = (int32_t *)((char *)at + 2);
  double *to = at + 4096;
  RUN(cudaMemcpyAsync(at, std::vector<double>(4096).data(), 4096 * 8, cudaMemcpyHostToDevice, stream));
  expect(select(at, 4, 4, 4, 4, 1, 1, at, 4, ints, found, to) == 0, "select");
  expect(select(nullptr, 4, 4, 4, 4, 1, 1, at, 4, ints, found, to) == -1, "select from null");
  expect(select(odd, 4, 4, 4, 4, 1, 1, at, 4, ints, found, to) == -1, "select misaligned");
  expect(select(at, 0, 4, 4, 4, 1, 1, at, 4, ints, found, to) == -1, "select no rows");
  expect(select(at, 4, 0, 4, 4, 1, 1, at, 4, ints, found, to) == -1, "select no columns");
  expect(select(at, 1, (int64_t)1 << 31, (int64_t)1 << 31, 4, 1, 1, at, 4, ints, found, to) == -1, "select too many columns");
  expect(select(at, 4, 4, 3, 4, 1, 1, at, 4, ints, found, to) == -1, "select stride");
  expect(select(at, 4, 4, INT64_MAX, 4, 1, 1, at, 4, ints, found, to) == -1, "select stride overflows");
  expect(select(at, (int64_t)1 << 50, 1 << 9, 1 << 9, 1, 1, 1, at, 2048, ints, found, to) == -1, "select lists overflow");
  expect(select(at, 4, 4, 4, 0, 1, 1, at, 4, ints, found, to) == -1, "select width");
  expect(select(at, 4, 4, 4, 4, -1, 1, at, 4, ints, found, to) == -1, "select k");
  for (double slack : {0.5, -1.0, INFINITE, std::nan("")}) {
    expect(select(at, 4, 4, 4, 4, 1, slack, at, 4, ints, found, to) == -1, "select slack");
  }
  expect(select(at, 4, 4, 4, 4, 1, 1, nullptr, 4, ints, found, to) == -1, "select without limits");
  expect(select(at, 4, 4, 4, 4, 1, 1, odd, 4, ints, found, to) == -1, "select limits misaligned");
  expect(select(at, 4, 4, 4, 4, 1, 1, at, 0, ints, found, to) == -1, "select capacity 0");
  expect(select(at, 4, 4, 4, 4, 1, 1, at, KULLBACK_MOST_SELECTED + 1, ints, found, to) == -1, "select capacity");
  expect(select(at, 4, 4, 4, 4, 1, 1, at, 4, nullptr, found, to) == -1, "select without counts");
  expect(select(at, 4, 4, 4, 4, 1, 1, at, 4, ints, nullptr, to) == -1, "select without columns");
  expect(select(at, 4, 4, 4, 4, 1, 1, at, 4, ints, found, nullptr) == -1, "select without values");
  expect(select(at, 4, 4, 4, 4, 1, 1, at, 4, oddInts, found, to) == -1, "select counts misaligned");
  expect(select(at, 4, 4, 4, 4, 1, 1, at, 4, ints, oddInts, to) == -1, "select columns misaligned");
  expect(select(at, 4, 4, 4, 4, 1, 1, at, 4, ints, found, odd) == -1, "select values misaligned");
  auto fold = [&](int kind, const double *matrix, int64_t rows, int64_t columns, int64_t stride, int64_t width, const double *weights,
                  double *out) { return kullback_cuda_fold(kind, matrix, rows, columns, stride, width, weights, out, stream); };
  expect(fold(KULLBACK_LOG_SUM_EXP, at, 4, 4, 4, 4, at, to) == 0, "fold");
  expect(fold(-1, at, 4, 4, 4, 4, at, to) == -1 && fold(3, at, 4, 4, 4, 4, at, to) == -1, "fold kind");
  expect(fold(KULLBACK_MIN, nullptr, 4, 4, 4, 4, at, to) == -1 && fold(KULLBACK_MIN, odd, 4, 4, 4, 4, at, to) == -1, "fold from");
  expect(fold(KULLBACK_MIN, at, 0, 4, 4, 4, at, to) == -1 && fold(KULLBACK_MIN, at, 4, 0, 4, 4, at, to) == -1, "fold sizes");
  expect(fold(KULLBACK_MIN, at, 4, 4, 3, 4, at, to) == -1 && fold(KULLBACK_MIN, at, 4, 4, INT64_MAX, 4, at, to) == -1, "fold stride");
  expect(fold(KULLBACK_MIN, at, 4, 4, 4, 0, at, to) == -1, "fold width");
  expect(fold(KULLBACK_LOG_SUM_EXP, at, 4, 4, 4, 4, odd, to) == -1, "fold weights misaligned");
  expect(fold(KULLBACK_MIN, at, 4, 4, 4, 4, at, nullptr) == -1 && fold(KULLBACK_MIN, at, 4, 4, 4, 4, at, odd) == -1, "fold out");
  char host[64];
  auto download = [&](void *to, int64_t toStride, const void *from, int64_t fromStride, int64_t width, int64_t height) {
    return kullback_cuda_download(to, toStride, from, fromStride, width, height, stream);
  };
  expect(download(host, 8, at, 8, 8, 2) == 0, "download");
  expect(download(nullptr, 8, at, 8, 8, 2) == -1 && download(host, 8, nullptr, 8, 8, 2) == -1, "download null");
  expect(download(host, 7, at, 8, 8, 2) == -1 && download(host, 8, at, 7, 8, 2) == -1, "download stride");
  expect(download(host, 8, at, 8, 0, 2) == -1 && download(host, 8, at, 8, 8, 0) == -1, "download nothing");
  expect(download(host, INT64_MAX / 2, at, 8, 8, 3) == -1 && download(host, 8, at, INT64_MAX / 2, 8, 3) == -1, "download overflows");
}

// Whole matrices, by every kernel, with rows and columns exchanged.
void checkTransposed() {
  auto check = [](const char *name, const Batch &q, const Batch &p, bool same = false) {
    OnDevice onQ(q);
    OnDevice onP(p);
    const OnDevice &on = same ? onQ : onP;
    for (bool wide : {false, true}) {
      Result all = pairwise(onQ, on, 1, q.n - 1, 0, p.n, same, wide, 2);
      Result transposed = pairwise(onQ, on, 1, q.n - 1, 0, p.n, same, wide, 3, 1, true);
      int64_t different = 0;
      for (int64_t i = 0; i < q.n - 1; i++) {
        for (int64_t j = 0; j < p.n; j++) different += all.at(i, j) != transposed.at(j, i);
      }
      expect(different == 0, std::string(name) + ": the transpose differs");
    }
  };
  for (bool wide : {false, true}) {
    auto of = [&](int64_t n, int d) { return diagonal(n, d, KULLBACK_STD, wide, around(0, 1), logNormal(0.5, 0.5)); };
    bool isLarge = !(wide && isSlowInDouble); // which takes the emulation long
    check("large tiles", of(isLarge ? 1030 : 65, 5), of(isLarge ? 1023 : 67, 5));
    check("small tiles", of(67, 33), of(90, 33));
    Batch near = diagonal(130, 9, KULLBACK_VARIANCE, wide, around(0, 1e-3), logNormal(1, 1e-3));
    check("near-duplicates", near, jittered(near, 1e-9, KULLBACK_VARIANCE, wide));
    check("q is p", near, near, true);
    check("full", factors(70, 7, wide, 10, 0), factors(45, 7, wide, 10, 0));
    Batch identical = factors(30, 5, wide, 10, 0);
    check("full, near-duplicates", identical, jitteredFactors(identical, 1e-9));
  }
}

// nearest as a caller has it: strips of rows, also of a transposed matrix, whose lists give the least of a row.
void checkStrips() {
  Batch b = diagonal(300, 20, KULLBACK_STD, false, around(0, 1), logNormal(0.5, 0.5));
  OnDevice on(b);
  Memory scratch(kullback_cuda_scratch_bytes(&on.batch, &on.batch, 300, 300));
  Result all = pairwise(on, on, 0, 300, 0, 300, true, true);
  Memory strip(100 * 300 * 8), limits(100 * 8);
  limits.write(std::vector<double>(100, INFINITE).data(), 100 * 8);
  for (bool transposed : {false, true}) {
    for (int64_t first = 0; first < 300; first += 100) {
      Guarded<int32_t> counts(100), columns(100 * 64);
      Guarded<double> values(100 * 64);
      RUN(kullback_cuda_pairwise(&on.batch, &on.batch, transposed ? 0 : first, transposed ? 300 : 100, transposed ? first : 0,
                                 transposed ? 100 : 300, 1, strip.at, 300, 1, transposed, scratch.at, stream));
      RUN(kullback_cuda_select((double *)strip.at, 100, 300, 300, 300, first, 10, 1, (double *)limits.at, 64, counts.at(), columns.at(),
                               values.at(), stream));
      std::vector<int32_t> count = counts.read("strips");
      std::vector<double> value = values.read("strips");
      for (int64_t n = 0; n < 100; n++) {
        int64_t i = first + n;
        std::vector<double> row;
        for (int64_t j = 0; j < 300; j++) {
          if (j != i) {
            row.push_back(transposed ? all.at(j, i) : all.at(i, j));
          }
        }
        std::sort(row.begin(), row.end());
        expect(count[n] >= 10 && count[n] <= 64 && std::equal(row.begin(), row.begin() + 10, value.begin() + n * 64), "strips: lists");
      }
    }
  }
}

void checkReductions() {
  checkReductionArguments();
  checkSelections(1500);
  checkThatBoundsAreTight(4500);
  checkThatBoundsAreTight(16384);
  checkFolds();
  checkDownload();
  checkTransposed();
  checkStrips();
}
