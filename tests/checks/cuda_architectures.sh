#!/usr/bin/env bash
# tests/checks/cuda_architectures.sh SOURCE - which architectures nvcc compiles for, with the GPUs that an nvidia-smi of ours tells of.
set -euo pipefail
cd "$1"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0
cat >"$work/nvcc" <<'NVCC'
#!/bin/sh
printf 'compute_%s\n' 75 80 86 89 90 100 120
NVCC
cat >"$work/ask.cmake" <<'CMAKE'
include(cmake/cuda_architectures.cmake)
kassette_cuda_architectures(found "${WANTED}" ${NVCC} ${VERSION})
message("${found}")
CMAKE
# nvidia_smi RC LINE...
nvidia_smi() {
  printf '#!/bin/sh\n' >"$work/nvidia-smi"
  printf 'echo %q\n' "${@:2}" >>"$work/nvidia-smi"
  echo "exit $1" >>"$work/nvidia-smi"
  chmod +x "$work"/n*
}
# gives "what" EXPECTED WANTED [VERSION]
gives() {
  local got
  got=$(PATH=$work:$PATH cmake -DWANTED="$3" -DNVCC="$work/nvcc" -DVERSION="${4:-13.0}" -P "$work/ask.cmake" 2>&1)
  [ "$got" = "$2" ] || { echo "$1: expected $2, got $got"; bad=1; }
}
default="80-virtual;90-real"
nvidia_smi 0 9.0
gives "one GPU" "90-real" AUTO
gives "a list" "80-real;90" "80-real;90"
gives "a release" "80-real;86-real;89-real;90-real;100-real;120" release
gives "a release by an older nvcc" "80-real;86-real;89-real;90" release 12.4
nvidia_smi 0 8.6 12.0 8.6
gives "three GPUs of two kinds" "86-real;120-real" AUTO
nvidia_smi 0 9.0 13.0
gives "a GPU that this nvcc does not know" "$default" AUTO
nvidia_smi 0 7.5
gives "a GPU that has too little" "$default" AUTO
nvidia_smi 9 "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver 5.7"
gives "no driver" "$default" AUTO
nvidia_smi 0 "No devices were found"
gives "no GPU" "$default" AUTO
exit $bad
