// The kernels on the host: the threads of a block one after the other, in an order that differs from phase to phase so that
// what depends on it shows, shared memory poisoned, and asynchronous copies made no sooner than they are waited for.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "../src/full.h"
#include "../src/reduce.h"
#include "../src/refine.h"
#include "device.h"

namespace kullback {

class EmulatedBlock {
public:
  int64_t index;

  explicit EmulatedBlock(int64_t index) : index(index) {}

  template <class T>
  struct Own {
    std::vector<T> values = std::vector<T>(THREADS);

    explicit Own(EmulatedBlock &) {}
    T &operator[](int t) { return values[t]; }
  };

  template <class F>
  void lanes(const F &f) {
    phase++;
    for (int n = 0; n < THREADS; n++) {
      f((n * 101 + phase * 37) % THREADS);
    }
  }

  template <class F>
  void each(const F &f) {
    lanes(f);
  }

  template <class T>
  T &shared() {
    static_assert(sizeof(T) <= 227 << 10, "what a block can have of shared memory");
    thread_local std::unique_ptr<T, void (*)(void *)> memory(
        (T *)aligned_alloc(16, (sizeof(T) + 15) / 16 * 16), free);
    memset((void *)memory.get(), 0xff, sizeof(T));
    return *memory;
  }

  // As exchanges across the warp add up.
  template <class T>
  void reduce(Own<T> &own) {
    for (int mask = LANES / 2; mask > 0; mask /= 2) {
      std::vector<T> before = own.values;
      for (int t = 0; t < THREADS; t++) {
        own[t] = before[t] + before[t ^ mask];
      }
    }
  }

  template <class T>
  void sumInOrder(Own<T> &own, int n, int width) {
    for (int first = 0; first < THREADS; first += width) {
      for (int lane = 0; lane < n && lane < width; lane++) {
        for (int t = first; t < first + width; t++) {
          own[t].total += own[first + lane].part;
        }
      }
    }
  }

  template <class F>
  bool isOpen(const F &f, int) {
    for (int t = 0; t < THREADS; t++) {
      if (f(t)) {
        return true;
      }
    }
    return false;
  }

  int add(int &counter, int n) {
    counter += n;
    return counter - n;
  }

  template <class V, class T>
  void copy(int t, V *to, const T *from) {
    static_assert(sizeof(V) == 16, "what a device copies");
    if ((uintptr_t)from % 16 != 0) {
      abort();
    }
    threads[t].copies.push_back({to, from, threads[t].groups});
  }

  void commit(int t) { threads[t].groups++; }

  template <int PENDING>
  void wait(int t) {
    Thread &thread = threads[t];
    size_t n = 0;
    for (; n < thread.copies.size() && thread.copies[n].group < thread.groups - PENDING; n++) {
      memcpy(thread.copies[n].to, thread.copies[n].from, 16);
    }
    thread.copies.erase(thread.copies.begin(), thread.copies.begin() + n);
  }

private:
  struct Copy {
    void *to;
    const void *from;
    int group;
  };

  struct Thread {
    std::vector<Copy> copies;
    int groups = 0;
  };

  std::array<Thread, THREADS> threads;
  int phase = 0;
};

inline Device device() {
  return {(int)emulated::setting("compute_major"), (int)emulated::setting("compute_minor"),
          (int)emulated::setting("multiprocessors"), (int)emulated::setting("float_rate")};
}

// CUDA C++ Programming Guide, "Technical specifications per compute capability".
inline int64_t mostShared(const Device &d) {
  return (d.major == 8 && d.minor == 0 ? 163 : d.major == 9 || d.major == 10 ? 227 : 99) << 10;
}

struct Launch {
  void *stream;
  int32_t status = 0;
  std::vector<emulated::Range> ranges;

  explicit Launch(void *stream) : stream(stream) {}

  template <class T>
  T *reach(const void *memory, int64_t bytes) {
    ranges.push_back({memory, (size_t)bytes});
    return (T *)emulated::shadow(memory);
  }

  template <class Body>
  void operator()(const Body &body) {
    if (status == 0 && sharedBytes<Body>(nullptr) > mostShared(device())) {
      status = cudaErrorInvalidValue;
    }
    if (status == 0) {
      status = emulated::launch(stream, ranges, [body] {
        for (int64_t n = 0, blocks = body.blocks(); n < blocks; n++) {
          EmulatedBlock block(n);
          body(block);
        }
      });
    }
  }
};

} // namespace kullback

#include "../src/launchers.h"

int32_t kullback_cuda_abi_version(void) {
  int64_t version = kullback::emulated::setting("abi");
  return version < 0 ? KULLBACK_CUDA_ABI_VERSION : (int32_t)version;
}

const char *kullback_cuda_description(void) { return "emulated on the host"; }

int32_t kullback_cuda_device_name(int32_t device, char *name, int64_t capacity) {
  if (name == nullptr || capacity < 1) {
    return KULLBACK_CUDA_INVALID;
  }
  if (cudaError_t error = kullback::emulated::enter("kullback_cuda_device_name")) {
    return error;
  }
  if (device < 0 || device >= kullback::emulated::setting("devices")) {
    return cudaErrorInvalidDevice;
  }
  kullback::describe("Emulated device", kullback::device(), name, capacity);
  return 0;
}
