#!/usr/bin/env bash
# tests/scripts/fuzz.sh [SECONDS [READER...]] - the readers of files under libFuzzer, address and undefined-behaviour
# sanitizers, SECONDS (60) each, all of them unless some are named. Takes clang and python3-numpy. Every run starts from
# tests/data/fuzz/FORMAT.npz, which holds a file an array; what is found in addition is in build/fuzz/corpus, and what fails
# in build/fuzz/READER-*.
# tests/scripts/fuzz.sh --keep - puts what widens the coverage of the readers back into tests/data/fuzz.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."
python=${KASSETTE_PYTHON:-/usr/bin/python3}  # of the system, which has python3-numpy
seconds=${1:-60}
shift || true
out=$PWD/build/fuzz
mkdir -p "$out/objects" "$out/corpus" tests/data/fuzz
cxx="${CXX:-clang++} -std=c++20 -O1 -g -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined -I. -Iinclude"

# The part of the library that readers reach: no kernels.
for source in core/*.cpp core/io/*.cpp devices/*.cpp devices/cpu/*.cpp nn_backend/configuration/settings.cpp nn_backend/configuration/trust.cpp; do
  object=$out/objects/$(tr / - <<<"${source%.cpp}").o
  [ "$object" -nt "$source" ] && [ -z "$(find include core devices nn_backend/configuration/settings.h nn_backend/configuration/trust.h -name '*.h' -newer "$object" -print -quit)" ] || echo "$source $object"
done | xargs -r -L1 -P"$(nproc)" bash -c "${cxx/fuzzer,/fuzzer-no-link,} -ftls-model=initial-exec -DKASSETTE_VERSION='\"fuzz\"' \
  -isystem /usr/include/x86_64-linux-gnu/openblas-pthread -c \$0 -o \$1"
$cxx -Wno-c99-designator tests/fuzz/reader.cpp "$out"/objects/*.o -o "$out/reader" -lopenblas -lspdlog -lfmt -lz -lpng -lpthread -ldl
declare -A formats
while read -r reader format; do formats[$reader]=$format; done < <(KASSETTE_READER=list "$out/reader")

# reader READER options...: its last lines.
reader() {
  (cd "$out" && KASSETTE_READER=$1 KASSETTE_LOG=off ASAN_OPTIONS=quarantine_size_mb=8:allocator_may_return_null=1 ./reader -timeout=10 -rss_limit_mb=256 -max_len=16384 \
    -artifact_prefix="$out/$1-" "${@:2}" 2>&1 | grep -vE '^#|NEW_FUNC|^INFO: (Loaded|Seed)' | tail -n 8)
}

if [ "$seconds" = --keep ]; then
  rm -rf "$out/kept"
  for name in "${!formats[@]}"; do
    format=${formats[$name]}
    mkdir -p "$out/kept/$format" "$out/small/$format"
    find "$out/corpus/$format" -type f -size -9 -exec cp -n {} "$out/small/$format" \;
    reader "$name" -merge=1 "kept/$format" "small/$format"
  done
  "$python" - "$out/kept" tests/data/fuzz <<'PYTHON'
import os, sys
import numpy
kept, data = sys.argv[1:]
for form in sorted(os.listdir(kept)):
    files = sorted((open(os.path.join(kept, form, name), "rb").read() for name in os.listdir(os.path.join(kept, form))),
                   key=lambda b: (len(b), b))
    numpy.savez_compressed(os.path.join(data, form), *(numpy.frombuffer(b, numpy.uint8) for b in files))
    print(f"{form}: {len(files)} files, {sum(map(len, files))} bytes")
PYTHON
  exit
fi

# What is there to start from: the corpus that was kept, and the tests' files.
"$python" - tests/data/fuzz "$out/corpus" <<'PYTHON'
import glob, os, sys
import numpy
data, corpus = sys.argv[1:]
for path in glob.glob(os.path.join(data, "*.npz")):
    folder = os.path.join(corpus, os.path.basename(path)[:-4])
    os.makedirs(folder, exist_ok=True)
    for name, file in numpy.load(path).items():
        file.tofile(os.path.join(folder, "kept_" + name))
PYTHON
readers=("$@")
[ ${#readers[@]} -gt 0 ] || readers=("${!formats[@]}")
for name in "${readers[@]}"; do
  format=${formats[$name]:-}
  [ -n "$format" ] || { echo "fuzz: no reader $name; there are ${!formats[*]}" >&2; exit 2; }
  mkdir -p "$out/corpus/$format"
  find tests/data/files -name "*.$format*" -size -64k -exec cp -n {} "$out/corpus/$format" \;
  echo "== $name, $seconds s"
  reader "$name" -max_total_time="$seconds" -print_final_stats=1 "corpus/$format"
done
