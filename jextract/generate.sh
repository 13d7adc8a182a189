#!/bin/sh
# Writes the bindings in jextract/generated: those of native/include/kullback_cuda.h, and those of the functions and
# constants of the CUDA runtime that the library uses. They are committed, so only a change of the header or of the
# lists below needs this script, and with it jextract and the CUDA toolkit's headers (13.0 for what is committed).
#
#   jextract/generate.sh            generates, in place of all that is there
#   jextract/generate.sh --check    compares instead: prints the differences and exits 1 if there are any
#
#   CUDA_HOME   the toolkit, with include/cuda_runtime_api.h; otherwise that of the nvcc on PATH
set -eu
unset CDPATH

package=dev.kullback.internal.cuda.abi

kullback_functions='
  kullback_cuda_abi_version
  kullback_cuda_aligned
  kullback_cuda_batch_bytes
  kullback_cuda_description
  kullback_cuda_device_name
  kullback_cuda_download
  kullback_cuda_fold
  kullback_cuda_pairwise
  kullback_cuda_prepare
  kullback_cuda_scale_offset
  kullback_cuda_scratch_bytes
  kullback_cuda_select
  kullback_cuda_standard
'
kullback_constants='
  KULLBACK_CUDA_ABI_VERSION
  KULLBACK_CUDA_INVALID
  KULLBACK_LOG_SUM_EXP
  KULLBACK_LOG_VARIANCE
  KULLBACK_MIN
  KULLBACK_MOST_SELECTED
  KULLBACK_PRECISION
  KULLBACK_SCALE_TRIL
  KULLBACK_SCALE_TRIL_PARTS
  KULLBACK_STD
  KULLBACK_SUM
  KULLBACK_VARIANCE
'
kullback_structs='
  kullback_cuda_batch
'
cuda_functions='
  cudaDeviceGetAttribute
  cudaDriverGetVersion
  cudaEventCreateWithFlags
  cudaEventDestroy
  cudaEventRecord
  cudaEventSynchronize
  cudaFree
  cudaFreeHost
  cudaGetDeviceCount
  cudaGetErrorName
  cudaGetErrorString
  cudaGetLastError
  cudaHostAlloc
  cudaHostRegister
  cudaHostUnregister
  cudaMalloc
  cudaMemGetInfo
  cudaMemcpyAsync
  cudaRuntimeGetVersion
  cudaSetDevice
  cudaStreamCreateWithFlags
  cudaStreamDestroy
  cudaStreamSynchronize
  cudaStreamWaitEvent
'
cuda_constants='
  cudaDevAttrComputeCapabilityMajor
  cudaDevAttrComputeCapabilityMinor
  cudaErrorInvalidValue
  cudaErrorMemoryAllocation
  cudaEventBlockingSync
  cudaEventDisableTiming
  cudaHostAllocDefault
  cudaHostRegisterDefault
  cudaMemcpyDeviceToHost
  cudaMemcpyHostToDevice
  cudaStreamNonBlocking
  cudaSuccess
'

die() {
  printf 'generate.sh: %s\n' "$*" >&2
  exit 1
}

case $#:${1-} in
  0:) check=false ;;
  1:--check) check=true ;;
  *) die 'usage: jextract/generate.sh [--check]' ;;
esac

here=$(cd -P "$(dirname "$0")" && pwd)
header=$here/../native/include/kullback_cuda.h
command -v jextract >/dev/null 2>&1 || die 'no jextract on PATH: get it from https://jdk.java.net/jextract/'
[ -f "$header" ] || die 'no native/include/kullback_cuda.h'

if [ -n "${CUDA_HOME-}" ]; then
  cuda=$CUDA_HOME/include
else
  command -v nvcc >/dev/null 2>&1 || die 'no CUDA toolkit: set CUDA_HOME, or put nvcc on PATH'
  # nvcc may be a link or a script; it knows where its headers are.
  cuda=$(nvcc --dryrun any.cu 2>&1 | sed -n 's/^#\$ INCLUDES="-I\([^"]*\)".*/\1/p')
fi
[ -f "$cuda/cuda_runtime_api.h" ] || die "no cuda_runtime_api.h in '$cuda': set CUDA_HOME"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

# generate CLASS HEADER FUNCTIONS CONSTANTS STRUCTS: all else in the header and what it includes is left out.
generate() {
  class=$1 from=$2 functions=$3 constants=$4 structs=$5
  set -- --target-package "$package" --header-class-name "$class" --symbols-class-name CTypes
  for name in $functions; do set -- "$@" --include-function "$name"; done
  for name in $constants; do set -- "$@" --include-constant "$name"; done
  for name in $structs; do set -- "$@" --include-struct "$name"; done
  jextract "$@" --include-dir "$cuda" --output "$work/generated" "$from"

  # jextract says nothing of a name that is not in the header.
  file=$work/generated/$(printf '%s' "$package" | tr . /)/$class.java
  for name in $functions $constants; do
    grep -q " $name(" "$file" || die "$from has no $name"
  done
}

# No --library: symbols are looked up in the libraries that System.load has loaded. Both write the same CTypes.
generate KullbackCuda "$header" "$kullback_functions" "$kullback_constants" "$kullback_structs"
generate CudaRuntime "$cuda/cuda_runtime_api.h" "$cuda_functions" "$cuda_constants" ''

# Their calls of restricted methods are meant; javac's lint for them stays on for all other code.
find "$work/generated" -name '*.java' | while IFS= read -r file; do
  sed 's/^public class /@SuppressWarnings("restricted")\
&/' "$file" >"$work/file"
  grep -q '^@SuppressWarnings' "$work/file" || die "no class in $file"
  cat "$work/file" >"$file"
done

if "$check"; then
  diff -r "$here/generated" "$work/generated" ||
    die 'jextract/generated is not what this script, the headers and this jextract give'
else
  rm -rf "$here/generated"
  cp -R "$work/generated" "$here/generated"
fi
