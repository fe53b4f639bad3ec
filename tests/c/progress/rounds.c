/* The same by rendezvous and in rounds: what one round brings is what the next one sends, between two
 * ranks that both compute, and no core is to spare for their threads.
 * np: 3+
 * args: plain
 * args: multiple
 * env: TERN_EAGER_MAX=64
 * env: TERN_COLL_ALLREDUCE=ring
 * not-on: mpich (no progress outside of MPI)
 * not-on: ompi (no progress outside of MPI)
 */
#include "collectives.c"
