/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * org.sqlipc1.Database on the bus: unpack, call, reply. Supervisor. The XML documents each method.
 *
 * A method that needs a worker is answered later, by one of the reply_... functions at STARTED, by its RowReader, or by the
 * code that ends its run.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/supervisor/access/listing.h"
#include "daemon/supervisor/access/pacing.h"
#include "daemon/supervisor/access/policy.h"
#include "daemon/supervisor/base/database.h"
#include "daemon/supervisor/base/sd-autoptr.h"
#include "daemon/supervisor/base/try-bytes.h"
#include "daemon/supervisor/bus/database-bus.h"
#include "daemon/supervisor/bus/limits-bus.h"
#include "daemon/supervisor/bus/watch-bus.h"
#include "daemon/supervisor/calls/bus-error.h"
#include "daemon/supervisor/calls/options.h"
#include "daemon/supervisor/calls/parameters.h"
#include "daemon/supervisor/calls/rows.h"
#include "daemon/supervisor/runs/channel.h"
#include "daemon/supervisor/runs/pipe.h"
#include "daemon/supervisor/runs/placement.h"
#include "daemon/supervisor/runs/run-access.h"
#include "daemon/supervisor/runs/run-spec.h"
#include "daemon/supervisor/runs/session.h"
#include "daemon/supervisor/runs/shared-memory.h"
#include "daemon/supervisor/runs/sql-text.h"
#include "daemon/supervisor/runs/statement-array.h"
#include "daemon/supervisor/runs/statement.h"
#include "daemon/supervisor/workers/worker.h"
#include "dbus-interfaces/sqlipc-names.h"

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Parameters, parameters_done)
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(ArgumentFile, argument_file_done)

/* ---- Replies ---- */

/* Every client reads version 1, so the version that a client offers need not be kept until the reply. */
static_assert(SQLIPC_PAGE_VERSION == 1, "a second version is chosen per statement and run: keep what the client offered");

/* Appends the size and version of the service's pages. */
static int append_pages(sd_bus_message *m, uint32_t page_size) {
        int r = sd_bus_message_append(m, "{sv}", "page-size", "u", page_size);

        return r < 0 ? r : sd_bus_message_append(m, "{sv}", "page-version", "u", (uint32_t) SQLIPC_PAGE_VERSION);
}

/* `is_early`: the run is not known to have started. */
static int append_info(Reply *reply, const Started *started, uint32_t page_size, bool is_early) {
        sd_bus_message *m = reply->message;
        int r = sd_bus_message_open_container(m, 'a', "{sv}");

        if (r >= 0)
                r = rows_append_parameters(reply, started);
        if (r >= 0)
                r = sd_bus_message_append(m, "{sv}", "readonly", "b", started->read_only);
        if (r >= 0 && page_size > 0)
                r = append_pages(m, page_size);
        if (r >= 0 && is_early)
                r = sd_bus_message_append(m, "{sv}", "started", "b", false);
        return r < 0 ? r : sd_bus_message_close_container(m);
}

/* Replies number, [pipe,] columns, info. `pipe` NULL and `page_size` 0: the reply has no pipe. */
static int reply_described(Run *run, uint32_t page_size, Pipe *pipe, const Started *started) {
        g_auto(Reply) reply = REPLY_INIT;
        int r = reply_new(run->call, &reply);

        if (r >= 0)
                r = sd_bus_message_append(reply.message, "t", run->number);
        if (r >= 0 && pipe)
                r = sd_bus_message_append(reply.message, "h", pipe->read_fd);
        if (r >= 0)
                r = rows_append_columns_of_statement(&reply, started);
        if (r >= 0)
                r = append_info(&reply, started, page_size, run->state < RUN_STARTED);
        if (r >= 0)
                r = reply_send(&reply);
        pacing_charge(run->user, reply.size);
        if (pipe)
                pipe_close_read_fd(pipe); /* the message has its own copy */
        return r;
}

static int reply_prepare(Run *run, const Started *started) {
        return reply_described(run, run->statement->page_size, run->statement->pipe, started);
}

static int reply_query(Run *run, const Started *started) {
        return reply_described(run, run->page_size, run->pipe, started);
}

static int reply_open_rows(Run *run, const Started *started) {
        return reply_described(run, 0, NULL, started);
}

static int reply_fetch(Run *run, const Started *started) {
        return sd_bus_reply_method_return(run->call, "ta{sv}", run->number, 0);
}

/* 0: it is not known. */
static int append_sequence(sd_bus_message *m, uint64_t sequence) {
        return sequence > 0 ? sd_bus_message_append(m, "{sv}", "sequence", "t", sequence) : 0;
}

/* The setting that a PRAGMA has made. */
static int append_setting(sd_bus_message *m, uint64_t foreign_keys) {
        if (foreign_keys == FOREIGN_KEYS_CONFIGURED)
                return 0;
        return sd_bus_message_append(m, "{sv}", "foreign-keys", "b", foreign_keys == FOREIGN_KEYS_ON);
}

/* `wrote` is false if the statement changes no table, for instance a PRAGMA. */
static int reply_execute(Run *run, const Ended *ended) {
        g_autoptr(sd_bus_message) reply = NULL;
        int r = sd_bus_message_new_method_return(run->call, &reply);

        if (r >= 0)
                r = sd_bus_message_append(reply, "x", ended->wrote ? ended->n_changes : INT64_C(0));
        if (r >= 0)
                r = sd_bus_message_open_container(reply, 'a', "{sv}");
        if (r >= 0)
                r = sd_bus_message_append(reply, "{sv}", "usec", "t", ended->usec);
        if (r >= 0 && ended->wrote)
                r = sd_bus_message_append(reply, "{sv}", "last-rowid", "x", ended->last_rowid);
        if (r >= 0)
                r = append_sequence(reply, ended->sequence);
        if (r >= 0)
                r = append_setting(reply, ended->foreign_keys);
        if (r >= 0)
                r = sd_bus_message_close_container(reply);
        return r < 0 ? r : sd_bus_send(NULL, reply, NULL);
}

static int append_changes(sd_bus_message *reply, const Bytes *changes) {
        int r = sd_bus_message_open_container(reply, 'a', "x");

        for (size_t i = 0; i < changes->size && r >= 0; i += sizeof(int64_t))
                r = sd_bus_message_append(reply, "x", (int64_t) load_le64((const uint8_t *) changes->data + i));
        return r < 0 ? r : sd_bus_message_close_container(reply);
}

static int reply_execute_batch(Run *run, const Ended *ended) {
        g_autoptr(sd_bus_message) reply = NULL;
        int r = sd_bus_message_new_method_return(run->call, &reply);

        if (r >= 0)
                r = append_changes(reply, &ended->changes);
        if (r >= 0)
                r = sd_bus_message_open_container(reply, 'a', "{sv}");
        if (r >= 0)
                r = sd_bus_message_append(reply, "{sv}{sv}{sv}", "usec", "t", ended->usec, "total-changes", "x",
                                          ended->n_changes, "last-rowid", "x", ended->last_rowid);
        if (r >= 0)
                r = append_sequence(reply, ended->sequence);
        if (r >= 0)
                r = sd_bus_message_close_container(reply);
        return r < 0 ? r : sd_bus_send(NULL, reply, NULL);
}

static int reply_begin(Run *run, const Started *started) {
        return sd_bus_reply_method_return(run->call, "ta{sv}", run->number, 0);
}

/* Commit and Rollback. */
static int reply_transaction_ended(Run *run, const Ended *ended) {
        if (ended->sequence == 0)
                return sd_bus_reply_method_return(run->call, "a{sv}", 1, "usec", "t", ended->usec);
        return sd_bus_reply_method_return(run->call, "a{sv}", 2, "usec", "t", ended->usec, "sequence", "t", ended->sequence);
}

static int reply_load(Run *run, const Started *started) {
        g_auto(Reply) reply = REPLY_INIT;
        int r = reply_new(run->call, &reply);

        if (r >= 0)
                r = sd_bus_message_append(reply.message, "th", run->number, run->pipe->read_fd);
        if (r >= 0)
                r = append_info(&reply, started, run->page_size, false);
        if (r >= 0)
                r = reply_send(&reply);
        pacing_charge(run->user, reply.size);
        pipe_close_read_fd(run->pipe); /* the client's end: the message has its own copy */
        return r;
}

static int reply_wait(Run *run, const Ended *ended) {
        g_autoptr(sd_bus_message) reply = NULL;
        int r = sd_bus_message_new_method_return(run->call, &reply);

        if (r >= 0)
                r = sd_bus_message_append(reply, "x", ended->n_changes);
        if (r >= 0)
                r = sd_bus_message_open_container(reply, 'a', "{sv}");
        if (r >= 0)
                r = sd_bus_message_append(reply, "{sv}{sv}", "rows", "t", ended->n_rows, "usec", "t", ended->usec);
        if (r >= 0)
                r = append_sequence(reply, ended->sequence);
        if (r >= 0)
                r = sd_bus_message_close_container(reply);
        return r < 0 ? r : sd_bus_send(NULL, reply, NULL);
}

/* ---- Methods ---- */

/* Puts what the options say into `spec`, with the transaction and the pin that they name. A statement of a transaction is on
 * its pin. */
static int use_options(sd_bus_message *m, Database *d, const Options *options, RunSpec *spec, Refusal *refusal) {
        const Peer *peer = peer_of(d->context, m);
        Run *transaction = NULL, *pin = NULL;
        int r = 0;

        if (options->transaction > 0)
                r = run_access_find_transaction(d->context, peer, d, options->transaction, &transaction, refusal);
        else if (options->pin > 0)
                r = run_access_find_pin(d->context, peer, d, options->pin, &pin, refusal);
        spec->transaction = transaction;
        spec->pin = pin;
        spec->timeout_usec = options->timeout_usec;
        spec->lock_wait_usec = options->lock_wait_usec;
        spec->foreign_keys = options_foreign_keys(options);
        spec->time_zone = options->time_zone;
        spec->error_details = options->error_details;
        return r;
}

/* ExecuteBatch and Load: TEMP tables may be changed by a client who may only read. */
static int check_may_write(sd_bus_message *m, const Database *d, const RunSpec *spec, Refusal *refusal) {
        bool has_temp = spec->pin || (spec->transaction && spec->transaction->pin > 0);

        return has_temp || policy_may_write(d->context, peer_of(d->context, m), d) ? 0 : policy_refuse_write(d, refusal);
}

static int prepare(sd_bus_message *m, Database *d, Refusal *refusal) {
        g_autoptr(Statement) statement = NULL;
        RunSpec spec = { .kind = RUN_PREPARE, .database = d, .call = m, .on_started = reply_prepare };
        const char *sql;
        Options options;
        Run *run;
        int r = sd_bus_message_read_basic(m, 's', &sql);

        if (r < 0)
                return r;
        r = options_read(m, OPTION_PAGES | OPTION_ERROR_DETAILS | OPTION_CACHED | OPTION_PIN | OPTION_LOCK_WAIT_OF_RUN,
                         &options, refusal);
        if (r >= 0)
                r = use_options(m, d, &options, &spec, refusal);
        if (r < 0)
                return r;
        Session *session = session_get(d->context, peer_of(d->context, m));
        r = statement_new(session, d, sql, options.page_size, options.cached, &statement, refusal);
        if (r < 0)
                return r;
        spec.statement = statement;
        spec.sql = statement->sql;
        r = run_spec_make(session, spec, &run, refusal);
        if (r < 0)
                return r;
        (void) g_steal_pointer(&statement);
        run_submit(run);
        return 1;
}

/* Finds the statement, if its next run can start now. */
static int find_ready(sd_bus_message *m, Database *d, uint64_t number, Statement **ret, Refusal *refusal) {
        const Peer *peer = peer_of(d->context, m);
        int r = statement_find(d->context, peer, d, number, ret, refusal);

        if (r < 0)
                return r;
        /* The worker reports the end of a run before it writes END, but its message may not have been read yet. */
        if ((*ret)->run && (*ret)->run->worker) {
                worker_process((*ret)->run->worker);
                r = statement_find(d->context, peer, d, number, ret, refusal);
                if (r < 0)
                        return r;
        }
        if ((*ret)->state == STATEMENT_LOST)
                return refuse(refusal, ERROR_WORKER_LOST,
                              "The worker process that ran this statement was lost: finalize and prepare it again.");
        if ((*ret)->run)
                return refuse(refusal, ERROR_BUSY,
                              "The last run of this statement has not ended: read its pipe up to END or ERROR.");
        if (pipe_is_closed((*ret)->pipe))
                return refuse(refusal, ERROR_PIPE_CLOSED,
                              "The read end of this statement's pipe is closed: finalize and prepare it again.");
        return 0;
}

/* Takes the file of the option "arguments". Without parameters in the call their row is there. */
static int take_file(const Options *options, const Parameters *parameters, ArgumentFile *ret, Refusal *refusal) {
        if (options->arguments_fd >= 0 && parameters && parameters->n_positional + parameters->n_named > 0)
                return refuse(refusal, ERROR_INVALID_OPTION,
                              "Option \"arguments\": the file has the parameters, so the call must have none.");
        return argument_file_take(options->arguments_fd, ret, refusal);
}

static int fetch(sd_bus_message *m, Database *d, Refusal *refusal) {
        g_auto(Parameters) parameters = PARAMETERS_INIT;
        g_auto(ArgumentFile) file = ARGUMENT_FILE_INIT;
        Statement *statement;
        uint64_t number;
        Options options;
        RunSpec spec;
        Run *run;
        int r = sd_bus_message_read_basic(m, 't', &number);

        if (r < 0)
                return r;
        r = find_ready(m, d, number, &statement, refusal);
        if (r < 0)
                return r;
        r = parameters_read(m, &parameters, refusal);
        if (r < 0)
                return r;
        r = options_read(m, OPTION_ARGUMENTS | OPTIONS_OF_RUNS, &options, refusal);
        if (r < 0)
                return r;
        spec = (RunSpec) {
                .kind = RUN_FETCH,
                .statement = statement,
                .database = d,
                .sql = statement->sql,
                .pipe = statement->pipe,
                .parameters = &parameters,
                .file = &file,
                .call = m,
                .on_started = reply_fetch,
                .page_size = statement->page_size,
        };
        r = use_options(m, d, &options, &spec, refusal);
        if (r >= 0)
                r = take_file(&options, &parameters, &file, refusal);
        if (r >= 0)
                r = run_spec_make(statement->session, spec, &run, refusal);
        if (r < 0)
                return r;
        statement->n_runs++;
        statement->last_run = run->number;
        run_submit(run);
        return 1;
}

/* The common part of Query, QueryRows, OpenRows and Execute: reads SQL and parameters, and makes a run with its own pipe, of
 * which Execute has none. `allowed`: OptionKeys in addition to those that all of them accept. */
static int new_one_shot(sd_bus_message *m, Database *d, RunSpec spec, unsigned allowed, Options *ret_options, Run **ret,
                        Refusal *refusal) {
        g_auto(Parameters) parameters = PARAMETERS_INIT;
        g_auto(ArgumentFile) file = ARGUMENT_FILE_INIT;
        g_autoptr(GBytes) bytes = NULL;
        g_autoptr(Pipe) pipe = NULL;
        const char *sql;
        size_t size;
        int r = sd_bus_message_read_basic(m, 's', &sql);

        if (r < 0)
                return r;
        /* The bus bounds the calls whose reply is outstanding. Calls without a reply are not bounded, so a flood of them
         * must not start queries. */
        if (sd_bus_message_get_expect_reply(m) <= 0)
                return refuse(refusal, ERROR_CANCELLED, "The call wants no reply, so no client would get the result.");
        Session *session = session_get(d->context, peer_of(d->context, m));
        r = sql_text_check(session->user, d, sql, &size, refusal);
        if (r < 0)
                return r;
        r = parameters_read(m, &parameters, refusal);
        if (r < 0)
                return r;
        r = options_read(m, allowed | OPTION_ARGUMENTS | OPTIONS_OF_RUNS, ret_options, refusal);
        if (r < 0)
                return r;
        r = use_options(m, d, ret_options, &spec, refusal);
        if (r >= 0)
                r = take_file(ret_options, &parameters, &file, refusal);
        if (r < 0)
                return r;
        r = spec.kind == RUN_EXECUTE ? 0 : pipe_new(session->user, true, &pipe, refusal);
        if (r < 0)
                return r;
        spec.database = d;
        spec.sql = bytes = try_bytes(sql, size);
        if (!bytes)
                return -ENOMEM;
        spec.pipe = pipe;
        spec.parameters = &parameters;
        spec.file = &file;
        spec.answers_at_once = !ret_options->describe;
        if (spec.page_size == 0)
                spec.page_size = ret_options->page_size;
        return run_spec_make(session, spec, ret, refusal);
}

static int query(sd_bus_message *m, Database *d, Refusal *refusal) {
        RunSpec spec = { .kind = RUN_QUERY, .call = m, .on_started = reply_query };
        Options options;
        Run *run;
        int r = new_one_shot(m, d, spec, OPTION_PAGES | OPTION_DESCRIBE, &options, &run, refusal);

        if (r < 0)
                return r;
        run_submit(run);
        return 1;
}

static int add_reader(Run *run, bool one_shot) {
        int r = run_add_reader(run, one_shot);

        if (r < 0)
                run_free(run);
        return r;
}

static int query_rows(sd_bus_message *m, Database *d, Refusal *refusal) {
        RunSpec spec = { .kind = RUN_ROWS, .page_size = ROW_READER_PAGE_SIZE };
        Options options;
        Run *run;
        int r = new_one_shot(m, d, spec, OPTION_MAX_BYTES, &options, &run, refusal);

        if (r < 0)
                return r;
        r = add_reader(run, true);
        if (r < 0)
                return r;
        r = row_reader_wait(run->reader, m, options.max_bytes);
        if (r < 0) {
                run_free(run);
                return r;
        }
        run_submit(run);
        return 1;
}

static int open_rows(sd_bus_message *m, Database *d, Refusal *refusal) {
        RunSpec spec = { .kind = RUN_ROWS, .page_size = ROW_READER_PAGE_SIZE, .call = m, .on_started = reply_open_rows };
        Options options;
        Run *run;
        int r = new_one_shot(m, d, spec, 0, &options, &run, refusal);

        if (r < 0)
                return r;
        r = add_reader(run, false);
        if (r < 0)
                return r;
        run_submit(run);
        return 1;
}

/* A statement of SQLite that has nothing to do needs no right to write, so the worker refuses the others. */
static int execute(sd_bus_message *m, Database *d, Refusal *refusal) {
        RunSpec spec = { .kind = RUN_EXECUTE, .call = m, .on_ended = reply_execute };
        Options options;
        Run *run;

        if (d->config->engine != ENGINE_KIND_SQLITE && !policy_may_write(d->context, peer_of(d->context, m), d))
                return policy_refuse_write(d, refusal);
        int r = new_one_shot(m, d, spec, 0, &options, &run, refusal);
        if (r < 0)
                return r;
        run_submit(run);
        return 1;
}

/* Reads the call: its SQL goes into `ret_bytes`, its options into `spec`. */
static int read_load(sd_bus_message *m, Database *d, RunSpec *spec, GBytes **ret_bytes, ArgumentFile *ret_file,
                     Refusal *refusal) {
        const Session *session;
        const char *sql;
        Options options;
        size_t size;
        int r = sd_bus_message_read_basic(m, 's', &sql);

        if (r >= 0)
                r = options_read(m, OPTION_PAGES | OPTION_ARGUMENTS | OPTIONS_OF_RUNS, &options, refusal);
        if (r < 0)
                return r;
        if (sd_bus_message_get_expect_reply(m) <= 0)
                return refuse(refusal, ERROR_CANCELLED, "The call wants no reply, so no client would get the pipe.");
        r = use_options(m, d, &options, spec, refusal);
        if (r >= 0)
                r = check_may_write(m, d, spec, refusal);
        if (r < 0)
                return r;
        session = session_get(d->context, peer_of(d->context, m));
        r = sql_text_check(session->user, d, sql, &size, refusal);
        if (r >= 0)
                r = argument_file_take(options.arguments_fd, ret_file, refusal);
        if (r < 0)
                return r;
        spec->page_size = options.page_size;
        *ret_bytes = try_bytes(sql, size);
        return *ret_bytes ? 0 : -ENOMEM;
}

static int load(sd_bus_message *m, Database *d, Refusal *refusal) {
        g_auto(ArgumentFile) file = ARGUMENT_FILE_INIT;
        RunSpec spec = { .kind = RUN_LOAD, .database = d, .file = &file, .call = m, .on_started = reply_load };
        g_autoptr(GBytes) bytes = NULL;
        g_autoptr(Pipe) pipe = NULL;
        Session *session;
        Run *run;
        int r = read_load(m, d, &spec, &bytes, &file, refusal);

        if (r < 0)
                return r;
        session = session_get(d->context, peer_of(d->context, m));
        r = pipe_new_inward(session->user, &pipe, refusal);
        if (r < 0)
                return r;
        spec.sql = bytes;
        spec.pipe = pipe;
        r = run_spec_make(session, spec, &run, refusal);
        if (r < 0)
                return r;
        run_submit(run);
        return 1;
}

static int wait_for_load(sd_bus_message *m, Database *d, Refusal *refusal) {
        uint64_t number;
        Options options;
        Run *run;
        int r = sd_bus_message_read_basic(m, 't', &number);

        if (r >= 0)
                r = options_read(m, OPTION_ERROR_DETAILS, &options, refusal);
        if (r >= 0)
                r = run_access_find(d->context, peer_of(d->context, m), d, number, &run, refusal);
        if (r < 0)
                return r;
        if (run->kind != RUN_LOAD || run->state < RUN_STARTED)
                return refuse(refusal, ERROR_UNKNOWN_RUN, "Run %" PRIu64 " is not a load.", number);
        run->error_details = options.error_details;
        r = run_wait(run, m, reply_wait, refusal);
        return r < 0 ? r : 1;
}

/* Reads the arguments of ExecuteBatch, and makes its run. */
static int new_batch(sd_bus_message *m, Database *d, Run **ret, Refusal *refusal) {
        g_auto(StatementList) list = STATEMENT_LIST_INIT;
        g_auto(ArgumentFile) file = ARGUMENT_FILE_INIT;
        g_autoptr(GBytes) first = NULL;
        Session *session = session_get(d->context, peer_of(d->context, m));
        RunSpec spec = { .kind = RUN_EXECUTE, .database = d, .list = &list, .file = &file, .is_batch = true, .call = m,
                         .on_ended = reply_execute_batch };
        Options options;
        int r = statement_array_read(m, session->user, d, &list, refusal);

        if (r >= 0)
                r = options_read(m, OPTION_ARGUMENTS | OPTIONS_OF_RUNS, &options, refusal);
        if (r >= 0)
                r = use_options(m, d, &options, &spec, refusal);
        if (r >= 0)
                r = check_may_write(m, d, &spec, refusal);
        if (r >= 0 && list.n > 0 && options.arguments_fd >= 0)
                r = refuse(refusal, ERROR_INVALID_OPTION,
                           "Option \"arguments\": the file has the statements, so the call must have none.");
        else if (r >= 0 && list.n == 0 && options.arguments_fd < 0)
                r = refuse(refusal, ERROR_EMPTY_STATEMENT, "The batch has no statement.");
        if (r >= 0)
                r = argument_file_take(options.arguments_fd, &file, refusal);
        if (r < 0)
                return r;
        spec.sql = first = list.n > 0 ? statement_array_first(&list) : g_bytes_new_static("", 0);
        if (!first)
                return -ENOMEM;
        return run_spec_make(session, spec, ret, refusal);
}

static int execute_batch(sd_bus_message *m, Database *d, Refusal *refusal) {
        Run *run;

        if (sd_bus_message_get_expect_reply(m) <= 0)
                return refuse(refusal, ERROR_CANCELLED, "The call wants no reply, so no client would get the result.");
        int r = new_batch(m, d, &run, refusal);
        if (r < 0)
                return r;
        run_submit(run);
        return 1;
}

static int read_mode(const Options *options, RunSpec *spec, Refusal *refusal) {
        spec->is_pin = g_strcmp0(options->mode, "pin") == 0;
        if (options->transaction > 0 && !spec->is_pin)
                return refuse(refusal, ERROR_INVALID_OPTION, "Only a pin is made of a transaction: give the mode \"pin\".");
        if (spec->is_pin)
                return options->pin == 0 ? 0 : refuse(refusal, ERROR_INVALID_OPTION, "A pin is on no other one.");
        spec->deferred = g_strcmp0(options->mode, "deferred") == 0;
        spec->writes = spec->deferred || g_strcmp0(options->mode, "write") == 0;
        if (!spec->writes && g_strcmp0(options->mode, "read") != 0)
                return refuse(refusal, ERROR_INVALID_OPTION,
                              "Give the option \"mode\": \"read\", \"write\", \"deferred\" or \"pin\".");
        return 0;
}

/* A deferred transaction of a caller who may not write reads, and only its statements that write are refused. The worker of
 * a pin does not write if its client got the right to do so after the pin was begun. */
static int check_mode(sd_bus_message *m, const Database *d, RunSpec *spec, Refusal *refusal) {
        bool may_write = policy_may_write(d->context, peer_of(d->context, m), d);

        if (!spec->writes || (may_write && (!spec->pin || spec->pin->group->writes)))
                return 0;
        spec->writes = false;
        if (spec->deferred)
                return 0;
        return !may_write ? policy_refuse_write(d, refusal)
                          : refuse(refusal, ERROR_READ_ONLY,
                                   "Your connection with TEMP tables was begun when you were allowed only to read this "
                                   "database: end it, and begin another one.");
}

static int begin(sd_bus_message *m, Database *d, Refusal *refusal) {
        RunSpec spec = {
                .kind = RUN_TRANSACTION,
                .database = d,
                .call = m,
                .on_started = reply_begin,
        };
        Options options;
        Run *run;
        int r = options_read(m, OPTIONS_OF_BEGIN, &options, refusal);

        if (r < 0)
                return r;
        if (sd_bus_message_get_expect_reply(m) <= 0)
                return refuse(refusal, ERROR_CANCELLED, "The call wants no reply, so no client would get the transaction.");
        r = read_mode(&options, &spec, refusal);
        if (r >= 0)
                r = use_options(m, d, &options, &spec, refusal);
        if (r >= 0)
                r = check_mode(m, d, &spec, refusal);
        if (r < 0)
                return r;
        r = run_spec_make(session_get(d->context, peer_of(d->context, m)), spec, &run, refusal);
        if (r < 0)
                return r;
        run_submit(run);
        return 1;
}

/* Commit and Rollback. */
static int end_transaction(sd_bus_message *m, Database *d, bool commits, Refusal *refusal) {
        uint64_t number;
        Options options;
        Run *run;
        int r = sd_bus_message_read_basic(m, 't', &number);

        if (r < 0)
                return r;
        r = options_read(m, OPTION_ERROR_DETAILS | (commits ? OPTION_KEEPS_OPEN : 0), &options, refusal);
        if (r < 0)
                return r;
        const Peer *peer = peer_of(d->context, m);
        run = g_hash_table_lookup(d->context->runs, &number);
        bool is_own_pin = run && run->is_pin && !commits && run->session && strcmp(run->session->name, peer->name) == 0;
        r = is_own_pin
                    ? run_access_find_pin(d->context, peer, d, number, &run, refusal)
                    : run_access_find_transaction(d->context, peer, d, number, &run, refusal);
        if (r < 0)
                return r;
        if (!run->call) /* else another call waits, and this one is refused */
                run->error_details = options.error_details;
        r = commits ? run_commit(run, m, options.keeps_open, reply_transaction_ended, refusal)
                    : run_rollback(run, m, reply_transaction_ended, refusal);
        return r < 0 ? r : 1;
}

static int commit(sd_bus_message *m, Database *d, Refusal *refusal) {
        return end_transaction(m, d, true, refusal);
}

static int rollback(sd_bus_message *m, Database *d, Refusal *refusal) {
        return end_transaction(m, d, false, refusal);
}

static int next_rows(sd_bus_message *m, Database *d, Refusal *refusal) {
        uint64_t number;
        Options options;
        Run *run;
        int r = sd_bus_message_read_basic(m, 't', &number);

        if (r < 0)
                return r;
        r = options_read(m, OPTION_MAX_BYTES, &options, refusal);
        if (r < 0)
                return r;
        r = run_access_find(d->context, peer_of(d->context, m), d, number, &run, refusal);
        if (r < 0)
                return r;
        if (!run->reader || run->reader->spec.one_shot)
                return refuse(refusal, ERROR_UNKNOWN_RUN,
                              "Run %" PRIu64 " was not opened by OpenRows; its rows come down its pipe.", number);
        if (run->reader->call)
                return refuse(refusal, ERROR_BUSY, "Another NextRows of this run waits for rows: let it be answered first.");
        r = row_reader_serve(run->reader, m, options.max_bytes);
        return r < 0 ? r : 1;
}

/* True if a statement of the peer on this database has this number as its last run: the run was the peer's own, and has
 * ended. */
static bool was_last_run(const Database *d, const Peer *p, uint64_t number) {
        const Session *session = g_hash_table_lookup(d->context->sessions, p->name);

        if (number == 0) /* like the last_run of a statement that never ran */
                return false;
        for (GList *i = session ? session->statements.head : NULL; i; i = i->next) {
                const Statement *s = i->data;

                if (s->last_run == number && strcmp(database_name(s->database), database_name(d)) == 0)
                        return true;
        }
        return false;
}

/* Of a run that is cancelled by its number. Usually no reader reads the pipe of OpenRows to the end. But a NextRows that
 * waits for a statement that writes, and is not committed, is answered with its end. */
static RunEndReason reason_to_end(const Run *run) {
        bool answers = run->writes && !run->committing && run_is_under_way(run) && run->reader && run->reader->call;

        return run->kind == RUN_ROWS && !answers ? RUN_END_CLIENT_GONE : RUN_END_CANCELLED;
}

/* Of a run that is cancelled by the serial of its call. If that was answered, its client gives the run up without the
 * answer: it has no use for the result of a load, which would be kept for Wait, and asks for no rows. But it asks how a
 * statement that writes has ended. */
static RunEndReason reason_to_end_call(const Run *run) {
        bool is_answered = !run->call && !(run->reader && run->reader->call);
        bool is_unread = run->kind == RUN_TRANSACTION || run->kind == RUN_LOAD || (run->kind == RUN_ROWS && !run->writes);

        return is_answered && is_unread ? RUN_END_CLIENT_GONE : RUN_END_CANCELLED;
}

static int cancel(sd_bus_message *m, Database *d, Refusal *refusal) {
        static const char sentence[] = "The query was cancelled.";
        const Peer *peer = peer_of(d->context, m);
        uint64_t number;
        Options options;
        Run *run;
        int r = sd_bus_message_read_basic(m, 't', &number);

        if (r < 0)
                return r;
        r = options_read(m, OPTION_CALL, &options, refusal);
        if (r < 0)
                return r;
        r = options.call > 0 ? run_access_find_call(d->context, peer, d, options.call, &run, refusal)
                             : run_access_find(d->context, peer, d, number, &run, refusal);
        if (r < 0 && (options.call > 0 || !was_last_run(d, peer, number)))
                return r;
        if (r >= 0)
                run_end(run, options.call > 0 ? reason_to_end_call(run) : reason_to_end(run), ERROR_CANCELLED, sentence);
        refusal_done(refusal);
        return sd_bus_reply_method_return(m, "a{sv}", 0);
}

static int finalize(sd_bus_message *m, Database *d, Refusal *refusal) {
        Statement *statement;
        uint64_t number;
        Options options;
        int r = sd_bus_message_read_basic(m, 't', &number);

        if (r < 0)
                return r;
        r = options_read(m, 0, &options, refusal);
        if (r < 0)
                return r;
        r = statement_find(d->context, peer_of(d->context, m), d, number, &statement, refusal);
        if (r < 0)
                return r;
        bool lost = statement->state == STATEMENT_LOST;
        (void) statement_free(statement);
        if (lost)
                return refuse(refusal, ERROR_WORKER_LOST,
                              "The worker process that ran this statement was lost; it is finalized all the same.");
        return sd_bus_reply_method_return(m, "a{sv}", 0);
}

static int reply_channel(sd_bus_message *m, const Channel *c, int fd) {
        g_autoptr(sd_bus_message) reply = NULL;
        int r = sd_bus_message_new_method_return(m, &reply);

        if (r >= 0)
                r = sd_bus_message_append(reply, "h", fd);
        if (r >= 0)
                r = sd_bus_message_open_container(reply, 'a', "{sv}");
        if (r >= 0)
                r = append_pages(reply, c->page_size);
        if (r >= 0)
                r = sd_bus_message_append(reply, "{sv}{sv}", "readonly", "b", !c->group->writes, "time-zone", "b", true);
        if (r >= 0)
                r = sd_bus_message_append(reply, "{sv}", "lock-wait", "b", true);
        if (r >= 0 && c->memory)
                r = sd_bus_message_append(reply, "{sv}", "memory", "h", shared_memory_fd(c->memory));
        if (r >= 0 && placement_allows_guests(c->group))
                r = sd_bus_message_append(reply, "{sv}", "channels-left", "u", quota_channels_left(c->user, c->database));
        if (r >= 0)
                r = sd_bus_message_close_container(reply);
        return r < 0 ? r : sd_bus_send(NULL, reply, NULL);
}

static int open_channel(sd_bus_message *m, Database *d, Refusal *refusal) {
        Options options;
        Channel *c;
        int fd, r = options_read(m, OPTION_PAGES | OPTION_MEMORY | OPTION_CACHED, &options, refusal);

        if (r < 0)
                return r;
        if (sd_bus_message_get_expect_reply(m) <= 0)
                return refuse(refusal, ERROR_CANCELLED, "The call wants no reply, so no client would get the channel.");
        Session *session = session_get(d->context, peer_of(d->context, m));
        r = channel_new(session, d, options.page_size, options.memory, options.cached, &c, &fd, refusal);
        if (r < 0)
                return r;
        r = reply_channel(m, c, fd);
        placement_hurry(c);
        close(fd); /* the message has its own copy; if it has none, the channel notices that its client is gone */
        if (r == -EMFILE || r == -ENFILE)
                return refuse(refusal, ERROR_LIMITS_EXCEEDED,
                              "The service has no descriptor left for your channel; try again later.");
        return r;
}

BUS_METHOD(prepare)
BUS_METHOD(fetch)
BUS_METHOD(query)
BUS_METHOD(query_rows)
BUS_METHOD(open_rows)
BUS_METHOD(execute)
BUS_METHOD(execute_batch)
BUS_METHOD(load)
BUS_METHOD(wait_for_load)
BUS_METHOD(begin)
BUS_METHOD(commit)
BUS_METHOD(rollback)
BUS_METHOD(next_rows)
BUS_METHOD(cancel)
BUS_METHOD(finalize)
BUS_METHOD(open_channel)

static int watch(sd_bus_message *m, Database *d, Refusal *refusal) {
        return watch_bus_watch(m, d, refusal);
}

static int unwatch(sd_bus_message *m, Database *d, Refusal *refusal) {
        return watch_bus_unwatch(m, d, refusal);
}

static int wait_change(sd_bus_message *m, Database *d, Refusal *refusal) {
        return watch_bus_wait_change(m, d, refusal);
}

BUS_METHOD(watch)
BUS_METHOD(unwatch)
BUS_METHOD(wait_change)

/* ---- Properties ---- */

static int property_name(sd_bus *bus, const char *path, const char *interface, const char *property,
                         sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        return sd_bus_message_append(reply, "s", database_name(userdata));
}

static int property_description(sd_bus *bus, const char *path, const char *interface, const char *property,
                                sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        const Database *d = userdata;

        return sd_bus_message_append(reply, "s", d->config->description);
}

static int property_mode(sd_bus *bus, const char *path, const char *interface, const char *property,
                         sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        const Database *d = userdata;

        return sd_bus_message_append(reply, "s", d->config->mode);
}

static int property_engine(sd_bus *bus, const char *path, const char *interface, const char *property,
                           sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        const Database *d = userdata;

        return sd_bus_message_append(reply, "s", engine_kind_name(d->config->engine));
}

static int property_limits(sd_bus *bus, const char *path, const char *interface, const char *property,
                           sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        const Database *d = userdata;
        g_autoptr(User) user = user_get(d->context, peer_of(d->context, sd_bus_get_current_message(bus))->uid);

        return limits_append(reply, user, d);
}

static const sd_bus_vtable database_vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_METHOD_WITH_ARGS("Prepare", SD_BUS_ARGS("s", sql, "a{sv}", options),
                                SD_BUS_RESULT("t", statement, "h", pipe, "a(ssa{sv})", columns, "a{sv}", info),
                                method_prepare,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("Fetch", SD_BUS_ARGS("t", statement, "av", positional, "a{sv}", named, "a{sv}", options),
                                SD_BUS_RESULT("t", run, "a{sv}", info), method_fetch, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("Query", SD_BUS_ARGS("s", sql, "av", positional, "a{sv}", named, "a{sv}", options),
                                SD_BUS_RESULT("t", run, "h", pipe, "a(ssa{sv})", columns, "a{sv}", info), method_query,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("QueryRows", SD_BUS_ARGS("s", sql, "av", positional, "a{sv}", named, "a{sv}", options),
                                SD_BUS_RESULT("a(ssa{sv})", columns, "aav", rows, "a{sv}", info), method_query_rows,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("OpenRows", SD_BUS_ARGS("s", sql, "av", positional, "a{sv}", named, "a{sv}", options),
                                SD_BUS_RESULT("t", run, "a(ssa{sv})", columns, "a{sv}", info), method_open_rows,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("NextRows", SD_BUS_ARGS("t", run, "a{sv}", options),
                                SD_BUS_RESULT("aav", rows, "b", more, "a{sv}", info),
                                method_next_rows, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("Execute", SD_BUS_ARGS("s", sql, "av", positional, "a{sv}", named, "a{sv}", options),
                                SD_BUS_RESULT("x", changes, "a{sv}", info), method_execute, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("Load", SD_BUS_ARGS("s", sql, "a{sv}", options),
                                SD_BUS_RESULT("t", run, "h", pipe, "a{sv}", info), method_load, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("Wait", SD_BUS_ARGS("t", run, "a{sv}", options),
                                SD_BUS_RESULT("x", changes, "a{sv}", info), method_wait_for_load,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("ExecuteBatch", SD_BUS_ARGS("a(sava{sv})", statements, "a{sv}", options),
                                SD_BUS_RESULT("ax", changes, "a{sv}", info), method_execute_batch,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("Begin", SD_BUS_ARGS("a{sv}", options), SD_BUS_RESULT("t", transaction, "a{sv}", info),
                                method_begin, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("Commit", SD_BUS_ARGS("t", transaction, "a{sv}", options), SD_BUS_RESULT("a{sv}", info),
                                method_commit, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("Rollback", SD_BUS_ARGS("t", transaction, "a{sv}", options), SD_BUS_RESULT("a{sv}", info),
                                method_rollback, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("Cancel", SD_BUS_ARGS("t", run, "a{sv}", options), SD_BUS_RESULT("a{sv}", info),
                                method_cancel, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("Finalize", SD_BUS_ARGS("t", statement, "a{sv}", options), SD_BUS_RESULT("a{sv}", info),
                                method_finalize, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("OpenChannel", SD_BUS_ARGS("a{sv}", options), SD_BUS_RESULT("h", channel, "a{sv}", info),
                                method_open_channel, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("Watch", SD_BUS_ARGS("as", tables, "a{sv}", options),
                                SD_BUS_RESULT("t", watch, "h", descriptor, "a{sv}", info), method_watch,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("Unwatch", SD_BUS_ARGS("t", watch, "a{sv}", options), SD_BUS_RESULT("a{sv}", info),
                                method_unwatch, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("WaitChange", SD_BUS_ARGS("as", tables, "t", since, "a{sv}", options),
                                SD_BUS_RESULT("t", sequence, "a{sv}", info), method_wait_change,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_PROPERTY("Name", "s", property_name, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("Description", "s", property_description, 0, 0),
        SD_BUS_PROPERTY("Mode", "s", property_mode, 0, 0),
        SD_BUS_PROPERTY("Engine", "s", property_engine, 0, 0),
        SD_BUS_PROPERTY("Limits", "a{st}", property_limits, 0, 0),
        SD_BUS_VTABLE_END,
};

/* ---- Objects ---- */

/* Returns 0 if the object does not exist, or the caller may not use the database. */
static int find_object(sd_bus *bus, const char *path, const char *interface, void *userdata, void **ret_found,
                       sd_bus_error *error) {
        char *name;
        int r = sd_bus_path_decode(path, SQLIPC_DATABASE_PATH, &name);

        if (r <= 0)
                return r;
        Database *d = policy_find_database(userdata, sd_bus_get_current_message(bus), name);
        free(name);
        if (!d)
                return 0;
        *ret_found = d;
        return 1;
}

/* ---- The tree ---- */

static int begin_tree(Listing *l) {
        static const char head[] =
                "<!DOCTYPE node PUBLIC \"-//freedesktop//DTD D-BUS Object Introspection 1.0//EN\"\n"
                "\"https://www.freedesktop.org/standards/dbus/1.0/introspect.dtd\">\n"
                "<node>\n"
                " <interface name=\"org.freedesktop.DBus.Peer\">\n"
                "  <method name=\"Ping\"/>\n"
                "  <method name=\"GetMachineId\">\n"
                "   <arg type=\"s\" name=\"machine_uuid\" direction=\"out\"/>\n"
                "  </method>\n"
                " </interface>\n"
                " <interface name=\"org.freedesktop.DBus.Introspectable\">\n"
                "  <method name=\"Introspect\">\n"
                "   <arg name=\"xml_data\" type=\"s\" direction=\"out\"/>\n"
                "  </method>\n"
                " </interface>\n"
                " <interface name=\"org.freedesktop.DBus.Properties\">\n"
                "  <method name=\"Get\">\n"
                "   <arg name=\"interface_name\" direction=\"in\" type=\"s\"/>\n"
                "   <arg name=\"property_name\" direction=\"in\" type=\"s\"/>\n"
                "   <arg name=\"value\" direction=\"out\" type=\"v\"/>\n"
                "  </method>\n"
                "  <method name=\"GetAll\">\n"
                "   <arg name=\"interface_name\" direction=\"in\" type=\"s\"/>\n"
                "   <arg name=\"props\" direction=\"out\" type=\"a{sv}\"/>\n"
                "  </method>\n"
                "  <method name=\"Set\">\n"
                "   <arg name=\"interface_name\" direction=\"in\" type=\"s\"/>\n"
                "   <arg name=\"property_name\" direction=\"in\" type=\"s\"/>\n"
                "   <arg name=\"value\" direction=\"in\" type=\"v\"/>\n"
                "  </method>\n"
                "  <signal name=\"PropertiesChanged\">\n"
                "   <arg type=\"s\" name=\"interface_name\"/>\n"
                "   <arg type=\"a{sv}\" name=\"changed_properties\"/>\n"
                "   <arg type=\"as\" name=\"invalidated_properties\"/>\n"
                "  </signal>\n"
                " </interface>\n";

        l->text = g_string_new(head);
        return 0;
}

/* Databases that polkit was not asked about yet are left out; ListDatabases asks and lists them. */
static int add_to_tree(Listing *l, const Database *d, PolicyVerdict view) {
        const char *label = d->object_path + strlen(SQLIPC_DATABASE_PATH "/");

        if (view != POLICY_YES)
                return 0;
        g_string_append(l->text, " <node name=\"");
        g_string_append(l->text, label);
        g_string_append(l->text, "\"/>\n");
        return reply_count(&l->reply, REPLY_VALUE_OVERHEAD + strlen(label));
}

static int end_tree(Listing *l) {
        g_string_append(l->text, "</node>\n");
        return reply_append_string(&l->reply, l->text->str);
}

static int introspect_tree(sd_bus_message *m, Context *context, Refusal *refusal) {
        static const ListingKind tree = { begin_tree, add_to_tree, end_tree };

        return listing_new(context, m, &tree, refusal);
}

BUS_METHOD(introspect_tree)

/* An enumerator of sd-bus would have to give all names at once, and again for each Introspect. */
static int on_tree_call(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        return sd_bus_message_is_method_call(m, "org.freedesktop.DBus.Introspectable", "Introspect") > 0 ?
                       method_introspect_tree(m, userdata, error) : 0;
}

int database_bus_export(Context *context) {
        int r = sd_bus_add_fallback_vtable(context->bus, NULL, SQLIPC_DATABASE_PATH, SQLIPC_DATABASE_INTERFACE,
                                           database_vtable, find_object, context);

        return r < 0 ? r : sd_bus_add_object(context->bus, NULL, SQLIPC_DATABASE_PATH, on_tree_call, context);
}
