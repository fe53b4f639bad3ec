/* Wrong arguments of intercommunicators: wrong kinds, leaders and roots that are not there, groups that overlap. */
// not-on: mpich (some builds check nothing of intercommunicators)
#include "../inter.h"

static int data[64], more[64];

/* Calls that need an intercommunicator, or that it does not have. */
static void kinds(void) {
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Group group;
    int size;
    SAYS(MPI_Comm_remote_size(MPI_COMM_WORLD, &size), MPI_ERR_COMM, "`comm`");
    SAYS(MPI_Comm_remote_group(MPI_COMM_WORLD, &group), MPI_ERR_COMM, "`comm`");
    SAYS(MPI_Intercomm_merge(MPI_COMM_WORLD, 0, &comm), MPI_ERR_COMM, "`intercomm`");
    SAYS(MPI_Comm_test_inter(MPI_COMM_NULL, &size), MPI_ERR_COMM, "`comm`");
    SAYS(MPI_Intercomm_create(MPI_COMM_NULL, 0, MPI_COMM_WORLD, 0, 1, &comm), MPI_ERR_COMM, "`local_comm`");
    /* Found on all members: a leader that is not in the group. */
    FAILS_EITHER(MPI_Intercomm_create(MPI_COMM_WORLD, t_size, MPI_COMM_WORLD, 0, 1, &comm), MPI_ERR_RANK, MPI_ERR_ARG);
    FAILS_EITHER(MPI_Intercomm_create(MPI_COMM_WORLD, -1, MPI_COMM_WORLD, 0, 1, &comm), MPI_ERR_RANK, MPI_ERR_ARG);
    SAYS(MPI_Intercomm_create(MPI_COMM_WORLD, 0, MPI_COMM_WORLD, 0, -1, &comm), MPI_ERR_TAG, "`tag`");
}

/* Found by the leader alone, who tells its group. */
static void leaders(void) {
    MPI_Comm self = MPI_COMM_SELF, comm;
    FAILS_EITHER(MPI_Intercomm_create(self, 0, MPI_COMM_WORLD, t_size, 1, &comm), MPI_ERR_RANK, MPI_ERR_ARG);
    FAILS_EITHER(MPI_Intercomm_create(self, 0, MPI_COMM_NULL, 0, 1, &comm), MPI_ERR_COMM, MPI_ERR_ARG);
}

static void members(const sides *s) {
    MPI_Request request;
    MPI_Comm inter = s->inter, comm;
    MPI_Status status;
    OK(MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN));
    SAYS(MPI_Send(data, 1, MPI_INT, s->remote, 0, inter), MPI_ERR_RANK, "`dest`");
    SAYS(MPI_Recv(data, 1, MPI_INT, s->remote, 0, inter, &status), MPI_ERR_RANK, "`source`");
    SAYS(MPI_Irecv(data, 1, MPI_INT, -7, 0, inter, &request), MPI_ERR_RANK, "`source`");
    SAYS(MPI_Probe(s->remote, 0, inter, &status), MPI_ERR_RANK, "`source`");
    SAYS(MPI_Bcast(data, 1, MPI_INT, s->remote, inter), MPI_ERR_ROOT, "`root`");
    SAYS(MPI_Bcast(data, 1, MPI_INT, -9, inter), MPI_ERR_ROOT, "`root`");
    SAYS(MPI_Ibcast(data, 1, MPI_INT, s->remote, inter, &request), MPI_ERR_ROOT, "`root`");
    SAYS(MPI_Reduce(data, more, 1, MPI_INT, MPI_SUM, s->remote, inter), MPI_ERR_ROOT, "`root`");
    SAYS(MPI_Gather(data, 1, MPI_INT, more, 1, MPI_INT, s->remote, inter), MPI_ERR_ROOT, "`root`");
    SAYS(MPI_Scan(data, more, 1, MPI_INT, MPI_SUM, inter), MPI_ERR_COMM, "`comm`");
    SAYS(MPI_Exscan(data, more, 1, MPI_INT, MPI_SUM, inter), MPI_ERR_COMM, "`comm`");
    SAYS(MPI_Iscan(data, more, 1, MPI_INT, MPI_SUM, inter, &request), MPI_ERR_COMM, "`comm`");
    FAILS_EITHER(MPI_Intercomm_create(inter, 0, MPI_COMM_WORLD, 0, 1, &comm), MPI_ERR_COMM, MPI_ERR_ARG);
    MPI_Group group;
    OK(MPI_Comm_remote_group(inter, &group));
    FAILS_EITHER(MPI_Comm_create_group(inter, group, 0, &comm), MPI_ERR_COMM, MPI_ERR_GROUP);
    OK(MPI_Group_free(&group));
    /* It still works. */
    OK(MPI_Barrier(inter));
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    kinds();
    leaders();
    sides s;
    for (int division = 0; division < DIVISIONS; division++)
        if (sides_make(division, &s)) {
            members(&s);
            sides_free(&s);
        }
    return t_end();
}
