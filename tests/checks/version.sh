#!/usr/bin/env bash
# tests/checks/version.sh SOURCE - the version is the same wherever it is written. CMakeLists.txt has it; the rest is compared with that.
set -euo pipefail
cd "$1"
version=$(sed -n 's/^project(kassette VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
[ -n "$version" ] || { echo "CMakeLists.txt: project(kassette VERSION ...) is not there"; exit 1; }
bad=0
# agrees FILE WHAT: WHAT is the version that FILE has.
agrees() {
  [ "$2" = "$version" ] || { echo "$1 has version '$2', CMakeLists.txt has $version"; bad=1; }
}
agrees python/pyproject.toml "$(sed -n 's/^version = "\(.*\)"/\1/p' python/pyproject.toml)"
agrees docs/api/version.md "$(sed -n '/^```text/{n;p}' docs/api/version.md)"
agrees "the first entry of CHANGELOG.md" "$(sed -n 's/^## \([0-9.]*\).*/\1/p' CHANGELOG.md | head -n 1)"
# The library's package is named by the minor release.
minor=${version%.*}
[ "$(grep -oE 'libkassette(-mpi|-cuda)?[0-9][0-9.]*' docs/installation.md | sort)" = "$(printf 'libkassette%s\nlibkassette-cuda%s\nlibkassette-mpi%s\n' "$minor" "$minor" "$minor" | sort)" ] ||
  { echo "docs/installation.md names the Debian packages of another release than $minor"; bad=1; }
[ $bad = 0 ] && echo "version $version in 5 files"
exit $bad
