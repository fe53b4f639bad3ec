#!/bin/sh
# Links libibverbs.so.1 and librdmacm.so.1 from the static library of crate `verbs-abi`, with the symbol versions of rdma-core,
# into a directory of their own below PREFIX: `tern verbs COMMAND` names it to the programs it starts.
#
# usage: stage-verbs.sh LIBTERN_VERBS.a PREFIX
set -eu

if [ $# -ne 2 ]; then
    echo "usage: stage-verbs.sh LIBTERN_VERBS.a PREFIX" >&2
    exit 2
fi
here=$(dirname "$0")
libdir=$2/lib/tern/verbs
"$here/link-abi.sh" "$1" "$libdir" verbs

# Both use one adapter, so one library has the functions of both; the other has the versions by which programs ask for them,
# and names the first.
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
sed -n '/^RDMACM_1.0 {/,$p' "$here/verbs.map" >"$scratch/versions"
${CC:-cc} -shared -nostdlib -x c /dev/null -o "$libdir/.librdmacm.so.$$" \
    -Wl,-soname,librdmacm.so.1 -Wl,--version-script="$scratch/versions" \
    -Wl,--no-as-needed -L"$libdir" -libverbs -Wl,-z,relro,-z,now,-z,nodelete
mv "$libdir/.librdmacm.so.$$" "$libdir/librdmacm.so.1"
