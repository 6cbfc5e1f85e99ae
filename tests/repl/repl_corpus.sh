#!/usr/bin/env bash
# tests/repl/repl_corpus.sh SOURCE BUILD - thousands of lines at the prompt, most of them wrong: none ends or breaks the session.
set -euo pipefail
repl=$(realpath "$2")/tools/kassette_repl
if [ ! -x "$repl" ]; then
  echo "skipped: the REPL is not built; it needs clang 19's libraries and libedit (third_party/install.sh repl)"
  exit 77
fi
if ! command -v python3 >/dev/null; then
  echo "skipped: there is no python3"
  exit 77
fi
# A third of the cases; all of them, which takes some five minutes: tests/repl/repl_corpus.py build/tools/kassette_repl
exec python3 "$(realpath "$1")/tests/repl/repl_corpus.py" "$repl" --every 3
