/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A child with the service's user, see service-child.h. */
#include "tools/ctl/service-child.h"

#include <errno.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/ctl/complain.h"

static int become(const ServiceUser *user) {
        if (user->uid == geteuid())
                return 0;
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

static G_NORETURN void be_child(const ServiceUser *user, pid_t parent, const sigset_t *ending,
                                int (*function)(void *userdata), void *userdata) {
        int r = 1;

        (void) umask(0077);
        (void) sigprocmask(SIG_UNBLOCK, ending, NULL);
        if (become(user) == 0) {
                (void) prctl(PR_SET_PDEATHSIG, SIGTERM); /* a change of user clears it */
                if (getppid() == parent)
                        r = function(userdata);
        }
        if (fflush(stdout) != 0)
                r = 1;
        _exit(r);
}

/* Waits for the child, and passes signals on to it. Returns the status of waitpid(). */
static int wait_for(pid_t child, const sigset_t *waited) {
        int status = 0, number;

        while (waitpid(child, &status, WNOHANG) == 0) {
                number = sigwaitinfo(waited, NULL);
                if (number > 0 && number != SIGCHLD)
                        (void) kill(child, SIGTERM);
        }
        return status;
}

int service_child_run(const ServiceUser *user, int (*function)(void *userdata), void *userdata) {
        sigset_t ending, waited, before;
        pid_t parent = getpid(), child;
        int status;

        ending_signals(&ending);
        waited = ending;
        (void) sigaddset(&waited, SIGCHLD);
        (void) signal(SIGCHLD, SIG_DFL);
        (void) sigprocmask(SIG_BLOCK, &waited, &before);
        (void) fflush(stdout);
        child = fork();
        if (child == 0)
                be_child(user, parent, &ending, function, userdata);
        status = child < 0 ? -errno : wait_for(child, &waited);
        (void) sigprocmask(SIG_SETMASK, &before, NULL);
        if (child < 0)
                complain("No process can be started: %s", g_strerror(-status));
        else if (WIFEXITED(status))
                return WEXITSTATUS(status);
        else
                complain("The work ended by the signal %s.", strsignal(WTERMSIG(status)));
        return -1;
}

int service_child_user(const char *name, bool system, const ServiceUnit *unit, ServiceUser *ret) {
        return service_user_find(name, system && geteuid() == 0, unit, ret) < 0 ? -1 : 0;
}
