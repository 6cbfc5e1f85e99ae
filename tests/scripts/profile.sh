#!/usr/bin/env bash
# tests/scripts/profile.sh SOURCE BUILD - a profile of a script is a trace that Python's json reads, whose events nest and know the lines of the
# script; KASSETTE_PROFILE writes one for a whole program; detect_nan names the line.
set -euo pipefail
command -v python3 >/dev/null || { echo "skipped: there is no python3"; exit 77; }
command -v addr2line >/dev/null || { echo "skipped: there is no addr2line"; exit 77; }
source_dir=$(realpath "$1")
KASSETTE_BUILD=$(realpath "$2")
export KASSETTE_BUILD
kassette=$source_dir/kassette
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
bad=0
complain() {
  echo "$*"
  bad=1
}

cat >layers.h <<'CPP'
#include <kassette/backend.h>
inline kassette::Tensor dense(const kassette::Tensor& x, const kassette::Tensor& w) {
  return kassette::backend::dot(x, w);  // line 3
}
CPP
cat >script.cpp <<'CPP'
#include <kassette/backend.h>
#include <kassette/profile.h>
#include <iostream>
#include <string>
#include "layers.h"
namespace K = kassette::backend;
using kassette::Tensor;
using kassette::Tensors;

int main(int argc, char** argv) {
  Tensor w = K::variable(K::ones({3, 5}) * 0.1), x = K::placeholder({2, 4, 3});
  Tensor y = K::rnn([&](const Tensor& now, const Tensors& states) -> K::Step {
    Tensor h = K::tanh(dense(now, w) + states[0]);  // line 13

    return {h, {h}};
  }, x, {K::zeros({2, 5})}).last_output;
  Tensor loss = K::mean(
      K::log(y));  // line 18
  auto step = K::function({x}, {loss}, {{w, w - 0.1 * K::gradients(loss, {w})[0]}});
  if (argc > 1) {
    auto guard = kassette::detect_nan();
    step({K::zeros({2, 4, 3})});  // the last state is 0, and so is what the logarithm is given
  }
  auto p = kassette::profile("trace.json");
  for (int i = 0; i < 3; ++i) step({K::ones({2, 4, 3})});  // line 25
  Tensor v = K::variable({1, 2});
  K::gradients(K::sum(K::exp(v)), {v});  // line 27
  p.stop();
  std::cout << p;
}
CPP
"$kassette" run script.cpp >said 2>err || { cat err; exit 1; }

cat >check.py <<'PYTHON'
import json, sys
trace = json.load(open(sys.argv[1]))
events = [e for e in trace["traceEvents"] if e["ph"] == "X"]
bad = []
def check(what, good):
    if not good: bad.append(what)
def of(name): return [e for e in events if e["name"] == name]
def inside(e, outer): return outer["tid"] == e["tid"] and outer["ts"] <= e["ts"] and e["ts"] + e["dur"] <= outer["ts"] + outer["dur"] + 1e-6
def lines(name): return {e["args"].get("line") for e in of(name)}
# On one thread two events are apart, or one is inside of the other.
stack = []
for e in sorted(events, key=lambda e: (e["ts"], -e["dur"])):
    while stack and stack[-1]["ts"] + stack[-1]["dur"] <= e["ts"] + 1e-6: stack.pop()
    check(f"{e['name']} overlaps {stack[-1]['name'] if stack else ''}", not stack or inside(e, stack[-1]))
    stack.append(e)
check("three calls of the function", len(of("function")) == 3)
check("a forward pass in each", len(of("rnn")) == 3 and all(any(inside(e, f) for f in of("function")) for e in of("rnn")))
check("a backward pass in each", len(of("the backward pass of rnn")) == 3)
check("each step is there", len([e for e in of("tanh") if any(inside(e, r) for r in of("rnn"))]) == 12)
check(f"the line of tanh, {lines('tanh')}", lines("tanh") == {"script.cpp:13"})
check(f"the line of a product in a header, {lines('matmul')}", "layers.h:3" in lines("matmul"))
check(f"the line of log, {lines('log')}", lines("log") == {"script.cpp:18"})
check(f"the line of the calls, {lines('function')}", lines("function") == {"script.cpp:25"})
adjoints = [e for e in events if e["args"].get("adjoint of") == "tanh" and e["cat"] != "scope"]
check("the adjoint of tanh has its line", adjoints and {e["args"].get("line") for e in adjoints} == {"script.cpp:13"})
check("gradients of an eager value", any(e["args"].get("line") == "script.cpp:27" for e in of("gradients")))
check("shapes and bytes", all(e["args"]["shapes"] and e["args"]["bytes"] >= 0 for e in events if e["cat"] == "op"))
check("memory", any(e["ph"] == "C" and e["args"]["bytes"] >= 0 for e in trace["traceEvents"]))
check("names of threads", any(e["ph"] == "M" and e["name"] == "thread_name" for e in trace["traceEvents"]))
print("\n".join(bad))
sys.exit(bool(bad))
PYTHON
python3 check.py trace.json || bad=1

for row in 'op  *calls' 'tanh  *12 ' 'line  *calls' 'script.cpp:13 ' 'layers.h:3 ' 'function  *calls' 'rnn  *3 ' 'gradients  *1 '; do
  grep -q "^$row" said || complain "the tables have no row \"$row\": $(cat said)"
done

status=0
"$kassette" run script.cpp nan >said 2>err || status=$?
[ $status = 1 ] && grep -q "log: gave 10 -inf in its result (2, 5) float32, of the input x (2, 5) float32 of 0, called at script.cpp:18" err ||
  complain "detect_nan, $status: $(cat said err)"

KASSETTE_PROFILE=whole.json "$kassette" run "$source_dir/examples/digits.cpp" function >said 2>err || complain "digits: $(cat err)"
grep -q '^digits.cpp:\|/digits.cpp:' err && grep -q 'matmul' err || complain "no tables on standard error: $(head -c 3000 err)"
grep -q 'held-out accuracy' said || complain "digits says $(head -c 300 said)"
python3 - <<'PYTHON' || bad=1
import json
events = json.load(open("whole.json"))["traceEvents"]
names = [e["name"] for e in events if e["ph"] == "X"]
assert names.count("function") > 100, "calls of the function"
assert "softmax" in " ".join(names) or "crossentropy" in " ".join(names), "the loss"
PYTHON
exit $bad
