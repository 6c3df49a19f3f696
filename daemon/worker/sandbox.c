/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See sandbox.h.
 */
#include "sandbox.h"

#include <errno.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "sanitized.h"

/* Code, libraries, pages, a message of the largest size: all that is not SQLite's heap. */
#define SPACE_BESIDE_HEAP ((rlim_t) 512 * 1024 * 1024)

int sandbox_limit(const Setup *setup) {
        const rlim_t size = setup->heap_size_max + SPACE_BESIDE_HEAP;
        struct rlimit none = {}, files, space = { .rlim_cur = size, .rlim_max = size };

        if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
                return -errno;
        if (setrlimit(RLIMIT_CORE, &none) < 0)
                return -errno;
        /* a run takes a pipe, a database, a log and its temporary files: hundreds may be parked */
        if (getrlimit(RLIMIT_NOFILE, &files) < 0)
                return -errno;
        files.rlim_cur = files.rlim_max;
        if (setrlimit(RLIMIT_NOFILE, &files) < 0)
                return -errno;
        if (!SANITIZED && setrlimit(RLIMIT_AS, &space) < 0)
                return -errno;
        return 0;
}

/* Grouped by who calls them. */
static const int allowed[] = {
        /* the loop: sockets that are open already, pipes, time */
        SCMP_SYS(epoll_wait), SCMP_SYS(epoll_pwait), SCMP_SYS(epoll_ctl), SCMP_SYS(poll), SCMP_SYS(ppoll), SCMP_SYS(recvmsg),
        SCMP_SYS(sendmsg), SCMP_SYS(read), SCMP_SYS(write), SCMP_SYS(writev), SCMP_SYS(close), SCMP_SYS(memfd_create),
        SCMP_SYS(clock_gettime), SCMP_SYS(clock_gettime64), SCMP_SYS(clock_nanosleep_time64), SCMP_SYS(ppoll_time64),
        SCMP_SYS(gettimeofday), SCMP_SYS(time), SCMP_SYS(clock_nanosleep), SCMP_SYS(nanosleep),
        /* SQLite's unix VFS: the database, its journal, temporary files */
        SCMP_SYS(open), SCMP_SYS(openat), SCMP_SYS(fcntl), SCMP_SYS(fcntl64), SCMP_SYS(fstat), SCMP_SYS(fstat64),
        SCMP_SYS(stat), SCMP_SYS(stat64), SCMP_SYS(lstat), SCMP_SYS(lstat64), SCMP_SYS(newfstatat), SCMP_SYS(fstatat64),
        SCMP_SYS(statx), SCMP_SYS(access), SCMP_SYS(faccessat), SCMP_SYS(faccessat2), SCMP_SYS(readlink),
        SCMP_SYS(readlinkat), SCMP_SYS(getcwd), SCMP_SYS(lseek), SCMP_SYS(_llseek), SCMP_SYS(pread64), SCMP_SYS(pwrite64),
        SCMP_SYS(ftruncate), SCMP_SYS(ftruncate64), SCMP_SYS(fsync), SCMP_SYS(fdatasync), SCMP_SYS(unlink),
        SCMP_SYS(unlinkat), SCMP_SYS(fchmod), SCMP_SYS(fchown), SCMP_SYS(geteuid), SCMP_SYS(getuid), SCMP_SYS(getegid),
        SCMP_SYS(getgid), SCMP_SYS(getpid), SCMP_SYS(gettid), SCMP_SYS(getrandom),
        /* libc: memory, the end, signals that it raises on itself */
        SCMP_SYS(brk), SCMP_SYS(munmap), SCMP_SYS(mremap), SCMP_SYS(madvise), SCMP_SYS(futex),
        SCMP_SYS(futex_time64), SCMP_SYS(exit), SCMP_SYS(exit_group), SCMP_SYS(rt_sigreturn), SCMP_SYS(sigreturn),
        SCMP_SYS(rt_sigprocmask), SCMP_SYS(rt_sigaction), SCMP_SYS(tgkill), SCMP_SYS(restart_syscall),
};

static const int mapping[] = { SCMP_SYS(mmap), SCMP_SYS(mmap2), SCMP_SYS(mprotect) };

static int add_rules(scmp_filter_ctx filter) {
        int r = 0;

        for (size_t i = 0; r == 0 && i < sizeof allowed / sizeof *allowed; i++)
                if (allowed[i] >= 0) /* negative: this architecture has no such call */
                        r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, allowed[i], 0);
        /* memory, as long as it cannot be executed (mmap2: 32-bit) */
        for (size_t i = 0; r == 0 && i < sizeof mapping / sizeof *mapping; i++)
                if (mapping[i] >= 0)
                        r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, mapping[i], 1,
                                             SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
        return r;
}

int sandbox_filter(void) {
        scmp_filter_ctx filter;
        int r;

        if (SANITIZED)
                return 0;
        filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
        if (!filter)
                return -ENOMEM;
        r = add_rules(filter);
        if (r == 0)
                r = seccomp_load(filter);
        seccomp_release(filter);
        return r;
}
