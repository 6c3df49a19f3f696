/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A pipe that leads to a client. Supervisor. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "daemon/supervisor/base/context.h"
#include "daemon/supervisor/base/log.h"
#include "daemon/supervisor/base/quota.h"
#include "daemon/supervisor/runs/pipe.h"

#define REST_USEC UINT64_C(100000)  /* until a retired pipe is watched, or all pipes are checked */
#define KEPT_USEC UINT64_C(5000000) /* between two checks of pipes that cannot be watched, so many at a time */
#define KEPT_CHECKS 64u

static uint64_t page_size(void) {
        return (uint64_t) sysconf(_SC_PAGESIZE);
}

static void set_share(Pipe *p, PipeShare after) {
        pipe_budget_change(&p->user->context->pipes->budget, &p->user->pipe_account, &p->share, &after);
        p->share = after;
}

static void set_size(Pipe *p, uint64_t pages, uint64_t granted) {
        set_share(p, (PipeShare) { .pages = pages, .granted = MIN(granted, pages), .retired = p->share.retired });
}

static uint64_t real_pages(const Pipe *p) {
        int size = fcntl(p->write_fd, F_GETPIPE_SZ);

        return size < 0 ? p->share.pages : (uint64_t) size / page_size();
}

bool pipe_check(Pipe *p) {
        uint64_t pages = p->write_fd >= 0 ? real_pages(p) : 0;

        if (pages <= p->share.pages)
                return false;
        set_size(p, pages, p->share.granted);
        return true;
}

/* If F_SETPIPE_SZ fails with EPERM (past the kernel's own limit) or EBUSY, the pipe keeps its size. */
static void resize(Pipe *p, uint64_t pages) {
        int size = fcntl(p->write_fd, F_SETPIPE_SZ, (int) (pages * page_size()));
        uint64_t real = size < 0 ? real_pages(p) : (uint64_t) size / page_size();

        set_size(p, real, size < 0 && p->share.granted > 0 ? p->share.granted : real);
}

/* ---- Pipes of loads that have ended ---- */

/* Keeps a descriptor that is neither end, so that the client gets EPIPE. */
static bool keep(Pipe *p) {
        char name[64];

        (void) snprintf(name, sizeof name, "/proc/self/fd/%d", p->write_fd);
        p->path_fd = open(name, O_PATH | O_CLOEXEC);
        return p->path_fd >= 0;
}

/* Opens the service's end for a moment. False: there is no descriptor left, so the pipe counts as it did. */
static bool lift(Pipe *p) {
        char name[64];

        (void) snprintf(name, sizeof name, "/proc/self/fd/%d", p->path_fd);
        p->write_fd = open(name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
        return p->write_fd >= 0;
}

static void lower(Pipe *p) {
        (void) close(p->write_fd);
        p->write_fd = -1;
}

static bool is_lifted_closed(const Pipe *p) {
        struct pollfd pfd = { .fd = p->write_fd };

        return poll(&pfd, 1, 0) > 0 && (pfd.revents & POLLHUP);
}

/* The same as check(), for such a pipe. True: it is freed. */
static bool check_kept(Pipe *p, bool give_back) {
        if (!lift(p))
                return false;
        if (is_lifted_closed(p)) {
                pipe_free(p);
                return true;
        }
        if (pipe_check(p) && give_back)
                resize(p, p->share.granted);
        lower(p);
        return false;
}

/* Checks a few of those that no call of their users may ever check. */
static void check_some_kept(Context *context) {
        GQueue *kept = &context->pipes->kept;

        for (guint n = MIN(kept->length, KEPT_CHECKS); n > 0; n--) {
                GList *link = g_queue_pop_head_link(kept);

                g_queue_push_tail_link(kept, link);
                (void) check_kept(link->data, false);
        }
}

/* Counts a pipe at its real size. A retired pipe is shrunk, or freed if it has no reader. `give_back`: a pipe that its
 * reader grew is reduced to the size that we gave it, unless it holds more bytes than that. May end its run. */
static void check(Pipe *p, bool give_back) {
        if (p->path_fd >= 0) {
                (void) check_kept(p, give_back);
                return;
        }
        if (p->state == PIPE_RESTING && pipe_is_closed(p)) {
                pipe_free(p);
                return;
        }
        (void) pipe_ref(p); /* a run that ends may drop the last reference */
        if (pipe_check(p)) {
                p->user->context->events->pipe_grown(p->user->context, p);
                if (give_back)
                        resize(p, p->share.granted);
        } else if (p->share.retired && p->share.pages > 1 && p->share.pages == p->share.granted)
                resize(p, 1); /* its reader keeps its end, and the bytes in the pipe stay */
        (void) pipe_unref(p);
}

/* Checks the next `n` pipes of the user, in turns, as far as n_checks_left allows. */
static void spend_checks(User *u, uint64_t n) {
        for (; n > 0 && u->n_checks_left > 0 && u->pipes.head; n--) {
                GList *link = g_queue_pop_head_link(&u->pipes);

                u->n_checks_left--;
                g_queue_push_tail_link(&u->pipes, link);
                check(link->data, false);
        }
}

/* The kernel makes a pipe of 16 pages; of fewer if our own uid has too many pages. */
static int open_pipe(Pipe *p, Refusal *refusal) {
        int fds[2];

        if (pipe2(fds, O_CLOEXEC) < 0) {
                if (errno != EMFILE && errno != ENFILE)
                        return -errno;
                return refuse(refusal, ERROR_LIMITS_EXCEEDED,
                              "The service has no descriptor left for a pipe; try again later.");
        }
        /* Each end has its own file description, so the client's stays blocking. */
        if (fcntl(fds[!p->is_inward], F_SETFL, (p->is_inward ? O_RDONLY : O_WRONLY) | O_NONBLOCK) < 0) {
                int r = -errno;

                close(fds[0]);
                close(fds[1]);
                return r;
        }
        p->read_fd = fds[p->is_inward];
        p->write_fd = fds[!p->is_inward];
        return 0;
}

static int on_readers_gone(sd_event_source *s, int fd, uint32_t revents, void *userdata) {
        pipe_free(userdata);
        return 0;
}

/* False: the pipe keeps resting and counting, since its reader still has its pages. */
static bool watch(Pipe *p) {
        int r = sd_event_add_io(p->user->context->event, &p->watch, p->write_fd, 0, on_readers_gone, p);

        if (r < 0) {
                if (!p->unwatched)
                        log_warning_limited("A retired pipe cannot be watched yet: %s", g_strerror(-r));
                p->unwatched = true;
                return false;
        }
        g_queue_unlink(&p->user->context->pipes->resting, &p->rest_link);
        pipe_life_move(&p->state, PIPE_WATCHED);
        return true;
}

/* The kernel had fewer pages left than it should, so a client or another program took them: checks all pipes. */
static void find_grown(Context *context) {
        g_autoptr(GList) users = g_hash_table_get_values(context->users);

        for (GList *i = users; i; i = i->next)
                (void) user_ref(i->data); /* a run that ends may hold the user's last reference */
        for (GList *i = users; i; i = i->next) {
                User *u = i->data;

                for (GList *k = u->pipes.head, *next; k; k = next) {
                        next = k->next;
                        check(k->data, true);
                }
                (void) user_unref(u);
        }
}

static void start_rest_or_warn(Context *context);

/* Only pipes that cannot be watched are left. Starts the timer for them, which has just fired. */
static void start_slow_rest(PipeStock *stock) {
        stock->is_slow = sd_event_source_set_time_relative(stock->timer, KEPT_USEC) >= 0 &&
                         sd_event_source_set_enabled(stock->timer, SD_EVENT_ONESHOT) >= 0;
}

/* The system does not tell when its writer closes it. */
static void check_rested(Pipe *p) {
        PipeStock *stock = p->user->context->pipes;

        if (check_kept(p, false))
                return;
        g_queue_unlink(&stock->resting, &p->rest_link);
        g_queue_push_tail_link(&stock->kept, &p->rest_link);
        pipe_life_move(&p->state, PIPE_WATCHED);
}

static int on_rest_over(sd_event_source *s, uint64_t usec, void *userdata) {
        Context *context = userdata;

        for (GList *i = context->pipes->resting.head, *next; i; i = next) {
                Pipe *p = i->data;

                next = i->next;
                if (p->path_fd >= 0)
                        check_rested(p);
                else if (pipe_is_closed(p))
                        pipe_free(p);
                else if (!watch(p))
                        break; /* the others cannot be watched either */
        }
        check_some_kept(context);
        if (context->pipes->resting.head)
                start_rest_or_warn(context);
        else if (context->pipes->kept.head)
                start_slow_rest(context->pipes);
        if (context->pipes->are_short) {
                context->pipes->are_short = false;
                find_grown(context);
        }
        return 0;
}

/* Starts the timer for all resting pipes when the first one begins to rest. */
static int start_rest(Context *context) {
        int r;

        if (context->pipes->timer && sd_event_source_get_enabled(context->pipes->timer, NULL) > 0 &&
            !context->pipes->is_slow)
                return 0;
        context->pipes->is_slow = false;
        if (!context->pipes->timer)
                return sd_event_add_time_relative(context->event, &context->pipes->timer, CLOCK_MONOTONIC, REST_USEC, 0,
                                                  on_rest_over, context);
        r = sd_event_source_set_time_relative(context->pipes->timer, REST_USEC);
        return r < 0 ? r : sd_event_source_set_enabled(context->pipes->timer, SD_EVENT_ONESHOT);
}

/* Without the timer the pipes rest until the next one does, or until their uid wants another pipe. */
static void start_rest_or_warn(Context *context) {
        int r = start_rest(context);

        if (r < 0)
                log_warning_limited("Retired pipes cannot be looked at: %s", g_strerror(-r));
}

/* A pipe is smaller than requested. The check is done later, from the loop, because it ends runs and statements on pipes
 * that were grown. It is not done for each pipe, because a program that is not our client may have taken the pages. */
static void look_for_grown(Context *context) {
        int r;

        context->pipes->are_short = true;
        r = start_rest(context);
        if (r < 0)
                log_warning_limited("Pipes that their readers grew cannot be looked for: %s", g_strerror(-r));
}

static void grow(Pipe *p, uint64_t pages) {
        resize(p, pages);
        if (p->share.pages < pages)
                look_for_grown(p->user->context);
}

/* True if the budget has room for a new pipe of the size that its first run wants. */
static bool admits_for_run(const User *u) {
        return pipe_budget_admits_first_run(&u->context->pipes->budget, &u->pipe_account, quota_pipe_pages(u),
                                            PIPE_PAGES_FIRST_RUN);
}

static int refuse_new(const User *u, PipeVerdict verdict, Refusal *refusal) {
        const PipeAccount *a = &u->pipe_account;

        switch (verdict) {
        case PIPE_PAST_LIMIT:
                return user_refuse(u, "PipePagesMax=", refusal,
                                   "Your pipes hold %" PRIu64 " pages, which is all you may have (PipePagesMax=): finalize "
                                   "statements and close their pipes.", a->used);
        case PIPE_PAST_SHARE:
                return user_refuse(u, "the share of pipes", refusal,
                                   "Your pipes hold %" PRIu64 " pages, and the pipes of all users together leave you no "
                                   "more: close some, or try again later.", a->used);
        case PIPE_PAST_RETIRED:
                return user_refuse(u, "the share of finished pipes", refusal,
                                   "Pipes that you have finished with hold %" PRIu64 " pages, because you keep their read "
                                   "ends open: close them.", a->retired);
        case PIPE_PAST_TOTAL:
        case PIPE_ADMITTED: break;
        }
        return refuse_for_now(refusal, "The pipes of all users together hold what the service may have; try again later.");
}

static PipeVerdict admits_new(const User *u) {
        return pipe_budget_admits_new(&u->context->pipes->budget, &u->pipe_account, quota_pipe_pages(u));
}

/* Each call adds a constant number of checks, no matter how many pipes the user has, and spends half of them. The rest is
 * kept for a call that would be refused: that call may then find pipes that their readers have closed. */
static PipeVerdict check_and_admit(User *u) {
        u->n_checks_left = MIN(u->n_checks_left + PIPE_CHECKS_PER_CALL, (uint64_t) u->pipes.length);
        spend_checks(u, PIPE_CHECKS_PER_CALL / 2);
        PipeVerdict verdict = admits_new(u);
        if (verdict == PIPE_ADMITTED)
                return verdict;
        spend_checks(u, u->n_checks_left);
        return admits_new(u);
}

static int new_pipe(User *u, bool is_inward, bool for_run, Pipe **ret, Refusal *refusal) {
        PipeVerdict verdict = check_and_admit(u);

        if (verdict != PIPE_ADMITTED)
                return refuse_new(u, verdict, refusal);
        Pipe *p = g_new(Pipe, 1);
        *p = (Pipe) { .user = user_ref(u), .n_ref = 1, .is_inward = is_inward, .write_fd = -1, .path_fd = -1, .read_fd = -1,
                      .link.data = p, .rest_link.data = p };
        g_queue_push_tail_link(&u->pipes, &p->link);

        int r = open_pipe(p, refusal);
        if (r < 0) {
                pipe_free(p);
                return r;
        }
        if (for_run && admits_for_run(u))
                p->growth = PIPE_GROWN_FOR_RUN;
        if (p->growth == PIPE_GROWN_FOR_RUN)
                set_size(p, real_pages(p), UINT64_MAX); /* shrinking it first would cost two system calls for nothing */
        else
                resize(p, 1);
        if (p->growth == PIPE_GROWN_FOR_RUN && p->share.pages < PIPE_PAGES_FIRST_RUN)
                look_for_grown(u->context);
        *ret = p;
        return 0;
}

int pipe_new(User *u, bool for_run, Pipe **ret, Refusal *refusal) {
        return new_pipe(u, false, for_run, ret, refusal);
}

int pipe_new_inward(User *u, Pipe **ret, Refusal *refusal) {
        return new_pipe(u, true, true, ret, refusal);
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

int pipe_watch_room(Pipe *p, sd_event_io_handler_t handler, void *userdata) {
        return sd_event_add_io(p->user->context->event, &p->watch, p->write_fd, EPOLLOUT, handler, userdata);
}

void pipe_unwatch(Pipe *p) {
        p->watch = sd_event_source_disable_unref(p->watch);
}

/* The client may keep its end of a load's pipe as long as it likes. So the pipe must not keep memory: it is emptied and made
 * small. It takes no more bytes after that. */
static void empty(Pipe *p) {
        uint8_t bytes[16384];
        uint64_t n_left = real_pages(p) * page_size() / sizeof bytes + 1;

        while (n_left-- > 0 && read(p->write_fd, bytes, sizeof bytes) > 0) {
        }
        (void) fcntl(p->write_fd, F_SETPIPE_SZ, (int) page_size());
}

static void close_write_fd(Pipe *p) {
        pipe_unwatch(p);
        if (p->write_fd >= 0 && p->is_inward)
                empty(p);
        if (p->write_fd >= 0)
                close(p->write_fd);
        p->write_fd = -1;
        set_size(p, 0, 0);
}

void pipe_break(Pipe *p) {
        if (p->state != PIPE_BROKEN)
                pipe_life_move(&p->state, PIPE_BROKEN);
        close_write_fd(p);
}

void pipe_free(Pipe *p) {
        close_write_fd(p);
        pipe_close_read_fd(p);
        if (p->state == PIPE_RESTING)
                g_queue_unlink(&p->user->context->pipes->resting, &p->rest_link);
        else if (p->state == PIPE_WATCHED && p->path_fd >= 0)
                g_queue_unlink(&p->user->context->pipes->kept, &p->rest_link);
        if (p->path_fd >= 0)
                (void) close(p->path_fd);
        g_queue_unlink(&p->user->pipes, &p->link);
        (void) user_unref(p->user);
        g_free(p);
}

/* Closes the service's end of a load's pipe. False: the client has closed its own, or that cannot be found out later. */
static bool end_inward(Pipe *p) {
        p->ended_by = NULL;
        if (is_lifted_closed(p) || !keep(p))
                return false;
        empty(p);
        set_size(p, real_pages(p), UINT64_MAX);
        lower(p);
        return true;
}

/* Most readers that have seen the end close the pipe soon, so a retired pipe is not watched at once. */
static void retire(Pipe *p) {
        Context *context = p->user->context;

        pipe_close_read_fd(p);
        if (p->state == PIPE_BROKEN || (p->is_inward && !end_inward(p))) {
                pipe_free(p);
                return;
        }
        PipeShare share = p->share;
        share.retired = true;
        set_share(p, share);
        g_queue_unlink(&p->user->pipes, &p->link); /* it is checked next, because it is likely to be closed by then */
        g_queue_push_head_link(&p->user->pipes, &p->link);
        pipe_life_move(&p->state, PIPE_RESTING);
        g_queue_push_tail_link(&context->pipes->resting, &p->rest_link);
        start_rest_or_warn(context);
}

Pipe *pipe_ref(Pipe *p) {
        p->n_ref++;
        return p;
}

Pipe *pipe_unref(Pipe *p) {
        if (p && --p->n_ref == 0 && p->state < PIPE_RESTING)
                retire(p);
        return NULL;
}

bool pipe_has_bytes(const Pipe *p) {
        int n = 0;

        return p->write_fd >= 0 && (ioctl(p->write_fd, FIONREAD, &n) < 0 || n > 0);
}

bool pipe_may_retire(const User *u, bool for_cached) {
        return pipe_budget_leaves_retired(&u->context->pipes->budget, &u->pipe_account, quota_pipe_pages(u), 1, for_cached);
}

void pipe_shrink(Pipe *p) {
        if (p->write_fd >= 0 && p->share.pages > 1)
                resize(p, 1);
}

bool pipe_is_closed(const Pipe *p) {
        struct pollfd pfd = { .fd = p->write_fd };

        if (p->write_fd < 0)
                return true;
        return poll(&pfd, 1, 0) > 0 && (pfd.revents & POLLERR);
}

void pipe_grow_for_run(Pipe *p) {
        const Context *context = p->user->context;

        if (p->growth != PIPE_SMALL || p->state == PIPE_BROKEN)
                return;
        p->growth = PIPE_GROWN_FOR_RUN;
        if (p->share.pages < PIPE_PAGES_FIRST_RUN &&
            pipe_budget_admits_first_run(&context->pipes->budget, &p->user->pipe_account, quota_pipe_pages(p->user),
                                         PIPE_PAGES_FIRST_RUN - p->share.pages))
                grow(p, PIPE_PAGES_FIRST_RUN);
}

void pipe_grow_for_filling(Pipe *p) {
        const Context *context = p->user->context;

        if (p->growth == PIPE_GROWN_FOR_FILLING || p->state == PIPE_BROKEN || p->share.pages >= PIPE_PAGES_FILLING)
                return;
        if (!pipe_budget_admits_filling(&context->pipes->budget, &p->user->pipe_account, quota_pipe_pages(p->user),
                                        PIPE_PAGES_FILLING - p->share.pages))
                return;
        p->growth = PIPE_GROWN_FOR_FILLING;
        grow(p, PIPE_PAGES_FILLING);
}

void pipe_grow_before_exit(Pipe *p) {
        if (p->write_fd >= 0 && p->share.pages < PIPE_PAGES_FILLING)
                resize(p, PIPE_PAGES_FILLING); /* ignores the budget, because the pipe ends with the service */
}
