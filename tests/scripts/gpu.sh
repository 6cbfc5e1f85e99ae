#!/usr/bin/env bash
# tests/scripts/gpu.sh QUESTION BUNDLE [OUT] [--seconds N] [--only REGEX] - one question about a GPU, in at most ten minutes.
#
#   right   is it right? The tests, with graphs and without, with kernels that are loaded late and early
#   fast    how fast is it? The benchmarks beside PyTorch's, and ours with TF32 and without graphs
#   why     why is it so? Kernels as ncu sees them, and the four tools of compute-sanitizer, which need minutes
#
# BUNDLE is what tests/scripts/carry.sh made, the archive or the folder; the machine needs a driver and a CUDA toolkit. Into the folder OUT
# ($OUT, else ./gpu) go a log for each line in logs/, the lines in QUESTION.txt, and the tables table.md of `fast` and why.md. Each line has a limit of its
# own; one that fails or hangs is one line of the table. With fewer than 570 seconds the limits shrink, and the benchmarks get what is left.
# --only takes lines by name. Ends with 0 where no line failed; what the machine lacks is skipped, and a tool of compute-sanitizer that found
# nothing before its limit is `unfinished`. COMPUTE_SANITIZER and NCU are other programs than CUDA's.
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
question=${places[0]:-}
[[ ${#places[@]} -ge 2 && $question =~ ^(right|fast|why)$ ]] || { sed -n '2,14s/^# \?//p' "$0" >&2; exit 2; }
command="gpu.sh ${places[*]} --seconds $budget"
bundle=$(realpath "${places[1]}")
out=${places[2]:-${OUT:-gpu}}
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

summary=$out/$question.txt
: >"$summary"
passed=0 failed=0 skipped=0 unfinished=0
# say NAME RESULT RC SECONDS REMARK: a line of the table.
say() {
  printf '%-11s %-10s %4s %6s s  %s\n' "$@" | tee -a "$summary"
  case $2 in
    passed) ((++passed)) ;;
    skipped) ((++skipped)) ;;
    unfinished) ((++unfinished)) ;;
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
  remark=$(grep -aE '[0-9]+ passed, [0-9]+ failed|ERROR SUMMARY|^Error|RACECHECK SUMMARY|^initcheck: ' "$log" | tail -n 2 | tr '\n' ' ')
  [ "$remark" ] || remark=$(grep -av '^ *$' "$log" | tail -n 1 | cut -c 1-110)
  case $rc in
    0) result=passed ;;
    77) result=skipped ;;
    124 | 137)
      remark="over its limit of $limit s; $remark"
      # The tools say what they find when they find it.
      [[ ! $name =~ check$ ]] || grep -aqE '^=+ +at |^=+ (Error|Warning)' "$log" || result=unfinished
      ;;
  esac
  [[ $remark != "0 passed, "* ]] || result=failed   # all were skipped: there is no device
  say "$name" $result $rc "$(awk "BEGIN { printf \"%.1f\", $EPOCHREALTIME - $began }")" "$remark"
}
# found NAME PROGRAM: whether the machine has it; a line says so where not.
found() {
  wanted "$1" || return 1
  "$run" bash -c "command -v $2" >/dev/null || { say "$1" skipped - 0 "$2: not found"; return 1; }
}
driver() { timeout -k 3 10 nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null | tr '\n' ';'; }

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

# ---- is it right? ---------------------------------------------------------------------------------------------------------------------------
is_it_right() {
  line facts $(of_570 20) bash -c facts
  line devices $(of_570 20) "$run" kassette_tests '[devices]'
  # A kernel's first launch loads it, in the midst of a capture too: where these differ, that is why.
  CUDA_MODULE_LOADING=LAZY line lazy $(of_570 50) "$run" kassette_tests '[graph]'
  CUDA_MODULE_LOADING=EAGER line eager $(of_570 60) "$run" kassette_tests "[graph]${emulated:+[cached]}"
  line device $(of_570 80) "$run" kassette_tests '[device]~[devices]~[sweep]~[conv]~[products]~[graph]'
  local alone='[device]~[devices]~[sweep]~[conv]~[graph]' convolution='[device][conv]'
  # What takes minutes on the host, or was there before.
  [ ! "$emulated" ] || alone='[device][products]' convolution+='~[sweep]'
  KASSETTE_CUDA_GRAPHS=0 line plain $(of_570 80) "$run" kassette_tests "$alone"
  [ "$emulated" ] || line products $(of_570 30) "$run" kassette_tests '[device][products]'
  line convolution $(of_570 80) "$run" kassette_tests "$convolution"
  line sweep $(of_570 130) "$run" kassette_tests '[device][sweep]~[conv]'
}

# ---- how fast? ------------------------------------------------------------------------------------------------------------------------------
# measure NAME SECONDS PATTERN COMMAND...: rows go into NAME.jsonl as they are measured. A row gets its share of the time, the other half is for
# what it computes on.
measure() {
  local name=$1 seconds=$2 pattern=$3 rows row most=${emulated:+0.005}   # seconds; of a row
  most=${most:-0.2}
  shift 3
  wanted "$name" || return 0
  rows=$(timeout -k 3 20 "$run" kassette_bench "$pattern" --device cuda:0 --list 2>/dev/null | wc -l)
  row=$(awk "BEGIN { s = $seconds / 2 / ($rows + 1); print (s > $most ? $most : s < 0.005 ? 0.005 : s) }")
  line "$name" "$seconds" bash -c '"${@:2}" | tee "$1"; rc=${PIPESTATUS[0]}; echo "$(grep -c "\"row\"" "$1") rows"; exit $rc' - "$out/$name.jsonl" \
    "$@" "$pattern" --device cuda:0 --budget "$row" ${emulated:+--tiny}
}
how_fast() {
  local python= candidate
  kept=8
  measure kassette $(of_570 230) . "$run" kassette_bench
  KASSETTE_ALLOW_TF32=1 measure tf32 $(of_570 50) '^(mm\.float32|conv|train)' "$run" kassette_bench
  KASSETTE_CUDA_GRAPHS=0 measure nograph $(of_570 30) '^(train|.*\.fn$)' "$run" kassette_bench
  for candidate in python3 /opt/*/.venv/bin/python3; do
    ! timeout -k 3 60 "$candidate" -c 'import torch' 2>/dev/null || { python=$candidate; break; }
  done
  if [ "$python" ]; then
    measure torch $((budget - kept - SECONDS)) . "$python" "$bundle/benchmarks/peers/torch_cuda_bench.py"
  else
    ! wanted torch || say torch skipped - 0 "PyTorch: not found"
  fi
  kept=0
  ! found table python3 || line table 15 python3 "$bundle/benchmarks/device_table.py" "$out" --command "$command" --version "$(cat "$bundle/version")" \
    --driver "$(driver)" ${emulated:+--emulated}
}

# ---- why? -----------------------------------------------------------------------------------------------------------------------------------
metrics=gpu__time_duration.sum,dram__throughput.avg.pct_of_peak_sustained_elapsed,smsp__inst_executed.sum,sm__warps_active.avg.pct_of_peak_sustained_active,smsp__issue_active.avg.pct_of_peak_sustained_active
# look NAME COUNT PATTERN: the first COUNT kernels of those rows go into NAME.csv.
look() {
  ! found "$1" "${NCU:-ncu}" || line "$1" $(of_570 60) "$run" "${NCU:-ncu}" --clock-control none --csv --page raw --metrics $metrics -c "$2" \
    --log-file "$out/$1.csv" "$bundle/bin/kassette_bench" "$3" --device cuda:0 --budget 0.005 ${emulated:+--tiny}
}
# sanitize TOOL LIMIT TESTS: an error is 99. Each block goes back to CUDA when it is freed, so that the tool sees who uses it afterwards.
sanitizer=${COMPUTE_SANITIZER:-compute-sanitizer}
sanitize() {
  found "$1" "$sanitizer" || return 0
  local words=("$run" "$sanitizer" --tool "$1")
  if [ "$1" = initcheck ]; then
    # cuBLAS reads workspaces that it has not written. An error of ours is in a kernel of ours, or in a copy.
    words=(bash -c '"$@" 2>&1 | tee "$0"; rc=${PIPESTATUS[0]}
      at=$(grep -aA1 Uninitialized "$0" | grep -aE "^=+ +at ")
      ours=$(($(grep -c kassette <<<"$at") + $(grep -ac "^=* Host API" "$0")))
      echo "initcheck: $ours in kernels and copies of ours, $(grep -vc -e kassette -e "^$" <<<"$at") in those of libraries"
      [ "$ours" = 0 ] || exit 99
      exit $rc' "$out/logs/initcheck.all" "${words[@]}" --print-limit 100000)
  else
    words+=(--error-exitcode 99)
  fi
  KASSETTE_CUDA_CACHE=0 line "$1" "$(of_570 "$2")" "${words[@]}" "$bundle/bin/kassette_tests" "$3"
}
why() {
  kept=8
  look elementwise 60 'ew.(relu|exp|add|gelu)'
  look memory 200 'red.cumsum|nn.softmax|nn.bn_f|red.argmax|conv.c3x3_fb.cf'
  kept=0
  if [ -e "$out/elementwise.csv" ] || [ -e "$out/memory.csv" ]; then
    ! found kernels python3 || line kernels 8 python3 "$bundle/benchmarks/kernel_table.py" "$out" --command "$command" --driver "$(driver)"
  fi
  # Each module is patched first, which takes most of the time.
  sanitize memcheck 170 'every sample in every dtype gives on a CUDA device*'
  sanitize racecheck 110 'every sample at sizes of many blocks*'
  sanitize synccheck 60 'every sample at sizes of many blocks*'
  sanitize initcheck 90 'every sample in every dtype gives on a CUDA device*'
}

case $question in
  right) is_it_right ;;
  fast) how_fast ;;
  why) why ;;
esac
rm -rf "$KERAS_HOME"
[ ! "$emulated" ] || echo "cuda:0 was an emulated device: nothing here was run on a GPU" | tee -a "$summary"
echo "$passed passed, $failed failed, $unfinished unfinished, $skipped skipped in $SECONDS s; all of it is in $out" | tee -a "$summary"
[ "$failed" = 0 ]
