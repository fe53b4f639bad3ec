/* Whether the cores of two ranks are near each other or far. Virtual machines are moved from one second to the next, so what is
 * measured counts for a state that was the same before and after it, or not at all. For two ranks of one host. */
#ifndef TERN_BENCH_CORES_H
#define TERN_BENCH_CORES_H

enum { CORES_NEAR, CORES_FAR, CORES_STATES };

/* Makes a page that both processes map. Ends the job where that fails. */
void cores_start(void);

/* CORES_NEAR or CORES_FAR, now, by a flag that is handed to and fro without MPI. A call of both ranks. */
int cores_state(void);

/* A variant's name in a state, in memory that the next call takes. */
const char *cores_name(const char *variant, int state);

#endif
