#!/usr/bin/env bash
# tests/scripts/gpu.sh BUNDLE [OUT] [--seconds N] [--only REGEX] - everything that can be said about a GPU in ten minutes.
#
# BUNDLE is what tests/scripts/carry.sh made, the archive or the folder; the machine needs a driver and a CUDA toolkit. What is found
# goes into the folder OUT ($OUT, else ./gpu): a log for each line in logs/, the benchmarks in table.md and table.json, the summary in
# summary.txt. Each line has a limit of its own; one that fails or hangs is one line of the summary. With fewer than 570 seconds the limits
# shrink, and the benchmarks get what is left. --only takes lines by name. Ends with 0 where no line failed; what the machine lacks is
# skipped. COMPUTE_SANITIZER is another program than that of CUDA.
set -uo pipefail
budget=570 only=.
places=()
while [ $# -gt 0 ]; do
  case $1 in
    --seconds) budget=${2:?--seconds N}; shift ;;
    --only) only=${2:?--only REGEX}; shift ;;
    -*) echo "gpu.sh: unknown argument $1" >&2; exit 2 ;;
    *) places+=("$1") ;;
  esac
  shift
done
[ ${#places[@]} -ge 1 ] || { sed -n '2,9s/^# \?//p' "$0" >&2; exit 2; }
command="gpu.sh ${places[*]} --seconds $budget"
bundle=$(realpath "${places[0]}")
out=${places[1]:-${OUT:-gpu}}
mkdir -p "$out/logs" || exit 2
out=$(realpath "$out")

if [ -f "$bundle" ]; then
  unpacked=$(mktemp -d)
  trap 'rm -rf "$unpacked"' EXIT
  # Without xz, Python's own.
  tar -xJf "$bundle" -C "$unpacked" 2>"$out/logs/unpack.log" ||
    python3 -c 'import sys, tarfile; tarfile.open(sys.argv[1]).extractall(sys.argv[2])' "$bundle" "$unpacked" 2>>"$out/logs/unpack.log" ||
    { cat "$out/logs/unpack.log" >&2; exit 1; }
  bundle=$(echo "$unpacked"/*)
fi
[ -x "$bundle/run" ] || { echo "gpu.sh: $bundle is not what carry.sh makes" >&2; exit 2; }
run=$bundle/run
export KERAS_HOME=$out/keras
unset KASSETTE_TEST_CUDA
emulated=
[ ! -e "$bundle/emulated" ] || emulated=1

: >"$out/summary.txt"
passed=0 failed=0 skipped=0
# say NAME RESULT RC SECONDS REMARK: a line of the summary.
say() {
  printf '%-11s %-8s %4s %6s s  %s\n' "$@" | tee -a "$out/summary.txt"
  case $2 in
    passed) ((++passed)) ;;
    skipped) ((++skipped)) ;;
    *) ((++failed)) ;;
  esac
}
# ended PID SECONDS: whether it ends within them. What the driver holds in the kernel cannot be killed; it is left behind.
ended() {
  local until=$((SECONDS + $2))
  while kill -0 "$1" 2>/dev/null; do
    ((SECONDS < until)) || return 1
    sleep 0.1
  done
}
wanted() { [[ $1 =~ $only ]]; }
# of_570 SECONDS: as much of the budget.
of_570() { echo $(((($1 * budget) + 569) / 570)); }
# line NAME LIMIT COMMAND...: runs it for at most LIMIT seconds, or what `kept` leaves of the budget.
kept=0
line() {
  local name=$1 limit=$2 left=$((budget - kept - SECONDS)) log=$out/logs/$1.log began=$EPOCHREALTIME child rc result=failed remark
  shift 2
  wanted "$name" || return 0
  ((left >= limit)) || limit=$left
  ((limit > 0)) || { say "$name" skipped - 0 "no time is left"; return 0; }
  { printf '$'; printf ' %q' "$@"; echo; } >"$log"
  timeout -k 3 "$limit" "$@" >>"$log" 2>&1 </dev/null &
  child=$!
  rc=137
  ! ended $child $((limit + 8)) || { wait $child; rc=$?; } 2>/dev/null
  remark=$(grep -aE '[0-9]+ passed, [0-9]+ failed|ERROR SUMMARY|^Error|RACECHECK SUMMARY' "$log" | tail -n 2 | tr '\n' ' ')
  [ "$remark" ] || remark=$(grep -av '^ *$' "$log" | tail -n 1 | cut -c 1-110)
  case $rc in
    0) result=passed ;;
    77) result=skipped ;;
    124 | 137) remark="over its limit of $limit s; $remark" ;;
  esac
  [[ $remark != "0 passed, "* ]] || result=failed   # all were skipped: there is no device
  say "$name" $result $rc "$(awk "BEGIN { printf \"%.1f\", $EPOCHREALTIME - $began }")" "$remark"
}

# 1. What is right. The benchmarks keep a part of the time.
kept=$((budget / 4))
facts() {
  date
  uname -srm
  cat "$bundle/version"
  nvidia-smi
  "$run" nvcc --version
  "$run" ldd "$bundle/lib/libkassette_cuda.so"
  "$run" kassette_bench '^$' --device cuda:0
  local rc=$?
  nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader || echo "nvidia-smi: not found, or it failed"
  return $rc
}
export -f facts
export run bundle
line facts $(of_570 20) bash -c facts
line devices $(of_570 20) "$run" kassette_tests '[devices]'
line device $(of_570 60) "$run" kassette_tests '[device]~[devices]~[sweep]~[conv]~[products]'
line products $(of_570 30) "$run" kassette_tests '[device][products]'
convolution='[device][conv]'
[ ! "$emulated" ] || convolution+='~[sweep]'   # that takes minutes on the host
line convolution $(of_570 60) "$run" kassette_tests "$convolution"
line sweep $(of_570 90) "$run" kassette_tests '[device][sweep]~[conv]'
# sanitize TOOL LIMIT TESTS: an error is 99. Each block goes back to CUDA when it is freed, so that the tool sees who uses it afterwards.
sanitizer=${COMPUTE_SANITIZER:-compute-sanitizer}
sanitize() {
  wanted "$1" || return 0
  "$run" bash -c "command -v $sanitizer" >/dev/null || { say "$1" skipped - 0 "$sanitizer: not found"; return 0; }
  KASSETTE_CUDA_CACHE=0 line "$1" "$(of_570 "$2")" "$run" "$sanitizer" --tool "$1" --error-exitcode 99 "$bundle/bin/kassette_tests" "$3"
}
sanitize memcheck 70 'every sample in every dtype gives on a CUDA device*'
sanitize racecheck 50 'every sample at sizes of many blocks*'
sanitize synccheck 40 'every sample at sizes of many blocks*'
sanitize initcheck 50 'every sample in every dtype gives on a CUDA device*'

# 2. How fast it is: a row gets its share of the time that is left, the other half is for what it computes on.
kept=8
rows=$(timeout -k 3 20 "$run" kassette_bench --device cuda:0 --list 2>/dev/null | wc -l)
most=${emulated:+0.005}   # seconds; of a row
most=${most:-0.2}
# measure NAME SECONDS COMMAND...: rows go into NAME.jsonl as they are measured.
measure() {
  local name=$1 seconds=$2
  shift 2
  wanted "$name" || return 0
  local row
  row=$(awk "BEGIN { s = $seconds / 2 / ($rows + 1); print (s > $most ? $most : s < 0.005 ? 0.005 : s) }")
  line "$name" "$seconds" bash -c '"${@:2}" | tee "$1"; rc=${PIPESTATUS[0]}; echo "$(grep -c "\"row\"" "$1") rows"; exit $rc' - "$out/$name.jsonl" "$@" --device cuda:0 --budget "$row" ${emulated:+--tiny}
}
measure kassette $(((budget - kept - SECONDS) / 2)) "$run" kassette_bench
python=
for found in python3 /opt/*/.venv/bin/python3; do
  ! timeout -k 3 60 "$found" -c 'import torch' 2>/dev/null || { python=$found; break; }
done
if [ "$python" ]; then
  measure torch $((budget - kept - SECONDS)) "$python" "$bundle/benchmarks/peers/torch_cuda_bench.py"
else
  ! wanted torch || say torch skipped - 0 "PyTorch: not found"
fi
kept=0
if command -v python3 >/dev/null; then
  line table 15 python3 "$bundle/benchmarks/device_table.py" "$out" --command "$command" --version "$(cat "$bundle/version")" \
    --driver "$(timeout -k 3 10 nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null | tr '\n' ';')" ${emulated:+--emulated}
else
  ! wanted table || say table skipped - 0 "python3: not found; the rows are in *.jsonl"
fi

rm -rf "$KERAS_HOME"
[ ! "$emulated" ] || echo "cuda:0 was an emulated device: nothing here was run on a GPU" | tee -a "$out/summary.txt"
echo "$passed passed, $failed failed, $skipped skipped in $SECONDS s; all of it is in $out" | tee -a "$out/summary.txt"
[ "$failed" = 0 ]
