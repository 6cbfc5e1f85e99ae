#!/usr/bin/env bash
# tests/scripts/tidy.sh BUILD [--all] - clang-tidy 14 with the checks of .clang-tidy over the sources of the library and the tools that differ
# from main, or over all of them. Tests, benchmarks and examples are left out: they compare with `==` what `empty` would say, and clang 14 compiles not all of them.
# BUILD is a configured build folder; its compile_commands.json is made where it is missing.
set -euo pipefail
[ $# -ge 1 ] || { echo "usage: tests/scripts/tidy.sh BUILD [--all]"; exit 2; }
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
if [ "${2:-}" != --all ]; then
  base=$(git merge-base HEAD origin/main 2>/dev/null || git merge-base HEAD main)
  changed=$(git diff --name-only "$base" -- '*.cpp'; git ls-files --others --exclude-standard -- '*.cpp')
fi
# A vector source is compiled for each CPU level, and CUDA's for the host: once is enough.
python3 - "$build/compile_commands.json" "$PWD" ${2:+"$2"} <<PYTHON >"$work/files"
import json, sys
files = sorted({entry["file"] for entry in json.load(open(sys.argv[1]))})
changed = set("""$changed""".split())
for file in files:
    name = file.removeprefix(sys.argv[2] + "/")
    ours = name.split("/")[0] in ("core", "devices", "ops", "autograd", "nn_backend", "tools")
    if ours and name.endswith(".cpp") and ("--all" in sys.argv or name in changed):
        print(file)
PYTHON
# look FILE: what clang-tidy says of one source. Where it ends with an error and no finding (killed for want of memory, a crash of
# its own), the source's name is added to `again` and its last words to `words`.
look() {
  local out status=0
  out=$("$tool" -p "$build" --quiet "$1" 2>&1) || status=$?
  grep -E ': (warning|error): .*\]$' <<<"$out" >>"$work/found" && return
  [ $status = 0 ] || printf '%s\n' "$1" >>"$work/again"
  [ $status = 0 ] || printf '%s: exit %s: %s\n' "${1#"$PWD"/}" $status "$(tail -n 1 <<<"$out")" >>"$work/words"
}
export -f look
export tool build work
: >"$work/found"
: >"$work/again"
xargs -r -a "$work/files" -P "$(nproc)" -I FILE bash -c 'look FILE'
# Once more, one at a time, which takes the least memory.
mv "$work/again" "$work/alone"
: >"$work/again"
: >"$work/words"
while read -r file; do look "$file"; done <"$work/alone"
# A header is looked at with each source that includes it.
sort -u "$work/found"
sed 's/^/clang-tidy failed twice, not looked at: /' "$work/words"
findings=$(sort -u "$work/found" | wc -l)
files=$(wc -l <"$work/files")
failed=$(wc -l <"$work/again")
echo "$files files, $findings findings$([ "$failed" = 0 ] || echo ", $failed files not looked at")"
# A tool that crashes on a file says nothing about the file; one that crashes on all of them has checked nothing.
[ "$findings" = 0 ] && { [ "$failed" = 0 ] || [ "$failed" -lt "$files" ]; }
