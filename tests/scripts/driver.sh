#!/usr/bin/env bash
# tests/scripts/driver.sh SOURCE BUILD - what `kassette run`, `flags`, `info` and `--version` promise.
set -euo pipefail
source_dir=$(realpath "$1")
KASSETTE_BUILD=$(realpath "$2")
export KASSETTE_BUILD
kassette=$source_dir/kassette
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
bad=0
check() {  # check "what" "expected" "got"
  [ "$2" = "$3" ] && return
  printf '%s: expected "%s", got "%s"\n' "$1" "$2" "$3"
  bad=1
}

mkdir 'a b'
cat >'a b/part.h' <<'CPP'
inline int part() { return 3; }
CPP
cat >'a b/args.cpp' <<'CPP'
#include <cstdio>
#include <kassette/version.h>
#include "part.h"
int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) std::printf("[%s]", argv[i]);
  return part() + argc;
}
CPP
status=0
got=$("$kassette" run 'a b/args.cpp' one 'two three' '' 2>err) || status=$?
check "arguments" "[one][two three][]" "$got"
check "exit code" 7 "$status"

compiled() { find "$KASSETTE_BUILD/scripts" -name args -printf '%i %T@\n' | sort; }
before=$(compiled)
"$kassette" run 'a b/args.cpp' >/dev/null 2>err || true
check "second run says nothing" "" "$(cat err)"
check "what the second run compiles" "$before" "$(compiled)"
. "$source_dir/tests/scripts/pace.sh"
again() { [ "$("$kassette" run 'a b/args.cpp' again || true)" = "[again]" ]; }
within 500 "a second run" least 5 again || bad=1

touch compiled_before
until [ 'a b/part.h' -nt compiled_before ]; do echo 'inline int part() { return 5; }' >'a b/part.h'; done
status=0
"$kassette" run 'a b/args.cpp' >/dev/null || status=$?
check "exit code after a change in an included file" 6 "$status"

cat >script <<CPP
#!/usr/bin/env -S $kassette run
#include <cstdio>
int main(int, char** argv) { std::printf("line %d %s", __LINE__, argv[1]); }
CPP
chmod +x script
check "a script with #!" "line 3 x" "$(./script x)"

printf '#!/usr/bin/env -S kassette run\n\nint main() { return x; }\n' >wrong.cpp
status=0
got=$("$kassette" run wrong.cpp 2>&1) || status=$?
[[ $got == *wrong.cpp:3:*error* ]] || check "the compiler's error" "wrong.cpp:3: error" "$got"
check "exit code of a compile error" 1 "$status"

"$kassette" run missing.cpp 2>err && status=0 || status=$?
check "a missing file" "2 kassette: run: no such file: missing.cpp" "$status $(cat err)"

# Flags, in the script and before it.
mkdir -p 'a b/more headers' elsewhere
echo '#define MORE 20' >'a b/more headers/more.h'
echo '#define OTHER 300' >elsewhere/other.h
cat >'a b/flags.cpp' <<'CPP'
// A script with flags.
// kassette: "-Imore headers" -DTWO=2 -lz
//   kassette: -DTEXT='"a b"'
#include <cstdio>
#include <more.h>
#if __has_include(<other.h>)
#include <other.h>
#else
#define OTHER 0
#endif
extern "C" const char* zlibVersion();
int main() { std::printf("%d %s%s\n", MORE + TWO + OTHER, TEXT, zlibVersion() ? "" : "no zlib"); }
CPP
check "flags in a script" "22 a b" "$("$kassette" run 'a b/flags.cpp')"
check "flags before a script" "322 a b" "$("$kassette" run -I elsewhere -O0 'a b/flags.cpp')"
check "flags in a script, from elsewhere" "22 a b" "$(cd / && "$kassette" run "$work/a b/flags.cpp")"
echo '// kassette: -I"x' >open_quote.cpp
status=0
"$kassette" run open_quote.cpp 2>err || status=$?
check "flags with an open quote" "2" "$status"
grep -q 'have an open quote' err || check "flags with an open quote" "its line" "$(cat err)"

cat >plain.cpp <<'CPP'
#include <kassette/version.h>
#include <cstdio>
int main() { std::puts(kassette::version()); }
CPP
# What ends a script: what it printed before is written, and one line says what was thrown and where in the script.
cat >thrown.h <<'CPP'
#include <stdexcept>
inline void throw_beside() {
  throw std::runtime_error("in two\nlines");
}
CPP
cat >ends.cpp <<'CPP'
#include <kassette/backend.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string>
#include <thread>
#include <vector>
#include "thrown.h"
namespace K = kassette::backend;
struct Odd {};
#line 100
int deep(int n) { volatile char page[4096]; page[0] = char(n); return n < 0 ? 0 : deep(n + 1) + page[0]; }
void raise_it() { throw 42; } void never_throws() noexcept { raise_it(); }
int main(int, char** argv) {
  std::ios::sync_with_stdio(false);
  std::printf("printed\n");
  std::cout << "streamed\n";
  std::string how = argv[1];
  volatile int zero = 0;
#line 200
  if (how == "kassette") K::dot(K::zeros({2, 3}),
                                K::zeros({2, 3}));
#line 202
  if (how == "beside") throw_beside();
  if (how == "string") throw std::string("text");
  if (how == "chars") throw "text";
  if (how == "int") throw 42;
  if (how == "odd") throw Odd();
  if (how == "thread") std::thread([] { (void)std::vector<int>().at(3); }).join();
  if (how == "noexcept") never_throws();
  if (how == "SEGV") std::memset(reinterpret_cast<void*>(zero + 1), 1, 1);
  if (how == "stack") return deep(0);
  if (how == "ABRT") std::abort();
  if (how == "FPE") return 7 / zero;
  if (how == "exit") return 5;
}
CPP
ends() {  # ends HOW "exit code" "line on stderr"
  local status=0
  ("$kassette" run ends.cpp "$1" >out 2>err || exit $?) 2>/dev/null || status=$?
  check "a script that ends by $1" "$2 $(printf 'printed\nstreamed') $3" "$status $(sort out) $(cat err)"
}
ends exit 5 ""
ends kassette 1 "ends.cpp:200: uncaught kassette::ValueError: dot: (2, 3) x (2, 3): inner dimensions differ, 3 against 2"
ends beside 1 "thrown.h:3: uncaught std::runtime_error: in two lines"
ends string 1 "ends.cpp:203: uncaught std::string: text"
ends chars 1 "ends.cpp:204: uncaught char const*: text"
ends int 1 "ends.cpp:205: uncaught int: 42"
ends odd 1 "ends.cpp:206: uncaught Odd"
ends thread 1 "ends.cpp:207: uncaught std::out_of_range: vector::_M_range_check: __n (which is 3) >= this->size() (which is 0)"
ends noexcept 1 "ends.cpp:101: uncaught int: 42"
ends SEGV 139 "ends.cpp:209: segmentation fault: an address that is not valid, or a recursion without end"
ends stack 139 "ends.cpp:100: segmentation fault: an address that is not valid, or a recursion without end"
ends ABRT 134 "ends.cpp:211: aborted"
ends FPE 136 "ends.cpp:212: arithmetic error: as by dividing an integer by 0"
(cd / && "$kassette" run "$work/ends.cpp" int >/dev/null 2>"$work/err") && bad=1
check "an exception, from elsewhere" "$work/ends.cpp:205: uncaught int: 42" "$(cat err)"
PATH=$work/tools:$PATH
mkdir tools && printf '#!/bin/sh\nexit 1\n' >tools/addr2line && chmod +x tools/addr2line
ends int 1 "kassette: run: uncaught int: 42"
rm -r tools

# Typing mistakes.
says() {  # says "what it says" arguments...
  local got status=0
  got=$("$kassette" "${@:2}" 2>&1 >/dev/null) || status=$?
  check "kassette ${*:2}" "2 kassette: $1" "$status $got"
}
says "run: which file?  kassette run FILE.cpp [args...]" run
says "run: no such file: a b/args; there is a b/args.cpp" run 'a b/args'
says "run: a b is a folder" run 'a b'
says "run: -x is not an option, nor a flag that it hands to the compiler; what the script is given stands behind it:  kassette run FILE.cpp -x" run -x plain.cpp
says "run: -I takes what stands behind it:  kassette run -I NAME FILE.cpp [args...]" run -I
says "run: it takes a file; lines from a pipe run in \`kassette repl\`" run -
says "plain.cpp is not a command; to run it:  kassette run plain.cpp" plain.cpp
says "rnu is not a command; there are run, repl, notebook, flags, info, build, test, bench, docs, package and python (kassette --help)" rnu plain.cpp
says "info: it takes no arguments, and was given x" info x
says "test: --sanitise is not an option; there are --sanitize=address, --sanitize=thread and --label=LABEL" test --sanitise
says "test: one filter at a time, not a and b" test a b
CXX=no-such-compiler says "run: there is no compiler no-such-compiler; see CXX" run plain.cpp
check "help behind a command" "$("$kassette" --help)" "$("$kassette" run --help)"

# The tests that need a GPU share one line where there is none. A build folder in which nothing is left to build stands for the real one.
mkdir built
grep -E '^CMAKE_(HOME_DIRECTORY|GENERATOR|MAKE_PROGRAM|PROJECT_NAME)\b' "$KASSETTE_BUILD/CMakeCache.txt" >built/CMakeCache.txt
echo 'build all kassette_tests: phony' >built/build.ninja
printf 'all kassette_tests:\n' >built/Makefile
printf 'add_test(unit "%s")\n' "$KASSETTE_BUILD/tests/kassette_tests" >built/CTestTestfile.cmake
status=0
env -u KASSETTE_CMAKE_OPTIONS -u KASSETTE_TEST_CUDA KASSETTE_BUILD="$work/built" "$kassette" test '[device]' >tested 2>&1 || status=$?
wanted=1
if "$kassette" info | grep -q '^devices .*cuda'; then wanted=0; fi
check "kassette test '[device]'" "0 $wanted" "$status $(grep -cE 'CUDA|GPU|cuda' tested)"
[[ $(tail -n 1 tested) =~ ^[0-9]+\ passed,\ 0\ failed,\ [0-9]+\ skipped$ ]] || check "its last line" "the counts" "$(tail -n 1 tested)"

# What is no unit test: one that passes, one that is skipped, one that fails and says why, one of ranks.
cat >built/CTestTestfile.cmake <<'CTEST'
add_test(fine true)
add_test(away sh -c "echo skipped: no such machine; exit 77")
set_tests_properties(away PROPERTIES SKIP_RETURN_CODE 77)
add_test(bad sh -c "echo 2 is not 3; exit 3")
add_test(ranks true)
CTEST
status=0
env -u KASSETTE_CMAKE_OPTIONS KASSETTE_BUILD="$work/built" "$kassette" test >tested 2>&1 || status=$?
check "kassette test, one fails" "1 2 passed, 1 failed, 1 skipped" "$status $(tail -n 1 tested)"
for line in ': fine ..' ': ranks ..' 'skipped: no such machine (away)' '2 is not 3' 'failed: bad'; do
  grep -qF -- "$line" tested || check "kassette test" "$line" "$(cat tested)"
done

# A folder that was configured when the packages of the tests were missing is configured again.
: >built/CTestTestfile.cmake
mkdir stub
printf '#!/bin/sh\ncase "$*" in *" -B %s "*) echo "$@" >"%s"; exit 1 ;; esac\nexec %s "$@"\n' "$work/built" "$work/configured" "$(command -v cmake)" >stub/cmake
chmod +x stub/cmake
env -u KASSETTE_CMAKE_OPTIONS PATH="$work/stub:$PATH" KASSETTE_BUILD="$work/built" "$kassette" test >tested 2>&1 || true
grep -qs -- '-DKASSETTE_TESTS=ON' configured || check "kassette test in a folder without tests" "it is configured with them" "$(cat tested)"

# Other ways to the same tool; a script that reads, in a folder with other letters; four at once.
mkdir 'Übung "1"'
cat >'Übung "1"/summe.cpp' <<'CPP'
#include <fstream>
#include <iostream>
int main() {
  int a, b, more = 0;
  std::ifstream(KASSETTE_SCRIPT_FOLDER "/more.txt") >> more;
  if (std::cin >> a >> b) std::cout << a + b + more << std::endl;
}
CPP
echo 10 >'Übung "1"/more.txt'
ln -s "$kassette" tool
for _ in 1 2 3 4; do (cd 'Übung "1"' && echo 3 4 | KASSETTE_BUILD=$(realpath --relative-to=. "$KASSETTE_BUILD") ../tool run summe.cpp) & done >sums 2>&1
wait
check "four at once" "$(printf '17\n17\n17\n17')" "$(cat sums)"
before=$(find "$KASSETTE_BUILD/scripts" -name summe -printf '%i %T@\n')
check "once more, from elsewhere" 19 "$(cd / && echo 4 5 | "$work/tool" run "$work/Übung \"1\"/summe.cpp")"
check "what that compiles" "$before" "$(find "$KASSETTE_BUILD/scripts" -name summe -printf '%i %T@\n')"

case $KASSETTE_BUILD in
  *' '*) [[ $("$kassette" flags 2>&1 >/dev/null) == *'there is a space in '* ]] || check "flags with a space" "a warning" "none" ;;
  *)
    # shellcheck disable=SC2046  # flags are words
    g++ -std=c++17 plain.cpp $("$kassette" flags) -o plain
    check "kassette flags, and --version" "$("$kassette" --version)" "kassette $(./plain)"
    ;;
esac
"$kassette" info >info || check "info" 0 $?
for line in kassette 'cpu level' blas threads devices; do
  grep -q "^$line  *[^ ]" info || check "info" "a line $line" "$(cat info)"
done
case $(uname -m):$(OPENBLAS_CORETYPE=Prescott "$kassette" info) in
  x86_64:*'warning: '*'OPENBLAS_CORETYPE=Prescott is exported'* | aarch64:*) ;;
  *) check "info under another CPU's OPENBLAS_CORETYPE" "a warning" "none" ;;
esac
exit $bad
