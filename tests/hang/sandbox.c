/* Runs a program under a filter that refuses some system calls, as containers do.
 * usage: sandbox copy,write,membarrier program arguments */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define REFUSE(number, error)                                      \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 1),           \
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (error))

static int install(struct sock_filter *filter, unsigned short length) {
    struct sock_fprog program = {.len = length, .filter = filter};
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

int main(int argc, char **argv) {
    struct sock_filter copy[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        REFUSE(SYS_process_vm_readv, EPERM),
        REFUSE(SYS_process_vm_writev, EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_filter write_only[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        REFUSE(SYS_process_vm_writev, EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_filter membarrier[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        REFUSE(SYS_membarrier, ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    if (argc < 3 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
        perror("sandbox: no_new_privs");
        return 77;
    }
    if ((strstr(argv[1], "copy") && install(copy, sizeof copy / sizeof *copy) != 0) ||
        (strstr(argv[1], "write") && install(write_only, sizeof write_only / sizeof *write_only) != 0) ||
        (strstr(argv[1], "membarrier") && install(membarrier, sizeof membarrier / sizeof *membarrier) != 0)) {
        perror("sandbox: seccomp");
        return 77;
    }
    execvp(argv[2], argv + 2);
    perror(argv[2]);
    return 78;
}
