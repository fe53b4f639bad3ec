#!/bin/sh
# Makes a library that has another name of one beside it, and needs that one; or the same name as one below it, which it then
# needs by its place, for by its name the loader would take it for this one.
#
# usage: stand-in.sh DIRECTORY NAME LIBRARY
set -eu

if [ $# -ne 3 ]; then
    echo "usage: stand-in.sh DIRECTORY NAME LIBRARY" >&2
    exit 2
fi
needed=$1/$3
case $3 in
*/*)
    named=$(mktemp -d)
    trap 'rm -rf "$named"' EXIT
    needed=$named/library
    # What is linked with it takes over its name: a place that the loader finds from where that lies.
    ${CC:-cc} -shared -nostdlib -o "$needed" -Wl,-soname,"\$ORIGIN/$3" -x c /dev/null
    ;;
esac
${CC:-cc} -shared -nostdlib -o "$1/.$2.$$" -Wl,-soname,"$2" -Wl,--no-as-needed "$needed" -Wl,-rpath,'$ORIGIN' \
    -Wl,--enable-new-dtags
mv "$1/.$2.$$" "$1/$2"
