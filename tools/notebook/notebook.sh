# tools/notebook/notebook.sh - `kassette notebook`; read by the script `kassette`, whose functions and variables it uses.
# shellcheck shell=bash

notebook_usage() {
  cat <<'HELP'
usage: kassette notebook [options of JupyterLab]

Starts JupyterLab, or the classic notebook where there is no JupyterLab, with a kernel for C++ in which kassette is there.
  --install          instead installs the kernel for this user, for VS Code, nbclient, nbconvert and any Jupyter
  --install FOLDER   the same below another folder: /usr/local has FOLDER/share/jupyter/kernels
KASSETTE_PYTHON names the Python that has ipykernel and Jupyter; else it is python3, or the system's own.
HELP
}

# The Python that has the modules named.
python_with() {
  local python module
  for python in ${KASSETTE_PYTHON:-python3 /usr/bin/python3}; do
    for module in "$@"; do
      "$python" -c "import importlib.util as u, sys; sys.exit(u.find_spec('$module') is None)" 2>/dev/null || continue 2
    done
    command -v "$python"
    return
  done
  return 1
}

notebook_python() {
  python_with ipykernel && return
  say "kassette: notebook: no Python here has ipykernel. On Debian and Ubuntu:"
  say "    apt-get install python3-ipykernel jupyter-notebook"
  say "or, with JupyterLab, in an environment of its own:"
  say "    python3 -m venv ~/jupyter && ~/jupyter/bin/pip install ipykernel jupyterlab"
  say "    KASSETTE_PYTHON=~/jupyter/bin/python kassette notebook"
  return 2
}

# write_kernel FOLDER PYTHON: FOLDER/kernel.json, as an installation has it, with the Python and the build folder of this call.
write_kernel() {
  mkdir -p "$1"
  "$2" - "$notebook_dir/kernel.json.in" "$1/kernel.json" "$self" "$2" "${KASSETTE_BUILD:-}" <<'PYTHON'
import json, sys
template, file, command, python, build = sys.argv[1:]
with open(template) as text:
    kernel = json.load(text)
kernel["argv"][0] = command
kernel["env"] = {"KASSETTE_PYTHON": python, **({"KASSETTE_BUILD": build} if build else {})}
with open(file, "w") as out:
    json.dump(kernel, out, indent=1)
    out.write("\n")
PYTHON
}

# The kernel itself, as Jupyter starts it.
run_kernel() {
  local python
  [ -x "$repl_program" ] || die "notebook: $repl_program is not there; \`kassette notebook\` builds it"
  python=$(notebook_python) || exit 2
  export KASSETTE_VERSION PYTHONPATH=$notebook_dir${PYTHONPATH:+:$PYTHONPATH}
  KASSETTE_VERSION=$(version)
  export PYDEVD_DISABLE_FILE_VALIDATION=1   # or ipykernel's debugger, which debugs Python, warns of it
  exec "$python" -m kassette_kernel "$1" "$repl_program" --include "$include_dir" --serve
}

command_notebook() {
  local python folder
  case ${1:-} in
    --kernel) run_kernel "$2" ;;
  esac
  ensure_repl
  python=$(notebook_python) || exit 2
  if [ "${1:-}" = --install ]; then
    folder=${JUPYTER_DATA_DIR:-${XDG_DATA_HOME:-$HOME/.local/share}/jupyter}/kernels/kassette
    [ -z "${2:-}" ] || folder=$2/share/jupyter/kernels/kassette
    write_kernel "$folder" "$python"
    say "installed the kernel \"C++ (kassette)\" in $folder"
    return
  fi
  choose_cache
  write_kernel "$cache/jupyter/kernels/kassette" "$python"
  export JUPYTER_PATH=$cache/jupyter${JUPYTER_PATH:+:$JUPYTER_PATH}
  for folder in jupyterlab notebook; do
    if python=$(python_with ipykernel $folder); then exec "$python" -m $folder "$@"; fi
  done
  say "kassette: notebook: there is ipykernel, but neither JupyterLab nor the classic notebook. On Debian and Ubuntu:"
  say "    apt-get install jupyter-notebook"
  say "\`kassette notebook --install\` makes the kernel known to other programs, such as VS Code."
  exit 2
}
