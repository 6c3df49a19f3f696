/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See rqlite-write.h. From top to bottom: the transaction, statements, loads, the answer, the commit.
 */
#include "daemon/worker/rqlite/rqlite-write.h"

#include <sqlite3.h>
#include <stdlib.h>

#include "daemon/worker/core/monotonic.h"
#include "daemon/worker/rqlite/rqlite-statement.h"
#include "daemon/worker/rqlite/server-error.h"

#define JOB_SIZE_MAX ((size_t) 32 << 20)       /* of the statements of a job, as JSON */
#define REQUEST_SIZE_MAX ((size_t) 64 << 20)   /* of those of all jobs */
#define ANSWER_SIZE_MAX (UINT64_C(64) << 20)
#define PATIENCE_USEC (60 * USEC_PER_SEC)

#define TARGET "/db/execute?transaction&blob_array&raft_index"

#define TOO_LARGE "this statement and those written with it return rows of more than 64 MiB"

/* ---- the transaction ---- */

void rqlite_write_begin(RqliteConnection *c) {
        rqlite_write_end(c);
        c->in_transaction = true;
        c->request.size_max = REQUEST_SIZE_MAX;
        c->applied_index = 0;
}

/* Frees the statements after `last`; NULL: all. */
static void forget_after(RqliteConnection *c, RqliteStatement *last) {
        RqliteStatement *s = last ? last->next : c->first;

        while (s) {
                RqliteStatement *next = s->next;

                (void) rqlite_statement_free(s);
                s = next;
        }
        c->last = last;
        *(last ? &last->next : &c->first) = NULL;
}

void rqlite_write_end(RqliteConnection *c) {
        forget_after(c, NULL);
        text_buffer_done(&c->request);
        c->n_items = c->n_jobs = 0;
        c->outcome = NULL;
        c->in_transaction = false;
}

void rqlite_write_save(RqliteConnection *c) {
        c->saved_size = c->request.size;
        c->saved_items = c->n_items;
        c->saved_last = c->last;
        c->n_jobs++;
}

void rqlite_write_undo(RqliteConnection *c) {
        forget_after(c, c->saved_last);
        text_buffer_cut(&c->request, c->saved_size);
        c->n_items = c->saved_items;
}

/* ---- statements ---- */

static bool check_size(RqliteConnection *c, SqlError *error) {
        if (c->request.state == TEXT_NO_MEMORY)
                return sql_error_set(error, ERROR_OUT_OF_MEMORY, "out of memory");
        return (c->request.state == TEXT_GOOD && c->request.size - c->saved_size <= JOB_SIZE_MAX) ||
               sql_error_set(error, ERROR_LIMITS_EXCEEDED,
                             "what is written at once takes more than 32 MiB as JSON, which the cluster would have to carry "
                             "out as one request: write it in parts");
}

/* Adds the statement with its values. */
static bool add(RqliteStatement *s, SqlError *error) {
        RqliteConnection *c = s->connection;
        const StatementText text = rqlite_statement_text(s);

        text_buffer_puts(&c->request, c->n_items == 0 ? "[" : ",");
        if (s->returning > 0)
                statement_text_add_returning(&c->request, &text, s->returning, s->n_columns);
        else
                statement_text_add(&c->request, &text);
        c->n_items++;
        return check_size(c, error);
}

static void begin_noting(RqliteStatement *s) {
        RqliteConnection *c = s->connection;

        if (s->is_noted)
                return;
        s->is_noted = true;
        s->first_item = c->n_items;
        s->job = c->n_jobs;
}

bool rqlite_write_note(RqliteStatement *s, SqlError *error) {
        begin_noting(s);
        s->n_items++;
        return rqlite_statement_prepare_rows(s, error) && add(s, error);
}

/* Without rows nothing of the statement is needed to describe its outcome. */
void rqlite_write_keep(RqliteStatement *s) {
        RqliteConnection *c = s->connection;

        s->next = NULL;
        s->is_kept = s->is_read = true;
        *(c->last ? &c->last->next : &c->first) = s;
        c->last = s;
        text_buffer_done(&s->body);
        free(s->values);
        s->values = NULL;
        if (s->n_columns > 0)
                return;
        sqlite_statement_clear(&s->sqlite);
        free(s->sql);
        s->sql = NULL;
}

/* ---- loads ---- */

bool rqlite_write_load(RqliteStatement *s, RowSource *source, SqlError *error) {
        unsigned n = source->decoder.n_columns, count = (unsigned) sqlite3_bind_parameter_count(s->sqlite.stmt);
        if (n != count)
                return sql_error_set(error, ERROR_PARAMETER_COUNT, "%u values in a row, for a statement with %u parameters",
                                     n, count);
        if (!s->values)
                s->values = calloc(count, sizeof *s->values);
        if (!s->values)
                return sql_error_set(error, ERROR_OUT_OF_MEMORY, "out of memory");
        begin_noting(s);
        do {
                for (unsigned i = 0; i < n; i++)
                        s->values[i] = page_decoder_value(&source->decoder, i);
                s->n_items++;
                if (!add(s, error))
                        return false;
        } while (row_source_next(source, 0));
        return true;
}

/* ---- the answer ---- */

/* The answer to a commit. */
typedef struct CommitAnswer {
        RqliteConnection *connection;
        Answer answer;
        RqliteStatement *at;     /* whose results come */
        unsigned n_rows;         /* of this result */
        int64_t rowid;           /* the last one that was inserted, in its last row */
        unsigned failed_item;    /* with ANSWER_ERROR */
} CommitAnswer;

/* Moves on to the statement of an item. In a list, one that inserts no row has the rowid of those before it. False: there
 * is none. */
static bool find(CommitAnswer *a, unsigned item) {
        while (a->at && item >= a->at->first_item + a->at->n_items) {
                RqliteStatement *next = a->at->next;

                if (next && next->job == a->at->job)
                        next->last_rowid = a->at->last_rowid;
                a->at = next;
        }
        return a->at;
}

static bool fail(CommitAnswer *a, AnswerTrouble trouble) {
        a->answer.trouble = trouble;
        return false;
}

static bool on_row(void *userdata, unsigned item, const JsonValue *values, size_t n) {
        CommitAnswer *a = userdata;
        RqliteStatement *s;
        bool ok;

        if (!find(a, item) || n != a->at->n_columns + (a->at->returning > 0))
                return fail(a, ANSWER_INVALID);
        s = a->at;
        for (unsigned i = 0; i < s->n_columns; i++) {
                ok = s->returning > 0 ? typed_rows_add_typed(&s->rows, &values[i])
                                      : typed_rows_add_plain(&s->rows, &values[i], s->is_real[i]);
                if (!ok)
                        return fail(a, s->rows.bytes.state == TEXT_NO_MEMORY ? ANSWER_NO_MEMORY : ANSWER_INVALID);
        }
        a->n_rows++;
        if (s->returning == 0 || (values[n - 1].kind == JSON_NUMBER && json_number_int64(values[n - 1].bytes, &a->rowid)))
                return true;
        return fail(a, ANSWER_INVALID);
}

/* With RETURNING, the server sends a row for each that was changed, and not how many there are. If its parser does not
 * understand the statement, it carries it out without sending rows. */
static bool on_item(void *userdata, const ResponseItem *item) {
        CommitAnswer *a = userdata;
        int64_t n_changes = item->n_changes, rowid = item->last_rowid;

        if (item->error) {
                a->failed_item = item->index;
                return answer_set_error(&a->answer, item->error);
        }
        if (!find(a, item->index) || (item->has_columns && a->at->n_columns == 0))
                return fail(a, ANSWER_INVALID);
        if (item->has_columns) {
                n_changes = a->n_rows;
                rowid = a->rowid;
        } else
                a->at->lost_rows = a->at->n_columns > 0;
        if (a->at->changes_rows)
                a->at->n_changes += n_changes;
        if (a->at->verb == SQL_VERB_INSERT && n_changes > 0)
                a->at->last_rowid = rowid;
        a->n_rows = 0;
        return true;
}

static HttpSinkResult take(void *userdata, const char *bytes, size_t size) {
        CommitAnswer *a = userdata;

        return answer_take(&a->answer, bytes, size);
}

static void restart(void *userdata) {
        CommitAnswer *a = userdata;

        answer_restart(&a->answer);
        a->at = a->connection->first;
        a->n_rows = 0;
        for (RqliteStatement *s = a->at; s; s = s->next) {
                s->n_changes = s->last_rowid = 0;
                s->lost_rows = false;
                typed_rows_clear(&s->rows);
        }
}

/* ---- the commit ---- */

/* The statements of the job are counted if there are several, as those of a list; a load has rows. */
static void name_statement(const RqliteConnection *c, const RqliteStatement *failed, unsigned item, SqlError *error) {
        unsigned n = 0, number = 0;
        int32_t code = error->extended_code;

        for (const RqliteStatement *s = c->first; s; s = s->next) {
                n += s->job == failed->job;
                number = s == failed ? n : number;
        }
        if (failed->n_items > 1)
                sql_error_prefix(error, "row %u: ", item - failed->first_item + 1);
        else if (n > 1)
                sql_error_prefix(error, "statement %u of %u: ", number, n);
        error->extended_code = code;
}

/* A statement failed, so nothing was written. */
static bool fail_statement(CommitAnswer *a, SqlError *error) {
        RqliteConnection *c = a->connection;

        (void) server_error_set(error, a->answer.message, c->pool->shadow);
        if (find(a, a->failed_item))
                name_statement(c, a->at, a->failed_item, error);
        return false;
}

static bool fail_unknown(SqlError *error, const char *reason) {
        return sql_error_set(error, ERROR_OUTCOME_UNKNOWN,
                             "the server may or may not have carried this out: %s. Look before you try again.", reason);
}

/* A failure of the commit itself is that of a deferred constraint; then nothing was written. */
static bool is_about_constraint(const char *message) {
        SqlError probe = SQL_ERROR_INIT;
        bool is = !server_error_set(&probe, message, NULL) && (probe.extended_code & 0xff) == SQLITE_CONSTRAINT;

        sql_error_done(&probe);
        return is;
}

static bool finish(CommitAnswer *a, SqlError *error) {
        RqliteConnection *c = a->connection;
        SqlError local = SQL_ERROR_INIT;
        const char *message;
        bool ok;

        answer_end(&a->answer);
        if (a->answer.trouble == ANSWER_ERROR)
                return fail_statement(a, error);
        ok = answer_finish(&a->answer, TOO_LARGE, c->n_items, &local);
        message = a->answer.parser ? response_parser_error(a->answer.parser) : NULL;
        if (ok) {
                c->applied_index = response_parser_raft_index(a->answer.parser);
                return true;
        }
        if (local.error == ERROR_BUSY) /* there is no leader: it may be sent again */
                sql_error_copy(error, &local);
        else if (message && is_about_constraint(message))
                (void) server_error_set(error, message, c->pool->shadow);
        else
                (void) fail_unknown(error, sql_error_as_failure(&local).message);
        sql_error_done(&local);
        return false;
}

static bool send_request(RqliteConnection *c, SqlError *error) {
        CommitAnswer a = { .connection = c };
        const ResponseHandler handler = { .row = on_row, .item = on_item, .userdata = &a };
        const ClusterReader reader = { .sink = { take, &a }, .restart = restart, .userdata = &a };
        size_t size = c->request.size;
        bool ok;

        text_buffer_puts(&c->request, "]");
        answer_init(&a.answer, &handler, ANSWER_SIZE_MAX);
        ok = c->request.state == TEXT_GOOD || sql_error_set(error, ERROR_OUT_OF_MEMORY, "out of memory");
        ok = ok && cluster_begin(&c->exchange, &(ClusterRequest) {
                .target = TARGET,
                .body = &c->request,
                .writes = true,
                .by_leader = true,
                .node = CLUSTER_ANY_NODE,
                .patience_usec = PATIENCE_USEC,
        }, &reader, error) && finish(&a, error);
        cluster_abort(&c->exchange);
        answer_done(&a.answer);
        text_buffer_cut(&c->request, size); /* it may be sent again */
        return ok;
}

/* If the server does not say which index of the log the commit has, its node is asked. */
static void find_index(RqliteConnection *c) {
        if (c->applied_index == 0 && !cluster_applied_index(&c->exchange, c->exchange.node, &c->applied_index))
                c->applied_index = 0;
        c->pool->last_index = c->applied_index; /* 0: not known, so any change may have been made */
}

bool rqlite_write_commit(RqliteConnection *c, SqlError *error) {
        bool ok = c->n_items == 0 || send_request(c, error);

        if (!ok && error->error == ERROR_BUSY)
                return false;
        c->in_transaction = false;
        if (ok && c->n_items > 0)
                find_index(c);
        c->outcome = ok ? c->first : NULL;
        return ok;
}

RqliteStatement *rqlite_write_outcome(RqliteConnection *c) {
        RqliteStatement *s = c->outcome;

        if (s)
                c->outcome = s->next;
        return s;
}
