// The functions of kullback_cuda.h, for a device and its emulation alike: arguments checked, batches laid out, kernels launched.
//
// Includes need
//
//     Device device()                  the calling thread's; all 0 where it does not answer
//     Launch launch(stream)
//     launch.reach<T>(memory, bytes)   the memory as kernels see it
//     launch(body)                     queues body.blocks() blocks
//     launch.status                    0, or the first error
#pragma once

#include "../include/kullback_cuda.h"
#include "full.h"
#include "reduce.h"
#include "refine.h"

namespace kullback {

constexpr int64_t SATURATED = std::numeric_limits<int64_t>::max();

inline int64_t product(int64_t a, int64_t b) { return a != 0 && b > SATURATED / a ? SATURATED : a * b; }

// Lays arrays out one after the other.
struct Arena {
  char *data;
  int64_t bytes = 0;

  template <class T>
  T *take(int64_t a, int64_t b = 1) {
    int64_t size = product(product(a, b), sizeof(T));
    T *at = (T *)(data + (fits() ? bytes : 0));
    bytes = size > SATURATED / 4 - bytes ? SATURATED / 4 : bytes + roundUp(size, 256);
    return at;
  }

  bool fits() const { return bytes < SATURATED / 4; }
};

inline bool isFull(const kullback_cuda_batch *b) { return b->kind >= KULLBACK_SCALE_TRIL; }

// Where the product is worth more than differences in float: devices with 64 multiply-adds in double a clock and multiprocessor, a
// half of those in float. Some models have few although chips of their compute capability have them.
inline bool isFastInDouble(const Device &d) { return d.minor == 0 && d.major >= 8 && d.major <= 10 && d.floatRate <= 4; }

// A device's name, and how it computes batches of float; as much as there is room for.
inline void describe(const char *name, const Device &d, char *to, int64_t capacity) {
  int64_t n = 0;
  for (const char *part : {name, isFastInDouble(d) ? " (products in double)" : " (differences in float)"}) {
    for (; *part != 0 && n + 1 < capacity; part++) to[n++] = *part;
  }
  to[n] = 0;
}

// Fewest Gaussians of a batch that may have a centre: fewer are soon computed again, and a launch more would take longer.
constexpr int64_t LEAST_CENTRED = 128;

inline Diagonal diagonal(const kullback_cuda_batch *b, Arena &arena) {
  Diagonal g = {};
  g.size = b->size;
  g.dimension = (int)b->dimension;
  g.kind = b->kind;
  g.wide = b->wide;
  g.product = isFastInDouble(device());
  g.padded = padded(b->size);
  if (b->wide) {
    g.mean = arena.take<double>(b->size, b->dimension);
    g.scale = arena.take<double>(b->size, b->dimension);
  } else {
    g.mean = arena.take<float>(b->size, b->dimension);
    g.scale = arena.take<float>(b->size, b->dimension);
  }
  g.moments = arena.take<Moments>(b->size);
  if (g.product) {
    g.depth = (int)roundUp(2 * b->dimension, PRODUCT_DEPTH);
    g.a = arena.take<double>(g.padded, g.depth);
    g.b = arena.take<double>(g.padded, g.depth);
    g.rows = arena.take<RowTerms>(g.padded);
    g.columns = arena.take<ColumnTerms>(g.padded);
    g.centre = b->size < LEAST_CENTRED ? nullptr : arena.take<Centre>(g.dimension);
    g.isCentred = arena.take<int>(1);
  } else if (!b->wide) {
    g.depth = (int)roundUp(b->dimension, DifferenceTiles::DEPTH);
    g.operands = arena.take<float>(3 * g.padded, g.depth);
  }
  return g;
}

inline Full full(const kullback_cuda_batch *b, Arena &arena) {
  Full g = {};
  g.size = b->size;
  g.dimension = (int)b->dimension;
  g.wide = b->wide;
  g.length = packedLength(b->dimension);
  g.k = (int)(g.length + b->dimension);
  g.padded = padded(b->size);
  g.depth = (int)roundUp(g.k, PRODUCT_DEPTH);
  g.mean = arena.take<double>(b->size, b->dimension);
  bool parts = b->kind == KULLBACK_SCALE_TRIL_PARTS;
  g.scaleTril = arena.take<double>((parts ? 2 : 1) * b->size, g.length);
  g.scaleTrilLow = parts && arena.fits() ? g.scaleTril + b->size * g.length : nullptr;
  g.rows = arena.take<double>(g.padded, g.k);
  g.columns = arena.take<double>(g.padded, g.depth);
  g.terms = arena.take<ColumnTerms>(g.padded);
  g.solved = arena.take<double>(b->size, b->dimension);
  g.triangle = arena.take<int>(g.k);
  g.centre = arena.take<double>(b->dimension);
  g.spreads = arena.take<double>(LANES + 1);
  g.moments = arena.take<FullMoments>(b->size);
  return g;
}

// Bytes of a batch; −1 if it is invalid.
inline int64_t bytesOf(const kullback_cuda_batch *b) {
  constexpr int64_t MOST_FULL = (1 << 15) - 1; // two to an int in `triangle`
  constexpr int64_t MOST_DIAGONAL = 1 << 29;
  if (b == nullptr || b->kind < KULLBACK_STD || b->kind > KULLBACK_SCALE_TRIL_PARTS || (b->wide != 0 && b->wide != 1) ||
      b->size < 1 || b->size > SATURATED / 256 || b->dimension < 1 ||
      b->dimension > (isFull(b) ? MOST_FULL : MOST_DIAGONAL)) {
    return -1;
  }
  Arena arena{nullptr};
  if (isFull(b)) {
    full(b, arena);
  } else {
    diagonal(b, arena);
  }
  return arena.fits() ? arena.bytes : -1;
}

inline bool isAligned(const void *memory) { return (uintptr_t)memory % 16 == 0; }

template <class T>
bool isArray(const T *memory) {
  return memory != nullptr && (uintptr_t)memory % sizeof(T) == 0;
}

inline bool isValid(const kullback_cuda_batch *b) {
  return bytesOf(b) > 0 && b->data != nullptr && isAligned(b->data);
}

inline int64_t elementBytes(int32_t wide) { return wide ? sizeof(double) : sizeof(float); }

inline bool isOutput(const void *out, int32_t wide) {
  return (wide == 0 || wide == 1) && out != nullptr && (uintptr_t)out % elementBytes(wide) == 0;
}

// out[i] by Gaussian.
template <class Launch>
Output vector(Launch &launch, void *out, int64_t size, int32_t wide) {
  return {launch.template reach<char>(out, size * elementBytes(wide)), 0, 0, 0, wide, 0};
}

// Whether two batches, each valid by itself, make pairs.
inline bool isPair(const kullback_cuda_batch *q, const kullback_cuda_batch *p, int32_t same) {
  return q->dimension == p->dimension && isFull(q) == isFull(p) &&
         (!same || (q->data == p->data && q->size == p->size && q->kind == p->kind && q->wide == p->wide));
}

template <class Launch>
Arena arena(Launch &launch, const kullback_cuda_batch *b) {
  return Arena{launch.template reach<char>(b->data, bytesOf(b))};
}

inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

// What pairwise works with besides the batches, for a region of so many rows and columns or fewer.
struct Workspace {
  double *solving = nullptr; // [solvers][WARPS][D][LANES], of full batches
  double *factors = nullptr; // [padded][D(D+1)/2], of full rows relative to p's centre
  ProductRows rows = {};     // [depth][padded], likewise
  int *counts;
  uint16_t *entries;
  int64_t solvers = 0, band;

  Workspace(const kullback_cuda_batch *q, int64_t rowCount, int64_t columnCount, Arena arena) : arena(arena) {
    band = rowCount;
    if (isFull(q)) {
      // Blocks of warps that solve full pairs one by one: enough for the largest devices, within 64 MiB.
      int64_t each = WARPS * LANES * q->dimension;
      int64_t most = least((64 << 20) / (each * (int64_t)sizeof(double)), 528);
      solvers = least(ceilDiv(least(product(rowCount, columnCount), SATURATED / 2), WARPS), most < 1 ? 1 : most);
      solving = this->arena.take<double>(solvers, each);
    }
    if (isFull(q) || isFastInDouble(device())) {
      // Rows of the product, and the factors that they may be made of, go in bands within 512 MiB, of diagonal batches 64 MiB, or of
      // one tile.
      int64_t length = isFull(q) ? packedLength(q->dimension) : 0;
      int64_t depth = roundUp(isFull(q) ? length + q->dimension : 2 * q->dimension, PRODUCT_DEPTH);
      int64_t most = (isFull(q) ? 512 : 64) << 20;
      int64_t fit = most / ((depth + length) * (int64_t)sizeof(double)) / LARGEST_TILE * LARGEST_TILE;
      band = least(rowCount, fit < LARGEST_TILE ? LARGEST_TILE : fit);
      rows.padded = padded(band + ALIGN);
      rows.values = this->arena.take<double>(rows.padded, depth);
      factors = isFull(q) ? this->arena.take<double>(rows.padded, length) : nullptr;
      rows.terms = this->arena.take<RowTerms>(rows.padded);
    }
    // Smaller tiles are more, but no more entries.
    int64_t tiles = product(ceilDiv(rowCount + ALIGN, LARGEST_TILE), ceilDiv(columnCount + ALIGN, LARGEST_TILE));
    constexpr int64_t AREA = LARGEST_TILE * LARGEST_TILE;
    counts = this->arena.take<int>(tiles, AREA / (SMALLEST_TILE * SMALLEST_TILE));
    entries = this->arena.take<uint16_t>(tiles, Flags::mostOf(AREA));
  }

  int64_t bytes() const { return arena.fits() ? arena.bytes : -1; }

private:
  Arena arena;
};

// A call's region, and what its kernels share.
template <class Launch>
struct Call {
  Launch &launch;
  Region region;
  Output out;
  int same;
  Workspace work;
  Device on;

  Flags flags(const Tiling &t) const { return {work.counts, work.entries, Flags::mostOf(t.rows * t.columns)}; }

  // ---- The product ----

  // How long a multiprocessor is busy with its tiles of that size, in entries: small ones load more for what they compute.
  template <int M, int N>
  double cost() const {
    Tiling t = tiling<M, N>(region);
    double area = t.rows * t.columns;
    return (double)ceilDiv(t.count(), on.multiprocessors) * (area + 6.0 * (t.rows + t.columns));
  }

  template <int M, int N>
  static Tiling tiling(const Region &region) {
    return {region, FragmentMap<M, N>::ROWS, FragmentMap<M, N>::COLUMNS};
  }

  // Queues the product with the best tile, and what computes again the entries that it flags.
  template <class Pairs>
  void multiply(
      const ChosenRows &q, const ProductColumns &p, int depth, const ProductBound &bound, bool wide, const Pairs &pairs) {
    double small = cost<1, 1>();
    double medium = cost<2, 2>();
    if (wide) {
      if (small < cost<2, 4>()) {
        tiles<1, 1, true>(q, p, depth, bound, pairs);
      } else {
        tiles<2, 4, true>(q, p, depth, bound, pairs);
      }
    } else if (small < medium && small < cost<4, 4>()) {
      tiles<1, 1, false>(q, p, depth, bound, pairs);
    } else if (medium < cost<4, 4>() || !isFastInDouble(on)) { // others have less than its 106 KiB of shared memory
      tiles<2, 2, false>(q, p, depth, bound, pairs);
    } else {
      tiles<4, 4, false>(q, p, depth, bound, pairs);
    }
  }

  template <int M, int N, bool CHUNKED, class Pairs>
  void tiles(const ChosenRows &q, const ProductColumns &p, int depth, const ProductBound &bound, const Pairs &pairs) {
    Tiling t = tiling<M, N>(region);
    launch(Product<M, N, CHUNKED>{q, p, depth, bound, same, t, out, flags(t)});
    refine(t, pairs);
  }

  // ---- Differences in float ----

  template <class Pairs>
  void subtract(const Diagonal &q, const Diagonal &p, const Pairs &pairs) {
    Tiling t = {region, DifferenceTiles::TILE, DifferenceTiles::TILE};
    launch(DifferenceTiles{q, p, FLOAT_TOLERANCE - unit32(), same, t, out, flags(t)});
    refine(t, pairs);
  }

  // ---- Once more ----

  template <class Pairs>
  void refine(const Tiling &t, const Pairs &pairs) {
    Refine<Pairs> again{pairs, t, out, flags(t), 0};
    again.launched = least(t.count() * again.squares(), most(pairs));
    launch(again);
  }

  // Blocks that refine; they stride over the tiles.
  template <class Pairs>
  int64_t most(const Pairs &) const {
    return 2 * on.multiprocessors;
  }

  int64_t most(const FullPairs &) const { return least(2 * on.multiprocessors, work.solvers); }
};

// Runs f(rows), which makes and uses rows of the product, for one band of them after the other.
template <class C, class F>
void inBands(C &call, int64_t band, F f) {
  Region all = call.region;
  for (int64_t row = all.row0; row < all.rowEnd; row += band) {
    call.region.row0 = row;
    call.region.rowEnd = least(row + band, all.rowEnd);
    ProductRows rows = call.work.rows;
    rows.first = row / ALIGN * ALIGN;
    f(rows);
  }
}

template <class Pairs, class C>
void diagonalRegion(C &call, const Diagonal &q, const Diagonal &p, const Pairs &pairs) {
  bool wide = q.wide || p.wide;
  if (q.product) {
    ProductBound bound = {upper(productUnit(q.dimension, wide)), upper(productShare(q.dimension, wide)),
                          (float)(wide ? DOUBLE_TOLERANCE : FLOAT_TOLERANCE)};
    ProductRows own = {q.a, q.rows, q.padded, 0};
    bool mayDiffer = !call.same && (q.centre != nullptr || p.centre != nullptr);
    inBands(call, mayDiffer ? call.work.band : call.region.rows(), [&](const ProductRows &rows) {
      ChosenRows chosen = {own, rows, {}};
      if (mayDiffer) {
        call.launch(PrepareDiagonal{q, p.centre, rows, p.isCentred});
        chosen = {own, rows, {q.isCentred, p.isCentred}};
      }
      call.multiply(chosen, {p.b, p.columns, p.padded}, q.depth, bound, wide, pairs);
    });
  } else if (wide) {
    Tiling t = {call.region, Refine<Pairs>::SIDE, Refine<Pairs>::SIDE};
    call.launch(FlagAll{t, call.out, call.flags(t), call.same});
    call.refine(t, pairs);
  } else {
    call.subtract(q, p, pairs);
  }
}

template <class C>
void fullRegion(C &call, const Full &q, const Full &p) {
  bool wide = q.wide || p.wide;
  ProductBound bound = {upper(2 * PRODUCT_UNIT), 0, (float)(wide ? 0 : FULL_FLOAT_TOLERANCE)};
  inBands(call, call.work.band, [&](const ProductRows &rows) {
    int64_t end = call.region.rowEnd;
    int64_t count = roundUp(end - rows.first, LARGEST_TILE); // what tiles read
    call.launch(FullRows{q, p, rows, count});
    call.launch(NearRows{q, p, rows, call.work.factors, end, count});
    call.launch(SquareFull{p, SquareFull::NEAR_ROWS, call.work.factors, rows.values, end - rows.first, count, rows.padded});
    call.multiply({rows, {}, {}}, {p.columns, p.terms, p.padded}, p.depth, bound, wide, FullPairs{q, p, call.work.solving, call.same});
  });
}

// ---- Reductions ----

inline bool isStrip(const double *matrix, int64_t rows, int64_t columns, int64_t stride, int64_t width) {
  return isArray(matrix) && rows >= 1 && columns >= 1 && columns <= std::numeric_limits<int32_t>::max() && stride >= columns &&
         product(rows, stride) <= SATURATED / 16 && width >= 1;
}

template <class Launch>
Strip strip(Launch &launch, const double *matrix, int64_t rows, int64_t columns, int64_t stride, int64_t width) {
  width = least(width, columns);
  return {launch.template reach<double>(matrix, ((rows - 1) * stride + columns) * sizeof(double)), rows, columns, stride, width,
          ceilDiv(columns, width)};
}

} // namespace kullback

extern "C" {

int64_t kullback_cuda_batch_bytes(const kullback_cuda_batch *b) { return kullback::bytesOf(b); }

int64_t kullback_cuda_scale_offset(const kullback_cuda_batch *b) {
  using namespace kullback;
  if (bytesOf(b) < 0) {
    return -1;
  }
  return roundUp(b->size * b->dimension * (b->wide || isFull(b) ? sizeof(double) : sizeof(float)), 256);
}

int32_t kullback_cuda_prepare(const kullback_cuda_batch *b, void *stream) {
  using namespace kullback;
  if (!isValid(b)) {
    return KULLBACK_CUDA_INVALID;
  }
  Launch launch(stream);
  Arena memory = arena(launch, b);
  if (isFull(b)) {
    Full g = full(b, memory);
    launch(CentreFull{g});
    launch(SpreadFull{g});
    launch(InvertFull{g});
    launch(NearFull{g});
    launch(SquareFull{g, SquareFull::COLUMNS, g.inverse(0), g.columns, g.size, g.padded, g.padded});
    launch(SquareFull{g, SquareFull::ROWS, g.scaleTril, g.rows, g.size, g.padded, g.padded});
    launch(CompleteFull{g});
    launch(FinishFull{g});
  } else {
    Diagonal g = diagonal(b, memory);
    if (g.centre != nullptr) {
      launch(CentreDiagonal{g});
    }
    launch(PrepareDiagonal{g, g.centre, {g.a, g.rows, g.padded, 0}, nullptr});
  }
  return launch.status;
}

int64_t kullback_cuda_scratch_bytes(
    const kullback_cuda_batch *q, const kullback_cuda_batch *p, int64_t rows, int64_t columns) {
  using namespace kullback;
  if (bytesOf(q) < 0 || bytesOf(p) < 0 || !isPair(q, p, 0) || rows < 1 || columns < 1) {
    return -1;
  }
  return Workspace(q, least(rows, q->size), least(columns, p->size), Arena{nullptr}).bytes();
}

int32_t kullback_cuda_pairwise(
    const kullback_cuda_batch *q, const kullback_cuda_batch *p, int64_t row0, int64_t rows, int64_t column0, int64_t columns,
    int32_t same, void *out, int64_t stride, int32_t out_wide, int32_t transposed, void *scratch, void *stream) {
  using namespace kullback;
  int64_t lines = transposed ? columns : rows;
  int64_t length = transposed ? rows : columns;
  if (!isValid(q) || !isValid(p) || !isPair(q, p, same) || row0 < 0 || rows < 1 || row0 > q->size - rows || column0 < 0 ||
      columns < 1 || column0 > p->size - columns || !isOutput(out, out_wide) || stride < length ||
      product(lines, stride) > SATURATED / 8 || scratch == nullptr || !isAligned(scratch)) {
    return KULLBACK_CUDA_INVALID;
  }
  Launch launch(stream);
  Region region{row0, row0 + rows, column0, column0 + columns};
  int64_t bytes = ((lines - 1) * stride + length) * elementBytes(out_wide);
  Output output{launch.reach<char>(out, bytes), stride, row0, column0, out_wide, transposed};
  Arena memoryQ = arena(launch, q);
  Arena memoryP = arena(launch, p);
  Workspace work(q, rows, columns, {launch.reach<char>(scratch, kullback_cuda_scratch_bytes(q, p, rows, columns))});
  Call<Launch> call{launch, region, output, same, work, device()};
  if (isFull(q)) {
    fullRegion(call, full(q, memoryQ), full(p, memoryP));
    return launch.status;
  }
  Diagonal diagonalQ = diagonal(q, memoryQ);
  Diagonal diagonalP = diagonal(p, memoryP);
  if (q->wide || p->wide) {
    diagonalRegion(call, diagonalQ, diagonalP, DiagonalPairs<Diagonal, NearForm<double>>(diagonalQ, diagonalP, true, same));
  } else {
    diagonalRegion(call, diagonalQ, diagonalP, DiagonalPairs<Diagonal, NearForm<float>>(diagonalQ, diagonalP, true, same));
  }
  return launch.status;
}

int32_t kullback_cuda_aligned(
    const kullback_cuda_batch *q, const kullback_cuda_batch *p, int32_t same, void *out, int32_t out_wide, void *scratch,
    void *stream) {
  using namespace kullback;
  if (!isValid(q) || !isValid(p) || !isPair(q, p, same) || q->size != p->size || !isOutput(out, out_wide) ||
      (isFull(q) && (scratch == nullptr || !isAligned(scratch)))) {
    return KULLBACK_CUDA_INVALID;
  }
  Launch launch(stream);
  Output output = vector(launch, out, q->size, out_wide);
  Arena memoryQ = arena(launch, q);
  Arena memoryP = arena(launch, p);
  if (isFull(q)) {
    Workspace work(q, q->size, 1, {launch.reach<char>(scratch, kullback_cuda_scratch_bytes(q, p, q->size, 1))});
    FullPairs pairs{full(q, memoryQ), full(p, memoryP), work.solving, same};
    launch(Aligned<FullPairs>{pairs, output, q->size, least(ceilDiv(q->size, WARPS), work.solvers)});
  } else {
    DiagonalPairs<Diagonal, NearForm<float>> pairs(diagonal(q, memoryQ), diagonal(p, memoryP), false, same);
    launch(Aligned<decltype(pairs)>{pairs, output, q->size, ceilDiv(q->size, pairs.pairsOfBlock())});
  }
  return launch.status;
}

int32_t kullback_cuda_standard(const kullback_cuda_batch *q, void *out, int32_t out_wide, void *stream) {
  using namespace kullback;
  if (!isValid(q) || !isOutput(out, out_wide)) {
    return KULLBACK_CUDA_INVALID;
  }
  Launch launch(stream);
  Output output = vector(launch, out, q->size, out_wide);
  Arena memory = arena(launch, q);
  if (isFull(q)) {
    launch(StandardFull{full(q, memory), output});
  } else {
    Diagonal g = diagonal(q, memory);
    DiagonalPairs<UnitNormal, NearForm<float>> pairs(g, UnitNormal{g.kind, g.dimension}, false, 0);
    launch(Aligned<decltype(pairs)>{pairs, output, q->size, ceilDiv(q->size, pairs.pairsOfBlock())});
  }
  return launch.status;
}

int32_t kullback_cuda_select(
    const double *matrix, int64_t rows, int64_t columns, int64_t stride, int64_t width, int64_t skip, int64_t k, double slack,
    const double *limits, int64_t capacity, int32_t *counts, int32_t *found_columns, double *found_values, void *stream) {
  using namespace kullback;
  static_assert(KULLBACK_MOST_SELECTED == Select::MOST, "what a block's list holds");
  if (!isStrip(matrix, rows, columns, stride, width) || k < 0 || !(slack >= 1 && slack < INFINITE) || !isArray(limits) ||
      capacity < 1 || capacity > Select::MOST || !isArray(counts) || !isArray(found_columns) || !isArray(found_values)) {
    return KULLBACK_CUDA_INVALID;
  }
  Launch launch(stream);
  Strip from = strip(launch, matrix, rows, columns, stride, width);
  int64_t pieces = from.blocks();
  if (product(pieces, capacity) > SATURATED / 8) {
    return KULLBACK_CUDA_INVALID;
  }
  int64_t within = skip < -rows ? -rows : least(skip, columns); // so that adding a row cannot overflow
  launch(Select{from, within, k, slack, launch.reach<double>(limits, rows * sizeof(double)), (int)capacity,
                launch.reach<int>(counts, pieces * sizeof(int)), launch.reach<int>(found_columns, pieces * capacity * sizeof(int)),
                launch.reach<double>(found_values, pieces * capacity * sizeof(double))});
  return launch.status;
}

int32_t kullback_cuda_fold(
    int32_t kind, const double *matrix, int64_t rows, int64_t columns, int64_t stride, int64_t width, const double *log_weights,
    double *out, void *stream) {
  using namespace kullback;
  bool isWeighted = kind == KULLBACK_LOG_SUM_EXP && log_weights != nullptr;
  if (kind < KULLBACK_MIN || kind > KULLBACK_LOG_SUM_EXP || !isStrip(matrix, rows, columns, stride, width) ||
      (isWeighted && !isArray(log_weights)) || !isArray(out)) {
    return KULLBACK_CUDA_INVALID;
  }
  Launch launch(stream);
  Strip from = strip(launch, matrix, rows, columns, stride, width);
  const double *weights = isWeighted ? launch.reach<double>(log_weights, columns * sizeof(double)) : nullptr;
  launch(Fold{from, kind != KULLBACK_SUM, kind != KULLBACK_MIN, weights,
              launch.reach<double>(out, from.blocks() * 2 * sizeof(double))});
  return launch.status;
}

int32_t kullback_cuda_download(
    void *to, int64_t to_stride, const void *from, int64_t from_stride, int64_t width, int64_t height, void *stream) {
  using namespace kullback;
  if (to == nullptr || from == nullptr || width < 1 || height < 1 || to_stride < width || from_stride < width ||
      product(height, to_stride) == SATURATED || product(height, from_stride) == SATURATED) {
    return KULLBACK_CUDA_INVALID;
  }
  // The wait that yields the processor is one for an event made so. A new one for each call: that costs a thousandth of a copy's time,
  // where one kept by a thread would have to follow it from device to device, and outlive it or not.
  cudaStream_t queue = (cudaStream_t)stream;
  cudaEvent_t copied;
  int32_t status = cudaEventCreateWithFlags(&copied, cudaEventBlockingSync | cudaEventDisableTiming);
  if (status == 0) {
    constexpr int64_t MOST_PITCH = 0x7fffffff; // cudaDevAttrMaxPitch
    if (height == 1 || (to_stride == width && from_stride == width)) {
      status = cudaMemcpyAsync(to, from, width * height, cudaMemcpyDeviceToHost, queue);
    } else if (to_stride <= MOST_PITCH && from_stride <= MOST_PITCH) {
      status = cudaMemcpy2DAsync(to, to_stride, from, from_stride, width, height, cudaMemcpyDeviceToHost, queue);
    } else {
      for (int64_t n = 0; n < height && status == 0; n++) {
        status = cudaMemcpyAsync(
            (char *)to + n * to_stride, (const char *)from + n * from_stride, width, cudaMemcpyDeviceToHost, queue);
      }
    }
    if (status == 0) {
      status = cudaEventRecord(copied, queue);
    }
    if (status == 0) {
      status = cudaEventSynchronize(copied);
    }
    if (status != 0) {
      cudaStreamSynchronize(queue); // the memory must not be in use any more
    }
    cudaEventDestroy(copied);
  }
  if (status != 0) {
    cudaGetLastError();
  }
  return status;
}

} // extern "C"
