/* The same with the algorithm that has several receives from one rank in flight: they match in
 * the order of the program.
 *
 * env: TERN_COLL_BCAST=chain */
#include "bcast.c"
