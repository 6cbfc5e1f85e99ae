# tools/contributor.sh - the commands of `kassette` that work in a clone alone: build, test, bench, docs, python, package. The script
# `kassette` reads this file for them; they use its functions and variables.
# shellcheck shell=bash disable=SC2154  # the variables are those of that script

command_build() {
  takes_nothing build "$@"
  may_build_in "$build"
  install_packages build
  say "building in ${build#"$PWD"/}"
  build_targets "$build" "" all
}

# Builds the tests and runs them by ctest: tests/CMakeLists.txt lists them. Adds up test cases of the unit tests, and the other tests.
command_test() {
  local sanitize="" filter="" label="" folder options="-DKASSETTE_TESTS=ON"
  while [ $# -gt 0 ]; do
    case $1 in
      --sanitize=address | --sanitize=thread) sanitize=${1#*=} ;;
      --label=?*) label=${1#*=} ;;
      -*) die "test: $1 is not an option; there are --sanitize=address, --sanitize=thread and --label=LABEL" ;;
      *)
        [ -z "$filter" ] || die "test: one filter at a time, not $filter and $1"
        filter=$1
        ;;
    esac
    shift
  done
  install_packages build test
  folder=$build
  if [ -n "$sanitize" ]; then
    folder=$build-$sanitize
    options+=" -DCMAKE_BUILD_TYPE=Debug -DKASSETTE_SANITIZE=$sanitize -DKASSETTE_BENCHMARKS=OFF"
  fi
  may_build_in "$folder"
  # A folder without tests was configured when their packages were missing.
  ! grep -qs '^add_test' "$folder/CTestTestfile.cmake" "$folder/tests/CTestTestfile.cmake" || options=""
  say "building the tests in ${folder#"$PWD"/}"
  # Tags choose among the unit tests alone.
  case $filter in
    *[][]*) build_targets "$folder" "$options" kassette_tests ;;
    *) build_targets "$folder" "$options" all ;;
  esac

  local selection=() status=0
  [ -z "$label" ] || selection+=(-L "^$label\$")
  # The programs of unit tests take the filter from the environment: words of a name, or tags, which other tests do not have.
  export KASSETTE_TEST_FILTER=$filter
  if [[ $filter == *[][]* ]]; then
    selection+=(-R '^(unit|emulated_cuda)$')
  elif [ -n "$filter" ]; then
    KASSETTE_TEST_FILTER="*$filter*"
    selection+=(-R "^(unit|emulated_cuda)\$|$(sed 's/[][\.*^$+?(){}|]/\\&/g' <<<"$filter")")
  fi
  ctest --test-dir "$folder" -j "$(jobs_here)" --no-label-summary --output-on-failure --output-junit "$folder/tests.xml" --test-output-size-passed 10000000 \
    --test-output-size-failed 10000000 "${selection[@]}" </dev/null >&2 || status=$?
  [ -e "$folder/tests.xml" ] || die "ctest ended without a result"
  # Why tests were skipped; then the sum, in which unit tests count with their test cases, and each other test as one.
  awk -v filter="$filter" '
    /<testcase / { match($0, / name="[^"]*"/); name = substr($0, RSTART + 7, RLENGTH - 8); counts = reason = ""
                   match($0, / status="[^"]*"/); result = substr($0, RSTART + 9, RLENGTH - 10) }
    { sub(/^[ \t]*<system-out>/, "") }
    name ~ /^(unit|unit_slow|emulated_cuda)$/ && /^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$/ { counts = $0 }
    /^skipped: / { if (counts == "") { reason = $0; if (name ~ /^unit/) print } }
    /<\/testcase>/ {
      if (split(counts, n, " ")) { passed += n[1]; failed += n[3]; skipped += n[5]; if (result == "fail" && n[3] == 0) ++failed }
      else if (result == "run") ++passed
      else if (result == "notrun") { ++skipped; print (reason == "" ? "skipped" : reason) " (" name ")" }
      else ++failed
      if (result != "run" && result != "notrun") print "failed: " name
    }
    END { if (passed + failed + skipped == 0) { print "no test has \"" filter "\" in its name"; failed = 1 }
          printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped
          exit failed > 0 }' "$folder/tests.xml" || status=$?
  return $status
}

command_bench() {
  may_build_in "$build"
  install_packages build
  say "building the benchmarks in ${build#"$PWD"/}"
  build_targets "$build" "-DKASSETTE_BENCHMARKS=ON" kassette_bench
  # An inherited value that is not this CPU's halves OpenBLAS.
  unset OPENBLAS_CORETYPE
  export KERAS_HOME=$build/benchmarks/keras KERAS_BACKEND=
  if [ "${1:-}" = --peers ]; then
    exec "$here/benchmarks/run.py" --build "$build" --rows "${2:-.*}" --install \
      --peers "${PEERS:-${XDG_CACHE_HOME:-$HOME/.cache}/kassette/peers}"
  fi
  exec "$build/benchmarks/kassette_bench" "$@"
}

command_docs() {
  takes_nothing docs "$@"
  may_build_in "$build"
  install_packages docs
  python3 "$here/docs/make/site.py" "$here" "$build/docs" || die "building the documentation failed"
  say "built $build/docs/html/index.html"
}

# A Python that can make a virtual environment and be compiled for.
python_program() {
  local python
  for python in ${PYTHON:-python3 /usr/bin/python3}; do
    "$python" -c "import ensurepip, os, sysconfig; open(os.path.join(sysconfig.get_path('include'), 'Python.h'))" 2>/dev/null &&
      { printf '%s\n' "$python"; return; }
  done
  die "no Python with venv and headers; PYTHON names one"
}

command_python() {
  takes_nothing python "$@"
  may_build_in "$build"
  install_packages build python
  say "building the library in ${build#"$PWD"/}"
  # A folder that was configured before keeps its architectures: others would build the CUDA library anew.
  local architectures=
  [ -f "$build/CMakeCache.txt" ] || architectures=-DKASSETTE_CUDA_ARCHITECTURES=release
  build_targets "$build" "$architectures" kassette_library
  local component folder=$build/python python
  python=$(python_program)
  rm -rf "$folder/installed" "$folder"/*.whl
  mkdir -p "$folder"
  # The prompt, where it is built: with it the wheel has the kernel of notebooks.
  local components="library development cuda mpi"
  [ ! -x "$build/tools/kassette_repl" ] || components+=" repl"
  for component in $components; do
    cmake --install "$build" --prefix "$folder/installed" --component $component >"$folder/build.log" 2>&1 ||
      die "installing the library failed; see $folder/build.log"
  done
  [ -x "$folder/pip/bin/pip" ] || "$python" -m venv "$folder/pip" || die "making a virtual environment failed"
  say "building the wheel; pip fetches nanobind, scikit-build-core and NumPy's headers"
  CMAKE_PREFIX_PATH="$folder/installed" "$folder/pip/bin/pip" --disable-pip-version-check wheel --no-deps --wheel-dir "$folder" "$here/python" \
    >"$folder/build.log" 2>&1 || {
    tail -n 30 "$folder/build.log" >&2
    die "building the wheel failed; all of it is in $folder/build.log"
  }
  say "built $(echo "$folder"/*.whl)"
}

command_package() {
  takes_nothing package "$@"
  may_build_in "$build"
  install_packages build repl package
  say "building the library and the REPL in ${build#"$PWD"/}"
  build_targets "$build" "-DKASSETTE_REPL=ON -DKASSETTE_CUDA_ARCHITECTURES=release" kassette_library kassette_repl
  cpack --config "$build/CPackConfig.cmake" -B "$build/packages" >"$build/package.log" 2>&1 || {
    cat "$build/package.log" >&2
    die "making the packages failed"
  }
  find "$build/packages" -maxdepth 1 -name '*.deb'
}
