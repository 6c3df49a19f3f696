/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A client of a library whose calls fail one after the other: library-client-faults ADDRESS TRANSPORT. Prints the sites
 * that it tried and the number of cases, or the failure. Of the library's headers it includes only sqlipc.h. The sites
 * are in its own program (site.h), so it arms them itself.
 *
 * A session is a client's life over one transport. With a fault it must end with an error that says what is wrong, or with
 * the right values. Afterwards the connection must still work, and no descriptor may be left. SIGALRM ends a session that
 * hangs.
 */
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-bus.h>
#include <unistd.h>

#include "client-lib/sqlipc.h"
#include "tests/reliability/faults/site.h"

#define SITES_MAX 1024
#define PATIENCE 240
#define SIZE 200000

static const char *address;
static const FaultSite *armed;

static void on_alarm(int signal) {
        (void) signal;
        static const char text[] = "a call of the library did not come back\n";
        ssize_t n = write(STDOUT_FILENO, text, sizeof text - 1);
        (void) n;
        n = armed ? write(STDOUT_FILENO, armed->function, strlen(armed->function)) : 0;
        (void) n;
        _exit(1);
}

static int count_descriptors(void) {
        DIR *folder = opendir("/proc/self/fd");
        int n = 0;

        while (folder && readdir(folder))
                n++;
        closedir(folder);
        return n;
}

static void wrong(const char *what) {
        printf("%s: %s:%d %s() %s\n", what, armed ? armed->file : "", armed ? armed->line : 0,
               armed ? armed->function : "", armed ? armed->call : "no fault");
        exit(1);
}

/* The one row of `cursor` has the values that were bound. */
static int check_values(sqlipc_cursor *cursor) {
        size_t size;
        int r = sqlipc_cursor_next(cursor);

        if (r <= 0)
                return r < 0 ? r : (wrong("a row is missing"), 0);
        if (sqlipc_column_int64(cursor, 0) != INT64_MIN || sqlipc_column_double(cursor, 1) != 2.5 ||
            strcmp(sqlipc_column_text(cursor, 2, &size), "text") != 0 || sqlipc_column_type(cursor, 3) != SQLIPC_NULL)
                wrong("a value is wrong");
        (void) sqlipc_column_blob(cursor, 4, &size);
        if (size != SIZE)
                wrong("a blob is too short");
        r = sqlipc_cursor_next(cursor);
        return r > 0 ? (wrong("a row too much"), 0) : r;
}

static int run_statement(sqlipc_connection *c) {
        static uint8_t blob[SIZE];
        sqlipc_statement *s = NULL;
        sqlipc_cursor *cursor = NULL;
        int r = sqlipc_prepare(c, "chinook", "SELECT ?, ?, ?, ?, :blob", &s);

        if (r >= 0)
                r = sqlipc_bind_int64(s, 1, INT64_MIN);
        if (r >= 0)
                r = sqlipc_bind_double(s, 2, 2.5);
        if (r >= 0)
                r = sqlipc_bind_text(s, 3, "text", 4);
        if (r >= 0)
                r = sqlipc_bind_null(s, 4);
        if (r >= 0)
                r = sqlipc_bind_blob_by_name(s, ":blob", blob, SIZE);
        for (int i = 0; i < 2 && r >= 0; i++) {
                r = sqlipc_execute(s, &cursor);
                if (r >= 0)
                        r = check_values(cursor);
                cursor = sqlipc_cursor_close(cursor);
        }
        (void) sqlipc_finalize(s);
        return r;
}

static int count_rows(sqlipc_connection *c, const char *sql, unsigned n_expected) {
        sqlipc_cursor *cursor = NULL;
        unsigned n = 0;
        int r = sqlipc_query(c, "chinook", sql, &cursor, NULL);

        while (r >= 0 && (r = sqlipc_cursor_next(cursor)) > 0)
                n++;
        if (r == 0 && n != n_expected)
                wrong("rows are missing");
        (void) sqlipc_cursor_close(cursor);
        return r;
}

static int count_tracks(sqlipc_connection *c) {
        return count_rows(c, "SELECT * FROM Track", 3503);
}

static int give_up_half_way(sqlipc_connection *c) {
        sqlipc_cursor *cursor = NULL;
        int r = sqlipc_query(c, "chinook", "SELECT * FROM Track, Genre", &cursor, NULL);

        if (r >= 0)
                r = sqlipc_cursor_next(cursor);
        if (r >= 0)
                r = sqlipc_cursor_cancel(cursor);
        (void) sqlipc_cursor_close(cursor);
        return r;
}

/* Texts and names that no D-Bus string holds. */
static int ask_for_odd_values(sqlipc_connection *c) {
        const sqlipc_parameter parameters[] = {
                { .struct_size = sizeof(sqlipc_parameter), .name = ":a", .type = SQLIPC_TEXT, .bytes = "\xff", .size = 1 },
        };
        sqlipc_cursor *cursor = NULL;
        size_t size = 0;
        int r = sqlipc_query_with(c, "odd", "SELECT :a AS \"a\", * FROM odd_names", parameters, 1, &cursor);

        if (r >= 0)
                r = sqlipc_cursor_next(cursor);
        if (r > 0 && (sqlipc_column_text(cursor, 0, &size)[0] != '\xff' || size != 1))
                wrong("a text is wrong");
        if (r > 0 && strcmp(sqlipc_column_name(cursor, 1), "a\xef\xb7\x90" "b") != 0)
                wrong("a name is wrong");
        (void) sqlipc_cursor_close(cursor);
        return r;
}

/* Long rows, which are kept in a file. */
static int ask_for_long_rows(sqlipc_connection *c) {
        static const size_t sizes[] = { 400000, 1, 900000, 300000 };
        sqlipc_cursor *cursor = NULL;
        size_t n = 0, size;
        int r = sqlipc_set_row_memory_max(c, 65536);

        if (r >= 0)
                r = sqlipc_query(c, "chinook", "SELECT zeroblob(column1) FROM (VALUES (400000), (1), (900000), (300000))",
                                 &cursor, NULL);
        while (r >= 0 && (r = sqlipc_cursor_next(cursor)) > 0) {
                (void) sqlipc_column_blob(cursor, 0, &size);
                if (n == 4 || size != sizes[n++])
                        wrong("a long row is wrong");
        }
        if (r == 0 && n != 4)
                wrong("a long row is missing");
        (void) sqlipc_cursor_close(cursor);
        return r;
}

static int count_in_blocks(sqlipc_connection *c) {
        sqlipc_cursor *cursor = NULL;
        const sqlipc_value *values;
        size_t n, sum = 0;
        int r = sqlipc_query(c, "chinook", "SELECT * FROM Track", &cursor, NULL);

        while (r >= 0 && (r = sqlipc_cursor_next_block(cursor, 0, &values, &n)) > 0)
                sum += n;
        if (r == 0 && sum != 3503)
                wrong("rows of blocks are missing");
        (void) sqlipc_cursor_close(cursor);
        return r;
}

/* A run whose time is limited, also for locks, ends as it should, and sqlipc_interrupt() ends one that never would. */
static int end_early(sqlipc_connection *c) {
        static const char endless[] =
                "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n";
        sqlipc_cursor *cursor = NULL;
        int r = sqlipc_set_run_timeout(c, 60000000);

        if (r >= 0)
                r = sqlipc_set_lock_wait(c, 600000000);
        if (r >= 0)
                r = count_rows(c, "SELECT 1", 1);
        if (r >= 0)
                r = sqlipc_query(c, "chinook", endless, &cursor, NULL);
        if (r >= 0)
                r = sqlipc_interrupt(c);
        if (r >= 0)
                r = sqlipc_cursor_next(cursor);
        (void) sqlipc_cursor_close(cursor);
        (void) sqlipc_set_run_timeout(c, UINT64_MAX);
        (void) sqlipc_set_lock_wait(c, UINT64_MAX);
        return r == -ECANCELED ? 0 : r;
}

/* Rows in "notes" with this number. */
static int count_notes(sqlipc_connection *c, int64_t number, int64_t *ret) {
        char sql[100];
        sqlipc_cursor *cursor = NULL;

        (void) snprintf(sql, sizeof sql, "SELECT count(*) FROM note WHERE number = %lld", (long long) number);
        int r = sqlipc_query(c, "notes", sql, &cursor, NULL);

        if (r >= 0)
                r = sqlipc_cursor_next(cursor);
        if (r > 0)
                *ret = sqlipc_column_int64(cursor, 0);
        (void) sqlipc_cursor_close(cursor);
        return r;
}

/* The rows of a statement are there after a success. They are not there after an error of the service, unless that says that
 * the outcome is unknown. */
static void check_notes(sqlipc_connection *c, int64_t number, int64_t n_expected, int r) {
        sqlipc_error error = sqlipc_error_code(c);
        int64_t n = -1;

        if (count_notes(c, number, &n) <= 0 && count_notes(c, number, &n) <= 0) /* only one call fails */
                wrong("rows cannot be counted");
        if (n != 0 && n != n_expected)
                wrong("a part was written, or more than that");
        if (r >= 0 && n != n_expected)
                wrong("what was acknowledged was not written");
        if (r < 0 && error != SQLIPC_ERROR_NONE && error != SQLIPC_ERROR_OUTCOME_UNKNOWN && n != 0)
                wrong("what has failed was written");
}

static int write_rows(sqlipc_connection *c, const char *sql) {
        sqlipc_cursor *cursor = NULL;
        int n = 0, r = sqlipc_query(c, "notes", sql, &cursor, NULL);

        while (r >= 0 && (r = sqlipc_cursor_next(cursor)) > 0)
                n++;
        if (r == 0 && (n != 3000 || sqlipc_cursor_changes(cursor) != 3000))
                wrong("rows of a statement that writes are missing");
        (void) sqlipc_cursor_close(cursor);
        return r;
}

static int write_notes(sqlipc_connection *c) {
        static unsigned n_written;
        int64_t number = (int64_t) getpid() << 32, changes = 0;
        char sql[250];

        number += ++n_written;
        (void) snprintf(sql, sizeof sql, "INSERT INTO note(number) VALUES (%lld)", (long long) number);
        int r = sqlipc_exec(c, "notes", sql, &changes);

        if (r >= 0 && changes != 1)
                wrong("changes are wrong");
        check_notes(c, number, 1, r);
        if (r < 0)
                return r;
        number = -number;
        (void) snprintf(sql, sizeof sql,
                        "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 3000) "
                        "INSERT INTO note(number) SELECT %lld FROM n RETURNING number, 'text'", (long long) number);
        r = write_rows(c, sql);
        check_notes(c, number, 3000, r);
        return r;
}

/* Writes a row with a value that is too large for a message. */
static int write_large(sqlipc_connection *c, int64_t number) {
        static const char bytes[1200000];
        const sqlipc_parameter parameters[] = {
                { .struct_size = sizeof *parameters, .type = SQLIPC_INTEGER, .integer = number },
                { .struct_size = sizeof *parameters, .type = SQLIPC_BLOB, .bytes = bytes, .size = sizeof bytes },
        };

        return sqlipc_exec_with(c, "notes", "INSERT INTO note(number, text) VALUES (?, ?)", parameters, 2, NULL);
}

/* A transaction that is committed, and one that is rolled back. */
static int write_in_transaction(sqlipc_connection *c) {
        static unsigned n_written;
        int64_t number = ((int64_t) getpid() << 32) + (INT64_C(1) << 31) + ++n_written;
        sqlipc_transaction *t = NULL;
        char sql[100];
        int r = sqlipc_begin(c, "notes", SQLIPC_TRANSACTION_WRITE, &t);

        if (r >= 0)
                r = write_large(c, number);
        if (r >= 0)
                r = sqlipc_commit(t);
        (void) sqlipc_transaction_close(t);
        check_notes(c, number, 1, r);
        if (r < 0)
                return r;
        t = NULL;
        (void) sqlipc_set_lock_wait(c, 600000000);
        r = sqlipc_begin(c, "notes", SQLIPC_TRANSACTION_WRITE, &t);
        (void) sqlipc_set_lock_wait(c, UINT64_MAX);
        (void) snprintf(sql, sizeof sql, "INSERT INTO note(number) VALUES (%lld)", (long long) -number);
        if (r >= 0)
                r = sqlipc_exec(c, "notes", sql, NULL);
        if (r >= 0)
                r = sqlipc_rollback(t);
        (void) sqlipc_transaction_close(t);
        int64_t n = -1;
        if (count_notes(c, -number, &n) <= 0 && count_notes(c, -number, &n) <= 0) /* only one call fails */
                wrong("rows cannot be counted");
        if (n != 0)
                wrong("what was rolled back was written");
        return r;
}

static int count_mine(sqlipc_connection *c, int64_t n_expected) {
        sqlipc_cursor *cursor = NULL;
        int r = sqlipc_query(c, "notes", "SELECT count(*) FROM mine", &cursor, NULL);

        if (r >= 0)
                r = sqlipc_cursor_next(cursor);
        if (r > 0 && sqlipc_column_int64(cursor, 0) != n_expected)
                wrong("rows of a TEMP table are wrong");
        (void) sqlipc_cursor_close(cursor);
        return r;
}

/* A TEMP table is made by a statement that is too large for a message, and filled in each way. */
static int use_temp_table(sqlipc_connection *c, sqlipc_transaction **t, sqlipc_batch **b, sqlipc_statement **s) {
        static const char bytes[1200000];
        const sqlipc_parameter blob = {
                .struct_size = sizeof blob, .type = SQLIPC_BLOB, .bytes = bytes, .size = sizeof bytes,
        };
        sqlipc_cursor *cursor = NULL;
        int r = sqlipc_exec_with(c, "notes", "CREATE TEMP TABLE mine AS SELECT ? AS a", &blob, 1, NULL);

        if (r >= 0)
                r = sqlipc_prepare(c, "notes", "INSERT INTO mine VALUES (1)", s);
        if (r >= 0)
                r = sqlipc_execute(*s, &cursor);
        if (r >= 0)
                r = sqlipc_cursor_next(cursor);
        (void) sqlipc_cursor_close(cursor);
        if (r >= 0)
                r = sqlipc_begin(c, "notes", SQLIPC_TRANSACTION_DEFERRED, t);
        if (r >= 0)
                r = sqlipc_exec(c, "notes", "DELETE FROM mine", NULL);
        if (r >= 0)
                r = sqlipc_rollback(*t);
        if (r >= 0)
                r = sqlipc_batch_new(c, "notes", b);
        if (r >= 0)
                r = sqlipc_batch_add(*b, "INSERT INTO mine VALUES (2)", NULL);
        if (r >= 0)
                r = sqlipc_batch_add_with(*b, "INSERT INTO mine VALUES (?)", &blob, 1);
        if (r >= 0)
                r = sqlipc_batch_run(*b, NULL);
        return r < 0 ? r : count_mine(c, 4);
}

/* The first statement of this connection that needs a pin is in a transaction, or in a batch. */
static int take_pin_late(sqlipc_connection *c, sqlipc_transaction **t, sqlipc_batch **b, sqlipc_statement **s) {
        int r = sqlipc_begin(c, "notes", SQLIPC_TRANSACTION_DEFERRED, t);

        (void) s;
        if (r >= 0)
                r = sqlipc_batch_new(c, "notes", b);
        if (r >= 0)
                r = sqlipc_batch_add(*b, "CREATE TEMP TABLE mine(a)", NULL);
        if (r >= 0)
                r = sqlipc_batch_add(*b, "INSERT INTO mine VALUES (1)", NULL);
        if (r >= 0)
                r = sqlipc_batch_run(*b, NULL);
        if (r >= 0)
                r = sqlipc_exec(c, "notes", "INSERT INTO mine VALUES (2)", NULL);
        if (r >= 0)
                r = sqlipc_commit(*t);
        return r < 0 ? r : count_mine(c, 2);
}

static int with_own_connection(sqlipc_transport transport, int (*use)(sqlipc_connection *, sqlipc_transaction **,
                                                                     sqlipc_batch **, sqlipc_statement **)) {
        sqlipc_connection *c = NULL;
        sqlipc_transaction *t = NULL;
        sqlipc_batch *b = NULL;
        sqlipc_statement *s = NULL;
        int r = sqlipc_open_address(address, &c);

        if (r >= 0)
                r = sqlipc_set_transport(c, transport);
        if (r >= 0)
                r = use(c, &t, &b, &s);
        if (r < 0 && c && !*sqlipc_error_message(c))
                wrong("an error without a sentence");
        (void) sqlipc_finalize(s);
        (void) sqlipc_batch_close(b);
        (void) sqlipc_transaction_close(t);
        (void) sqlipc_close(c);
        return r;
}

static int wait_for_events(sqlipc_connection *c) {
        struct pollfd p = { .fd = sqlipc_get_fd(c) };
        int r = p.fd < 0 ? p.fd : sqlipc_get_events(c);

        if (r < 0)
                return r;
        p.events = (short) r;
        uint64_t usec;
        r = sqlipc_get_timeout(c, &usec);
        if (r < 0)
                return r;
        (void) poll(&p, 1, 1000); /* no later than any timeout would come */
        r = sqlipc_process(c);
        return r < 0 ? r : 0;
}

/* From a loop of the program's own. */
static int ask_without_blocking(sqlipc_connection *c) {
        sqlipc_cursor *cursor = NULL;
        unsigned n = 0;
        int r = sqlipc_set_blocking(c, 0);

        if (r >= 0)
                r = sqlipc_query(c, "chinook", "SELECT * FROM Genre", &cursor, NULL);
        while (r >= 0 && ((r = sqlipc_cursor_next(cursor)) > 0 || r == -EAGAIN)) {
                n += r > 0;
                if (r == -EAGAIN)
                        r = wait_for_events(c);
        }
        if (r == 0 && n != 25)
                wrong("rows are missing");
        (void) sqlipc_cursor_close(cursor);
        (void) sqlipc_set_blocking(c, 1);
        return r;
}

/* Values come before it is known whether the statement has such parameters. */
static int bind_early(sqlipc_connection *c) {
        sqlipc_statement *s = NULL;
        sqlipc_cursor *cursor = NULL;
        int r = sqlipc_set_blocking(c, 0);

        if (r >= 0)
                r = sqlipc_prepare(c, "chinook", "SELECT :number + length(:text)", &s);
        if (r >= 0)
                r = sqlipc_bind_int64_by_name(s, ":number", 40);
        if (r >= 0)
                r = sqlipc_bind_text_by_name(s, ":text", "to", 2);
        if (r >= 0)
                r = sqlipc_execute(s, &cursor);
        while (r >= 0 && (r = sqlipc_cursor_next(cursor)) == -EAGAIN)
                r = wait_for_events(c);
        if (r == 0 || (r > 0 && sqlipc_column_int64(cursor, 0) != 42))
                wrong("a value that was bound early is wrong");
        (void) sqlipc_cursor_close(cursor);
        (void) sqlipc_finalize(s);
        (void) sqlipc_set_blocking(c, 1);
        return r;
}

/* If a call is abandoned before its answer came, it is undone when the answer comes. */
static int give_up_early(sqlipc_connection *c) {
        sqlipc_statement *s = NULL;
        sqlipc_transaction *t = NULL;
        sqlipc_cursor *cursor = NULL;
        int r = sqlipc_set_blocking(c, 0);

        if (r >= 0)
                r = sqlipc_prepare(c, "chinook", "SELECT 1", &s);
        (void) sqlipc_finalize(s);
        if (r >= 0)
                r = sqlipc_begin(c, "chinook", SQLIPC_TRANSACTION_READ, &t);
        (void) sqlipc_transaction_close(t);
        if (r >= 0)
                r = sqlipc_query(c, "chinook", "SELECT 1", &cursor, NULL);
        (void) sqlipc_cursor_close(cursor);
        (void) sqlipc_set_blocking(c, 1);
        return r < 0 ? r : count_rows(c, "SELECT 1", 1);
}

/* ---- Watches and live queries ---- */

static int write_note(sqlipc_connection *c, int64_t number) {
        char sql[100];

        (void) snprintf(sql, sizeof sql, "INSERT INTO note(number) VALUES (%lld)", (long long) number);
        return sqlipc_exec(c, "notes", sql, NULL);
}

/* After each change, which was acknowledged, the watch tells one. */
static int await_changes(sqlipc_connection *c, sqlipc_watch *watch) {
        int r = 0;

        for (int i = 0; i < 2 && r >= 0; i++) {
                r = write_note(c, 0);
                if (r >= 0)
                        r = sqlipc_watch_next(watch, PATIENCE * UINT64_C(1000000) / 4);
                if (r == 0)
                        wrong("a change was not told");
        }
        return r;
}

static int watch_tables(sqlipc_connection *c) {
        static const char *const tables[] = { "note", NULL };
        sqlipc_watch *watch = NULL;
        int r = sqlipc_watch_open(c, "notes", tables, &watch);

        if (r >= 0)
                r = await_changes(c, watch);
        if (r >= 0)
                r = sqlipc_watch_get_fd(watch);
        if (r >= 0)
                r = await_changes(c, watch);
        if (r >= 0)
                r = sqlipc_watch_next(watch, 0);
        watch = sqlipc_watch_close(watch);
        if (r >= 0)
                r = sqlipc_watch_open_sql(c, "notes", "SELECT number FROM note", &watch);
        if (r >= 0)
                r = await_changes(c, watch);
        watch = sqlipc_watch_close(watch);
        if (r >= 0)
                r = sqlipc_watch_open_since(c, "notes", tables, 1, &watch);
        if (r >= 0)
                r = sqlipc_watch_next(watch, 0);
        (void) sqlipc_watch_close(watch);
        return r;
}

/* Follows until the rows are as many as there should be. */
static int follow(sqlipc_live *live, int fd, sqlipc_connection *c, int64_t *n_rows, int64_t n_expected) {
        const sqlipc_live_change *change;
        struct pollfd p = { .fd = fd, .events = POLLIN };
        int r;

        for (;;) {
                r = sqlipc_live_next(live, fd >= 0 ? 0 : PATIENCE * UINT64_C(1000000) / 4, &change);
                if (r == 0 && fd < 0)
                        wrong("a result was not told");
                if (r == 0)
                        (void) poll(&p, 1, 1000);
                else if (r == -EAGAIN)
                        r = wait_for_events(c);
                if (r < 0)
                        return r;
                if (r == 0)
                        continue;
                *n_rows += (change->kind == SQLIPC_LIVE_ADDED) - (change->kind == SQLIPC_LIVE_REMOVED);
                if (change->kind == SQLIPC_LIVE_SETTLED && *n_rows == n_expected)
                        return 0;
        }
}

/* Waits with the descriptor of the live query; in the library; in a loop of the program's own. */
static int follow_result(sqlipc_connection *c) {
        static unsigned n_followed;
        int64_t number = ((int64_t) getpid() << 32) + (INT64_C(3) << 30) + ++n_followed, n_rows = 0;
        const sqlipc_parameter parameters[] = {
                { .struct_size = sizeof(sqlipc_parameter), .name = ":number", .type = SQLIPC_INTEGER, .integer = number },
                { .struct_size = sizeof(sqlipc_parameter), .type = SQLIPC_TEXT, .bytes = "text", .size = 4 },
        };
        static const char sql[] = "SELECT rowid, number, ?1 FROM note WHERE number = :number ORDER BY rowid DESC";
        sqlipc_live *live = NULL;
        int r = sqlipc_live_open(c, "notes", sql, parameters, 2, NULL, &live);

        if (r >= 0)
                r = follow(live, -1, c, &n_rows, 0);
        for (int i = 1; i <= 3 && r >= 0; i++) {
                r = write_note(c, number);
                if (r >= 0 && i == 2)
                        r = sqlipc_live_get_fd(live);
                if (r >= 0)
                        r = follow(live, i == 2 ? r : -1, c, &n_rows, i);
        }
        (void) sqlipc_live_close(live);
        return r;
}

/* A result whose order changes with each row that this process writes. Other processes write, too. */
static int follow_order(sqlipc_connection *c) {
        static const char sql[] = "SELECT column1 FROM (VALUES (1), (2), (3)) "
                                  "ORDER BY column1 * (SELECT 1 - 2 * (count(*) % 2) FROM note WHERE number = ?1)";
        int64_t number = ((int64_t) getpid() << 32) + (INT64_C(1) << 31), n_rows = 0;
        const sqlipc_parameter parameter = {
                .struct_size = sizeof parameter, .type = SQLIPC_INTEGER, .integer = number,
        };
        sqlipc_live *live = NULL;
        int r = sqlipc_live_open(c, "notes", sql, &parameter, 1, NULL, &live);

        if (r >= 0)
                r = follow(live, -1, c, &n_rows, 3);
        if (r >= 0)
                r = write_note(c, number);
        if (r >= 0)
                r = follow(live, -1, c, &n_rows, 3);
        (void) sqlipc_live_close(live);
        return r;
}

static int follow_without_blocking(sqlipc_connection *c) {
        sqlipc_live *live = NULL;
        sqlipc_watch *watch = NULL;
        int64_t n_rows = 0;
        int r = sqlipc_set_blocking(c, 0);

        if (r >= 0)
                r = sqlipc_watch_open(c, "notes", NULL, &watch);
        (void) sqlipc_watch_close(watch); /* before it has begun */
        watch = NULL;
        if (r >= 0)
                r = sqlipc_watch_open(c, "notes", NULL, &watch);
        while (r >= 0 && (r = sqlipc_watch_next(watch, 0)) == -EAGAIN)
                r = wait_for_events(c);
        (void) sqlipc_watch_close(watch);
        if (r >= 0)
                r = sqlipc_live_open(c, "chinook", "SELECT * FROM Genre", NULL, 0, NULL, &live);
        if (r >= 0)
                r = follow(live, -1, c, &n_rows, 25);
        (void) sqlipc_live_close(live);
        (void) sqlipc_set_blocking(c, 1);
        return r;
}

static int count_database(const sqlipc_database *database, void *userdata) {
        (void) database;
        ++*(int *) userdata;
        return 0;
}

/* Both of this machine's buses, which the environment names, the one that has a database, and one that no ssh leads to. */
static int open_by_name(void) {
        static int (*const open[])(sqlipc_connection **) = { sqlipc_open_user, sqlipc_open_system };
        sqlipc_connection *c = NULL;
        int r = 0;

        for (size_t i = 0; i < sizeof open / sizeof open[0] && r >= 0; i++) {
                r = open[i](&c);
                if (r >= 0)
                        r = count_rows(c, "SELECT 1", 1);
                c = sqlipc_close(c);
        }
        if (r >= 0) {
                r = sqlipc_open("chinook", NULL, &c);
                if (r >= 0)
                        r = count_rows(c, "SELECT 1", 1);
                c = sqlipc_close(c);
        }
        if (r < 0)
                return r;
        r = sqlipc_open_user_remote("nowhere.invalid:22", &c);
        if (r >= 0 && count_rows(c, "SELECT 1", 1) >= 0)
                wrong("a bus that nothing leads to answered");
        (void) sqlipc_close(c);
        return r < 0 ? r : 0;
}

static int open_bus(sd_bus **ret, int descriptors) {
        int r = sd_bus_new(ret);

        if (r >= 0)
                r = sd_bus_set_address(*ret, address);
        if (r >= 0)
                r = sd_bus_set_bus_client(*ret, true);
        if (r >= 0)
                r = sd_bus_negotiate_fds(*ret, descriptors);
        return r < 0 ? r : sd_bus_start(*ret);
}

/* On the program's own bus, which is not connected yet, and whose messages the program dispatches then. */
static int be_a_guest(sqlipc_transport transport) {
        sqlipc_connection *c = NULL;
        sqlipc_cursor *cursor = NULL;
        sd_bus *bus = NULL;
        int r = open_bus(&bus, true);

        if (r < 0)
                wrong("no bus");
        r = sqlipc_open_bus(bus, &c);
        if (r >= 0)
                r = sqlipc_set_transport(c, transport);
        if (r >= 0)
                r = count_rows(c, "SELECT 1", 1);
        if (r >= 0)
                r = sqlipc_set_blocking(c, 0);
        if (r >= 0)
                r = sqlipc_query(c, "chinook", "SELECT 1", &cursor, NULL);
        while (r >= 0 && (r = sqlipc_cursor_next(cursor)) == -EAGAIN) {
                (void) sd_bus_wait(bus, 10000);
                r = sd_bus_process(bus, NULL);
                if (r == 0)
                        r = wait_for_events(c);
        }
        (void) sqlipc_cursor_close(cursor);
        (void) sqlipc_close(c);
        (void) sd_bus_flush_close_unref(bus);
        return r;
}

/* On a bus without descriptors. */
static int watch_without_descriptors(void) {
        sqlipc_connection *c = NULL;
        sqlipc_watch *watch = NULL;
        sd_bus *bus = NULL;
        int r = open_bus(&bus, false);

        if (r < 0)
                wrong("no bus");
        r = sqlipc_open_bus(bus, &c);
        if (r >= 0)
                r = sqlipc_watch_open(c, "notes", NULL, &watch);
        if (r >= 0)
                r = await_changes(c, watch);
        (void) sqlipc_watch_close(watch);
        (void) sqlipc_close(c);
        (void) sd_bus_flush_close_unref(bus);
        return r;
}

static int (*const steps[])(sqlipc_connection *) = {
        run_statement, count_tracks, give_up_half_way, ask_for_odd_values, ask_for_long_rows, count_in_blocks,
        end_early, ask_without_blocking, bind_early, give_up_early,
        write_notes, write_in_transaction, watch_tables, follow_result, follow_order,
        follow_without_blocking,
};

/* The parts of a life: the steps on its connection, then those with connections of their own. */
enum {
        N_STEPS = sizeof steps / sizeof steps[0],
        GUEST = N_STEPS,
        WITHOUT_DESCRIPTORS,
        TEMP_TABLES,
        BY_NAME,
        N_PARTS,
};

/* Everything from the part `from` on, in a connection of its own. */
static int live(sqlipc_transport transport, unsigned from) {
        sqlipc_connection *c = NULL;
        sqlipc_cursor *cursor = NULL;
        int n = 0, r = sqlipc_open_address(address, &c);

        if (r >= 0)
                r = sqlipc_set_transport(c, transport);
        if (r >= 0)
                r = sqlipc_list_databases(c, count_database, &n);
        for (unsigned i = from; i < N_STEPS && r >= 0; i++)
                r = steps[i](c);
        if (r >= 0 && sqlipc_query(c, "chinook", "SELECT * FROM nowhere", &cursor, NULL) >= 0 &&
            sqlipc_cursor_next(cursor) >= 0)
                wrong("a wrong statement ran");
        cursor = sqlipc_cursor_close(cursor);
        if (r < 0 && c && !*sqlipc_error_message(c))
                wrong("an error without a sentence");
        if (c) /* it may be lost, but it answers */
                (void) count_rows(c, "SELECT 1", 1);
        (void) sqlipc_close(c);
        if (r >= 0 && from <= GUEST)
                r = be_a_guest(transport);
        if (r >= 0 && from <= WITHOUT_DESCRIPTORS)
                r = watch_without_descriptors();
        if (r >= 0 && from <= TEMP_TABLES)
                r = with_own_connection(transport, use_temp_table);
        if (r >= 0 && from <= TEMP_TABLES)
                r = with_own_connection(transport, take_pin_late);
        if (r >= 0 && from <= BY_NAME && transport == SQLIPC_TRANSPORT_PIPE) /* to the others all the same */
                r = open_by_name();
        return r;
}

static void try_one(sqlipc_transport transport, unsigned from, unsigned index, int error, unsigned skip) {
        int n = count_descriptors(), r;

        armed = fault_site(index);
        (void) alarm(PATIENCE);
        fault_arm(index, error, skip);
        r = live(transport, from);
        if (!fault_fired() && r < 0)
                wrong("an error without a fault");
        (void) alarm(0);
        if (count_descriptors() > n)
                wrong("a descriptor is left");
        armed = NULL;
}

/* How often a life that begins with each part reaches each site; the last one has no part. */
static unsigned reached[N_PARTS + 1][SITES_MAX];

static void reach_all(sqlipc_transport transport) {
        for (unsigned from = 0; from <= N_PARTS; from++) {
                for (unsigned i = 0; fault_site(i); i++)
                        reached[from][i] = fault_reached(i);
                if (live(transport, from) < 0)
                        wrong("an error without a fault");
                for (unsigned i = 0; fault_site(i); i++)
                        reached[from][i] = fault_reached(i) - reached[from][i];
        }
}

/* The first part that reaches the site, since the parts before it only take time; 0 also if every life does. */
static unsigned first_part(unsigned index) {
        unsigned from = 0;

        while (from < N_PARTS && reached[from + 1][index] >= reached[0][index])
                from++;
        return from < N_PARTS ? from : 0;
}

/* The last part that reaches the site; N_PARTS if none does. */
static unsigned last_part(unsigned index) {
        unsigned from = N_PARTS;

        while (from > 0 && reached[from][index] <= reached[N_PARTS][index])
                from--;
        return reached[from][index] > reached[N_PARTS][index] ? from : N_PARTS;
}

static int n_errors(const FaultSite *site) {
        int n = 0;

        while (n < FAULT_ERRORS_MAX && site->errors[n] != 0)
                n++;
        return n;
}

/* Each site that a life over this transport reaches: at its first call with each error, at its last call with one, which is
 * another over each transport. Its index is printed. Returns how many cases these were. */
static unsigned try_all(sqlipc_transport transport) {
        unsigned n = 0;

        reach_all(transport);
        for (unsigned i = 0; fault_site(i); i++) {
                unsigned first = first_part(i), last = last_part(i);

                if (reached[0][i] > 0)
                        printf("%u\n", i);
                for (int k = 0; reached[0][i] > 0 && k < n_errors(fault_site(i)); k++) {
                        try_one(transport, first, i, fault_site(i)->errors[k], 0);
                        n++;
                        if (reached[0][i] > 1 && k == (int) transport % n_errors(fault_site(i))) {
                                try_one(transport, last, i, fault_site(i)->errors[k], reached[last][i] - 1);
                                n++;
                        }
                }
        }
        return n;
}

int main(int argc, char **argv) {
        static const char *const transports[] = {
                [SQLIPC_TRANSPORT_PIPE] = "pipe",
                [SQLIPC_TRANSPORT_CHANNEL] = "channel",
                [SQLIPC_TRANSPORT_DBUS] = "dbus",
        };
        size_t transport = 0;

        if (argc != 3)
                return 2;
        address = argv[1];
        while (transport < sizeof transports / sizeof transports[0] &&
               (!transports[transport] || strcmp(transports[transport], argv[2]) != 0))
                transport++;
        if (transport == sizeof transports / sizeof transports[0])
                return 2;
        (void) setvbuf(stdout, NULL, _IOLBF, 0);
        (void) signal(SIGALRM, on_alarm);
        printf("%u\n", try_all((sqlipc_transport) transport));
        return 0;
}
