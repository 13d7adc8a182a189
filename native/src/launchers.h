// The functions of kullback_cuda.h, for a device and its emulation alike: arguments checked, batches laid out, kernels launched.
//
// Includes need a type Launch with
//
//     Launch launch(stream)
//     launch.reach<T>(memory, bytes)   the memory as kernels see it
//     launch(body)                     queues body.blocks() blocks
//     launch.status                    0, or the first error
#pragma once

#include "../include/kullback_cuda.h"
#include "kernels.h"

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

inline Diagonal diagonal(const kullback_cuda_batch *b, Arena &arena) {
  Diagonal g;
  g.size = b->size;
  g.dimension = (int)b->dimension;
  g.kind = b->kind;
  g.wide = b->wide;
  g.padded = roundUp(b->size, ALIGN) + PADDING;
  g.depth = (int)roundUp(b->dimension, DiagonalCore<float, 4>::DEPTH);
  if (b->wide) {
    g.mean = arena.take<double>(b->size, b->dimension);
    g.scale = arena.take<double>(b->size, b->dimension);
    g.operands = arena.take<double>(3 * g.padded, g.depth);
  } else {
    g.mean = arena.take<float>(b->size, b->dimension);
    g.scale = arena.take<float>(b->size, b->dimension);
    g.operands = arena.take<float>(3 * g.padded, g.depth);
  }
  g.moments = arena.take<Moments>(b->size);
  return g;
}

inline Full full(const kullback_cuda_batch *b, Arena &arena) {
  Full g;
  g.size = b->size;
  g.dimension = (int)b->dimension;
  g.wide = b->wide;
  g.length = packedLength(b->dimension);
  g.k = (int)(g.length + b->dimension);
  g.padded = roundUp(b->size, ALIGN) + PADDING;
  g.depth = (int)roundUp(g.k, FullCore::DEPTH);
  g.mean = arena.take<double>(b->size, b->dimension);
  bool parts = b->kind == KULLBACK_SCALE_TRIL_PARTS;
  g.scaleTril = arena.take<double>((parts ? 2 : 1) * b->size, g.length);
  g.scaleTrilLow = parts && arena.fits() ? g.scaleTril + b->size * g.length : nullptr;
  g.rows = arena.take<double>(g.padded, g.k);
  g.columns = arena.take<double>(g.padded, g.depth);
  g.solved = arena.take<double>(b->size, b->dimension);
  g.triangle = arena.take<int>(g.k);
  g.centre = arena.take<double>(b->dimension);
  g.moments = arena.take<FullMoments>(b->size);
  return g;
}

// Bytes of a batch; −1 if it is invalid.
inline int64_t bytesOf(const kullback_cuda_batch *b) {
  constexpr int64_t MOST_FULL = (1 << 15) - 1; // two to an int in `triangle`
  constexpr int64_t MOST_DIAGONAL = 1 << 30;
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

inline bool isValid(const kullback_cuda_batch *b) {
  return bytesOf(b) > 0 && b->data != nullptr && isAligned(b->data);
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

// Blocks of warps that solve full pairs one by one: enough for the largest devices, within 64 MiB of scratch.
inline int64_t solvers(const kullback_cuda_batch *b) {
  int64_t most = (64 << 20) / (WARPS * LANES * (int64_t)sizeof(double) * b->dimension);
  return most < 1 ? 1 : most < 528 ? most : 528;
}

inline int64_t solverBytes(const kullback_cuda_batch *b, int64_t blocks) {
  return blocks * WARPS * LANES * (int64_t)sizeof(double) * b->dimension;
}

inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

template <class P>
DiagonalPair<P> diagonalPair(const Diagonal &q, const P &p, int same) {
  double unit = unit64(q.dimension);
  return {q, p, unit, (q.wide || p.wide ? DOUBLE_TOLERANCE : REFINED_TOLERANCE) - unit, same};
}

template <class Launch, class Pairs>
void refine(Launch &launch, const Pairs &pairs, const Region &region, const Output &out, int64_t mostBlocks) {
  int64_t entries = region.rows() * region.columns();
  int section = Refine<Pairs>::sectionOf(entries);
  launch(Refine<Pairs>{pairs, region, out, section, least(ceilDiv(entries, section), mostBlocks)});
}

template <class T, int MICRO, class Launch>
void diagonalTiles(
    Launch &launch, const Diagonal &q, const Diagonal &p, const Region &region, const Output &out, int same) {
  using Core = DiagonalCore<T, MICRO>;
  double unit = Core::WIDE ? unit64(q.dimension) : unit32();
  double margin = (Core::WIDE ? DOUBLE_TOLERANCE : FLOAT_TOLERANCE) - unit;
  launch(PairTiles<Core, Store>{Core{q, p, unit, margin}, region, Store{out}, same});
}

// A large output keeps the device busy with tiles of 128, which do more for what they load.
inline bool isLarge(const Region &r) { return ceilDiv(r.rows(), 128) >= ceilDiv(256, ceilDiv(r.columns(), 128)); }

constexpr int64_t MOST_SECTIONS = 1 << 16; // blocks that refine; they stride over more sections

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
    launch(InvertFull{g});
    launch(SquareColumns{g});
    launch(SquareRows{g});
    launch(FinishFull{g});
  } else {
    Diagonal g = diagonal(b, memory);
    if (g.wide) {
      launch(TransposeDiagonal<double>{g});
    } else {
      launch(TransposeDiagonal<float>{g});
    }
    launch(MeasureDiagonal{g});
  }
  return launch.status;
}

int64_t kullback_cuda_scratch_bytes(
    const kullback_cuda_batch *q, const kullback_cuda_batch *p, int64_t rows, int64_t columns) {
  using namespace kullback;
  if (bytesOf(q) < 0 || bytesOf(p) < 0 || !isPair(q, p, 0) || rows < 1 || columns < 1) {
    return -1;
  }
  int64_t pairs = least(product(rows, columns), SATURATED / 2);
  return isFull(q) ? solverBytes(q, least(ceilDiv(pairs, WARPS), solvers(q))) : 0;
}

int32_t kullback_cuda_pairwise(
    const kullback_cuda_batch *q,
    const kullback_cuda_batch *p,
    int64_t row0,
    int64_t rows,
    int64_t column0,
    int64_t columns,
    int32_t same,
    void *out,
    int64_t stride,
    int32_t out_wide,
    void *scratch,
    void *stream) {
  using namespace kullback;
  int64_t element = out_wide ? sizeof(double) : sizeof(float);
  if (!isValid(q) || !isValid(p) || !isPair(q, p, same) || row0 < 0 || rows < 1 || row0 > q->size - rows || column0 < 0 ||
      columns < 1 || column0 > p->size - columns || out == nullptr || (uintptr_t)out % element != 0 || stride < columns ||
      (out_wide != 0 && out_wide != 1) || product(rows, stride) > SATURATED / 8 ||
      (isFull(q) && (scratch == nullptr || !isAligned(scratch)))) {
    return KULLBACK_CUDA_INVALID;
  }
  Launch launch(stream);
  Region region{row0, row0 + rows, column0, column0 + columns};
  Output output{launch.reach<char>(out, ((rows - 1) * stride + columns) * element), stride, row0, column0, out_wide};
  Arena memoryQ = arena(launch, q);
  Arena memoryP = arena(launch, p);
  if (isFull(q)) {
    Full fullQ = full(q, memoryQ);
    Full fullP = full(p, memoryP);
    int64_t bytes = kullback_cuda_scratch_bytes(q, p, rows, columns);
    launch(PairTiles<FullCore, Store>{FullCore{fullQ, fullP, q->wide || p->wide}, region, Store{output}, same});
    FullPair pairs{fullQ, fullP, launch.reach<double>(scratch, bytes), same};
    refine(launch, pairs, region, output, least(ceilDiv(rows * columns, WARPS), solvers(q)));
    return launch.status;
  }
  Diagonal diagonalQ = diagonal(q, memoryQ);
  Diagonal diagonalP = diagonal(p, memoryP);
  if (q->wide || p->wide) {
    diagonalTiles<double, 4>(launch, diagonalQ, diagonalP, region, output, same);
  } else if (isLarge(region)) {
    diagonalTiles<float, 8>(launch, diagonalQ, diagonalP, region, output, same);
  } else {
    diagonalTiles<float, 4>(launch, diagonalQ, diagonalP, region, output, same);
  }
  refine(launch, diagonalPair(diagonalQ, diagonalP, same), region, output, MOST_SECTIONS);
  return launch.status;
}

int32_t kullback_cuda_aligned(
    const kullback_cuda_batch *q,
    const kullback_cuda_batch *p,
    int32_t same,
    void *out,
    int32_t out_wide,
    void *scratch,
    void *stream) {
  using namespace kullback;
  int64_t element = out_wide ? sizeof(double) : sizeof(float);
  if (!isValid(q) || !isValid(p) || !isPair(q, p, same) || q->size != p->size || out == nullptr ||
      (uintptr_t)out % element != 0 || (out_wide != 0 && out_wide != 1) ||
      (isFull(q) && (scratch == nullptr || !isAligned(scratch)))) {
    return KULLBACK_CUDA_INVALID;
  }
  Launch launch(stream);
  Output output{launch.reach<char>(out, q->size * element), 0, 0, 0, out_wide};
  Arena memoryQ = arena(launch, q);
  Arena memoryP = arena(launch, p);
  int64_t blocks = ceilDiv(q->size, WARPS);
  if (isFull(q)) {
    int64_t bytes = kullback_cuda_scratch_bytes(q, p, q->size, 1);
    FullPair pairs{full(q, memoryQ), full(p, memoryP), launch.reach<double>(scratch, bytes), same};
    launch(Aligned<FullPair>{pairs, output, q->size, least(blocks, solvers(q))});
  } else {
    DiagonalPair<Diagonal> pairs = diagonalPair(diagonal(q, memoryQ), diagonal(p, memoryP), same);
    launch(Aligned<DiagonalPair<Diagonal>>{pairs, output, q->size, blocks});
  }
  return launch.status;
}

int32_t kullback_cuda_standard(const kullback_cuda_batch *q, void *out, int32_t out_wide, void *stream) {
  using namespace kullback;
  int64_t element = out_wide ? sizeof(double) : sizeof(float);
  if (!isValid(q) || out == nullptr || (uintptr_t)out % element != 0 || (out_wide != 0 && out_wide != 1)) {
    return KULLBACK_CUDA_INVALID;
  }
  Launch launch(stream);
  Output output{launch.reach<char>(out, q->size * element), 0, 0, 0, out_wide};
  Arena memory = arena(launch, q);
  if (isFull(q)) {
    launch(StandardFull{full(q, memory), output});
  } else {
    Diagonal g = diagonal(q, memory);
    DiagonalPair<UnitNormal> pairs = diagonalPair(g, UnitNormal{g.kind, g.dimension}, 0);
    launch(Aligned<DiagonalPair<UnitNormal>>{pairs, output, q->size, ceilDiv(q->size, WARPS)});
  }
  return launch.status;
}

} // extern "C"
