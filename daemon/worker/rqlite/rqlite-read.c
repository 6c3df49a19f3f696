/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See rqlite-read.h. From top to bottom: the answer, requests, windows, rows.
 */
#include "daemon/worker/rqlite/rqlite-read.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/worker/core/monotonic.h"
#include "daemon/worker/rqlite/rqlite-schema.h"
#include "daemon/worker/rqlite/rqlite-statement.h"
#include "daemon/worker/rqlite/server-error.h"

#define ROWS_SIZE_MAX ((size_t) 256 * 1024)       /* of rows that wait: then the server waits */
#define BODY_SIZE_MAX ((size_t) 32 << 20)         /* of a request */
#define ANSWER_SIZE_MAX (UINT64_C(64) << 20)      /* of a whole result, which the server keeps in memory */
#define WINDOW_SIZE_MAX (UINT64_C(512) << 20)     /* of a window: its rows may turn out to be long */
#define WINDOW_SIZE_WANTED (UINT64_C(4) << 20)
#define WINDOW_FIRST_ROWS 1000u
#define WINDOW_ROWS_MIN 16u
#define WINDOW_ROWS_MAX 65536u
#define LEFT_USEC_MAX (365 * 24 * 3600 * USEC_PER_SEC) /* until a deadline of which a node is told */
#define TRIES 4                                   /* for one request: a new schema, or a large table, needs another try */

static const char too_large[] = "the result is larger than 64 MiB, which the server would keep in its memory, and cannot be "
                                "read in parts: ask for less at a time, by a range of a key for one, or for all rows of "
                                "one table without ORDER BY";

/* ---- the answer ---- */

static bool is_typed(const RqliteStatement *s) {
        return s->verb == SQL_VERB_SELECT;
}

static bool in_windows(const RqliteStatement *s) {
        return s->windows.plan.table;
}

static bool fail(RqliteStatement *s, AnswerTrouble trouble) {
        s->answer.trouble = trouble;
        return false;
}

static bool take_version(RqliteStatement *s, const JsonValue *values, size_t n) {
        int64_t version;

        if (!rqlite_schema_version_of(values, n, &version))
                return fail(s, ANSWER_INVALID);
        return version == s->shadow->version || fail(s, ANSWER_STALE);
}

/* How many rows the window has, and its last key. */
static bool take_bounds(RqliteStatement *s, const JsonValue *values, size_t n) {
        WindowState *w = &s->windows;
        int64_t n_found;

        w->last_key = 0;
        if (n != 2 || values[0].kind != JSON_STRING || values[0].bytes[0] != 'i' ||
            !json_number_int64(values[0].bytes + 1, &n_found) || n_found < 0)
                return fail(s, ANSWER_INVALID);
        if (n_found > 0 && (values[1].kind != JSON_STRING || values[1].bytes[0] != 'i' ||
                            !json_number_int64(values[1].bytes + 1, &w->last_key) ||
                            (w->window.bounded && w->last_key <= w->window.after)))
                return fail(s, ANSWER_INVALID);
        w->n_found = (uint64_t) n_found;
        return w->n_found < w->window.n_rows || w->has_index || fail(s, ANSWER_NEEDS_INDEX);
}

static bool take_row(RqliteStatement *s, const JsonValue *values, size_t n) {
        if (n != s->n_columns)
                return fail(s, ANSWER_INVALID);
        for (unsigned i = 0; i < n; i++)
                if (!(is_typed(s) ? typed_rows_add_typed(&s->rows, &values[i])
                                  : typed_rows_add_plain(&s->rows, &values[i], s->is_real[i])))
                        return fail(s, s->rows.bytes.state == TEXT_NO_MEMORY ? ANSWER_NO_MEMORY : ANSWER_INVALID);
        return true;
}

/* Version and bounds, a row of each, come before all rows. */
static bool on_row(void *userdata, unsigned item, const JsonValue *values, size_t n) {
        RqliteStatement *s = userdata;

        if (item == s->rows_item && s->n_head_rows == s->rows_item)
                return take_row(s, values, n);
        if (item >= s->rows_item || item != s->n_head_rows)
                return fail(s, ANSWER_INVALID);
        s->n_head_rows++;
        return item == 0 ? take_version(s, values, n) : take_bounds(s, values, n);
}

static bool on_item(void *userdata, const ResponseItem *item) {
        RqliteStatement *s = userdata;

        if (item->error)
                return answer_set_error(&s->answer, item->error);
        return item->index <= s->rows_item || fail(s, ANSWER_INVALID);
}

static HttpSinkResult take(void *userdata, const char *bytes, size_t size) {
        RqliteStatement *s = userdata;
        bool is_lent = s->rows.end > s->rows.start; /* the page may point into the row that was taken */

        return is_lent || typed_rows_size(&s->rows) >= ROWS_SIZE_MAX ? HTTP_SINK_FULL : answer_take(&s->answer, bytes, size);
}

static void restart(void *userdata) {
        RqliteStatement *s = userdata;

        answer_restart(&s->answer);
        typed_rows_clear(&s->rows);
        s->n_head_rows = 0;
}

static bool has_rows(void *userdata) {
        const RqliteStatement *s = userdata;

        return typed_rows_size(&s->rows) > 0;
}

/* ---- requests ---- */

static void end_request(RqliteStatement *s) {
        cluster_abort(&s->connection->exchange);
        answer_done(&s->answer);
        typed_rows_clear(&s->rows);
        s->is_read = false;
}

void rqlite_read_reset(RqliteStatement *s) {
        end_request(s);
        s->windows.window.bounded = s->windows.has_index = false;
        s->windows.window.n_rows = WINDOW_FIRST_ROWS;
}

static bool write_body(RqliteStatement *s, SqlError *error) {
        const StatementText text = rqlite_statement_text(s);
        TextBuffer *body = &s->body;

        text_buffer_cut(body, 0);
        body->size_max = BODY_SIZE_MAX;
        text_buffer_puts(body, "[" RQLITE_SCHEMA_VERSION ",");
        if (in_windows(s)) {
                statement_text_add_bounds(body, &s->windows.window);
                text_buffer_puts(body, ",");
        }
        if (is_typed(s))
                statement_text_add_select(body, &text, s->n_columns, in_windows(s) ? &s->windows.window : NULL);
        else
                statement_text_add(body, &text);
        text_buffer_puts(body, "]");
        s->rows_item = in_windows(s) ? 2 : 1;
        if (body->state == TEXT_TOO_LARGE)
                return sql_error_set(error, ERROR_LIMITS_EXCEEDED,
                                     "the statement and its parameters take more than 32 MiB as JSON");
        return body->state == TEXT_GOOD || sql_error_set(error, ERROR_OUT_OF_MEMORY, "out of memory");
}

/* If the request has ended, checks that its answer is whole. */
static bool check_end(RqliteStatement *s, SqlError *error) {
        if (!cluster_has_ended(&s->connection->exchange))
                return true;
        if (s->answer.trouble == ANSWER_ERROR)
                return server_error_set(error, s->answer.message, s->shadow);
        s->is_read = true;
        return answer_finish(&s->answer, too_large, s->rows_item + 1, error) &&
               (s->n_head_rows == s->rows_item || answer_set_invalid(error));
}

/* More of the answer has come, or all of it. */
static void note_end(RqliteStatement *s) {
        if (cluster_has_ended(&s->connection->exchange))
                answer_end(&s->answer);
}

/* A node goes on with a query after we have closed the connection, and keeps its rows in memory, so it must know when to
 * stop. It gets a second more than the run: the run's own deadline is the error that the client sees. */
static void write_target(const RqliteStatement *s, char *target, size_t size) {
        int n = snprintf(target, size, "/db/query?transaction&blob_array&level=%s",
                         rqlite_pool_level(s->connection->pool));
        uint64_t now = now_usec(), left = s->deadline_usec > now ? s->deadline_usec - now : 0;

        if (s->deadline_usec > 0 && left < LEFT_USEC_MAX)
                (void) snprintf(target + n, size - (size_t) n, "&db_timeout=%" PRIu64 "ms", left / USEC_PER_MSEC + 1000);
}

static bool send_request(RqliteStatement *s, SqlError *error) {
        const ResponseHandler handler = { .row = on_row, .item = on_item, .userdata = s };
        const ClusterReader reader = { .sink = { take, s }, .restart = restart, .enough = has_rows, .userdata = s };
        const RqlitePool *p = s->connection->pool;
        char target[128];

        end_request(s);
        if (!write_body(s, error))
                return false;
        answer_init(&s->answer, &handler, in_windows(s) ? WINDOW_SIZE_MAX : ANSWER_SIZE_MAX);
        write_target(s, target, sizeof target);
        if (!cluster_begin(&s->connection->exchange, &(ClusterRequest) {
                .target = target,
                .body = &s->body,
                .by_leader = p->setup->consistency != CONSISTENCY_NONE,
                .node = s->windows.has_index ? s->windows.node : CLUSTER_ANY_NODE,
                .patience_usec = UINT64_MAX,
        }, &reader, error))
                return false;
        note_end(s);
        return true;
}

/* ---- windows ---- */

static void plan_windows(RqliteStatement *s) {
        const StatementText text = rqlite_statement_text(s);

        window_plan_done(&s->windows.plan);
        if (is_typed(s))
                window_plan_make(s->shadow, &text, &s->windows.plan);
        s->windows.window = (StatementWindow) {
                .table = s->windows.plan.table,
                .key = s->windows.plan.key,
                .n_rows = WINDOW_FIRST_ROWS,
        };
        s->windows.has_index = false;
}

/* Another program has changed the schema. */
static bool take_new_schema(RqliteStatement *s, SqlError *error) {
        end_request(s);
        if (!rqlite_schema_load(s->connection, error) || !rqlite_statement_compile_again(s, error) ||
            !rqlite_statement_prepare_rows(s, error))
                return false;
        plan_windows(s);
        return true;
}

/* The table has more rows than the first window. If the node does not tell its index, or does not answer for itself, the
 * result is read as a whole. */
static void note_index(RqliteStatement *s) {
        ClusterExchange *x = &s->connection->exchange;
        WindowState *w = &s->windows;

        end_request(s);
        w->node = x->node;
        w->has_index = x->is_direct && cluster_applied_index(x, w->node, &w->first_index);
        if (!w->has_index)
                window_plan_done(&w->plan);
}

static bool mixes_states(SqlError *error) {
        return sql_error_set(
                error, ERROR_BUSY,
                "the database was changed while this result was read, which takes several requests: try again, or "
                "ask for less at a time, by a range of a key for one");
}

/* False: something may have been committed since before the first window. */
static bool is_unchanged(const RqliteStatement *s) {
        ClusterExchange *x = &s->connection->exchange;
        uint64_t index;

        return x->node == s->windows.node && x->is_direct && cluster_applied_index(x, s->windows.node, &index) &&
               index == s->windows.first_index;
}

static bool has_more_windows(const RqliteStatement *s) {
        return in_windows(s) && s->windows.n_found >= s->windows.window.n_rows;
}

/* So that the next one has the wanted size. */
static void move_window(RqliteStatement *s) {
        WindowState *w = &s->windows;
        uint64_t n = s->answer.size > 0 ? w->n_found * WINDOW_SIZE_WANTED / s->answer.size : WINDOW_ROWS_MAX;

        w->window.bounded = true;
        w->window.after = w->last_key;
        w->window.n_rows = n < WINDOW_ROWS_MIN ? WINDOW_ROWS_MIN : n > WINDOW_ROWS_MAX ? WINDOW_ROWS_MAX : (uint32_t) n;
}

/* Sends the request until its answer is of use. */
static bool begin(RqliteStatement *s, SqlError *error) {
        for (int i = 0; i < TRIES; i++) {
                if (!send_request(s, error))
                        return false;
                switch (s->answer.trouble) {
                case ANSWER_STALE:
                        if (s->windows.window.bounded)
                                return mixes_states(error);
                        if (!take_new_schema(s, error))
                                return false;
                        break;
                case ANSWER_NEEDS_INDEX:
                        note_index(s);
                        break;
                default:
                        return check_end(s, error);
                }
        }
        return server_error_retry(error, SERVER_TROUBLE_SCHEMA, "the schema keeps changing");
}

/* The answer is read. Begins with the next window, if there is one. */
static bool next_window(RqliteStatement *s, SqlError *error) {
        if (s->windows.has_index && !is_unchanged(s))
                return mixes_states(error);
        move_window(s);
        return begin(s, error);
}

static bool finish_windows(RqliteStatement *s, SqlError *error) {
        return !s->windows.has_index || is_unchanged(s) || mixes_states(error);
}

/* ---- rows ---- */

/* An error after the first row is final. */
static EngineResult end_with(SqlError *error) {
        if (error->error == ERROR_BUSY && error->extended_code != 0)
                server_error_give_up(error);
        return ENGINE_FAILED;
}

static bool read_more(RqliteStatement *s, SqlError *error) {
        if (!cluster_go_on(&s->connection->exchange, error))
                return false;
        note_end(s);
        return check_end(s, error);
}

static EngineResult next(RqliteStatement *s, RowSink *sink, SqlError *error) {
        sink->row_waits = false;
        if (s->lost_rows) {
                (void) sql_error_set(error, ERROR_INPUT_OUTPUT, "the server does not understand what follows RETURNING");
                return ENGINE_FAILED;
        }
        while (!typed_rows_take(&s->rows, s->n_columns)) {
                if (s->is_read && !has_more_windows(s))
                        return finish_windows(s, error) ? ENGINE_DONE : end_with(error);
                if (!(s->is_read ? next_window(s, error) : read_more(s, error)))
                        return end_with(error);
        }
        sink->row_waits = true;
        return ENGINE_ROW;
}

EngineResult rqlite_read_step(RqliteStatement *s, RowSink *sink, SqlError *error) {
        sink->row_waits = false;
        if (!rqlite_statement_prepare_rows(s, error))
                return ENGINE_FAILED;
        plan_windows(s);
        if (!begin(s, error))
                return error->error == ERROR_BUSY ? ENGINE_BUSY : ENGINE_FAILED;
        sink->n_columns = s->n_columns;
        return next(s, sink, error);
}

static void add_value(PageRow *row, const PageValue *v) {
        size_t size = v->size + (v->type == VALUE_TEXT);
        uint8_t *at = page_row_add(row, v->type, size);

        if (at && size > 0)
                memcpy(at, v->bytes, size); /* TEXT has its NUL */
}

static EngineResult encode(RqliteStatement *s, RowSink *sink) {
        EngineResult result = row_sink_begin(sink);
        PageRow row;

        if (result != ENGINE_ROW)
                return result;
        typed_rows_values(&s->rows, s->n_columns, s->row);
        row = sink->encoder->values;
        for (unsigned i = 0; i < s->n_columns; i++)
                add_value(&row, &s->row[i]);
        sink->encoder->values = row;
        return row_sink_end(sink);
}

EngineResult rqlite_read_fill(RqliteStatement *s, RowSink *sink, SqlError *error) {
        for (;;) {
                EngineResult result = sink->row_waits ? encode(s, sink) : ENGINE_ROW;

                if (result == ENGINE_ROW)
                        result = next(s, sink, error);
                if (result != ENGINE_ROW)
                        return result;
        }
}

void rqlite_read_measure(RqliteStatement *s, unsigned i, ValueType *ret_type, uint64_t *ret_size) {
        typed_rows_values(&s->rows, s->n_columns, s->row);
        *ret_type = s->row[i].type;
        *ret_size = s->row[i].size + (s->row[i].type == VALUE_TEXT);
}

const uint8_t *rqlite_read_value(RqliteStatement *s, unsigned i, uint8_t number[static 8]) {
        typed_rows_values(&s->rows, s->n_columns, s->row);
        if (s->row[i].type != VALUE_INTEGER && s->row[i].type != VALUE_REAL)
                return s->row[i].bytes;
        memcpy(number, s->row[i].bytes, 8);
        return number;
}
