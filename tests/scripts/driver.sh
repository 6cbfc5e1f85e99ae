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

# An apostrophe in a reason would end the table.
check "the table of packages" "$(grep -cE '^[a-z]+ *\|.*\|.*\|.*\|' "$source_dir/third_party/install.sh")" "$("$source_dir/third_party/install.sh" --list | wc -l)"

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

cat >plain.cpp <<'CPP'
#include <kassette/version.h>
#include <cstdio>
int main() { std::puts(kassette::version()); }
CPP
# shellcheck disable=SC2046  # flags are words
g++ -std=c++17 plain.cpp $("$kassette" flags) -o plain
check "kassette flags, and --version" "$("$kassette" --version)" "kassette $(./plain)"
"$kassette" info >info || check "info" 0 $?
for line in kassette 'cpu level' blas threads devices; do
  grep -q "^$line  *[^ ]" info || check "info" "a line $line" "$(cat info)"
done
case $(uname -m):$(OPENBLAS_CORETYPE=Prescott "$kassette" info) in
  x86_64:*'warning: '*'OPENBLAS_CORETYPE=Prescott is exported'* | aarch64:*) ;;
  *) check "info under another CPU's OPENBLAS_CORETYPE" "a warning" "none" ;;
esac
exit $bad
