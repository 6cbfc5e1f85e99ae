#!/usr/bin/env bash
# tests/scripts/install.sh SOURCE BUILD - installs into an empty folder and builds tests/consumer
# against it with find_package and with pkg-config; no flag of ours reaches the consumer.
set -euo pipefail
source_dir=$(realpath "$1") build=$(realpath "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset KASSETTE_BUILD
bad=0

cmake --install "$build" --prefix "$work/prefix" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }

generator=$(sed -n 's/^CMAKE_GENERATOR:INTERNAL=//p' "$build/CMakeCache.txt")
cmake -G "$generator" -S "$source_dir/tests/consumer" -B "$work/consumer" -DCMAKE_PREFIX_PATH="$work/prefix" \
  -DCMAKE_EXPORT_COMPILE_COMMANDS=ON >"$work/log" 2>&1 &&
  cmake --build "$work/consumer" >>"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
"$work/consumer/consumer"
flags=$(grep '"command"' "$work/consumer/compile_commands.json" | sed -E 's/.*"command": "//; s/ -o .*//')
for flag in $flags; do
  case $flag in
    -I* | -isystem | /* | -std=*17 | *c++ | *g++ | *clang++ | ccache) ;;
    *)
      echo "the consumer is compiled with $flag"
      bad=1
      ;;
  esac
done

library=$(dirname "$(find "$work/prefix" -name libkassette.so)")
if command -v pkg-config >/dev/null; then
  # shellcheck disable=SC2046  # flags are words
  PKG_CONFIG_PATH=$library/pkgconfig g++ -std=c++17 "$source_dir/tests/consumer/main.cpp" \
    $(PKG_CONFIG_PATH=$library/pkgconfig pkg-config --cflags --libs kassette) -o "$work/with_pkg_config"
  LD_LIBRARY_PATH=$library "$work/with_pkg_config"
  # Where the loader does not look by itself, the program says where the library is, if it was asked to. There may be another kassette where it does.
  loaded() { LD_TRACE_LOADED_OBJECTS=1 "$1" | sed -n 's/.*libkassette\.so[^ ]* => \([^ ]*\) (.*/\1/p'; }
  if [[ $(loaded "$work/with_pkg_config") == "$library"/* ]]; then
    echo "a program finds the library without having asked for an rpath"
    bad=1
  fi
  # shellcheck disable=SC2046  # flags are words
  PKG_CONFIG_PATH=$library/pkgconfig g++ -std=c++17 "$source_dir/tests/consumer/main.cpp" \
    $(PKG_CONFIG_PATH=$library/pkgconfig pkg-config --cflags --libs kassette) \
    $(PKG_CONFIG_PATH=$library/pkgconfig pkg-config --variable=rpath kassette) -o "$work/with_rpath"
  "$work/with_rpath" && [[ $(loaded "$work/with_rpath") == "$library"/* ]] || {
    echo "the rpath of kassette.pc does not lead to the library"
    bad=1
  }
else
  echo "not tried with pkg-config, which is not here"
fi

# Within another project: its build type is its own, so that its asserts hold, and ours is optimised.
cat >"$work/CMakeLists.txt" <<CMAKE
cmake_minimum_required(VERSION 3.22)
project(parent LANGUAGES CXX)
add_executable(before app.cpp)
add_subdirectory("$source_dir" kassette EXCLUDE_FROM_ALL)
add_executable(after app.cpp)
CMAKE
printf '#include <cassert>\nint main() { assert(!"the asserts of the parent hold"); }\n' >"$work/app.cpp"
cmake -G "$generator" -S "$work" -B "$work/parent" -DKASSETTE_CUDA=OFF -DCMAKE_EXPORT_COMPILE_COMMANDS=ON >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
for target in before after; do
  cmake --build "$work/parent" --target $target >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
  if ("$work/parent/$target") 2>/dev/null; then
    echo "add_subdirectory switches off the asserts of the target $target"
    bad=1
  fi
done
[ -z "$(sed -n 's/^CMAKE_BUILD_TYPE:[A-Z]*=//p' "$work/parent/CMakeCache.txt")" ] || {
  echo "add_subdirectory sets the build type in the cache of its parent"
  bad=1
}
grep '"command".*core/tensor\.cpp' "$work/parent/compile_commands.json" | grep -q -- ' -O2 ' || {
  echo "kassette is not optimised within a project without a build type"
  bad=1
}

# The installed tool works without the clone.
export XDG_CACHE_HOME=$work/cache
"$work/prefix/bin/kassette" run "$source_dir/tests/consumer/main.cpp"
"$work/prefix/bin/kassette" info >/dev/null
[ "$("$work/prefix/bin/kassette" --version)" = "$("$source_dir/kassette" --version)" ] || {
  echo "the installed tool has another version"
  bad=1
}
"$work/prefix/bin/kassette" test 2>/dev/null && bad=1
exit $bad
