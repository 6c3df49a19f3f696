/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Decides who may use which database. Supervisor. */
#include "daemon/supervisor/access/policy.h"
#include "daemon/supervisor/base/context.h"
#include "daemon/supervisor/base/log.h"

/* Values of Peer's `answers`: a PolkitAnswer, with this flag while it still holds. */
#define ANSWER_KEPT 0x100u

/* ---- Verdicts ---- */

static bool has_group(const Peer *p, gid_t gid) {
        for (size_t i = 0; i < p->n_gids; i++)
                if (p->gids[i] == gid)
                        return true;
        return false;
}

static bool is_named(const Peer *p, const uid_t *uids, size_t n_uids, const gid_t *gids, size_t n_gids) {
        for (size_t i = 0; i < n_uids; i++)
                if (uids[i] == p->uid)
                        return true;
        for (size_t i = 0; i < n_gids; i++)
                if (has_group(p, gids[i]))
                        return true;
        return false;
}

static bool is_allowed(const Context *context, const Peer *p, const DatabaseConfig *c) {
        return peer_is_administrator(context, p) || c->allow_everybody ||
               is_named(p, c->uids, c->n_uids, c->gids, c->n_gids);
}

static unsigned find_answer(const Peer *p, const char *database) {
        return GPOINTER_TO_UINT(g_hash_table_lookup(p->answers, database));
}

PolkitAnswer policy_last_answer(const Peer *p, const char *database) {
        return (PolkitAnswer) (find_answer(p, database) & ~ANSWER_KEPT);
}

PolicyVerdict policy_verdict(const Context *context, const Peer *p, const Database *d) {
        if (is_allowed(context, p, d->config))
                return POLICY_YES;
        if (!d->config->polkit)
                return POLICY_NO;
        if (!(find_answer(p, database_name(d)) & ANSWER_KEPT))
                return POLICY_ASK;
        return policy_last_answer(p, database_name(d)) == POLKIT_YES ? POLICY_YES : POLICY_NO;
}

/* The verdict if polkit's last answer counts, kept or not. */
static PolicyVerdict verdict_by_last_answer(const Context *context, const Peer *p, const Database *d) {
        PolicyVerdict verdict = policy_verdict(context, p, d);

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

/* An exposed table or view is no table of the file, so nothing can be written through Expose=. */
static bool is_writable(const DatabaseConfig *c) {
        return database_config_is_writable(c) && !(c->expose && c->expose[0]);
}

bool policy_may_write(const Context *context, const Peer *p, const Database *d) {
        const DatabaseConfig *c = d->config;

        return is_writable(c) && verdict_by_last_answer(context, p, d) == POLICY_YES &&
               (peer_is_administrator(context, p) || c->write_everybody ||
                is_named(p, c->write_uids, c->n_write_uids, c->write_gids, c->n_write_gids));
}

int policy_refuse_write(const Database *d, Refusal *refusal) {
        const DatabaseConfig *c = d->config;

        if (is_writable(c))
                return refuse(refusal, ERROR_READ_ONLY,
                              "You may only read this database: root may write it, the service's own user, and those that "
                              "WriteUsers= and WriteGroups= of %s.conf name.", c->name);
        return refuse(refusal, ERROR_READ_ONLY,
                      "No client may write this database: it needs Mode=read-write in %s.conf, and no Expose=.", c->name);
}

bool policy_is_visible(const Context *context, const Peer *p, const Database *d) {
        return verdict_by_last_answer(context, p, d) != POLICY_NO;
}

PolicyVerdict policy_view_of_peer(const Context *context, const Peer *p, bool was_held, const Database *d) {
        if (was_held)
                return verdict_by_last_answer(context, p, d);
        return policy_verdict(context, p, d) == POLICY_YES ? POLICY_YES : POLICY_NO;
}

bool policy_call_was_held(const Context *context, const sd_bus_message *message) {
        return context->released_call == message;
}

PolicyVerdict policy_view(const Context *context, sd_bus_message *message, const Database *d) {
        const Peer *p = message ? peer_of(context, message) : NULL;

        return p ? policy_view_of_peer(context, p, policy_call_was_held(context, message), d) : POLICY_NO;
}

static void log_denied(const Peer *p, const Database *d) {
        log_event_limited(LOG_EVENT_ACCESS_DENIED, NULL,
                          &(LogFields) { .database = database_name(d), .client = p->name, .uid = &p->uid },
                          "uid %u may not use it; it was told that there is no such database.", (unsigned) p->uid);
}

Database *policy_find_database(Context *context, sd_bus_message *message, const char *name) {
        Database *d = database_find(context, name);

        if (!d || policy_view(context, message, d) == POLICY_YES)
                return d;
        if (message && peer_of(context, message))
                log_denied(peer_of(context, message), d);
        return NULL;
}

int policy_refuse_unknown(const char *name, Refusal *refusal) {
        return refuse(refusal, ERROR_UNKNOWN_DATABASE,
                      "There is no database \"%.100s\" for you: ListDatabases says which there are.", name);
}

/* ---- polkit's answers ---- */

void policy_keep_answer(Peer *p, const PolkitReply *reply) {
        unsigned value = reply->answer;

        if (find_answer(p, reply->database) & ANSWER_KEPT)
                return; /* this question was asked before the kept answer came */
        if (reply->interactive && reply->answer == POLKIT_NO)
                value = POLKIT_CHALLENGE; /* not kept: the user failed to authenticate this time, but may be asked again */
        else if (!reply->outdated && (reply->answer == POLKIT_YES || reply->answer == POLKIT_NO))
                value |= ANSWER_KEPT;
        g_hash_table_insert(p->answers, g_strdup(reply->database), GUINT_TO_POINTER(value));
}

void policy_keep_no_answers(Peer *p) {
        GHashTableIter i;
        void *value;

        g_hash_table_iter_init(&i, p->answers);
        while (g_hash_table_iter_next(&i, NULL, &value))
                g_hash_table_iter_replace(&i, GUINT_TO_POINTER(GPOINTER_TO_UINT(value) & ~ANSWER_KEPT));
}
