#!/usr/bin/env bash
# tests/checks/commits.sh - whether the subjects of commits have at most 72 characters, since this was made a rule. A shallow clone shows the last one alone.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."
git rev-parse --git-dir >/dev/null 2>&1 || { echo "skipped: not a git checkout"; exit 77; }
since=c45b0b9bbb6015c948db5dbc85c87f9faa0fad98
range=(-1)
! git cat-file -e "$since^{commit}" 2>/dev/null || range=("$since..HEAD")
git log --no-merges --format='%h %s' "${range[@]}" | awk '
  { subject = substr($0, index($0, " ") + 1); ++all; if (length(subject) > 72) { print "longer than 72 characters: " $0; ++bad } }
  END { print all + 0 " commits, " bad + 0 " subjects that are too long"; exit bad > 0 }'
