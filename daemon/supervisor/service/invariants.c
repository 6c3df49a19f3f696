/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* See invariants.h. Supervisor. */
#include <stdio.h>
#include <stdlib.h>
#include <systemd/sd-event.h>

#include "config.h"
#include "daemon/supervisor/base/context.h"
#include "daemon/supervisor/runs/channel.h"
#include "daemon/supervisor/runs/placement.h"
#include "daemon/supervisor/runs/run.h"
#include "daemon/supervisor/runs/unread.h"
#include "daemon/supervisor/runs/watch.h"
#include "daemon/supervisor/service/invariants.h"
#include "daemon/supervisor/workers/group.h"
#include "daemon/supervisor/workers/worker.h"

#define NUMBER_END (UINT64_C(1) << 53)
#define N_EACH_TURN 256 /* if there are more objects than this, they are checked only once in several turns */

/* Not assert(): the line shows the number, and NDEBUG must not disable a check that the build asked for. */
#define HOLD(condition, number) ((condition) ? (void) 0 : broken(#condition, __LINE__, (unsigned long long) (number)))

static _Noreturn void broken(const char *condition, int line, unsigned long long number) {
        (void) fprintf(stderr, "sqlipcd: invariant broken at invariants.c:%d, by %llu: %s\n", line, number, condition);
        abort();
}

/* The sums over the objects of one uid or one database. */
typedef struct Sums {
        uint64_t n_statements, n_runs, n_channels, n_released_channels, n_watches, n_watch_pipes, n_workers;
        uint64_t n_pins;
        uint64_t n_transactions; /* those that do not take turns to write */
        uint64_t n_writers;
        size_t held_size, unread_size;
} Sums;

typedef struct Check {
        const Context *context;
        GHashTable *of_users, *of_databases; /* User, Database -> Sums, owned */
        size_t n_statements, n_runs, n_channels, n_watches; /* those that have a session */
        uint64_t n_watch_pipes;
} Check;

static Sums *sums_of(GHashTable *table, const void *key) {
        Sums *s = g_hash_table_lookup(table, key);

        if (!s) {
                s = g_new0(Sums, 1);
                g_hash_table_insert(table, (void *) key, s);
        }
        return s;
}

static void check_owner(const Check *c, const Session *s, const User *u, uint64_t number) {
        HOLD(number > 0 && number < NUMBER_END, number);
        HOLD(!s || g_hash_table_lookup(c->context->sessions, s->name) == s, number);
        HOLD(!s || s->user == u, number);
}

static void check_statement(Check *c, const Statement *s) {
        check_owner(c, s->session, s->session->user, s->number);
        HOLD(!s->run || s->run->statement == s, s->number);
        HOLD(s->state != STATEMENT_PREPARING || s->run, s->number);
        sums_of(c->of_users, s->session->user)->n_statements++;
        sums_of(c->of_users, s->session->user)->held_size += g_bytes_get_size(s->sql);
        sums_of(c->of_databases, s->database)->n_statements++;
        c->n_statements++;
}

/* Checks only the ends of the queue, because a search would take too long. */
static bool is_in(const GQueue *q, const GList *link) {
        return link->prev ? link->next || q->tail == link : q->head == link;
}

static void check_place(const Run *run) {
        switch (run->state) {
        case RUN_WAITING:
                HOLD(run->group && !run->worker && is_in(&run->group->waiting, &run->group_link), run->number);
                break;
        case RUN_SENT:
        case RUN_MISSING:
                HOLD(run->group && !run->worker && is_in(&run->group->sent, &run->group_link), run->number);
                break;
        case RUN_TAKEN:
        case RUN_STARTED:
        case RUN_PARKED:
        case RUN_ENDED:
                HOLD(run->group && run->worker, run->number);
                break;
        case RUN_OVER:
                HOLD(!run->worker && !run->call && (run->reader || (run->kind == RUN_LOAD && run->session)), run->number);
                break;
        case RUN_DRAINING:
                HOLD(!run->worker && run->unread, run->number);
                break;
        case RUN_NEW: /* a method makes and submits a run in one turn */
        case RUN_STATE_MAX: HOLD(false, run->number); break;
        }
}

static void check_run(Check *c, const Run *run) {
        Sums *of_user = sums_of(c->of_users, run->user);

        check_owner(c, run->session, run->user, run->number);
        check_place(run);
        HOLD(!run->call || run->state < RUN_STARTED || run->kind == RUN_TRANSACTION || run->kind == RUN_LOAD, run->number);
        HOLD(run->kind != RUN_TRANSACTION || run->state <= RUN_STARTED, run->number);
        HOLD(!run->commits || run->kind == RUN_TRANSACTION, run->number);
        HOLD(run->state != RUN_PARKED || run->due_usec != UINT64_MAX || run->worker->state >= WORKER_KILLED, run->number);
        HOLD(!run->worker || (run->worker->group == run->group && run->group->user == run->user), run->number);
        HOLD(!run->group || run->group->database == run->database, run->number);
        of_user->held_size += run->held_size;
        of_user->unread_size += run->unread ? unread_size(run->unread) : 0;
        c->n_runs += run->session != NULL;
        of_user->n_writers += run_takes_turns(run);
        of_user->n_transactions += run->kind == RUN_TRANSACTION && !run_takes_turns(run) && !run->is_pin;
        of_user->n_pins += run->is_pin;
        if (!run_is_execution(run))
                return;
        of_user->n_runs++;
        sums_of(c->of_databases, run->database)->n_runs++;
}

/* Its own group's, or it may be a guest there. */
static bool may_serve(const Worker *w, const Channel *channel) {
        return w->group == channel->group || (w->group->user == channel->user && placement_allows_guests(w->group) &&
                                              placement_allows_guests(channel->group));
}

static void check_channel(Check *c, const Channel *channel) {
        Sums *of_user = sums_of(c->of_users, channel->user);

        check_owner(c, channel->session, channel->user, channel->number);
        HOLD(channel->group->user == channel->user && channel->group->database == channel->database, channel->number);
        HOLD(!channel->worker || may_serve(channel->worker, channel), channel->number);
        HOLD((channel->state >= CHANNEL_AT_WORKER) == (channel->worker != NULL), channel->number);
        HOLD((channel->state >= CHANNEL_LEAVING) <= (channel->end != CHANNEL_END_NONE), channel->number);
        HOLD((channel->state == CHANNEL_DRAINING) == (channel->unread != NULL), channel->number);
        HOLD(!channel->released || channel->state >= CHANNEL_LEAVING || channel->state == CHANNEL_DRAINING, channel->number);
        of_user->n_channels += !channel->released;
        of_user->n_released_channels += channel->released;
        of_user->held_size += channel->kept ? g_bytes_get_size(channel->kept) : 0;
        of_user->unread_size += channel->unread ? unread_size(channel->unread) : 0;
        sums_of(c->of_databases, channel->database)->n_channels += !channel->released;
        c->n_channels += channel->session != NULL;
}

static void check_watch(Check *c, const Watch *w) {
        check_owner(c, w->session, w->user, w->number);
        HOLD(w->spec.waits == (w->write_fd < 0), w->number);
        HOLD(w->read_fd < 0 || w->call, w->number);
        HOLD(!w->listener.armed || !w->listener.queue, w->number);
        HOLD(!w->unread || !w->listener.armed, w->number);
        sums_of(c->of_users, w->user)->n_watches++;
        sums_of(c->of_users, w->user)->held_size += w->held_size;
        sums_of(c->of_databases, w->database)->n_watches++;
        c->n_watches++;
        sums_of(c->of_users, w->user)->n_watch_pipes += w->write_fd >= 0;
        c->n_watch_pipes += w->write_fd >= 0;
}

static void check_worker(Check *c, const Worker *w) {
        for (GList *i = w->runs.head; i; i = i->next) {
                const Run *run = i->data;

                HOLD(run->worker == w && g_hash_table_lookup(c->context->runs, &run->number) == run, run->number);
        }
        for (GList *i = w->channels.head; i; i = i->next)
                HOLD(((const Channel *) i->data)->worker == w, w->process.pid);
        HOLD((w->control_fd >= 0) == !worker_is_closed(w), w->process.pid);
        HOLD(!worker_is_closed(w) || worker_is_idle(w), w->process.pid);
        HOLD((w->end == WORKER_END_NONE) >= worker_stays(w), w->process.pid);
        HOLD(!w->holds_no_place || w->state == WORKER_UNDEAD, w->process.pid);
        HOLD(!w->group->writes || g_strcmp0(w->group->database->config->mode, "read-write") == 0, w->process.pid);
        sums_of(c->of_users, w->group->user)->n_workers++;
        sums_of(c->of_databases, w->group->database)->n_workers += !w->holds_no_place;
}

/* Adds up the pages of a user's pipes. */
static PipeAccount account_of_pipes(const User *u) {
        PipeAccount a = {};

        for (GList *i = u->pipes.head; i; i = i->next) {
                const Pipe *p = i->data;
                const PipeShare *s = &p->share;

                HOLD((p->write_fd < 0) == (p->state == PIPE_BROKEN || p->path_fd >= 0), u->uid);
                HOLD(p->path_fd < 0 || (p->is_inward && p->state >= PIPE_RESTING), u->uid);
                HOLD(s->retired == (p->state >= PIPE_RESTING), u->uid);
                a.used += s->pages;
                a.granted += s->granted;
                a.retired += s->retired ? s->pages : 0;
        }
        return a;
}

/* Checks the pages of all pipes, by uid and in all. */
static void check_pipes(const Context *context) {
        uint64_t granted = 0, n_holders = 0;
        GHashTableIter i;
        void *value;

        g_hash_table_iter_init(&i, context->users);
        while (g_hash_table_iter_next(&i, NULL, &value)) {
                const User *u = value;
                const PipeAccount a = account_of_pipes(u), *kept = &u->pipe_account;

                HOLD(a.used == kept->used && a.granted == kept->granted && a.retired == kept->retired, u->uid);
                granted += a.granted;
                n_holders += a.used > 0;
        }
        HOLD(granted == context->pipes->budget.granted && n_holders == context->pipes->budget.n_holders, granted);
}

/* All those of a group that take turns to write count as one. */
static void check_transactions(const User *u, const Sums *s) {
        uint64_t n_writers = 0, n_pins = 0, n_groups = 0;

        for (GList *i = u->groups.head; i; i = i->next) {
                const Group *g = i->data;

                n_writers += g->n_writers;
                n_pins += g->n_pins;
                n_groups += g->n_writers > 0;
        }
        HOLD(u->n_writers == s->n_writers && n_writers == s->n_writers, u->uid);
        HOLD(u->n_transactions == s->n_transactions + n_groups, u->uid);
        HOLD(u->n_pins == s->n_pins && n_pins == s->n_pins, u->uid);
}

static void check_user(Check *c, const User *u) {
        const Sums *s = sums_of(c->of_users, u);

        HOLD(u->n_statements == s->n_statements, u->uid);
        HOLD(u->n_runs == s->n_runs, u->uid);
        check_transactions(u, s);
        HOLD(u->n_channels == s->n_channels && u->n_released_channels == s->n_released_channels, u->uid);
        HOLD(u->n_watches == s->n_watches && u->n_watch_pipes == s->n_watch_pipes, u->uid);
        HOLD(u->n_workers == s->n_workers, u->uid);
        /* waiting calls (held-call.h, pacing.h) count as held, too */
        HOLD(u->held_size == s->held_size ||
                     (u->held_size > s->held_size && (u->n_held_calls > 0 || u->pacing.calls.head)), u->uid);
        HOLD(u->held_size <= HELD_SIZE_MAX && u->joined_size <= JOINED_SIZE_MAX, u->uid);
        HOLD(u->unread_size == s->unread_size && u->unread_size <= UNREAD_OF_USER_MAX, u->uid);
}

/* Includes databases that are no longer published: what is left on them holds a reference. */
static void check_databases(Check *c) {
        GHashTableIter i;
        void *key, *value;

        g_hash_table_iter_init(&i, c->context->databases);
        while (g_hash_table_iter_next(&i, NULL, &value))
                (void) sums_of(c->of_databases, value);
        g_hash_table_iter_init(&i, c->of_databases);
        while (g_hash_table_iter_next(&i, &key, &value)) {
                const Database *d = key;
                const Sums *s = value;

                HOLD(d->n_statements == s->n_statements && d->n_runs == s->n_runs, d->n_ref);
                HOLD(d->n_channels == s->n_channels && d->n_workers == s->n_workers, d->n_ref);
                HOLD(d->n_watches == s->n_watches, d->n_ref);
        }
}

/* Sessions hold exactly the objects of the registries. */
static void check_sessions(const Check *c) {
        size_t n_statements = 0, n_runs = 0, n_channels = 0, n_watches = 0;
        GHashTableIter i;
        void *value;

        g_hash_table_iter_init(&i, c->context->sessions);
        while (g_hash_table_iter_next(&i, NULL, &value)) {
                const Session *s = value;

                n_statements += s->statements.length;
                n_runs += s->runs.length;
                n_channels += s->channels.length;
                n_watches += s->watches.length;
        }
        HOLD(n_statements == c->n_statements && n_runs == c->n_runs && n_channels == c->n_channels, n_statements);
        HOLD(n_watches == c->n_watches, n_watches);
        HOLD(c->n_watch_pipes == c->context->n_watch_pipes, c->n_watch_pipes);
}

#define FOR_EACH(table, check, type)                                     \
        do {                                                             \
                GHashTableIter iterator;                                 \
                void *object;                                            \
                                                                         \
                g_hash_table_iter_init(&iterator, (table));              \
                while (g_hash_table_iter_next(&iterator, NULL, &object)) \
                        check(&c, (const type *) object);                \
        } while (0)

void invariants_check(const Context *context) {
        g_autoptr(GHashTable) of_users = g_hash_table_new_full(NULL, NULL, NULL, g_free);
        g_autoptr(GHashTable) of_databases = g_hash_table_new_full(NULL, NULL, NULL, g_free);
        Check c = { .context = context, .of_users = of_users, .of_databases = of_databases };

        FOR_EACH(context->statements, check_statement, Statement);
        FOR_EACH(context->runs, check_run, Run);
        FOR_EACH(context->channels, check_channel, Channel);
        FOR_EACH(context->watches, check_watch, Watch);
        for (GList *i = context->workers.head; i; i = i->next)
                check_worker(&c, i->data);
        FOR_EACH(context->users, check_user, User);
        HOLD(g_hash_table_size(of_users) <= g_hash_table_size(context->users), g_hash_table_size(of_users));
        check_databases(&c);
        check_sessions(&c);
        check_pipes(context);
}

/* Runs before the loop looks for events, so it is no turn of its own, after which other prepare callbacks would check for
 * changes. */
static int on_prepare(sd_event_source *s, void *userdata) {
        const Context *context = userdata;
        static unsigned n_turns;
        unsigned n = g_hash_table_size(context->statements) + g_hash_table_size(context->runs) +
                     g_hash_table_size(context->channels) + g_hash_table_size(context->watches);

        if (n_turns++ % (1 + n / N_EACH_TURN) == 0)
                invariants_check(context);
        return 0;
}

static int never(sd_event_source *s, uint64_t usec, void *userdata) {
        return 0;
}

int invariants_watch(Context *context) {
        sd_event_source *s = NULL;
        int r;

        if (!SQLIPC_INVARIANTS)
                return 0;
        r = sd_event_add_time(context->event, &s, CLOCK_MONOTONIC, UINT64_MAX, 0, never, context);
        if (r >= 0)
                r = sd_event_source_set_prepare(s, on_prepare);
        if (r >= 0)
                r = sd_event_source_set_floating(s, true); /* the loop owns it to the end */
        (void) sd_event_source_unref(s);
        return r;
}
