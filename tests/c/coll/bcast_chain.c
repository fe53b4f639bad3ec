// env: TERN_COLL_BCAST=chain
/* The same with the algorithm that has several receives from one rank in flight: they match in
 * the order of the program. */
#include "bcast.c"
