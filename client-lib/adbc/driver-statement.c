/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* AdbcStatement (driver-statement.h). ADBC driver. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client-lib/adbc/adbc-error.h"
#include "client-lib/adbc/arrow-struct.h"
#include "client-lib/adbc/cleanup.h"
#include "client-lib/adbc/column-type.h"
#include "client-lib/adbc/driver-statement.h"
#include "client-lib/adbc/sql-need.h"

#define REPLACED "The statement was executed again, or got other SQL, and this result of it was closed"

/* ---- Life ---------------------------------------------------------------------------------------------------------- */

/* The connection's mutex is held, and the caller has another reference on the connection. */
static void unref(DriverStatement *s) {
        if (atomic_fetch_sub(&s->n_refs, 1) > 1)
                return;
        sqlipc_finalize(s->prepared);
        s->rows = bound_rows_free(s->rows);
        arrow_struct_release_stream(&s->bound);
        ingest_target_done(&s->target);
        cancel_slot_done(&s->slot);
        free(s->sql);
        (void) driver_connection_unref(s->connection);
        free(s);
}

AdbcStatusCode driver_statement_new(struct AdbcConnection *connection, struct AdbcStatement *statement,
                                    struct AdbcError *error) {
        DriverConnection *c = connection->private_data;
        AdbcStatusCode status;
        DriverStatement *s;

        status = driver_connection_check(c, false, error);
        if (status != ADBC_STATUS_OK)
                return status;
        s = calloc(1, sizeof *s);
        if (!s)
                return adbc_error_memory(error);
        atomic_init(&s->n_refs, 1);
        s->connection = driver_connection_ref(c);
        driver_connection_lock(c);
        s->settings = c->settings;
        driver_connection_unlock(c);
        cancel_slot_init(&s->slot);
        statement->private_data = s;
        return ADBC_STATUS_OK;
}

static AdbcStatusCode released(struct AdbcError *error) {
        return adbc_error_set(error, ADBC_STATUS_INVALID_STATE, "HY000", "The statement is released");
}

AdbcStatusCode driver_statement_release(struct AdbcStatement *statement, struct AdbcError *error) {
        DriverStatement *s = statement->private_data;
        DriverConnection *c;

        if (!s)
                return released(error);
        c = driver_connection_ref(s->connection);
        driver_connection_lock(c);
        unref(s);
        driver_connection_unlock(c);
        (void) driver_connection_unref(c);
        statement->private_data = NULL;
        return ADBC_STATUS_OK;
}

/* An open result is closed, because the statement changes. */
static void close_result(DriverStatement *s) {
        if (s->stream)
                result_stream_abandon(s->stream, REPLACED);
        s->rows = bound_rows_free(s->rows);
}

/* Returns the statement, with its connection locked; NULL, with an error of ADBC_STATUS_INVALID_STATE, if it is released. */
static DriverStatement *enter(struct AdbcStatement *statement, struct AdbcError *error) {
        DriverStatement *s = statement->private_data;

        if (!s) {
                (void) released(error);
                return NULL;
        }
        driver_connection_lock(s->connection);
        atomic_fetch_add(&s->connection->n_busy, 1);
        return s;
}

static AdbcStatusCode leave(DriverStatement *s, AdbcStatusCode status) {
        atomic_fetch_sub(&s->connection->n_busy, 1);
        driver_connection_unlock(s->connection);
        return status;
}

/* ---- SQL ----------------------------------------------------------------------------------------------------------- */

AdbcStatusCode driver_statement_set_sql(struct AdbcStatement *statement, const char *sql, struct AdbcError *error) {
        _cleanup_free_ char *copy = strdup(sql);
        DriverStatement *s;

        if (!copy)
                return adbc_error_memory(error);
        s = enter(statement, error);
        if (!s)
                return ADBC_STATUS_INVALID_STATE;
        close_result(s);
        s->prepared = sqlipc_finalize(s->prepared);
        ingest_target_done(&s->target);
        free(s->sql);
        s->sql = steal(copy);
        return leave(s, ADBC_STATUS_OK);
}

AdbcStatusCode driver_statement_set_substrait(struct AdbcStatement *statement, const uint8_t *plan, size_t size,
                                              struct AdbcError *error) {
        return adbc_error_set(error, ADBC_STATUS_NOT_IMPLEMENTED, "0A000", "The service takes SQL, not Substrait plans");
}

static AdbcStatusCode check_sql(const DriverStatement *s, struct AdbcError *error) {
        if (!s->sql)
                return adbc_error_set(error, ADBC_STATUS_INVALID_STATE, "HY010", "The statement has no SQL");
        return driver_connection_check(s->connection, true, error);
}

/* Notes before the statement is sent that it gets the connection a pin. */
static AdbcStatusCode note_pin(DriverStatement *s, struct AdbcError *error) {
        DriverConnection *c = s->connection;

        if (sql_need_of(s->sql) == SQL_NEEDS_NO_PIN || driver_connection_add_pin(c, c->catalog) >= 0)
                return ADBC_STATUS_OK;
        return adbc_error_memory(error);
}

/* Prepares the statement unless that was done. `prepared` stays NULL, without an error, if the bus passes no descriptors, or
 * if the SQL may name a table that only the open transaction sees. */
static AdbcStatusCode prepare(DriverStatement *s, struct AdbcError *error) {
        DriverConnection *c = s->connection;
        AdbcStatusCode status;
        int r;

        if (s->prepared)
                return ADBC_STATUS_OK;
        status = driver_connection_has_pin(c, c->catalog) ? driver_connection_check_turn(c, c->catalog, error)
                                                          : note_pin(s, error);
        if (status != ADBC_STATUS_OK)
                return status;
        r = sqlipc_prepare(c->connection, c->catalog, s->sql, &s->prepared);
        if (r == -EOPNOTSUPP || (r < 0 && c->transaction && sqlipc_error_code(c->connection) == SQLIPC_ERROR_SQL))
                return ADBC_STATUS_OK;
        return r < 0 ? adbc_error_connection(error, c->connection, r) : ADBC_STATUS_OK;
}

static AdbcStatusCode need_prepared(DriverStatement *s, struct AdbcError *error) {
        AdbcStatusCode status = prepare(s, error);

        if (status == ADBC_STATUS_OK && !s->prepared)
                status = adbc_error_set(error, ADBC_STATUS_NOT_IMPLEMENTED, "0A000",
                                        "The schema is not known before the statement is executed, because it cannot be "
                                        "prepared on this bus, or in this transaction");
        return status;
}

/* Prepares the statement for the present schema, because tables may have changed since it was prepared. */
static AdbcStatusCode prepare_anew(DriverStatement *s, struct AdbcError *error) {
        s->prepared = sqlipc_finalize(s->prepared);
        return need_prepared(s, error);
}

AdbcStatusCode driver_statement_prepare(struct AdbcStatement *statement, struct AdbcError *error) {
        DriverStatement *s = enter(statement, error);
        AdbcStatusCode status;

        if (!s)
                return ADBC_STATUS_INVALID_STATE;
        status = check_sql(s, error);
        if (status == ADBC_STATUS_OK) {
                close_result(s);
                cancel_slot_enter(&s->slot);
                status = prepare(s, error);
                cancel_slot_leave(&s->slot);
        }
        return leave(s, status);
}

/* ---- Runs ---------------------------------------------------------------------------------------------------------- */

static int bind_value(sqlipc_statement *prepared, unsigned i, const sqlipc_parameter *value) {
        switch (value->type) {
        case SQLIPC_INTEGER:
                return sqlipc_bind_int64(prepared, i, value->integer);
        case SQLIPC_REAL:
                return sqlipc_bind_double(prepared, i, value->real);
        case SQLIPC_TEXT:
                return sqlipc_bind_text(prepared, i, value->bytes, value->size);
        case SQLIPC_BLOB:
                return sqlipc_bind_blob(prepared, i, value->bytes, value->size);
        case SQLIPC_NULL:
                break;
        }
        return sqlipc_bind_null(prepared, i);
}

static AdbcStatusCode count_error(struct AdbcError *error, size_t n, unsigned n_wanted) {
        return adbc_error_set(error, ADBC_STATUS_INVALID_ARGUMENT, "07001",
                              "The statement has %u parameters, and %zu values are "
                              "bound",
                              n_wanted, n);
}

static AdbcStatusCode bind_values(sqlipc_statement *prepared, const sqlipc_parameter *values, size_t n,
                                  struct AdbcError *error) {
        if (n != sqlipc_statement_parameter_count(prepared))
                return count_error(error, n, sqlipc_statement_parameter_count(prepared));
        (void) sqlipc_clear_bindings(prepared);
        for (unsigned i = 0; i < n; i++) {
                unsigned index = values[i].name ? sqlipc_statement_parameter_index(prepared, values[i].name) : i + 1;
                int r;

                if (index == 0)
                        return adbc_error_set(error, ADBC_STATUS_INVALID_ARGUMENT, "07001", "There is no parameter \"%s\"",
                                              values[i].name);
                r = bind_value(prepared, index, &values[i]);
                if (r < 0)
                        return adbc_error_statement(error, prepared, r);
        }
        return ADBC_STATUS_OK;
}

/* With a pin, tables that are written may be TEMP tables, which the first statement may be about to make. */
static StatementEffect effect_of(const DriverStatement *s) {
        if (!s->prepared)
                return STATEMENT_UNKNOWN;
        if (sqlipc_statement_is_readonly(s->prepared))
                return STATEMENT_READS;
        return driver_connection_has_pin(s->connection, s->connection->catalog) ? STATEMENT_WRITES_TEMP : STATEMENT_WRITES;
}

/* Prepares if that is needed, and begins a transaction if one is to begin now. */
static AdbcStatusCode begin(DriverStatement *s, struct AdbcError *error) {
        DriverConnection *c = s->connection;
        bool must_know = driver_connection_must_know(c);
        unsigned guard = c->guard;
        AdbcStatusCode status = must_know ? prepare(s, error) : ADBC_STATUS_OK;

        if (status != ADBC_STATUS_OK)
                return status;
        status = driver_connection_begin(c, effect_of(s), error);
        if (c->guard != guard)
                s->guard = c->guard;
        return status;
}

static void end_guard(DriverStatement *s) {
        driver_connection_end_guard(s->connection, s->guard);
        s->guard = 0;
}

/* Runs the statement with these values. */
static AdbcStatusCode run(DriverStatement *s, const sqlipc_parameter *values, size_t n, sqlipc_cursor **ret_cursor,
                          struct AdbcError *error) {
        DriverConnection *c = s->connection;
        AdbcStatusCode status;
        int r;

        s->lasting = s->lasting || !c->transaction;
        status = note_pin(s, error);
        if (status != ADBC_STATUS_OK)
                return status;
        if (!s->prepared) {
                r = sqlipc_query_with(c->connection, c->catalog, s->sql, values, n, ret_cursor);
                return r < 0 ? adbc_error_connection(error, c->connection, r) : ADBC_STATUS_OK;
        }
        status = bind_values(s->prepared, values, n, error);
        if (status != ADBC_STATUS_OK)
                return status;
        r = sqlipc_execute(s->prepared, ret_cursor);
        return r < 0 ? adbc_error_statement(error, s->prepared, r) : ADBC_STATUS_OK;
}

/* A cancellation ends what has not begun. After the last run there is nothing to cancel. */
static AdbcStatusCode check_cancelled(DriverStatement *s, struct AdbcError *error) {
        if (driver_connection_cancels(s->connection) != s->n_cancels)
                return driver_connection_cancelled(error);
        if (cancel_slot_is_cancelled(&s->slot))
                return adbc_error_set(error, ADBC_STATUS_CANCELLED, "57014", "The statement was cancelled");
        return ADBC_STATUS_OK;
}

/* Takes the values of the next run: those of the next bound row, or none for the only run. `*ret_any`: there is a run. */
static AdbcStatusCode next_values(DriverStatement *s, const sqlipc_parameter **ret_values, size_t *ret_n, bool *ret_any,
                                  struct AdbcError *error) {
        AdbcStatusCode status;

        *ret_values = NULL;
        *ret_n = 0;
        *ret_any = false;
        if (!s->rows) {
                *ret_any = !s->ran;
                s->ran = true;
                return *ret_any ? check_cancelled(s, error) : ADBC_STATUS_OK;
        }
        /* The stream of bound data may belong to the same connection. */
        driver_connection_unlock(s->connection);
        status = bound_rows_next(s->rows, ret_values, error);
        driver_connection_lock(s->connection);
        *ret_any = status == ADBC_STATUS_OK && *ret_values;
        *ret_n = bound_rows_n_columns(s->rows);
        return *ret_any ? check_cancelled(s, error) : status;
}

/* Runs the statement with the next bound row, or once, after `begins`. */
static AdbcStatusCode run_next_after(AdbcStatusCode (*begins)(DriverStatement *s, struct AdbcError *error),
                                     DriverStatement *s, sqlipc_cursor **ret_cursor, struct AdbcError *error) {
        const sqlipc_parameter *values;
        AdbcStatusCode status;
        size_t n;
        bool any;

        *ret_cursor = NULL;
        status = next_values(s, &values, &n, &any, error);
        if (status == ADBC_STATUS_OK && any)
                status = begins(s, error);
        return status == ADBC_STATUS_OK && any ? run(s, values, n, ret_cursor, error) : status;
}

/* A ResultRunner. */
static AdbcStatusCode run_next(void *userdata, sqlipc_cursor **ret_cursor, struct AdbcError *error) {
        return run_next_after(begin, userdata, ret_cursor, error);
}

/* A ResultDescriber: for a result without runs. */
static AdbcStatusCode describe_result(void *userdata, sqlipc_statement **ret_prepared, struct AdbcError *error) {
        DriverStatement *s = userdata;
        AdbcStatusCode status = prepare_anew(s, error);

        *ret_prepared = s->prepared;
        return status;
}

/* ---- Outcomes ------------------------------------------------------------------------------------------------------ */

/* True if it is certain that no run of the execution has changed anything. */
static bool only_reads(void *userdata, sqlipc_cursor *cursor) {
        DriverStatement *s = userdata;
        bool has_run = cursor || s->n_ended > 0;

        if (!s->prepared && has_run && !s->may_write && (!cursor || sqlipc_cursor_is_readonly(cursor)))
                return true;
        return prepare(s, NULL) == ADBC_STATUS_OK && s->prepared && sqlipc_statement_is_readonly(s->prepared);
}

static void on_ended(void *userdata, sqlipc_cursor *cursor) {
        DriverStatement *s = userdata;

        s->may_write = s->may_write || !sqlipc_cursor_is_readonly(cursor);
        s->n_ended++;
}

/* A ResultJudge. If the cursor's error has a code, the library knows the outcome of its run. Without a code the run may be
 * still in progress, or have returned rows, and so be committed. */
static AdbcStatusCode judge(void *userdata, sqlipc_cursor *cursor, AdbcStatusCode status, struct AdbcError *error) {
        DriverStatement *s = userdata;
        bool is_open = cursor && sqlipc_cursor_error_code(cursor) == SQLIPC_ERROR_NONE;

        if (status == ADBC_STATUS_OK || !s->lasting || !(is_open || s->n_ended > 0) || only_reads(s, cursor))
                return status;
        if (s->n_ended == 0)
                return adbc_error_outcome(error, "It is unknown whether the statement took effect.");
        return adbc_error_outcome(error, s->rows ? "The statement took effect for rows of values before."
                                                 : "The statement took effect.");
}

/* The result of the statement is closed, or ended. */
static void on_finished(void *userdata) {
        DriverStatement *s = userdata;

        s->stream = NULL;
        s->rows = bound_rows_free(s->rows);
        end_guard(s);
        cancel_slot_leave(&s->slot);
        unref(s);
}

static AdbcStatusCode execute_for_rows(DriverStatement *s, struct ArrowArrayStream *ret_stream, int64_t *ret_changes,
                                       struct AdbcError *error) {
        const ResultOwner owner = { .run = run_next,
                                    .describe = describe_result,
                                    .ended = on_ended,
                                    .judge = judge,
                                    .only_reads = only_reads,
                                    .finished = on_finished,
                                    .userdata = s,
                                    .slot = &s->slot };
        struct ArrowArrayStream stream;
        AdbcStatusCode status;

        atomic_fetch_add(&s->n_refs, 1); /* of the stream; on_finished() drops it */
        status = result_stream_new(s->connection, &s->settings, &owner, &stream, ret_changes, error);
        if (status != ADBC_STATUS_OK)
                return status;
        if (result_stream_is_open(result_stream_of(&stream)))
                s->stream = result_stream_of(&stream);
        *ret_stream = stream;
        return status;
}

/* Runs the statement to its end for each bound row, or once. Rows that it returns are dropped. */
static AdbcStatusCode run_to_end(DriverStatement *s, int64_t *ret_changes, struct AdbcError *error) {
        *ret_changes = 0;
        for (;;) {
                _cleanup_(sqlipc_cursor_closep) sqlipc_cursor *cursor = NULL;
                AdbcStatusCode status;
                const sqlipc_value *values;
                size_t n;
                int r;

                status = run_next(s, &cursor, error);
                if (status != ADBC_STATUS_OK || !cursor)
                        return judge(s, NULL, status, error);
                cancel_slot_set(&s->slot, cursor);
                while ((r = sqlipc_cursor_next_block(cursor, 0, &values, &n)) > 0)
                        ;
                cancel_slot_set(&s->slot, NULL);
                if (r < 0)
                        return judge(s, cursor, adbc_error_cursor(error, cursor, r), error);
                *ret_changes += sqlipc_cursor_changes(cursor);
                on_ended(s, cursor);
        }
}

/* Finds the parameter of each bound column by its name. */
static AdbcStatusCode order_by_name(DriverStatement *s, size_t **ret_order, struct AdbcError *error) {
        size_t n = bound_rows_n_columns(s->rows);
        _cleanup_free_ size_t *order = calloc(n + 1, sizeof *order);
        AdbcStatusCode status;

        if (!order)
                return adbc_error_memory(error);
        status = prepare(s, error);
        if (status != ADBC_STATUS_OK)
                return status;
        if (!s->prepared)
                return adbc_error_set(error, ADBC_STATUS_NOT_IMPLEMENTED, "0A000",
                                      "Several rows cannot be bound by name here: bind them by position");
        if (n != sqlipc_statement_parameter_count(s->prepared))
                return count_error(error, n, sqlipc_statement_parameter_count(s->prepared));
        for (size_t i = 0; i < n; i++) {
                unsigned index = sqlipc_statement_parameter_index(s->prepared, bound_rows_name(s->rows, i));

                if (index == 0)
                        return adbc_error_set(error, ADBC_STATUS_INVALID_ARGUMENT, "07001", "There is no parameter \"%s\"",
                                              bound_rows_name(s->rows, i));
                order[i] = index - 1;
        }
        *ret_order = steal(order);
        return ADBC_STATUS_OK;
}

/* Loads the bound rows. `*ret_refused`: the statement cannot be loaded, and nothing was done. */
static AdbcStatusCode load(DriverStatement *s, bool *ret_refused, int64_t *ret_changes, struct AdbcError *error) {
        _cleanup_free_ size_t *order = NULL;
        AdbcStatusCode status;

        *ret_refused = false;
        status = begin(s, error);
        if (status == ADBC_STATUS_OK && s->by_name)
                status = order_by_name(s, &order, error);
        if (status != ADBC_STATUS_OK)
                return status;
        return ingest_target_load(s->connection, s->connection->catalog, s->sql, s->rows, order, ret_refused, ret_changes,
                                  error);
}

static AdbcStatusCode execute_for_effect(DriverStatement *s, int64_t *ret_changes, struct AdbcError *error) {
        DriverConnection *c = s->connection;
        bool refused = true, began = false;
        AdbcStatusCode status;

        if (!s->rows || s->n_bound == 1)
                return run_to_end(s, ret_changes, error);
        status = load(s, &refused, ret_changes, error);
        if (!refused)
                return status;
        if (error && error->release)
                error->release(error);
        if (c->autocommit && !c->readonly && (!s->prepared || !sqlipc_statement_is_readonly(s->prepared)))
                status = driver_connection_begin_several(
                        c, c->catalog, driver_connection_has_pin(c, c->catalog) ? STATEMENT_WRITES_TEMP : STATEMENT_WRITES,
                        &began, error);
        else
                status = ADBC_STATUS_OK;
        if (status == ADBC_STATUS_OK)
                status = run_to_end(s, ret_changes, error);
        return driver_connection_finish(c, began, status, error);
}

/* Takes the bound data for this execution: it is used up then. */
static AdbcStatusCode take_bound(DriverStatement *s, struct AdbcError *error) {
        if (!s->bound.release)
                return ADBC_STATUS_OK;
        return bound_rows_new(&s->bound, s->by_name && !s->target.table, &s->rows, error);
}

static AdbcStatusCode empty_result(struct ArrowArrayStream *ret_stream, struct AdbcError *error) {
        _cleanup_(arrow_struct_release_schema) struct ArrowSchema schema = { .release = NULL };
        struct ArrowArray none = { .release = NULL };

        if (arrow_struct_schema(&schema, "+s", "", 0, 0) < 0 || arrow_struct_stream(ret_stream, &schema, &none) < 0)
                return adbc_error_memory(error);
        return ADBC_STATUS_OK;
}

static AdbcStatusCode ingest(DriverStatement *s, int64_t *ret_changes, struct AdbcError *error) {
        if (!s->rows)
                return adbc_error_set(error, ADBC_STATUS_INVALID_STATE, "HY010", "No data is bound for the ingest");
        return ingest_target_run(&s->target, s->connection, s->rows, ret_changes, error);
}

static void begin_execution(DriverStatement *s) {
        s->ran = s->lasting = s->may_write = false;
        s->n_ended = 0;
        s->n_cancels = driver_connection_cancels(s->connection);
}

/* Executes; the slot is left at once unless a result stays open. */
static AdbcStatusCode execute(DriverStatement *s, struct ArrowArrayStream *ret_stream, int64_t *ret_changes,
                              struct AdbcError *error) {
        _cleanup_(arrow_struct_release_stream) struct ArrowArrayStream empty = { .release = NULL };
        AdbcStatusCode status;

        close_result(s);
        begin_execution(s);
        status = take_bound(s, error);
        if (status == ADBC_STATUS_OK && s->target.table)
                status = empty_result(&empty, error); /* first: after the ingest nothing may fail */
        if (status != ADBC_STATUS_OK)
                return status;
        cancel_slot_enter(&s->slot);
        if (ret_stream && !s->target.table)
                return execute_for_rows(s, ret_stream, ret_changes, error);
        status = s->target.table ? ingest(s, ret_changes, error) : execute_for_effect(s, ret_changes, error);
        if (status == ADBC_STATUS_TIMEOUT && check_cancelled(s, NULL) != ADBC_STATUS_OK) /* why a load was taken back */
                status = check_cancelled(s, error);
        end_guard(s);
        cancel_slot_leave(&s->slot);
        s->rows = bound_rows_free(s->rows);
        if (status == ADBC_STATUS_OK && ret_stream) {
                *ret_stream = empty;
                empty.release = NULL;
        }
        return status;
}

AdbcStatusCode driver_statement_execute(struct AdbcStatement *statement, struct ArrowArrayStream *ret_stream,
                                        int64_t *ret_affected, struct AdbcError *error) {
        int64_t changes = -1;
        DriverStatement *s = enter(statement, error);
        AdbcStatusCode status;

        if (!s)
                return ADBC_STATUS_INVALID_STATE;
        status = s->target.table ? driver_connection_check(s->connection, !s->target.catalog, error) : check_sql(s, error);
        if (status == ADBC_STATUS_OK)
                status = execute(s, ret_stream, &changes, error);
        if (status == ADBC_STATUS_OK && ret_affected)
                *ret_affected = changes;
        return leave(s, status);
}

AdbcStatusCode driver_statement_execute_partitions(struct AdbcStatement *statement, struct ArrowSchema *ret_schema,
                                                   struct AdbcPartitions *ret_partitions, int64_t *ret_affected,
                                                   struct AdbcError *error) {
        return adbc_error_set(error, ADBC_STATUS_NOT_IMPLEMENTED, "0A000", "Results have no partitions: use ExecuteQuery");
}

AdbcStatusCode driver_statement_cancel(struct AdbcStatement *statement, struct AdbcError *error) {
        DriverStatement *s = statement->private_data;

        if (!s || !cancel_slot_cancel(&s->slot, s->connection->connection))
                return adbc_error_set(error, ADBC_STATUS_INVALID_STATE, "HY000", "There is nothing to cancel");
        return ADBC_STATUS_OK;
}

/* ---- Schemas ------------------------------------------------------------------------------------------------------- */

/* Begins no transaction, but a run belongs to one that is open. */
static AdbcStatusCode begin_for_schema(DriverStatement *s, struct AdbcError *error) {
        return s->connection->transaction ? driver_connection_begin(s->connection, STATEMENT_READS, error) : ADBC_STATUS_OK;
}

/* A ResultRunner. */
static AdbcStatusCode run_next_for_schema(void *userdata, sqlipc_cursor **ret_cursor, struct AdbcError *error) {
        return run_next_after(begin_for_schema, userdata, ret_cursor, error);
}

static void on_schema_known(void *userdata) {
        DriverStatement *s = userdata;

        cancel_slot_leave(&s->slot);
        unref(s);
}

/* The types depend on values, so the statement, which only reads, runs until an execution would have chosen them. */
static AdbcStatusCode schema_of_first_rows(DriverStatement *s, struct ArrowSchema *ret_schema, struct AdbcError *error) {
        const ResultOwner owner = { .run = run_next_for_schema,
                                    .describe = describe_result,
                                    .finished = on_schema_known,
                                    .userdata = s,
                                    .slot = &s->slot };
        _cleanup_(arrow_struct_release_stream) struct ArrowArrayStream stream = { .release = NULL };
        AdbcStatusCode status;
        int64_t changes;

        begin_execution(s);
        status = take_bound(s, error);
        if (status != ADBC_STATUS_OK)
                return status;
        if (s->rows)
                bound_rows_stay(s->rows);
        cancel_slot_enter(&s->slot);
        atomic_fetch_add(&s->n_refs, 1); /* of the stream; on_schema_known() drops it */
        status = result_stream_new(s->connection, &s->settings, &owner, &stream, &changes, error);
        if (status == ADBC_STATUS_OK && stream.get_schema(&stream, ret_schema) != 0)
                status = adbc_error_memory(error);
        if (s->rows && bound_rows_give_back(steal(s->rows), &s->bound) < 0 && status == ADBC_STATUS_OK)
                status = adbc_error_memory(error);
        return status;
}

/* The statement writes, or its parameters have no values, so it cannot run. */
static AdbcStatusCode schema_of_declarations(DriverStatement *s, struct ArrowSchema *ret_schema, struct AdbcError *error) {
        _cleanup_(arrow_struct_release_schema) struct ArrowSchema schema = { .release = NULL };
        unsigned n = sqlipc_statement_column_count(s->prepared);

        if (arrow_struct_schema(&schema, "+s", "", 0, n) < 0)
                return adbc_error_memory(error);
        for (unsigned i = 0; i < n; i++) {
                ColumnType type = column_type_of_declaration(sqlipc_statement_column_decltype(s->prepared, i));
                const char *name = sqlipc_statement_column_name(s->prepared, i);

                if (type == COLUMN_TYPE_UNKNOWN || s->settings.types == TYPE_SOURCE_VALUES)
                        return adbc_error_set(error, ADBC_STATUS_NOT_IMPLEMENTED, "0A000",
                                              "The type of column \"%s\" depends on its values. It is known before the "
                                              "execution only if the statement does not write, and its parameters are "
                                              "bound.",
                                              name ? name : "");
                if (arrow_struct_schema(schema.children[i], column_type_format(type, s->settings.text != 0),
                                        name ? name : "", ARROW_FLAG_NULLABLE, 0) < 0)
                        return adbc_error_memory(error);
        }
        *ret_schema = schema;
        schema.release = NULL;
        return ADBC_STATUS_OK;
}

static AdbcStatusCode result_schema(DriverStatement *s, struct ArrowSchema *ret_schema, struct AdbcError *error) {
        AdbcStatusCode status;
        bool has_values;

        close_result(s);
        status = prepare_anew(s, error);
        if (status != ADBC_STATUS_OK)
                return status;
        has_values = s->bound.release || sqlipc_statement_parameter_count(s->prepared) == 0;
        return has_values && sqlipc_statement_is_readonly(s->prepared) ? schema_of_first_rows(s, ret_schema, error)
                                                                       : schema_of_declarations(s, ret_schema, error);
}

static AdbcStatusCode parameter_schema(DriverStatement *s, struct ArrowSchema *ret_schema, struct AdbcError *error) {
        _cleanup_(arrow_struct_release_schema) struct ArrowSchema schema = { .release = NULL };
        AdbcStatusCode status = need_prepared(s, error);
        unsigned n;

        if (status != ADBC_STATUS_OK)
                return status;
        n = sqlipc_statement_parameter_count(s->prepared);
        if (arrow_struct_schema(&schema, "+s", "", 0, n) < 0)
                return adbc_error_memory(error);
        for (unsigned i = 0; i < n; i++) {
                const char *name = sqlipc_statement_parameter_name(s->prepared, i + 1);

                if (arrow_struct_schema(schema.children[i], "n", name ? name : "", ARROW_FLAG_NULLABLE, 0) < 0)
                        return adbc_error_memory(error);
        }
        *ret_schema = schema;
        schema.release = NULL;
        return ADBC_STATUS_OK;
}

static AdbcStatusCode describe(struct AdbcStatement *statement, struct ArrowSchema *ret_schema, struct AdbcError *error,
                               AdbcStatusCode (*how)(DriverStatement *, struct ArrowSchema *, struct AdbcError *)) {
        DriverStatement *s = enter(statement, error);
        AdbcStatusCode status;

        if (!s)
                return ADBC_STATUS_INVALID_STATE;
        status = check_sql(s, error);
        if (status == ADBC_STATUS_OK)
                status = how(s, ret_schema, error);
        return leave(s, status);
}

AdbcStatusCode driver_statement_execute_schema(struct AdbcStatement *statement, struct ArrowSchema *ret_schema,
                                               struct AdbcError *error) {
        return describe(statement, ret_schema, error, result_schema);
}

AdbcStatusCode driver_statement_parameter_schema(struct AdbcStatement *statement, struct ArrowSchema *ret_schema,
                                                 struct AdbcError *error) {
        return describe(statement, ret_schema, error, parameter_schema);
}

/* ---- Bound data ---------------------------------------------------------------------------------------------------- */

AdbcStatusCode driver_statement_bind_stream(struct AdbcStatement *statement, struct ArrowArrayStream *stream,
                                            struct AdbcError *error) {
        DriverStatement *s = enter(statement, error);

        if (!s)
                return ADBC_STATUS_INVALID_STATE;
        arrow_struct_release_stream(&s->bound);
        s->bound = *stream;
        stream->release = NULL;
        s->n_bound = -1;
        return leave(s, ADBC_STATUS_OK);
}

AdbcStatusCode driver_statement_bind(struct AdbcStatement *statement, struct ArrowArray *values, struct ArrowSchema *schema,
                                     struct AdbcError *error) {
        struct ArrowArrayStream stream;
        int64_t n = values->length;
        AdbcStatusCode status;

        if (arrow_struct_stream(&stream, schema, values) < 0)
                return adbc_error_memory(error);
        status = driver_statement_bind_stream(statement, &stream, error);
        if (status != ADBC_STATUS_OK)
                arrow_struct_release_stream(&stream);
        else
                ((DriverStatement *) statement->private_data)->n_bound = n;
        return status;
}

/* ---- Options ------------------------------------------------------------------------------------------------------- */

static AdbcStatusCode set_locked(DriverStatement *s, const char *key, const char *value, struct AdbcError *error) {
        if (strcmp(key, "adbc.statement.bind_by_name") == 0)
                return driver_settings_parse_bool(key, value, &s->by_name, error);
        if (strcmp(key, "adbc.statement.exec.incremental") == 0 && strcmp(value, "false") == 0)
                return ADBC_STATUS_OK;
        if (ingest_target_has(key))
                return ingest_target_set(&s->target, key, value, error);
        /* These belong to the connection. */
        if (strcmp(key, "adbc.sqlipc.timeout") == 0 || strcmp(key, "adbc.sqlipc.run_timeout") == 0 ||
            strcmp(key, "adbc.sqlipc.transaction") == 0)
                return driver_settings_unknown(key, error);
        return driver_settings_set(&s->settings, key, value, error);
}

static AdbcStatusCode set(void *object, const char *key, const char *value, struct AdbcError *error) {
        DriverStatement *s = object;
        AdbcStatusCode status;

        if (!s)
                return released(error);
        if (!value)
                return driver_settings_no_value(key, error);
        driver_connection_lock(s->connection);
        (void) pthread_mutex_lock(&s->connection->option_mutex);
        status = set_locked(s, key, value, error);
        (void) pthread_mutex_unlock(&s->connection->option_mutex);
        driver_connection_unlock(s->connection);
        return status;
}

static AdbcStatusCode get_locked(const DriverStatement *s, const char *key, char **ret_value, struct AdbcError *error) {
        if (strcmp(key, "adbc.statement.bind_by_name") == 0)
                return driver_settings_copy(s->by_name ? "true" : "false", ret_value, error);
        if (strcmp(key, "adbc.statement.exec.incremental") == 0)
                return driver_settings_copy("false", ret_value, error);
        if (ingest_target_has(key))
                return ingest_target_get(&s->target, key, ret_value, error);
        return driver_settings_get(&s->settings, key, ret_value, error);
}

static AdbcStatusCode get(void *object, const char *key, char **ret_value, struct AdbcError *error) {
        DriverStatement *s = object;
        AdbcStatusCode status;

        if (!s)
                return released(error);
        (void) pthread_mutex_lock(&s->connection->option_mutex);
        status = get_locked(s, key, ret_value, error);
        (void) pthread_mutex_unlock(&s->connection->option_mutex);
        return status;
}

AdbcStatusCode driver_statement_set_option(struct AdbcStatement *statement, const char *key, const char *value,
                                           struct AdbcError *error) {
        return set(statement->private_data, key, value, error);
}

AdbcStatusCode driver_statement_set_option_bytes(struct AdbcStatement *statement, const char *key, const uint8_t *value,
                                                 size_t size, struct AdbcError *error) {
        return driver_settings_set_bytes(set, statement->private_data, key, value, size, error);
}

AdbcStatusCode driver_statement_set_option_int(struct AdbcStatement *statement, const char *key, int64_t value,
                                               struct AdbcError *error) {
        return driver_settings_set_int(set, statement->private_data, key, value, error);
}

AdbcStatusCode driver_statement_set_option_double(struct AdbcStatement *statement, const char *key, double value,
                                                  struct AdbcError *error) {
        return driver_settings_set_double(set, statement->private_data, key, value, error);
}

AdbcStatusCode driver_statement_get_option(struct AdbcStatement *statement, const char *key, char *value, size_t *length,
                                           struct AdbcError *error) {
        return driver_settings_get_string(get, statement->private_data, key, value, length, error);
}

AdbcStatusCode driver_statement_get_option_bytes(struct AdbcStatement *statement, const char *key, uint8_t *value,
                                                 size_t *length, struct AdbcError *error) {
        return driver_settings_get_bytes(get, statement->private_data, key, value, length, error);
}

AdbcStatusCode driver_statement_get_option_int(struct AdbcStatement *statement, const char *key, int64_t *ret_value,
                                               struct AdbcError *error) {
        return driver_settings_get_int(get, statement->private_data, key, ret_value, error);
}

AdbcStatusCode driver_statement_get_option_double(struct AdbcStatement *statement, const char *key, double *ret_value,
                                                  struct AdbcError *error) {
        return driver_settings_get_double(get, statement->private_data, key, ret_value, error);
}
