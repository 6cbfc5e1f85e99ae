#!/usr/bin/env bash
# tests/scripts/dependency_order.sh SOURCE BUILD - a folder includes only what lies below it:
# core <- devices <- ops <- autograd <- nn_backend <- tools, examples.
set -euo pipefail
source_dir=$(realpath "$1") build=$(realpath "$2")
cd "$source_dir"
declare -A rank=([core]=0 [devices]=1 [ops]=2 [autograd]=3 [nn_backend]=4 [tools]=5 [examples]=5 [tests]=9
  [benchmarks]=9)

bad=0
while IFS=: read -r file number line; do
  from=${file%%/*}
  target=$(sed -E 's/^[^"<]*["<]([^">]*)[">].*/\1/' <<<"$line")
  if [[ $target == kassette/* ]]; then
    header=$(readlink -f "$build/include/$target" || true)
    if [ ! -e "$header" ]; then
      echo "$file:$number: <$target> is no public header"
      bad=1
      continue
    fi
    to=${header#"$(pwd -P)"/}
  else
    to=$target
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
  --include='*.cu' --include='*.cuh' core devices ops autograd nn_backend tools examples)
exit $bad
