# tests/scripts/pace.sh - limits of time that hold on a slower or busier machine as well. For scripts that have a folder $work to source.
#
# A limit stands for the machine that it was set on. What the machine at hand needs at this moment for a fixed piece of work, to compile
# and link a program of the standard library's alone, is compared with what that one needed; the limit grows as this is slower, never shrinks.

export LC_ALL=C   # a comma in the shell's times would be lost
mkdir "$work/pace"
cat >"$work/pace/pace.cpp" <<'CPP'
#include <iostream>
#include <map>
#include <string>
#include <vector>
int main() {
  std::map<std::string, std::vector<int>> m;
  m["a"].push_back(1);
  std::cout << m.size() << '\n';
}
CPP
pace_work() { "${CXX:-g++}" -std=c++17 -O0 "$work/pace/pace.cpp" -o "$work/pace/program"; }
pace_reference=400   # ms

# cpu_ms COMMAND...: milliseconds of CPU time that it takes; wall time would measure whatever else the machine does.
cpu_ms() {
  local times
  times=$({ TIMEFORMAT='%U %S'; time "$@" >"$work/pace/out" 2>"$work/pace/err"; } 2>&1) || { cat "$work/pace/out" "$work/pace/err" >&2; return 1; }
  awk '{ printf "%d", ($1 + $2) * 1000 }' <<<"$times"
}

# least RUNS COMMAND...: of its fastest run.
least() {
  local runs=$1 found=999999 run took
  shift
  for ((run = 0; run < runs; ++run)); do
    took=$(cpu_ms "$@") || return 1
    [ "$took" -ge "$found" ] || found=$took
  done
  echo "$found"
}

# within MS "what" TOOK_COMMAND...: whether what TOOK_COMMAND prints, in ms, is at most MS here and now; the last of three tries
# counts. Says both, and the pace.
within() {
  local limit=$1 what=$2 took pace allowed try
  shift 2
  for try in 1 2 3; do
    took=$("$@") || { echo "$what: failed"; return 1; }
    pace=$(least 3 pace_work) || return 1
    allowed=$((pace > pace_reference ? limit * pace / pace_reference : limit))
    [ "$took" -gt "$allowed" ] || break
  done
  echo "$what: $took ms of $allowed (the limit is $limit ms where the pace is $pace_reference ms; here it is $pace ms)"
  [ "$took" -le "$allowed" ]
}
