#!/usr/bin/env bash
# tests/scripts/ranks.sh SOURCE BUILD - jobs of several ranks: the tests of tests/ranks with one to five, ranks that fail, and `kassette run --ranks`.
set -euo pipefail
source_dir=$(realpath "$1")
build=$(realpath "$2")
if ! command -v mpirun >/dev/null || [ ! -e "$build/lib/libkassette_mpi.so" ]; then
  echo "skipped: there is no MPI (third_party/install.sh mpi)"
  exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none
export KASSETTE_NUM_THREADS=1 KASSETTE_RANKS_TIMEOUT=240
bad=0

# Small pieces: what is longer than MPI counts in goes the same way, where the ranks do not share memory. One rank of its own runs without
# mpirun.
"$build/tests/kassette_ranks_tests" >"$work/log" 2>&1 || { cat "$work/log"; bad=1; }
for ranks in 1 2 3 4 5; do
  piece=1073741824 shared=1
  [ $ranks != 3 ] || piece=101 shared=0
  KASSETTE_RANKS_OVERLAP=$((ranks % 2)) KASSETTE_MPI_PIECE=$piece KASSETTE_MPI_SHARED_MEMORY=$shared timeout -k 5 300 mpirun -n $ranks "$build/tests/kassette_ranks_tests" >"$work/log" 2>&1 && continue
  echo "with $ranks ranks, pieces of $piece:"
  cat "$work/log"
  bad=1
done

# The same on GPUs: on those that tests/emulated_cuda makes of the host, with its NCCL. Where ranks share one, NCCL is turned off, or MPI takes
# memory of GPUs, the tests hold as well.
emulated=$build/tests/libkassette_emulated_cuda.so
mkdir "$work/gpus"
ln -s "$build"/lib/libkassette.so* "$build/lib/libkassette_mpi.so" "$work/gpus"
ln -s "$emulated" "$work/gpus/libkassette_cuda.so"
ln -s "$emulated" "$work/gpus/libkassette_nccl.so"
# on_gpus RANKS VARIABLE=VALUE...
on_gpus() {
  local ranks=$1
  shift
  env LD_LIBRARY_PATH="$work/gpus" KASSETTE_RANKS_DEVICE=cuda KASSETTE_LOG=info "$@" \
    timeout -k 5 300 mpirun -n "$ranks" "$build/tests/kassette_ranks_tests" >"$work/log" 2>&1 && return
  echo "with $ranks ranks on GPUs, $*:"
  cat "$work/log"
  bad=1
}
said() { grep -qF "$1" "$work/log" || { echo "nobody says \"$1\":"; cat "$work/log"; bad=1; }; }
for ranks in 1 2 3 4 5; do
  on_gpus $ranks KASSETTE_RANKS_CHECK=1
  [ $ranks = 1 ] || said "rank 1 of $ranks exchanges from cuda:1 by NCCL"
done
on_gpus 2 KASSETTE_RANKS_DEVICE=cuda:0
said "tensors of GPUs are exchanged by way of the host's memory, for lack of NCCL: ranks 0 and 1 share a GPU"
on_gpus 3 KASSETTE_NCCL=0 KASSETTE_MPI_PIECE=101 KASSETTE_MPI_SHARED_MEMORY=0 KASSETTE_MPI_CUDA=1 EMULATED_CUDA_OPEN=1
said "for lack of NCCL: rank 0: KASSETTE_NCCL is 0"

for example in digits_distributed kmeans_distributed softmax_distributed ring_attention; do
  [ -x "$build/examples/example_$example" ] || continue
  for ranks in 1 2 3 4; do
    timeout -k 5 300 mpirun -n $ranks "$build/examples/example_$example" >"$work/log" 2>&1 && continue
    echo "$example with $ranks ranks:"
    cat "$work/log"
    bad=1
  done
done

# again CHECK...: once more, and again, where it fails: Open MPI's mpirun (4.1.4) itself crashes or hangs at times when ranks fail.
again() {
  local try
  for try in 1 2 3 4 5; do
    "$@" && return
    echo "attempt $try: $*"
    cat "$work/log"
  done
  bad=1
}

# fails HOW "text that is said" SECONDS: all ranks end, in time. The status is whatever mpirun makes of it, but 0.
fails() {
  local how=$1 status=0 begin=$SECONDS
  KASSETTE_RANKS_TIMEOUT=${limit:-2} timeout -k 5 20 mpirun -n 3 "$build/tests/kassette_ranks_failing" "$how" >"$work/log" 2>&1 || status=$?
  echo "status $status after $((SECONDS - begin)) s" >>"$work/log"
  [ $status -ne 0 ] && grep -qF "$2" "$work/log" && [ $((SECONDS - begin)) -le "$3" ] && ! grep -q '^rank . ends' "$work/log"
}
again fails throw "kassette: rank 2: dot: (2, 3) x (2, 3): inner dimensions differ, 3 against 2" 5
again fails kill "signal 9" 5
again fails exit "rank 2 begins" 5
again fails leave "rank 2 has the end of the program" 5
again fails sleep "has waited for 2 s in all_reduce(sum) of float32 (3,)" 10
again fails interrupt "rank 0 was interrupted while it waited in all_reduce(sum) of float32 (3,)" 5

# Ranks that end while others wait for them, in a world of their own or for a message, with the comparison of calls and without it.
limit=100 again fails leave_split "waits in all_reduce(sum) of float32 (3,) for rank 2 of that world, which has ended its program" 10
limit=100 again fails leave_recv "waits in recv from rank 2 of float32 (3,) for rank 2, which has ended its program" 10
unchecked() { limit=100 KASSETTE_RANKS_CHECK=0 fails "$@"; }
again unchecked leave "waits in all_reduce(sum) of float32 (3,) for rank 2, which has ended its program" 10
limit=100 again fails send "rank 2: the program has ended, and rank 0 has not received a message that was sent to it" 10

# ends HOW "text that is said"...: all ranks end well, in time.
ends() {
  local how=$1 status=0 begin=$SECONDS words
  KASSETTE_RANKS_TIMEOUT=100 timeout -k 5 20 mpirun -n 3 "$build/tests/kassette_ranks_failing" "$how" >"$work/log" 2>&1 || status=$?
  echo "status $status after $((SECONDS - begin)) s" >>"$work/log"
  [ $status -eq 0 ] && [ $((SECONDS - begin)) -le 10 ] || return 1
  shift
  for words in "$@"; do grep -qF "$words" "$work/log" || return 1; done
}
again ends caught "rank 0 caught the ranks' calls differ: rank 0 has all_gather of float32 (3,), rank 2 has the end of the program" "rank 1 caught"
again ends fork "rank 2 caught all_reduce(sum) of float32 (3,): this process is a fork of rank 2; only the process that has called init" "rank 2 caught recv" \
  "the fork ends with 0" "sum 3"
again ends split "rank 2 caught split: colour is -1; it must not be negative" "rank 0 caught the ranks' calls differ: rank 0 has split, rank 2 has an error: split" "sum 3"

# A launcher of another MPI, which leaves each process alone, and variables that do not mean one.
refused() {
  local status=0
  env "$@" timeout -k 5 20 "$build/tests/kassette_ranks_failing" none >"$work/log" 2>&1 || status=$?
  [ $status -ne 0 ] && grep -q "init: the launcher's ${1%=*} is ${1#*=}, and .* has found 1 rank; it must be a launcher of the MPI that kassette was built with" "$work/log" ||
    { echo "$*: status $status"; cat "$work/log"; bad=1; }
}
refused PMI_SIZE=2 PMI_RANK=0
refused PMI_RANK=1
refused MV2_COMM_WORLD_SIZE=3
refused SLURM_STEP_NUM_TASKS=4 SLURM_NTASKS=4
refused PALS_LOCAL_SIZE=2 PALS_RANKID=0
env SLURM_NTASKS=4 SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=1 "$build/tests/kassette_ranks_failing" none >"$work/log" 2>&1 && grep -q '^rank 0 ends' "$work/log" ||
  { echo "in a batch script:"; cat "$work/log"; bad=1; }
env SLURM_STEP_NUM_TASKS=4 mpirun -n 2 "$build/tests/kassette_ranks_failing" none >"$work/log" 2>&1 || { echo "mpirun under srun:"; cat "$work/log"; bad=1; }

# On GPUs likewise, and where what is enqueued there gets stuck or fails.
gpus_fail() {
  local set=$1
  shift
  LD_LIBRARY_PATH=$work/gpus KASSETTE_RANKS_DEVICE=cuda env $set bash -c "$(declare -f fails)"'; build=$1 work=$2; shift 2; fails "$@"' - "$build" "$work" "$@"
}
again gpus_fail "" throw "kassette: rank 2: dot: (2, 3) x (2, 3): inner dimensions differ, 3 against 2" 5
again gpus_fail "" kill "signal 9" 5
again gpus_fail "" leave "rank 2 has the end of the program" 5
again gpus_fail "" sleep "has waited for 2 s in all_reduce(sum) of float32 (3,) on a GPU" 10
again gpus_fail EMULATED_NCCL_STUCK=4 none "has waited for 2 s in all_reduce(sum) of float32 (1000,) on a GPU" 10
again gpus_fail EMULATED_NCCL_FAULT=4 none "NCCL says: remote process exited or there was a network error" 5

# Killed from outside, at any point.
killed_after() {
  local status=0 job begin
  timeout -k 5 60 mpirun -n 3 "$build/tests/kassette_ranks_failing" none 100000000 >"$work/log" 2>&1 &
  job=$!
  sleep "$1"
  pkill -KILL -n -f "$build/tests/kassette_ranks_failing none" || true
  begin=$SECONDS
  wait $job || status=$?
  echo "status $status, $((SECONDS - begin)) s after it was killed" >>"$work/log"
  [ $status -ne 0 ] && [ $((SECONDS - begin)) -le 5 ]
}
for delay in 0.2 0.5 0.8; do again killed_after $delay; done

# Ctrl-C ends all.
interrupted() {
  ! timeout -k 10 -s INT 1 mpirun -n 2 "$build/tests/kassette_ranks_failing" none 100000000 >"$work/log" 2>&1 || return 1
  for _ in {1..50}; do
    pgrep -f "$build/tests/kassette_ranks_failing none" >/dev/null || return 0
    sleep 0.1
  done
  echo "a rank lives on" >>"$work/log"
  pkill -KILL -f "$build/tests/kassette_ranks_failing none"
  return 1
}
again interrupted

cat >"$work/script.cpp" <<'CPP'
#include <kassette/backend.h>
#include <kassette/distributed.h>
#include <iostream>
namespace K = kassette::backend;
namespace D = kassette::distributed;
int main(int argc, char** argv) {
  D::World world = D::init();
  K::Tensor sum = D::all_reduce(K::constant(world.rank() + 1));
  if (world.rank() == 0) std::cout << argv[argc - 1] << " " << world.size() << " " << sum.item<int>() << "\n";
  if (argc > 2 && world.rank() == 1)
    K::dot(K::ones({2}), K::ones({3}));
}
CPP
cd "$work"
unset KASSETTE_NUM_THREADS
export KASSETTE_BUILD=$build
got=$("$source_dir/kassette" run --ranks 3 script.cpp x 2>"$work/log") || { cat "$work/log"; bad=1; }
[ "$got" = "x 3 6" ] || { echo "run --ranks 3 printed \"$got\""; bad=1; }
status=0
"$source_dir/kassette" run --ranks 2 script.cpp a b >"$work/log" 2>&1 || status=$?
[ $status -ne 0 ] && grep -q '^rank 1: script.cpp:11: uncaught kassette::ValueError: dot: ' "$work/log" || { echo "status $status, expected the script's line in:"; cat "$work/log"; bad=1; }
status=0
"$source_dir/kassette" run --ranks two script.cpp 2>"$work/log" || status=$?
[ $status = 2 ] && grep -qF 'run: --ranks takes a number of processes, not "two"' "$work/log" || { echo "--ranks two: status $status"; cat "$work/log"; bad=1; }

# An mpirun that lives on when its ranks have ended: here a program that does not ask what its child has become.
mkdir "$work/bin"
printf '#!/bin/sh\nfalse &\nexec sleep 100\n' >"$work/bin/mpirun"
chmod +x "$work/bin/mpirun"
begin=$SECONDS status=0
PATH=$work/bin:$PATH timeout -k 5 60 "$source_dir/kassette" run --ranks 2 script.cpp x >"$work/log" 2>&1 || status=$?
[ $status -ne 0 ] && [ $((SECONDS - begin)) -le 30 ] && grep -qF 'all ranks have ended, and mpirun has not: it is killed' "$work/log" ||
  { echo "an mpirun that lives on: status $status after $((SECONDS - begin)) s"; cat "$work/log"; bad=1; }

# mpirun without the library for MPI.
mkdir -p "$work/lib"
cp -P "$build"/lib/libkassette.so* "$work/lib"
status=0
LD_LIBRARY_PATH=$work/lib mpirun -n 2 "$build/tests/kassette_ranks_failing" >"$work/log" 2>&1 || status=$?
[ $status -ne 0 ] && grep -q "init: .*install libopenmpi-dev" "$work/log" || { echo "without libkassette_mpi.so: status $status"; cat "$work/log"; bad=1; }
exit $bad
