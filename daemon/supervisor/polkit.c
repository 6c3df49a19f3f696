/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Questions to polkit. Supervisor. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "log.h"
#include "manager.h"
#include "policy.h"
#include "polkit.h"
#include "sd-autoptr.h"

#define AUTHORITY_PATH "/org/freedesktop/PolicyKit1/Authority"
#define AUTHORITY_INTERFACE "org.freedesktop.PolicyKit1.Authority"
#define ALLOW_USER_INTERACTION UINT32_C(1)
#define CANCELLATION_ID_SIZE sizeof "sqlipc-18446744073709551615"

typedef struct PolkitQuestion {
        Manager *manager;   /* not owned */
        Peer *peer;         /* not owned: owns this, in its `questions` */
        char *database;
        bool interactive, announce;
        char cancellation_id[CANCELLATION_ID_SIZE];
        sd_bus_slot *slot;  /* NULL: it waits for its turn */
        GQueue *queue;      /* the one of Polkit's that it is in; NULL: none */
        GList queue_link, peer_link;
} PolkitQuestion;

static void question_free(PolkitQuestion *q) {
        if (q->queue)
                g_queue_unlink(q->queue, &q->queue_link);
        g_queue_unlink(&q->peer->questions, &q->peer_link);
        (void) sd_bus_slot_unref(q->slot);
        g_free(q->database);
        g_free(q);
}

static void question_enter(PolkitQuestion *q, GQueue *queue) {
        if (q->queue)
                g_queue_unlink(q->queue, &q->queue_link);
        q->queue = queue;
        g_queue_push_tail_link(queue, &q->queue_link);
}

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

static void start_waiting(Manager *m);

static int on_reply(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        PolkitQuestion *q = userdata;
        Manager *m = q->manager;
        Peer *p = q->peer;
        g_autofree char *database = g_steal_pointer(&q->database);
        bool interactive = q->interactive, announce = q->announce;
        PolkitAnswer answer = POLKIT_ABSENT;
        int r = read_answer(reply, &answer);

        if (r >= 0) {
                g_free(m->polkit.authority);
                m->polkit.authority = g_strdup(sd_bus_message_get_sender(reply));
        } else /* of all databases: once a minute is enough */
                log_event_limited(LOG_EVENT_POLKIT_ABSENT, NULL, &(LogFields) {},
                                  "polkit did not answer (%s), so Polkit=yes lets nobody in: install polkitd, and the "
                                  "action " POLKIT_ACTION ".",
                                  sd_bus_message_is_method_error(reply, NULL) ? sd_bus_message_get_error(reply)->message :
                                                                                strerror(-r));
        question_free(q);
        start_waiting(m);
        policy_on_answer(m, p, database, interactive, announce, answer);
        return 1;
}

static int append_question(sd_bus_message *call, const PolkitQuestion *q) {
        int r = sd_bus_message_append(call, "(sa{sv})", "system-bus-name", 1, "name", "s", q->peer->name);

        if (r >= 0)
                r = sd_bus_message_append(call, "s", POLKIT_ACTION);
        if (r >= 0)
                r = sd_bus_message_append(call, "a{ss}", 1, "database", q->database);
        if (r < 0)
                return r;
        return sd_bus_message_append(call, "us", q->interactive ? ALLOW_USER_INTERACTION : 0, q->cancellation_id);
}

static int question_send(PolkitQuestion *q) {
        g_autoptr(sd_bus_message) call = NULL;
        int r = sd_bus_message_new_method_call(q->manager->bus, &call, POLKIT_BUS_NAME, AUTHORITY_PATH, AUTHORITY_INTERFACE,
                                               "CheckAuthorization");

        if (r >= 0)
                r = append_question(call, q);
        return r < 0 ? r : sd_bus_call_async(q->manager->bus, &q->slot, call, on_reply, q, UINT64_MAX);
}

static void start_waiting(Manager *m) {
        Polkit *polkit = &m->polkit;

        while (polkit->waiting.head && polkit->asked.length < POLKIT_PLAIN_MAX) {
                PolkitQuestion *q = polkit->waiting.head->data;

                if (question_send(q) < 0)
                        return; /* no memory, or no bus any more: the next answer tries again */
                question_enter(q, &polkit->asked);
        }
}

static unsigned count_interactive(const Manager *m, uid_t uid) {
        unsigned n = 0;

        for (const GList *i = m->polkit.interactive.head; i; i = i->next)
                n += ((const PolkitQuestion *) i->data)->peer->uid == uid;
        return n;
}

static PolkitQuestion *find_question(const Peer *p, const char *database, bool interactive) {
        for (GList *i = p->questions.head; i; i = i->next) {
                PolkitQuestion *q = i->data;

                if (q->interactive == interactive && strcmp(q->database, database) == 0)
                        return q;
        }
        return NULL;
}

static PolkitQuestion *question_new(Manager *m, Peer *p, const char *database, bool interactive, bool announce) {
        PolkitQuestion *q = g_new(PolkitQuestion, 1);

        *q = (PolkitQuestion) {
                .manager = m,
                .peer = p,
                .database = g_strdup(database),
                .interactive = interactive,
                .announce = announce,
                .queue_link.data = q,
                .peer_link.data = q,
        };
        (void) g_snprintf(q->cancellation_id, sizeof q->cancellation_id, "sqlipc-%" PRIu64, ++m->polkit.n_questions);
        g_queue_push_tail_link(&p->questions, &q->peer_link);
        return q;
}

int polkit_ask(Manager *m, Peer *p, const char *database, bool interactive, bool announce, Refusal *refusal) {
        PolkitQuestion *q = find_question(p, database, interactive);

        if (q) {
                q->announce |= announce;
                return 0;
        }
        if (interactive && (m->polkit.interactive.length >= POLKIT_INTERACTIVE_MAX ||
                            count_interactive(m, p->uid) >= POLKIT_INTERACTIVE_UID_MAX))
                return refuse(refusal, ERROR_LIMITS_EXCEEDED, "Too many users are being asked to authenticate: answer those "
                              "first.");
        q = question_new(m, p, database, interactive, announce);
        if (!interactive && m->polkit.asked.length >= POLKIT_PLAIN_MAX) {
                question_enter(q, &m->polkit.waiting);
                return 0;
        }
        int r = question_send(q);
        if (r < 0) {
                question_free(q);
                return r;
        }
        question_enter(q, interactive ? &m->polkit.interactive : &m->polkit.asked);
        return 0;
}

/* Nobody waits for its reply: if polkit is gone meanwhile, so is the question. */
static void take_back(PolkitQuestion *q) {
        g_autoptr(sd_bus_message) call = NULL;
        int r = sd_bus_message_new_method_call(q->manager->bus, &call, POLKIT_BUS_NAME, AUTHORITY_PATH, AUTHORITY_INTERFACE,
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
        Manager *m = NULL;

        while (p->questions.head) {
                PolkitQuestion *q = p->questions.head->data;

                m = q->manager;
                if (q->slot && m->bus)
                        take_back(q);
                question_free(q);
        }
        if (m && m->bus)
                start_waiting(m);
}

static int on_changed(sd_bus_message *message, void *userdata, sd_bus_error *error) {
        Manager *m = userdata;

        /* sd-bus lets everybody's pass that is addressed to us: whoever sends it in a loop would have all asked again. */
        if (g_strcmp0(sd_bus_message_get_sender(message), m->polkit.authority) == 0)
                policy_forget_answers(m);
        return 0;
}

int polkit_watch(Manager *m) {
        return sd_bus_match_signal(m->bus, NULL, POLKIT_BUS_NAME, AUTHORITY_PATH, AUTHORITY_INTERFACE, "Changed", on_changed,
                                   m);
}
