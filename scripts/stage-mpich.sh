#!/bin/sh
# Puts the library with the ABI of MPICH below PREFIX, in a directory of its own: `mpiexec --abi mpich` names it to the
# programs it starts. Beside it lies the name by which programs of distributions ask for it (libmpich.so.12): a library that
# has nothing but the need of the other one. A link would not do: archives of packages have none, and of two copies a process
# would load both.
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
"$(dirname "$0")/stand-in.sh" "$to" libmpich.so.12 libmpi.so.12
