#!/bin/sh
# Links libibverbs.so.1 from the static library of crate `verbs-abi`, with the symbol versions of rdma-core, into a
# directory of its own below PREFIX: `tern verbs COMMAND` names it to the programs it starts.
#
# usage: stage-verbs.sh LIBTERN_VERBS.a PREFIX
set -eu

if [ $# -ne 2 ]; then
    echo "usage: stage-verbs.sh LIBTERN_VERBS.a PREFIX" >&2
    exit 2
fi
"$(dirname "$0")/link-abi.sh" "$1" "$2/lib/tern/verbs" verbs
