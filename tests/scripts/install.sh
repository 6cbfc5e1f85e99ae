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
  # Where the loader does not look by itself, the program says where the library is, if it was asked to.
  if "$work/with_pkg_config" 2>/dev/null; then
    echo "a program without an rpath finds the library; which one?"
    bad=1
  fi
  # shellcheck disable=SC2046  # flags are words
  PKG_CONFIG_PATH=$library/pkgconfig g++ -std=c++17 "$source_dir/tests/consumer/main.cpp" \
    $(PKG_CONFIG_PATH=$library/pkgconfig pkg-config --cflags --libs kassette) \
    $(PKG_CONFIG_PATH=$library/pkgconfig pkg-config --variable=rpath kassette) -o "$work/with_rpath"
  "$work/with_rpath" || {
    echo "the rpath of kassette.pc does not lead to the library"
    bad=1
  }
else
  echo "not tried with pkg-config, which is not here"
fi

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
