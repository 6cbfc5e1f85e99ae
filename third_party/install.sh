#!/usr/bin/env bash
# third_party/install.sh - installs what kassette needs from the system's packages.
#
#   third_party/install.sh build         what building and running takes
#   third_party/install.sh build test    and what the tests take
#   third_party/install.sh build repl    and what the REPL takes (0.7 GB)
#   third_party/install.sh --list        the table
#
# Says what is missing and why, asks nothing, and does nothing where all is there. Names are those of
# Debian 12, Debian 13 and Ubuntu 24.04.
set -euo pipefail

# group | how to see that it is there | Debian package | version wanted | reason
table='
build | cmd c++ g++ clang++               | g++                     | 12     | compiles kassette and your scripts
build | cmd cmake                         | cmake                   | 3.22   | configures the build
build | cmd ninja make                    | ninja-build             | any    | runs the build
build | header openblas_config.h          | libopenblas-pthread-dev | 0.3.20 | matrix products on the CPU; its pthread flavour, as we run it on one thread a call
build | header xsimd/xsimd.hpp            | libxsimd-dev            | 8.1    | vector instructions of the CPU
build | header spdlog/spdlog.h            | libspdlog-dev           | 1.9    | the log behind KASSETTE_LOG
build | header nlohmann/json.hpp          | nlohmann-json3-dev      | 3.10   | reads keras.json, the configuration that Keras in Python has too
build | header zlib.h                     | zlib1g-dev              | 1.2.9  | compressed files: npz, IDX within gzip
build | header png.h                      | libpng-dev              | 1.6    | reads and writes PNG pictures
test  | header catch2/catch.hpp catch2/catch_all.hpp | catch2       | 2.13   | the test framework, version 2 or 3
test  | header xtensor/xarray.hpp         | libxtensor-dev          | 0.24   | reference results, and <kassette/xtensor.h>
test  | header dlpack/dlpack.h            | libdlpack-dev           | 0.6    | the layout of the structs of DLPack, to compare with ours
test  | python numpy                      | python3-numpy           | 1.24   | files are written and read by NumPy, to compare
docs  | cmd mkdocs                        | mkdocs                  | 1.4    | the documentation as HTML, with search that needs no server
docs  | python pygments                   | python3-pygments        | 2.14   | colours in its code
package | cmd dpkg-shlibdeps              | dpkg-dev                | any    | finds what the Debian packages depend on
package | cmd file                      | file                    | any    | tells it the programs from the rest
repl  | header clang/Interpreter/PartialTranslationUnit.h | libclang-19-dev | 19 | runs the lines that are typed at the prompt; on Ubuntu 24.04 in noble-updates
repl  | header llvm/IR/Module.h           | llvm-19-dev             | 19     | what it makes code with
repl  | header histedit.h                 | libedit-dev             | 3.1    | the line that is typed: history, Tab
ci    | cmd pkg-config                    | pkgconf                 | any    | the pkg-config file is tested with it
ci    | cmd clang++                       | clang                   | 14     | a second compiler for headers and library
ci    | cmd clang-repl-19 clang-repl      | clang-tools-19          | 19     | the header budget in an interpreter
'

say() { printf '%s\n' "$*" >&2; }

# present "cmd a b", "header a b" or "python a b" (modules): one of them is enough.
present() {
  local kind=$1 name dir python
  shift
  for name in "$@"; do
    if [ "$kind" = cmd ]; then
      command -v "$name" >/dev/null 2>&1 && return 0
    elif [ "$kind" = python ]; then
      # The distribution puts modules beside its own python3, which need not be the first one found.
      for python in python3 /usr/bin/python3; do
        "$python" -c "import $name" >/dev/null 2>&1 && return 0
      done
    else
      for dir in $include_dirs; do
        [ -e "$dir/$name" ] && return 0
      done
    fi
  done
  return 1
}

include_dirs="/usr/include /usr/local/include"
include_dirs+=" /usr/lib/llvm-19/include"
for dir in /usr/include/*/openblas-pthread /usr/include/openblas* /usr/include/*-linux-gnu*; do
  [ -d "$dir" ] && include_dirs+=" $dir"
done
IFS=':' read -ra given <<<"${CPATH:-}:${CPLUS_INCLUDE_PATH:-}"
for dir in "${given[@]}"; do
  [ -n "$dir" ] && include_dirs+=" $dir"
done
IFS=':;' read -ra given <<<"${CMAKE_PREFIX_PATH:-}"
for dir in "${given[@]}"; do
  [ -n "$dir" ] && include_dirs+=" $dir/include"
done

if [ "${1:-}" = --list ]; then
  printf '%s' "$table" | sed '/^$/d'
  exit 0
fi

missing=()
reasons=()
while IFS='|' read -r group probe package version reason; do
  group=${group// /}
  [ -n "$group" ] || continue
  [[ " $* " == *" $group "* ]] || continue
  # shellcheck disable=SC2086  # a probe is a list of words
  present $probe && continue
  missing+=("${package// /}")
  reasons+=("$(printf '  %-24s %s' "${package// /}" "${reason# }")")
done <<<"$table"
[ ${#missing[@]} -gt 0 ] || exit 0

say "kassette needs ${#missing[@]} package(s) that are not on this machine:"
for reason in "${reasons[@]}"; do say "$reason"; done

if ! command -v apt-get >/dev/null 2>&1; then
  say "kassette: there is no apt-get here; install the like of these with your package manager, then try again"
  exit 1
fi
become=
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null 2>&1; then
    say "kassette: neither root nor sudo; run as root:  apt-get install ${missing[*]}"
    exit 1
  fi
  become=sudo
  # Off a terminal nobody could answer a question for the password.
  [ -t 0 ] || become="sudo -n"
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
apt() {
  $become env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300 "$@" \
    </dev/null >"$log" 2>&1 && return
  cat "$log" >&2
  say "kassette: \`apt-get $*\` failed; to do it by hand:  apt-get install ${missing[*]}"
  exit 1
}
say "installing: ${missing[*]}"
apt update
# What only CI wants may be absent from a distribution; the tests that use it say that they skip.
wanted=()
for package in "${missing[@]}"; do
  if [ -n "$(apt-cache -q policy "$package" 2>/dev/null | sed -n 's/^ *Candidate: (none)$//p; s/^ *Candidate: //p')" ]; then
    wanted+=("$package")
  else
    say "  $package is not in this distribution; going on without it"
  fi
done
[ ${#wanted[@]} -eq 0 ] || apt install --no-install-recommends "${wanted[@]}"
say "installed"
