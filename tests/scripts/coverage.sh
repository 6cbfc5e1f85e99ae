#!/bin/bash
# tests/scripts/coverage.sh [build folder] - how many lines and branches of core, ops and autograd the unit tests reach.
#
# Builds the tests with g++'s counters in a folder of their own (build-coverage), runs them once, on the emulated CUDA device where they ask for
# one, and lets tests/scripts/coverage.py read what gcov says. KASSETTE_COVERAGE_TESTS is a filter of tests; KASSETTE_COVERAGE_BUILD_ONLY=1
# stops before they run. Nothing here is a test of `kassette test`: the build alone takes some ten minutes on two cores.
set -euo pipefail
source=$(cd "$(dirname "$0")/../.." && pwd)
build=${1:-$source/build-coverage}
mkdir -p "$build"
build=$(cd "$build" && pwd)

# -O1: at -O0 the sweeps take an hour. Only the library is counted, whether ccache has made its paths relative or not.
folders='(core|ops|autograd)/'
flags="-O1 -DNDEBUG --coverage -fprofile-update=prefer-atomic '-fprofile-filter-files=^(\\.\\./)*$folders|^$source/$folders'"
cmake -S "$source" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG="$flags" -DCMAKE_CXX_COMPILER=g++ \
  -DKASSETTE_TESTS=ON -DKASSETTE_CUDA=OFF -DKASSETTE_NCCL=OFF -DKASSETTE_MPI=OFF -DKASSETTE_REPL=OFF -DKASSETTE_BENCHMARKS=OFF -DKASSETTE_EXAMPLES=OFF > "$build/configure.log"
ninja -C "$build" kassette_tests > "$build/build.log" || { tail -30 "$build/build.log"; exit 1; }
[ -z "${KASSETTE_COVERAGE_BUILD_ONLY-}" ] || exit 0

# The code of chains is threaded: without sibling calls, which start at -O2, each element of a large one stays on the stack.
ulimit -s 2000000 || echo "the stack cannot be 2 GB: a test of large chains will end the program" >&2
find "$build" -name '*.gcda' -delete
KASSETTE_TEST_CUDA=emulated "$build/tests/kassette_tests" "${KASSETTE_COVERAGE_TESTS:-~[slow]~[.]}" > "$build/tests.log" 2>&1 || tail -1 "$build/tests.log"
python3 "$source/tests/scripts/coverage.py" "$source" "$build"
