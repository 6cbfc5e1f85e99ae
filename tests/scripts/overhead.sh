#!/usr/bin/env bash
# tests/scripts/overhead.sh SOURCE BUILD - a K function costs at most one op's overhead more than the ops it calls: instructions on
# its smallest sample, counted by callgrind, less those inside of apply. Prints the functions that cost more.
set -euo pipefail
for tool in valgrind python3; do
  command -v $tool >/dev/null || { echo "skipped: there is no $tool"; exit 77; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# AVX-512 is more than valgrind knows.
KASSETTE_SIMD=avx2 KASSETTE_NUM_THREADS=1 valgrind --tool=callgrind --callgrind-out-file="$work/out" --compress-strings=no \
  --compress-pos=no --dump-before=kassette_overhead_mark "$2/tests/kassette_tests" "[.overhead]" >"$work/said" 2>"$work/log" ||
  { echo "skipped: valgrind cannot run the tests here"; tail -5 "$work/log"; exit 77; }
python3 - "$work" <<'PYTHON'
import os, re, sys

work = sys.argv[1]
names = [line[7:].strip() for line in open(f"{work}/said") if line.startswith("sample ")]
# Leaves and sparse handles are on the tape as ops are, and two ops have a short way beside apply: reshape, and a shape argument
# as a tensor.
OPS = re.compile(r"kassette::(ops::)?(apply(1|_all)?|make_leaf|make_sparse|reshape|dims_tensor)\(")
# Sparse tensors that are joined: three lists, of their indices, shapes and values, are made before the two ops are called. What
# ctc_decode finds is put into a struct that holds a list, and copied from it into another by the sample.
# Convolution and its kin read names, strides and paddings: up to 1,900 instructions beside an op of some 100,000 on images that are no samples;
# local convolution is a composition over the taps.
EXCEPT = re.compile(r"K::(concatenate #\d+ \(4, 2\) \(4,\)|ctc_decode|(separable_|depthwise_|local_)?conv\d|pool\d|bias_add|\w+_padding)")
# What a loop or branch calls is the user's.
CONTROL = re.compile(r"switch_|fold|map_fn|rnn|phase")
# What gives one new tensor a call.
MAKER = re.compile(r"kassette::(ops::)?(apply1|Access::wrap|reshape|dims_tensor|\(anonymous namespace\)::make_output)\(")
# What a sample calls itself: K functions, operators.
SAMPLE = re.compile(r"kOpSamples::\{lambda")
FUNCTION = re.compile(r"kassette::(backend::\w+|operator.*|Tensor::operator.*)\(")


def count(path):
    """(all instructions, those of ops, how many ops, how many functions the sample calls)"""
    total = ops = calls = made = frees = freed = functions = 0
    function, callee = "", None
    for line in open(path):
        if line.startswith("fn="):
            function = line[3:]
        elif line.startswith("cfn="):
            callee = line[4:]
        elif line.startswith("calls="):
            number = int(line[6:].split()[0])
        elif line[:1].isdigit() or line[:1] in "+-*":
            cost = int(line.split()[1]) if len(line.split()) > 1 else 0
            if callee is None:
                total += cost
                continue
            if OPS.search(callee) and not OPS.search(function):
                ops += cost
                calls += number
            if MAKER.search(callee):
                made += number
            if MAKER.search(function) and OPS.search(callee):
                made -= number   # counted where that is called, or makes an output
            if "TensorImpl::destroy(" in callee and "TensorImpl::destroy(" not in function:
                freed += cost
                frees += number
            if SAMPLE.search(function) and "::list(" in callee:
                total -= cost   # results as a list: the sample's doing
            if SAMPLE.search(function) and FUNCTION.search(callee):
                functions += number
            callee = None
    # What an op makes is let go, too: as with an op that the user calls.
    return total, ops + (freed * min(frees, made) / frees if frees else 0), calls, functions


found = {}
for k, name in enumerate(names):
    found[name] = [n / 10 for n in count(f"{work}/out.{2 * k + 2}")]
# K::square took 840 instructions when the functions were held to it. An op that gets cheaper tightens nothing. The call of a sample
# itself counts, and differs by a few instructions with what the compiler makes of the table.
one_op = max(840, next(f[0] for n, f in found.items() if "square" in n))
bad = 0
for name, (total, ops, calls, functions) in sorted(found.items(), key=lambda i: i[1][1] - i[1][0]):
    beside = total - ops
    over = beside > 1.01 * one_op * functions and not CONTROL.search(name) and not EXCEPT.search(name)
    bad += over
    if over or os.environ.get("VERBOSE"):
        print(f"{'OVER ' if over else '     '}{beside:7.0f} beside {calls:4.1f} ops of {ops:7.0f} instructions, {functions:.0f} functions: {name}")
print(f"one op: {one_op:.0f} instructions; {bad} of {len(found)} samples cost more beside their ops")
sys.exit(1 if bad else 0)
PYTHON
