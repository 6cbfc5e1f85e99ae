#!/usr/bin/env bash
# tests/checks/tidy.sh BUILD [--all | --library] - clang-tidy 14 with the checks of .clang-tidy over the sources that differ from main, over all that BUILD
# compiles, or over those of the library and its tools.
# tests/checks/tidy.sh BUILD --python PYTHON - over python/src, with the headers of Python, and those of nanobind and NumPy that PYTHON has.
# BUILD is a configured build folder; its compile_commands.json is made where it is missing.
set -euo pipefail
[ $# -ge 1 ] || { echo "usage: tests/checks/tidy.sh BUILD [--all | --library | --python PYTHON]"; exit 2; }
build=$(realpath "$1")
cd "$(dirname "$(readlink -f "$0")")/../.."
for tool in clang-tidy-14 clang-tidy; do
  command -v $tool >/dev/null && $tool --version | grep -q 'version 14\.' && break
  tool=
done
[ -n "$tool" ] || { echo "skipped: there is no clang-tidy 14"; exit 77; }
[ -e "$build/compile_commands.json" ] || cmake -DCMAKE_EXPORT_COMPILE_COMMANDS=ON "$build" >/dev/null
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
changed=
if [ "${2:-}" = --python ]; then
  flags=$("$3" -c 'import nanobind, numpy, sysconfig
print("-std=c++20 -Wall -Wextra", *("-isystem " + f for f in (numpy.get_include(), nanobind.include_dir(), sysconfig.get_path("include"))))')
  flags="-- $flags -I$PWD/include"
elif [ "${2:-}" != --all ] && [ "${2:-}" != --library ]; then
  base=$(git merge-base HEAD origin/main 2>/dev/null || git merge-base HEAD main)
  changed=$(git diff --name-only "$base" -- '*.cpp'; git ls-files --others --exclude-standard -- '*.cpp')
fi
# A vector source is compiled for each CPU level, and CUDA's for the host: once is enough.
if [ "${2:-}" = --python ]; then
  printf '%s\n' python/src/*.cpp >"$work/files"
else
  python3 - "$build/compile_commands.json" "$PWD" ${2:+"$2"} <<PYTHON >"$work/files"
import json, sys
files = sorted({entry["file"] for entry in json.load(open(sys.argv[1]))})
changed = set("""$changed""".split())
for file in files:
    name = file.removeprefix(sys.argv[2] + "/")
    ours = not name.startswith(("build", "/"))
    library = name.startswith(("include/", "core/", "devices/", "ops/", "autograd/", "nn_backend/", "tools/"))
    if ours and name.endswith(".cpp") and ("--all" in sys.argv or "--library" in sys.argv and library or name in changed):
        print(file)
PYTHON
fi
status=0
# clang knows not all of g++'s warnings, and with -Werror that would be an error. It also says that a local variable shadows what a test uses of a namespace.
xargs -r -a "$work/files" -P "$(nproc)" -I '{}' "$tool" -p "$build" --quiet --extra-arg=-Wno-unknown-warning-option --extra-arg=-Wno-shadow '{}' ${flags:-} >"$work/out" 2>"$work/err" || status=1
# A header is looked at with each source that includes it.
grep -E ': (warning|error): .*\]$' "$work/out" | sort -u >"$work/found" || true
cat "$work/found"
echo "$(wc -l <"$work/files") files, $(wc -l <"$work/found") findings"
if [ $status != 0 ] && [ ! -s "$work/found" ]; then
  echo "clang-tidy failed without a finding:"
  cat "$work/out" "$work/err" | grep -v 'warnings generated' | tail -n 5
fi
exit $status
