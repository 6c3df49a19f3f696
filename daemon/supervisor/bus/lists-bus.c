/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Manager.ListStatements, ListRuns, ListTransactions, ListChannels, ListWatches. Supervisor. */
#include <string.h>

#include "daemon/supervisor/base/clock.h"
#include "daemon/supervisor/base/context.h"
#include "daemon/supervisor/bus/lists-bus.h"
#include "daemon/supervisor/runs/channel-run.h"
#include "daemon/supervisor/runs/channel.h"
#include "daemon/supervisor/runs/run.h"
#include "daemon/supervisor/runs/session.h"
#include "daemon/supervisor/runs/sql-text.h"
#include "daemon/supervisor/runs/statement.h"
#include "daemon/supervisor/runs/watch.h"
#include "daemon/supervisor/workers/worker.h"

/* An entry has 2.5 KiB at most. With this many, the loop is not held up for long and the reply stays below
 * REPLY_SIZE_MAX. */
#define LIST_LENGTH_MAX 4096u
#define ENTRY_SIZE (12 * REPLY_ENTRY_OVERHEAD + 4 * SQL_EXCERPT_LENGTH) /* without its path and owner */

/* Lists are per uid, not per connection: busctl's own connection holds nothing. */
static bool may_see(const Peer *p, uid_t owner) {
        return p->uid == 0 || p->uid == owner;
}

/* Begins an entry with the fields that all lists have. More of the a{sv} may follow, then end_entry(). */
static int begin_entry(Reply *reply, uint64_t number, const Database *d, const char *owner, uid_t uid) {
        int r = reply_count(reply, ENTRY_SIZE + strlen(d->object_path) + strlen(owner));

        if (r >= 0)
                r = sd_bus_message_open_container(reply->message, 'r', "tosa{sv}");
        if (r >= 0)
                r = sd_bus_message_append(reply->message, "tos", number, d->object_path, owner);
        if (r >= 0)
                r = sd_bus_message_open_container(reply->message, 'a', "{sv}");
        return r < 0 ? r : sd_bus_message_append(reply->message, "{sv}", "uid", "u", (uint32_t) uid);
}

static int end_entry(Reply *reply) {
        int r = sd_bus_message_close_container(reply->message);

        return r < 0 ? r : sd_bus_message_close_container(reply->message);
}

/* Functions for one kind of entry: may the caller see it; append it, with the worker's pid only for root. */
typedef bool (*Sees)(const Peer *p, const void *entry);
typedef int (*Append)(Reply *reply, const void *entry, bool with_pid);

/* Appends those of `all` that the caller may see, up to the list's limit. `*n` counts the entries. */
static int append_all(Reply *reply, GHashTable *all, const Peer *peer, Sees sees, Append append, unsigned *n,
                      bool *ret_truncated) {
        GHashTableIter i;
        void *entry;
        int r = 0;

        g_hash_table_iter_init(&i, all);
        while (r >= 0 && !*ret_truncated && g_hash_table_iter_next(&i, NULL, &entry)) {
                if (!sees(peer, entry))
                        continue;
                if ((*n)++ < LIST_LENGTH_MAX)
                        r = append(reply, entry, peer->uid == 0);
                else
                        *ret_truncated = true;
        }
        return r;
}

/* Appends a list that has entries of one kind. */
static int append_list(Reply *reply, GHashTable *all, const Peer *peer, Sees sees, Append append, bool *ret_truncated) {
        unsigned n = 0;
        int r = sd_bus_message_open_container(reply->message, 'a', "(tosa{sv})");

        if (r >= 0)
                r = append_all(reply, all, peer, sees, append, &n, ret_truncated);
        return r < 0 ? r : sd_bus_message_close_container(reply->message);
}

static const char *owner_of(const Channel *c) {
        return c->session ? c->session->name : "";
}

static int append_sql(Reply *reply, GBytes *sql) {
        g_autofree char *excerpt = sql_text_excerpt(sql);

        return sd_bus_message_append(reply->message, "{sv}", "sql", "s", excerpt);
}

static int append_statement(Reply *reply, const void *entry, bool with_pid) {
        const Statement *s = entry;
        int r = begin_entry(reply, s->number, s->database, s->session->name, s->session->user->uid);

        if (r >= 0)
                r = sd_bus_message_append(reply->message, "{sv}", "runs", "t", s->n_runs);
        if (r >= 0 && s->run)
                r = sd_bus_message_append(reply->message, "{sv}", "running", "t", s->run->number);
        if (r >= 0)
                r = append_sql(reply, s->sql);
        return r < 0 ? r : end_entry(reply);
}

static bool sees_statement(const Peer *p, const void *entry) {
        const Statement *s = entry;

        return s->state != STATEMENT_PREPARING && may_see(p, s->session->user->uid);
}

int lists_bus_append_statements(Reply *reply, Context *context, const Peer *peer, bool *ret_truncated) {
        return append_list(reply, context->statements, peer, sees_statement, append_statement, ret_truncated);
}

static const char *state_name(const Run *run) {
        switch (run->state) {
        case RUN_NEW:
        case RUN_WAITING:
        case RUN_SENT:
        case RUN_MISSING: return "queued";
        case RUN_TAKEN:
        case RUN_STARTED: return "running";
        case RUN_PARKED: return "parked";
        case RUN_ENDED:
        case RUN_DRAINING:
        case RUN_OVER: return "draining";
        case RUN_STATE_MAX: break;
        }
        return "";
}

static int append_run(Reply *reply, const void *entry, bool with_pid) {
        const Run *run = entry;
        int r = begin_entry(reply, run->number, run->database, run->session ? run->session->name : "", run->user->uid);

        if (r >= 0)
                r = sd_bus_message_append(reply->message, "{sv}{sv}", "state", "s", state_name(run), "usec", "t",
                                          clock_usec() - run->asked_usec);
        if (r >= 0)
                r = sd_bus_message_append(reply->message, "{sv}{sv}{sv}", "rows", "t", run->n_rows, "bytes", "t",
                                          run->n_bytes, "sql", "s", run->excerpt);
        if (r >= 0 && run->statement)
                r = sd_bus_message_append(reply->message, "{sv}", "statement", "t", run->statement->number);
        if (r >= 0 && with_pid && run->worker)
                r = sd_bus_message_append(reply->message, "{sv}", "worker-pid", "u", (uint32_t) run->worker->process.pid);
        return r < 0 ? r : end_entry(reply);
}

static int append_run_of_channel(Reply *reply, const void *entry, bool with_pid) {
        const Channel *c = entry;
        int r = begin_entry(reply, c->number, c->database, owner_of(c), c->user->uid);

        if (r >= 0)
                r = sd_bus_message_append(reply->message, "{sv}{sv}", "state", "s", channel_run_state(&c->run), "usec", "t",
                                          channel_run_usec(&c->run));
        if (r >= 0)
                r = sd_bus_message_append(reply->message, "{sv}{sv}{sv}", "rows", "t", c->run.n_rows, "bytes", "t",
                                          c->run.n_bytes, "sql", "s", c->run.excerpt);
        if (r >= 0 && with_pid && c->worker)
                r = sd_bus_message_append(reply->message, "{sv}", "worker-pid", "u", (uint32_t) c->worker->process.pid);
        return r < 0 ? r : end_entry(reply);
}

static bool sees_run(const Peer *p, const void *entry) {
        const Run *run = entry;

        return run_is_execution(run) && may_see(p, run->user->uid);
}

static bool sees_run_of_channel(const Peer *p, const void *entry) {
        const Channel *c = entry;

        return c->run.state != CHANNEL_RUN_NONE && may_see(p, c->user->uid);
}

int lists_bus_append_runs(Reply *reply, Context *context, const Peer *peer, bool *ret_truncated) {
        unsigned n = 0;
        int r = sd_bus_message_open_container(reply->message, 'a', "(tosa{sv})");

        if (r >= 0)
                r = append_all(reply, context->runs, peer, sees_run, append_run, &n, ret_truncated);
        if (r >= 0)
                r = append_all(reply, context->channels, peer, sees_run_of_channel, append_run_of_channel, &n,
                               ret_truncated);
        return r < 0 ? r : sd_bus_message_close_container(reply->message);
}

static bool has_statement(const Run *t) {
        for (GList *i = t->worker->runs.head; i; i = i->next) {
                const Run *run = i->data;

                /* a pin was begun for its transaction, and a transaction on it is idle by itself */
                if (run->kind != RUN_TRANSACTION && (run->transaction == t->number || run->pin == t->number))
                        return true;
        }
        return false;
}

static const char *transaction_state(const Run *t) {
        if (t->state < RUN_STARTED)
                return "queued";
        return t->call || t->end.error != ERROR_NONE ? "ending" : has_statement(t) ? "running" : "idle";
}

static const char *transaction_mode(const Run *t) {
        return t->is_pin ? "pin" : t->deferred ? "deferred" : t->writes ? "write" : "read";
}

static int append_transaction(Reply *reply, const void *entry, bool with_pid) {
        const Run *t = entry;
        const char *state = transaction_state(t);
        uint64_t now = clock_usec();
        int r = begin_entry(reply, t->number, t->database, t->session ? t->session->name : "", t->user->uid);

        if (r >= 0)
                r = sd_bus_message_append(reply->message, "{sv}{sv}{sv}", "mode", "s", transaction_mode(t), "state",
                                          "s", state, "usec", "t", now - t->asked_usec);
        if (r >= 0 && strcmp(state, "idle") == 0)
                r = sd_bus_message_append(reply->message, "{sv}", "idle-usec", "t", now - t->used_usec);
        if (r >= 0 && with_pid && t->worker)
                r = sd_bus_message_append(reply->message, "{sv}", "worker-pid", "u", (uint32_t) t->worker->process.pid);
        return r < 0 ? r : end_entry(reply);
}

static bool sees_transaction(const Peer *p, const void *entry) {
        const Run *run = entry;

        return run->kind == RUN_TRANSACTION && may_see(p, run->user->uid);
}

int lists_bus_append_transactions(Reply *reply, Context *context, const Peer *peer, bool *ret_truncated) {
        return append_list(reply, context->runs, peer, sees_transaction, append_transaction, ret_truncated);
}

static const char *name_of_state(const Channel *c) {
        if (c->run.state != CHANNEL_RUN_NONE)
                return channel_run_state(&c->run);
        switch (c->state) {
        case CHANNEL_DRAINING:
        case CHANNEL_RESTING: return "resting";
        case CHANNEL_WAITING: return "queued";
        case CHANNEL_AT_WORKER:
        case CHANNEL_LEAVING:
        case CHANNEL_CLOSING: return "idle";
        case CHANNEL_STATE_MAX: break;
        }
        return "";
}

static int append_channel(Reply *reply, const void *entry, bool with_pid) {
        const Channel *c = entry;
        int r = begin_entry(reply, c->number, c->database, owner_of(c), c->user->uid);

        if (r >= 0)
                r = sd_bus_message_append(reply->message, "{sv}{sv}{sv}", "state", "s", name_of_state(c), "usec", "t",
                                          clock_usec() - c->opened_usec, "statements", "u", c->n_statements);
        if (r >= 0)
                r = sd_bus_message_append(reply->message, "{sv}{sv}{sv}", "total-runs", "t", c->n_runs, "rows", "t",
                                          c->n_rows, "bytes", "t", c->n_bytes);
        if (r >= 0 && c->run.excerpt)
                r = sd_bus_message_append(reply->message, "{sv}", "sql", "s", c->run.excerpt);
        if (r >= 0 && with_pid && c->worker)
                r = sd_bus_message_append(reply->message, "{sv}", "worker-pid", "u", (uint32_t) c->worker->process.pid);
        return r < 0 ? r : end_entry(reply);
}

static bool sees_channel(const Peer *p, const void *entry) {
        return may_see(p, ((const Channel *) entry)->user->uid);
}

int lists_bus_append_channels(Reply *reply, Context *context, const Peer *peer, bool *ret_truncated) {
        return append_list(reply, context->channels, peer, sees_channel, append_channel, ret_truncated);
}

static int append_watch(Reply *reply, const void *entry, bool with_pid) {
        const Watch *w = entry;
        int r = begin_entry(reply, w->number, w->database, w->session->name, w->user->uid);

        if (r >= 0)
                r = sd_bus_message_append(reply->message, "{sv}{sv}{sv}", "waits", "b", w->spec.waits, "unread", "b",
                                          w->unread, "sequence", "t", w->told);
        if (r >= 0)
                r = reply_append_strings(reply, "tables", w->names);
        return r < 0 ? r : end_entry(reply);
}

static bool sees_watch(const Peer *p, const void *entry) {
        return may_see(p, ((const Watch *) entry)->user->uid);
}

int lists_bus_append_watches(Reply *reply, Context *context, const Peer *peer, bool *ret_truncated) {
        return append_list(reply, context->watches, peer, sees_watch, append_watch, ret_truncated);
}
