#!/bin/sh
# Links libmpi_abi.so.1 from the static library of crate `abi`, libmpi.so.12 from that of crate `mpich`, libmpi.so.40 from that
# of crate `openmpi`, or libibverbs.so.1 from that of crate `verbs-abi`.
#
# `cc -shared` does it and not rustc: a cdylib would export PMPI_X only, because rustc's version
# script does not know the names that global_asm! gives to the same address.
#
# usage: link-abi.sh LIBABI.a LIBDIR
#        link-abi.sh LIBTERN_MPICH.a LIBDIR mpich
#        link-abi.sh LIBTERN_OPENMPI.a LIBDIR openmpi
#        link-abi.sh LIBTERN_VERBS.a LIBDIR verbs
set -eu

case $#${3-} in
2) name=libmpi_abi version=1 names='{ global: MPI_*; PMPI_*; tern_copies; tern_refuse; local: *; };' ;;
3mpich) name=libmpi version=12 names='{ global: MPI_*; PMPI_*; MPIX_*; PMPIX_*; MPIR_Dup_fn; local: *; };' ;;
# The objects that predefined handles point to are found as the loader says, so never -Bsymbolic: programs have copies.
3openmpi)
    name=libmpi version=40
    names='{ global: MPI_*; PMPI_*; MPIX_*; PMPIX_*; OMPI_C_*; ompi_mpi_*; ompi_request_null; ompi_message_*; local: *; };'
    ;;
3verbs) name=libibverbs version=1 names=$(cat "$(dirname "$0")/verbs.map") ;;
*)
    echo "usage: link-abi.sh LIBABI.a LIBDIR, or with LIBTERN_MPICH.a mpich, LIBTERN_OPENMPI.a openmpi, LIBTERN_VERBS.a verbs" >&2
    exit 2
    ;;
esac
archive=$1
libdir=$2
mkdir -p "$libdir"

exports=$(mktemp)
trap 'rm -f "$exports"' EXIT
echo "$names" >"$exports"

# Never unloaded (nodelete): threads of the library, its handlers of fork and destructors of threads
# may be called after a dlclose.
#
# The whole archive, so that entries nothing refers to are there; sections that no entry reaches
# go again. Written beside and renamed, so that a running program keeps its old file.
${CC:-cc} -shared -o "$libdir/.$name.so.$$" \
    -Wl,-soname,$name.so.$version -Wl,--version-script="$exports" \
    -Wl,--whole-archive "$archive" -Wl,--no-whole-archive \
    -Wl,--gc-sections -Wl,-z,relro,-z,now,-z,nodelete -Wl,--no-undefined -Wl,--as-needed \
    -lgcc_s -lpthread -ldl -lm -lrt -lc
mv "$libdir/.$name.so.$$" "$libdir/$name.so.$version"
ln -sf $name.so.$version "$libdir/$name.so"
