#!/usr/bin/env bash
# tests/scripts/fixed_addresses.sh COMMAND... - runs a program that a sanitizer was built into. Those of g++ 12 cannot run, or not every time, where the kernel spreads
# addresses over 32 bits: addresses are fixed where that is allowed; elsewhere ThreadSanitizer, which may not find its addresses free, is started again.
set -uo pipefail
if setarch "$(uname -m)" -R true 2>/dev/null; then exec setarch "$(uname -m)" -R "$@"; fi
errors=$(mktemp)
trap 'rm -f "$errors"' EXIT
for try in {1..20}; do
  status=0
  "$@" 2>"$errors" || status=$?
  [ $status -ne 0 ] && [ "$try" -lt 20 ] && grep -q 'ThreadSanitizer: unexpected memory mapping' "$errors" || break
done
cat "$errors" >&2
exit $status
