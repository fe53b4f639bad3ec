/* Single copy is refused to some ranks while the job runs: the same bytes arrive before and after.
 * usage: refused read,write RANK|all */
#include <mpi.h>

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

enum { LONGEST = 9000001, IN_FLIGHT = 4 };

static int rank, size;

static void refuse(int number) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof filter / sizeof *filter, .filter = filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        perror("refused: seccomp");
        exit(77);
    }
}

static unsigned char byte(int from, size_t length, int number, size_t at) {
    return (unsigned char)(at * 131 + at / 251 + (size_t)from * 17 + length + (size_t)number * 5);
}

static unsigned char *out[IN_FLIGHT], *in[IN_FLIGHT];

static void begin(size_t length, int late, MPI_Request *requests) {
    int next = (rank + 1) % size, before = (rank + size - 1) % size;
    for (int i = 0; i < IN_FLIGHT; i++)
        for (size_t at = 0; at < length; at++) {
            out[i][at] = byte(rank, length, i, at);
            in[i][at] = 0;
        }
    for (int step = 0; step < 2; step++) {
        for (int i = 0; i < IN_FLIGHT; i++)
            if (step == late)
                MPI_Irecv(in[i], (int)length, MPI_BYTE, before, i, MPI_COMM_WORLD, &requests[2 * i]);
            else
                MPI_Isend(out[i], (int)length, MPI_BYTE, next, i, MPI_COMM_WORLD, &requests[2 * i + 1]);
        if (step == 0)
            MPI_Barrier(MPI_COMM_WORLD);
    }
}

static void end(size_t length, MPI_Request *requests) {
    int before = (rank + size - 1) % size;
    MPI_Waitall(2 * IN_FLIGHT, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < IN_FLIGHT; i++)
        for (size_t at = 0; at < length; at++)
            if (in[i][at] != byte(before, length, i, at)) {
                fprintf(stderr, "refused: rank %d: byte %zu of %zu of message %d is wrong\n", rank, at, length, i);
                MPI_Abort(MPI_COMM_WORLD, 9);
            }
}

int main(int argc, char **argv) {
    static const size_t lengths[] = {20000, 100000, 1 << 20, LONGEST};
    enum { LENGTHS = sizeof lengths / sizeof *lengths };
    MPI_Request requests[2 * IN_FLIGHT];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < IN_FLIGHT; i++) {
        out[i] = malloc(LONGEST);
        in[i] = malloc(LONGEST);
    }
    int mine = argc > 2 && (strcmp(argv[2], "all") == 0 || atoi(argv[2]) == rank);
    for (int round = 0; round < 3; round++)
        for (int i = 0; i < LENGTHS; i++)
            for (int late = 0; late < 2; late++) {
                begin(lengths[i], late, requests);
                /* In the middle: messages are posted, and some of their bytes may have moved. */
                if (round == 1 && i == LENGTHS - 1 && late && mine) {
                    if (strstr(argv[1], "read"))
                        refuse(SYS_process_vm_readv);
                    if (strstr(argv[1], "write"))
                        refuse(SYS_process_vm_writev);
                    mine = 0;
                }
                end(lengths[i], requests);
            }
    MPI_Finalize();
    if (rank == 0)
        puts("all bytes arrived");
    return 0;
}
