#!/usr/bin/env bash
# tests/scripts/fuzz.sh [SECONDS [READER...]] - the readers of files under libFuzzer, address and undefined-behaviour
# sanitizers, SECONDS (60) each. Takes clang. The corpus is kept in build/fuzz/corpus; what fails is left in
# build/fuzz/READER-*, and belongs into tests/data/fuzz, from where every run starts.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."
seconds=${1:-60}
shift || true
declare -A calls=(
  [npy]='load_npy(path)' [npy_mapped]='load_npy(path, {.mmap = true})'
  [npz]='load_npz(path)' [npz_mapped]='load_npz(path, {.mmap = true})'
  [safetensors]='load_safetensors(path)' [safetensors_mapped]='load_safetensors(path, {.mmap = true})'
  [csv]='load_csv(path)' [csv_int]='load_csv(path, {.dtype = int8, .skip_rows = 1})'
  [idx]='load_idx(path)' [png]='load_png(path)')
readers=("$@")
[ ${#readers[@]} -gt 0 ] || readers=("${!calls[@]}")
out=$PWD/build/fuzz
mkdir -p "$out/objects"
cxx="${CXX:-clang++} -std=c++20 -O1 -g -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined -I. -Ibuild/include"

# The part of the library that readers reach: no kernels.
for source in core/*.cpp core/io/*.cpp devices/*.cpp devices/cpu/*.cpp; do
  object=$out/objects/$(tr / - <<<"${source%.cpp}").o
  [ "$object" -nt "$source" ] && [ -z "$(find core devices -name '*.h' -newer "$object" -print -quit)" ] || echo "$source $object"
done | xargs -r -L1 -P"$(nproc)" bash -c "${cxx/fuzzer,/fuzzer-no-link,} -ftls-model=initial-exec -DKASSETTE_VERSION='\"fuzz\"' \
  -isystem /usr/include/x86_64-linux-gnu/openblas-pthread -c \$0 -o \$1"
for reader in "${readers[@]}"; do
  [ -n "${calls[$reader]:-}" ] || { echo "fuzz: no reader $reader; there are ${!calls[*]}" >&2; exit 2; }
  $cxx "-DKASSETTE_FUZZ_CALL=${calls[$reader]}" tests/fuzz/reader.cpp "$out"/objects/*.o -o "$out/$reader" \
    -lopenblas -lspdlog -lfmt -lz -lpng -lpthread -ldl
  mkdir -p "$out/corpus/$reader"
  kind=${reader%_*}
  find tests/data/files tests/data/fuzz -name "*.$kind*" -size -64k -exec cp -n {} "$out/corpus/$reader" \; 2>/dev/null || true
  [ "$kind" != csv ] || printf 'a,b\n1,2.5\n"3", # x\n,nan\n-1e400;4\n' >"$out/corpus/$reader/seed"
  echo "== $reader, $seconds s"
  # 2 GB: the sanitizer's own quarantine included.
  (cd "$out" && KASSETTE_LOG=off "./$reader" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -max_len=65536 \
    -artifact_prefix="$out/$reader-" -print_final_stats=1 "corpus/$reader" 2>&1 | grep -vE '^#|NEW_FUNC|^INFO: (Loaded|Seed)' | tail -n 8)
done
