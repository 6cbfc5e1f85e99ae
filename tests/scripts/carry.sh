#!/usr/bin/env bash
# tests/scripts/carry.sh BUILD TO - the tests and benchmarks of a build with every library that they need, in the folder TO, for a
# machine that has a GPU and no packages. There, in a copy of this source tree:
#
#   TO/run kassette_tests                everything, on cuda:0
#   TO/run kassette_tests '[device]'
#   TO/run kassette_bench small
#
# What is left to that machine: glibc and libstdc++ no older than those here, the CUDA driver, and cuBLAS of the version that
# libkassette_cuda.so was built with.
set -euo pipefail
[ $# = 2 ] || { sed -n '2,11s/^# \?//p' "$0" >&2; exit 2; }
build=$(realpath "$1")
mkdir -p "$2/bin" "$2/lib"
to=$(realpath "$2")
[ -x "$build/tests/kassette_tests" ] || { echo "there are no tests in $build; ./kassette test builds them" >&2; exit 1; }
for program in tests/kassette_tests benchmarks/kassette_bench; do
  [ ! -x "$build/$program" ] || install -s "$build/$program" "$to/bin"
done
install -s "$build"/lib/libkassette.so.0 "$to/lib"
[ ! -e "$build/lib/libkassette_cuda.so" ] || cp "$build/lib/libkassette_cuda.so" "$to/lib"
ldd "$build/tests/kassette_tests" | awk '$2 == "=>" && $3 ~ /^\// { print $3 }' |
  grep -Ev '/(libkassette|libc\.so|libm\.so|libstdc\+\+|libgcc_s|libpthread|libdl|ld-linux)' | xargs -I{} cp -L {} "$to/lib"

cat >"$to/run" <<'RUN'
#!/usr/bin/env bash
# run PROGRAM [argument...], from the top of the source tree.
here=$(dirname "$(readlink -f "$0")")
libraries=$here/lib
for folder in /usr/local/cuda*/lib64 /usr/local/cuda*/targets/*/lib /opt/*/.venv/lib/python3*/site-packages/nvidia/{cu13,cublas}/lib; do
  [ ! -d "$folder" ] || libraries+=:$folder
done
unset OPENBLAS_CORETYPE
export LD_LIBRARY_PATH=$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} KASSETTE_TEST_SOURCES=${KASSETTE_TEST_SOURCES:-$PWD}
exec "$here/bin/$1" "${@:2}"
RUN
chmod +x "$to/run"
du -sh "$to" | awk '{ print $1 " in " $2 }'
