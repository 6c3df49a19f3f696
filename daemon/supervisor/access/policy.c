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

static GHashTable *answers_about(const Peer *p, PolkitAction action) {
        return action == POLKIT_WRITE ? p->write_answers : p->answers;
}

static unsigned find_answer(const Peer *p, PolkitAction action, const char *database) {
        return GPOINTER_TO_UINT(g_hash_table_lookup(answers_about(p, action), database));
}

PolkitAnswer policy_last_answer(const Peer *p, PolkitAction action, const char *database) {
        return (PolkitAnswer) (find_answer(p, action, database) & ~ANSWER_KEPT);
}

static PolicyVerdict verdict_by_kept_answer(const Peer *p, PolkitAction action, const char *database) {
        if (!(find_answer(p, action, database) & ANSWER_KEPT))
                return POLICY_ASK;
        return policy_last_answer(p, action, database) == POLKIT_YES ? POLICY_YES : POLICY_NO;
}

PolicyVerdict policy_verdict(const Context *context, const Peer *p, const Database *d) {
        if (is_allowed(context, p, d->config))
                return POLICY_YES;
        if (!d->config->polkit)
                return POLICY_NO;
        return verdict_by_kept_answer(p, POLKIT_READ, database_name(d));
}

/* The verdict if polkit's last answer counts, kept or not. */
static PolicyVerdict verdict_by_last_answer(const Context *context, const Peer *p, const Database *d) {
        PolicyVerdict verdict = policy_verdict(context, p, d);

        if (verdict != POLICY_ASK)
                return verdict;
        switch (policy_last_answer(p, POLKIT_READ, database_name(d))) {
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

static bool is_writer(const Context *context, const Peer *p, const DatabaseConfig *c) {
        return peer_is_administrator(context, p) || c->write_everybody ||
               is_named(p, c->write_uids, c->n_write_uids, c->write_gids, c->n_write_gids);
}

PolicyVerdict policy_write_verdict(const Context *context, const Peer *p, const Database *d) {
        if (!is_writable(d->config))
                return POLICY_NO;
        if (is_writer(context, p, d->config))
                return POLICY_YES;
        return d->config->write_polkit ? verdict_by_kept_answer(p, POLKIT_WRITE, database_name(d)) : POLICY_NO;
}

bool policy_write_needs_user(const Context *context, const Peer *p, const Database *d) {
        return is_writable(d->config) && d->config->write_polkit && !is_writer(context, p, d->config) &&
               policy_last_answer(p, POLKIT_WRITE, database_name(d)) == POLKIT_CHALLENGE;
}

bool policy_may_write(const Context *context, const Peer *p, const Database *d) {
        PolicyVerdict verdict;

        if (verdict_by_last_answer(context, p, d) != POLICY_YES)
                return false;
        verdict = policy_write_verdict(context, p, d);
        if (verdict == POLICY_ASK)
                return policy_last_answer(p, POLKIT_WRITE, database_name(d)) == POLKIT_YES;
        return verdict == POLICY_YES;
}

int policy_refuse_write(const Database *d, Refusal *refusal) {
        const DatabaseConfig *c = d->config;

        if (is_writable(c))
                return refuse(refusal, ERROR_READ_ONLY,
                              "You may only read this database: root may write it, the service's own user, and those that "
                              "WriteUsers= and WriteGroups= of %s.conf name%s.", c->name,
                              c->write_polkit ? ", or that polkit lets write" : "");
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

Database *policy_find_to_attach(Context *context, Peer *p, const char *name, Refusal *refusal) {
        Database *d = database_find(context, name);
        PolicyVerdict verdict = d ? policy_verdict(context, p, d) : POLICY_NO;

        if (verdict == POLICY_NO)
                (void) policy_refuse_unknown(name, refusal);
        else if (verdict == POLICY_ASK && policy_last_answer(p, POLKIT_READ, name) == POLKIT_CHALLENGE)
                (void) refuse(refusal, ERROR_ACCESS_DENIED,
                              "The database \"%s\" requires authentication: query it first, with interactive authorization.",
                              name);
        else if (verdict == POLICY_ASK)
                polkit_ask(context, p, POLKIT_READ, name, false);
        else if (database_config_is_server(d->config))
                (void) refuse(refusal, ERROR_NOT_ALLOWED,
                              "The database \"%s\" is on a server: only databases in files can be attached.", name);
        else if (d->config->expose && d->config->expose[0])
                (void) refuse(refusal, ERROR_NOT_ALLOWED,
                              "The database \"%s\" has Expose=, which publishes a part of it: it cannot be attached.", name);
        else
                return d;
        return NULL;
}

/* ---- polkit's answers ---- */

void policy_keep_answer(Peer *p, const PolkitReply *reply) {
        unsigned value = reply->answer, before = find_answer(p, reply->action, reply->database);

        if ((before & ANSWER_KEPT) && before != (POLKIT_CHALLENGE | ANSWER_KEPT))
                return; /* this question was asked before the kept answer came */
        if (reply->interactive && reply->answer == POLKIT_NO)
                value = POLKIT_CHALLENGE; /* the user failed to authenticate this time, but may be asked again */
        if (!reply->outdated && (value == POLKIT_YES || value == POLKIT_NO ||
                                 (value == POLKIT_CHALLENGE && reply->action == POLKIT_WRITE)))
                value |= ANSWER_KEPT;
        g_hash_table_insert(answers_about(p, reply->action), g_strdup(reply->database), GUINT_TO_POINTER(value));
}

static void keep_none(GHashTable *answers) {
        GHashTableIter i;
        void *value;

        g_hash_table_iter_init(&i, answers);
        while (g_hash_table_iter_next(&i, NULL, &value))
                g_hash_table_iter_replace(&i, GUINT_TO_POINTER(GPOINTER_TO_UINT(value) & ~ANSWER_KEPT));
}

void policy_keep_no_answers(Peer *p) {
        keep_none(p->answers);
        keep_none(p->write_answers);
}
