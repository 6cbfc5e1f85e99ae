#!/usr/bin/env bash
# tests/checks/public_headers.sh SOURCE BUILD - the rules for public headers: what they may include
# and define, and that each parses alone in C++17 and C++20 with g++ and clang.
set -euo pipefail
include=$(realpath "$1")/include
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0
complain() {
  echo "$*"
  bad=1
}

# Heavier headers, included only by those who ask for them.
opt_in=' testing.h xtensor.h io.h repl.h prompt.h cling.h external_backend.h inspect.h profile.h '
light=()
all=()
while IFS= read -r header; do
  header=${header#"$include/"}
  [[ $header =~ ^kassette/(comforts|engine)\.h$ ]] && continue   # old names of headers, which say so whenever they are included
  all+=("$header")
  [[ $opt_in == *" ${header#kassette/} "* ]] || light+=("$header")
done < <(find -L "$include/kassette" -name '*.h' | sort)

cd "$include"
for header in "${all[@]}"; do
  guard=$(awk '!/^ *(\/\/.*)?$/ { print; exit }' "$header")
  [[ $guard == '#ifndef KASSETTE_'* ]] ||
    complain "$header: no include guard; \`#pragma once\` fails when it is reached by two paths"
  grep -nE '^ *# *include *"' "$header" | sed "s|^|$header:|" | grep . &&
    complain "$header: a public header includes <kassette/...>, not files of the repository"
  grep -nE '\bthread_local\b|\bcall_once\b' "$header" | grep -vE '^[0-9]+: *//' | sed "s|^|$header:|" | grep . &&
    complain "$header: no thread_local or call_once; interpreters cannot link them"
  grep -nE '//.*[Ss]pecification[^.]* [0-9]' "$header" | sed "s|^|$header:|" | grep . &&
    complain "$header: users do not have the specification; say what it says"
done

# Whatever prints has its place in repl.h: show() for our prompt and clang's, printValue() for cling's.
for type in $(grep -RhoE 'operator<<\(std::ostream& os, (const )?\w+&? ' kassette/ | sed -E 's/.*os, (const )?(\w+).*/\2/' | sort -u); do
  grep -qE "show\((const )?(\w+::)?$type&? value" kassette/repl.h || complain "repl.h: no show() for $type, which has operator<<"
  grep -qE "printValue\(const (\w+::)*$type\* value\)" kassette/repl.h || complain "repl.h: no cling::printValue for $type, which has operator<<"
done

# What the light headers reach, through others as well.
for header in "${light[@]}"; do printf '#include <%s>\n' "$header"; done >"$work/light.cpp"
g++ -std=c++17 -I. -M "$work/light.cpp" | tr -s ' \\' '\n\n' >"$work/reached"
for name in string functional memory iostream ostream vector sstream map unordered_map thread mutex future \
  algorithm xsimd.hpp cblas.h spdlog.h cuda_runtime.h immintrin.h; do
  grep -E "/c\+\+/[0-9]+/$name\$|/(xsimd|xtensor|spdlog|include|openblas-pthread)/$name\$" "$work/reached" &&
    complain "public headers reach <$name>"
done

# Inline functions may hold no static, and no inline variable may hold state: an interpreter and the
# library would each have their own.
g++ -std=c++17 -I. -O0 -fkeep-inline-functions -c "$work/light.cpp" -o "$work/light.o"
nm -C "$work/light.o" | awk '$2 ~ /^[bBdDuVv]$/' |
  grep -vE ' (vtable|typeinfo|typeinfo name|VTT|construction vtable) |DW\.ref|std::|__gnu_cxx' | grep . &&
  complain "public headers hold state"
nm "$work/light.o" | grep -E ' _ZGV| _GLOBAL__' | grep . &&
  complain "public headers initialise something when a program starts"

# Each by itself brings the exceptions, and the macros of X11 and of <complex.h> do not break it.
macros='None 0L:Bool int:Status int:True 1:False 0:Success 0:Always 2:Above 0:Complex 0:Convex 2:Unsorted 0:CursorShape 0'
for header in "${all[@]}"; do
  case $header in
    # No part of the API, for a prompt, without anything that throws, or over a library that <complex.h> breaks.
    */version.h | */export.h | */none.h | */cling.h | */prompt.h | */interrupt.h | */show_config.h | */xtensor.h) continue ;;
  esac
  {
    printf '#include <complex.h>\n'
    tr : '\n' <<<"$macros" | sed 's/^/#define /'
    printf '#include <%s>\nvoid f(const kassette::Error& e);\n' "$header"
  } >"$work/one.cpp"
  g++ -std=gnu++17 -I. -Wall -Wextra -Werror -fsyntax-only "$work/one.cpp" || complain "$header alone, behind X11's macros, does not parse or lacks kassette::Error"
done
cat >"$work/one.cpp" <<'CPP'
#define None 0L
#include <kassette/backend.h>
#define None 0L
#include <kassette/io.h>
unsigned long of_x11(unsigned long window = None);
kassette::Tensor ours() { return kassette::backend::placeholder({kassette::backend::None, 2}); }
CPP
g++ -std=c++17 -I. -Wall -Wextra -Werror -fsyntax-only "$work/one.cpp" || complain "X11's None, before and between our headers, is not kept or breaks them"

for compiler in g++ clang++; do
  if ! command -v $compiler >/dev/null; then
    echo "not tried with $compiler, which is not here"
    continue
  fi
  for standard in 17 20; do
    for header in "${light[@]}"; do printf '#include <%s>\n#include <%s>\n' "$header" "$header" >"$work/one.cpp"
      $compiler -std=c++$standard -I. -Wall -Wextra -Wshadow -Werror -fsyntax-only "$work/one.cpp" ||
        complain "$header does not parse alone with $compiler -std=c++$standard"
    done
  done
done
exit $bad
