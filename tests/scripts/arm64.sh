#!/usr/bin/env bash
# tests/scripts/arm64.sh [FOLDER [FILTER]] - builds library and tests for ARM64 on an x86-64 machine, runs them there by
# qemu, in a chroot of Debian 12, and compares the bits of every sample with those at AVX2. By hand and by .ci/nightly,
# as root; FOLDER (build-arm64) keeps the system and what is built. FILTER names other unit tests.
set -euo pipefail
source=$(cd "$(dirname "$(readlink -f "$0")")/../.." && pwd)
folder=$(realpath -m "${1:-$source/build-arm64}")
filter=${2:-~[slow]~[.]}
root=$folder/root build=$folder/build
export KASSETTE_ARM64_ROOT=$root

apt-get install --yes --no-install-recommends g++-aarch64-linux-gnu debootstrap qemu-user-static >"$folder.packages.log"
# A program for ARM64 is run by qemu wherever it lies, in a chroot too.
handlers=/proc/sys/fs/binfmt_misc
[ -e $handlers/register ] || mount -t binfmt_misc none $handlers
[ -e $handlers/qemu-aarch64 ] || cat /usr/lib/binfmt.d/qemu-aarch64.conf >$handlers/register

mounts=(/proc /sys /dev /dev/pts /dev/shm "$source" "$build")
mkdir -p "$build"
unmount() { for ((i = ${#mounts[@]} - 1; i >= 0; --i)); do ! mountpoint -q "$root${mounts[i]}" || umount "$root${mounts[i]}"; done; }
trap unmount EXIT
if [ ! -e "$folder/has_packages" ]; then
  [ -e "$root/bin/sh" ] || debootstrap --arch=arm64 --variant=minbase --include=ca-certificates bookworm "$root" >"$folder/debootstrap.log"
fi
for mount in "${mounts[@]}"; do
  mkdir -p "$root$mount"
  mountpoint -q "$root$mount" || mount --bind "$mount" "$root$mount"
done
there() { chroot "$root" env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 "$@"; }
if [ ! -e "$folder/has_packages" ]; then
  cp /etc/resolv.conf "$root/etc"
  packages=$(awk -F'|' '$1 ~ /^(build|test) *$/ && $2 ~ /find/ { print $3 }' "$source/third_party/packages.txt")
  there apt-get update --quiet=2
  # shellcheck disable=SC2086  # packages are words
  there DEBIAN_FRONTEND=noninteractive apt-get install --yes --quiet=2 --no-install-recommends libstdc++-12-dev libc6-dev $packages >"$folder/install.log"
  touch "$folder/has_packages"
fi

cmake -S "$source" -B "$build" -G Ninja -DCMAKE_TOOLCHAIN_FILE="$source/cmake/arm64.cmake" -DKASSETTE_WERROR=ON -DKASSETTE_TESTS=ON -DKASSETTE_CUDA=OFF \
  -DKASSETTE_EMULATED_CUDA=OFF -DKASSETTE_MPI=OFF -DKASSETTE_REPL=OFF -DKASSETTE_BENCHMARKS=OFF >"$folder/configure.log"
ninja -C "$build" kassette_library kassette_tests example_digits >"$folder/build.log" || { tail -30 "$folder/build.log"; exit 1; }

status=0
tests() { there KERAS_HOME=/tmp/keras "$@"; }
there "$build/tools/kassette_info"
tests "$build/tests/kassette_tests" "$filter" || status=1
# Products on a small core and on that of a server: an instruction that is not there ends the program.
for cpu in cortex-a53 neoverse-n1; do
  echo "products on $cpu"
  tests QEMU_CPU=$cpu "$build/tests/kassette_tests" "[gemm_test],[matmul]" || status=1
done

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
