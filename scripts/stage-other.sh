#!/bin/sh
# Puts the library with the ABI of MPICH or of Open MPI below PREFIX, in a directory of its own: `mpiexec --abi` names it to the
# programs it starts. Beside that of MPICH lies the name by which programs of distributions ask for it (libmpich.so.12): a library
# that has nothing but the need of the other one. A link would not do: archives of packages have none, and of two copies a process
# would load both.
#
# usage: stage-other.sh LIBTERN_MPICH.a PREFIX mpich
#        stage-other.sh LIBTERN_OPENMPI.a PREFIX openmpi
set -eu

case $#${3-} in
3mpich | 3openmpi) ;;
*)
    echo "usage: stage-other.sh LIBTERN_MPICH.a PREFIX mpich, or LIBTERN_OPENMPI.a PREFIX openmpi" >&2
    exit 2
    ;;
esac
to=$2/lib/tern/$3
"$(dirname "$0")/link-abi.sh" "$1" "$to" "$3"
rm -f "$to/libmpi.so" # programs are not to be linked with it: there is no header for it
[ "$3" != mpich ] || "$(dirname "$0")/stand-in.sh" "$to" libmpich.so.12 libmpi.so.12
