#!/bin/sh
# Puts the library, the header, the compiler wrappers and the pkg-config files below PREFIX.
# The result is relocatable.
#
# usage: stage-abi.sh LIBABI.a PREFIX
set -eu

if [ $# -ne 2 ]; then
    echo "usage: stage-abi.sh LIBABI.a PREFIX" >&2
    exit 2
fi
source=$(cd "$(dirname "$0")/.." && pwd)
prefix=$2

"$source/scripts/link-abi.sh" "$1" "$prefix/lib"
mkdir -p "$prefix/bin" "$prefix/include" "$prefix/lib/pkgconfig"
cp "$source/include/mpi.h" "$prefix/include/mpi.h"
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' "$source/Cargo.toml")
sed "s/@VERSION@/$version/" "$source/scripts/mpicc" >"$prefix/bin/mpicc"
chmod 755 "$prefix/bin/mpicc"
for name in mpicxx mpic++ mpifort mpif90 mpif77; do ln -sf mpicc "$prefix/bin/$name"; done
sed "s/@VERSION@/$version/" "$source/scripts/mpi.pc" >"$prefix/lib/pkgconfig/mpi.pc"
# The names that distributions give to whatever MPI is installed; those of other libraries (ompi-c, mpich) would
# promise that very library.
for name in mpi-c mpi-cxx; do ln -sf mpi.pc "$prefix/lib/pkgconfig/$name.pc"; done
