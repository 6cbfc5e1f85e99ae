#!/usr/bin/env bash
# tests/scripts/third_party.sh SOURCE BUILD - what third_party/install.sh counts as present, the build finds: neither
# takes the reference BLAS for OpenBLAS or an old xsimd for the one that is wanted.
set -euo pipefail
source_dir=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset CMAKE_PREFIX_PATH CPATH CXX
bad=0
complain() {
  printf '%s\n' "$*"
  bad=1
}

rows=$(grep -cE '^[a-z]+ *\|.*\|.*\|.*\|' "$source_dir/third_party/packages.txt")
listed=$("$source_dir/third_party/install.sh" --list | wc -l)
[ "$rows" = "$listed" ] || complain "the table of packages: $rows rows, and --list shows $listed"

missing() {  # missing "what" "package" [cmake options]: what the installer says is missing, and the build
  local got options="$3" status=0
  rm -rf "$work/asking" "$work/build/CMakeCache.txt"
  got=$(KASSETTE_BUILD=$work/asking KASSETTE_CMAKE_OPTIONS="$options" "$source_dir/third_party/install.sh" --missing build | tr '\n' ' ') || true
  [[ -n "$2" && " $got" == *" $2 "* || "$got" = "$2" ]] || complain "$1: the installer misses \"$got\", not \"$2\""
  # shellcheck disable=SC2086  # options are words
  env -u CPATH cmake -S "$source_dir" -B "$work/build" -DCMAKE_CXX_COMPILER_WORKS=1 -DKASSETTE_CUDA=OFF -DKASSETTE_TESTS=OFF -DKASSETTE_REPL=OFF $options >"$work/log" 2>&1 || status=$?
  if [ -z "$2" ]; then
    [ $status = 0 ] || complain "$1: configuring fails: $(cat "$work/log")"
  else
    # CMake breaks the lines of an error.
    [[ $status = 1 && $(tr -s ' \n' ' ' <"$work/log") == *"apt-get install "*"$2"*"; elsewhere"* ]] || complain "$1: configuring does not name $2: $(cat "$work/log")"
  fi
}
chosen() { readlink -f "$work/build/third_party/include/$1"; }

missing "all is here" "" ""
! grep -q untested "$work/log" || complain "a warning on $(uname -m): $(cat "$work/log")"
xsimd=$(dirname "$(chosen xsimd)") blas=$(dirname "$(chosen cblas.h)")

missing "another architecture" "" "-DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=riscv64"
[[ $(tr -s ' \n' ' ' <"$work/log") == *"on riscv64 it compiles plain C++ and is untested"* && $(grep -c 'CMake Warning' "$work/log") = 1 ]] ||
  complain "configuring for another architecture prints: $(cat "$work/log")"

mkdir -p "$work/old/include/xsimd/config" "$work/reference" "$work/other/include" "$work/other/lib"
echo >"$work/old/include/xsimd/xsimd.hpp"
printf '#define XSIMD_VERSION_MAJOR 7\n#define XSIMD_VERSION_MINOR 6\n' >"$work/old/include/xsimd/config/xsimd_config.hpp"
missing "an old xsimd first" "" "-DCMAKE_PREFIX_PATH=$work/old"
[ "$(chosen xsimd)" = "$xsimd/xsimd" ] || complain "an old xsimd first: the build takes $(chosen xsimd)"
missing "only an old xsimd" "libxsimd-dev" "-DCMAKE_PREFIX_PATH=$work/old -DCMAKE_IGNORE_PATH=$xsimd"

# The reference BLAS has a cblas.h; conda puts one where compilers look first.
echo 'double cblas_ddot(int, const double*, int, const double*, int);' >"$work/reference/cblas.h"
folders=$(find /usr/include /usr/local/include -maxdepth 3 -name openblas_config.h -printf '%h;' 2>/dev/null)$blas
missing "only the reference BLAS" "libopenblas-pthread-dev" "-DCMAKE_IGNORE_PATH=$folders -DCMAKE_INCLUDE_PATH=$work/reference"
CPATH=$work/reference missing "the reference BLAS in CPATH" "" ""
CPATH=$work/reference missing "only that of CPATH" "libopenblas-pthread-dev" "-DCMAKE_IGNORE_PATH=$folders"
rm "$work/build/CMakeCache.txt"
CPATH=$work/reference cmake -S "$source_dir" -B "$work/build" -DKASSETTE_CUDA=OFF >"$work/log" 2>&1 && complain "the build takes another cblas.h from CPATH"
[[ $(tr -s ' \n' ' ' <"$work/log") == *"CPATH puts $work/reference/cblas.h before what was found; unset CPATH"* ]] || complain "CPATH is not named: $(cat "$work/log")"

# A library of that name without OpenBLAS in it.
cp "$blas"/{cblas,openblas_config}.h "$work/other/include"
echo 'extern "C" void cblas_dgemm() {}' | g++ -x c++ -shared -fPIC - -o "$work/other/lib/libopenblas.so"
missing "an empty libopenblas" "libopenblas-pthread-dev" "-DCMAKE_IGNORE_PATH=$folders -DCMAKE_PREFIX_PATH=$work/other"

# An installation, with an apt-get of ours: Ctrl-C lets it finish, and one that was cut short is mended.
mkdir "$work/bin"
cat >"$work/bin/apt-get" <<SH
#!/bin/bash
case " \$* " in
  *" -s "*) echo "Inst kassette-trial" ;;
  *" install "*)
    [ ! -e "$work/broken" ] || { echo "E: dpkg was interrupted, you must manually run 'dpkg --configure -a'"; exit 100; }
    echo "dlstatus:1:50.0:Retrieving file 1 of 2 (0s remaining)" >&3
    touch "$work/begun"
    until [ -e "$work/go_on" ]; do sleep 0.05; done
    cp "$work/bin/apt-get" "$work/bin/kassette-trial"
    ;;
esac
SH
printf '#!/bin/sh\necho "  Candidate: 1"\n' >"$work/bin/apt-cache"
printf '#!/bin/sh\nrm "%s"\n' "$work/broken" >"$work/bin/dpkg"
printf '#!/bin/sh\n[ "$1" != -v ] || exit 0\n[ "$1" != -n ] || shift\nexec "$@"\n' >"$work/bin/sudo"
chmod +x "$work"/bin/*
cp "$source_dir/third_party/install.sh" "$work"
echo "trial | cmd kassette-trial | kassette-trial | any | a test" >"$work/packages.txt"
set -m   # a process group of its own, as a terminal gives it
# What runs the tests may ignore SIGINT, as a shell's background jobs do, and bash cannot trap what it was told to ignore.
PATH=$work/bin:$PATH env --default-signal=INT bash "$work/install.sh" trial 2>"$work/log" &
for ((i = 0; i < 1200; ++i)); do [ ! -e "$work/begun" ] || break; sleep 0.05; done
kill -INT -- -$!
# The signal has come when it is answered.
for ((i = 0; i < 1200; ++i)); do
  ! grep -q stopping "$work/log" && kill -0 $! 2>/dev/null || break
  sleep 0.05
done
touch "$work/go_on"
status=0
wait $! || status=$?
set +m
[[ $status = 130 && -e $work/bin/kassette-trial ]] || complain "Ctrl-C while apt-get runs: ended with $status; $(cat "$work/log")"
rm -f "$work/bin/kassette-trial"
touch "$work/broken"
PATH=$work/bin:$PATH bash "$work/install.sh" trial 2>"$work/log" || complain "after an interrupted installation: $(cat "$work/log")"
grep -q 'was interrupted; finishing that first' "$work/log" && [ -e "$work/bin/kassette-trial" ] || complain "after an interrupted installation: $(cat "$work/log")"
exit $bad
