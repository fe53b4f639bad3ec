#!/bin/sh
# Puts the Fortran bindings below PREFIX: the library, mpif.h, the sources of the modules, and the module files for
# the compilers that are found here. For another compiler mpifort makes them on first use.
#
# usage: stage-fortran.sh TERN-FORTRAN PREFIX     (after stage-abi.sh)
set -eu

if [ $# -ne 2 ]; then
    echo "usage: stage-fortran.sh TERN-FORTRAN PREFIX" >&2
    exit 2
fi
source=$(cd "$(dirname "$0")/.." && pwd)
prefix=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$1" "$source/include/mpi.h" "$work"
compile() {
    ${CC:-cc} -std=gnu11 -O2 -fPIC -Wall -Wextra -I"$prefix/include" -I"$work" "$@"
}
compile -c "$work/entries.c" -o "$work/entries.o"
compile -DTERN_PROFILING -c "$work/entries.c" -o "$work/profiling.o"
compile -c "$work/runtime.c" -o "$work/runtime.o"
compile -c "$work/section.c" -o "$work/section.o"
# Sections and arguments are the library's own matter; what Fortran calls begins with mpi_ or pmpi_.
echo '{ global: mpi_*; pmpi_*; local: *; };' >"$work/exports"
# Written beside and renamed, so that a running program keeps its old file.
${CC:-cc} -shared -o "$prefix/lib/.libmpi_tern_fortran.so.$$" -Wl,-soname,libmpi_tern_fortran.so.1 \
    -Wl,--version-script="$work/exports" -Wl,-z,relro,-z,now -Wl,--no-undefined \
    "$work"/*.o -L"$prefix/lib" -Wl,-rpath,'$ORIGIN' -Wl,--enable-new-dtags -lmpi_abi
mv "$prefix/lib/.libmpi_tern_fortran.so.$$" "$prefix/lib/libmpi_tern_fortran.so.1"
ln -sf libmpi_tern_fortran.so.1 "$prefix/lib/libmpi_tern_fortran.so"

cp "$work/mpif.h" "$prefix/include/mpif.h"
mkdir -p "$prefix/share/tern/fortran"
cp "$work/mpi_f08.f90" "$work/mpi.f90" "$prefix/share/tern/fortran"
rm -rf "$prefix/lib/tern/fortran"
# A program may be called by several names: one is enough.
seen=" "
for compiler in ${FC:-} gfortran flang flang-new $(cd /usr/bin && ls -1 flang-[0-9]* flang-new-[0-9]* 2>/dev/null || :); do
    command -v "$compiler" >/dev/null || continue
    real=$(readlink -f "$(command -v "$compiler")")
    case $seen in *" $real "*) continue ;; esac
    seen="$seen$real "
    "$prefix/bin/mpifort" -fc="$compiler" -make-modules
done
