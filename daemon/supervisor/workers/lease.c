/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The lease of a database file. Supervisor. */
#include <errno.h>
#include <string.h>

#include "daemon/supervisor/base/clock.h"
#include "daemon/supervisor/base/context.h"
#include "daemon/supervisor/base/log.h"
#include "daemon/supervisor/base/quota.h"
#include "daemon/supervisor/workers/changes.h"
#include "daemon/supervisor/workers/lease.h"
#include "daemon/supervisor/workers/worker.h"

#define RETELL_USEC UINT64_C(50000) /* until a message that could not be sent is tried again */
#define N_UNSENT_MAX 20u
#define ACCURACY_USEC UINT64_C(1000)

typedef struct Lease {
        Context *context;       /* not owned */
        char *path;
        Worker *holder;         /* not owned; NULL: no worker has it, and none waits that can get it */
        bool told, asked;       /* LEASE was sent to the holder; LEASE_ASKED was sent */
        bool kept;              /* it has answered LEASE_KEPT */
        Changes *changes;       /* not owned: of the file */
        bool watched;           /* the holder was told that clients watch the file */
        unsigned n_unsent;      /* how often in a row the next of these messages could not be sent */
        GQueue waiting;         /* of Worker, by lease_link, in the order in which they asked */
        GHashTable *turns;      /* uid -> the number of its last turn */
        size_t n_turns;
        sd_event_source *taken_timer; /* to send LEASE_TAKEN again */
        sd_event_source *timer; /* to send a message again; or, when `asked`, to end a holder that keeps the lease */
        bool spared;            /* see clock_timer_was_late() */
        Grace grace;            /* since `asked` */
} Lease;

static int on_timer(sd_event_source *s, uint64_t usec, void *userdata);
static int on_taken_timer(sd_event_source *s, uint64_t usec, void *userdata);

/* ---- Creation and end ---- */

static void lease_free(Lease *l) {
        g_hash_table_remove(l->context->leases, l->path);
        l->timer = sd_event_source_disable_unref(l->timer);
        l->taken_timer = sd_event_source_disable_unref(l->taken_timer);
        g_hash_table_unref(l->turns);
        g_free(l->path);
        g_free(l);
}

static int add_timer(Context *context, sd_event_source **ret, sd_event_time_handler_t handler, Lease *l) {
        int r = sd_event_add_time(context->event, ret, CLOCK_MONOTONIC, UINT64_MAX, ACCURACY_USEC, handler, l);

        return r < 0 ? r : sd_event_source_set_enabled(*ret, SD_EVENT_OFF);
}

static int lease_new(Context *context, const DatabaseConfig *d, Lease **ret) {
        Lease *l = g_new(Lease, 1);

        *l = (Lease) {
                .context = context,
                .path = g_strdup(database_config_data(d)),
                .changes = changes_of_database(context, d),
                .waiting = G_QUEUE_INIT,
                .turns = g_hash_table_new(NULL, NULL),
        };
        int r = add_timer(context, &l->timer, on_timer, l);
        if (r >= 0)
                r = add_timer(context, &l->taken_timer, on_taken_timer, l);
        g_hash_table_insert(context->leases, l->path, l);
        if (r < 0) {
                lease_free(l);
                return r;
        }
        *ret = l;
        return 0;
}

static int find_or_make(Worker *w, Lease **ret) {
        const DatabaseConfig *d = w->group->database->config;
        Lease *l = g_hash_table_lookup(w->context->leases, database_config_data(d));

        if (!l)
                return lease_new(w->context, d, ret);
        *ret = l;
        return 0;
}

/* ---- The holder ---- */

static void set_timer(sd_event_source *timer, uint64_t usec) {
        int r = sd_event_source_set_time(timer, usec);

        if (r >= 0)
                r = sd_event_source_set_enabled(timer, SD_EVENT_ONESHOT);
        if (r < 0)
                log_error("A timer cannot be set: %s", strerror(-r));
}

static void arm(Lease *l, uint64_t usec) {
        l->spared = false;
        set_timer(l->timer, usec);
}

/* Sends the message to the holder. If that fails, because its socket is full or broken, the message is sent again later, as
 * a CANCEL is: a holder that has ended is noticed before, and one that lives must not wait for ever. Returns true if the
 * message was sent, or is not needed because the holder is gone. */
static bool tell(Lease *l, MessageKind kind) {
        Worker *w = l->holder;
        Message m = { .kind = kind, .number = changes_are_watched(l->changes) };

        if (worker_is_closed(w) || message_send(w->control_fd, &m, -1) >= 0) {
                l->n_unsent = 0;
                return true;
        }
        if (++l->n_unsent > N_UNSENT_MAX)
                (void) worker_end(w, WORKER_END_SOCKET_FULL);
        else
                arm(l, clock_usec() + RETELL_USEC);
        return false;
}

/* How long a holder may keep the lease although it was asked for it: a statement or transaction of its user that has begun
 * goes on. */
static uint64_t keeps_usec(const Worker *w) {
        const Limits l = quota_limits(w->group->user, w->group->database);

        return LEASE_TURN_USEC + MAX(MAX(l.run_timeout_usec, l.transaction_timeout_usec), l.busy_timeout_usec) + GRACE_USEC;
}

static void ask(Lease *l) {
        uint64_t usec = keeps_usec(l->holder);

        l->asked = tell(l, MESSAGE_LEASE_ASKED);
        if (!l->asked)
                return;
        grace_begin(&l->grace, l->holder->process.pid, usec);
        arm(l, clock_usec() + usec);
}

/* A holder that was asked for the lease returns it soon, so the message is not sent again then. */
static void tell_watched(Lease *l) {
        bool watched = changes_are_watched(l->changes);
        const Message m = { .kind = MESSAGE_WATCH, .number = watched };

        if (l->watched != watched &&
            (l->asked ? message_send(l->holder->control_fd, &m, -1) >= 0 : tell(l, MESSAGE_WATCH)))
                l->watched = watched;
}

/* Sends what the holder has not been told yet. */
static void update(Lease *l) {
        if (!l->told) {
                l->told = tell(l, MESSAGE_LEASE);
                l->watched = changes_are_watched(l->changes);
        } else
                tell_watched(l);
        if (l->told && !l->asked && l->waiting.head)
                ask(l);
}

static int on_timer(sd_event_source *s, uint64_t usec, void *userdata) {
        Lease *l = userdata;

        if (!l->asked)
                update(l);
        else if (clock_timer_was_late(usec, &l->spared)) {
                arm(l, clock_usec() + GRACE_USEC);
                l->spared = true;
        } else if (grace_goes_on(&l->grace, l->holder->process.pid))
                arm(l, clock_usec() + GRACE_USEC);
        else
                (void) worker_end(l->holder, WORKER_END_KEEPS_LEASE);
        return 0;
}

/* ---- Workers that wait ---- */

/* Tells them that the holder keeps the lease, each once. A worker whose socket is full is told later. */
static void tell_taken(Lease *l) {
        bool again = false;

        for (GList *i = l->kept ? l->waiting.head : NULL; i; i = i->next) {
                Worker *w = i->data;

                if (w->lease_is_taken || worker_is_closed(w))
                        continue;
                w->lease_is_taken = message_send(w->control_fd, &(Message) { .kind = MESSAGE_LEASE_TAKEN }, -1) >= 0;
                again = again || !w->lease_is_taken;
        }
        if (again)
                set_timer(l->taken_timer, clock_usec() + RETELL_USEC);
}

static int on_taken_timer(sd_event_source *s, uint64_t usec, void *userdata) {
        tell_taken(userdata);
        return 0;
}

/* ---- Turns ---- */

/* When the uid of the worker had its last turn; 0: never. */
static size_t last_turn(const Lease *l, const Worker *w) {
        return GPOINTER_TO_SIZE(g_hash_table_lookup(l->turns, GUINT_TO_POINTER(w->group->user->uid)));
}

static void count_turn(Lease *l, const Worker *w) {
        g_hash_table_insert(l->turns, GUINT_TO_POINTER(w->group->user->uid), GSIZE_TO_POINTER(++l->n_turns));
}

/* Takes the next worker out of the queue; NULL: none waits. A worker that is dying would do nothing with the lease. */
static Worker *take_next(Lease *l) {
        Worker *next = NULL;

        for (GList *i = l->waiting.head; i; i = i->next) {
                Worker *w = i->data;

                if (w->state < WORKER_KILLED && (!next || last_turn(l, w) < last_turn(l, next)))
                        next = w;
        }
        if (next)
                g_queue_unlink(&l->waiting, &next->lease_link);
        return next;
}

/* Nothing is left to be done for it. Workers that are still in the queue are dying. */
static bool is_unused(const Lease *l) {
        return !l->holder && !l->waiting.head;
}

/* No worker has the lease: gives it to the next, or frees it if none waits. */
static void pass_on(Lease *l) {
        (void) sd_event_source_set_enabled(l->timer, SD_EVENT_OFF);
        l->told = l->asked = l->kept = false;
        l->n_unsent = 0;
        l->holder = take_next(l);
        if (is_unused(l))
                lease_free(l);
        else if (l->holder) {
                count_turn(l, l->holder);
                update(l);
        }
}

/* ---- Events ---- */

bool lease_is_held_by(const Worker *w) {
        return w->lease && w->lease->holder == w && w->lease->told;
}

int lease_on_wanted(Worker *w) {
        Lease *l;

        if (!w->group->writes || w->lease)
                return -EBADMSG;
        worker_on_sign_of_life(w);
        int r = find_or_make(w, &l);
        if (r < 0)
                return r;
        w->lease = l;
        w->lease_is_taken = false;
        g_queue_push_tail_link(&l->waiting, &w->lease_link);
        if (l->holder)
                update(l);
        else
                pass_on(l);
        tell_taken(l);
        return 0;
}

int lease_on_kept(Worker *w) {
        if (!lease_is_held_by(w) || !w->lease->asked || w->lease->kept)
                return -EBADMSG;
        w->lease->kept = true;
        tell_taken(w->lease);
        return 0;
}

bool lease_has_holder(const Context *context, const char *path) {
        const Lease *l = g_hash_table_lookup(context->leases, path);

        return l && l->holder && l->told;
}

bool lease_ask(const Context *context, const char *path) {
        Lease *l = g_hash_table_lookup(context->leases, path);
        const Message m = { .kind = MESSAGE_WATCH, .number = l && changes_are_watched(l->changes) };

        return l && l->holder && l->told && !worker_is_closed(l->holder) &&
               message_send(l->holder->control_fd, &m, -1) >= 0;
}

int lease_on_returned(Worker *w) {
        Lease *l = w->lease;

        if (!lease_is_held_by(w))
                return -EBADMSG;
        w->lease = NULL;
        l->told = false; /* it answers no more questions */
        changes_on_writer_known(l->changes);
        pass_on(l);
        return 0;
}

bool lease_on_watched(const Context *context, const char *path) {
        Lease *l = g_hash_table_lookup(context->leases, path);
        bool differs;

        if (!l || !l->holder || !l->told)
                return false;
        differs = l->watched != changes_are_watched(l->changes);
        update(l);
        return differs;
}

/* An answer to WATCH may cross LEASE_ASKED, and so come after the lease was returned: it tells of no commit then. */
int lease_on_committed(Worker *w, const Committed *committed) {
        if (!lease_is_held_by(w))
                return w->group->writes && !committed->any ? 0 : -EBADMSG;
        changes_on_committed(w, committed);
        return 0;
}

void lease_leave(Worker *w) {
        Lease *l = w->lease;

        if (!l)
                return;
        w->lease = NULL;
        if (l->holder != w)
                g_queue_unlink(&l->waiting, &w->lease_link);
        else if (l->told && !w->ended_well)
                changes_on_writer_lost(l->changes);
        if (l->holder == w)
                changes_on_writer_known(l->changes);
        if (l->holder == w || !l->holder)
                pass_on(l);
}
