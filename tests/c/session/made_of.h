/* A communicator of a session without MPI_COMM_WORLD. */
#ifndef MADE_OF_H
#define MADE_OF_H

#include "../tern_test.h"

/* Of all processes of a set, who give this tag. */
static inline MPI_Comm made_of(MPI_Session session, const char *set, const char *tag) {
    MPI_Group group;
    MPI_Comm comm;
    OK(MPI_Group_from_session_pset(session, set, &group));
    OK(MPI_Comm_create_from_group(group, tag, MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
    OK(MPI_Group_free(&group));
    return comm;
}

#endif
