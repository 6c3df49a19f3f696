/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Watch, Unwatch and WaitChange on the bus. Supervisor.
 *
 * A worker checks the names, or finds the tables of a statement, as a run without a result. When it has ended, the watch is
 * made, which answers the call.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "daemon/supervisor/access/peer.h"
#include "daemon/supervisor/base/clock.h"
#include "daemon/supervisor/base/quota.h"
#include "daemon/supervisor/base/sd-autoptr.h"
#include "daemon/supervisor/base/try-bytes.h"
#include "daemon/supervisor/bus/watch-bus.h"
#include "daemon/supervisor/calls/bus-error.h"
#include "daemon/supervisor/calls/options.h"
#include "daemon/supervisor/calls/waiting-call.h"
#include "daemon/supervisor/runs/run-spec.h"
#include "daemon/supervisor/runs/run.h"
#include "daemon/supervisor/runs/sql-text.h"
#include "daemon/supervisor/runs/statement.h"
#include "daemon/supervisor/runs/watch.h"

/* ---- What is watched ---- */

/* The names one after the other, each with its NUL. */
static int join_names(char **tables, GBytes **ret, Refusal *refusal) {
        g_autoptr(GByteArray) all = g_byte_array_new();

        for (; *tables; tables++) {
                size_t size = strlen(*tables) + 1;

                if (size == 1)
                        return refuse(refusal, ERROR_SQL, "The name of a table is empty.");
                if (size > TABLES_SIZE_MAX - all->len)
                        return refuse(refusal, ERROR_LIMITS_EXCEEDED,
                                      "The names of the tables have more than %zu bytes: give none, to watch all tables.",
                                      TABLES_SIZE_MAX);
                g_byte_array_append(all, (const guint8 *) *tables, (guint) size);
        }
        *ret = g_byte_array_free_to_bytes(g_steal_pointer(&all));
        return 0;
}

static int find_sql(sd_bus_message *m, Session *s, const Database *d, const Options *options, GBytes **ret,
                    Refusal *refusal) {
        Statement *statement;
        size_t size;
        int r;

        if (options->sql) {
                r = sql_text_check(s->user, d, options->sql, &size, refusal);
                if (r < 0)
                        return r;
                *ret = try_bytes(options->sql, size);
                return *ret ? 0 : -ENOMEM;
        }
        r = statement_find(d->context, peer_of(d->context, m), d, options->statement, &statement, refusal);
        if (r < 0)
                return r;
        *ret = g_bytes_ref(statement->sql);
        return 0;
}

/* *ret NULL: every table of the database. */
static int find_text(sd_bus_message *m, Session *s, const Database *d, char **tables, const Options *options, GBytes **ret,
                     bool *ret_names, Refusal *refusal) {
        bool has_tables = tables && *tables, has_sql = options->sql || options->statement > 0;

        *ret = NULL;
        *ret_names = has_tables;
        if (has_tables + has_sql > 1 || (options->sql && options->statement > 0))
                return refuse(refusal, ERROR_INVALID_OPTION, "Give only one of tables, \"sql\" and \"statement\".");
        if (has_tables)
                return join_names(tables, ret, refusal);
        return has_sql ? find_sql(m, s, d, options, ret, refusal) : 0;
}

/* ---- The watch ---- */

/* `shown`: to clients, over the bus, which carries only UTF-8; SQLite takes any bytes. NULL: there are none. */
static char **split_names(Bytes names, bool shown) {
        g_autoptr(GPtrArray) all = g_ptr_array_new();

        if (names.size == 0)
                return NULL;
        for (const char *name = names.data; name < names.data + names.size; name += strlen(name) + 1)
                g_ptr_array_add(all, shown ? g_utf8_make_valid(name, -1) : g_strdup(name));
        g_ptr_array_add(all, NULL);
        return (char **) g_ptr_array_free(g_steal_pointer(&all), FALSE);
}

/* Answers the call in any case. */
static int on_tables_found(Run *run, const Ended *ended) {
        g_auto(Refusal) refusal = REFUSAL_INIT;
        int r = watch_new(run->session, run->database, &run->watch, split_names(ended->tables, false),
                          split_names(ended->names, true), run->call, run->error_details, &refusal);

        return r < 0 ? bus_error_reply_refusal(run->call, r, &refusal) : 0;
}

static int find_tables(sd_bus_message *m, Session *s, Database *d, GBytes *text, bool names, const WatchSpec *spec,
                       const Options *options, Refusal *refusal) {
        Run *run;
        int r = run_spec_make(s, (RunSpec) {
                .kind = RUN_EXECUTE,
                .finds_tables = true,
                .names = names,
                .database = d,
                .sql = text,
                .call = m,
                .on_ended = on_tables_found,
                .timeout_usec = options->timeout_usec,
                .lock_wait_usec = UINT64_MAX,
                .error_details = options->error_details,
        }, &run, refusal);

        if (r < 0)
                return r;
        run->watch = *spec;
        run_submit(run);
        return 1;
}

static int begin(sd_bus_message *m, Database *d, char **tables, WatchSpec spec, const Options *options, Refusal *refusal) {
        g_autoptr(sd_bus_message) call = NULL;
        g_autoptr(GBytes) text = NULL;
        bool names;

        if (sd_bus_message_get_expect_reply(m) <= 0)
                return refuse(refusal, ERROR_CANCELLED, "The call wants no reply, so no client would get the watch.");
        Session *session = session_get(d->context, peer_of(d->context, m));
        int r = find_text(m, session, d, tables, options, &text, &names, refusal);
        if (r >= 0)
                r = quota_check_watch(session->user, d, !spec.waits, refusal);
        if (r < 0)
                return r;
        spec.n_schemas = changes_of_database(d->context, d->config)->n_schemas;
        if (text)
                return find_tables(m, session, d, text, names, &spec, options, refusal);
        r = waiting_call_new(m, &call);
        if (r >= 0)
                r = watch_new(session, d, &spec, NULL, NULL, call, options->error_details, refusal);
        return r < 0 ? r : 1;
}

static uint64_t deadline_after(uint64_t usec) {
        uint64_t now = clock_usec();

        return usec < UINT64_MAX - now ? now + usec : UINT64_MAX;
}

/* ---- Methods ---- */

int watch_bus_watch(sd_bus_message *m, Database *d, Refusal *refusal) {
        g_auto(GStrv) tables = NULL;
        Options options;
        int r = sd_bus_message_read_strv(m, &tables);

        if (r >= 0)
                r = options_read(m, OPTION_SQL | OPTION_STATEMENT | OPTION_SINCE | OPTION_ERROR_DETAILS, &options, refusal);
        if (r < 0)
                return r;
        return begin(m, d, tables, (WatchSpec) { .since = options.since, .until_usec = UINT64_MAX }, &options, refusal);
}

int watch_bus_wait_change(sd_bus_message *m, Database *d, Refusal *refusal) {
        g_auto(GStrv) tables = NULL;
        uint64_t since;
        Options options;
        int r = sd_bus_message_read_strv(m, &tables);

        if (r >= 0)
                r = sd_bus_message_read_basic(m, 't', &since);
        if (r >= 0)
                r = options_read(m, OPTION_SQL | OPTION_STATEMENT | OPTION_TIMEOUT | OPTION_ERROR_DETAILS, &options,
                                 refusal);
        if (r < 0)
                return r;
        return begin(m, d, tables, (WatchSpec) {
                .since = since > 0 ? since : WATCH_SINCE_NOW,
                .waits = true,
                .until_usec = deadline_after(options.timeout_usec),
        }, &options, refusal);
}

int watch_bus_unwatch(sd_bus_message *m, Database *d, Refusal *refusal) {
        uint64_t number;
        Options options;
        Watch *w;
        int r = sd_bus_message_read_basic(m, 't', &number);

        if (r >= 0)
                r = options_read(m, 0, &options, refusal);
        if (r >= 0)
                r = watch_find(d->context, peer_of(d->context, m), d, number, &w, refusal);
        if (r < 0)
                return r;
        watch_end(w, ERROR_CANCELLED, "The watch was ended.");
        return sd_bus_reply_method_return(m, "a{sv}", 0);
}
