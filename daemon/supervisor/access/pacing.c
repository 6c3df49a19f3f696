/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Keeps large calls from delaying other users. Supervisor. */
#include "daemon/supervisor/access/pacing.h"

#include <string.h>

#include "daemon/supervisor/access/held-call.h"
#include "daemon/supervisor/base/clock.h"
#include "daemon/supervisor/base/context.h"
#include "daemon/supervisor/base/user.h"
#include "daemon/supervisor/calls/bus-error.h"
#include "daemon/supervisor/calls/waiting-call.h"
#include "dbus-interfaces/sqlipc-names.h"

/* After everything else that the loop has to do now, and before idle.c checks if there is nothing to do. */
#define WHEN_IDLE (SD_EVENT_PRIORITY_NORMAL + 10)

/* The memory of a call besides the body that waiting_call_copy() measures. */
#define CALL_OVERHEAD ((size_t) 1024)

typedef struct PacedCall {
        Peer *peer; /* not owned; see pacing_forget() */
        User *user; /* reference */
        sd_bus_message *call; /* the copy */
        size_t size; /* bytes counted in the user's budget */
        GList link;  /* in its user's account */
} PacedCall;

static void paced_call_free(PacedCall *c) {
        PacingAccount *account = &c->user->pacing;

        g_queue_unlink(&account->calls, &c->link);
        if (!account->calls.head)
                g_queue_unlink(&c->user->context->pacing->users, &account->link);
        user_release(c->user, c->size);
        (void) user_unref(c->user);
        (void) sd_bus_message_unref(c->call);
        g_free(c);
}

void pacing_charge(User *u, size_t size) {
        Pacing *p = u->context->pacing;

        if (size < PACING_SIZE_MIN)
                return;
        /* Charges do not add up: each begins now. So calls that were dispatched while no other client needed the
         * supervisor need not be paid for later. */
        p->until_usec = MAX(p->until_usec, clock_usec() + size * PACING_NSEC_PER_BYTE / 1000);
        u->pacing.until_usec = p->until_usec;
}

/* ---- Release ---- */

static int on_turn(Context *context);

static int on_due(sd_event_source *s, uint64_t usec, void *userdata) {
        return on_turn(userdata);
}

static int on_idle(sd_event_source *s, void *userdata) {
        return on_turn(userdata);
}

static void await_turn(Context *context) {
        Pacing *p = context->pacing;
        bool wanted = p->users.head && !p->released;

        if (wanted)
                (void) sd_event_source_set_time(p->when_due, p->until_usec);
        (void) sd_event_source_set_enabled(p->when_due, wanted ? SD_EVENT_ONESHOT : SD_EVENT_OFF);
        (void) sd_event_source_set_enabled(p->when_idle, wanted ? SD_EVENT_ONESHOT : SD_EVENT_OFF);
}

static void put_back(Context *context, PacedCall *c) {
        g_auto(Refusal) refusal = REFUSAL_INIT;
        int r = sd_bus_enqueue_for_read(context->bus, c->call);

        if (r < 0)
                (void) bus_error_reply_refusal(c->call, r, &refusal);
        else
                context->pacing->released = sd_bus_message_ref(c->call);
        paced_call_free(c);
}

static int on_turn(Context *context) {
        GList *first = context->pacing->users.head;

        if (first) {
                User *u = first->data;

                g_queue_unlink(&context->pacing->users, first);
                g_queue_push_tail_link(&context->pacing->users, first);
                put_back(context, u->pacing.calls.head->data);
        }
        await_turn(context);
        return 0;
}

/* ---- New calls ---- */

/* True for calls to a database that bring SQL or parameters, or ask for rows. */
static bool may_be_large(sd_bus_message *message) {
        static const char *const members[] = {
                "Prepare", "Fetch", "Query", "QueryRows", "OpenRows", "NextRows", "Execute", "ExecuteBatch", "Load", "Watch",
                NULL,
        };
        const char *interface = sd_bus_message_get_interface(message);

        return g_str_has_prefix(sd_bus_message_get_path(message), SQLIPC_DATABASE_PATH "/") &&
               (!interface || strcmp(interface, SQLIPC_DATABASE_INTERFACE) == 0) &&
               g_strv_contains(members, sd_bus_message_get_member(message));
}

static bool is_charged(User *u) {
        if (u->pacing.until_usec > 0 && clock_usec() >= u->pacing.until_usec)
                u->pacing.until_usec = 0;
        return u->pacing.until_usec > 0;
}

static int put_aside(User *u, Peer *p, sd_bus_message *message, Refusal *refusal) {
        Context *context = u->context;
        sd_bus_message *copy;
        size_t size;
        int r = waiting_call_copy(message, HELD_SIZE_MAX, &copy, &size, refusal);

        if (r < 0)
                return r;
        size += CALL_OVERHEAD;
        r = user_hold(u, size, refusal);
        if (r < 0) {
                (void) sd_bus_message_unref(copy);
                return r;
        }
        PacedCall *c = g_new(PacedCall, 1);
        *c = (PacedCall) { .peer = p, .user = user_ref(u), .call = copy, .size = size, .link.data = c };
        if (!u->pacing.calls.head) {
                u->pacing.link.data = u;
                g_queue_push_tail_link(&context->pacing->users, &u->pacing.link);
        }
        g_queue_push_tail_link(&u->pacing.calls, &c->link);
        await_turn(context);
        return 1;
}

static int on_call(sd_bus_message *message, void *userdata, sd_bus_error *error) {
        g_auto(Refusal) refusal = REFUSAL_INIT;
        Context *context = userdata;

        if (context->pacing->released == message) {
                context->pacing->released = sd_bus_message_unref(message);
                await_turn(context);
                return 0;
        }
        Peer *p = sd_bus_message_is_method_call(message, NULL, NULL) ? peer_of(context, message) : NULL;
        User *u = p ? g_hash_table_lookup(context->users, GUINT_TO_POINTER(p->uid)) : NULL;
        if (!u || !(u->pacing.calls.head || is_charged(u)) || !may_be_large(message) || held_call_is_released(p, message))
                return 0;
        int r = put_aside(u, p, message, &refusal);
        return r < 0 ? bus_error_reply_refusal(message, r, &refusal) : r;
}

/* ---- Other events ---- */

int pacing_watch(Context *context) {
        Pacing *p = context->pacing;
        int r = sd_event_add_time(context->event, &p->when_due, CLOCK_MONOTONIC, UINT64_MAX, 1000, on_due, context);

        if (r >= 0)
                r = sd_event_add_defer(context->event, &p->when_idle, on_idle, context);
        if (r >= 0)
                r = sd_event_source_set_priority(p->when_idle, WHEN_IDLE);
        await_turn(context);
        return r < 0 ? r : sd_bus_add_filter(context->bus, NULL, on_call, context);
}

bool pacing_is_busy(const Context *context) {
        return context->pacing->users.head || context->pacing->released;
}

void pacing_forget(const Peer *p) {
        Context *context = p->context;
        User *u = g_hash_table_lookup(context->users, GUINT_TO_POINTER(p->uid));
        GList *next;

        /* It must not be dispatched, because its sender can no longer be looked up. */
        if (context->pacing->released && g_strcmp0(sd_bus_message_get_sender(context->pacing->released), p->name) == 0)
                context->pacing->released = sd_bus_message_unref(context->pacing->released);
        if (u) {
                g_autoptr(User) keep = user_ref(u); /* each call has a reference, too */
                for (GList *i = keep->pacing.calls.head; i; i = next) {
                        PacedCall *c = i->data;

                        next = i->next;
                        if (c->peer == p)
                                paced_call_free(c);
                }
        }
        await_turn(context);
}

void pacing_stop(Context *context, const char *sentence) {
        while (context->pacing->users.head) {
                User *u = context->pacing->users.head->data;
                PacedCall *c = u->pacing.calls.head->data;

                (void) bus_error_reply(c->call, &(Failure) { .error = ERROR_SHUTTING_DOWN, .sql_offset = -1,
                                                             .message = sentence }, false);
                paced_call_free(c);
        }
        await_turn(context);
}

void pacing_done(Pacing *p) {
        p->when_due = sd_event_source_disable_unref(p->when_due);
        p->when_idle = sd_event_source_disable_unref(p->when_idle);
        p->released = sd_bus_message_unref(p->released);
}
