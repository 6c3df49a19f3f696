/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The runs that a call or an event is about. Supervisor. */
#include <inttypes.h>
#include <string.h>

#include "daemon/configuration/configuration-database.h"
#include "daemon/supervisor/access/policy.h"
#include "daemon/supervisor/base/context.h"
#include "daemon/supervisor/calls/bus-error.h"
#include "daemon/supervisor/runs/run-access.h"
#include "daemon/supervisor/workers/group.h"

int run_access_find(Context *context, const Peer *p, const Database *d, uint64_t number, Run **ret, Refusal *refusal) {
        Run *run = g_hash_table_lookup(context->runs, &number);

        if (!run || !run_is_execution(run) || !run->session ||
            strcmp(run->session->name, p->name) != 0 ||
            strcmp(database_name(run->database), database_name(d)) != 0) /* by name: a reload makes new objects */
                return refuse(refusal, ERROR_UNKNOWN_RUN,
                              "You have no run %" PRIu64 " on this database; it may have ended.", number);
        *ret = run;
        return 0;
}

/* The method call that waits for the start of the run, for its end or for its rows. NULL: none does. */
static sd_bus_message *call_of(const Run *run) {
        if (run->reader && run->reader->call)
                return run->reader->call;
        return run->kind == RUN_EXECUTE || run->state < RUN_STARTED ? run->call : NULL;
}

static bool waits_with(const Run *run, uint32_t serial) {
        sd_bus_message *call = call_of(run);
        uint64_t cookie;

        return call && sd_bus_message_get_cookie(call, &cookie) >= 0 && cookie == serial;
}

/* True if the call that began the run was answered, perhaps before it started, but its client may not have read the answer:
 * no Commit, Rollback or Wait waits for the end of the run, and its worker has not announced a commit. */
static bool was_begun_by(const Run *run, uint32_t serial) {
        return run->cookie == serial && run->state < RUN_ENDED && !run->call && !run->committing &&
               run->end.error == ERROR_NONE;
}

int run_access_find_call(Context *context, const Peer *p, const Database *d, uint32_t serial, Run **ret, Refusal *refusal) {
        const Session *session = g_hash_table_lookup(context->sessions, p->name);

        for (GList *i = session ? session->runs.head : NULL; i; i = i->next) {
                Run *run = i->data;

                if ((waits_with(run, serial) || was_begun_by(run, serial)) &&
                    strcmp(database_name(run->database), database_name(d)) == 0) {
                        *ret = run;
                        return 0;
                }
        }
        return refuse(refusal, ERROR_UNKNOWN_RUN,
                      "You have no run on this database whose method call has the serial %" PRIu32 " and waits for its "
                      "answer: it may have been answered, or may not have begun.", serial);
}

int run_access_find_transaction(Context *context, const Peer *p, const Database *d, uint64_t number, Run **ret,
                                Refusal *refusal) {
        const char *why = session_why_ended(g_hash_table_lookup(context->sessions, p->name), number);
        Run *run = g_hash_table_lookup(context->runs, &number);

        if (why)
                return refuse(refusal, ERROR_TRANSACTION_ENDED, "Transaction %" PRIu64 " has ended: %s", number, why);
        if (!run || run->kind != RUN_TRANSACTION || run->is_pin || run->state != RUN_STARTED || !run->session ||
            strcmp(run->session->name, p->name) != 0 ||
            strcmp(database_name(run->database), database_name(d)) != 0)
                return refuse(refusal, ERROR_TRANSACTION_ENDED,
                              "You have no transaction %" PRIu64 " on this database; it may have ended.", number);
        *ret = run;
        return 0;
}

/* The number of a pin is given with each call that relies on its TEMP tables. So if they are gone, no statement can meet
 * another table of the same name instead, not even after a restart of the service, whose numbers differ. */
int run_access_find_pin(Context *context, const Peer *p, const Database *d, uint64_t number, Run **ret, Refusal *refusal) {
        const char *why = session_why_ended(g_hash_table_lookup(context->sessions, p->name), number);
        Run *run = g_hash_table_lookup(context->runs, &number);

        if (!run || !run->is_pin || run->state != RUN_STARTED || run->end.error != ERROR_NONE || !run->session ||
            strcmp(run->session->name, p->name) != 0 || strcmp(database_name(run->database), database_name(d)) != 0)
                return refuse(refusal, ERROR_PIN_LOST,
                              "Your connection with TEMP tables (pin %" PRIu64 ") is gone, and they are gone with it%s%s",
                              number, why ? ": " : ".", why ?: "");
        *ret = run;
        return 0;
}

static bool may_still_read(const Context *context, const Peer *p, const Database *d) {
        const Database *now = database_find(context, database_name(d));

        return now && database_config_shows_same(now->config, d->config) && policy_verdict(context, p, now) == POLICY_YES;
}

static bool is_still_allowed(const Run *run) {
        const Context *context = run->context;
        const Peer *p = run->session ? g_hash_table_lookup(context->peers, run->session->name) : NULL;

        if (!p)
                return true;
        for (guint i = 0; run->attached && i < run->attached->len; i++)
                if (!may_still_read(context, p, run->attached->pdata[i]))
                        return false;
        return may_still_read(context, p, run->database) &&
               (!run->group->writes ||
                policy_write_verdict(context, p, database_find(context, database_name(run->database))) == POLICY_YES);
}

/* True if the run has not started, or if it writes and waits, or is a transaction, in which more statements may come. */
static bool waits(const Run *run) {
        if (run->state < RUN_STARTED)
                return true;
        return run_is_under_way(run) && !run->committing && (run->writes || run->kind == RUN_TRANSACTION);
}

/* True if the run is of use only with the right to write, which its client has lost: to call again would not help. */
static bool needs_lost_right(const Run *run, const Peer *p, const Database *now) {
        bool only_writes = run->writes || (run->kind == RUN_EXECUTE && !run->finds_tables) || run->kind == RUN_LOAD;

        return run->group->writes && only_writes && policy_write_verdict(run->context, p, now) == POLICY_NO;
}

static void revoke_run(Run *run) {
        g_auto(Refusal) refusal = REFUSAL_INIT;
        const Database *now = database_find(run->context, database_name(run->database));
        const Peer *p = g_hash_table_lookup(run->context->peers, run->session->name);

        if (run->kind == RUN_TRANSACTION && run->state >= RUN_STARTED) {
                run_end(run, RUN_END_CANCELLED, ERROR_TRANSACTION_ENDED, "The rights to the database changed.");
                return;
        }
        if (now && policy_verdict(run->context, p, now) == POLICY_YES && needs_lost_right(run, p, now))
                (void) refuse(&refusal, ERROR_READ_ONLY,
                              "Your right to write the database was taken away while the call waited: nothing was written.");
        else if (now && policy_is_visible(run->context, p, now))
                (void) refuse(&refusal, ERROR_BUSY, "The rights to the database changed while the call waited: call again.");
        else
                (void) policy_refuse_unknown(database_name(run->database), &refusal);
        run_end(run, RUN_END_REVOKED, refusal.error, refusal.message);
}

static void revoke_runs(Context *context, bool transactions) {
        g_autoptr(GPtrArray) found = g_ptr_array_new();
        GHashTableIter i;
        void *value;

        g_hash_table_iter_init(&i, context->runs);
        while (g_hash_table_iter_next(&i, NULL, &value)) {
                const Run *run = value;

                if ((run->kind == RUN_TRANSACTION) == transactions && run->end.error == ERROR_NONE && waits(run) &&
                    !is_still_allowed(run))
                        g_ptr_array_add(found, value);
        }
        for (guint k = 0; k < found->len; k++)
                revoke_run(found->pdata[k]);
}

/* Transactions are the last to end: one that writes keeps back other writers, which must learn first that they may not write
 * any longer. */
void run_access_on_rights_changed(Context *context) {
        revoke_runs(context, false);
        revoke_runs(context, true);
}

void run_access_on_pipe_grown(Context *context, Pipe *p) {
        static const char sentence[] = "You made the pipe larger, at the cost of others: leave its size to the service.";
        Statement *s = statement_of_pipe(context, p);
        Run *run = s ? s->run : g_hash_table_lookup(context->runs, &p->number);

        if (run && s) {
                run->statement = NULL;
                s->run = NULL;
        }
        if (run && (s || run->pipe == p))
                run_end(run, RUN_END_CANCELLED, ERROR_LIMITS_EXCEEDED, sentence);
        (void) statement_free(s);
}
