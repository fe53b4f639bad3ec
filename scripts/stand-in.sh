#!/bin/sh
# Makes a library that has another name of one beside it, and needs that one.
#
# usage: stand-in.sh DIRECTORY NAME LIBRARY
set -eu

if [ $# -ne 3 ]; then
    echo "usage: stand-in.sh DIRECTORY NAME LIBRARY" >&2
    exit 2
fi
${CC:-cc} -shared -nostdlib -o "$1/.$2.$$" -Wl,-soname,"$2" -Wl,--no-as-needed "$1/$3" -Wl,-rpath,'$ORIGIN' \
    -Wl,--enable-new-dtags
mv "$1/.$2.$$" "$1/$2"
