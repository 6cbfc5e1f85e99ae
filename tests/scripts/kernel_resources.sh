#!/bin/sh
# tests/scripts/kernel_resources.sh BUILD [--write] - registers, stack and shared memory of every kernel for sm_90, by cuobjdump, against
# tests/data/kernel_resources.tsv; --write writes that. Fails where a kernel has a stack, which is where spilled registers go, unless
# kernel_resources.py knows why. Registers
# depend on the compiler: they are compared where it is the table's. Skips without libkassette_cuda.so or cuobjdump (CUOBJDUMP: another
# than the one in PATH or beside nvcc).
set -eu
build=$1
here=$(cd "$(dirname "$0")/../.." && pwd)
library=$(find "$build" -name 'libkassette_cuda.so*' -type f | head -n 1)
[ -n "$library" ] || { echo "skipped: no libkassette_cuda.so in $build"; exit 77; }
tool=${CUOBJDUMP:-$(command -v cuobjdump || ls /usr/local/cuda/bin/cuobjdump 2>/dev/null || true)}
[ -n "$tool" ] || { echo "skipped: no cuobjdump"; exit 77; }
release=$(sed -n 's/^set(CMAKE_CUDA_COMPILER_VERSION "\(.*\)")/\1/p' "$build"/CMakeFiles/*/CMakeCUDACompiler.cmake)
"$tool" --dump-resource-usage "$library" | c++filt | python3 "$here/tests/scripts/kernel_resources.py" "$here/tests/data/kernel_resources.tsv" "$release" "${2:-}"
