/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Notices commits of other programs. Supervisor. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "daemon/supervisor/base/clock.h"
#include "daemon/supervisor/base/context.h"
#include "daemon/supervisor/base/high-descriptor.h"
#include "daemon/supervisor/base/log.h"
#include "daemon/supervisor/workers/changes.h"
#include "daemon/supervisor/workers/lease.h"
#include "daemon/supervisor/workers/observer.h"
#include "daemon/supervisor/workers/password.h"
#include "daemon/supervisor/workers/worker-process.h"

#define N_PROCESSES_MAX 16u                /* of all observers; others wait for a place */
#define POLL_USEC UINT64_C(1000000)        /* between two looks without inotify */
#define OWN_USEC UINT64_C(500)             /* for the lease's holder to tell a commit of which inotify has told */
#define OWN_AGAIN_USEC UINT64_C(2000)      /* while its commits follow each other */
#define BUSY_USEC UINT64_C(300)            /* until the next look while a writer is at work; doubled each time */
#define BUSY_MAX_USEC UINT64_C(50000)
#define FAILURE_USEC UINT64_C(1000000)     /* after a process that failed; doubled each time */
#define FAILURE_MAX_USEC UINT64_C(60000000)
#define ANSWER_USEC UINT64_C(60000000)     /* a process that has not answered by then is killed */
#define N_READS_MAX 16u                    /* of events in one turn of the loop */
#define HEAP_MAX (UINT64_C(64) * 1024 * 1024)
#ifndef QUIET_USEC /* a test sets less */
#define QUIET_USEC UINT64_C(5000000) /* until the process ends */
#endif

struct Observer {
        ChangeStock *stock;       /* not owned */
        Changes *changes;         /* not owned; NULL: it was stopped, and waits for its process */
        WorkerProcess process;
        int control_fd;           /* -1: there is no process, or it is ending */
        int notifier_fd;          /* inotify, or our end of the pipe to the engine process; -1: none yet */
        sd_event_source *io, *notifier, *timer;
        GList link;               /* among those with a process, or those that wait for a place */
        bool waits;               /* for a place */
        bool has_place;           /* its process counts among those of all observers */
        bool asked;               /* OBSERVE was sent, and is not answered */
        bool again;               /* something has happened since */
        bool given;               /* the process has its descriptor of that */
        bool killed;              /* it counts as failed, with any exit code */
        bool notified;            /* inotify tells of changes; a server is asked each second, too */
        bool by_change;           /* the look was asked for because of a change, not of the time */
        bool first;               /* no look was answered yet */
        bool fresh;               /* the process has answered no look yet */
        bool dirty;               /* inotify has told of something that was not looked at */
        bool unknown;             /* the last look has found no state */
        uint64_t look_usec;       /* when the next look is due; UINT64_MAX: none is */
        uint64_t quiet_usec;      /* when the process ends */
        uint64_t busy_usec;       /* how long to wait while a writer is at work */
        uint64_t answer_usec;     /* when the process must have answered; UINT64_MAX: it need not, or was killed */
        uint64_t failure_usec;    /* how long to wait after a failure; 0: the last look did not fail */
        uint64_t resume_usec;     /* before this no process is started */
        uint64_t n_committed;     /* of the file, when inotify told of a change */
        uint64_t n_at_question;   /* the same, when OBSERVE was sent last */
        uint64_t device, inode;   /* of the file; 0: there is none */
        uint32_t schema;
        uint64_t n_schemas;       /* of the file, for which `schema` is known */
        bool schema_is_known;
        char *name;               /* owned: of the file; NULL: not known yet */
};

static void look(Observer *o);
static void ask(Observer *o);
static int on_events(sd_event_source *source, int fd, uint32_t revents, void *userdata);

/* ---- Time ---- */

static void arm(Observer *o) {
        uint64_t usec = MIN(o->look_usec, o->process.exists ? MIN(o->quiet_usec, o->answer_usec) : UINT64_MAX);
        int r = sd_event_source_set_time(o->timer, usec);

        if (r >= 0)
                r = sd_event_source_set_enabled(o->timer, usec == UINT64_MAX ? SD_EVENT_OFF : SD_EVENT_ONESHOT);
        if (r < 0)
                log_error("A timer cannot be set: %s", strerror(-r));
}

static void look_after(Observer *o, uint64_t usec) {
        o->look_usec = MIN(o->look_usec, clock_usec() + usec);
        arm(o);
}

/* ---- The process ---- */

static void drop_notifier(Observer *o) {
        o->notifier = sd_event_source_disable_unref(o->notifier);
        if (o->notifier_fd >= 0)
                close(o->notifier_fd);
        o->notifier_fd = -1;
}

/* Observers wait only while there is no place. One that fails at once leaves its place to the next. */
static void serve_waiting(ChangeStock *s) {
        GList *link;

        while (s->observers.length < N_PROCESSES_MAX && (link = g_queue_pop_head_link(&s->waiting))) {
                ((Observer *) link->data)->waits = false;
                ask(link->data);
        }
}

static void forget_process(Observer *o) {
        o->io = sd_event_source_disable_unref(o->io);
        if (o->control_fd >= 0)
                close(o->control_fd);
        o->control_fd = -1;
        if (o->has_place)
                g_queue_unlink(&o->stock->observers, &o->link);
        o->has_place = false;
        o->asked = o->given = o->killed = false;
        o->answer_usec = UINT64_MAX;
        if (o->changes && changes_are_of_server(o->changes))
                drop_notifier(o); /* the server tells only a process that listens */
}

static void destroy(Observer *o) {
        forget_process(o);
        if (o->waits)
                g_queue_unlink(&o->stock->waiting, &o->link);
        o->timer = sd_event_source_disable_unref(o->timer);
        drop_notifier(o);
        g_free(o->name);
        g_free(o);
}

/* Until the next process has told it, the state is not known, and that may be a change. */
static void tell_unknown(Observer *o) {
        changes_on_observed(o->changes, &(ObservedState) {}, false);
}

static void on_failure(Observer *o) {
        o->failure_usec = MIN(MAX(o->failure_usec * 2, FAILURE_USEC), FAILURE_MAX_USEC);
        o->resume_usec = clock_usec() + o->failure_usec;
        look_after(o, o->failure_usec);
        tell_unknown(o);
}

static void on_process_end(WorkerProcess *p, const WorkerProcessEnd *end, void *userdata) {
        Observer *o = userdata;
        ChangeStock *s = o->stock;
        bool failed = o->killed || end->code != CLD_EXITED || end->status != 0, asked = o->asked;

        if (failed && o->changes)
                log_warning_limited("The process that observes a database has failed (status %i).", end->status);
        forget_process(o);
        serve_waiting(s); /* first: an observer that looks again would take the place itself */
        if (!o->changes)
                destroy(o);
        else if (failed)
                on_failure(o);
        else if (asked)
                look(o);
        else if (changes_are_of_server(o->changes))
                look_after(o, POLL_USEC);
}

static int send_setup(Observer *o) {
        const ServerAccess *server = o->changes->server;
        g_autoptr(Password) password = NULL;
        int r = server ? password_read(server->password_file, &password) : 0;

        if (r < 0)
                return r;
        return message_send(o->control_fd, &(Message) {
                .kind = MESSAGE_SETUP,
                .setup = {
                        .path = server ? "" : o->changes->path,
                        .engine = server ? server->engine : ENGINE_KIND_SQLITE,
                        .connection = server ? server->connection : NULL,
                        .password = password_text(password),
                        .connections_max = 1,
                        .consistency = server ? server->consistency : CONSISTENCY_NONE,
                        .observes = true,
                        .heap_size_max = HEAP_MAX,
                        .sql_size_max = 1000,
                        .expression_depth_max = 1000,
                        .compound_selects_max = 500,
                        .vdbe_ops_max = 1000000,
                        .variables_max = 100,
                },
        }, -1);
}

static int on_control(sd_event_source *source, int fd, uint32_t revents, void *userdata);

static int start_process(Observer *o) {
        Context *context = o->stock->context;
        EngineKind engine = o->changes->server ? o->changes->server->engine : ENGINE_KIND_SQLITE;
        int r = worker_process_start(&o->process, context, engine, -1, -1, -1, on_process_end, o, &o->control_fd);

        if (r < 0)
                return r;
        g_queue_push_tail_link(&o->stock->observers, &o->link);
        o->has_place = true;
        o->fresh = true;
        r = sd_event_add_io(context->event, &o->io, o->control_fd, EPOLLIN, on_control, o);
        return r < 0 ? r : send_setup(o);
}

static void take_notifier(Observer *o, int fd) {
        if (fd >= 0)
                fd = high_descriptor(fd);
        if (fd < 0)
                return;
        if (sd_event_add_io(o->stock->context->event, &o->notifier, fd, EPOLLIN, on_events, o) < 0)
                close(fd);
        else
                o->notifier_fd = fd;
}

/* A byte in it tells of a change. The ends of a pipe have flags of their own, so the process cannot make our read block. */
static int give_pipe(Observer *o) {
        int fds[2], r;

        drop_notifier(o);
        if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0)
                return 0;
        take_notifier(o, fds[0]);
        r = o->notifier_fd < 0 ? 0 : message_send(o->control_fd, &(Message) { .kind = MESSAGE_NOTIFIER }, fds[1]);
        close(fds[1]);
        o->given = r >= 0 && o->notifier_fd >= 0;
        return r;
}

/* The supervisor reads the descriptor, so it makes it: one that a process sends might block, or be no inotify. The filter of
 * system calls keeps the process from changing O_NONBLOCK, which both share. Without a free descriptor the file is looked at
 * each second, until there is one. */
static int give_notifier(Observer *o) {
        int r;

        if (changes_are_of_server(o->changes))
                return o->given ? 0 : give_pipe(o);
        if (o->notifier_fd < 0)
                take_notifier(o, inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
        if (o->given || o->notifier_fd < 0)
                return 0;
        r = message_send(o->control_fd, &(Message) { .kind = MESSAGE_NOTIFIER }, o->notifier_fd);
        o->given = r >= 0;
        return r;
}

/* Its process ends when it finds the socket closed. */
static void stop_process(Observer *o) {
        o->io = sd_event_source_disable_unref(o->io);
        if (o->control_fd >= 0)
                close(o->control_fd);
        o->control_fd = -1;
}

/* on_process_end() follows. */
static void kill_process(Observer *o) {
        worker_process_kill(&o->process);
        o->killed = true;
        o->answer_usec = UINT64_MAX;
        stop_process(o);
}

/* ---- Looks ---- */

static void ask(Observer *o) {
        int r = 0;

        if (!o->process.exists) {
                if (o->stock->observers.length >= N_PROCESSES_MAX) {
                        if (!o->waits)
                                g_queue_push_tail_link(&o->stock->waiting, &o->link);
                        o->waits = true;
                        return;
                }
                r = start_process(o);
        }
        if (r >= 0 && o->control_fd < 0) { /* it is ending: the next one is asked */
                o->asked = true;
                return;
        }
        o->n_at_question = o->changes->n_committed;
        if (r >= 0)
                r = give_notifier(o);
        if (r >= 0)
                r = message_send(o->control_fd, &(Message) { .kind = MESSAGE_OBSERVE }, -1);
        if (r >= 0 || r == -EPIPE) {
                o->asked = true;
                o->answer_usec = clock_usec() + ANSWER_USEC;
                return;
        }
        log_warning_limited("A database cannot be observed: %s", strerror(-r));
        if (o->process.exists) {
                kill_process(o);
                return;
        }
        forget_process(o);
        on_failure(o);
}

static void look(Observer *o) {
        o->look_usec = o->dirty ? clock_usec() + OWN_USEC : UINT64_MAX;
        if (o->asked) {
                o->again = true;
                return;
        }
        o->again = false;
        if (clock_usec() < o->resume_usec) {
                o->look_usec = o->resume_usec;
                if (o->by_change)
                        tell_unknown(o);
                arm(o);
                return;
        }
        o->quiet_usec = clock_usec() + QUIET_USEC;
        ask(o);
        arm(o);
}

static void on_observed(Observer *o, const Observed *m) {
        Changes *c = o->changes;
        const ObservedState seen = { .state = m->state, .n_committed = o->n_at_question };
        bool was_there = !o->first, replaced = was_there && (m->device != o->device || m->inode != o->inode);
        bool by_change = o->by_change || o->first;
        /* a writer is changing the state at this moment; the pauses between the looks bound how often that is believed */
        bool unsettled = !replaced && m->state.kind == FILE_STATE_UNKNOWN && m->busy && o->busy_usec < BUSY_MAX_USEC;
        /* a log that came and went with a writer, while no process had it open, leaves the state as it was */
        bool log_is_new = o->by_change && o->fresh && m->state.kind == FILE_STATE_WAL && m->state.size == 0;

        o->asked = false;
        o->first = o->first && unsettled;
        o->fresh = o->fresh && unsettled;
        o->answer_usec = UINT64_MAX;
        o->by_change = o->by_change && (o->again || unsettled); /* the change may have come after this look */
        o->failure_usec = 0;
        o->device = m->device;
        o->inode = m->inode;
        o->notified = o->notifier && !m->polls;
        if (m->name[0] && g_strcmp0(m->name, o->name) != 0) {
                g_free(o->name);
                o->name = g_strdup(m->name);
        }
        if (m->state.kind != FILE_STATE_UNKNOWN) {
                /* a change of the schema by a worker of ours is known already */
                if (o->schema_is_known && o->schema != m->schema && o->n_schemas == c->n_schemas)
                        changes_on_schema(c);
                o->schema = m->schema;
                o->schema_is_known = true;
                o->n_schemas = c->n_schemas;
        }
        if (!unsettled) {
                /* without a state each change that inotify tells is one, and so is the state that is found next */
                if (m->state.kind != FILE_STATE_UNKNOWN || replaced || by_change)
                        changes_on_observed(c, &seen, replaced || log_is_new || o->unknown);
                o->unknown = m->state.kind == FILE_STATE_UNKNOWN;
        }
        o->busy_usec = m->busy ? MIN(MAX(o->busy_usec * 2, BUSY_USEC), BUSY_MAX_USEC) : 0;
        if (o->stock->waiting.head)
                stop_process(o);
        if (o->again)
                look(o);
        else if (m->busy)
                look_after(o, o->busy_usec);
        else if (!o->notified)
                look_after(o, POLL_USEC);
        else
                arm(o);
}

static int on_control(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        Observer *o = userdata;
        ReceivedMessage m = RECEIVED_MESSAGE_INIT;
        int r = message_receive(fd, &m);

        if (r == -EAGAIN)
                return 0;
        if (r > 0 && m.message.kind == MESSAGE_OBSERVED && o->asked)
                on_observed(o, &m.message.observed);
        else {
                if (r != 0)
                        log_warning_limited("The process that observes a database has sent an invalid message.");
                kill_process(o); /* it has closed its end, and may go on without */
        }
        received_message_done(&m);
        return 0;
}

/* ---- inotify ---- */

/* In the folder only the names of the database and its log matter, and that of a link to it. An event without a name is
 * about one of these files. */
static bool matters(const Observer *o, const struct inotify_event *e) {
        size_t n = o->name ? strlen(o->name) : 0;

        if (e->len == 0 || !o->name)
                return !(e->mask & IN_IGNORED);
        if (strcmp(e->name, strrchr(o->changes->path, '/') + 1) == 0)
                return true;
        return strncmp(e->name, o->name, n) == 0 && (e->name[n] == 0 || strcmp(e->name + n, "-wal") == 0);
}

/* Reads what the engine process has written; what it is does not matter. */
static bool read_pipe(Observer *o) {
        char buffer[4096];
        bool any = false;
        ssize_t n;

        for (unsigned i = 0; i < N_READS_MAX && (n = read(o->notifier_fd, buffer, sizeof buffer)) >= 0; i++) {
                if (n == 0) { /* its process ends, or has no use for it: the end-of-file must not wake us again and again */
                        o->notifier = sd_event_source_disable_unref(o->notifier);
                        break;
                }
                any = true;
        }
        return any;
}

/* Reads events; the loop comes back for those that are left. True: one of them matters. */
static bool read_events(Observer *o) {
        _Alignas(struct inotify_event) char buffer[4096];
        bool any = false;
        ssize_t n;

        if (changes_are_of_server(o->changes))
                return read_pipe(o);
        for (unsigned i = 0; i < N_READS_MAX && (n = read(o->notifier_fd, buffer, sizeof buffer)) > 0; i++)
                for (ssize_t at = 0; at < n;) {
                        const struct inotify_event *e = (const struct inotify_event *) (const void *) (buffer + at);

                        any = any || matters(o, e);
                        at += (ssize_t) (sizeof *e + e->len);
                }
        return any;
}

/* The source stays off until the look: events of own commits would wake the service again and again. */
static int on_events(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        Observer *o = userdata;

        if (lease_has_holder(o->stock->context, o->changes->path)) {
                (void) sd_event_source_set_enabled(source, SD_EVENT_OFF);
                o->dirty = true;
                o->n_committed = o->changes->n_committed;
                look_after(o, OWN_USEC);
        } else if (read_events(o)) {
                o->by_change = true;
                look(o);
        }
        return 0;
}

static void look_at_events(Observer *o) {
        if (o->changes->n_committed != o->n_committed) { /* it will be the writer that notices others */
                o->n_committed = o->changes->n_committed;
                look_after(o, OWN_AGAIN_USEC);
                return;
        }
        o->dirty = false;
        int r = sd_event_source_set_enabled(o->notifier, SD_EVENT_ON);
        if (r < 0) {
                log_warning_limited("A database is looked at each second: %s", strerror(-r));
                o->notifier = sd_event_source_disable_unref(o->notifier);
                o->notified = false;
        }
        if (read_events(o) || r < 0) {
                o->by_change = true;
                look(o);
        } else
                arm(o);
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        Observer *o = userdata;
        uint64_t now = clock_usec();

        if (o->look_usec <= now) {
                o->look_usec = UINT64_MAX;
                if (o->dirty)
                        look_at_events(o);
                else
                        look(o);
        } else if (o->process.exists && o->answer_usec <= now) {
                log_warning_limited("The process that observes a database does not answer.");
                kill_process(o);
                tell_unknown(o); /* it may take long to end */
                arm(o);
        } else if (o->process.exists && o->quiet_usec <= now && !o->asked && o->notified) {
                stop_process(o);
                o->quiet_usec = UINT64_MAX;
                arm(o); /* a look may be due in a moment */
        } else {
                if (o->quiet_usec <= now)
                        o->quiet_usec = now + QUIET_USEC;
                arm(o);
        }
        return 0;
}

/* ---- Beginning and end ---- */

int observer_new(Changes *c, Observer **ret) {
        Observer *o = g_new(Observer, 1);

        *o = (Observer) {
                .stock = c->stock,
                .changes = c,
                .process = WORKER_PROCESS_INIT,
                .control_fd = -1,
                .notifier_fd = -1,
                .link.data = o,
                .first = true,
                .look_usec = UINT64_MAX,
                .answer_usec = UINT64_MAX,
        };
        int r = sd_event_add_time(c->stock->context->event, &o->timer, CLOCK_MONOTONIC, UINT64_MAX, 1, on_timer, o);
        if (r < 0) {
                destroy(o);
                return r;
        }
        *ret = o;
        look(o);
        return 0;
}

Observer *observer_free(Observer *o) {
        if (!o)
                return NULL;
        if (o->asked && o->process.exists && changes_are_of_server(o->changes))
                worker_process_kill(&o->process); /* it may wait for a server that never answers */
        o->changes = NULL;
        stop_process(o);
        o->timer = sd_event_source_disable_unref(o->timer);
        o->notifier = sd_event_source_disable_unref(o->notifier);
        if (!o->process.exists)
                destroy(o);
        return NULL;
}

bool observer_is_notified(const Observer *o) {
        return o->notified;
}

void observers_end(ChangeStock *s) {
        while (s->observers.head) {
                Observer *o = s->observers.head->data;

                worker_process_done(&o->process, true);
                destroy(o);
        }
}
