/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A child with the service's user, see service-child.h. */
#include "tools/ctl/service-child.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/worker/sandbox/sandbox.h"
#include "tools/ctl/complain.h"

/* A terminal is usually open for reading, too, and the child must not read the keys typed there. Called before the change of
 * user, because the service's user cannot open the terminal. */
static int open_for_output(int fd) {
        g_autofree char *path = g_strdup_printf("/proc/self/fd/%d", fd);
        int own;

        if (!isatty(fd))
                return 0;
        own = open(path, O_WRONLY | O_NOCTTY | O_CLOEXEC);
        if (own < 0 || dup2(own, fd) < 0) {
                complain("The terminal cannot be opened for output only: %s", g_strerror(errno));
                return -1;
        }
        return 0; /* `own` is closed with the caller's descriptors */
}

static int become(const ServiceUser *user) {
        if (user->uid == geteuid())
                return 0;
        if (open_for_output(STDOUT_FILENO) < 0 || open_for_output(STDERR_FILENO) < 0)
                return -1;
        if (setgroups(user->n_gids, user->gids) < 0 || setresgid(user->gid, user->gid, user->gid) < 0 ||
            setresuid(user->uid, user->uid, user->uid) < 0) {
                complain("Only root can use the rights of the service's user %s: %s", user->name, g_strerror(errno));
                return -1;
        }
        return 0;
}

/* The signals that ask the program to end, except those that its caller has it ignore, as nohup does. */
static void ending_signals(sigset_t *ret) {
        static const int ending[] = { SIGHUP, SIGINT, SIGTERM };
        struct sigaction action;

        (void) sigemptyset(ret);
        for (size_t i = 0; i < G_N_ELEMENTS(ending); i++)
                if (sigaction(ending[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
                        (void) sigaddset(ret, ending[i]);
}

/* Keeps the caller's descriptors from the child: among them are root's connection to the bus, and the terminal's input. */
static int close_descriptors(int kept_fd) {
        int null = open("/dev/null", O_RDONLY | O_CLOEXEC), r;

        if (null < 0 || dup2(null, STDIN_FILENO) < 0)
                return -errno;
        if (kept_fd < 0)
                return close_range(STDERR_FILENO + 1, UINT_MAX, 0) < 0 ? -errno : 0;
        r = kept_fd > STDERR_FILENO + 1 ? close_range(STDERR_FILENO + 1, (unsigned) kept_fd - 1, 0) : 0;
        return r < 0 || close_range((unsigned) kept_fd + 1, UINT_MAX, 0) < 0 ? -errno : 0;
}

/* The limits and the filter of a worker: this child, too, parses a file that another user may have made. */
static int confine(uint64_t heap_max) {
        int r = sandbox_limit(&(Setup) { .heap_size_max = heap_max });

        if (r < 0)
                return r;
        (void) prctl(PR_SET_PDEATHSIG, SIGTERM); /* which ends the work at its next step, so that SQLite rolls back */
        (void) prctl(PR_SET_DUMPABLE, 0);
        (void) sqlite3_hard_heap_limit64((sqlite3_int64) MIN(heap_max, INT64_MAX));
        return sandbox_filter(SANDBOX_TERMINAL);
}

static int set_up(const ServiceChild *child, pid_t parent) {
        int r = setsid() < 0 ? -errno : close_descriptors(child->kept_fd);

        if (getppid() != parent) /* it died before this process would have been told */
                return -ECANCELED;
        if (r >= 0 && child->heap_max > 0)
                r = confine(child->heap_max);
        if (r < 0)
                complain("The process for the work cannot be set up: %s", g_strerror(-r));
        return r;
}

static G_NORETURN void be_child(const ServiceChild *child, pid_t parent, const sigset_t *ending,
                                int (*function)(void *userdata), void *userdata) {
        int r = 1;

        (void) umask(0077);
        (void) sigprocmask(SIG_UNBLOCK, ending, NULL);
        if (become(child->user) == 0) {
                (void) prctl(PR_SET_PDEATHSIG, SIGTERM); /* a change of user clears it */
                if (set_up(child, parent) >= 0)
                        r = function(userdata);
        }
        if (fflush(stdout) != 0)
                r = 1;
        _exit(r);
}

/* Waits for the child, and passes signals on to it. Returns the status of waitpid(). */
static int wait_for(pid_t child, const sigset_t *waited, bool *ret_passed) {
        int status = 0, number;

        while (waitpid(child, &status, WNOHANG) == 0) {
                number = sigwaitinfo(waited, NULL);
                if (number > 0 && number != SIGCHLD) {
                        (void) kill(child, SIGTERM);
                        *ret_passed = true;
                }
        }
        return status;
}

int service_child_run(const ServiceChild *options, int (*function)(void *userdata), void *userdata) {
        sigset_t ending, waited, before;
        pid_t parent = getpid(), child;
        bool passed = false;
        int status;

        ending_signals(&ending);
        waited = ending;
        (void) sigaddset(&waited, SIGCHLD);
        (void) signal(SIGCHLD, SIG_DFL);
        (void) sigprocmask(SIG_BLOCK, &waited, &before);
        (void) fflush(stdout);
        child = fork();
        if (child == 0)
                be_child(options, parent, &ending, function, userdata);
        status = child < 0 ? -errno : wait_for(child, &waited, &passed);
        (void) sigprocmask(SIG_SETMASK, &before, NULL);
        if (child < 0)
                complain("No process can be started: %s", g_strerror(-status));
        else if (WIFEXITED(status))
                return WEXITSTATUS(status);
        else
                complain("The work ended by the signal %s.", strsignal(WTERMSIG(status)));
        return passed ? -EINTR : -1;
}

int service_child_user(const char *name, bool system, const ServiceUnit *unit, ServiceUser *ret) {
        return service_user_find(name, system && geteuid() == 0, unit, ret) < 0 ? -1 : 0;
}
