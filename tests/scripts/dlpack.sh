#!/usr/bin/env bash
# tests/scripts/dlpack.sh SOURCE BUILD - tensors to and from NumPy in one process, by DLPack.
set -euo pipefail
source_dir=$(realpath "$1") build=$(realpath "$2")
python=
for candidate in ${KASSETTE_PYTHON:-} python3 /usr/bin/python3; do
  "$candidate" -c 'import numpy; numpy.from_dlpack' 2>/dev/null && python=$candidate && break
done
if [ -z "$python" ]; then
  echo "skipped: there is no python3 with a numpy that knows DLPack"
  exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"${CXX:-g++}" -std=c++20 -O1 -shared -fPIC -I"$source_dir/include" "$source_dir/tests/scripts/dlpack.cpp" \
  -o "$work/shim.so" -L"$build/lib" -lkassette -Wl,-rpath,"$build/lib"
"$python" "$source_dir/tests/scripts/dlpack.py" "$work/shim.so"
