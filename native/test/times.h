// The times of `check time`, which includes this: beside floors and goals.
#pragma once

// Time between two points of the stream.
struct Stopwatch {
#ifdef KULLBACK_EMULATED_CHECK // which has no time of its own
  std::chrono::steady_clock::time_point started;

  void start() {
    RUN(cudaStreamSynchronize(stream));
    started = std::chrono::steady_clock::now();
  }

  double stop() {
    RUN(cudaStreamSynchronize(stream));
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  }
#else
  cudaEvent_t from, to;

  Stopwatch() {
    RUN(cudaEventCreate(&from));
    RUN(cudaEventCreate(&to));
  }
  Stopwatch(const Stopwatch &) = delete;
  ~Stopwatch() {
    cudaEventDestroy(from);
    cudaEventDestroy(to);
  }

  void start() { RUN(cudaEventRecord(from, stream)); }

  double stop() {
    float milliseconds;
    RUN(cudaEventRecord(to, stream));
    RUN(cudaEventSynchronize(to));
    RUN(cudaEventElapsedTime(&milliseconds, from, to));
    return milliseconds * 1e-3;
  }
#endif
};

// What the kernels are asked to do on an H100 or H200, prepared batches of float, in microseconds; `foreseen` is what was
// predicted of them before they ever ran. native/README.md has the reasons.
struct Goal {
  int64_t n;
  int d;
  const char *foreseen;
  double goal;
};

constexpr Goal GOALS[] = {
    {100, 256, "6–9", 8},
    {1024, 128, "12–15", 15},
    {4096, 256, "300–340", 360},
    {16384, 64, "1400–1700", 1700},
    {16384, 512, "9300–9800", 11000},
};

// What no data may take more than, in times of usual data.
constexpr double DATA_GOAL = 4;

// What a device can do in a second at its highest clock; 0 where it is not known. An H100 or H200: 33.5e12 and 66.9e12.
struct Peak {
  double instructions = 0;   // of fp32
  double operations = 0;     // of fp64, on tensor cores where it has them
  int multiprocessors = 0;
  double clock = 0;
  bool hasGoals = false;

  Peak() {
#ifndef KULLBACK_EMULATED_CHECK
    int major, minor, kilohertz;
    RUN(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0));
    RUN(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, 0));
    RUN(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0));
    RUN(cudaDeviceGetAttribute(&kilohertz, cudaDevAttrClockRate, 0));
    clock = kilohertz * 1e3;
    bool isA100 = major == 8 && minor == 0;
    instructions = clock * multiprocessors * (isA100 ? 64 : 128);
    operations = clock * multiprocessors * (isA100 ? 128 : major == 9 ? 256 : 0);
    hasGoals = major == 9;
#endif
  }
};

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

// A batch's matrix against itself, timed in three ways.
struct Timed {
  enum { PREPARED, PREPARATION, TRANSFERS, WAYS };

  std::string what;
  Batch b;
  OnDevice on;
  Memory out, scratch;
  void *input, *result; // pinned
  int64_t inputBytes, outBytes;
  int calls[WAYS];
  std::vector<double> seconds[WAYS];
  const Timed *usual; // the same of usual data, if this is other data

  Timed(const char *what, const Batch &given, const Timed *usual)
      : what(what),
        b(given),
        on(b),
        out(b.n * b.n * (b.wide ? 8 : 4)),
        scratch(kullback_cuda_scratch_bytes(&on.batch, &on.batch, b.n, b.n)),
        inputBytes(kullback_cuda_scale_offset(&on.batch) + b.n * b.length() * (b.wide || b.isFull() ? 8 : 4)),
        outBytes(b.n * b.n * (b.wide ? 8 : 4)),
        usual(usual) {
    RUN(cudaHostAlloc(&input, inputBytes, 0));
    RUN(cudaHostAlloc(&result, outBytes, 0));
    on.memory.read(input, inputBytes);
  }
  Timed(const Timed &) = delete;
  ~Timed() {
    cudaFreeHost(input);
    cudaFreeHost(result);
  }

  void compute(int way) {
    if (way == TRANSFERS) {
      RUN(cudaMemcpyAsync(on.memory.at, input, inputBytes, cudaMemcpyHostToDevice, stream));
    }
    if (way != PREPARED) {
      RUN(kullback_cuda_prepare(&on.batch, stream));
    }
    RUN(kullback_cuda_pairwise(&on.batch, &on.batch, 0, b.n, 0, b.n, 1, out.at, b.n, b.wide, 0, scratch.at, stream));
    if (way == TRANSFERS) {
      RUN(cudaMemcpyAsync(result, out.at, outBytes, cudaMemcpyDeviceToHost, stream));
    }
  }

  double time(Stopwatch &watch, int way, int count) {
    watch.start();
    for (int n = 0; n < count; n++) {
      compute(way);
    }
    return watch.stop() / count;
  }

  // Enough calls in a row that a launch's latency and an event's resolution do not count.
  void warm(Stopwatch &watch) {
    constexpr double WARM = 0.2;
    constexpr double GROUP = 2e-3;
    for (int way = 0; way < WAYS; way++) {
      double least = INFINITE;
      double spent = 0;
      for (int count = 1; spent < WARM; count = std::min(2 * count, 64)) {
        double once = time(watch, way, count);
        spent += std::max(once * count, 1e-6);
        least = std::min(least, once);
      }
      calls[way] = (int)std::clamp(GROUP / least, 1.0, 1000.0);
    }
  }

  // The result that was timed last, against the reference.
  void verify() {
    double condition;
    for (int n = 0; n < 20; n++) {
      int64_t i = below(b.n);
      int64_t j = below(b.n);
      double value = b.wide ? ((double *)result)[i * b.n + j] : ((float *)result)[i * b.n + j];
      Real exact = kl(b, i, b, j, &condition);
      record("timed: " + what, errorOf(value, exact, b.wide), allowed(b, b, condition, b.wide), describe(b, b, i, j));
    }
  }

  // Of the two forms that a matrix can be had as: three instructions a term; a product with two multiply-adds a term, for full
  // batches one a term of their product.
  void print(const Peak &peak) const {
    double pairs = (double)b.n * b.n;
    double prepared = median(seconds[PREPARED]);
    double direct = b.isFull() || b.wide || peak.instructions == 0 ? 0 : 3 * pairs * b.d / peak.instructions;
    double terms = b.isFull() ? (double)b.length() + b.d : 2.0 * b.d;
    double product = peak.operations == 0 ? 0 : 2 * pairs * terms / peak.operations;
    printf("| kullback: %s | (%ld,%d) | %.1f | %.1f | %.1f |", what.c_str(), (long)b.n, b.d, prepared * 1e6,
           median(seconds[PREPARATION]) * 1e6, median(seconds[TRANSFERS]) * 1e6);
    for (double floor : {direct, product}) {
      if (floor > 1e-9) {
        printf(" %.1f: %.2f |", floor * 1e6, prepared / floor);
      } else {
        printf(" |");
      }
    }
    for (const Goal &g : GOALS) {
      if (peak.hasGoals && what == "diagonal, float" && g.n == b.n && g.d == b.d) {
        printf(" foreseen %s, goal %.0f: %s", g.foreseen, g.goal, prepared * 1e6 <= g.goal ? "met" : "**missed**");
      }
    }
    if (usual != nullptr) {
      double ratio = prepared / median(usual->seconds[PREPARED]);
      printf(" %.1f times usual data's, goal %.0f: %s", ratio, DATA_GOAL, ratio <= DATA_GOAL ? "met" : "**missed**");
    }
    printf(" |\n");
  }
};

// What a reduction is to take at most, in times of the matrix to device memory.
constexpr double REDUCTION_GOAL = 1.2;

// The matrix of a timed batch reduced, strip by strip: one is reduced on a second stream while the next is made in another buffer.
struct Reduction {
  static constexpr int K = 10;
  static constexpr int64_t CAPACITY = 42; // as RowStrips.java has it, and of 16384 columns as many rows

  std::string what;
  bool isNearest;
  const Timed &matrix;
  int64_t n, rows; // of a strip
  Memory strips[2], scratch, limits, counts, columns, values;
  cudaStream_t other;
  cudaEvent_t made[2], reduced[2];
  std::vector<double> seconds;

  Reduction(const char *what, bool isNearest, const Timed &matrix)
      : what(what),
        isNearest(isNearest),
        matrix(matrix),
        n(matrix.b.n),
        rows(n / 32),
        strips{Memory(rows * n * 8), Memory(rows * n * 8)},
        scratch(kullback_cuda_scratch_bytes(&matrix.on.batch, &matrix.on.batch, rows, n)),
        limits(n * 8),
        counts(n * 4),
        columns(n * CAPACITY * 4),
        values(n * CAPACITY * 8) {
    limits.write(std::vector<double>(n, INFINITE).data(), n * 8);
    RUN(cudaStreamCreateWithFlags(&other, 1));
    for (int turn = 0; turn < 2; turn++) {
      RUN(cudaEventCreateWithFlags(&made[turn], cudaEventDisableTiming));
      RUN(cudaEventCreateWithFlags(&reduced[turn], cudaEventDisableTiming));
    }
  }
  Reduction(const Reduction &) = delete;
  ~Reduction() {
    for (int turn = 0; turn < 2; turn++) {
      cudaEventDestroy(made[turn]);
      cudaEventDestroy(reduced[turn]);
    }
    cudaStreamDestroy(other);
  }

  void compute() {
    const kullback_cuda_batch *b = &matrix.on.batch;
    for (int64_t row = 0; row < n; row += rows) {
      int turn = row / rows % 2;
      double *strip = (double *)strips[turn].at;
      RUN(cudaStreamWaitEvent(stream, reduced[turn], 0));
      RUN(kullback_cuda_pairwise(b, b, row, rows, 0, n, 1, strip, n, 1, 0, scratch.at, stream));
      RUN(cudaEventRecord(made[turn], stream));
      RUN(cudaStreamWaitEvent(other, made[turn], 0));
      if (isNearest) {
        RUN(kullback_cuda_select(strip, rows, n, n, n, row, K, 1, (double *)limits.at + row, CAPACITY, (int32_t *)counts.at + row,
                                 (int32_t *)columns.at + row * CAPACITY, (double *)values.at + row * CAPACITY, other));
      } else {
        RUN(kullback_cuda_fold(KULLBACK_LOG_SUM_EXP, strip, rows, n, n, n, nullptr, (double *)values.at + row * 2, other));
      }
      RUN(cudaEventRecord(reduced[turn], other));
    }
    for (cudaEvent_t last : reduced) {
      RUN(cudaStreamWaitEvent(stream, last, 0));
    }
  }

  void time(Stopwatch &watch) {
    watch.start();
    compute();
    seconds.push_back(watch.stop());
  }

  void print() const {
    double ratio = median(seconds) / median(matrix.seconds[Timed::PREPARED]);
    printf("| kullback: %s | (%ld,%d) | %.1f | | | | | %.2f times the matrix, foreseen 1.1–1.2, goal %.1f: %s |\n", what.c_str(), (long)n,
           matrix.b.d, median(seconds) * 1e6, ratio, REDUCTION_GOAL, ratio <= REDUCTION_GOAL ? "met" : "**missed**");
  }

  // That every row has a list of the nearest.
  void verify() {
    std::vector<int32_t> count(n);
    counts.read(count.data(), n * 4);
    expect(std::all_of(count.begin(), count.end(), [](int32_t c) { return c >= K && c <= CAPACITY; }), "timed: " + what);
  }
};

// Medians of interleaved repetitions, as a markdown table.
void measure() {
#ifdef KULLBACK_EMULATED_CHECK
  const int64_t part = 64; // of each batch: what is tried here is the table
#else
  const int64_t part = 1;
#endif
  const int ROUNDS = 15;
  Stopwatch watch;
  std::vector<std::unique_ptr<Timed>> all;
  auto add = [&](const char *what, const Batch &b, const Timed *usual = nullptr) {
    all.push_back(std::make_unique<Timed>(what, b, usual));
    all.back()->warm(watch);
    return all.back().get();
  };
  auto posteriors = [&](int64_t n, int d, bool wide) {
    return diagonal(n / part, d, KULLBACK_STD, wide, around(0, 1), logNormal(0.5, 0.5));
  };
  auto collapsed = [&](bool wide) {
    return diagonal(4096 / part, 256, KULLBACK_STD, wide, around(0, 1e-3), logNormal(1, 1e-3));
  };
  // each like every count-th other
  auto clusters = [&](int64_t count, bool wide) {
    Batch some = posteriors(count * part, 256, wide);
    Batch b = some;
    for (b.n = some.n; b.n < 4096 / part; b.n += some.n) {
      b.mean.insert(b.mean.end(), some.mean.begin(), some.mean.end());
      b.scale.insert(b.scale.end(), some.scale.begin(), some.scale.end());
    }
    return jittered(b, wide ? 1e-9 : 1e-5, KULLBACK_STD, wide);
  };
  add("launches alone", diagonal(1, 1, KULLBACK_STD, false, around(0, 1), logNormal(0.5, 0.5)));
  const Timed *usual[2] = {};
  for (const Goal &g : GOALS) {
    const Timed *timed = add("diagonal, float", posteriors(g.n, g.d, false));
    usual[0] = g.n == 4096 ? timed : usual[0];
  }
  add("diagonal, double", posteriors(1024, 128, true));
  usual[1] = add("diagonal, double", posteriors(4096, 256, true));
  for (bool wide : {false, true}) {
    std::string type = wide ? "diagonal, double, " : "diagonal, float, ";
    add((type + "collapsed").c_str(), collapsed(wide), usual[wide]);
    add((type + "near-duplicates").c_str(), clusters(1, wide), usual[wide]);
    add((type + "1 in 128 near-duplicates").c_str(), clusters(std::min<int64_t>(128, 4096 / part), wide), usual[wide]);
    add((type + "means at 1000").c_str(), diagonal(4096 / part, 256, KULLBACK_STD, wide, around(1000, 1), logNormal(0.05, 0.1)),
        usual[wide]);
  }
  for (auto [n, d] : {std::pair{256, 32}, {1024, 32}, {2048, 64}}) {
    add("full, float", factors(n / part, d / (part > 1 ? 4 : 1), false, 10, 0));
  }
  const Timed *matrix = add("diagonal, float", posteriors(16384, 128, false));
  Reduction nearest("nearest, k = 10, on the device", true, *matrix);
  Reduction logSumExp("log-sum-exp on the device", false, *matrix);
  Reduction *reductions[] = {&nearest, &logSumExp};
  for (int round = 0; round < ROUNDS; round++) {
    for (auto &timed : all) {
      for (int way = 0; way < Timed::WAYS; way++) {
        timed->seconds[way].push_back(timed->time(watch, way, timed->calls[way]));
      }
    }
    for (Reduction *reduction : reductions) {
      reduction->time(watch);
    }
  }
  Peak peak;
  if (peak.multiprocessors > 0) {
    printf("%d multiprocessors at up to %.0f MHz: %.1f T fp32 instructions/s, %.1f T fp64 operations/s\n", peak.multiprocessors,
           peak.clock * 1e-6, peak.instructions * 1e-12, peak.operations * 1e-12);
  }
  printf("\n");
  printf("| what | (B,H) | prepared, µs | with preparation, µs | with transfers, µs | direct floor, µs: ratio "
         "| fp64 product floor, µs: ratio | note |\n|---|---|---|---|---|---|---|---|\n");
  for (auto &timed : all) {
    timed->print(peak);
  }
  for (Reduction *reduction : reductions) {
    reduction->print();
  }
  printf("\n");
  for (auto &timed : all) {
    timed->verify();
  }
  nearest.verify();
}


// What a matrix of data other than usual takes, as a multiple of usual data's: time, or under the interpreter of PTX instructions, full
// batches being smaller there.
void measureKinds(bool isCounted) {
  int64_t n = 1024;
  const int d = 128;
  Stopwatch watch;
  double usual = 0;
  auto measure = [&](const char *what, const Batch &q, const Batch &p, bool isUsual = false) {
    OnDevice onQ(q);
    OnDevice onP(p);
    Memory out(q.n * p.n * 8);
    Memory scratch(kullback_cuda_scratch_bytes(&onQ.batch, &onP.batch, q.n, p.n));
    double least = INFINITE;
    for (int round = 0; round < (isCounted ? 1 : 15); round++) {
      watch.start();
      RUN(kullback_cuda_pairwise(&onQ.batch, &onP.batch, 0, q.n, 0, p.n, 0, out.at, p.n, q.wide, 0, scratch.at, stream));
      least = std::min(least, watch.stop());
    }
    usual = isUsual ? least : usual;
    printf("| %s, %s | (%ld,%d) | %.0f | %.1f times usual data's |\n", what, q.wide ? "double" : "float", (long)q.n, q.d, least * 1e6,
           least / usual);
  };
  for (bool wide : {false, true}) {
    auto of = [&](int64_t count, double m, double spread, double s, double t) {
      return diagonal(count, d, KULLBACK_STD, wide, around(m, spread), logNormal(s, t));
    };
    auto copies = [&](const Batch &b) { return repeated(b, n); };
    Batch q = of(n, 0, 1, 0.5, 0.5);
    measure("usual", q, of(n, 0, 1, 0.5, 0.5), true);
    Batch collapsed = of(n, 0, 1e-3, 1, 1e-3);
    measure("collapsed", collapsed, collapsed);
    for (double jitter : {1e-2, 1e-5}) {
      Batch one = jittered(copies(of(1, 0, 1, 0.5, 0.5)), jitter, KULLBACK_STD, wide);
      measure(jitter > 1e-3 ? "near-duplicates to 1e-2" : "near-duplicates", one, one);
      measure(jitter > 1e-3 ? "the same, stated differently" : "near-duplicates, stated differently", one,
              jittered(one, jitter, KULLBACK_LOG_VARIANCE, wide));
    }
    Batch some = jittered(copies(of(128, 0, 1, 0.5, 0.5)), 1e-5, KULLBACK_STD, wide);
    measure("1 in 128 near-duplicates", some, some);
    measure("means at 1000", of(n, 1000, 1, 0.05, 0.1), of(n, 1000, 1, 0.05, 0.1));
    Batch equal = copies(of(1, 0, 1, 0.5, 0.5));
    measure("equal", equal, Batch(equal));
    measure("equal, stated differently", equal, jittered(equal, 0, KULLBACK_LOG_VARIANCE, wide));
    for (int64_t clusters : {2, 8}) {
      for (double jitter : {1e-2, 1e-5}) {
        Batch b = jittered(copies(of(clusters, 0, 1, 0.5, 0.5)), jitter, KULLBACK_STD, wide);
        char name[60];
        snprintf(name, sizeof name, "%d clusters to %.0e", (int)clusters, jitter);
        measure(name, b, b);
      }
    }
    Batch outliers = jittered(equal, 1e-5, KULLBACK_STD, wide);
    Batch far = of(n, 0, 5, 0.5, 1);
    for (int64_t i = 0; i < n; i += 50) {
      std::copy_n(far.mean.begin() + i * d, d, outliers.mean.begin() + i * d);
      std::copy_n(far.scale.begin() + i * d, d, outliers.scale.begin() + i * d);
    }
    measure("near-duplicates but 2 % of them", outliers, outliers);
    Batch but = jittered(equal, 1e-5, KULLBACK_STD, wide);
    for (int64_t i = 0; i < n; i++) but.mean[i * d] = rounded(3 * normal(), wide);
    measure("near-duplicates but in one dimension", but, but);
    measure("the same, stated differently", but, jittered(but, 0, KULLBACK_LOG_VARIANCE, wide));
  }
  n = isCounted ? 256 : 1024;
  for (bool wide : {false, true}) {
    Batch f = factors(n, 32, wide, 10, 0);
    measure("full, usual", f, factors(n, 32, wide, 10, 0), true);
    measure("full, identical", f, f);
    measure("full, near-duplicates to 1e-2", alike(f, n, 1e-2), alike(f, n, 1e-2));
    measure("full, near-duplicates", alike(f, n, 1e-5), alike(f, n, 1e-5));
  }
}
