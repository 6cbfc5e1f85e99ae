#!/usr/bin/env bash
# tests/scripts/notebook.sh SOURCE BUILD [--accept] - the kernel of notebooks, and the notebooks of examples/notebooks, where Python has
# ipykernel, nbclient and jupyter_kernel_test. --accept writes what the notebooks show now into them.
set -euo pipefail
source_dir=$(realpath "$1") build=$(realpath "$2")
if [ ! -x "$build/tools/kassette_repl" ]; then
  echo "skipped: the REPL is not built; it needs clang 19's libraries and libedit (third_party/install.sh repl)"
  exit 77
fi
python=
for candidate in ${KASSETTE_PYTHON:-python3 /usr/bin/python3}; do
  "$candidate" -c 'import ipykernel, nbclient, jupyter_kernel_test' 2>/dev/null && python=$(command -v "$candidate") && break
done
if [ -z "$python" ]; then
  echo "skipped: no Python here has ipykernel, nbclient and jupyter_kernel_test (third_party/install.sh ci)"
  exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export KASSETTE_PYTHON=$python KASSETTE_BUILD=$build JUPYTER_PATH=$work/share/jupyter PYTHONDONTWRITEBYTECODE=1
export HOME=$work/home IPYTHONDIR=$work/home/ipython JUPYTER_CONFIG_DIR=$work/home/jupyter
mkdir -p "$HOME"
export KASSETTE_NOTEBOOKS=$source_dir/examples/notebooks

bash -c 'set -euo pipefail
  self=$2/kassette notebook_dir=$2/tools/notebook
  . "$2/tools/notebook/notebook.sh"
  write_kernel "$1/share/jupyter/kernels/kassette" "$KASSETTE_PYTHON"' bash "$work" "$source_dir"

if [ "${3:-}" = --accept ]; then "$python" "$source_dir/tests/notebook/notebooks_test.py" --accept && exit; fi
bad=0
# Without ipykernel it says how to get it.
status=0
said=$(KASSETTE_PYTHON=/bin/false "$source_dir/kassette" notebook --kernel "$work/none" 2>&1) || status=$?
[[ $status = 2 && $said == *"apt-get install python3-ipykernel"*"pip install ipykernel jupyterlab"* ]] || { echo "without ipykernel: $status $said"; bad=1; }
for test in "$source_dir"/tests/notebook/*_test.py; do
  (cd "$work" && timeout 1200 "$python" "$test" >"$work/log" 2>&1) || { cat "$work/log"; bad=1; }
done
exit $bad
