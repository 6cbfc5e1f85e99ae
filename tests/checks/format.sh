#!/usr/bin/env bash
# tests/checks/format.sh [--apply] - whether the C++ of the tree is as clang-format 14 writes it, by .clang-format; --apply has it so. Other versions
# differ in a line of a hundred, so that one decides: KASSETTE_CLANG_FORMAT names it where it is neither clang-format-14 nor clang-format.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."
wanted=14
for tool in "${KASSETTE_CLANG_FORMAT:-}" clang-format-$wanted clang-format; do
  [ -n "$tool" ] && command -v "$tool" >/dev/null && "$tool" --version | grep -q "version $wanted\." && break
  tool=
done
[ -n "$tool" ] || { echo "skipped: there is no clang-format $wanted"; exit 77; }
git rev-parse --git-dir >/dev/null 2>&1 || { echo "skipped: not a git checkout"; exit 77; }
files() { git ls-files -z '*.cpp' '*.h' '*.cu' '*.cuh'; }
jobs=$(nproc)
if [ "${1:-}" = --apply ]; then
  files | xargs -0 -P "$jobs" -n 40 "$tool" -i
  git diff --shortstat
  exit 0
fi
work=$(mktemp)
trap 'rm -f "$work"' EXIT
# One complaint a line that is not as it should be; a file is named once.
files | xargs -0 -P "$jobs" -n 40 "$tool" --dry-run 2>"$work" || true
sed -n 's/^\(.*\):[0-9]*:[0-9]*: warning: .*clang-format-violations.*/\1/p' "$work" | sort | uniq -c | sort -rn | sed 's/^ *\([0-9]*\) \(.*\)/\2: \1 places/'
count=$(grep -c 'clang-format-violations' "$work" || true)
echo "$(files | tr -cd '\0' | wc -c) files, $count places that clang-format $wanted would change; tests/checks/format.sh --apply changes them"
[ "$count" = 0 ]
