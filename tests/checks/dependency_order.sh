#!/usr/bin/env bash
# tests/checks/dependency_order.sh SOURCE BUILD - a folder includes only what lies below it:
# core <- devices <- ops <- autograd <- nn_backend <- tools, examples; and inside of autograd: tape <- program <- function <- loops.
# Nor does core name what lies above it.
set -euo pipefail
source_dir=$(realpath "$1")
cd "$source_dir"
declare -A rank=([core]=0 [devices]=1 [ops]=2 [autograd]=3 [nn_backend]=4 [tools]=5 [examples]=5 [tests]=9
  [benchmarks]=9)
declare -A floor=([tape]=0 [program]=1 [function]=2 [loops]=3)

# floor_of HEADER: sets floor_is to the folder that a public header belongs to. (What is called for each include starts no process.)
floor_of() {
  case $1 in
    kassette/backend/* | kassette/backend.h | kassette/comforts.h | kassette/display.h | kassette/distributed.h | kassette/inspect.h | kassette/integrate.h | kassette/optimize.h | kassette/profile.h | kassette/nn/* | kassette/nn.h | kassette/numpy/* | kassette/numpy.h | kassette/prompt.h | kassette/repl.h | kassette/transforms.h | \
      kassette/testing.h) floor_is=nn_backend ;;
    kassette/show_config.h) floor_is=devices ;;
    *) floor_is=core ;;
  esac
}

bad=0
include='["<]([^">]*)[">]'
while IFS=: read -r file number line; do
  from=${file%%/*}
  if [ "$from" = include ]; then
    floor_of "${file#include/}"
    from=$floor_is
  fi
  [[ $line =~ $include ]] || { echo "$file:$number: is no include:$line"; bad=1; continue; }
  target=${BASH_REMATCH[1]}
  if [[ $target == kassette/* ]]; then
    [ -e "include/$target" ] || [ "$target" = kassette/cling.h ] || { echo "$file:$number: <$target> is no public header"; bad=1; }
    floor_of "$target"
    to=$floor_is
  else
    to=$target
  fi
  if [[ $file == autograd/*/* && $to == autograd/*/* ]]; then
    inner=${file#autograd/} inner=${inner%%/*} outer=${to#autograd/} outer=${outer%%/*}
    if [ "${floor[$outer]:?is no folder of autograd}" -gt "${floor[$inner]:?is no folder of autograd}" ]; then
      echo "$file:$number: autograd/$inner includes autograd/$outer, which lies above it"
      bad=1
    fi
  fi
  to=${to%%/*}
  [ -n "${rank[$to]:-}" ] || continue
  if [ "$from" = tools ] || [ "$from" = examples ]; then
    # Both are programs on top of the library and do not know each other.
    [ "$to" = "$from" ] || [ "${rank[$to]}" -le 4 ] || { echo "$file:$number: $from includes $to"; bad=1; }
  elif [ "${rank[$to]}" -gt "${rank[$from]}" ]; then
    echo "$file:$number: $from includes $to, which lies above it"
    bad=1
  fi
done < <(grep -rnE '^[[:space:]]*#[[:space:]]*include[[:space:]]*["<]' --include='*.h' --include='*.cpp' \
  --include='*.cu' --include='*.cuh' include core devices ops autograd nn_backend tools examples)

# Known to core by their addresses alone: the op of a node, which is its identity, and the stream of a device in a public header.
opaque='ops::OpDef|devices::DeviceStream'
above='(autograd|ops|devices|backend|testing|inspect|distributed|repl)'
while IFS=: read -r file number line; do
  if [[ $file == include/* ]]; then
    floor_of "${file#include/}"
    [ "$floor_is" = core ] || continue
  fi
  line=$(sed -E "s#//.*##; s/\\b($opaque)\\b//g" <<<"$line")
  if grep -qE "\\b$above::" <<<"$line"; then
    echo "$file:$number: core names what lies above it:$line"
    bad=1
  fi
done < <(grep -rnE "\\b$above::" --include='*.h' --include='*.cpp' core include/kassette)
exit $bad
