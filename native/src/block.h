// What all kernels are written in.
//
// A kernel is a plain struct of arguments with `template <class Block> void operator()(Block &) const`, the work of one block of
// THREADS threads, which a device and its emulation run alike. If it uses shared memory, `Shared` is what it has there. A Block has
//
//     index                    of the block
//     each(f), lanes(f)        f(t) for every thread t, with and without a barrier after it
//     Own<T> x(block); x[t]    a thread's own variable
//     shared<T>()              the block's shared memory, once in a kernel
//     reduce(own)              leaves the sum (operator+) over each warp with all its threads, in a fixed order
//     sumInOrder(own, n, w)    adds `part` of the first n of w threads side by side to `total` of all w, one after the other
//     isOpen(f, w)             whether f(t) of any thread of a warp, w of which side by side say the same; in the emulation of the block
//     add(counter, n)          the counter before n was added atomically
//     copy(t, to, from), commit(t), wait<k>(t)
//                              asynchronous copies of 16 bytes to shared memory, in groups; wait until at most k groups are under way
#pragma once

#include <atomic>

#include "numerics.h"

namespace kullback {

constexpr int THREADS = 256;
constexpr int WARPS = THREADS / LANES;

// Batches are padded to whole tiles at any first row that is a multiple of ALIGN.
constexpr int64_t ALIGN = 4;
constexpr int64_t PADDING = 128;

KB_FN constexpr int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

KB_FN constexpr int64_t roundUp(int64_t a, int64_t b) { return ceilDiv(a, b) * b; }

KB_FN constexpr int64_t padded(int64_t size) { return roundUp(size, ALIGN) + PADDING; }

// W values that are loaded and stored together.
template <class T, int W>
struct alignas(sizeof(T) * W < 16 ? sizeof(T) * W : 16) Vec {
  T x[W];
};

template <class T>
struct Sum {
  T x = 0;

  KB_FN Sum operator+(Sum o) const { return {x + o.x}; }
};

// What is computed on.
struct Device {
  int major, minor; // compute capability
  int multiprocessors;
  int floatRate; // operations in float for one in double
};

// Devices by their ordinals, for threads at once. Those beyond the first 64 are never in it.
class DeviceSet {
public:
  bool has(int ordinal) const { return (bits.load(std::memory_order_acquire) & bit(ordinal)) != 0; }
  void add(int ordinal) { bits.fetch_or(bit(ordinal), std::memory_order_release); }
  void remove(int ordinal) { bits.fetch_and(~bit(ordinal), std::memory_order_relaxed); }

private:
  static uint64_t bit(int ordinal) { return ordinal >= 0 && ordinal < 64 ? (uint64_t)1 << ordinal : 0; }

  std::atomic<uint64_t> bits{0};
};

// Bytes of shared memory of a kernel.
template <class Body>
constexpr int64_t sharedBytes(const typename Body::Shared *) {
  return sizeof(typename Body::Shared);
}

template <class Body>
constexpr int64_t sharedBytes(...) {
  return 0;
}

} // namespace kullback
