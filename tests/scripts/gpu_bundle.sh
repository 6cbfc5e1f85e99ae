#!/usr/bin/env bash
# tests/scripts/gpu_bundle.sh SOURCE BUILD - what is carried to a machine with a GPU fits, and gpu.sh goes through all of it: here with the emulated
# device in place of a GPU, and once more with lines that fail and hang.
set -euo pipefail
command -v python3 >/dev/null || { echo "skipped: there is no python3"; exit 77; }
[ -e "$2/tests/libkassette_emulated_cuda.so" ] && [ -x "$2/benchmarks/kassette_bench" ] ||
  { echo "skipped: there is no emulated device, or there are no benchmarks, in this build"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0
# holds "what" COMMAND...: whether it succeeds.
holds() {
  "${@:2}" || { echo "not so: $1"; bad=1; }
}
says() { grep -qE -- "$2" "$1"; }
# ended QUESTION NAME RESULT [REMARK]: a line of its table.
ended() { says "$out/$1.txt" "^$2 +$3 .*${4:-}"; }

"$1/tests/scripts/carry.sh" --emulated "$2" "$work/bundle.tar.xz"

mkdir "$work/bundle"
tar -xJf "$work/bundle.tar.xz" -C "$work/bundle" --strip-components=1
out=$work/whole
# The three calls, into one folder. A toolkit's own tools would find no device to look at.
bundle=$work/bundle.tar.xz
for question in right fast why; do
  holds "all lines of $question pass" env COMPUTE_SANITIZER=no-sanitizer NCU=no-ncu PYTHONPATH= \
    bash -c 'cd / && "$@"' - "$1/tests/scripts/gpu.sh" $question "$bundle" "$out"
  bundle=$work/bundle   # unpacking takes seconds
done
for name in facts devices lazy eager device plain convolution sweep; do holds "$name passed" ended right $name passed; done
for name in kassette tf32 nograph table; do holds "$name passed" ended fast $name passed; done
for tool in memcheck racecheck synccheck initcheck; do holds "$tool is skipped" ended why $tool skipped "no-sanitizer: not found"; done
for name in elementwise memory; do holds "$name is skipped" ended why $name skipped "no-ncu: not found"; done
holds "the table says that the device is emulated" says "$out/table.md" "cuda:0 is emulated"
holds "there are rows with TF32 and without graphs" says "$out/table.md" '^\| train\.mlp\.fn \| .* times \| .* times \|'
for question in right fast why; do holds "so does $question" says "$out/$question.txt" "nothing here was run on a GPU"; done
holds "the facts say so" says "$out/logs/facts.log" '"emulated": true'
holds "no goal is met or missed" bash -c "! grep -qE ' (met|MISSED)' '$out/table.md'"
holds "no row is an error" bash -c "! grep -q '| error' '$out/table.md'"
all='fast.txt kassette.jsonl logs nograph.jsonl right.txt table.json table.md tf32.jsonl why.txt '
holds "the archive is unpacked elsewhere and nothing is left" bash -c "[ \"\$(ls '$out' | tr '\n' ' ')\" = '$all' ] || [ -e '$out/torch.jsonl' ]"

# A sanitizer that finds something, one that hangs whatever it is told, an ncu, and a PyTorch of which any call gives something.
mkdir "$work/torch"
cat >"$work/sanitizer" <<'SANITIZER'
#!/usr/bin/env bash
tool=$2
echo "========= COMPUTE-SANITIZER, cache off: $KASSETTE_CUDA_CACHE"
case $tool in
  memcheck) "${@:5}" && echo "========= ERROR SUMMARY: 0 errors" ;;
  racecheck) trap '' TERM; while :; do sleep 1; done ;;
  synccheck) echo "========= ERROR SUMMARY: 1 error"; exit 99 ;;
  initcheck)
    for kernel in ${UNINITIALISED:-gemm}; do
      printf '========= %s\n' "Uninitialized __global__ memory read of size 4 bytes" "    at $kernel(float*)+0x50" "    by thread (0,0,0) in block (0,0,0)"
    done
    ;;
esac
SANITIZER
cat >"$work/ncu" <<'NCU'
#!/usr/bin/env bash
# Two launches of one kernel and one of another.
while [ "$1" != --log-file ]; do shift; done
cat >"$2" <<'CSV'
==PROF== Connected to process 7
"ID","Kernel Name","Grid Size","gpu__time_duration.sum","dram__throughput.avg.pct_of_peak_sustained_elapsed","smsp__inst_executed.sum","sm__warps_active.avg.pct_of_peak_sustained_active","smsp__issue_active.avg.pct_of_peak_sustained_active"
"","","","nsecond","%","inst","%","%"
"0","void kassette::cuda::(anonymous namespace)::run_each<1, float>(long, float*)","(4096, 1, 1)","44,000","71.2","1,000,000","60.0","12.5"
"1","void kassette::cuda::(anonymous namespace)::run_each<1, float>(long, float*)","(4096, 1, 1)","46,000","69.2","1,000,000","60.0","12.5"
"2","sm90_xmma_gemm","(132, 1, 1)","900,000","10","5,000","20","80"
CSV
NCU
chmod +x "$work/ncu"
chmod +x "$work/sanitizer"
cat >"$work/torch/__init__.py" <<'TORCH'
import sys
from unittest import mock

torch = mock.MagicMock(__version__="no PyTorch")
torch.device.return_value.type = "cuda"
torch.cuda.is_available.return_value = True
torch.cuda.get_device_name.return_value = "no device"
sys.modules.update({"torch": torch, "torch.nn": torch.nn, "torch.nn.functional": torch.nn.functional})
TORCH
out=$work/broken
holds "a line that fails is said at the end" bash -c '! "$@"' - env COMPUTE_SANITIZER="$work/sanitizer" NCU="$work/ncu" \
  "$1/tests/scripts/gpu.sh" why "$work/bundle" "$out" --seconds 80
holds "memcheck passed" ended why memcheck passed "ERROR SUMMARY: 0 errors"
holds "blocks are not kept" says "$out/logs/memcheck.log" "cache off: 0"
holds "racecheck found nothing before its limit" ended why racecheck unfinished "over its limit"
holds "synccheck failed" ended why synccheck "failed +99" "1 error"
holds "initcheck found a fault of cuBLAS" ended why initcheck passed "initcheck: 0 in kernels and copies of ours, 1 in those of libraries"
holds "kernels are listed" says "$out/why.md" '^\| run_each<1, float> \| 4096,1,1 \| 4 \| 45 us \| 1e\+06 \| 70 % \| 12 % \| 60 % \|'
holds "the longest is the first" bash -c "grep -A2 '^| kernel' '$out/why.md' | tail -n 1 | grep -q sm90_xmma_gemm"
holds "a fault of ours fails" bash -c '! "$@"' - env UNINITIALISED="gemm kassette::cuda::run" COMPUTE_SANITIZER="$work/sanitizer" \
  "$1/tests/scripts/gpu.sh" why "$work/bundle" "$out" --seconds 60 --only initcheck
holds "initcheck failed" ended why initcheck "failed +99" "initcheck: 1 in kernels and copies of ours, 1 in those"
holds "there is a PyTorch" env PYTHONPATH="$work" "$1/tests/scripts/gpu.sh" fast "$work/bundle" "$out" --seconds 120 --only 'kassette|torch|table'
for name in kassette torch table; do holds "$name passed" ended fast $name passed; done
holds "there are ratios" python3 - "$out/table.json" <<'PYTHON'
import json, sys
rows = json.load(open(sys.argv[1]))["rows"]
errors = [r["row"] for r in rows if r["errors"]]
alone = [r["row"] for r in rows if not r["ratio"]]
print(f"{len(rows)} rows; errors: {errors}; without a ratio: {alone}")
sys.exit(bool(errors or alone))
PYTHON
exit $bad
