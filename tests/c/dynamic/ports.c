/* Ports: two halves of the job meet through one, twice over it; names; a socket; what is wrong with names is said; closed ports. */
// np: 2+
// not-on: mpich (5.0.2 gives MPI_ERR_INTERN for a name that is no port, where section 11.9.3 says MPI_ERR_PORT)
// connections: processes of other jobs are reached over TCP alone
#include "../tern_test.h"

#include <sys/socket.h>
#include <unistd.h>

static void works(MPI_Comm inter) {
    int rank, size, remote, sum = -1;
    OK(MPI_Comm_rank(inter, &rank));
    OK(MPI_Comm_size(inter, &size));
    OK(MPI_Comm_remote_size(inter, &remote));
    OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, inter));
    CHECK_EQ(sum, remote * (remote - 1) / 2);
}

static void halves_meet(void) {
    char port[MPI_MAX_PORT_NAME] = "", service[64];
    int first = t_rank % 2 == 0, rank;
    MPI_Comm half, inter;
    OK(MPI_Comm_split(MPI_COMM_WORLD, first, 0, &half));
    OK(MPI_Comm_rank(half, &rank));
    snprintf(service, sizeof service, "tern test ä/%d", (int)getppid());
    if (t_rank == 0) {
        OK(MPI_Open_port(MPI_INFO_NULL, port));
        OK(MPI_Publish_name(service, MPI_INFO_NULL, port));
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    /* Names are known on one host. */
    MPI_Comm host;
    int ranks[2] = {0, 1}, near[2];
    MPI_Group all, here;
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host));
    OK(MPI_Comm_group(MPI_COMM_WORLD, &all));
    OK(MPI_Comm_group(host, &here));
    OK(MPI_Group_translate_ranks(all, 2, ranks, here, near));
    OK(MPI_Group_free(&all));
    OK(MPI_Group_free(&here));
    OK(MPI_Comm_free(&host));
    if (t_rank == 1 && near[0] != MPI_UNDEFINED)
        OK(MPI_Lookup_name(service, MPI_INFO_NULL, port));
    else if (t_rank == 1)
        OK(MPI_Recv(port, sizeof port, MPI_CHAR, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    if (t_rank == 0 && near[1] == MPI_UNDEFINED)
        OK(MPI_Send(port, sizeof port, MPI_CHAR, 1, 7, MPI_COMM_WORLD));
    for (int round = 0; round < 2; round++) {
        /* The name counts at the root alone. */
        const char *name = rank == 0 ? port : NULL;
        if (first)
            OK(MPI_Comm_accept(name, MPI_INFO_NULL, 0, half, &inter));
        else
            OK(MPI_Comm_connect(name, MPI_INFO_NULL, 0, half, &inter));
        works(inter);
        OK(MPI_Comm_disconnect(&inter));
        CHECK(inter == MPI_COMM_NULL);
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (t_rank == 0) {
        OK(MPI_Unpublish_name(service, MPI_INFO_NULL, port));
        OK(MPI_Close_port(port));
        SAYS(MPI_Close_port(port), MPI_ERR_PORT, "`port_name`");
    }
    OK(MPI_Comm_free(&half));
}

static void pair_joins(void) {
    int ends[2];
    if (t_rank == 0) {
        CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
        MPI_Comm inter;
        SAYS(MPI_Comm_join(-1, &inter), MPI_ERR_ARG, "`fd`");
        close(ends[1]);
        SAYS(MPI_Comm_join(ends[0], &inter), MPI_ERR_ARG, "`fd`");
        CHECK(inter == MPI_COMM_NULL);
        close(ends[0]);
    }
}

static void wrong(void) {
    MPI_Comm inter;
    char port[MPI_MAX_PORT_NAME];
    SAYS(MPI_Comm_connect("nonsense", MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter), MPI_ERR_PORT, "`port_name`");
    CHECK(inter == MPI_COMM_NULL);
    SAYS(MPI_Comm_accept("nonsense", MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter), MPI_ERR_PORT, "`port_name`");
    SAYS(MPI_Comm_accept("nonsense", MPI_INFO_NULL, 1, MPI_COMM_SELF, &inter), MPI_ERR_ROOT, "`root`");
    SAYS(MPI_Close_port("nonsense"), MPI_ERR_PORT, "`port_name`");
    SAYS(MPI_Lookup_name("tern test: nobody", MPI_INFO_NULL, port), MPI_ERR_NAME, "`service_name`");
    SAYS(MPI_Unpublish_name("tern test: nobody", MPI_INFO_NULL, "nonsense"), MPI_ERR_SERVICE, "`service_name`");
    SAYS(MPI_Publish_name("tern test: nobody", MPI_INFO_NULL, ""), MPI_ERR_PORT, "`port_name`");
    /* Any address can be published: who connects there has to know what it is. */
    char own[64];
    snprintf(own, sizeof own, "tern test: own address of %d", (int)getpid());
    OK(MPI_Publish_name(own, MPI_INFO_NULL, "nonsense"));
    OK(MPI_Lookup_name(own, MPI_INFO_NULL, port));
    CHECK(strcmp(port, "nonsense") == 0);
    SAYS(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter), MPI_ERR_PORT, "`port_name`");
    OK(MPI_Unpublish_name(own, MPI_INFO_NULL, "nonsense"));
}

/* A port that is closed: nobody waits there, neither in this process nor in another one of the job. Nobody waits for the
 * 180 s that a connection may take, for `timeout`, either: whoever comes is refused, and who has come before it was closed. */
static void closed(void) {
    MPI_Comm inter;
    char port[MPI_MAX_PORT_NAME] = "";
    if (t_rank == 0) {
        OK(MPI_Open_port(MPI_INFO_NULL, port));
        OK(MPI_Close_port(port));
        SAYS(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter), MPI_ERR_PORT, "`port_name`");
        SAYS(MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter), MPI_ERR_PORT, "`port_name`");
    }
    OK(MPI_Bcast(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, MPI_COMM_WORLD));
    if (t_rank != 0) {
        SAYS(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter), MPI_ERR_PORT, "`port_name` is the port");
        CHECK(inter == MPI_COMM_NULL);
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (t_rank == 0)
        OK(MPI_Open_port(MPI_INFO_NULL, port));
    OK(MPI_Bcast(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, MPI_COMM_WORLD));
    if (t_rank == 0) {
        usleep(100000);
        OK(MPI_Close_port(port));
    } else {
        SAYS(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter), MPI_ERR_PORT, "its process has closed it");
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

/* A port that is never closed: when its process ends nobody will accept any more. */
static void left_open(void) {
    MPI_Comm inter;
    char port[MPI_MAX_PORT_NAME] = "";
    if (t_rank == 0)
        OK(MPI_Open_port(MPI_INFO_NULL, port));
    OK(MPI_Bcast(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, MPI_COMM_WORLD));
    if (t_rank == 1)
        FAILS(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter), MPI_ERR_PORT);
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    halves_meet();
    pair_joins();
    wrong();
    closed();
    OK(MPI_Barrier(MPI_COMM_WORLD));
    left_open();
    OK(MPI_Finalize());
    if (t_rank == 0)
        printf("test passed\n");
    return 0;
}
