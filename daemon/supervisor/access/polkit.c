/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Asks polkit. Supervisor. */
#include <inttypes.h>
#include <string.h>

#include "daemon/supervisor/access/polkit.h"
#include "daemon/supervisor/base/context.h"
#include "daemon/supervisor/base/log.h"
#include "daemon/supervisor/base/sd-autoptr.h"
#include "daemon/supervisor/base/user.h"

#define AUTHORITY_PATH "/org/freedesktop/PolicyKit1/Authority"
#define AUTHORITY_INTERFACE "org.freedesktop.PolicyKit1.Authority"
#define ALLOW_USER_INTERACTION UINT32_C(1)
#define RETRY_USEC UINT64_C(100000)
#define CANCELLATION_ID_SIZE sizeof "sqlipc-18446744073709551615"

typedef struct PolkitQuestion {
        Context *context;   /* not owned */
        Peer *peer;         /* not owned: the peer owns this question, in its `questions` */
        User *user;         /* reference */
        PolkitAction action;
        char *database;     /* NULL: POLKIT_MANAGE */
        bool interactive, announce;
        uint64_t n_changes; /* n_changes of Polkit when it was sent */
        char cancellation_id[CANCELLATION_ID_SIZE];
        bool waiting;       /* for its turn, in the user's account, by user_link */
        sd_bus_slot *slot;  /* NULL: not sent yet */
        GList user_link, peer_link;
} PolkitQuestion;

/* ---- Turns ---- */

static void line_up(PolkitQuestion *q) {
        PolkitAccount *a = &q->user->polkit_account;

        if (!a->waiting.head) {
                a->link.data = a;
                g_queue_push_tail_link(&q->context->polkit->waiting, &a->link);
        }
        g_queue_push_tail_link(&a->waiting, &q->user_link);
        q->waiting = true;
}

static void step_out(PolkitQuestion *q) {
        PolkitAccount *a = &q->user->polkit_account;

        g_queue_unlink(&a->waiting, &q->user_link);
        if (!a->waiting.head)
                g_queue_unlink(&q->context->polkit->waiting, &a->link);
        q->waiting = false;
}

/* Changes the numbers of questions that wait for an answer: in all, and of the uid. */
static void count_asked(const PolkitQuestion *q, int change) {
        Polkit *all = q->context->polkit;
        PolkitAccount *a = &q->user->polkit_account;

        *(q->interactive ? &all->n_interactive : &all->n_asked) += (unsigned) change;
        *(q->interactive ? &a->n_interactive : &a->n_asked) += (unsigned) change;
}

static void question_free(PolkitQuestion *q) {
        if (q->waiting)
                step_out(q);
        if (q->slot)
                count_asked(q, -1);
        g_queue_unlink(&q->peer->questions, &q->peer_link);
        (void) sd_bus_slot_unref(q->slot);
        (void) user_unref(q->user);
        g_free(q->database);
        g_free(q);
}

/* ---- Questions that were sent ---- */

static int read_answer(sd_bus_message *reply, PolkitAnswer *ret) {
        int authorized, challenge;

        if (sd_bus_message_is_method_error(reply, NULL))
                return -sd_bus_message_get_errno(reply);
        int r = sd_bus_message_enter_container(reply, 'r', "bba{ss}");
        if (r < 0)
                return r;
        r = sd_bus_message_read(reply, "bb", &authorized, &challenge);
        if (r < 0)
                return r;
        *ret = authorized ? POLKIT_YES : challenge ? POLKIT_CHALLENGE : POLKIT_NO;
        return 0;
}

static void ask_waiting(Context *context);

static int on_reply(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        PolkitQuestion *q = userdata;
        Context *context = q->context;
        Peer *p = q->peer;
        g_autofree char *database = g_steal_pointer(&q->database);
        PolkitReply outcome = {
                .action = q->action,
                .database = database,
                .answer = POLKIT_ABSENT,
                .interactive = q->interactive,
                .announce = q->announce,
                .outdated = q->n_changes != context->polkit->n_changes,
        };
        int r = read_answer(reply, &outcome.answer);

        if (r >= 0) {
                g_free(context->polkit->authority);
                context->polkit->authority = g_strdup(sd_bus_message_get_sender(reply));
        } else /* this concerns all databases: one line a minute is enough */
                log_event_limited(LOG_EVENT_POLKIT_ABSENT, NULL, &(LogFields) {},
                                  "polkit did not answer (%s), so Polkit=yes lets no user in, and WritePolkit=yes lets none "
                                  "write: install polkitd, and the actions " POLKIT_ACTION_READ ", " POLKIT_ACTION_WRITE
                                  " and " POLKIT_ACTION_MANAGE ".",
                                  sd_bus_message_is_method_error(reply, NULL) ? sd_bus_message_get_error(reply)->message :
                                                                                strerror(-r));
        question_free(q);
        ask_waiting(context);
        context->polkit->events->answered(p, &outcome);
        return 1;
}

static int append_question(sd_bus_message *call, const PolkitQuestion *q) {
        static const char *const actions[] = {
                [POLKIT_READ] = POLKIT_ACTION_READ,
                [POLKIT_WRITE] = POLKIT_ACTION_WRITE,
                [POLKIT_MANAGE] = POLKIT_ACTION_MANAGE,
        };
        int r = sd_bus_message_append(call, "(sa{sv})", "system-bus-name", 1, "name", "s", q->peer->name);

        if (r >= 0)
                r = sd_bus_message_append(call, "s", actions[q->action]);
        if (r >= 0)
                r = q->database ? sd_bus_message_append(call, "a{ss}", 1, "database", q->database) :
                                  sd_bus_message_append(call, "a{ss}", 0);
        if (r < 0)
                return r;
        return sd_bus_message_append(call, "us", q->interactive ? ALLOW_USER_INTERACTION : 0, q->cancellation_id);
}

static int question_send(PolkitQuestion *q) {
        g_autoptr(sd_bus_message) call = NULL;
        int r = sd_bus_message_new_method_call(q->context->bus, &call, POLKIT_BUS_NAME, AUTHORITY_PATH, AUTHORITY_INTERFACE,
                                               "CheckAuthorization");

        if (r >= 0)
                r = append_question(call, q);
        if (r >= 0)
                r = sd_bus_call_async(q->context->bus, &q->slot, call, on_reply, q, UINT64_MAX);
        if (r < 0)
                return r;
        q->n_changes = q->context->polkit->n_changes;
        count_asked(q, 1);
        return 0;
}

/* The first question of the next uid that may have another one under way; NULL: there is none. */
static PolkitQuestion *next_in_turn(const Polkit *polkit) {
        for (const GList *i = polkit->waiting.head; i; i = i->next) {
                const PolkitAccount *a = i->data;

                if (a->n_asked < POLKIT_PLAIN_UID_MAX)
                        return a->waiting.head->data;
        }
        return NULL;
}

static int on_retry(sd_event_source *s, uint64_t usec, void *userdata) {
        ask_waiting(userdata);
        return 0;
}

/* Tries again after a while, because a call waits for the answer and there may be no other question whose end would try
 * again. Logs this once, until a question can be sent again. */
static void ask_later(Context *context, int error) {
        sd_event_source *s = context->polkit->retry;

        if (!s) {
                log_warning("polkit cannot be asked just now: %s", strerror(-error));
                (void) sd_event_add_time_relative(context->event, &context->polkit->retry, CLOCK_MONOTONIC, RETRY_USEC, 0,
                                                  on_retry, context);
                return;
        }
        (void) sd_event_source_set_time_relative(s, RETRY_USEC);
        (void) sd_event_source_set_enabled(s, SD_EVENT_ONESHOT);
}

static void ask_waiting(Context *context) {
        Polkit *polkit = context->polkit;
        PolkitQuestion *q;

        while (!context->stopping && polkit->n_asked < POLKIT_PLAIN_MAX && (q = next_in_turn(polkit))) {
                PolkitAccount *a = &q->user->polkit_account;

                int r = question_send(q);
                if (r < 0) { /* no memory, or the bus connection is lost */
                        ask_later(context, r);
                        return;
                }
                polkit->retry = sd_event_source_disable_unref(polkit->retry);
                step_out(q);
                if (a->waiting.head) { /* now other uids have their turn */
                        g_queue_unlink(&polkit->waiting, &a->link);
                        g_queue_push_tail_link(&polkit->waiting, &a->link);
                }
        }
}

/* ---- Asking ---- */

static PolkitQuestion *find_question(const Peer *p, PolkitAction action, const char *database, bool interactive) {
        for (GList *i = p->questions.head; i; i = i->next) {
                PolkitQuestion *q = i->data;

                if (q->action == action && q->interactive == interactive && g_strcmp0(q->database, database) == 0)
                        return q;
        }
        return NULL;
}

static PolkitQuestion *question_new(Context *context, Peer *p, PolkitAction action, const char *database, bool interactive) {
        PolkitQuestion *q = g_new(PolkitQuestion, 1);

        *q = (PolkitQuestion) {
                .context = context,
                .peer = p,
                .user = user_get(context, p->uid),
                .action = action,
                .database = g_strdup(database),
                .interactive = interactive,
                .user_link.data = q,
                .peer_link.data = q,
        };
        (void) g_snprintf(q->cancellation_id, sizeof q->cancellation_id, "sqlipc-%" PRIu64, ++context->polkit->n_questions);
        g_queue_push_tail_link(&p->questions, &q->peer_link);
        return q;
}

void polkit_ask(Context *context, Peer *p, PolkitAction action, const char *database, bool announce) {
        PolkitQuestion *q = find_question(p, action, database, false);

        if (!q) {
                q = question_new(context, p, action, database, false);
                line_up(q);
        }
        q->announce |= announce;
        ask_waiting(context);
}

int polkit_ask_user(Context *context, Peer *p, PolkitAction action, const char *database, Refusal *refusal) {
        const User *u = g_hash_table_lookup(context->users, GUINT_TO_POINTER(p->uid));

        if (find_question(p, action, database, true))
                return 0;
        if (context->polkit->n_interactive >= POLKIT_INTERACTIVE_MAX ||
            (u && u->polkit_account.n_interactive >= POLKIT_INTERACTIVE_UID_MAX))
                return refuse(refusal, ERROR_LIMITS_EXCEEDED, "Too many users are being asked to authenticate: answer those "
                              "first.");
        PolkitQuestion *q = question_new(context, p, action, database, true);
        int r = question_send(q);
        if (r < 0)
                question_free(q);
        return r;
}

/* Sends a cancellation without waiting for a reply: if polkit has exited meanwhile, the question is gone, too. */
static void take_back(PolkitQuestion *q) {
        g_autoptr(sd_bus_message) call = NULL;
        int r = sd_bus_message_new_method_call(q->context->bus, &call, POLKIT_BUS_NAME, AUTHORITY_PATH, AUTHORITY_INTERFACE,
                                               "CancelCheckAuthorization");

        if (r >= 0)
                r = sd_bus_message_append(call, "s", q->cancellation_id);
        if (r >= 0)
                r = sd_bus_message_set_auto_start(call, false);
        if (r >= 0)
                r = sd_bus_send(NULL, call, NULL);
        if (r < 0)
                log_debug("A question to polkit is not taken back: %s", strerror(-r));
}

void polkit_forget(Peer *p) {
        Context *context = NULL;

        while (p->questions.head) {
                PolkitQuestion *q = p->questions.head->data;

                context = q->context;
                if (q->slot && context->bus)
                        take_back(q);
                question_free(q);
        }
        if (context && context->bus)
                ask_waiting(context);
}

static int on_changed(sd_bus_message *message, void *userdata, sd_bus_error *error) {
        Context *context = userdata;

        /* sd-bus passes on a signal from any peer that is addressed to us. A peer that sends it in a loop would cause all
         * questions to be asked again. */
        if (g_strcmp0(sd_bus_message_get_sender(message), context->polkit->authority) == 0)
                context->polkit->events->changed(context);
        return 0;
}

void polkit_outdate_questions(Context *context) {
        context->polkit->n_changes++;
}

void polkit_stop(Context *context) {
        context->polkit->retry = sd_event_source_disable_unref(context->polkit->retry);
}

int polkit_watch(Context *context, const PolkitEvents *events) {
        context->polkit->events = events;
        return sd_bus_match_signal(context->bus, NULL, POLKIT_BUS_NAME, AUTHORITY_PATH, AUTHORITY_INTERFACE, "Changed",
                                   on_changed, context);
}
