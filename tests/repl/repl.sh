#!/usr/bin/env bash
# tests/repl/repl.sh SOURCE BUILD [--accept] - the golden sessions of tests/repl in our own REPL, scripts and pipes, the terminal,
# and how long it takes. --accept writes what is printed now into the sessions.
set -euo pipefail
source_dir=$(realpath "$1") build=$(realpath "$2")
repl=$build/tools/kassette_repl
if [ ! -x "$repl" ]; then
  echo "skipped: the REPL is not built; it needs clang 19's libraries and libedit (third_party/install.sh repl)"
  exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export KASSETTE_HISTORY=$work/history XDG_CACHE_HOME=$work/cache
bad=0
check() {  # check "what" "expected" "got"
  [ "$2" = "$3" ] && return
  printf '%s: expected "%s", got "%s"\n' "$1" "$2" "$3"
  bad=1
}

# A session is what a terminal would show; its lines behind a prompt are what was typed. `# ...` above the first is for readers.
for session in "$source_dir"/tests/repl/*.txt; do
  sed -nE 's/^(kassette>|     \.\.\.>) ?//p' "$session" >"$work/typed"
  (cd "$work" && "$repl" --echo <"$work/typed" >"$work/shown" 2>&1) || { echo "$(basename "$session"): exit code $?"; bad=1; }
  { sed '/^kassette>/,$d' "$session" && sed 's/ *$//' "$work/shown"; } >"$work/new"
  if [ "${3:-}" = --accept ]; then
    cp "$work/new" "$session"
  else
    diff "$session" "$work/new" || { echo "$(basename "$session"): the session went another way"; bad=1; }
  fi
done

# A script has what it prints behind `//> `.
for script in "$source_dir"/tests/repl/scripts/*.cpp; do
  (cd "$work" && "$repl" "$script" >shown 2>&1) || { echo "$(basename "$script"): exit code $?"; bad=1; }
  diff <(sed -n 's,^//> ,,p' "$script") "$work/shown" || { echo "$(basename "$script"): it prints something else"; bad=1; }
done

cd "$work"
# Pipes and scripts end at the first error.
status=0
got=$(printf '1 + 1\nK::dot(K::ones({2}), K::ones({3}))\n3\n' | "$repl" 2>err) || status=$?
check "a pipe's output" 2 "$got"
check "a pipe's exit code after an exception" 1 $status
grep -q '^<stdin>:2: kassette::ValueError: dot: ' err || check "a pipe's error" "<stdin>:2: kassette::ValueError" "$(cat err)"
printf '#!/usr/bin/env -S kassette repl\nauto x = K::ones({2});\nx.shap()\n3\n' >script.cpp
status=0
got=$("$repl" script.cpp 2>err) || status=$?
check "a script's exit code after an error" "1 " "$status $got"
grep -q '^script.cpp:3:3: error: no member named' err || check "a script's error" "script.cpp:3:3: error" "$(cat err)"
printf 'inline Tensor squared(const Tensor& x) {\n  return K::dot(x, x);\n}\n' >model.h
printf '#include "model.h"\nTensor step(const Tensor& x) {\n  Tensor y = squared(x);\n  return y; }\nstep(K::ones({2, 2}));\n\nstep(K::ones({2, 3}));\n' >frames.cpp
said="kassette::ValueError: dot: (2, 3) x (2, 3): inner dimensions differ, 3 against 2"
check "the place of an exception in a header" "model.h:2: $said" "$("$repl" frames.cpp 2>&1)"
check "the same at a prompt" "model.h:2: $said" "$("$repl" --echo <frames.cpp | tail -n 1)"
sed 's/squared(x)/K::dot(x, x)/' frames.cpp >own.cpp
check "the place of an exception in a function of the script" "own.cpp:3: $said" "$("$repl" own.cpp 2>&1)"
printf '#include <kassette/backend.h>\nnamespace K = kassette::backend;\nint f(int n) {\n  return K::dot(K::ones({2, 3}), K::ones({2, n})).size();\n}\nint main() { return f(3); }\n' >main.cpp
check "the place of an exception in a program" "main.cpp:4: $said" "$("$repl" main.cpp 2>&1)"
unknown="kassette::TypeError: dtype 'flot32' is unknown"
check "an exception of a header of ours, in a clone's folder" "<code>:2: $unknown" "$(cd "$source_dir" && "$repl" -c '1;
K::constant({1}, "flot32")' 2>&1 | cut -d';' -f1)"
printf '#include <cstdio>\nint g(int);\nint main(int argc, char** argv) { std::printf("%%s %%d", argv[1], g(argc)); std::fflush(stdout); return 7; }\nint g(int i) { return i; }\n' >program.cpp
status=0
got=$("$repl" program.cpp one 2>err) || status=$?
check "a program with main" "7 one 2" "$status $got"
printf '#include <iostream>\nextern "C" int labelled(int) __asm__("abs");\nint main() { asm("nop"); std::cout << labelled(-3) << std::endl; }\n' >labels.cpp
status=0
got=$("$repl" labels.cpp 2>err) || status=$?
check "a program with <iostream>, labels and instructions of the assembler" "0 3 " "$status $got $(cat err)"
printf 'int main() { return 0; }\nnamespace v1 { int x = }\n' >endless.cpp
status=0
timeout 60 "$repl" endless.cpp 2>err || status=$?
check "a program that the compiler alone would not finish" "1 endless.cpp:2:" "$status $(head -c 14 err)"
status=0
printf 'auto x = K::ones({\n2\n' | "$repl" >out 2>err || status=$?
check "a pipe that ends too early" "1 <stdin>:1: error: the input ends inside of what begins here, with a { open" "$status $(cat err)"
status=0
"$repl" missing.cpp 2>err || status=$?
check "a script that is not there" "2 kassette: repl: no such file: missing.cpp" "$status $(cat err)"
status=0
printf '#include <cstdlib>\nTensor x = K::ones({3});\nexit(4);\n' | "$repl" >out 2>err || status=$?
check "exit() in a line" "4" "$status$(cat err)"

check "-c" "2 3" "$("$repl" -c '1 + 1
1 +
  2' | xargs)"
status=0
"$repl" -c 'int f( {' 2>err || status=$?
check "-c with a bracket open" "1 <code>:1: error: the input ends inside of what begins here, with a { open" "$status $(cat err)"
printf 'int three = 3;\nthree\n' >three.cpp
check "-i in a pipe" "3 4" "$(echo 'three + 1' | "$repl" -i three.cpp | xargs)"
check ".load" "3 6" "$(printf '.load three.cpp\nthree * 2\n' | "$repl" | xargs)"
printf 'int four = 4;\ntypo\n' >four.cpp
status=0
printf '.load four.cpp\n' | "$repl" 2>err || status=$?
check "the place of an error in a file that is loaded" "1 four.cpp:2:1: error: use of undeclared identifier 'typo'" "$status $(head -1 err)"

got=$(printf '?K::softmax\nhelp(Tensor::item)\n?Tensor\n?borrow\n?expect_error\n' | "$repl")
for part in 'Tensor softmax(const Operand& x, int axis = -1)' '<kassette/backend/softmax.h>' 'T item() const' 'class Tensor' \
            'A tensor over the elements of' 'void expect_error(Name text, F&& f)'; do
  [[ $got == *"$part"* ]] || check "what ? and help() print" "$part" "$got"
done

# The pages of namespaces.
got=$(printf '?np::linalg\n?K\n?np\n' | "$repl")
for part in 'linear algebra: np::linalg.' 'solve solve_triangular' 'recurrence over time.' 'rnn map_fn' 'sort argsort' ' fft  linalg '; do
  [[ $got == *"$part"* ]] || check "the page of a namespace" "$part" "$got"
done

# The headers are compiled once, and again when one has changed or the file is damaged.
cp -r "$source_dir/include" include
state() { stat -c '%i %s' cache/kassette/*.pch | sort | xargs; }
value() { "$repl" --include "$work/include" -c "$1" 2>&1; }
rm -r cache
check "a session that compiles the headers" 3 "$(value '1 + 2')"
before=$(state)
check "one that has them" "{{1, 2}}" "$(value 'std::map<int, int>{{1, 2}}')"
check "the file of the second session" "$before" "$(state)"
echo 'namespace kassette { inline int fresh() { return 7; } }' >include/kassette/fresh.h
sed -i '/^namespace K/i #include <kassette/fresh.h>' include/kassette/prompt.h
check "a header that has changed" 7 "$(value 'kassette::fresh()')"
[ "$before" != "$(state)" ] || check "the file" "another one" "the same"
truncate -s 1000 cache/kassette/*.pch
check "a file that is damaged" 7 "$(value 'kassette::fresh()')"
echo 'int x = undefined;' >>include/kassette/fresh.h
status=0
got=$(value 1) || status=$?
[[ $status = 2 && $got == *"kassette: repl: the headers of kassette do not compile" ]] || check "headers that do not compile" 2 "$status $got"
sed -i '$d' include/kassette/fresh.h
mkdir temporary
check "no cache" 8 "$(HOME='' XDG_CACHE_HOME=/proc/none TMPDIR=$work/temporary value 'kassette::fresh() + 1; std::max(8, 1)')"
check "what that leaves" "" "$(ls temporary)"

if command -v python3 >/dev/null; then
  python3 "$source_dir/tests/repl/repl_terminal.py" "$repl" "$work" || bad=1
else
  echo "the terminal was not tried: there is no python3"
fi

. "$source_dir/tests/scripts/pace.sh"
echo '1' >one
{ echo 1; for i in $(seq 20); do printf 'Tensor t%d = K::constant({%d, 2}) + 1.0;\nt%d\nt%d = t%d * 2.0;\n' "$i" "$i" "$i" "$i" "$i"; done; } >many
# CPU time is measured, and a thread of OpenBLAS's spends a quarter of it waiting for work that never comes.
export OPENBLAS_NUM_THREADS=1
first() { "$repl" <one; }
all() { "$repl" <many; }
lines() { echo $(($(least 3 all) - $(least 3 first))); }
within 330 "the prompt and a first value" least 5 first || bad=1
within 600 "60 more lines" lines || bad=1
printf '#include <%s>\n' algorithm chrono functional iostream map random thread >headers
echo 1 >>headers
included() { "$repl" <headers; }
includes() { echo $(($(least 3 included) - $(least 3 first))); }
within 100 "seven headers" includes || bad=1
exit $bad
