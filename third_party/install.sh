#!/usr/bin/env bash
# third_party/install.sh - installs what kassette needs from the system's packages.
#
#   third_party/install.sh build         what building and running takes
#   third_party/install.sh build test    and what the tests take
#   third_party/install.sh build repl    and what the REPL takes (0.7 GB)
#   third_party/install.sh build mpi     and what jobs of several ranks take
#   third_party/install.sh --missing build test    only lists what is missing; ends with 1 if anything is
#   third_party/install.sh --list        the table
#
# Says what is missing and why, asks nothing, and does nothing where all is there. Names are those of
# Debian 12, Debian 13 and Ubuntu 24.04. CMAKE_PREFIX_PATH names more folders to look in.
set -euo pipefail
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")

table=$(grep -v '^#' "$here/packages.txt")

say() { printf '%s\n' "$*" >&2 || true; }
die() {
  say "kassette: $*"
  exit 1
}

# present "cmd a b", "python a b" (modules) or "header a b" (of Python's): one of them is enough.
present() {
  local kind=$1 name python
  shift
  for name in "$@"; do
    if [ "$kind" = cmd ]; then
      command -v "$name" >/dev/null 2>&1 && return 0
    else
      # The distribution puts modules beside its own python3, which need not be the first one found.
      for python in python3 /usr/bin/python3; do
        if [ "$kind" = header ]; then
          "$python" -c "import os, sysconfig; open(os.path.join(sysconfig.get_path('include'), '$name'))" >/dev/null 2>&1 && return 0
        else
          "$python" -c "import $name" >/dev/null 2>&1 && return 0
        fi
      done
    fi
  done
  return 1
}

# ask_cmake GROUP...: the packages that find.cmake misses, in $work/missing.txt. What it finds is remembered in the
# build folder, where asking again takes 0.05 s.
ask_cmake() {
  local groups="$*" generator=() try
  # A compiler would search these before what is found; the build goes without them, too.
  unset CPATH C_INCLUDE_PATH CPLUS_INCLUDE_PATH LIBRARY_PATH
  asked=${KASSETTE_BUILD:-$here/../build}/third_party/asked
  { mkdir -p "$asked" 2>/dev/null && [ -w "$asked" ] && exec 8>"$asked.lock"; } 2>/dev/null || asked=$work/asked
  ! command -v flock >/dev/null 2>&1 || [ ! -e "$asked.lock" ] || flock 8
  ! command -v ninja >/dev/null 2>&1 || generator=(-G "${CMAKE_GENERATOR:-Ninja}")
  for try in again anew; do
    [ $try = again ] || rm -rf "$asked"   # as where the clone was moved
    # shellcheck disable=SC2086  # options are words
    cmake -S "$here" -B "$asked" "${generator[@]}" -DGROUPS="${groups// /;}" ${KASSETTE_CMAKE_OPTIONS:-} >"$work/log" 2>&1 8>&- &&
      cp "$asked/missing.txt" "$asked/why.txt" "$work" && exec 8>&- && return
  done
  cat "$work/log" >&2
  die "cmake failed to look for the packages"
}

# find_missing GROUP...: fills missing and reasons.
find_missing() {
  local group probe package version reason unknown=false
  missing=() reasons=()
  need() {
    missing+=("$package")
    reasons+=("$(printf '  %-24s %s' "$package" "$reason")")
  }
  while IFS='|' read -r group probe package version reason; do
    group=${group// /} package=${package// /} reason=${reason# }
    [ -n "$group" ] && [[ " $* " == *" $group "* ]] || continue
    # shellcheck disable=SC2086  # a probe is a list of words
    [[ $probe == *' find '* ]] || present $probe || need
  done <<<"$table"
  if ! [[ " $* " =~ \ (build|test|repl|mpi)\  ]]; then return; fi
  # Before there are compiler and cmake, only dpkg knows.
  if present cmd cmake && present cmd ninja make && present cmd "${CXX:-c++}" g++ clang++; then
    ask_cmake "$@"
  else
    unknown=true
  fi
  while IFS='|' read -r group probe package version reason; do
    group=${group// /} package=${package// /} reason=${reason# }
    [[ $probe == *' find '* ]] && [[ " $* " == *" $group "* ]] || continue
    if $unknown; then
      dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || need
    elif grep -qxF "$package" "$work/missing.txt"; then
      need
    fi
  done <<<"$table"
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
only_list=false
case ${1:-} in
  --list)
    printf '%s\n' "$table"
    exit 0
    ;;
  --missing)
    only_list=true
    shift
    ;;
esac
find_missing "$@"
if $only_list; then
  [ ${#missing[@]} -gt 0 ] || exit 0
  printf '%s\n' "${missing[@]}"
  exit 1
fi
# What dpkg leaves here it has not finished: it runs, or was cut short.
unfinished() { [ -n "$(ls -A /var/lib/dpkg/updates 2>/dev/null)" ] && command -v apt-get >/dev/null 2>&1; }
may_mend() { [ "$(id -u)" -eq 0 ] || { command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; }; }
if [ ${#missing[@]} -eq 0 ] && ! { unfinished && may_mend; }; then exit 0; fi

[ ${#missing[@]} -eq 0 ] || say "kassette needs ${#missing[@]} package(s) that are not on this machine:"
for reason in "${reasons[@]}"; do say "$reason"; done

command -v apt-get >/dev/null 2>&1 ||
  die "there is no apt-get here; install the like of these with your package manager, then try again"
become=
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null 2>&1 || die "neither root nor sudo; run as root:  apt-get install ${missing[*]}"
  become=sudo
  # Off a terminal nobody could answer a question for the password.
  if [ -t 0 ]; then sudo -v || die "sudo refused; run as root:  apt-get install ${missing[*]}"; else become="sudo -n"; fi
fi

# A dpkg that is cut short leaves packages half installed. It runs in a session of its own, where neither Ctrl-C nor a
# closed terminal nor a time limit reaches it, and writes into files, so that it ends well even where we are killed.
stopping=false
stop() {
  $stopping || say "stopping; what dpkg has begun is finished first"
  stopping=true
}
# as_root COMMAND...: its output is in $work/log and apt's status lines are in $work/status.
as_root() {
  local status=0
  rm -f "$work/ended" "$work/status"
  trap stop INT TERM HUP
  # shellcheck disable=SC2016  # the inner shell's variables
  {
    trap '' INT TERM HUP
    $become sh -c 'work=$1; shift; trap "" INT TERM HUP
      exec setsid -w env DEBIAN_FRONTEND=noninteractive LC_ALL=C "$@" </dev/null >"$work/log" 2>&1 3>"$work/status"' \
      sh "$work" "$@" || status=$?
    echo $status >"$work/ended"
  } &
  while [ ! -s "$work/ended" ] && [ -d "/proc/$!" ]; do
    draw
    sleep 0.3 || true
  done
  [ ! -t 2 ] || printf '\r\033[K' >&2 || true
  status=$(cat "$work/ended" 2>/dev/null || echo 1)
  trap - INT TERM HUP
  $stopping && exit 130
  return "$status"
}
# Draws how far apt has come: the files fetched, then the packages unpacked and set up.
size=0
waiting=false
started=$SECONDS
shown=
draw() {
  local line phase name percent text what done left='' bar
  line=$(tail -n 1 "$work/status" 2>/dev/null || true)
  if ! $waiting && grep -q '^Waiting for cache lock' "$work/log" 2>/dev/null; then
    say "another installation runs on this machine; waiting for it"
    waiting=true
  fi
  IFS=: read -r phase name percent text <<<"$line"
  percent=${percent%.*}
  [[ $size -gt 0 && $phase =~ ^(dl|pm)status$ && $percent =~ ^[0-9]+$ ]] || return 0
  if [ "$phase" = dlstatus ]; then
    [[ $text =~ file\ ([0-9]+)\ of\ ([0-9]+) ]] || return 0
    text="fetching file ${BASH_REMATCH[1]} of ${BASH_REMATCH[2]}"
  else
    case $text in
      Unpacking*) done=$(grep -c '^pmstatus:.*:Unpacking ' "$work/status" || true) what=unpacking ;;
      Installed*) done=$(grep -c '^pmstatus:.*:Installed ' "$work/status" || true) what="setting up" ;;
      *) return 0 ;;
    esac
    [ "$done" -le "$size" ] || return 0   # triggers
    text="$what package $done of $size: ${name%%:*}"
  fi
  if [ "${shown%%:*}" != "$phase" ]; then
    started=$SECONDS
    shown=$phase:-1
  fi
  if [ "$percent" -ge 5 ] && [ $((SECONDS - started)) -ge 3 ]; then
    left=", about $(((SECONDS - started) * (100 - percent) / percent)) s left"
  fi
  if [ -t 2 ]; then
    bar=$(printf '%*s' $((percent * 3 / 10)) '')
    printf '\r\033[K[%-30s] %.*s' "${bar// /#}" $(($(tput cols 2>/dev/null || echo 80) - 36)) "$text$left" >&2 || true
  elif [ $((percent / 20)) -gt "${shown#*:}" ]; then
    shown=$phase:$((percent / 20))
    say "  $text$left"
  fi
}
apt() { as_root apt-get -q -y -o DPkg::Lock::Timeout=300 -o APT::Status-Fd=3 "$@"; }
failed() {
  cat "$work/log" >&2
  die "\`$*\` failed; to do it by hand:  apt-get install ${missing[*]}"
}

mend() {
  say "an earlier installation on this machine was interrupted; finishing that first"
  as_root dpkg --configure -a || true   # it fails where a package lacks another that only the next step fetches
  apt --fix-broken install || [ ${#missing[@]} -eq 0 ] || failed apt-get --fix-broken install
}
if unfinished; then
  # Waits for a dpkg that runs.
  apt check || mend
  find_missing "$@"
  [ ${#missing[@]} -gt 0 ] || exit 0
fi

say "fetching the lists of packages"
apt update || failed apt-get update
# What only CI wants may be absent from a distribution; the tests that use it say that they skip.
wanted=()
for package in "${missing[@]}"; do
  if [ -n "$(LC_ALL=C apt-cache -q policy "$package" 2>/dev/null | sed -n 's/^ *Candidate: (none)$//p; s/^ *Candidate: //p')" ]; then
    wanted+=("$package")
  else
    say "  $package is not in this distribution; going on without it"
  fi
done
[ ${#wanted[@]} -gt 0 ] || exit 0
size=$(LC_ALL=C apt-get -s -q -o Debug::NoLocking=1 install --no-install-recommends "${wanted[@]}" 2>/dev/null | grep -c '^Inst ' || true)
say "installing: ${wanted[*]}; with what they need $size packages"
install() { apt install --no-install-recommends "${wanted[@]}"; }
if ! install; then
  grep -qE 'dpkg --configure -a|fix-broken' "$work/log" || failed apt-get install
  mend
  install || failed apt-get install
fi
find_missing "$@"
for package in "${wanted[@]}"; do
  [[ " ${missing[*]} " != *" $package "* ]] || {
    say "kassette: $package is installed, and still not found:"
    cat "$work/why.txt" >&2
    exit 1
  }
done
say "installed"
