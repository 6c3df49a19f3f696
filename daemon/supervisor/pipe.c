/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A pipe that leads to a client. Supervisor. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "log.h"
#include "manager.h"
#include "pipe.h"
#include "quota.h"
#include "run.h"

#define REST_USEC UINT64_C(100000) /* before a retired pipe is watched, or all are looked at */

static uint64_t page_size(void) {
        return (uint64_t) sysconf(_SC_PAGESIZE);
}

static void set_pages(Pipe *p, uint64_t pages) {
        pipe_budget_change(&p->user->manager->pipe_budget, &p->user->pipe_account, p->pages, pages);
        p->pages = pages;
}

static uint64_t real_pages(const Pipe *p) {
        int size = fcntl(p->write_fd, F_GETPIPE_SZ);

        return size < 0 ? p->pages : (uint64_t) size / page_size();
}

bool pipe_check(Pipe *p) {
        uint64_t pages = p->write_fd >= 0 ? real_pages(p) : 0;

        if (pages <= p->pages)
                return false;
        set_pages(p, pages);
        return true;
}

/* EPERM (past the kernel's own budget) and EBUSY leave it as it is. */
static void resize(Pipe *p, uint64_t pages) {
        int size = fcntl(p->write_fd, F_SETPIPE_SZ, (int) (pages * page_size()));

        set_pages(p, size < 0 ? real_pages(p) : (uint64_t) size / page_size());
}

/* Those that a uid has, in use or retired, count at their real size; those that nobody reads any more, not at all.
 * `give_back`: one that grew gets the size that we made it, unless more is in it. */
static void check_all(User *u, bool give_back) {
        for (GList *i = u->pipes.head, *next; i; i = next) {
                Pipe *p = i->data;

                next = i->next;
                if (p->rests && pipe_is_closed(p)) {
                        pipe_free(p);
                        continue;
                }
                uint64_t before = p->pages;
                (void) pipe_ref(p); /* what ends its run may drop the last reference */
                if (pipe_check(p)) {
                        run_on_pipe_grown(u->manager, p);
                        if (give_back)
                                resize(p, before);
                }
                (void) pipe_unref(p);
        }
}

/* The kernel makes one of 16 pages; fewer where our own uid has too many. */
static int open_pipe(Pipe *p, Refusal *refusal) {
        int fds[2];

        if (pipe2(fds, O_CLOEXEC) < 0) {
                if (errno != EMFILE && errno != ENFILE)
                        return -errno;
                return refuse(refusal, ERROR_LIMITS_EXCEEDED,
                              "The service has no descriptor left for a pipe; try again later.");
        }
        p->read_fd = fds[0];
        p->write_fd = fds[1];
        /* Each end has its own description: the reader's stays blocking. */
        if (fcntl(p->write_fd, F_SETFL, O_WRONLY | O_NONBLOCK) < 0)
                return -errno;
        return 0;
}

static int on_readers_gone(sd_event_source *s, int fd, uint32_t revents, void *userdata) {
        pipe_free(userdata);
        return 0;
}

/* False: it rests on, and counts on, since its reader has its pages. */
static bool watch(Pipe *p) {
        int r = sd_event_add_io(p->user->manager->event, &p->watch, p->write_fd, 0, on_readers_gone, p);

        if (r < 0) {
                if (!p->unwatched)
                        log_warning_limited("A retired pipe cannot be watched yet: %s", g_strerror(-r));
                p->unwatched = true;
                return false;
        }
        g_queue_unlink(&p->user->manager->resting_pipes, &p->rest_link);
        p->rests = false;
        return true;
}

/* The kernel had fewer pages left than it should: somebody took them. */
static void find_grown(Manager *m) {
        g_autoptr(GList) users = g_hash_table_get_values(m->users);

        for (GList *i = users; i; i = i->next)
                (void) user_ref(i->data); /* a run that ends may be the last that one has */
        for (GList *i = users; i; i = i->next) {
                check_all(i->data, true);
                (void) user_unref(i->data);
        }
}

static void start_rest_or_warn(Manager *m);

static int on_rest_over(sd_event_source *s, uint64_t usec, void *userdata) {
        Manager *m = userdata;

        for (GList *i = m->resting_pipes.head, *next; i; i = next) {
                Pipe *p = i->data;

                next = i->next;
                if (pipe_is_closed(p))
                        pipe_free(p);
                else if (!watch(p))
                        break; /* nor can the others be */
        }
        if (m->resting_pipes.head)
                start_rest_or_warn(m);
        if (m->pipes_are_short) {
                m->pipes_are_short = false;
                find_grown(m);
        }
        return 0;
}

/* For all that rest, from when the first of them does. */
static int start_rest(Manager *m) {
        int r;

        if (m->rest_timer && sd_event_source_get_enabled(m->rest_timer, NULL) > 0)
                return 0;
        if (!m->rest_timer)
                return sd_event_add_time_relative(m->event, &m->rest_timer, CLOCK_MONOTONIC, REST_USEC, 0, on_rest_over, m);
        r = sd_event_source_set_time_relative(m->rest_timer, REST_USEC);
        return r < 0 ? r : sd_event_source_set_enabled(m->rest_timer, SD_EVENT_ONESHOT);
}

/* Without a timer they rest until the next one does, or their uid wants one more. */
static void start_rest_or_warn(Manager *m) {
        int r = start_rest(m);

        if (r < 0)
                log_warning_limited("Retired pipes cannot be looked at: %s", g_strerror(-r));
}

/* A pipe came out smaller than asked for. Not at once, but from the loop, since what has grown ends, and its statements go;
 * and not for each pipe, since it may be no client of ours who took the pages. */
static void look_for_grown(Manager *m) {
        int r;

        m->pipes_are_short = true;
        r = start_rest(m);
        if (r < 0)
                log_warning_limited("Pipes that their readers grew cannot be looked for: %s", g_strerror(-r));
}

static void grow(Pipe *p, uint64_t pages) {
        resize(p, pages);
        if (p->pages < pages)
                look_for_grown(p->user->manager);
}

/* Whether what its first run wants is there for a new pipe. */
static bool admits_for_run(const User *u) {
        return pipe_budget_admits_first_run(&u->manager->pipe_budget, &u->pipe_account, quota_pipe_pages(u),
                                            PIPE_PAGES_FIRST_RUN);
}

int pipe_new(User *u, bool for_run, Pipe **ret, Refusal *refusal) {
        PipeBudget *budget = &u->manager->pipe_budget;

        check_all(u, false);
        if (budget->used >= budget->total)
                return refuse(refusal, ERROR_LIMITS_EXCEEDED,
                              "The pipes of all users together hold what the service may have; try again later.");
        if (!pipe_budget_admits_new(budget, &u->pipe_account, quota_pipe_pages(u)))
                return user_refuse(u, "PipePagesMax=", refusal,
                                   "Your pipes hold %" PRIu64 " pages, which is all you may have: finalize "
                                   "statements and close their pipes.", u->pipe_account.used);
        Pipe *p = g_new(Pipe, 1);
        *p = (Pipe) { .user = user_ref(u), .n_ref = 1, .write_fd = -1, .read_fd = -1, .link.data = p, .rest_link.data = p };
        g_queue_push_tail_link(&u->pipes, &p->link);

        int r = open_pipe(p, refusal);
        if (r < 0) {
                pipe_free(p);
                return r;
        }
        p->ran = for_run && admits_for_run(u);
        if (p->ran)
                set_pages(p, real_pages(p)); /* as it was made: to shrink it first would be two calls for nothing */
        else
                resize(p, 1);
        if (p->ran && p->pages < PIPE_PAGES_FIRST_RUN)
                look_for_grown(u->manager);
        *ret = p;
        return 0;
}

void pipe_close_read_fd(Pipe *p) {
        if (p->read_fd >= 0)
                close(p->read_fd);
        p->read_fd = -1;
}

int pipe_take_read_fd(Pipe *p) {
        int fd = p->read_fd;

        p->read_fd = -1;
        return fd;
}

void pipe_break(Pipe *p) {
        p->watch = sd_event_source_disable_unref(p->watch);
        if (p->write_fd >= 0)
                close(p->write_fd);
        p->write_fd = -1;
        set_pages(p, 0);
}

void pipe_free(Pipe *p) {
        pipe_break(p);
        pipe_close_read_fd(p);
        if (p->rests)
                g_queue_unlink(&p->user->manager->resting_pipes, &p->rest_link);
        g_queue_unlink(&p->user->pipes, &p->link);
        (void) user_unref(p->user);
        g_free(p);
}

/* A reader that was told its end closes the pipe in no time as a rule, so it is not watched at once. */
static void retire(Pipe *p) {
        Manager *m = p->user->manager;

        pipe_close_read_fd(p);
        if (p->write_fd < 0) {
                pipe_free(p);
                return;
        }
        p->rests = true;
        g_queue_push_tail_link(&m->resting_pipes, &p->rest_link);
        start_rest_or_warn(m);
}

Pipe *pipe_ref(Pipe *p) {
        p->n_ref++;
        return p;
}

Pipe *pipe_unref(Pipe *p) {
        if (p && --p->n_ref == 0 && !p->watch && !p->rests)
                retire(p);
        return NULL;
}

bool pipe_is_closed(const Pipe *p) {
        struct pollfd pfd = { .fd = p->write_fd };

        if (p->write_fd < 0)
                return true;
        return poll(&pfd, 1, 0) > 0 && (pfd.revents & POLLERR);
}

void pipe_grow_for_run(Pipe *p) {
        const Manager *m = p->user->manager;

        if (p->ran || p->write_fd < 0)
                return;
        p->ran = true;
        if (p->pages < PIPE_PAGES_FIRST_RUN &&
            pipe_budget_admits_first_run(&m->pipe_budget, &p->user->pipe_account, quota_pipe_pages(p->user),
                                         PIPE_PAGES_FIRST_RUN - p->pages))
                grow(p, PIPE_PAGES_FIRST_RUN);
}

void pipe_grow_for_filling(Pipe *p) {
        const Manager *m = p->user->manager;

        if (p->filled || p->write_fd < 0 || p->pages >= PIPE_PAGES_FILLING)
                return;
        if (!pipe_budget_admits_filling(&m->pipe_budget, &p->user->pipe_account, quota_pipe_pages(p->user),
                                        PIPE_PAGES_FILLING - p->pages))
                return;
        p->filled = true;
        grow(p, PIPE_PAGES_FILLING);
}

void pipe_grow_for_last_words(Pipe *p) {
        if (p->write_fd >= 0 && p->pages < PIPE_PAGES_FILLING)
                resize(p, PIPE_PAGES_FILLING); /* whatever the budget says: it ends with us */
}
