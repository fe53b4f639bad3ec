#!/bin/sh
# Puts the library with the ABI of MPICH below PREFIX, in a directory of its own: `mpiexec --abi mpich` names it to the
# programs it starts. Other names are those by which distributions (libmpich.so.12) have programs ask for it.
#
# usage: stage-mpich.sh LIBTERN_MPICH.a PREFIX
set -eu

if [ $# -ne 2 ]; then
    echo "usage: stage-mpich.sh LIBTERN_MPICH.a PREFIX" >&2
    exit 2
fi
to=$2/lib/tern/mpich
"$(dirname "$0")/link-abi.sh" "$1" "$to" mpich
rm -f "$to/libmpi.so" # programs are not to be linked with it: there is no header for it
ln -sf libmpi.so.12 "$to/libmpich.so.12"
