// The emulated device, as the kernels' launcher sees it.
#pragma once

#include <functional>
#include <vector>

#include "cuda_runtime_subset.h"

namespace kullback::emulated {

// Device memory that queued work touches.
struct Range {
  const void *memory;
  size_t bytes;
};

// Where the host finds what lies at a device address; null stays null.
void *shadow(const void *device);

// Queues a kernel.
cudaError_t launch(void *stream, std::vector<Range> ranges, std::function<void()> work);

// A setting of kullback_emulated_set.
int64_t setting(const char *what);

// The outcome of a call that does not enter the runtime by itself.
cudaError_t enter(const char *call);

} // namespace kullback::emulated
