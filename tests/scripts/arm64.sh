#!/usr/bin/env bash
# tests/scripts/arm64.sh [FOLDER [COMMAND...]] - builds library and tests for ARM64 on an x86-64 machine, runs them there by
# qemu, in a chroot of Debian 12, makes the Debian packages, and compares the bits of every sample with those at AVX2. By
# hand and by .ci/nightly, as root; FOLDER (build-arm64) keeps the system and what is built, in FOLDER/build. COMMAND is
# run there, in that folder, in place of all that. Ends with 77 where nothing may be mounted, as in most containers.
set -euo pipefail
source=$(cd "$(dirname "$(readlink -f "$0")")/../.." && pwd)
folder=$(realpath -m "${1:-$source/build-arm64}")
root=$folder/root build=$folder/build
export KASSETTE_ARM64_ROOT=$root

# In a namespace of its own, so that its mounts end with it.
if [ -z "${KASSETTE_ARM64_MOUNTS:-}" ]; then
  unshare --mount true 2>/dev/null || { echo "skipped: $(id -un) may not mount anything here, and a chroot needs /proc and /dev"; exit 77; }
  KASSETTE_ARM64_MOUNTS=own exec unshare --mount "$0" "$@"
fi
mkdir -p "$build"
apt-get install --yes --no-install-recommends g++-aarch64-linux-gnu debootstrap qemu-user-static >"$folder/packages.log"
# A program for ARM64 is run by qemu wherever it lies, in a chroot too.
handlers=/proc/sys/fs/binfmt_misc
[ -e $handlers/register ] || mount -t binfmt_misc none $handlers
[ -e $handlers/qemu-aarch64 ] || cat /usr/lib/binfmt.d/qemu-aarch64.conf >$handlers/register

[ -e "$folder/has_packages" ] || [ -e "$root/bin/sh" ] ||
  debootstrap --arch=arm64 --variant=minbase --include=ca-certificates bookworm "$root" >"$folder/debootstrap.log"
for mount in /proc /sys /dev /dev/pts /dev/shm "$source" "$build"; do
  mkdir -p "$root$mount"
  mount --bind "$mount" "$root$mount"
done
there() { chroot "$root" env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 "$@"; }
if [ ! -e "$folder/has_packages" ]; then
  cp /etc/resolv.conf "$root/etc"
  there KASSETTE_BUILD=/tmp "$source/third_party/install.sh" build test package
  # Links that begin at / lead nowhere from here, and CMake would take libz.a.
  # shellcheck disable=SC2016  # the inner shell's variables
  there find /usr/lib/aarch64-linux-gnu -maxdepth 1 -name '*.so' -lname '/*' -exec sh -c 'for link; do ln -sfr "$(readlink -f "$link")" "$link"; done' sh {} +
  touch "$folder/has_packages"
fi

cmake -S "$source" -B "$build" -G Ninja -DCMAKE_TOOLCHAIN_FILE="$source/cmake/arm64.cmake" -DKASSETTE_WERROR=ON -DKASSETTE_TESTS=ON -DKASSETTE_CUDA=OFF \
  -DKASSETTE_EMULATED_CUDA=OFF -DKASSETTE_MPI=OFF -DKASSETTE_REPL=OFF -DKASSETTE_BENCHMARKS=OFF >"$folder/configure.log"
ninja -C "$build" kassette_library kassette_tests example_digits >"$folder/build.log" || { tail -30 "$folder/build.log"; exit 1; }

if [ $# -gt 1 ]; then
  there env -C "$build" "${@:2}"
  exit
fi

status=0
tests() { there KERAS_HOME=/tmp/keras "$@"; }
there "$build/tools/kassette_info"
tests "$build/tests/kassette_tests" "~[slow]~[.]" || status=1
# Products on a small core and on that of a server: an instruction that is not there ends the program.
for cpu in cortex-a53 neoverse-n1; do
  echo "products on $cpu"
  tests QEMU_CPU=$cpu "$build/tests/kassette_tests" "[products]~[device],[matmul]~[device]" || status=1
done
# Packages, and programs compiled there against what is installed.
there ctest --test-dir "$build" --output-on-failure -R '^(packages|install)$' || status=1

# --- bits, beside those of this machine at AVX2 ---
if [ -x "$source/build/tests/kassette_tests" ]; then
  KASSETTE_SIMD=avx2 "$source/build/tests/kassette_tests" "[.bits]" | grep '^bits' >"$folder/bits_avx2"
  tests "$build/tests/kassette_tests" "[.bits]" | grep '^bits' >"$folder/bits_neon64"
  awk 'NR == FNR { of[$0]; next } { ++all } $0 in of { ++same } END { printf "%d of %d results have the bits of AVX2\n", same, all }' \
    "$folder/bits_avx2" "$folder/bits_neon64"
  # The order of a sum follows the width of a vector; draws and casts must be equal.
  awk 'NR == FNR { of[$0]; next } !($0 in of) && /::(random_[a-z]+|truncated_normal|dropout|cast|normal|uniform) #.*result 0 is/ { print "not so at NEON: " $0; wrong = 1 } END { exit wrong }' \
    "$folder/bits_avx2" "$folder/bits_neon64" || status=1
fi
exit $status
