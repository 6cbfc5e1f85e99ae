#!/usr/bin/env bash
# tests/scripts/carry.sh [--emulated] BUILD TO - the tests and benchmarks of a build with every library that they need, for a machine that has a
# GPU and no packages: in the folder TO, or, where TO ends in .tar.xz, as one archive of at most 25 MiB. There, unpacked:
#
#   TO/gpu.sh right TO                   a question about the GPU in ten minutes: right, fast or why
#   TO/run kassette_tests '[device]'     some tests, on cuda:0
#   TO/run kassette_bench --device cuda:0 red
#   TO/run kassette_tests                all of them, in a copy of this source tree
#
# What is left to that machine: glibc and libstdc++ no older than those here, the CUDA driver, and cuBLAS of the version that
# libkassette_cuda.so was built with. Each architecture that this was built for takes room: -DKASSETTE_CUDA_ARCHITECTURES="80-real;90" is enough.
# With --emulated the emulated device (tests/emulated_cuda) goes in place of libkassette_cuda.so.
set -euo pipefail
emulated=
[ "${1:-}" != --emulated ] || { emulated=1; shift; }
[ $# = 2 ] || { sed -n '2,14s/^# \?//p' "$0" >&2; exit 2; }
most=$((25 << 20))
source=$(realpath "$(dirname "$(readlink -f "$0")")/../..")
build=$(realpath "$1")
[ -x "$build/tests/kassette_tests" ] || { echo "there are no tests in $build; ./kassette test builds them" >&2; exit 1; }
cuda=$build/lib/libkassette_cuda.so
[ ! "$emulated" ] || cuda=$build/tests/libkassette_emulated_cuda.so
[ -e "$cuda" ] || { echo "there is no $cuda" >&2; exit 1; }

archive=
to=$2
if [[ $to == *.tar.xz ]]; then
  command -v xz >/dev/null || { echo "an archive takes xz, which is missing: third_party/install.sh test" >&2; exit 1; }
  archive=$(realpath "$to")
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  to=$work/$(basename "$archive" .tar.xz)
fi
mkdir -p "$to/bin" "$to/lib" "$to/benchmarks/peers" "$to/source/tests"
to=$(realpath "$to")
for program in tests/kassette_tests benchmarks/kassette_bench; do
  [ ! -x "$build/$program" ] || install -s "$build/$program" "$to/bin"
done
install -s "$build/lib/$(readlink "$build/lib/libkassette.so")" "$to/lib"   # by its SONAME
install -s "$cuda" "$to/lib/libkassette_cuda.so"
[ ! "$emulated" ] || touch "$to/emulated"
git -C "$source" describe --always --dirty >"$to/version" 2>/dev/null || echo "not known" >"$to/version"
ldd "$build/tests/kassette_tests" | awk '$2 == "=>" && $3 ~ /^\// { print $3 }' |
  grep -Ev '/(libkassette|libc\.so|libm\.so|libstdc\+\+|libgcc_s|libpthread|libdl|ld-linux)' | xargs -I{} cp -L {} "$to/lib"
strip "$to"/lib/*
cp "$source/tests/scripts/gpu.sh" "$to"
cp "$source"/benchmarks/{timer,goals,report,device_table,kernel_table}.py "$to/benchmarks"
cp "$source/benchmarks/peers/torch_cuda_bench.py" "$to/benchmarks/peers"
cp -R "$source/tests/data" "$to/source/tests"

cat >"$to/run" <<'RUN'
#!/usr/bin/env bash
# run PROGRAM [argument...] - a program of bin/, or any other, that finds these libraries and the machine's CUDA.
here=$(dirname "$(readlink -f "$0")")
libraries=$here/lib
for folder in /usr/local/cuda*/lib64 /usr/local/cuda*/targets/*/lib /opt/*/.venv/lib/python3*/site-packages/nvidia/{cu13,cublas}/lib; do
  [ ! -d "$folder" ] || libraries+=:$folder
done
for folder in /usr/local/cuda*/bin /usr/local/cuda*/compute-sanitizer; do
  [ ! -d "$folder" ] || PATH+=:$folder
done
sources=$here/source
[ ! -d tests/data ] || sources=$PWD
unset OPENBLAS_CORETYPE
export LD_LIBRARY_PATH=$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} KASSETTE_TEST_SOURCES=${KASSETTE_TEST_SOURCES:-$sources}
PATH=$here/bin:$PATH exec "$@"
RUN
chmod +x "$to/run"

(cd "$to" && find . -type f -size +256k -printf '%9s  %P\n' | sort -k2 && du -sb . | awk '{ printf "%9d  bytes in all, unpacked\n", $1 }')
[ "$emulated" ] || sed -n 's/^KASSETTE_CUDA_LIST:[^=]*=/CUDA architectures: /p' "$build/CMakeCache.txt"
[ "$archive" ] || exit 0
tar -C "$work" -c "$(basename "$to")" | xz -T0 -6 >"$archive"
size=$(stat -c %s "$archive")
echo "$size  bytes in $archive; at most $most"
[ "$size" -le "$most" ] || { echo "$archive is larger than 25 MiB: build it for fewer architectures" >&2; exit 1; }
