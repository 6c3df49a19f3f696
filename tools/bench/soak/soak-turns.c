/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The operations of a client's turn, see soak.h. Each one asks and compares every value with the expected one. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tools/bench/core/sampler.h"
#include "tools/bench/soak/soak.h"

enum {
        TOLD_MAX = 20,   /* failures that are reported, of all processes */
        SOME_ROWS = 300, /* rows that a slow reader reads at a time, or that are read before a stop */
        EXECUTIONS = 3,
};

#define POINT_SQL "SELECT * FROM point WHERE id = ?"
#define BULK_SQL "SELECT * FROM point ORDER BY id"

int soak_wrong(SoakTurn *turn, int r, const char *what) {
        const char *message = turn->client->connection ? sqlipc_error_message(turn->client->connection) : "";

        if (atomic_fetch_add(&turn->soak->state->n_told, 1) < TOLD_MAX)
                fprintf(stderr, "sqlipc-bench: soak: %s: %s: %s (%s)\n", soak_operations[turn->kind].name, what,
                        g_strerror(-r), *message ? message : "nothing else is known");
        return r;
}

/* ---- Rows --------------------------------------------------------------------------------------------------------- */

/* Checks that the cursor's current row is the row of this key, bit by bit. */
static int check_row(SoakTurn *turn, sqlipc_cursor *cursor, int64_t key) {
        static const sqlipc_type types[] = { SQLIPC_INTEGER, SQLIPC_INTEGER, SQLIPC_REAL, SQLIPC_TEXT };
        const SoakRow *row = &turn->soak->rows[key - 1];
        double r = sqlipc_column_double(cursor, 2);
        const char *text;
        size_t size;

        if (key > turn->soak->n_rows || sqlipc_column_count(cursor) != G_N_ELEMENTS(types))
                return soak_wrong(turn, -EBADMSG, "another number of rows or columns");
        for (unsigned i = 0; i < G_N_ELEMENTS(types); i++)
                if (sqlipc_column_type(cursor, i) != types[i])
                        return soak_wrong(turn, -EBADMSG, "a value of another type");
        text = sqlipc_column_text(cursor, 3, &size);
        if (sqlipc_column_int64(cursor, 0) != key || sqlipc_column_int64(cursor, 1) != row->n ||
            memcmp(&r, &row->r, sizeof r) != 0 || size != sizeof row->t || memcmp(text, row->t, size) != 0)
                return soak_wrong(turn, -EBADMSG, "another value");
        turn->spent.rows++;
        turn->spent.bytes += 3 * sizeof(int64_t) + size;
        return 0;
}

/* Reads up to `n` more rows of a whole result; `key` is the last key that came. 1: the result has ended and was complete. */
static int read_rows(SoakTurn *turn, sqlipc_cursor *cursor, int64_t *key, int64_t n) {
        int r = 1;

        for (int64_t i = 0; i < n && (r = sqlipc_cursor_next(cursor)) > 0; i++) {
                r = check_row(turn, cursor, ++*key);
                if (r < 0)
                        return r;
                r = 1;
        }
        if (r != 0)
                return r < 0 ? r : 0;
        return *key == turn->soak->n_rows ? 1 : soak_wrong(turn, -ENODATA, "the end before the last row");
}

static int64_t random_key(const SoakTurn *turn) {
        return 1 + (int64_t) (random_next(turn->random) % (uint64_t) turn->soak->n_rows);
}

/* Reads the single row of a point query, then its end. */
static int read_point(SoakTurn *turn, sqlipc_cursor *cursor, int64_t key) {
        int r = sqlipc_cursor_next(cursor);

        if (r <= 0)
                return soak_wrong(turn, r < 0 ? r : -ENODATA, "no row");
        r = check_row(turn, cursor, key);
        if (r < 0)
                return r;
        r = sqlipc_cursor_next(cursor);
        return r == 0 ? 0 : soak_wrong(turn, r < 0 ? r : -EBADMSG, "no end behind the row");
}

static int query(SoakTurn *turn, const char *sql, sqlipc_cursor **ret_cursor) {
        int r = sqlipc_query(turn->client->connection, turn->soak->options->database, sql, ret_cursor, NULL);

        return r < 0 ? soak_wrong(turn, r, sql) : 0;
}

static int prepare(SoakTurn *turn, const char *sql, sqlipc_statement **ret) {
        int r = sqlipc_prepare(turn->client->connection, turn->soak->options->database, sql, ret);

        return r < 0 ? soak_wrong(turn, r, "cannot prepare") : 0;
}

/* ---- What is answered to the end ---------------------------------------------------------------------------------- */

int soak_ask_point(SoakTurn *turn) {
        __attribute__((cleanup(sqlipc_cursor_closep))) sqlipc_cursor *cursor = NULL;
        int64_t key = random_key(turn);
        int r = sqlipc_query(turn->client->connection, turn->soak->options->database, POINT_SQL, &cursor, "i", key);

        return r < 0 ? soak_wrong(turn, r, POINT_SQL) : read_point(turn, cursor, key);
}

static int execute_point(SoakTurn *turn, sqlipc_statement *statement) {
        __attribute__((cleanup(sqlipc_cursor_closep))) sqlipc_cursor *cursor = NULL;
        int64_t key = random_key(turn);
        int r = sqlipc_bind_int64(statement, 1, key);

        if (r >= 0)
                r = sqlipc_execute(statement, &cursor);
        return r < 0 ? soak_wrong(turn, r, "cannot execute") : read_point(turn, cursor, key);
}

static int ask_prepared(SoakTurn *turn) {
        __attribute__((cleanup(sqlipc_finalizep))) sqlipc_statement *statement = NULL;
        int r = prepare(turn, POINT_SQL, &statement);

        for (unsigned i = 0; r >= 0 && i < EXECUTIONS; i++)
                r = execute_point(turn, statement);
        return r;
}

/* Prepares a statement and leaves it. A later turn runs it, and in half of the cases finalizes it. */
static int leave_statement(SoakTurn *turn) {
        int r;

        if (!turn->client->left)
                return prepare(turn, POINT_SQL, &turn->client->left);
        r = execute_point(turn, turn->client->left);
        if (random_next(turn->random) % 2 == 0)
                turn->client->left = sqlipc_finalize(turn->client->left);
        return r;
}

static int ask_bulk(SoakTurn *turn) {
        __attribute__((cleanup(sqlipc_cursor_closep))) sqlipc_cursor *cursor = NULL;
        int64_t key = 0;
        int r = query(turn, BULK_SQL, &cursor);

        if (r < 0)
                return r;
        r = read_rows(turn, cursor, &key, INT64_MAX);
        return r == -EBADMSG || r >= 0 ? MIN(r, 0) : soak_wrong(turn, r, "no whole result");
}

/* ---- What takes its time ------------------------------------------------------------------------------------------ */

static void end_slow(SoakTurn *turn, int r) {
        SoakTally *tally = &turn->process->tallies[SOAK_SLOW];
        SoakClient *client = turn->client;

        if (r == 0)
                soak_tally_answer(tally, sampler_now_usec() - client->slow_since, client->slow_spent);
        else if (r == -ETIME) {
                turn->process->too_slow++;
                tally->given_up++;
        } else
                tally->failed++;
        client->slow = sqlipc_cursor_close(client->slow);
}

int soak_go_on(SoakTurn *turn, bool whole) {
        SoakClient *client = turn->client;
        int r;

        turn->kind = SOAK_SLOW;
        turn->spent = client->slow_spent;
        r = read_rows(turn, client->slow, &client->slow_key, whole ? INT64_MAX : SOME_ROWS);
        client->slow_spent = turn->spent;
        if (r == 0)
                return 0; /* there are more rows */
        /* The service may end such a slow reader; other errors were reported already. */
        if (r < 0 && r != -ETIME && r != -EBADMSG && r != -ENODATA)
                soak_wrong(turn, r, "no whole result");
        end_slow(turn, MIN(r, 0));
        return r == -ETIME ? 0 : MIN(r, 0);
}

/* Begins to read; later turns continue, see soak_process_run(). */
static int begin_slow(SoakTurn *turn) {
        SoakClient *client = turn->client;

        client->slow_since = sampler_now_usec();
        client->slow_key = 0;
        client->slow_spent = (Spent) {};
        return query(turn, BULK_SQL, &client->slow);
}

/* ---- What is not read to its end ---------------------------------------------------------------------------------- */

/* Reads a random part of a result: nothing, a few rows, or many. */
static int read_some(SoakTurn *turn, sqlipc_cursor *cursor, int64_t *key) {
        int r = read_rows(turn, cursor, key, (int64_t) (random_next(turn->random) % SOME_ROWS));

        return r == -EBADMSG || r >= 0 ? MIN(r, 0) : soak_wrong(turn, r, "no rows");
}

static int cancel(SoakTurn *turn, sqlipc_cursor *cursor) {
        int r = sqlipc_cursor_cancel(cursor);

        return r < 0 ? soak_wrong(turn, r, "cannot cancel") : 0;
}

/* Cancels a run in the middle, unless it ends before that. */
static int ask_and_cancel(SoakTurn *turn) {
        __attribute__((cleanup(sqlipc_cursor_closep))) sqlipc_cursor *cursor = NULL;
        int64_t key = 0;
        int r = query(turn, BULK_SQL, &cursor);

        if (r >= 0)
                r = read_some(turn, cursor, &key);
        if (r >= 0)
                r = cancel(turn, cursor);
        if (r < 0)
                return r;
        r = read_rows(turn, cursor, &key, INT64_MAX);
        if (r == 1 || (r == -ECANCELED && sqlipc_error_code(turn->client->connection) == SQLIPC_ERROR_CANCELLED))
                return 0;
        return r == -EBADMSG ? r : soak_wrong(turn, r, "neither cancelled nor at the end");
}

/* Cancels a run that has no row and never ends. */
static int cancel_endless(SoakTurn *turn) {
        __attribute__((cleanup(sqlipc_cursor_closep))) sqlipc_cursor *cursor = NULL;
        int r = query(turn, SOAK_ENDLESS_SQL, &cursor);

        if (r >= 0)
                r = cancel(turn, cursor);
        if (r < 0)
                return r;
        r = sqlipc_cursor_next(cursor);
        if (r == -ECANCELED && sqlipc_error_code(turn->client->connection) == SQLIPC_ERROR_CANCELLED)
                return 0;
        return soak_wrong(turn, r < 0 ? r : -EBADMSG, "not cancelled");
}

static int drop_cursor(SoakTurn *turn) {
        __attribute__((cleanup(sqlipc_cursor_closep))) sqlipc_cursor *cursor = NULL;
        int64_t key = 0;
        int r = query(turn, BULK_SQL, &cursor);

        return r < 0 ? r : read_some(turn, cursor, &key);
}

/* Finalizes a statement during its run; the cursor must then fail, unless all rows were read. */
static int finalize_under_cursor(SoakTurn *turn) {
        __attribute__((cleanup(sqlipc_cursor_closep))) sqlipc_cursor *cursor = NULL;
        sqlipc_statement *statement;
        int64_t key = 0;
        int r = prepare(turn, BULK_SQL, &statement);

        if (r < 0)
                return r;
        r = sqlipc_execute(statement, &cursor);
        r = r < 0 ? soak_wrong(turn, r, "cannot execute") : read_some(turn, cursor, &key);
        sqlipc_finalize(statement);
        if (r < 0)
                return r;
        r = sqlipc_cursor_next(cursor);
        return r == -ESTALE || (r == 0 && key == turn->soak->n_rows) ? 0 :
                soak_wrong(turn, r < 0 ? r : -EBADMSG, "a row of a finalized statement");
}

/* ---- Connections -------------------------------------------------------------------------------------------------- */

int soak_connect(SoakTurn *turn) {
        int r;

        if (turn->client->connection)
                return 0;
        r = library_open(turn->soak->options, turn->client->transport, &turn->client->connection);
        return r < 0 ? r : sqlipc_set_timeout(turn->client->connection, SOAK_PATIENCE_USEC);
}

void soak_disconnect(SoakTurn *turn) {
        SoakClient *client = turn->client;

        turn->process->tallies[SOAK_SLOW].given_up += client->slow != NULL;
        client->connection = sqlipc_close(client->connection); /* while it has runs */
        client->slow = sqlipc_cursor_close(client->slow);
        client->left = sqlipc_finalize(client->left);
}

int soak_reconnect(SoakTurn *turn) {
        int r;

        soak_disconnect(turn);
        r = soak_connect(turn);
        return r < 0 ? r : soak_ask_point(turn);
}

const SoakOperation soak_operations[SOAK_KINDS] = {
        [SOAK_POINT] = { "a point query, as the library likes", 40, soak_ask_point },
        [SOAK_POINT_PIPE] = { "a point query, down a pipe", 0, soak_ask_point },
        [SOAK_POINT_CHANNEL] = { "a point query, on a channel", 0, soak_ask_point },
        [SOAK_POINT_DBUS] = { "a point query, as D-Bus values", 0, soak_ask_point },
        [SOAK_PREPARED] = { "prepared, executed 3 times, finalized", 8, ask_prepared },
        [SOAK_LEFT] = { "a statement left, or found again", 8, leave_statement },
        [SOAK_BULK] = { "all rows", 2, ask_bulk },
        [SOAK_SLOW] = { "all rows, slowly", 6, begin_slow },
        [SOAK_CANCELLED] = { "cancelled in the middle", 4, ask_and_cancel },
        [SOAK_ENDLESS] = { "without end, cancelled", 3, cancel_endless },
        [SOAK_DROPPED] = { "closed in the middle", 4, drop_cursor },
        [SOAK_FINALIZED] = { "finalized in the middle", 3, finalize_under_cursor },
        [SOAK_RECONNECTED] = { "disconnected, connected again", 4, soak_reconnect },
        [SOAK_BAD_SQL] = { "error: wrong SQL", 3, soak_bad_sql },
        [SOAK_UNKNOWN_DATABASE] = { "error: an unknown database", 3, soak_unknown_database },
        [SOAK_WRITE] = { "error: a write", 3, soak_write },
        [SOAK_TOO_DEEP] = { "error: too deep for a limit", 3, soak_too_deep },
        [SOAK_PARAMETERS] = { "error: too many parameters", 3, soak_parameters },
        [SOAK_OUR_TIMEOUT] = { "error: the client waits no longer", 1, soak_our_timeout },
        [SOAK_THEIR_TIMEOUT] = { "error: a run's time is up", 1, soak_their_timeout },
};
