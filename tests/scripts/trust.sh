#!/usr/bin/env bash
# tests/scripts/trust.sh SOURCE BUILD - what a program believes of its surroundings: settings in /tmp/.keras of somebody else, a
# program with more rights than its user, and saves where the file system has no files without names.
set -euo pipefail
source=$(realpath "$1") build=$(realpath "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
unset KERAS_BACKEND KASSETTE_BACKEND_PATH KERAS_HOME
bad=0
check() {  # check "what" "expected" "got"; an expectation is a pattern
  # shellcheck disable=SC2053  # a pattern
  [[ $3 == $2 ]] && return
  printf '%s: expected "%s", got "%s"\n' "$1" "$2" "$3"
  bad=1
}
compile() { g++ -x c++ -std=c++17 - -o "$work/$1" -I"$source/include" -L"$build/lib" -lkassette -Wl,-rpath,"$build/lib"; }

# A save that is killed, where O_TMPFILE is refused: the next save of the same file removes what it left.
g++ -x c++ -shared -fPIC - -o "$work/no_tmpfile.so" -ldl <<'CPP'
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
extern "C" int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  mode_t mode = va_arg(arguments, mode_t);
  va_end(arguments);
  if ((flags & O_TMPFILE) == O_TMPFILE) return errno = EOPNOTSUPP, -1;
  return ((int (*)(const char*, int, ...))dlsym(RTLD_NEXT, "open"))(path, flags, mode);
}
extern "C" int open64(const char* path, int flags, ...) __attribute__((alias("open")));
CPP
compile save <<'CPP'
#include <kassette/backend.h>
#include <kassette/io.h>
#include <csignal>
#include <string>
#include <unistd.h>
int main(int n, char** arguments) {
  std::string path = arguments[1];
  kassette::Tensor x = kassette::backend::zeros({n > 2 ? 1 << 27 : 4});
  if (n > 2) {   // killed while it writes
    std::signal(SIGALRM, [](int) { raise(SIGKILL); });
    ualarm(50000, 0);
  }
  kassette::save_npy(path, x);
}
CPP
export KERAS_HOME=$work/keras
mkdir "$work/saves"
for preload in "" "$work/no_tmpfile.so"; do
  for old in no yes; do
    rm -f "$work"/saves/*
    [ $old = no ] || "$work/save" "$work/saves/x.npy"
    (LD_PRELOAD=$preload "$work/save" "$work/saves/x.npy" big || true) 2>/dev/null
    [ -n "$preload" ] || check "left by a killed save" "$([ $old = no ] || echo x.npy)" "$(ls "$work/saves")"
    [ -z "$preload" ] || check "left without O_TMPFILE" "*x.npy.kassette-0.tmp" "$(ls "$work/saves" | tr '\n' ' ' | sed 's/ $//')"
    LD_PRELOAD=$preload "$work/save" "$work/saves/x.npy"
    check "after the next save" "x.npy" "$(ls "$work/saves")"
    check "its size" 144 "$(stat -c %s "$work/saves/x.npy")"
  done
done
unset KERAS_HOME

[ "$(id -u)" = 0 ] && command -v setpriv >/dev/null || { echo "the rest is left out: it takes root and setpriv"; exit $bad; }
compile settings <<'CPP'
#include <kassette/backend.h>
#include <sys/auxv.h>
#include <iostream>
int main() {
  try {
    std::cout << getauxval(AT_SECURE) << ' ' << kassette::backend::backend() << ' ' << kassette::backend::floatx() << '\n';
  } catch (const kassette::Error& e) {
    std::cout << e.what() << '\n';
  }
}
CPP
as() { setpriv --reuid "$1" --regid "$1" --clear-groups env -i HOME="$2" "${@:3}" 2>&1; }
as 65534 /nonexistent KERAS_HOME=/nonexistent "$work/settings" >/dev/null || { echo "the rest is left out: other users cannot read $build"; exit $bad; }

# The home cannot be written, and in /tmp/.keras somebody else has put a name.
if [ -e /tmp/.keras ]; then
  echo "left out: there is a /tmp/.keras already"
else
  trap 'rm -rf "$work" /tmp/.keras' EXIT
  mkdir /tmp/.keras
  echo '{"floatx": "float64", "backend": "theirs"}' >/tmp/.keras/keras.json
  chown -R 65533 /tmp/.keras
  check "the settings of somebody else" "*keras.json: /tmp/.keras/keras.json is not read and the defaults are used, because the folder /tmp/.keras belongs to 65533, *
0 tensorflow float32" "$(as 65534 /nonexistent "$work/settings")"
  chown -R 65534 /tmp/.keras
  echo '{"floatx": "float64"}' >/tmp/.keras/keras.json
  check "one's own in /tmp" "0 tensorflow float64" "$(as 65534 /nonexistent "$work/settings")"
  rm -r /tmp/.keras
fi

# With more rights than its user, a program reads neither the user's file nor the environment.
mkdir -p "$work/home/.keras"
echo '{"floatx": "float64", "backend": "theirs"}' >"$work/home/.keras/keras.json"
chown -R 65534 "$work/home"
chmod 4755 "$work/settings"
got=$(as 65534 "$work/home" KERAS_HOME="$work/home/.keras" KERAS_BACKEND=theirs KASSETTE_BACKEND_PATH="$work/home" "$work/settings")
[[ $got == 0* ]] && echo "left out: the file system ignores setuid" || check "setuid" "1 tensorflow float32" "$got"
exit $bad
