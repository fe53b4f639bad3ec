#!/bin/sh
# Links libmpi_abi.so.1 from the static library of crate `abi`.
#
# `cc -shared` does it and not rustc: a cdylib would export PMPI_X only, because rustc's version
# script does not know the names that global_asm! gives to the same address.
#
# usage: link-abi.sh LIBABI.a LIBDIR
set -eu

if [ $# -ne 2 ]; then
    echo "usage: link-abi.sh LIBABI.a LIBDIR" >&2
    exit 2
fi
archive=$1
libdir=$2
mkdir -p "$libdir"

exports=$(mktemp)
trap 'rm -f "$exports"' EXIT
echo '{ global: MPI_*; PMPI_*; local: *; };' >"$exports"

# Never unloaded (nodelete): threads of the library, its handlers of fork and destructors of threads
# may be called after a dlclose.
#
# The whole archive, so that entries nothing refers to are there; sections that no entry reaches
# go again. Written beside and renamed, so that a running program keeps its old file.
${CC:-cc} -shared -o "$libdir/.libmpi_abi.so.$$" \
    -Wl,-soname,libmpi_abi.so.1 -Wl,--version-script="$exports" \
    -Wl,--whole-archive "$archive" -Wl,--no-whole-archive \
    -Wl,--gc-sections -Wl,-z,relro,-z,now,-z,nodelete -Wl,--no-undefined -Wl,--as-needed \
    -lgcc_s -lpthread -ldl -lm -lrt -lc
mv "$libdir/.libmpi_abi.so.$$" "$libdir/libmpi_abi.so.1"
ln -sf libmpi_abi.so.1 "$libdir/libmpi_abi.so"
