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
# ended NAME RESULT [REMARK]: the line of the summary.
ended() { says "$out/summary.txt" "^$1 +$2 .*${3:-}"; }

"$1/tests/scripts/carry.sh" --emulated "$2" "$work/bundle.tar.xz"

out=$work/whole
# A toolkit's sanitizer would find no device to look at.
holds "all lines pass" env COMPUTE_SANITIZER=no-sanitizer PYTHONPATH= bash -c 'cd / && "$@"' - "$1/tests/scripts/gpu.sh" "$work/bundle.tar.xz" "$out"
for name in facts devices device products convolution sweep kassette table; do holds "$name passed" ended $name passed; done
for tool in memcheck racecheck synccheck initcheck; do holds "$tool is skipped" ended $tool skipped "no-sanitizer: not found"; done
holds "the table says that the device is emulated" says "$out/table.md" "cuda:0 is emulated"
holds "so does the summary" says "$out/summary.txt" "nothing here was run on a GPU"
holds "the facts say so" says "$out/logs/facts.log" '"emulated": true'
holds "no goal is met or missed" bash -c "! grep -qE ' (met|MISSED)' '$out/table.md'"
holds "no row is an error" bash -c "! grep -q '| error' '$out/table.md'"
holds "the archive is unpacked elsewhere and nothing is left" bash -c "[ \"\$(ls '$out' | tr '\n' ' ')\" = 'kassette.jsonl logs summary.txt table.json table.md ' ] || [ -e '$out/torch.jsonl' ]"

# A sanitizer that finds something, one that hangs whatever it is told, and a PyTorch of which any call gives something.
mkdir "$work/bundle" "$work/torch"
tar -xJf "$work/bundle.tar.xz" -C "$work/bundle" --strip-components=1
cat >"$work/sanitizer" <<'SANITIZER'
#!/usr/bin/env bash
tool=$2
echo "========= COMPUTE-SANITIZER, cache off: $KASSETTE_CUDA_CACHE"
case $tool in
  memcheck) "${@:5}" && echo "========= ERROR SUMMARY: 0 errors" ;;
  racecheck) trap '' TERM; while :; do sleep 1; done ;;
  synccheck) echo "========= ERROR SUMMARY: 1 error"; exit 99 ;;
  initcheck) kill -SEGV $$ ;;
esac
SANITIZER
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
holds "a line that fails is said at the end" bash -c '! "$@"' - env COMPUTE_SANITIZER="$work/sanitizer" PYTHONPATH="$work" \
  "$1/tests/scripts/gpu.sh" "$work/bundle" "$out" --seconds 120 --only 'check|kassette|torch|table'
holds "memcheck passed" ended memcheck passed "ERROR SUMMARY: 0 errors"
holds "blocks are not kept" says "$out/logs/memcheck.log" "cache off: 0"
holds "racecheck is over its limit" ended racecheck failed "over its limit"
holds "synccheck failed" ended synccheck "failed +99" "1 error"
holds "initcheck failed" ended initcheck "failed +139"
for name in kassette torch table; do holds "$name passed" ended $name passed; done
holds "there are ratios" python3 - "$out/table.json" <<'PYTHON'
import json, sys
rows = json.load(open(sys.argv[1]))["rows"]
errors = [r["row"] for r in rows if r["errors"]]
alone = [r["row"] for r in rows if not r["ratio"]]
print(f"{len(rows)} rows; errors: {errors}; without a ratio: {alone}")
sys.exit(bool(errors or alone))
PYTHON
exit $bad
