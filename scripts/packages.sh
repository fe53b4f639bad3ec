#!/bin/sh
# Installs Debian's packages for commands that are missing, where it may (root, apt-get); else names them.
#
# usage: packages.sh COMMAND:PACKAGE ... [-- COMMAND:PACKAGE ...]
#
# Without those before `--` nothing can be done: exit code 1. Without those behind it something is left out. A COMMAND that ends
# with `.so` is a library that the loader is to find, one with `.h` a header of the system.
set -u

is_here() {
    case $1 in
    *.so) PATH=$PATH:/usr/sbin:/sbin ldconfig -p 2>/dev/null | grep -q "^[[:space:]]*$1 " ;;
    *.h) [ -f "/usr/include/$1" ] ;;
    *) command -v "$1" >/dev/null 2>&1 ;;
    esac
}

missing() {
    for pair in "$@"; do
        [ "$pair" = -- ] && break
        is_here "${pair%%:*}" || printf '%s ' "${pair#*:}"
    done
}

all() { for pair in "$@"; do [ "$pair" = -- ] || missing "$pair"; done; }

wanted=$(all "$@")
[ -n "$wanted" ] || exit 0
if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "installing $wanted"
    # Each for itself: one that cannot be had must not keep the others away.
    { apt-get update -q || true
      for package in $wanted; do
          DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends "$package"
      done; } </dev/null >/dev/null 2>&1
fi
left=$(all "$@")
[ -z "$left" ] || echo "not here: ${left}(what needs them is left out; Debian, Ubuntu: apt-get install $left)" >&2
needed=$(missing "$@")
[ -z "$needed" ] || { echo "nothing can be built without: $needed" >&2; exit 1; }
