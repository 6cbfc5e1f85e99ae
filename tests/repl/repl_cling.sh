#!/usr/bin/env bash
# tests/repl/repl_cling.sh SOURCE BUILD - the golden sessions of tests/repl in real cling, where there is one: KASSETTE_PYTHON, or
# python3, has the package `root`. KASSETTE_TEST_CLING=fetch gets it by pip (248 MB, 590 MB unpacked) into BUILD/cling,
# once, within ten minutes; never unasked.
set -euo pipefail
command -v python3 >/dev/null || { echo "skipped: there is no python3"; exit 77; }
cling=$2/cling
if [ -z "${KASSETTE_PYTHON:-}" ] && [ "${KASSETTE_TEST_CLING:-}" = fetch ] && [ ! -e "$cling/whole" ]; then
  rm -rf "$cling"
  mkdir -p "$cling"
  if python3 -m venv "$cling" >"$cling.log" 2>&1 &&
    timeout "${KASSETTE_TEST_CLING_SECONDS:-600}" "$cling/bin/python" -m pip install -q --no-deps root==0.1a12 >>"$cling.log" 2>&1; then
    touch "$cling/whole"
  else
    echo "skipped: cling could not be fetched; $(tail -1 "$cling.log")"
    rm -rf "$cling"
    exit 77
  fi
fi
if [ -z "${KASSETTE_PYTHON:-}" ] && [ -e "$cling/whole" ]; then export KASSETTE_PYTHON=$cling/bin/python; fi
KASSETTE_BUILD=$2 exec python3 "$1/tests/repl/repl_cling.py" "$1/kassette" "$1"
