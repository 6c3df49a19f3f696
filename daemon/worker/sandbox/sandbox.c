/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See sandbox.h.
 */
#include "daemon/worker/sandbox/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "config.h"
#include "daemon/worker/sandbox/sanitized.h"

#define N_ELEMENTS(array) (sizeof(array) / sizeof *(array))

/* Address space for everything except SQLite's heap: code, libraries, pages, a message of the largest size. */
#define SPACE_BESIDE_HEAP ((rlim_t) 512 * 1024 * 1024)

int sandbox_limit(const Setup *setup) {
        const rlim_t size = setup->heap_size_max + SPACE_BESIDE_HEAP;
        struct rlimit none = {}, files, space;

        if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
                return -errno;
        if (setrlimit(RLIMIT_CORE, &none) < 0)
                return -errno;
        /* a run takes a pipe, a database, a log and its temporary files, and hundreds of runs may be parked */
        if (getrlimit(RLIMIT_NOFILE, &files) < 0)
                return -errno;
        files.rlim_cur = files.rlim_max;
        if (setrlimit(RLIMIT_NOFILE, &files) < 0)
                return -errno;
        if (getrlimit(RLIMIT_AS, &space) < 0)
                return -errno;
        if (space.rlim_max > size) /* LimitAS= of the unit may be lower */
                space.rlim_max = size;
        space.rlim_cur = space.rlim_max;
        if (!SANITIZED && setrlimit(RLIMIT_AS, &space) < 0)
                return -errno;
        return 0;
}

/* Grouped by caller. */
static const int allowed[] = {
        /* the loop: sockets that are already open, pipes, time */
        SCMP_SYS(epoll_wait), SCMP_SYS(epoll_pwait), SCMP_SYS(epoll_ctl), SCMP_SYS(poll), SCMP_SYS(ppoll), SCMP_SYS(recvmsg),
        SCMP_SYS(sendmsg), SCMP_SYS(read), SCMP_SYS(write), SCMP_SYS(writev), SCMP_SYS(close), SCMP_SYS(memfd_create),
        SCMP_SYS(timerfd_settime), SCMP_SYS(timerfd_settime64), SCMP_SYS(setitimer),
        SCMP_SYS(clock_gettime), SCMP_SYS(clock_gettime64), SCMP_SYS(clock_nanosleep_time64), SCMP_SYS(ppoll_time64),
        SCMP_SYS(sched_yield), SCMP_SYS(gettimeofday), SCMP_SYS(time), SCMP_SYS(clock_nanosleep), SCMP_SYS(nanosleep),
        /* SQLite's unix VFS: the database, its journal, temporary files */
        SCMP_SYS(open), SCMP_SYS(openat), SCMP_SYS(fstat), SCMP_SYS(fstat64),
        SCMP_SYS(stat), SCMP_SYS(stat64), SCMP_SYS(lstat), SCMP_SYS(lstat64), SCMP_SYS(newfstatat), SCMP_SYS(fstatat64),
        SCMP_SYS(statx), SCMP_SYS(access), SCMP_SYS(faccessat), SCMP_SYS(faccessat2), SCMP_SYS(readlink),
        SCMP_SYS(readlinkat), SCMP_SYS(getcwd), SCMP_SYS(lseek), SCMP_SYS(_llseek), SCMP_SYS(pread64), SCMP_SYS(pwrite64),
        SCMP_SYS(ftruncate), SCMP_SYS(ftruncate64), SCMP_SYS(fsync), SCMP_SYS(fdatasync), SCMP_SYS(unlink),
        SCMP_SYS(unlinkat), SCMP_SYS(fchmod), SCMP_SYS(fchown), SCMP_SYS(geteuid), SCMP_SYS(getuid), SCMP_SYS(getegid),
        SCMP_SYS(getgid), SCMP_SYS(getpid), SCMP_SYS(gettid), SCMP_SYS(getrandom), SCMP_SYS(fchown32),
        SCMP_SYS(geteuid32), SCMP_SYS(getuid32), SCMP_SYS(getegid32), SCMP_SYS(getgid32),
        /* the walk to the database (path.c) */
        SCMP_SYS(fstatfs), SCMP_SYS(fstatfs64),
        /* libc: memory, exit, signals that it raises for its own process */
        SCMP_SYS(brk), SCMP_SYS(munmap), SCMP_SYS(mremap), SCMP_SYS(madvise), SCMP_SYS(futex),
        SCMP_SYS(futex_time64), SCMP_SYS(exit), SCMP_SYS(exit_group), SCMP_SYS(rt_sigreturn), SCMP_SYS(sigreturn),
        SCMP_SYS(rt_sigprocmask), SCMP_SYS(rt_sigaction), SCMP_SYS(restart_syscall),
};

/* Calls of an observer only, which has no user. */
static const int observing[] = { SCMP_SYS(inotify_add_watch), SCMP_SYS(fchdir) };

/* Calls of engines that connect to servers: sockets, of which network_families[] says more, and threads. Of the calls that
 * start threads clone3() hides its flags in memory, so libc is told that there is none. */
static const int network[] = {
        SCMP_SYS(connect), SCMP_SYS(getsockopt), SCMP_SYS(setsockopt), SCMP_SYS(getpeername), SCMP_SYS(getsockname),
        SCMP_SYS(sendto), SCMP_SYS(recvfrom), SCMP_SYS(sendmmsg), SCMP_SYS(shutdown), SCMP_SYS(select), SCMP_SYS(_newselect),
        SCMP_SYS(pselect6), SCMP_SYS(pselect6_time64), SCMP_SYS(send), SCMP_SYS(recv), SCMP_SYS(pipe2), SCMP_SYS(eventfd2),
        SCMP_SYS(readv), SCMP_SYS(rt_sigpending), SCMP_SYS(rt_sigtimedwait), SCMP_SYS(rt_sigtimedwait_time64),
        SCMP_SYS(sigaltstack), SCMP_SYS(uname), SCMP_SYS(sysinfo), SCMP_SYS(getppid), SCMP_SYS(getdents64),
        SCMP_SYS(clock_getres), SCMP_SYS(clock_getres_time64), SCMP_SYS(set_robust_list), SCMP_SYS(rseq),
        SCMP_SYS(sched_getaffinity), SCMP_SYS(membarrier), SCMP_SYS(getresuid), SCMP_SYS(getresgid),
};
static const uint64_t network_families[] = { AF_UNIX, AF_INET, AF_INET6 };

/* Calls of the keeper. */
static const int keeping[] = {
        SCMP_SYS(poll), SCMP_SYS(ppoll), SCMP_SYS(ppoll_time64), SCMP_SYS(recvfrom), SCMP_SYS(recv), SCMP_SYS(sendmsg),
        SCMP_SYS(waitid), SCMP_SYS(pidfd_send_signal), SCMP_SYS(close), SCMP_SYS(write), SCMP_SYS(exit_group),
        SCMP_SYS(rt_sigreturn), SCMP_SYS(sigreturn), SCMP_SYS(restart_syscall), SCMP_SYS(futex), SCMP_SYS(brk),
        SCMP_SYS(munmap),
};

/* Calls that a reader needs only with some arguments, which are checked (mmap2, fcntl64: 32-bit). */
static const int mapping[] = { SCMP_SYS(mmap), SCMP_SYS(mmap2), SCMP_SYS(mprotect) };
static const int file_control[] = { SCMP_SYS(fcntl), SCMP_SYS(fcntl64) };
/* SQLite's locks, and seals of large messages; with F_SETOWN the kernel would send signals to other processes, and with
 * F_SETFL (or the ioctl FIONBIO) the supervisor's read of an observer's inotify would block */
static const uint64_t file_commands[] = {
        F_GETFD, F_SETFD, F_GETFL, F_GETLK, F_SETLK, F_ADD_SEALS, F_GET_SEALS,
#if SQLIPC_COVERAGE
        F_SETLKW, /* processes take turns at the file that counts lines; without the lock they would damage it */
#endif
};

/* Allows a call. If `n_arguments` is 1, only with the argument that `argument` describes. */
static int allow(scmp_filter_ctx filter, int call, unsigned n_arguments, struct scmp_arg_cmp argument) {
        if (call < 0) /* this architecture has no such call */
                return 0;
        return seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, call, n_arguments, &argument);
}

/* A thread may be made, no process. A descriptor may become non-blocking, and never blocking: the supervisor has some of
 * them, too, and must not block. */
static int add_network(scmp_filter_ctx filter) {
        const struct scmp_arg_cmp any = {};
        const struct scmp_arg_cmp thread = SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, CLONE_THREAD);
        const struct scmp_arg_cmp non_blocking[] = {
                SCMP_A1(SCMP_CMP_EQ, F_SETFL), SCMP_A2(SCMP_CMP_MASKED_EQ, O_NONBLOCK, O_NONBLOCK),
        };
        const struct scmp_arg_cmp own_limits[] = { SCMP_A0(SCMP_CMP_EQ, 0), SCMP_A2(SCMP_CMP_EQ, 0) };
        int r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);

        for (size_t i = 0; r == 0 && i < N_ELEMENTS(network); i++)
                r = allow(filter, network[i], 0, any);
        for (size_t i = 0; r == 0 && i < N_ELEMENTS(network_families); i++) {
                r = allow(filter, SCMP_SYS(socket), 1, SCMP_A0(SCMP_CMP_EQ, network_families[i]));
                if (r == 0 && network_families[i] == AF_UNIX)
                        r = allow(filter, SCMP_SYS(socketpair), 1, SCMP_A0(SCMP_CMP_EQ, AF_UNIX));
        }
        for (size_t i = 0; r == 0 && i < N_ELEMENTS(file_control); i++)
                if (file_control[i] >= 0)
                        r = seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, file_control[i], N_ELEMENTS(non_blocking),
                                                   non_blocking);
        if (r == 0) /* a process may read its own limits */
                r = seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, SCMP_SYS(prlimit64), N_ELEMENTS(own_limits), own_limits);
        return r < 0 ? r : allow(filter, SCMP_SYS(clone), 1, thread);
}

/* Calls that ask about a terminal, and change nothing. */
static const uint64_t terminal_requests[] = { TCGETS, TIOCGWINSZ };

static int add_rules(scmp_filter_ctx filter, SandboxNeeds needs) {
        const struct scmp_arg_cmp any = {}, no_execution = SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0);
        int r = 0;

        for (size_t i = 0; r == 0 && i < N_ELEMENTS(allowed); i++)
                r = allow(filter, allowed[i], 0, any);
        for (size_t i = 0; r == 0 && (needs & SANDBOX_INOTIFY) && i < N_ELEMENTS(observing); i++)
                r = allow(filter, observing[i], 0, any);
        for (size_t i = 0; r == 0 && i < N_ELEMENTS(mapping); i++)
                r = allow(filter, mapping[i], 1, no_execution);
        for (size_t i = 0; i < N_ELEMENTS(file_control); i++)
                for (size_t j = 0; r == 0 && j < N_ELEMENTS(file_commands); j++)
                        r = allow(filter, file_control[i], 1, SCMP_A1(SCMP_CMP_EQ, file_commands[j]));
        for (size_t i = 0; r == 0 && (needs & SANDBOX_TERMINAL) && i < N_ELEMENTS(terminal_requests); i++)
                r = allow(filter, SCMP_SYS(ioctl), 1, SCMP_A1(SCMP_CMP_EQ, terminal_requests[i]));
        if (r == 0 && (needs & SANDBOX_NETWORK))
                r = add_network(filter);
        /* abort() may end this process, and no other */
        return r < 0 ? r : allow(filter, SCMP_SYS(tgkill), 1, SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t) getpid()));
}

static int add_keeper(scmp_filter_ctx filter, SandboxNeeds needs) {
        int r = 0;

        for (size_t i = 0; r == 0 && i < N_ELEMENTS(keeping); i++)
                r = allow(filter, keeping[i], 0, (struct scmp_arg_cmp) {});
        return r;
}

static int load(int (*add)(scmp_filter_ctx filter, SandboxNeeds needs), SandboxNeeds needs) {
        scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
        int r;

        if (!filter)
                return -ENOMEM;
        r = add(filter, needs);
        if (r == 0)
                r = seccomp_load(filter);
        seccomp_release(filter);
        return r;
}

int sandbox_filter(SandboxNeeds needs) {
        return SANITIZED ? 0 : load(add_rules, needs);
}

int sandbox_filter_keeper(void) {
        return SANITIZED || SQLIPC_COVERAGE ? 0 : load(add_keeper, 0);
}
