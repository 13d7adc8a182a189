// A CUDA runtime on the host. Device memory is one piece of shared memory mapped twice: where the caller sees it, at addresses that
// fault when the host touches them, and at a shadow that kernels and copies use. Work is queued and done later, a thread a stream.
//
// As with CUDA, an error of a kernel is sticky, freeing synchronises, copies of pageable memory are staged on their way to the
// device and synchronous on their way back, and those of pinned memory are deferred. The null stream is a stream like the
// others; it does not wait for them.
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>

#include "device.h"
#include "kullback_emulated.h"

namespace kullback::emulated {
namespace {

constexpr int POISON = 0xff; // NaN as float and as double, −1 as an integer
constexpr size_t ALIGNMENT = 256;
constexpr size_t GUARD = 256; // between allocations

struct Work {
  std::function<void()> run;
  bool evenAfterError; // what others wait for
};

struct Stream {
  std::deque<Work> queue;
  bool isBusy = false;
  bool isClosing = false;

  bool isIdle() const { return queue.empty() && !isBusy; }
};

struct Event {
  uint64_t recorded = 0;
  uint64_t completed = 0;
};

struct Fault {
  int64_t after;
  cudaError_t error;
};

const std::map<std::string, int64_t> SETTINGS = {
    {"devices", 1}, {"memory", 256 << 20}, {"abi", -1}, {"driver", 13000}, {"delay_us", 0}, {"compute_major", 9},
    {"compute_minor", 0}, {"multiprocessors", 4}, {"float_rate", 2}};

struct Device {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::string, int64_t> settings = SETTINGS;
  std::map<std::string, Fault> faults;
  cudaError_t error = cudaSuccess; // sticky
  std::map<void *, std::shared_ptr<Stream>> streams;
  std::map<void *, std::shared_ptr<Event>> events;
  std::map<char *, size_t> allocations, pinned, registered;
  std::vector<char *> freed;
  std::vector<std::weak_ptr<Stream>> running; // streams that were destroyed, too
  std::mt19937 random{1};
  char *memory = nullptr;
  char *shadow = nullptr;
  size_t capacity = 0;
  size_t downloaded = 0; // bytes
  int64_t registrations = 0;

  void map() {
    size_t size = settings["memory"];
    if (memory != nullptr && size == capacity) {
      return;
    }
    unmap();
    int file = memfd_create("kullback", 0);
    if (file < 0 || ftruncate(file, size) != 0) {
      abort();
    }
    memory = (char *)mmap(nullptr, size, PROT_NONE, MAP_SHARED, file, 0);
    shadow = (char *)mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (memory == MAP_FAILED || shadow == MAP_FAILED) {
      abort();
    }
    capacity = size;
  }

  void unmap() {
    if (memory != nullptr) {
      munmap(memory, capacity);
      munmap(shadow, capacity);
      memory = nullptr;
      capacity = 0;
    }
  }

  bool isDevice(const void *p) const { return memory != nullptr && p >= memory && p < memory + capacity; }

  static bool isWithin(const std::map<char *, size_t> &pieces, const void *p, size_t bytes) {
    auto after = pieces.upper_bound((char *)p);
    if (after == pieces.begin()) {
      return false;
    }
    auto [at, size] = *--after;
    size_t offset = (char *)p - at;
    return offset <= size && bytes <= size - offset;
  }

  // Whether it is within one piece.
  bool isPinned(const void *p, size_t bytes) const { return isWithin(pinned, p, bytes) || isWithin(registered, p, bytes); }

  bool overlapsPinned(const void *p, size_t bytes) const {
    for (const auto *pieces : {&pinned, &registered}) {
      auto next = pieces->upper_bound((char *)p);
      if (isWithin(*pieces, p, 1) || (next != pieces->end() && next->first < (const char *)p + bytes)) {
        return true;
      }
    }
    return false;
  }

  size_t live() const {
    size_t bytes = 0;
    for (auto [at, size] : allocations) {
      bytes += size;
    }
    return bytes;
  }

  // First fit; null if there is none.
  char *allocate(size_t size) {
    if (size > capacity) {
      return nullptr;
    }
    size_t room = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT + GUARD;
    char *at = memory;
    for (auto [next, taken] : allocations) {
      if ((size_t)(next - at) >= room) {
        break;
      }
      at = next + (taken + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT + GUARD;
    }
    if ((size_t)(memory + capacity - at) < room) {
      return nullptr;
    }
    allocations[at] = size;
    poison(at, room);
    return at;
  }

  void poison(char *at, size_t size) { memset(shadow + (at - memory), POISON, size); }

  // False if something was written behind it.
  bool release(std::map<char *, size_t>::iterator at) {
    auto [start, size] = *at;
    const unsigned char *guard = (unsigned char *)shadow + (start - memory) + size;
    bool intact = true;
    for (size_t n = 0; n < GUARD; n++) {
      intact &= guard[n] == POISON;
    }
    poison(start, size);
    allocations.erase(at);
    return intact;
  }

  bool isIdle() const {
    for (auto &stream : running) {
      auto s = stream.lock();
      if (s && !s->isIdle()) {
        return false;
      }
    }
    return true;
  }

  // Pinned memory that was freed goes back when no copy can want it.
  void dropFreed() {
    if (isIdle()) {
      for (char *memory : freed) {
        free(memory);
      }
      freed.clear();
    }
  }

  void waitIdle(std::unique_lock<std::mutex> &lock) {
    changed.wait(lock, [&] { return isIdle(); });
  }

  // The fault set for a call, if it is due.
  cudaError_t fault(const std::string &call) {
    auto at = faults.find(call);
    if (at == faults.end() || --at->second.after > 0) {
      return cudaSuccess;
    }
    cudaError_t error = at->second.error;
    faults.erase(at);
    return error;
  }
};

Device &device() {
  static Device *device = new Device; // outlives the threads
  return *device;
}

thread_local cudaError_t lastError = cudaSuccess;
thread_local int currentDevice = 0;

cudaError_t report(cudaError_t error) {
  if (error != cudaSuccess) {
    lastError = error;
  }
  return error;
}

// What every call finds first.
cudaError_t outcome(Device &d, const char *call) {
  cudaError_t error = d.fault(call);
  return error != cudaSuccess          ? error
         : d.settings["driver"] == 0   ? cudaErrorInsufficientDriver
         : d.settings["devices"] == 0  ? cudaErrorNoDevice
                                       : d.error;
}

void work(std::shared_ptr<Stream> stream) {
  Device &d = device();
  std::unique_lock<std::mutex> lock(d.mutex);
  while (true) {
    d.changed.wait(lock, [&] { return !stream->queue.empty() || stream->isClosing; });
    if (stream->queue.empty()) {
      return;
    }
    Work next = std::move(stream->queue.front());
    stream->queue.pop_front();
    stream->isBusy = true;
    int64_t delay = d.settings["delay_us"];
    int64_t pause = delay > 0 ? std::uniform_int_distribution<int64_t>(0, delay)(d.random) : 0;
    bool skip = d.error != cudaSuccess && !next.evenAfterError;
    lock.unlock();
    if (pause > 0) {
      std::this_thread::sleep_for(std::chrono::microseconds(pause));
    }
    if (!skip) {
      next.run();
    }
    next.run = nullptr;
    lock.lock();
    stream->isBusy = false;
    d.changed.notify_all();
  }
}

std::shared_ptr<Stream> start(Device &d) {
  auto stream = std::make_shared<Stream>();
  std::erase_if(d.running, [](auto &s) { return s.expired(); });
  d.running.push_back(stream);
  std::thread(work, stream).detach();
  return stream;
}

// Null if there is no such stream.
std::shared_ptr<Stream> find(Device &d, void *handle) {
  auto at = d.streams.find(handle);
  if (at != d.streams.end()) {
    return at->second;
  }
  return handle == nullptr ? d.streams[nullptr] = start(d) : nullptr;
}

void push(Device &d, const std::shared_ptr<Stream> &stream, std::function<void()> run, bool evenAfterError = false) {
  stream->queue.push_back({std::move(run), evenAfterError});
  d.changed.notify_all();
}

// Within queued work: whether all of the ranges are live, or else the device is at fault.
bool check(const std::vector<Range> &ranges) {
  Device &d = device();
  std::lock_guard<std::mutex> lock(d.mutex);
  for (auto &range : ranges) {
    if (!Device::isWithin(d.allocations, range.memory, range.bytes)) {
      d.error = cudaErrorIllegalAddress;
    }
  }
  return d.error == cudaSuccess;
}

cudaError_t copy(
    const char *call,
    void *to,
    size_t toPitch,
    const void *from,
    size_t fromPitch,
    size_t width,
    size_t height,
    cudaMemcpyKind kind,
    void *streamHandle) {
  Device &d = device();
  std::unique_lock<std::mutex> lock(d.mutex);
  if (cudaError_t error = outcome(d, call)) {
    return error;
  }
  auto stream = find(d, streamHandle);
  if (!stream) {
    return cudaErrorInvalidResourceHandle;
  }
  if (width == 0 || height == 0) {
    return cudaSuccess;
  }
  if (toPitch < width || fromPitch < width) {
    return cudaErrorInvalidPitchValue;
  }
  bool toDevice = d.isDevice(to);
  bool fromDevice = d.isDevice(from);
  bool saysTo = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  bool saysFrom = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  bool isKind = kind == cudaMemcpyDefault || (toDevice == saysTo && fromDevice == saysFrom);
  if (!isKind || to == nullptr || from == nullptr || kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault) {
    return cudaErrorInvalidValue;
  }
  size_t toBytes = (height - 1) * toPitch + width;
  size_t fromBytes = (height - 1) * fromPitch + width;
  std::vector<Range> ranges;
  if (toDevice) {
    ranges.push_back({to, toBytes});
  }
  if (fromDevice) {
    ranges.push_back({from, fromBytes});
  }
  bool toPinned = toDevice || d.isPinned(to, toBytes);
  bool fromPinned = fromDevice || d.isPinned(from, fromBytes);
  if ((!toPinned && d.overlapsPinned(to, toBytes)) || (!fromPinned && d.overlapsPinned(from, fromBytes))) {
    return cudaErrorInvalidValue; // a copy may not span pinned memory and other
  }
  bool isPinned = toPinned && fromPinned;
  std::vector<char> staged;
  if (!isPinned && !fromDevice) {
    staged.assign((const char *)from, (const char *)from + fromBytes);
  }
  d.downloaded += fromDevice && !toDevice ? width * height : 0;
  char *target = toDevice ? d.shadow + ((char *)to - d.memory) : (char *)to;
  const char *source = fromDevice ? d.shadow + ((const char *)from - d.memory) : (const char *)from;
  push(d, stream, [=, staged = std::move(staged)] {
    if (check(ranges)) {
      const char *rows = staged.empty() ? source : staged.data();
      for (size_t r = 0; r < height; r++) {
        memcpy(target + r * toPitch, rows + r * fromPitch, width);
      }
    }
  });
  if (!isPinned && !toDevice) {
    d.changed.wait(lock, [&] { return stream->isIdle(); });
    return d.error;
  }
  return cudaSuccess;
}

// Leaves a device without memory, streams and events, its queued work done.
void clear(Device &d, std::unique_lock<std::mutex> &lock) {
  d.waitIdle(lock);
  for (auto &[handle, stream] : d.streams) {
    stream->isClosing = true;
    free(handle);
  }
  d.changed.notify_all();
  d.streams.clear();
  for (auto &[handle, event] : d.events) {
    free(handle);
  }
  d.events.clear();
  for (auto [at, size] : d.pinned) {
    free(at);
  }
  d.pinned.clear();
  d.registered.clear();
  d.downloaded = 0;
  d.registrations = 0;
  d.dropFreed();
  d.allocations.clear();
  d.unmap();
}

struct Name {
  cudaError_t error;
  const char *name, *text;
};

constexpr Name NAMES[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInitializationError, "cudaErrorInitializationError", "initialization error"},
    {cudaErrorInvalidPitchValue, "cudaErrorInvalidPitchValue", "invalid pitch argument"},
    {cudaErrorInsufficientDriver, "cudaErrorInsufficientDriver", "CUDA driver version is insufficient for CUDA runtime version"},
    {cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorNoKernelImageForDevice, "cudaErrorNoKernelImageForDevice", "no kernel image is available for execution on the device"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
    {cudaErrorIllegalAddress, "cudaErrorIllegalAddress", "an illegal memory access was encountered"},
    {cudaErrorLaunchOutOfResources, "cudaErrorLaunchOutOfResources", "too many resources requested for launch"},
    {cudaErrorLaunchFailure, "cudaErrorLaunchFailure", "unspecified launch failure"},
    {cudaErrorUnknown, "cudaErrorUnknown", "unknown error"},
};

const Name *named(cudaError_t error) {
  for (auto &name : NAMES) {
    if (name.error == error) {
      return &name;
    }
  }
  return nullptr;
}

} // namespace

void *shadow(const void *memory) {
  Device &d = device();
  std::lock_guard<std::mutex> lock(d.mutex);
  return d.isDevice(memory) ? d.shadow + ((const char *)memory - d.memory) : (char *)memory;
}

cudaError_t launch(void *handle, std::vector<Range> ranges, std::function<void()> work) {
  Device &d = device();
  std::unique_lock<std::mutex> lock(d.mutex);
  if (cudaError_t error = outcome(d, "launch")) {
    return error;
  }
  auto stream = find(d, handle);
  if (!stream) {
    return cudaErrorInvalidResourceHandle;
  }
  push(d, stream, [ranges = std::move(ranges), work = std::move(work)] {
    Device &d = device();
    {
      std::lock_guard<std::mutex> lock(d.mutex);
      if (cudaError_t error = d.fault("kernel")) {
        d.error = error;
      }
    }
    if (check(ranges)) {
      work();
    }
  });
  return cudaSuccess;
}

int64_t setting(const char *what) {
  Device &d = device();
  std::lock_guard<std::mutex> lock(d.mutex);
  return d.settings[what];
}

cudaError_t enter(const char *call) {
  Device &d = device();
  std::lock_guard<std::mutex> lock(d.mutex);
  return outcome(d, call);
}

} // namespace kullback::emulated

using namespace kullback::emulated;

using Lock = std::unique_lock<std::mutex>;

cudaError_t cudaGetDeviceCount(int *count) {
  Device &d = device();
  Lock lock(d.mutex);
  cudaError_t error = outcome(d, "cudaGetDeviceCount");
  *count = error == cudaSuccess ? (int)d.settings["devices"] : 0;
  return report(error);
}

cudaError_t cudaGetDevice(int *current) {
  cudaError_t error = enter("cudaGetDevice");
  *current = currentDevice;
  return report(error);
}

cudaError_t cudaSetDevice(int ordinal) {
  Device &d = device();
  Lock lock(d.mutex);
  cudaError_t error = outcome(d, "cudaSetDevice");
  if (error == cudaSuccess && (ordinal < 0 || ordinal >= d.settings["devices"])) {
    error = cudaErrorInvalidDevice;
  }
  if (error == cudaSuccess) {
    currentDevice = ordinal;
  }
  return report(error);
}

cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int ordinal) {
  Device &d = device();
  Lock lock(d.mutex);
  cudaError_t error = outcome(d, "cudaDeviceGetAttribute");
  if (error == cudaSuccess && (ordinal < 0 || ordinal >= d.settings["devices"])) {
    error = cudaErrorInvalidDevice;
  }
  if (error == cudaSuccess) {
    switch (attribute) {
      case cudaDevAttrMultiProcessorCount: *value = (int)d.settings["multiprocessors"]; break;
      case cudaDevAttrComputeCapabilityMajor: *value = (int)d.settings["compute_major"]; break;
      case cudaDevAttrComputeCapabilityMinor: *value = (int)d.settings["compute_minor"]; break;
      case cudaDevAttrSingleToDoublePrecisionPerfRatio: *value = (int)d.settings["float_rate"]; break;
      default: error = cudaErrorInvalidValue;
    }
  }
  return report(error);
}

cudaError_t cudaRuntimeGetVersion(int *version) {
  Device &d = device();
  Lock lock(d.mutex);
  *version = 13000;
  return report(d.fault("cudaRuntimeGetVersion"));
}

cudaError_t cudaDriverGetVersion(int *version) {
  Device &d = device();
  Lock lock(d.mutex);
  *version = (int)d.settings["driver"];
  return report(d.fault("cudaDriverGetVersion"));
}

cudaError_t cudaMemGetInfo(size_t *available, size_t *total) {
  Device &d = device();
  Lock lock(d.mutex);
  *total = d.settings["memory"];
  *available = *total - d.live();
  return report(outcome(d, "cudaMemGetInfo"));
}

cudaError_t cudaMalloc(void **memory, size_t size) {
  Device &d = device();
  Lock lock(d.mutex);
  *memory = nullptr;
  cudaError_t error = outcome(d, "cudaMalloc");
  if (error == cudaSuccess && size > 0) {
    d.map();
    *memory = d.allocate(size);
    error = *memory != nullptr ? cudaSuccess : cudaErrorMemoryAllocation;
  }
  return report(error);
}

// What releases does so although the device is at fault, so that a caller's leaks show.

cudaError_t cudaFree(void *memory) {
  Device &d = device();
  Lock lock(d.mutex);
  cudaError_t error = outcome(d, "cudaFree");
  if ((error != cudaSuccess && error != d.error) || memory == nullptr) {
    return report(error);
  }
  d.waitIdle(lock);
  auto at = d.allocations.find((char *)memory);
  if (at == d.allocations.end()) {
    return report(cudaErrorInvalidValue);
  }
  if (!d.release(at)) {
    d.error = cudaErrorIllegalAddress;
  }
  return report(d.error);
}

cudaError_t cudaHostAlloc(void **memory, size_t size, unsigned int) {
  Device &d = device();
  Lock lock(d.mutex);
  *memory = nullptr;
  cudaError_t error = outcome(d, "cudaHostAlloc");
  if (error == cudaSuccess && size > 0) {
    size_t pages = (size + 4095) / 4096 * 4096;
    char *at = pages < size ? nullptr : (char *)aligned_alloc(4096, pages);
    if (at == nullptr) {
      return report(cudaErrorMemoryAllocation);
    }
    memset(at, POISON, size);
    d.pinned[at] = size;
    *memory = at;
  }
  return report(error);
}

cudaError_t cudaFreeHost(void *memory) {
  Device &d = device();
  Lock lock(d.mutex);
  cudaError_t error = outcome(d, "cudaFreeHost");
  if ((error != cudaSuccess && error != d.error) || memory == nullptr) {
    return report(error);
  }
  auto at = d.pinned.find((char *)memory);
  if (at == d.pinned.end()) {
    return report(cudaErrorInvalidValue);
  }
  // Unlike cudaFree it is not said to wait: copies still queued find poison.
  memset(at->first, POISON, at->second);
  d.freed.push_back(at->first);
  d.pinned.erase(at);
  d.dropFreed();
  return report(d.error);
}

cudaError_t cudaHostRegister(void *memory, size_t size, unsigned int) {
  Device &d = device();
  Lock lock(d.mutex);
  cudaError_t error = outcome(d, "cudaHostRegister");
  if (error == cudaSuccess) {
    char *at = (char *)memory;
    if (at == nullptr || size == 0) {
      error = cudaErrorInvalidValue;
    } else if (d.overlapsPinned(at, size)) {
      error = cudaErrorHostMemoryAlreadyRegistered;
    } else {
      d.registered[at] = size;
      d.registrations++;
    }
  }
  return report(error);
}

cudaError_t cudaHostUnregister(void *memory) {
  Device &d = device();
  Lock lock(d.mutex);
  cudaError_t error = outcome(d, "cudaHostUnregister");
  if ((error == cudaSuccess || error == d.error) && d.registered.erase((char *)memory) == 0) {
    error = cudaErrorHostMemoryNotRegistered;
  }
  return report(error);
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t count, cudaMemcpyKind kind, cudaStream_t stream) {
  return report(copy("cudaMemcpyAsync", to, count, from, count, count, 1, kind, stream));
}

cudaError_t cudaMemcpy2DAsync(
    void *to,
    size_t toPitch,
    const void *from,
    size_t fromPitch,
    size_t width,
    size_t height,
    cudaMemcpyKind kind,
    cudaStream_t stream) {
  constexpr size_t MOST = 0x7fffffff; // cudaDevAttrMaxPitch
  return report(
      toPitch > MOST || fromPitch > MOST
          ? cudaErrorInvalidPitchValue
          : copy("cudaMemcpy2DAsync", to, toPitch, from, fromPitch, width, height, kind, stream));
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int) {
  Device &d = device();
  Lock lock(d.mutex);
  *stream = nullptr;
  cudaError_t error = outcome(d, "cudaStreamCreateWithFlags");
  if (error == cudaSuccess) {
    *stream = (cudaStream_t)malloc(1);
    d.streams[*stream] = start(d);
  }
  return report(error);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  Device &d = device();
  Lock lock(d.mutex);
  cudaError_t error = outcome(d, "cudaStreamDestroy");
  if (error != cudaSuccess && error != d.error) {
    return report(error);
  }
  auto at = d.streams.find(stream);
  if (stream == nullptr || at == d.streams.end()) {
    return report(cudaErrorInvalidResourceHandle);
  }
  at->second->isClosing = true;
  d.changed.notify_all();
  d.streams.erase(at);
  free(stream);
  return report(d.error);
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  Device &d = device();
  Lock lock(d.mutex);
  if (cudaError_t error = outcome(d, "cudaStreamSynchronize")) {
    return report(error);
  }
  auto stream = find(d, handle);
  if (!stream) {
    return report(cudaErrorInvalidResourceHandle);
  }
  d.changed.wait(lock, [&] { return stream->isIdle(); });
  return report(d.error);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t eventHandle, unsigned int) {
  Device &d = device();
  Lock lock(d.mutex);
  if (cudaError_t error = outcome(d, "cudaStreamWaitEvent")) {
    return report(error);
  }
  auto stream = find(d, handle);
  auto at = d.events.find(eventHandle);
  if (!stream || at == d.events.end()) {
    return report(cudaErrorInvalidResourceHandle);
  }
  push(
      d,
      stream,
      [event = at->second, awaited = at->second->recorded] {
        Device &d = device();
        Lock lock(d.mutex);
        d.changed.wait(lock, [&] { return event->completed >= awaited; });
      },
      true);
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int) {
  Device &d = device();
  Lock lock(d.mutex);
  *event = nullptr;
  cudaError_t error = outcome(d, "cudaEventCreateWithFlags");
  if (error == cudaSuccess) {
    *event = (cudaEvent_t)malloc(1);
    d.events[*event] = std::make_shared<Event>();
  }
  return report(error);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  Device &d = device();
  Lock lock(d.mutex);
  cudaError_t error = outcome(d, "cudaEventDestroy");
  if (error != cudaSuccess && error != d.error) {
    return report(error);
  }
  if (d.events.erase(event) == 0) {
    return report(cudaErrorInvalidResourceHandle);
  }
  free(event);
  return report(d.error);
}

cudaError_t cudaEventRecord(cudaEvent_t eventHandle, cudaStream_t handle) {
  Device &d = device();
  Lock lock(d.mutex);
  if (cudaError_t error = outcome(d, "cudaEventRecord")) {
    return report(error);
  }
  auto stream = find(d, handle);
  auto at = d.events.find(eventHandle);
  if (!stream || at == d.events.end()) {
    return report(cudaErrorInvalidResourceHandle);
  }
  push(
      d,
      stream,
      [event = at->second, recorded = ++at->second->recorded] {
        Device &d = device();
        Lock lock(d.mutex);
        event->completed = std::max(event->completed, recorded);
        d.changed.notify_all();
      },
      true);
  return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
  Device &d = device();
  Lock lock(d.mutex);
  if (cudaError_t error = outcome(d, "cudaEventSynchronize")) {
    return report(error);
  }
  auto at = d.events.find(handle);
  if (at == d.events.end()) {
    return report(cudaErrorInvalidResourceHandle);
  }
  auto event = at->second;
  d.changed.wait(lock, [&, recorded = event->recorded] { return event->completed >= recorded; });
  return report(d.error);
}

cudaError_t cudaEventQuery(cudaEvent_t handle) {
  Device &d = device();
  Lock lock(d.mutex);
  if (cudaError_t error = outcome(d, "cudaEventQuery")) {
    return report(error);
  }
  auto at = d.events.find(handle);
  if (at == d.events.end()) {
    return report(cudaErrorInvalidResourceHandle);
  }
  return at->second->completed >= at->second->recorded ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaDeviceSynchronize(void) {
  Device &d = device();
  Lock lock(d.mutex);
  if (cudaError_t error = outcome(d, "cudaDeviceSynchronize")) {
    return report(error);
  }
  d.waitIdle(lock);
  return report(d.error);
}

cudaError_t cudaGetLastError(void) {
  Device &d = device();
  Lock lock(d.mutex);
  cudaError_t error = d.error != cudaSuccess ? d.error : lastError;
  lastError = cudaSuccess;
  return error;
}

const char *cudaGetErrorName(cudaError_t error) {
  const Name *name = named(error);
  return name != nullptr ? name->name : "unrecognized error code";
}

const char *cudaGetErrorString(cudaError_t error) {
  const Name *name = named(error);
  return name != nullptr ? name->text : "unrecognized error code";
}

void kullback_emulated_fail(const char *call, int64_t after, int32_t error) {
  Device &d = device();
  Lock lock(d.mutex);
  if (error == 0) {
    d.faults.erase(call);
  } else {
    d.faults[call] = {after, (cudaError_t)error};
  }
}

int32_t kullback_emulated_set(const char *what, int64_t value) {
  Device &d = device();
  Lock lock(d.mutex);
  auto at = d.settings.find(what);
  bool isMemory = strcmp(what, "memory") == 0;
  if (at == d.settings.end() || (isMemory && (value < 1 || !d.allocations.empty()))) {
    return -1;
  }
  at->second = value;
  return 0;
}

int64_t kullback_emulated_live(const char *what) {
  Device &d = device();
  Lock lock(d.mutex);
  std::string name = what;
  return name == "allocations" ? (int64_t)d.allocations.size()
         : name == "pinned"    ? (int64_t)d.pinned.size()
         : name == "registered" ? (int64_t)d.registered.size()
         : name == "registrations" ? d.registrations
         : name == "downloaded" ? (int64_t)d.downloaded
         : name == "streams"   ? (int64_t)d.streams.size() - (int64_t)d.streams.count(nullptr)
         : name == "events"    ? (int64_t)d.events.size()
         : name == "bytes"     ? (int64_t)d.live()
                               : -1;
}

void kullback_emulated_reset(void) {
  Device &d = device();
  Lock lock(d.mutex);
  clear(d, lock);
  d.faults.clear();
  d.settings = SETTINGS;
  d.error = cudaSuccess;
  lastError = cudaSuccess;
}
