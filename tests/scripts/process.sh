#!/usr/bin/env bash
# tests/scripts/process.sh SOURCE BUILD - what belongs to a whole process: how it ends, and what it logs once.
set -euo pipefail
source=$(realpath "$1") build=$(realpath "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
compiled() { g++ -std=c++17 -O1 -I"$source/include" "$work/$1.cpp" -o "$work/$1" -pthread -L"$build/lib" -lkassette -Wl,-rpath,"$build/lib"; }
bad=0

# It ends as main says, whatever threads that nobody has joined are doing.
cat >"$work/detached.cpp" <<'CPP'
#include <kassette/backend.h>
#include <atomic>
#include <chrono>
#include <thread>
namespace K = kassette::backend;
int main(int, char** argv) {
  kassette::Tensor a = K::random_normal({64, 700}), b = K::random_normal({700, 700});
  static std::atomic<int> begun{0};
  const int n = 1 + (argv[1][0] - 48) % 4;
  for (int i = 0; i < n; ++i)
    std::thread([a, b] {
      for (;; ++begun) K::dot(a, b);
    }).detach();
  while (begun < 2 * n) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::microseconds(37 * (argv[1][0] - '0')));
  return 3;
}
CPP
compiled detached
for i in {1..60}; do
  status=0
  timeout 20 "$work/detached" "$((i % 10))" 2>/dev/null || status=$?
  [ $status -eq 3 ] || { echo "with detached threads, run $i ends with $status"; bad=1; break; }
done

# A function that captures a random tensor which has a value says once that it draws anew; one that records the draw says nothing.
cat >"$work/captured.cpp" <<'CPP'
#include <kassette/backend.h>
namespace K = kassette::backend;
int main(int argc, char**) {
  kassette::Tensor x = K::placeholder({2});
  K::function({x}, {x * K::random_normal(K::shape(x)), K::dropout(x, 0.5)});
  K::function([](const kassette::Tensors& in) { return kassette::Tensors{in[0] + K::random_normal({2})}; }, {x});
  K::function({x}, {x * K::eval(K::random_normal({2})), x + K::variable(K::random_normal({2}))});
  if (argc == 1) return 0;
  kassette::Tensor w = K::random_normal({2}), v = 2 * K::random_normal({2});
  K::function({x}, {x * w});
  K::function({x}, {x * v});
}
CPP
compiled captured
[ -z "$("$work/captured" 2>&1)" ] || { echo "without a captured draw: $("$work/captured" 2>&1)"; bad=1; }
said=$("$work/captured" and 2>&1)
[[ $(wc -l <<<"$said") == 1 && $said == *"draws it anew at each call"*"K::eval"* ]] || { echo "of a captured draw: $said"; bad=1; }
exit $bad
