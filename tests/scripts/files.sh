#!/usr/bin/env bash
# tests/scripts/files.sh SOURCE BUILD - files to and from NumPy as it is on this machine, and safetensors and
# Pillow where they are.
set -euo pipefail
source_dir=$(realpath "$1") build=$(realpath "$2")
python=
for candidate in ${KASSETTE_PYTHON:-} python3 /usr/bin/python3; do
  "$candidate" -c 'import numpy' 2>/dev/null && python=$candidate && break
done
if [ -z "$python" ]; then
  echo "skipped: there is no python3 with numpy"
  exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$python" -c 'import numpy; print("numpy", numpy.__version__)'
"$python" "$source_dir/tests/data/files/make.py" "$work/theirs"
KASSETTE_FILES=$work/theirs "$build/tests/kassette_tests" "[io]" | tail -n 3
mkdir "$work/ours"
KASSETTE_FILES=$work/ours "$build/tests/kassette_tests" "[.write_files]" | tail -n 2
"$python" "$source_dir/tests/data/files/make.py" --check "$work/ours"
