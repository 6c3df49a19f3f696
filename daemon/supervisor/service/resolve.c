/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Turns names of users and groups into ids, in a child. Supervisor. */
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/configuration/configuration-names.h"
#include "daemon/supervisor/base/child-source.h"
#include "daemon/supervisor/base/log.h"
#include "daemon/supervisor/service/resolve.h"

/* Bound for question and answer. A name has at most 256 bytes, so this is enough for thousands of the longest. */
#define TEXT_SIZE_MAX ((size_t) 1048576)

struct Resolve {
        ResolveHandler handler;
        void *userdata;
        pid_t pid;               /* 0: reaped */
        int answer_fd;
        GString *answer;
        sd_event_source *io, *child, *timer;
};

/* ---- Both sides ---- */

/* Reads up to the end of file. -EFBIG past TEXT_SIZE_MAX, -EAGAIN if a non-blocking `fd` has no more bytes yet. */
static int read_some(int fd, GString *text) {
        char buffer[4096];
        ssize_t n;

        while ((n = read(fd, buffer, sizeof buffer)) > 0) {
                if (text->len + (size_t) n > TEXT_SIZE_MAX)
                        return -EFBIG;
                g_string_append_len(text, buffer, n);
        }
        return n < 0 ? -errno : 0;
}

static int write_all(int fd, const char *text, size_t size) {
        while (size > 0) {
                ssize_t n = write(fd, text, size);
                if (n < 0)
                        return -errno;
                text += n;
                size -= (size_t) n;
        }
        return 0;
}

/* ---- The child's side ---- */

int resolve_serve(void) {
        g_autoptr(GString) question = g_string_new(NULL);

        (void) prctl(PR_SET_PDEATHSIG, SIGKILL); /* no other process needs the answer */
        if (read_some(STDIN_FILENO, question) < 0)
                return EXIT_FAILURE;
        g_autofree char *answer = names_resolve(question->str);
        return write_all(STDOUT_FILENO, answer, strlen(answer)) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* ---- The supervisor's side ---- */

/* Makes a file in memory, positioned at its beginning, so that the child can read at its own pace and the loop need not
 * write. */
static int open_question(const char *question) {
        int fd = memfd_create("sqlipc-question", MFD_CLOEXEC);

        if (fd < 0)
                return -errno;
        int r = write_all(fd, question, strlen(question));
        if (r >= 0 && lseek(fd, 0, SEEK_SET) < 0)
                r = -errno;
        if (r < 0)
                close(fd);
        return r < 0 ? r : fd;
}

static int spawn_with(const posix_spawn_file_actions_t *actions, posix_spawnattr_t *attributes, pid_t *ret_pid) {
        /* The variable is for tests. /proc/self/exe is this same program, even after an upgrade replaced its file. */
        const char *program = getenv("SQLIPC_RESOLVER_PATH") ?: "/proc/self/exe";
        char *arguments[] = { (char *) "sqlipcd", (char *) "--resolve", NULL };
        sigset_t none, defaults;

        sigemptyset(&none);
        sigemptyset(&defaults);
        sigaddset(&defaults, SIGPIPE);
        int r = posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
        if (r == 0)
                r = posix_spawnattr_setsigmask(attributes, &none);
        if (r == 0)
                r = posix_spawnattr_setsigdefault(attributes, &defaults);
        return r == 0 ? posix_spawn(ret_pid, program, actions, attributes, arguments, environ) : r;
}

static int spawn_process(int question_fd, int answer_fd, pid_t *ret_pid) {
        posix_spawn_file_actions_t actions;
        posix_spawnattr_t attributes;
        int r = posix_spawn_file_actions_init(&actions);

        if (r != 0)
                return -r;
        r = posix_spawnattr_init(&attributes);
        if (r == 0) {
                r = posix_spawn_file_actions_adddup2(&actions, question_fd, STDIN_FILENO);
                if (r == 0)
                        r = posix_spawn_file_actions_adddup2(&actions, answer_fd, STDOUT_FILENO);
                if (r == 0)
                        r = spawn_with(&actions, &attributes, ret_pid);
                posix_spawnattr_destroy(&attributes);
        }
        posix_spawn_file_actions_destroy(&actions);
        return -r;
}

static int start_process(Resolve *r, const char *question) {
        int question_fd = open_question(question), fds[2], result;

        if (question_fd < 0)
                return question_fd;
        if (pipe2(fds, O_CLOEXEC) < 0) {
                result = -errno;
                close(question_fd);
                return result;
        }
        r->answer_fd = fds[0];
        result = fcntl(r->answer_fd, F_SETFL, O_NONBLOCK) < 0 ? -errno : spawn_process(question_fd, fds[1], &r->pid);
        close(question_fd);
        close(fds[1]);
        return result;
}

static void finish(Resolve *r, const char *answer) {
        r->io = sd_event_source_disable_unref(r->io);
        r->timer = sd_event_source_disable_unref(r->timer);
        r->handler(answer, r->userdata);
}

/* Gathers the answer, which is complete only when the child has exited successfully. */
static int on_answer(sd_event_source *s, int fd, uint32_t revents, void *userdata) {
        Resolve *r = userdata;
        int result = read_some(fd, r->answer);

        if (result == -EAGAIN)
                return 0;
        if (result < 0) /* if the answer is too large, the exit status of the child will tell */
                (void) kill(r->pid, SIGKILL);
        r->io = sd_event_source_disable_unref(r->io);
        return 0;
}

static int on_process_exit(sd_event_source *s, const siginfo_t *si, void *userdata) {
        Resolve *r = userdata;

        (void) sd_event_source_set_enabled(s, SD_EVENT_OFF);
        if (!r) { /* the child was given up: only the loop holds the source, which has a descriptor of the process */
                (void) sd_event_source_set_floating(s, false);
                return 0;
        }
        r->pid = 0; /* the process is reaped when this function returns */
        bool ended = si->si_code == CLD_EXITED && si->si_status == EXIT_SUCCESS;
        if (ended && r->io)
                ended = read_some(r->answer_fd, r->answer) != -EFBIG;
        if (!ended)
                log_warning("The child that looks up names %s %i.",
                            si->si_code == CLD_EXITED ? "exited with status" : "died of signal", si->si_status);
        finish(r, ended ? r->answer->str : NULL);
        return 0;
}

/* A child that hangs in a network file system is not reached by any signal. The loop reaps it whenever it exits. */
static void give_up(Resolve *r) {
        if (r->pid <= 0 || !r->child)
                return;
        (void) kill(r->pid, SIGKILL);
        (void) sd_event_source_set_userdata(r->child, NULL);
        (void) sd_event_source_set_floating(r->child, true);
        r->child = sd_event_source_unref(r->child);
        r->pid = 0;
}

static int on_timeout(sd_event_source *s, uint64_t usec, void *userdata) {
        Resolve *r = userdata;

        log_warning("Names of users and groups could not be looked up within %i seconds.", (int) (RESOLVE_USEC / 1000000));
        give_up(r);
        finish(r, NULL);
        return 0;
}

int resolve_new(sd_event *event, const char *question, ResolveHandler handler, void *userdata, Resolve **ret) {
        Resolve *r = g_new(Resolve, 1);

        *r = (Resolve) { .handler = handler, .userdata = userdata, .answer_fd = -1, .answer = g_string_new(NULL) };
        int result = start_process(r, question);
        if (result >= 0)
                result = child_source_add(event, &r->child, r->pid, on_process_exit, r);
        if (result >= 0)
                result = sd_event_add_io(event, &r->io, r->answer_fd, EPOLLIN, on_answer, r);
        if (result >= 0)
                result = sd_event_add_time_relative(event, &r->timer, CLOCK_MONOTONIC, RESOLVE_USEC, 0, on_timeout, r);
        if (result < 0) {
                resolve_free(r);
                return result;
        }
        *ret = r;
        return 0;
}

Resolve *resolve_free(Resolve *r) {
        if (!r)
                return NULL;
        give_up(r);
        if (r->pid > 0) { /* the loop does not watch it yet */
                (void) kill(r->pid, SIGKILL);
                (void) waitpid(r->pid, NULL, 0);
        }
        r->child = sd_event_source_disable_unref(r->child);
        r->io = sd_event_source_disable_unref(r->io);
        r->timer = sd_event_source_disable_unref(r->timer);
        if (r->answer_fd >= 0)
                close(r->answer_fd);
        g_string_free(r->answer, TRUE);
        g_free(r);
        return NULL;
}
