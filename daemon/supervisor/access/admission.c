/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Acts on news about who may use which database. Supervisor. */
#include <string.h>

#include "daemon/supervisor/access/admission.h"
#include "daemon/supervisor/access/held-call.h"
#include "daemon/supervisor/access/listing.h"
#include "daemon/supervisor/access/manage.h"
#include "daemon/supervisor/access/pacing.h"
#include "daemon/supervisor/access/policy.h"
#include "daemon/supervisor/access/polkit.h"
#include "daemon/supervisor/base/context.h"
#include "daemon/supervisor/base/log.h"
#include "daemon/supervisor/base/sd-autoptr.h"
#include "dbus-interfaces/sqlipc-names.h"

/* ---- Signals ---- */

static void emit(Context *context, const Peer *p, const char *member, const Database *d) {
        g_autoptr(sd_bus_message) s = NULL;
        int r = sd_bus_message_new_signal(context->bus, &s, SQLIPC_MANAGER_PATH, SQLIPC_MANAGER_INTERFACE, member);

        if (r >= 0)
                r = sd_bus_message_append(s, "so", database_name(d), d->object_path);
        if (r >= 0)
                r = sd_bus_message_set_destination(s, p->name);
        if (r >= 0)
                r = sd_bus_send(context->bus, s, NULL);
        if (r < 0)
                log_full_limited(LOG_WARNING, &(LogFields) { .database = database_name(d), .client = p->name },
                                 "The signal %s is lost: %s", member, strerror(-r));
}

void admission_announce(Context *context, Peer *p, const Database *before, const Database *now) {
        bool could = before && policy_is_visible(context, p, before), can = now && policy_is_visible(context, p, now);

        if (could && !can)
                emit(context, p, "DatabaseRemoved", before);
        if (can && !could)
                emit(context, p, "DatabaseAdded", now);
        if (now && !can && policy_verdict(context, p, now) == POLICY_ASK)
                polkit_ask(context, p, POLKIT_READ, database_name(now), true);
}

/* ---- polkit ---- */

static void on_answer(Peer *p, const PolkitReply *reply) {
        if (reply->action == POLKIT_MANAGE) {
                manage_on_answer(p, reply);
                return;
        }
        const Database *d = database_find(p->context, reply->database);

        policy_keep_answer(p, reply);
        if (reply->action == POLKIT_WRITE && reply->answer == POLKIT_YES)
                p->context->events->write_granted(p->context, p->name);
        if (reply->announce && d && policy_is_visible(p->context, p, d))
                emit(p->context, p, "DatabaseAdded", d);
        held_call_on_answer(p, reply);
}

static void on_rules_changed(Context *context) {
        GHashTableIter i;
        void *peer;

        polkit_outdate_questions(context);
        g_hash_table_iter_init(&i, context->peers);
        while (g_hash_table_iter_next(&i, NULL, &peer))
                policy_keep_no_answers(peer);
        context->events->rights_changed(context);
}

/* polkit's next instance may have other rules, and does not announce its start. */
void admission_on_name_left(Context *context, const char *name) {
        if (strcmp(name, POLKIT_BUS_NAME) == 0)
                on_rules_changed(context);
}

/* ---- Other events ---- */

int admission_watch(Context *context) {
        static const PolkitEvents events = { .answered = on_answer, .changed = on_rules_changed };
        int r = held_call_watch(context);

        return r < 0 ? r : polkit_watch(context, &events);
}

bool admission_is_busy(const Context *context) {
        return context->n_held_calls > 0 || listing_is_busy(context);
}

void admission_forget_peer(Peer *p) {
        polkit_forget(p);
        held_call_forget(p);
        manage_forget(p);
        listing_forget(p);
        pacing_forget(p);
}

/* Each peer's calls are answered together, those that manage the service first. */
static void stop_peers(Context *context, const char *sentence) {
        GHashTableIter i;
        void *value;

        g_hash_table_iter_init(&i, context->peers);
        while (g_hash_table_iter_next(&i, NULL, &value)) {
                polkit_forget(value);
                manage_stop(value, sentence);
                held_call_stop(value, sentence);
        }
}

void admission_stop(Context *context, const char *sentence) {
        polkit_stop(context);
        listing_stop(context, sentence);
        stop_peers(context, sentence);
}
