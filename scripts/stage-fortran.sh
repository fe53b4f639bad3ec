#!/bin/sh
# Puts the Fortran bindings below PREFIX: the library, mpif.h, the sources of the modules, and the module files for
# the compilers that are found here. For another compiler mpifort makes them on first use. Beside the libraries with the
# ABIs of MPICH and Open MPI go those that Fortran programs built for them ask for.
#
# usage: stage-fortran.sh TERN-FORTRAN PREFIX     (after stage-abi.sh and stage-other.sh)
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
    ${CC:-cc} -std=gnu11 -O2 -fPIC -Wall -Wextra "$@"
}
# What Fortran calls begins with mpi_ or pmpi_, all else is the library's own matter. Written beside and renamed, so that a
# running program keeps its old file.
#
# usage: link DIRECTORY NAME VERSION LIBRARY-OF-C EXPORTS OBJECT...
link() {
    to=$1 name=$2 version=$3 c=$4
    echo "{ global: $5 local: *; };" >"$work/exports"
    shift 5
    ${CC:-cc} -shared -o "$to/.$name.$$" -Wl,-soname,$name.$version -Wl,--version-script="$work/exports" \
        -Wl,-z,relro,-z,now -Wl,--no-undefined "$@" "$c" -Wl,-rpath,'$ORIGIN' -Wl,--enable-new-dtags
    mv "$to/.$name.$$" "$to/$name.$version"
}

standard="-I$prefix/include -I$work"
compile $standard -c "$work/entries.c" -o "$work/entries.o"
compile $standard -DTERN_PROFILING -c "$work/entries.c" -o "$work/profiling.o"
for of in attributes runtime section; do
    compile $standard -c "$work/$of.c" -o "$work/$of.o"
done
link "$prefix/lib" libmpi_tern_fortran.so 1 "$prefix/lib/libmpi_abi.so.1" 'mpi_*; pmpi_*;' "$work"/*.o
ln -sf libmpi_tern_fortran.so.1 "$prefix/lib/libmpi_tern_fortran.so"

# usage: other ABI NAME VERSION EXPORTS FLAG...
other() {
    abi=$1 name=$2 version=$3 exports=$4
    shift 4
    for of in entries removed; do
        compile "$@" -DTERN_OTHER "-I$work/$abi" "-I$work" -c "$work/$of.c" -o "$work/$abi/$of.o"
        compile "$@" -DTERN_OTHER "-I$work/$abi" "-I$work" -DTERN_PROFILING -c "$work/$of.c" -o "$work/$abi/profiling-$of.o"
    done
    for of in attributes runtime "${abi}_module"; do
        [ ! -f "$work/$of.c" ] || compile "$@" -DTERN_OTHER "-I$work/$abi" "-I$work" -c "$work/$of.c" -o "$work/$abi/$of.o"
    done
    link "$prefix/lib/tern/$abi" "$name" "$version" "$prefix/lib/tern/$abi/libmpi.so.$version" "$exports" "$work/$abi"/*.o
}
other mpich libmpifort.so 12 'mpi_*; pmpi_*; mpipriv*; mpifcmb*; __mpi_sizeofs_MOD_*; __mpi_constants_MOD_*;' -DTERN_MPICH
"$source/scripts/stand-in.sh" "$prefix/lib/tern/mpich" libmpichfort.so.12 libmpifort.so.12
other openmpi libmpi_mpifh.so 40 'mpi_*; pmpi_*;'
# Programs name it, for module mpi; what is called through that module is in the other one.
"$source/scripts/stand-in.sh" "$prefix/lib/tern/openmpi" libmpi_usempi_ignore_tkr.so.40 libmpi_mpifh.so.40

cp "$work/mpif.h" "$prefix/include/mpif.h"
mkdir -p "$prefix/share/tern/fortran"
cp "$work/mpi_f08.f90" "$work/mpi.f90" "$prefix/share/tern/fortran"
# A program may be called by several names: one is enough. One that cannot is left out, for the others are as good without it.
seen=" " made=" "
for compiler in ${FC:-} gfortran flang flang-new $(cd /usr/bin && ls -1 flang-[0-9]* flang-new-[0-9]* 2>/dev/null || :); do
    command -v "$compiler" >/dev/null || continue
    real=$(readlink -f "$(command -v "$compiler")")
    case $seen in *" $real "*) continue ;; esac
    seen="$seen$real "
    if said=$("$prefix/bin/mpifort" -fc="$compiler" -make-modules); then
        echo "$said"
        made="$made$(basename "${said##*: }") "
    else
        echo "stage-fortran.sh: there are no modules for $compiler" >&2
    fi
done
# Those of other sources, and of compilers that have gone.
for modules in "$prefix"/lib/tern/fortran/*; do
    case $made in *" $(basename "$modules") "*) ;; *) rm -rf "$modules" ;; esac
done
