#!/bin/bash
# tests/scripts/coverage.sh [build folder] - how many lines and branches of core, ops and autograd the unit tests reach.
#
# Builds the tests with g++'s counters in a folder of their own (build-coverage), runs them once, on the emulated CUDA device where they ask for
# one, then those of several ranks where MPI is there, and lets tests/scripts/coverage.py read what gcov says. KASSETTE_COVERAGE_TESTS is a filter
# of tests; KASSETTE_COVERAGE_BUILD_ONLY=1 stops before they run. Nothing here is a test of `kassette test`: the build alone takes some ten
# minutes on two cores.
set -euo pipefail
source=$(cd "$(dirname "$0")/../.." && pwd)
build=${1:-$source/build-coverage}
mkdir -p "$build"
build=$(cd "$build" && pwd)

# -O1: at -O0 the sweeps take an hour. Only the library is counted, whether ccache has made its paths relative or not.
folders='(core|ops|autograd)/'
flags="-O1 -DNDEBUG --coverage -fprofile-update=prefer-atomic '-fprofile-filter-files=^(\\.\\./)*$folders|^$source/$folders'"
cmake -S "$source" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG="$flags" -DCMAKE_CXX_COMPILER=g++ \
  -DKASSETTE_TESTS=ON -DKASSETTE_CUDA=OFF -DKASSETTE_NCCL=OFF -DKASSETTE_REPL=OFF -DKASSETTE_BENCHMARKS=OFF -DKASSETTE_EXAMPLES=OFF > "$build/configure.log"
ninja -C "$build" kassette_tests kassette_ranks_tests kassette_library > "$build/build.log" || { tail -30 "$build/build.log"; exit 1; }
[ -z "${KASSETTE_COVERAGE_BUILD_ONLY-}" ] || exit 0

# The code of chains is threaded: without sibling calls, which start at -O2, each element of a large one stays on the stack.
ulimit -s 2000000 || echo "the stack cannot be 2 GB: a test of large chains will end the program" >&2
find "$build" -name '*.gcda' -delete
KASSETTE_TEST_CUDA=emulated "$build/tests/kassette_tests" "${KASSETTE_COVERAGE_TESTS:-~[slow]~[.]}" > "$build/tests.log" 2>&1 || tail -1 "$build/tests.log"
if command -v mpirun > /dev/null && [ -e "$build/lib/libkassette_mpi.so" ]; then
  gpus=$build/gpus
  mkdir -p "$gpus"
  ln -sf "$build"/lib/libkassette.so* "$build/lib/libkassette_mpi.so" "$gpus"
  ln -sf "$build/tests/libkassette_emulated_cuda.so" "$gpus/libkassette_cuda.so"
  ln -sf "$build/tests/libkassette_emulated_cuda.so" "$gpus/libkassette_nccl.so"
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 KASSETTE_NUM_THREADS=1
  # on_ranks VARIABLE=VALUE...
  on_ranks() { env KASSETTE_RANKS_OVERLAP=1 "$@" mpirun -n 3 "$build/tests/kassette_ranks_tests" > "$build/ranks.log" 2>&1 || tail -3 "$build/ranks.log"; }
  on_ranks
  on_ranks LD_LIBRARY_PATH="$gpus" KASSETTE_RANKS_DEVICE=cuda
  on_ranks LD_LIBRARY_PATH="$gpus" KASSETTE_RANKS_DEVICE=cuda KASSETTE_NCCL=0
fi
python3 "$source/tests/scripts/coverage.py" "$source" "$build"
