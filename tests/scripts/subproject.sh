#!/usr/bin/env bash
# tests/scripts/subproject.sh SOURCE BUILD - builds the library whole within other projects, by add_subdirectory and by FetchContent, and
# runs tests/consumer there. Minutes: only with KASSETTE_TEST_SUBPROJECT=1, as .ci/nightly has it.
set -euo pipefail
source_dir=$(realpath "$1") build=$(realpath "$2")
[ "${KASSETTE_TEST_SUBPROJECT:-}" = 1 ] || { echo "skipped: it builds the library once more; KASSETTE_TEST_SUBPROJECT=1 runs it"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
generator=$(sed -n 's/^CMAKE_GENERATOR:INTERNAL=//p' "$build/CMakeCache.txt")
cp "$source_dir/tests/consumer/main.cpp" "$work"

# try NAME TEXT: configures, builds and runs a project that brings kassette in by TEXT. FetchContent finds the objects that the first has built.
try() {
  cat >"$work/CMakeLists.txt" <<CMAKE
cmake_minimum_required(VERSION 3.22)
project(parent LANGUAGES CXX)
$2
add_executable(consumer main.cpp)
target_link_libraries(consumer PRIVATE kassette::kassette)
CMAKE
  cmake -G "$generator" -S "$work" -B "$work/build" -DKASSETTE_CUDA=OFF >"$work/log" 2>&1 &&
    cmake --build "$work/build" --target consumer >>"$work/log" 2>&1 || { tail -n 40 "$work/log"; echo "$1: no build"; exit 1; }
  "$work/build/consumer"
  echo "$1: built and run"
}
try add_subdirectory "add_subdirectory(\"$source_dir\" _deps/kassette-build EXCLUDE_FROM_ALL)"
rm "$work/build/CMakeCache.txt" "$work/build/consumer"
try FetchContent "include(FetchContent)
FetchContent_Declare(kassette SOURCE_DIR \"$source_dir\")
FetchContent_MakeAvailable(kassette)"
