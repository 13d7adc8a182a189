// Runs kernels in PTX as a device might, and tells what they must not do: warps of 32 lanes, each at an instruction of its own, blocks one
// after the other. README.md of native/ says what is found.
#pragma once

#include <algorithm>
#include <climits>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace ptx {

constexpr int LANES = 32;
using Lanes = uint32_t; // a bit each
constexpr Lanes ALL = 0xffffffff;

inline long setting(const char *name, long otherwise) {
  const char *text = getenv(name);
  return text == nullptr || *text == 0 ? otherwise : strtol(text, nullptr, 0);
}

// 0: blocks, warps and lanes in their order. Otherwise in an order at random.
inline long seed() {
  static const long value = setting("PTX_SEED", 0);
  return value;
}

inline unsigned below(unsigned n) {
  static std::mt19937_64 &generator = *new std::mt19937_64(seed());
  return (unsigned)(generator() % n);
}

// ---- Programs ----

struct Warp;
struct Instruction;
using Run = void (*)(Warp &, const Instruction &, Lanes);

enum Kind : uint8_t { PLAIN, BRANCH, BARRIER, TOGETHER, EXIT }; // TOGETHER: needs all lanes of a mask

enum Space : uint8_t { GLOBAL, SHARED, PARAMETER };

// Operands are numbers of registers, of which constants are some, or of predicates.
struct Instruction {
  Run run = nullptr;
  Kind kind = PLAIN;
  Space space = GLOBAL;
  bool guarded = false, guardNegated = false, negated = false;
  uint8_t parts = 1; // elements of a memory access
  bool isSigned = false;
  int guard = -1, target = -1, mode = 0, line = 0, file = 0, sourceLine = 0;
  int64_t offset = 0, otherOffset = 0;
  int o[16];

  Instruction() { std::fill(o, o + 16, -1); }
};

using Register = uint64_t[LANES];

struct Kernel {
  std::string name;
  std::vector<Instruction> code;
  std::vector<std::unique_ptr<Register[]>> files; // registers of a block's warps, which launch after launch uses
  std::vector<int> parameterOffset, parameterSize;
  int parameterBytes = 0, registers = 0, predicates = 0;
  int shift = 3; // of shared memory: a cell has 2^shift bytes
  std::map<int, uint64_t> constants; // by register
  uint64_t launches = 0, instructions = 0;
};

// Registers that are there from the start.
enum Special { ZERO, TID, CTAID, NTID, SPECIALS };

// ---- Memory ----

// Who wrote and read some bytes last, and when: epochs are told apart by barriers, blocks and launches.
struct Cell {
  uint32_t written = 0, read = 0;
  uint16_t writer = 0, reader = 0;
  bool atomic = false, pending = false; // pending: a copy under way
};

constexpr uint16_t SEVERAL = 0xffff;

struct Allocation {
  std::vector<char> bytes;
  std::vector<Cell> cells;
  int shift = 3; // a cell has 2^shift bytes, as many as the least that was read or written at once

  explicit Allocation(size_t size) : bytes(size, (char)0xff), cells(size / 8 + 1) {}

  uintptr_t at() const { return (uintptr_t)bytes.data(); }

  void halveCells() {
    shift--;
    std::vector<Cell> halves((bytes.size() >> shift) + 1);
    for (size_t n = 0; n < halves.size(); n++) halves[n] = cells[n / 2];
    cells = std::move(halves);
  }
};

constexpr uint32_t OF_HOST = 1; // epoch

struct State {
  std::map<uintptr_t, std::unique_ptr<Allocation>> allocations;
  Allocation *last = nullptr;
  uint32_t now = OF_HOST, launch = OF_HOST, block = OF_HOST;
  std::vector<std::string> files;
  std::map<std::string, uint64_t> findings; // how often

  Allocation *find(uintptr_t at, size_t size) {
    if (last == nullptr || at < last->at() || at >= last->at() + last->bytes.size()) {
      auto next = allocations.upper_bound(at);
      last = next == allocations.begin() ? nullptr : std::prev(next)->second.get();
    }
    return last != nullptr && at + size <= last->at() + last->bytes.size() ? last : nullptr;
  }
};

inline State &state() {
  static State &s = *new State;
  return s;
}

[[noreturn]] inline void stop(const std::string &why) {
  printf("PTX: %s\n", why.c_str());
  fflush(stdout);
  _Exit(70);
}

// ---- Warps ----

struct Copy {
  uint32_t to;
  int lane, group;
  char data[16];
};

struct Block {
  Kernel &kernel;
  unsigned index = 0;
  std::vector<char> shared, parameters;
  std::vector<Cell> cells;
};

struct Warp {
  Block &block;
  int number;
  Register *registers;
  std::vector<Lanes> predicates = {};
  Lanes live = 0, atBarrier = 0, waiting = 0; // waiting: for other lanes of an instruction
  int at[LANES] = {}, group[LANES] = {};
  std::vector<Copy> copies = {};

  int thread(int lane) const { return number * LANES + lane; }
};

// Tells of a place once; where PTX_STOP is set, ends there.
inline void report(Warp &w, const Instruction &in, const char *what, int lane = -1) {
  State &s = state();
  std::string file = in.file < (int)s.files.size() ? s.files[in.file] : "?";
  std::string place = std::string(what) + ", " + file + ":" + std::to_string(in.sourceLine) + ", PTX line " + std::to_string(in.line) +
                      ", " + w.block.kernel.name;
  if (s.findings[place]++ == 0) {
    printf("PTX: %s, block %u, thread %d\n", place.c_str(), w.block.index, lane < 0 ? w.thread(0) : w.thread(lane));
    if (setting("PTX_STOP", 0) != 0) {
      stop("stops at the first finding");
    }
  }
}

template <class F>
inline void each(Lanes lanes, F f) {
  if (lanes == ALL) {
#pragma GCC ivdep // a lane writes none of what another reads, in whatever order they go
    for (int l = 0; l < LANES; l++) f(l);
  } else {
    for (; lanes != 0; lanes &= lanes - 1) f(__builtin_ctz(lanes));
  }
}

template <class T>
inline T get(const Register &r, int l) {
  T x;
  memcpy(&x, &r[l], sizeof x);
  return x;
}

template <class T>
inline void put(Register &r, int l, T x) {
  uint64_t all = 0;
  memcpy(&all, &x, sizeof x);
  r[l] = all;
}

// ---- Arithmetic ----

template <class To, class From, class F>
void one(Warp &w, const Instruction &in, Lanes lanes) {
  Register &d = w.registers[in.o[0]], &a = w.registers[in.o[1]];
  each(lanes, [&](int l) { put<To>(d, l, F()(get<From>(a, l))); });
}

template <class To, class From, class F>
void two(Warp &w, const Instruction &in, Lanes lanes) {
  Register &d = w.registers[in.o[0]], &a = w.registers[in.o[1]], &b = w.registers[in.o[2]];
  each(lanes, [&](int l) { put<To>(d, l, F()(get<From>(a, l), get<From>(b, l))); });
}

// The count of bits to shift by has 32.
template <class T, class F>
void shift(Warp &w, const Instruction &in, Lanes lanes) {
  Register &d = w.registers[in.o[0]], &a = w.registers[in.o[1]], &b = w.registers[in.o[2]];
  each(lanes, [&](int l) { put<T>(d, l, F()(get<T>(a, l), get<uint32_t>(b, l))); });
}

template <class To, class From, class F>
void three(Warp &w, const Instruction &in, Lanes lanes) {
  Register &d = w.registers[in.o[0]], &a = w.registers[in.o[1]], &b = w.registers[in.o[2]], &c = w.registers[in.o[3]];
  each(lanes, [&](int l) { put<To>(d, l, F()(get<From>(a, l), get<From>(b, l), get<To>(c, l))); });
}

template <class T, class F>
void divide(Warp &w, const Instruction &in, Lanes lanes) {
  Register &d = w.registers[in.o[0]], &a = w.registers[in.o[1]], &b = w.registers[in.o[2]];
  each(lanes, [&](int l) {
    T y = get<T>(b, l);
    if (y == 0) {
      report(w, in, "division by zero", l);
    }
    put<T>(d, l, y == 0 ? (T)-1 : F()(get<T>(a, l), y));
  });
}

struct Add { template <class T> T operator()(T a, T b) { return a + b; } };
struct Subtract { template <class T> T operator()(T a, T b) { return a - b; } };
struct Multiply { template <class T> T operator()(T a, T b) { return (T)(a * b); } };
struct Divide { template <class T> T operator()(T a, T b) { return (T)(a / b); } };
struct Remainder { template <class T> T operator()(T a, T b) { return (T)(a % b); } };
struct Least { template <class T> T operator()(T a, T b) { return a != a ? b : b < a ? b : a; } };
struct Most { template <class T> T operator()(T a, T b) { return a != a ? b : b > a ? b : a; } };
struct And { template <class T> T operator()(T a, T b) { return a & b; } };
struct Or { template <class T> T operator()(T a, T b) { return a | b; } };
struct Xor { template <class T> T operator()(T a, T b) { return a ^ b; } };
struct Not { template <class T> T operator()(T a) { return (T)~a; } };
struct Same { template <class T> T operator()(T a) { return a; } };
struct Negate { template <class T> T operator()(T a) { return -a; } };
struct Magnitude { template <class T> T operator()(T a) { return (T)std::abs(a); } };
struct Root { template <class T> T operator()(T a) { return std::sqrt(a); } };
struct Inverse { template <class T> T operator()(T a) { return 1 / a; } };
struct Left { template <class T> T operator()(T a, uint32_t n) { return n >= 8 * sizeof(T) ? 0 : (T)(a << n); } };
struct Right {
  template <class T> T operator()(T a, uint32_t n) { return (T)(n < 8 * sizeof(T) ? a >> n : a < 0 ? -1 : 0); }
};
struct Fused {
  double operator()(double a, double b, double c) { return __builtin_fma(a, b, c); }
  float operator()(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
};
struct MultiplyAdd { template <class T> T operator()(T a, T b, T c) { return (T)(a * b + c); } };
template <class To>
struct MultiplyWide { template <class T> To operator()(T a, T b) { return (To)a * (To)b; } };
template <class To>
struct MultiplyAddWide { template <class T> To operator()(T a, T b, To c) { return (To)a * (To)b + c; } };
template <class Wide>
struct MultiplyHigh { template <class T> T operator()(T a, T b) { return (T)((Wide)a * (Wide)b >> 8 * sizeof(T)); } };
struct Population { template <class T> uint32_t operator()(T a) { return (uint32_t)__builtin_popcountll(a); } };

// Of the upper half of a number, to some 20 bits of which the last is not known.
struct RoughInverse {
  double operator()(double a) {
    uint64_t bits;
    memcpy(&bits, &a, 8);
    bits &= (bits >> 52 & 0x7ff) == 0 ? 1ull << 63 : ~0xffffffffull;
    memcpy(&a, &bits, 8);
    double r = 1 / a;
    memcpy(&bits, &r, 8);
    uint64_t exponent = bits >> 52 & 0x7ff;
    bits &= exponent == 0 ? 1ull << 63 : ~0xffffffffull;
    if (exponent != 0 && exponent != 0x7ff) {
      bits += (uint64_t)(seed() % 3 - 1) << 32;
    }
    memcpy(&r, &bits, 8);
    return exponent == 0x7ff ? 1 / a : r;
  }
};

// Rounding in `mode` is that of the instruction's name, 'p' and 'm' being up and down.
template <class To, class From>
void convert(Warp &w, const Instruction &in, Lanes lanes) {
  Register &d = w.registers[in.o[0]], &a = w.registers[in.o[1]];
  each(lanes, [&](int l) {
    From x = get<From>(a, l);
    if constexpr (std::is_floating_point_v<From>) {
      if (in.mode >= 'A' && in.mode <= 'Z') { // to a whole number
        x = in.mode == 'N' ? std::nearbyint(x) : in.mode == 'Z' ? std::trunc(x) : in.mode == 'P' ? std::ceil(x) : std::floor(x);
      }
      if constexpr (std::is_integral_v<To>) {
        if (x != x) {
          report(w, in, "NaN as an integer", l);
          x = 0;
        }
        constexpr double LOW = (double)std::numeric_limits<To>::min(), HIGH = (double)std::numeric_limits<To>::max();
        put<To>(d, l, x <= LOW ? std::numeric_limits<To>::min() : x >= HIGH ? std::numeric_limits<To>::max() : (To)x);
        return;
      } else if (sizeof(To) < sizeof(From)) {
        To y = (To)x;
        bool isUp = in.mode == 'p' || (in.mode == 'z' && x < 0), isDown = in.mode == 'm' || (in.mode == 'z' && x > 0);
        put<To>(d, l, isUp && y < x ? std::nextafter(y, (To)INFINITY) : isDown && y > x ? std::nextafter(y, (To)-INFINITY) : y);
        return;
      }
    }
    if constexpr (std::is_integral_v<To> && std::is_signed_v<To>) { // extends into the rest of a register
      put<int64_t>(d, l, (int64_t)(To)x);
    } else {
      put<To>(d, l, (To)x);
    }
  });
}

enum Comparison { EQ, NE, LT, LE, GT, GE, NUMBERS, COMPARISONS };

// Without NaN; `mode` negates, which gives the comparisons that hold of NaN.
template <class T, int C>
void compare(Warp &w, const Instruction &in, Lanes lanes) {
  const Register &a = w.registers[in.o[1]], &b = w.registers[in.o[2]];
  Lanes result = 0;
  for (int l = 0; l < LANES; l++) {
    T x = get<T>(a, l), y = get<T>(b, l);
    bool r = C == EQ ? x == y : C == NE ? x < y || x > y : C == LT ? x < y : C == LE ? x <= y : C == GT ? x > y
             : C == GE ? x >= y : x == x && y == y;
    result |= (Lanes)r << l;
  }
  Lanes &d = w.predicates[in.o[0]];
  result = in.negated ? ~result : result;
  Lanes other = in.o[3] < 0 ? 0 : w.predicates[in.o[3]];
  result = in.mode == 'a' ? result & other : in.mode == 'o' ? result | other : result;
  d = (d & ~lanes) | (result & lanes);
}

inline void logic(Warp &w, const Instruction &in, Lanes lanes) {
  Lanes a = in.o[1] < 0 ? (in.mode == '0' ? 0 : ALL) : w.predicates[in.o[1]];
  Lanes b = in.o[2] < 0 ? 0 : w.predicates[in.o[2]];
  Lanes r = in.mode == 'a' ? a & b : in.mode == 'o' ? a | b : in.mode == 'x' ? a ^ b : in.mode == 'n' ? ~a : a;
  Lanes &d = w.predicates[in.o[0]];
  d = (d & ~lanes) | (r & lanes);
}

inline void choose(Warp &w, const Instruction &in, Lanes lanes) {
  Register &d = w.registers[in.o[0]], &a = w.registers[in.o[1]], &b = w.registers[in.o[2]];
  Lanes p = w.predicates[in.o[3]];
  each(lanes, [&](int l) { d[l] = p >> l & 1 ? a[l] : b[l]; });
}

inline void pack(Warp &w, const Instruction &in, Lanes lanes) {
  Register &d = w.registers[in.o[0]], &low = w.registers[in.o[1]], &high = w.registers[in.o[2]];
  each(lanes, [&](int l) { d[l] = (low[l] & 0xffffffff) | high[l] << 32; });
}

inline void unpack(Warp &w, const Instruction &in, Lanes lanes) {
  Register &low = w.registers[in.o[0]], &high = w.registers[in.o[1]], &a = w.registers[in.o[2]];
  each(lanes, [&](int l) {
    uint64_t x = a[l];
    low[l] = x & 0xffffffff;
    high[l] = x >> 32;
  });
}

template <class T>
void insertBits(Warp &w, const Instruction &in, Lanes lanes) {
  each(lanes, [&](int l) {
    T a = get<T>(w.registers[in.o[1]], l), b = get<T>(w.registers[in.o[2]], l);
    unsigned from = w.registers[in.o[3]][l] & 0xff, count = w.registers[in.o[4]][l] & 0xff;
    for (unsigned n = from; n < from + count && n < 8 * sizeof(T); n++) {
      T bit = (T)1 << n;
      b = a >> (n - from) & 1 ? b | bit : b & ~bit;
    }
    put<T>(w.registers[in.o[0]], l, b);
  });
}

inline void permuteBytes(Warp &w, const Instruction &in, Lanes lanes) {
  each(lanes, [&](int l) {
    uint64_t both = (w.registers[in.o[1]][l] & 0xffffffff) | w.registers[in.o[2]][l] << 32;
    uint32_t selectors = (uint32_t)w.registers[in.o[3]][l], r = 0;
    for (int n = 0; n < 4; n++) {
      uint32_t s = selectors >> 4 * n & 15, byte = both >> 8 * (s & 7) & 255;
      r |= (s & 8 ? (byte & 128 ? 255 : 0) : byte) << 8 * n;
    }
    w.registers[in.o[0]][l] = r;
  });
}

inline void nothing(Warp &, const Instruction &, Lanes) {}

// ---- Accesses ----

enum Access { READ, WRITE, ATOMIC, COPY };

// Two threads of which one writes, and no barrier between: within a block, or for memory of the device blocks of a launch.
inline bool collides(uint32_t epoch, uint16_t by, uint16_t thread, bool isShared) {
  const State &s = state();
  return (epoch == s.now && by != thread) || (!isShared && epoch >= s.launch && epoch < s.block);
}

inline void touch(Warp &w, const Instruction &in, int lane, Cell &c, Access access, bool isShared) {
  uint16_t thread = (uint16_t)w.thread(lane);
  State &s = state();
  if (__builtin_expect(c.pending, 0)) {
    report(w, in, access == READ ? "read of a copy under way" : "write over a copy under way", lane);
  }
  if (access != WRITE && access != COPY && __builtin_expect(c.written < (isShared ? s.block : OF_HOST), 0)) {
    report(w, in, isShared ? "uninitialised shared memory" : "uninitialised memory", lane);
  }
  if (__builtin_expect(collides(c.written, c.writer, thread, isShared) && !(access == ATOMIC && c.atomic), 0)) {
    report(w, in, access == READ ? "race: read after write" : "race: write after write", lane);
  }
  if (access == READ) {
    c.reader = c.read == s.now && c.reader != thread ? SEVERAL : thread;
    c.read = s.now;
    return;
  }
  if (__builtin_expect(collides(c.read, c.reader, thread, isShared), 0)) {
    report(w, in, "race: write after read", lane);
  }
  c.written = s.now;
  c.writer = thread;
  c.atomic = access == ATOMIC;
  c.pending = access == COPY;
}

// Where `size` bytes in elements of `element` lie; null out of bounds.
inline char *reach(Warp &w, const Instruction &in, int lane, Space space, uint64_t at, int size, int element, Access access) {
  Block &b = w.block;
  if ((at & (size - 1)) != 0) { // a power of two
    report(w, in, "misaligned", lane);
  }
  if (space == PARAMETER) {
    if (at + size > b.parameters.size()) {
      report(w, in, "beyond the parameters", lane);
      return nullptr;
    }
    return &b.parameters[at];
  }
  char *to;
  Cell *cells;
  uint64_t first, last;
  if (space == SHARED) {
    if (at + size > b.shared.size()) {
      report(w, in, "beyond the block's shared memory", lane);
      return nullptr;
    }
    to = &b.shared[at];
    cells = b.cells.data();
    first = at >> b.kernel.shift;
    last = (at + size - 1) >> b.kernel.shift;
  } else {
    Allocation *a = state().find(at, size);
    if (a == nullptr) {
      report(w, in, access == READ ? "read of no allocation" : "write to no allocation", lane);
      return nullptr;
    }
    while (element >> a->shift == 0) a->halveCells();
    to = (char *)at;
    cells = a->cells.data();
    first = (at - a->at()) >> a->shift;
    last = (at - a->at() + size - 1) >> a->shift;
  }
  for (uint64_t n = first; n <= last; n++) touch(w, in, lane, cells[n], access, space == SHARED);
  return to;
}

inline uint64_t address(Warp &w, const Instruction &in, int lane, int base, int64_t offset) {
  uint64_t at = w.registers[base][lane];
  return (in.space == SHARED ? (uint32_t)at : at) + offset;
}

// Elements of that many bytes; o: address, then registers
template <int SIZE>
void load(Warp &w, const Instruction &in, Lanes lanes) {
  each(lanes, [&](int l) {
    const char *from = reach(w, in, l, in.space, address(w, in, l, in.o[0], in.offset), SIZE * in.parts, SIZE, READ);
    for (int n = 0; n < in.parts; n++) {
      uint64_t x = 0;
      if (from == nullptr) {
        x = 0x7ff4dead7fa5dead;
      } else {
        memcpy(&x, from + n * SIZE, SIZE);
      }
      constexpr int SPARE = 64 - 8 * SIZE;
      w.registers[in.o[1 + n]][l] = in.isSigned ? (uint64_t)((int64_t)(x << SPARE) >> SPARE) : x;
    }
  });
}

template <int SIZE>
void store(Warp &w, const Instruction &in, Lanes lanes) {
  each(lanes, [&](int l) {
    char *to = reach(w, in, l, in.space, address(w, in, l, in.o[0], in.offset), SIZE * in.parts, SIZE, WRITE);
    for (int n = 0; n < in.parts && to != nullptr; n++) memcpy(to + n * SIZE, &w.registers[in.o[1 + n]][l], SIZE);
  });
}

// Adds; o: address, value, and where the former value goes.
inline void atomicAdd(Warp &w, const Instruction &in, Lanes lanes) {
  int first = seed() == 0 ? 0 : below(LANES);
  for (int n = 0; n < LANES; n++) {
    int l = (first + n) % LANES;
    char *to = lanes >> l & 1 ? reach(w, in, l, in.space, address(w, in, l, in.o[0], in.offset), 4, 4, ATOMIC) : nullptr;
    if (to != nullptr) {
      uint32_t before, sum;
      memcpy(&before, to, 4);
      sum = before + (uint32_t)w.registers[in.o[1]][l];
      memcpy(to, &sum, 4);
      if (in.o[2] >= 0) {
        w.registers[in.o[2]][l] = before;
      }
    }
  }
}

// ---- Asynchronous copies of 16 bytes: the data are there after the wait, NaN before ----

inline void copyAsync(Warp &w, const Instruction &in, Lanes lanes) {
  each(lanes, [&](int l) {
    uint32_t at = (uint32_t)w.registers[in.o[0]][l] + (uint32_t)in.offset;
    const char *from = reach(w, in, l, GLOBAL, w.registers[in.o[1]][l] + in.otherOffset, 16, 8, READ);
    char *to = reach(w, in, l, SHARED, at, 16, 8, COPY);
    if (from != nullptr && to != nullptr) {
      Copy c{at, l, w.group[l], {}};
      memcpy(c.data, from, 16);
      memset(to, 0xff, 16);
      w.copies.push_back(c);
    }
  });
}

inline void commitCopies(Warp &w, const Instruction &, Lanes lanes) {
  each(lanes, [&](int l) { w.group[l]++; });
}

// Until no more than `mode` groups of a lane are under way.
inline void waitForCopies(Warp &w, const Instruction &in, Lanes lanes) {
  auto isUnderWay = [&](const Copy &c) {
    if (!(lanes >> c.lane & 1) || c.group >= w.group[c.lane] - in.mode) {
      return true;
    }
    memcpy(&w.block.shared[c.to], c.data, 16);
    int shift = w.block.kernel.shift;
    for (int n = 0; n < 16 >> shift; n++) {
      Cell &cell = w.block.cells[(c.to >> shift) + n];
      cell.pending = false;
      cell.written = state().now;
      cell.writer = (uint16_t)w.thread(c.lane);
    }
    return false;
  };
  w.copies.erase(std::stable_partition(w.copies.begin(), w.copies.end(), isUnderWay), w.copies.end());
}

// ---- Exchanges within a warp ----

// o: result, value, lane or mask of lanes, clamp and segments, lanes that take part, predicate
inline void shuffle(Warp &w, const Instruction &in, Lanes lanes) {
  Register before;
  memcpy(before, w.registers[in.o[1]], sizeof before);
  Lanes within = 0;
  each(lanes, [&](int l) {
    int b = w.registers[in.o[2]][l] & 31, c = (int)w.registers[in.o[3]][l], segment = c >> 8 & 31, clamp = c & 31;
    int most = (l & segment) | (clamp & ~segment);
    int from = in.mode == 'b' ? l ^ b : (l & segment) | (b & ~segment);
    within |= (Lanes)(from <= most) << l;
    from = from <= most ? from : l;
    if (!(lanes >> from & 1)) {
      report(w, in, "shuffle from a lane that takes no part", l);
    }
    w.registers[in.o[0]][l] = before[from];
  });
  if (in.o[5] >= 0) {
    Lanes &p = w.predicates[in.o[5]];
    p = (p & ~lanes) | within;
  }
}

// D = A B + C of ROWS x K and K x 8 doubles. Lane 4g + l holds (PTX ISA, "Matrix fragments for mma.m8n8k4", "mma.m16n8k8" with .f64)
//
//     a    row g + 8v at k = l + 4h, the v-th of h     v < ROWS / 8, h < K / 4
//     b    column g at k = l + 4h
//     c    row g + 8v, columns 2l and 2l + 1
//
// The order of the sum is not specified. o: D, A, B, C
template <int ROWS, int K>
void multiplyMatrices(Warp &w, const Instruction &in, Lanes) {
  constexpr int V = ROWS / 8, H = K / 4;
  const int *d = in.o, *oa = d + 2 * V, *ob = oa + V * H, *oc = ob + H;
  double a[ROWS][K], b[K][8], c[ROWS][8];
  for (int lane = 0; lane < LANES; lane++) {
    int g = lane / 4, l = lane % 4;
    for (int h = 0; h < H; h++) {
      for (int v = 0; v < V; v++) a[g + 8 * v][l + 4 * h] = get<double>(w.registers[oa[V * h + v]], lane);
      b[l + 4 * h][g] = get<double>(w.registers[ob[h]], lane);
    }
    for (int n = 0; n < 2 * V; n++) c[g + n / 2 * 8][2 * l + n % 2] = get<double>(w.registers[oc[n]], lane);
  }
  for (int n = 0; n < K; n++) {
    int k = seed() % 2 == 0 ? n : K - 1 - n;
    for (int r = 0; r < ROWS; r++) {
      for (int x = 0; x < 8; x++) c[r][x] = __builtin_fma(a[r][k], b[k][x], c[r][x]);
    }
  }
  for (int lane = 0; lane < LANES; lane++) {
    for (int n = 0; n < 2 * V; n++) put<double>(w.registers[d[n]], lane, c[lane / 4 + n / 2 * 8][2 * (lane % 4) + n % 2]);
  }
}

// ---- Launches ----

class Machine {
public:
  Machine(Kernel &kernel, unsigned blocks, int threads, void **arguments, size_t shared)
      : kernel(kernel), blocks(blocks), threads(threads), block{kernel, 0, std::vector<char>(shared), {}, {}} {
    block.parameters.resize(kernel.parameterBytes);
    for (size_t n = 0; n < kernel.parameterOffset.size(); n++) {
      memcpy(&block.parameters[kernel.parameterOffset[n]], arguments[n], kernel.parameterSize[n]);
    }
    block.cells.resize((shared >> kernel.shift) + 1);
    for (int n = 0; n * LANES < threads; n++) {
      if (n == (int)kernel.files.size()) {
        kernel.files.push_back(std::make_unique<Register[]>(kernel.registers));
      }
      memset(kernel.files[n].get(), 0xff, sizeof(Register) * kernel.registers);
      warps.push_back({block, n, kernel.files[n].get(), std::vector<Lanes>(kernel.predicates)});
      Warp &w = warps.back();
      for (auto [r, value] : kernel.constants) std::fill(w.registers[r], w.registers[r] + LANES, value);
      for (int l = 0; l < LANES; l++) w.registers[TID][l] = w.thread(l);
    }
  }

  void run() {
    State &s = state();
    s.launch = ++s.now;
    kernel.launches++;
    std::vector<unsigned> order(blocks);
    for (unsigned n = 0; n < blocks; n++) order[n] = n;
    for (unsigned n = blocks; seed() != 0 && n > 1; n--) std::swap(order[n - 1], order[below(n)]);
    for (unsigned index : order) runBlock(index);
  }

private:
  Kernel &kernel;
  unsigned blocks;
  int threads;
  Block block;
  std::vector<Warp> warps;

  void runBlock(unsigned index) {
    state().block = ++state().now;
    if (state().now > 0xf0000000) {
      stop("too many barriers for one run");
    }
    block.index = index;
    memset(block.shared.data(), 0xff, block.shared.size());
    for (Cell &c : block.cells) c.pending = false;
    for (Warp &w : warps) {
      int count = std::min(threads - w.number * LANES, LANES);
      w.live = count == LANES ? ALL : ((Lanes)1 << count) - 1;
      w.atBarrier = w.waiting = 0;
      std::fill(w.at, w.at + LANES, 0);
      std::fill(w.group, w.group + LANES, 0);
      std::fill(w.registers[CTAID], w.registers[CTAID] + LANES, index);
      std::fill(w.registers[NTID], w.registers[NTID] + LANES, threads);
      w.copies.clear();
    }
    std::vector<Warp *> able;
    do {
      able.clear();
      bool isLive = false;
      for (Warp &w : warps) {
        isLive |= w.live != 0;
        if (w.live & ~w.atBarrier) able.push_back(&w);
      }
      if (able.empty() && isLive) {
        passBarrier();
      } else if (seed() != 0 && !able.empty()) {
        run(*able[below((unsigned)able.size())], 1 + below(below(4) == 0 ? 20 : 3000));
      } else {
        for (Warp *w : able) run(*w, LONG_MAX);
        if (!isLive) return;
      }
    } while (true);
  }

  // All threads have come to one.
  void passBarrier() {
    int place = -1;
    for (Warp &w : warps) {
      each(w.live, [&](int l) {
        place = place < 0 ? w.at[l] : place;
        if (w.at[l] != place) {
          report(w, kernel.code[w.at[l] - 1], "another barrier than other threads'", l);
        }
      });
      if (__builtin_popcount(w.live) != std::min(threads - w.number * LANES, LANES)) {
        report(w, kernel.code[place < 0 ? 0 : place - 1], "a barrier after threads have ended");
      }
      w.atBarrier = 0;
    }
    state().now++;
  }

  // Those that an instruction needs for lanes that came to it.
  Lanes needed(Warp &w, const Instruction &in, Lanes lanes) {
    if (in.mode == 0) {
      return ALL;
    }
    Lanes mask = (Lanes)w.registers[in.o[4]][__builtin_ctz(lanes)];
    each(lanes, [&](int l) {
      if ((Lanes)w.registers[in.o[4]][l] != mask || !(mask >> l & 1)) {
        report(w, in, "masks of lanes that differ or lack their own", l);
      }
    });
    return mask;
  }

  void execute(Warp &w, const Instruction &in, Lanes lanes) {
    kernel.instructions++;
    in.run(w, in, lanes);
  }

  // Nothing else can go on: those at the first place, whether or not they are all that it needs.
  void releaseWaiting(Warp &w) {
    int place = INT_MAX;
    each(w.waiting, [&](int l) { place = std::min(place, w.at[l]); });
    Lanes here = 0;
    each(w.waiting, [&](int l) { here |= (Lanes)(w.at[l] == place) << l; });
    const Instruction &in = kernel.code[place];
    if (needed(w, in, here) != here) {
      report(w, in, "without all lanes that it needs", __builtin_ctz(here));
    }
    execute(w, in, here);
    w.waiting &= ~here;
    each(here, [&](int l) { w.at[l] = place + 1; });
  }

  // Runs lanes that are at one place until they part or meet others, those farthest behind first; so many instructions at most.
  void run(Warp &w, long most) {
    while (most > 0) {
      Lanes able = w.live & ~w.atBarrier & ~w.waiting;
      if (able == 0) {
        if (w.waiting == 0) {
          return;
        }
        releaseWaiting(w);
        continue;
      }
      int place = INT_MAX;
      each(able, [&](int l) { place = std::min(place, w.at[l]); });
      if (seed() != 0 && below(8) == 0) { // any lane's
        Lanes rest = able;
        for (unsigned n = below(__builtin_popcount(able)); n > 0; n--) rest &= rest - 1;
        place = w.at[__builtin_ctz(rest)];
      }
      Lanes here = 0;
      int next = INT_MAX; // of others
      each(able, [&](int l) {
        if (w.at[l] == place) {
          here |= (Lanes)1 << l;
        } else if (w.at[l] > place) {
          next = std::min(next, w.at[l]);
        }
      });
      while (here != 0 && place < next && most-- > 0) {
        const Instruction &in = kernel.code[place];
        Lanes lanes = here;
        if (in.guarded) {
          lanes &= in.guardNegated ? ~w.predicates[in.guard] : w.predicates[in.guard];
        }
        place++;
        if (lanes == 0 && in.kind != BRANCH) {
          continue;
        }
        switch (in.kind) {
          case PLAIN: execute(w, in, lanes); break;
          case BRANCH:
            kernel.instructions++;
            if (seed() != 0 && lanes == here && below(500) == 0) { // a part stays behind
              lanes &= (Lanes)below(UINT_MAX);
              each(here & ~lanes, [&](int l) { w.at[l] = place - 1; });
              each(lanes, [&](int l) { w.at[l] = in.target; });
              here = 0;
            } else if (lanes == here) {
              place = in.target;
            } else if (lanes != 0) {
              each(here, [&](int l) { w.at[l] = lanes >> l & 1 ? in.target : place; });
              here = 0;
            }
            break;
          case TOGETHER:
            if (lanes == here && needed(w, in, lanes) == lanes) {
              execute(w, in, lanes);
            } else {
              each(lanes, [&](int l) { w.at[l] = place - 1; });
              w.waiting |= lanes;
              here &= ~lanes;
            }
            break;
          case BARRIER:
            each(lanes, [&](int l) { w.at[l] = place; });
            w.atBarrier |= lanes;
            here &= ~lanes;
            break;
          case EXIT:
            w.live &= ~lanes;
            here &= ~lanes;
            break;
        }
      }
      each(here, [&](int l) { w.at[l] = place; });
    }
  }
};

} // namespace ptx
