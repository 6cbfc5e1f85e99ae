#!/usr/bin/env bash
# tests/scripts/external_backends.sh SOURCE BUILD - backends in libraries: found by name and by path, the example that traces, the page's
# own example, and libraries that are broken, each of which is one clear line.
set -euo pipefail
source=$(realpath "$1") build=$(realpath "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export KERAS_HOME=$work/keras
unset KERAS_BACKEND KASSETTE_BACKEND_PATH
bad=0
check() {  # check "what" "expected" "got"; an expectation is a pattern
  # shellcheck disable=SC2053  # a pattern
  [[ $3 == $2 ]] && return
  printf '%s: expected "%s", got "%s"\n' "$1" "$2" "$3"
  bad=1
}
flags=(-std=c++17 -I"$source/include" -L"$build/lib" -lkassette -Wl,-rpath,"$build/lib")

cat >"$work/program.cpp" <<'CPP'
#include <kassette/backend.h>

#include <iostream>
namespace K = kassette::backend;
int main() {
  try {
    auto x = K::variable({-1.0, 4.0});
    auto y = K::sqrt(K::relu(x)) + 0;
    auto in = K::placeholder({2});
    auto f = K::function({in}, {K::log(in)});
    std::cout << K::backend() << ' ' << K::eval(y) << ' ' << f({x})[0] << '\n';
  } catch (const kassette::Error& e) {
    std::cout << e.what() << '\n';
  }
}
CPP
g++ "$work/program.cpp" -o "$work/program" "${flags[@]}"
check "the built-in backend" "tensorflow \[0. 2.\] (2,) float32 cpu \[*nan 1.3862944\] (2,) float32 cpu" "$("$work/program" 2>"$work/err")"
check "no banner without asking" "" "$(cat "$work/err")"
KASSETTE_LOG=info "$work/program" >/dev/null 2>"$work/err"
check "the banner in the log" "*Using TensorFlow backend.*" "$(cat "$work/err")"
check "theano" "theano \[0. 2.\]*" "$(KERAS_BACKEND=theano "$work/program" 2>"$work/err")"
check "one line says what theano is" "kassette: *: backend 'theano' runs on the built-in backend*" "$(cat "$work/err")"

if [ -e "$build/lib/kassette/tracing.so" ]; then
  got=$(KERAS_BACKEND=tracing "$work/program" 2>"$work/err")
  check "the tracing backend" "tracing \[0. 2.\] (2,)*" "$got"
  for line in 'relu  *1 ' 'add  *1 ' 'function()  *1 ' 'placeholder  *1 ' 'the first NaN came from function(), call 1'; do
    grep -q "^$line" "$work/err" || check "the table" "a line $line" "$(cat "$work/err")"
  done
fi

# The page's example, by a dotted name and by a path.
mkdir "$work/my_package"
awk '/^```cpp$/ { p = 1; next } /^```/ { p = 0 } p' "$source/docs/backends.md" >"$work/my_module.cpp"
g++ -shared -fPIC "$work/my_module.cpp" -o "$work/my_package/my_module.so" "${flags[@]}"
lacks="sqrt: the backend '*' does not provide it"
check "a dotted name" "$lacks" "$(KASSETTE_BACKEND_PATH=/nowhere:$work KERAS_BACKEND=my_package.my_module "$work/program")"
check "beside the program" "$lacks" "$(KERAS_BACKEND=my_package.my_module "$work/program")"
check "a path" "$lacks" "$(KERAS_BACKEND=$work/my_package/my_module.so "$work/program")"

# The same by the names of before 0.2.0.
sed -E 's/kassette_external_backend/kassette_engine/; s/external_backend\.h/engine.h/; s/\bexternal\b/engine/g; s/built_in\(\)/native()/' \
  "$work/my_module.cpp" >"$work/old.cpp"
g++ -shared -fPIC "$work/old.cpp" -o "$work/old.so" "${flags[@]}" 2>"$work/err"
check "the old header" "*<kassette/engine.h> is now <kassette/external_backend.h>*" "$(cat "$work/err")"
check "the old function" "$lacks" "$(KERAS_BACKEND=$work/old.so "$work/program" 2>"$work/err")"
check "a line about it" "*old.so: kassette_engine is now kassette_external_backend*" "$(cat "$work/err")"

broken() {  # broken NAME "pattern": the program's one line
  local got
  got=$(KERAS_BACKEND=$1 "$work/program" 2>&1)
  check "$1" "Unable to import backend : $1: $2" "$got"
  check "$1 in lines" 1 "$(wc -l <<<"$got")"
}
library() { g++ -std=c++17 -x c++ -shared -fPIC - -I"$source/include" -o "$work/$1.so"; }
echo 'this is no library' >"$work/text.so"
: >"$work/empty.so"
echo 'int x;' | library without
echo '#include <kassette/external_backend.h>
extern "C" const kassette::external::Table* kassette_external_backend() {
  static const kassette::external::Table t{99, 0, nullptr}; return &t; }' | library version
echo '#include <stdexcept>
extern "C" void* kassette_external_backend() { throw std::runtime_error("no licence"); }' | library throwing
echo 'extern "C" void nowhere(); extern "C" void* kassette_external_backend() { nowhere(); return nullptr; }' | library unresolved
broken text "*text.so: *"
broken empty "*empty.so: file too short"
broken without "*without.so has no function kassette_external_backend"
broken version "*version.so is built for version 99 of <kassette/external_backend.h>, this kassette has *; build it anew"
broken throwing "*throwing.so: kassette_external_backend threw: no licence"
broken unresolved "*nowhere*"
broken no.such.module "no no/such/module.so in *"
broken "$work/no.so" "*no.so: *No such file*"
exit $bad
