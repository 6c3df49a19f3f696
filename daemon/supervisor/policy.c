/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Decides who may use which database. Supervisor. */
#include <string.h>

#include "daemon/supervisor/bus-error.h"
#include "daemon/supervisor/channel.h"
#include "daemon/supervisor/held-call.h"
#include "daemon/supervisor/listing.h"
#include "daemon/supervisor/log.h"
#include "daemon/supervisor/manage.h"
#include "daemon/supervisor/manager.h"
#include "daemon/supervisor/policy.h"
#include "daemon/supervisor/run.h"
#include "daemon/supervisor/sd-autoptr.h"
#include "dbus-interfaces/sqlipc-names.h"

/* Values of Peer's `answers`: a PolkitAnswer, with this flag while it still holds. */
#define ANSWER_KEPT 0x100u

/* ---- Verdicts ---- */

static bool has_group(const Peer *p, gid_t gid) {
        for (size_t i = 0; i < p->n_gids; i++)
                if (p->gids[i] == gid)
                        return true;
        return false;
}

static bool is_allowed(const Manager *m, const Peer *p, const DatabaseConfig *c) {
        if (peer_is_administrator(m, p) || c->allow_everybody)
                return true;
        for (size_t i = 0; i < c->n_uids; i++)
                if (c->uids[i] == p->uid)
                        return true;
        for (size_t i = 0; i < c->n_gids; i++)
                if (has_group(p, c->gids[i]))
                        return true;
        return false;
}

static unsigned find_answer(const Peer *p, const char *database) {
        return GPOINTER_TO_UINT(g_hash_table_lookup(p->answers, database));
}

PolkitAnswer policy_last_answer(const Peer *p, const char *database) {
        return (PolkitAnswer) (find_answer(p, database) & ~ANSWER_KEPT);
}

PolicyVerdict policy_verdict(const Manager *m, const Peer *p, const Database *d) {
        if (is_allowed(m, p, d->config))
                return POLICY_YES;
        if (!d->config->polkit)
                return POLICY_NO;
        if (!(find_answer(p, database_name(d)) & ANSWER_KEPT))
                return POLICY_ASK;
        return policy_last_answer(p, database_name(d)) == POLKIT_YES ? POLICY_YES : POLICY_NO;
}

/* The verdict if polkit's last answer counts, kept or not. */
static PolicyVerdict verdict_by_last_answer(const Manager *m, const Peer *p, const Database *d) {
        PolicyVerdict verdict = policy_verdict(m, p, d);

        if (verdict != POLICY_ASK)
                return verdict;
        switch (policy_last_answer(p, database_name(d))) {
        case POLKIT_YES: return POLICY_YES;
        case POLKIT_CHALLENGE: return POLICY_ASK;
        case POLKIT_NO:
        case POLKIT_ABSENT: break;
        }
        return POLICY_NO;
}

bool policy_is_visible(const Manager *m, const Peer *p, const Database *d) {
        return verdict_by_last_answer(m, p, d) != POLICY_NO;
}

PolicyVerdict policy_view_of_peer(const Manager *m, const Peer *p, bool was_held, const Database *d) {
        if (was_held)
                return verdict_by_last_answer(m, p, d);
        return policy_verdict(m, p, d) == POLICY_YES ? POLICY_YES : POLICY_NO;
}

PolicyVerdict policy_view(const Manager *m, sd_bus_message *message, const Database *d) {
        const Peer *p = message ? peer_of(m, message) : NULL;

        return p ? policy_view_of_peer(m, p, held_call_was_held(m, message), d) : POLICY_NO;
}

static void log_denied(const Peer *p, const Database *d) {
        log_event_limited(LOG_EVENT_ACCESS_DENIED, NULL,
                          &(LogFields) { .database = database_name(d), .client = p->name, .uid = &p->uid },
                          "uid %u may not use it; it was told that there is no such database.", (unsigned) p->uid);
}

Database *policy_find_database(Manager *m, sd_bus_message *message, const char *name) {
        Database *d = manager_find_database(m, name);

        if (!d || policy_view(m, message, d) == POLICY_YES)
                return d;
        if (message && peer_of(m, message))
                log_denied(peer_of(m, message), d);
        return NULL;
}

int policy_refuse_unknown(const char *name, Refusal *refusal) {
        return refuse(refusal, ERROR_UNKNOWN_DATABASE,
                      "There is no database \"%.100s\" for you: ListDatabases says which there are.", name);
}

/* ---- Signals ---- */

static void emit(Manager *m, const Peer *p, const char *member, const Database *d) {
        g_autoptr(sd_bus_message) s = NULL;
        int r = sd_bus_message_new_signal(m->bus, &s, SQLIPC_MANAGER_PATH, SQLIPC_MANAGER_INTERFACE, member);

        if (r >= 0)
                r = sd_bus_message_append(s, "so", database_name(d), d->object_path);
        if (r >= 0)
                r = sd_bus_message_set_destination(s, p->name);
        if (r >= 0)
                r = sd_bus_send(m->bus, s, NULL);
        if (r < 0)
                log_full_limited(LOG_WARNING, &(LogFields) { .database = database_name(d), .client = p->name },
                                 "The signal %s is lost: %s", member, strerror(-r));
}

void policy_announce(Manager *m, Peer *p, const Database *before, const Database *now) {
        bool could = before && policy_is_visible(m, p, before), can = now && policy_is_visible(m, p, now);

        if (could && !can)
                emit(m, p, "DatabaseRemoved", before);
        if (can && !could)
                emit(m, p, "DatabaseAdded", now);
        if (now && !can && policy_verdict(m, p, now) == POLICY_ASK)
                polkit_ask(m, p, database_name(now), true);
}

/* ---- polkit's answers ---- */

static void keep_answer(Peer *p, const PolkitReply *reply) {
        unsigned value = reply->answer;

        if (find_answer(p, reply->database) & ANSWER_KEPT)
                return; /* this question was asked before the kept answer came */
        if (reply->interactive && reply->answer == POLKIT_NO)
                value = POLKIT_CHALLENGE; /* not kept: the user failed to authenticate this time, but may be asked again */
        else if (!reply->outdated && (reply->answer == POLKIT_YES || reply->answer == POLKIT_NO))
                value |= ANSWER_KEPT;
        g_hash_table_insert(p->answers, g_strdup(reply->database), GUINT_TO_POINTER(value));
}

void policy_on_answer(Manager *m, Peer *p, const PolkitReply *reply) {
        if (!reply->database) {
                manage_on_answer(p, reply);
                return;
        }
        const Database *d = manager_find_database(m, reply->database);

        keep_answer(p, reply);
        if (reply->announce && d && policy_is_visible(m, p, d))
                emit(m, p, "DatabaseAdded", d);
        held_call_on_answer(p, reply->database, reply->interactive, reply->interactive && reply->answer == POLKIT_NO);
}

void policy_forget_answers(Manager *m) {
        GHashTableIter i, k;
        void *peer, *value;

        m->polkit.n_changes++;
        g_hash_table_iter_init(&i, m->peers);
        while (g_hash_table_iter_next(&i, NULL, &peer)) {
                g_hash_table_iter_init(&k, ((Peer *) peer)->answers);
                while (g_hash_table_iter_next(&k, NULL, &value))
                        g_hash_table_iter_replace(&k, GUINT_TO_POINTER(GPOINTER_TO_UINT(value) & ~ANSWER_KEPT));
        }
        channels_on_policy_changed(m);
        runs_on_rights_changed(m);
}

/* ---- Other events ---- */

int policy_watch(Manager *m) {
        int r = held_call_watch(m);

        return r < 0 ? r : polkit_watch(m);
}

bool policy_is_busy(const Manager *m) {
        return m->n_held_calls > 0 || listing_is_busy(m);
}

void policy_forget_peer(Peer *p) {
        polkit_forget(p);
        held_call_forget(p);
        manage_forget(p);
        listing_forget(p);
}

void policy_stop(Manager *m, const char *sentence) {
        polkit_stop(m);
        listing_stop(m, sentence);
        held_call_stop(m, sentence);
}
