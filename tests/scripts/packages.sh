#!/usr/bin/env bash
# tests/scripts/packages.sh SOURCE BUILD - makes the Debian packages, and holds their names, contents and dependencies.
set -euo pipefail
source=$(realpath "$1") build=$(realpath "$2")
for program in dpkg-shlibdeps file; do
  command -v $program >/dev/null || { echo "skipped: there is no $program, which cpack needs"; exit 77; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cpack --config "$build/CPackConfig.cmake" -B "$work" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }

bad=0
complain() {
  echo "$*"
  bad=1
}
package() { echo "$work/$1"_[0-9]*.deb; }
# has PACKAGE FILE...: these, and the copyright.
has() {
  local name=$1 file
  shift
  set -- "share/doc/$name/copyright" "$@"
  dpkg-deb -c "$(package "$name")" | awk '{ print $6 }' >"$work/files"
  for file in "$@"; do
    grep -qE "^\./usr/$file$" "$work/files" || complain "$name does not hold $file"
  done
}
depends() { dpkg-deb -f "$(package "$1")" Depends; }

version=$(dpkg-deb -f "$(package libkassette-dev)" Version)
[[ $version == "$("$source/kassette" --version | sed 's/kassette //')"-1* ]] || complain "the version is $version"
# The architecture is that of the library, on whichever machine the packages are made.
machine=$(readelf -h "$build/lib/libkassette.so" | sed -n 's/^ *Machine: *//p')
case $machine in
  *X86-64) wanted=amd64 ;;
  AArch64) wanted=arm64 ;;
  *) wanted=$(dpkg --print-architecture) ;;
esac
for deb in "$work"/*.deb; do
  [[ $deb == *_$wanted.deb && $(dpkg-deb -f "$deb" Architecture) == "$wanted" ]] ||
    complain "a library for $machine is in $(basename "$deb"), of $(dpkg-deb -f "$deb" Architecture)"
done
abi=$(grep -oE '^[0-9]+\.[0-9]+' <<<"$version") library=libkassette$abi
has "$library" "lib(/[^/]*)?/libkassette\.so\.${abi/./\\.}" "lib(/[^/]*)?/libkassette\.so\.${abi/./\\.}\.[0-9]+"
has libkassette-dev 'include/kassette/backend\.h' 'include/kassette/backend/reductions\.h' 'lib(/[^/]*)?/libkassette\.so' \
  'lib(/[^/]*)?/pkgconfig/kassette\.pc' 'lib(/[^/]*)?/cmake/kassette/kassetteConfig\.cmake'
has kassette bin/kassette libexec/kassette/info 'libexec/kassette/libkassette_script\.a'
[[ $(depends "$library") == *libopenblas0* && $(depends "$library") == *libpng16* && $(depends "$library") == *zlib1g* ]] || complain "$library depends on $(depends "$library")"
[[ $(depends libkassette-dev) == "$library (= $version)" ]] || complain "libkassette-dev depends on $(depends libkassette-dev)"
[[ $(depends kassette) == *"libkassette-dev (= $version)"* && $(depends kassette) == *g++* ]] || complain "kassette depends on $(depends kassette)"
if [ -e "$build/lib/libkassette_cuda.so" ]; then
  has "libkassette-cuda$abi" 'lib(/[^/]*)?/libkassette_cuda\.so'
fi
if [ -e "$build/lib/libkassette_nccl.so" ]; then
  has "libkassette-cuda$abi" 'lib(/[^/]*)?/libkassette_nccl\.so'
fi

if [ -e "$build/lib/libkassette_mpi.so" ]; then
  has "libkassette-mpi$abi" 'lib(/[^/]*)?/libkassette_mpi\.so'
  [[ $(depends "libkassette-mpi$abi") == *"$library (= $version)"* ]] || complain "libkassette-mpi$abi depends on $(depends "libkassette-mpi$abi")"
fi
if [ -x "$build/tools/kassette_repl" ]; then
  has kassette-repl libexec/kassette/repl
  has kassette-repl libexec/kassette/notebook/kassette_kernel/kernel.py
  has kassette-repl share/jupyter/kernels/kassette/kernel.json
  for wanted in libclang-cpp19 libclang-common-19-dev "kassette (= $version)"; do
    [[ $(depends kassette-repl) == *"$wanted"* ]] || complain "kassette-repl depends on $(depends kassette-repl)"
  done
  dpkg-deb -x "$(package kassette-repl)" "$work/root"
fi

# Unpacked they are enough for a script.
for name in "$library" libkassette-dev kassette; do dpkg-deb -x "$(package "$name")" "$work/root"; done
XDG_CACHE_HOME=$work/cache "$work/root/usr/bin/kassette" run "$source/tests/consumer/main.cpp" >/dev/null || complain "the installed tool does not run a script"
for program in "$work"/root/usr/libexec/kassette/{info,repl}; do
  [ ! -e "$program" ] || [[ $(readelf -d "$program") == *"\$ORIGIN/"*lib* ]] || complain "$program would look for the library in $(readelf -d "$program" | grep -i runpath)"
done
if [ -x "$work/root/usr/libexec/kassette/repl" ]; then
  got=$(echo '1 + 1' | "$work/root/usr/bin/kassette" repl) || true
  [ "$got" = 2 ] || complain "the installed prompt says $got"
  grep -qF '"/usr/bin/kassette", "notebook", "--kernel"' "$work/root/usr/share/jupyter/kernels/kassette/kernel.json" ||
    complain "Jupyter would start $(cat "$work/root/usr/share/jupyter/kernels/kassette/kernel.json")"
fi
exit $bad
