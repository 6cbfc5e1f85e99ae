#!/usr/bin/env bash
# tests/scripts/ranks_sanitized.sh SOURCE BUILD - the tests of tests/ranks in a build with a sanitizer: one rank without mpirun, one and two
# with it, two threads each, gradients exchanged in a thread of their own.
set -euo pipefail
source=$(realpath "$1") build=$(realpath "$2")
if ! command -v mpirun >/dev/null || [ ! -e "$build/lib/libkassette_mpi.so" ]; then
  echo "skipped: there is no MPI (third_party/install.sh mpi)"
  exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none
export KASSETTE_NUM_THREADS=2 KASSETTE_RANKS_OVERLAP=1 KASSETTE_RANKS_TIMEOUT=120
export TSAN_OPTIONS=suppressions=$source/tests/ranks/sanitizers.supp
# Open MPI keeps what it allocates until the end.
export ASAN_OPTIONS=detect_stack_use_after_return=0:detect_leaks=0
# g++ 12's sanitizers cannot run, or not every time, where the kernel spreads addresses over 32 bits.
fixed=()
! setarch "$(uname -m)" -R true 2>/dev/null || fixed=(setarch "$(uname -m)" -R)
bad=0
run() {
  timeout -k 5 300 "${fixed[@]}" "$@" "$build/tests/kassette_ranks_tests" >"$work/log" 2>&1 && return
  echo "$*:"
  cat "$work/log"
  bad=1
}
run env
run mpirun -n 1
run mpirun -n 2
exit $bad
