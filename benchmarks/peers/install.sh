#!/bin/sh
# Installs the peers that the benchmarks compare with, each in a virtual environment of its own under DIR.
#
#   benchmarks/peers/install.sh DIR [openblas] [mlx] [torch] [numpy] [jax] [tf]      (all of them when none is named)
#
# Nothing here runs unless asked for: about 3 GB, most of it one PyTorch wheel. Needs python3 with venv, g++ and binutils.
# What is installed already is left alone.
set -eu
dir=${1:?usage: install.sh DIR [openblas] [mlx] [torch] [numpy] [jax] [tf]}
shift
[ $# -gt 0 ] || set -- openblas mlx torch numpy jax tf
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)

# A venv counts as installed once its marker is there, so that an interrupted run starts over.
want() { [ ! -e "$dir/$1/.installed" ] && echo "installing $1 into $dir/$1" && python3 -m venv "$dir/$1"; }
get() { venv=$1; shift; "$dir/$venv/bin/pip" --quiet --disable-pip-version-check install "$@"; }
done_with() { touch "$dir/$1/.installed"; }

for peer in "$@"; do
  case $peer in
    openblas) if want openblas; then get openblas scipy-openblas32==0.3.34.0.0; done_with openblas; fi ;;
    mlx)      if want mlx; then get mlx "mlx[cpu]==0.32.4"; done_with mlx; fi ;;
    numpy)    if want numpy; then get numpy numpy==2.4.6 scipy==1.17.1; done_with numpy; fi ;;
    jax)      if want jax; then get jax "jax[cpu]==0.10.2"; done_with jax; fi ;;
    tf)       if want tf; then get tf tensorflow-cpu==2.15.1; done_with tf; fi ;;
    torch)
      if want torch; then
        # The wheel is built for CUDA and asks for 3 GB of CUDA packages which a CPU run never calls: take the wheel alone
        # and give the loader empty stand-ins for those libraries.
        get torch filelock typing-extensions sympy networkx jinja2 fsspec numpy "setuptools<82"
        get torch --no-deps torch==2.15.0
        python3 "$here/cuda_stubs.py" "$dir"/torch/lib/python3*/site-packages/torch/lib "$dir/stubs"
        done_with torch
      fi ;;
    *) echo "install.sh: no peer called '$peer'" >&2; exit 2 ;;
  esac
done
