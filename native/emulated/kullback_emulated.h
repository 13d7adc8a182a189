// What a test can ask of the emulated device, beside the CUDA runtime and kullback_cuda.h.
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KULLBACK_EMULATED __attribute__((visibility("default")))

/**
 * Makes the after-th next call of a runtime function fail, once, before it does anything; 1 is the very next.
 *
 * @param call its name; or "launch": a kernel's launch, reported by the function of kullback_cuda.h; or "kernel": a kernel
 *     fails as it runs, which the next synchronisation reports, and every later call
 * @param error a cudaError_t; 0 takes the fault back
 */
KULLBACK_EMULATED void kullback_emulated_fail(const char *call, int64_t after, int32_t error);

/**
 * Changes a setting: "devices" (0: cudaErrorNoDevice), "memory" (bytes; nothing may be allocated), "abi" (the version told),
 * "driver" (0: cudaErrorInsufficientDriver), "delay_us" (most before each piece of queued work, at random), "multiprocessors",
 * "compute_major", "compute_minor", "float_rate" (over that of double; by which kernels are chosen: not while there are batches).
 *
 * @return 0, or -1 for a setting that is unknown or cannot be changed now
 */
KULLBACK_EMULATED int32_t kullback_emulated_set(const char *what, int64_t value);

/**
 * How many "allocations", "pinned", "registered", "streams" or "events" are live, or how many "bytes" of device memory; or, since the
 * last reset, how many bytes were "downloaded" from the device, or how many "registrations" of host memory there were; -1 if unknown.
 */
KULLBACK_EMULATED int64_t kullback_emulated_live(const char *what);

/** A new device: waits for queued work, then drops all memory, streams, events, faults, errors and settings. */
KULLBACK_EMULATED void kullback_emulated_reset(void);

#ifdef __cplusplus
}
#endif
