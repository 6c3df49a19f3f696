/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Blocking statements against a scripted service: bound values, a new compilation after the service lost the statement, and
 * calls that need no cursor.
 */
#include <sys/stat.h>

#include "tests/unit/cursor-checks.h"

/* ---- statements that got lost ------------------------------------------------------------------------------------- */

static int lose_statement(FakeService *f, sd_bus_message *m, const char *member) {
        if (strcmp(member, "Fetch") != 0 || f->n_fetch != 2)
                return 0;
        CHECK(sd_bus_reply_method_errorf(m, "org.sqlipc1.Error.UnknownStatement", "No such statement.") >= 0);
        return 1;
}

static void check_last_parameter(FakeService *f, int64_t value) {
        int64_t got;

        CHECK(sd_bus_message_rewind(f->last, true) >= 0);
        CHECK(sd_bus_message_skip(f->last, "t") >= 0);
        CHECK(sd_bus_message_read(f->last, "av", 1, "x", &got) >= 0);
        CHECK_INT(got, value);
}

static void test_prepared_again(void) {
        FakeService f;
        sqlipc_statement *s;
        sqlipc_cursor *c;

        fake_start(&f);
        f.on_call = lose_statement;
        f.parameters[0] = ":id";
        fake_set_result(&f, 1, 2);
        s = prepare(&f);
        CHECK_INT(sqlipc_bind_int64_by_name(s, "id", 42), 0);
        for (int i = 0; i < 2; i++) {
                c = execute(s);
                check_rows(c, 1, 2);
                check_end(c);
                sqlipc_cursor_close(c);
        }
        check_last_parameter(&f, 42);
        CHECK_INT(f.n_prepare, 2);
        CHECK_INT(f.n_fetch, 3);
        sqlipc_finalize(s);
        fake_done(&f);
}

static int always_lose(FakeService *f, sd_bus_message *m, const char *member) {
        (void) f;
        if (strcmp(member, "Fetch") != 0)
                return 0;
        CHECK(sd_bus_reply_method_errorf(m, "org.sqlipc1.Error.WorkerLost", "The worker died.") >= 0);
        return 1;
}

/* Once is enough: a query that kills its workers is not sent for ever. */
static void test_prepared_again_once(void) {
        FakeService f;
        sqlipc_statement *s;
        sqlipc_cursor *c;

        fake_start(&f);
        f.on_call = always_lose;
        s = prepare(&f);
        CHECK_INT(sqlipc_execute(s, &c), -ECONNRESET);
        CHECK_INT(sqlipc_error_code(f.connection), SQLIPC_ERROR_WORKER_LOST);
        CHECK_INT(f.n_fetch, 2);
        sqlipc_finalize(s);
        fake_done(&f);
}

static void test_statement_after_lost_worker(void) {
        FakeService f;
        sqlipc_statement *s;
        sqlipc_cursor *c;

        fake_start(&f);
        fake_set_unfinished(&f, 1, 2);
        f.close_pipe = true;
        s = prepare(&f);
        c = execute(s);
        check_rows(c, 1, 2);
        check_failure(&f, c, -ECONNRESET, SQLIPC_ERROR_WORKER_LOST);
        CHECK_INT(sqlipc_statement_is_ready(s), 1);
        sqlipc_cursor_close(c);
        f.close_pipe = false;
        fake_set_result(&f, 1, 1);
        c = execute(s);
        check_rows(c, 1, 1);
        check_end(c);
        CHECK_INT(f.n_prepare, 2);
        sqlipc_cursor_close(c);
        sqlipc_finalize(s);
        fake_done(&f);
}

/* The end was read before the reply to Fetch, and then the pipe broke: it polls readable for ever from then on, but
 * the next run waits for that reply. */
static void test_broken_pipe_before_reply(void) {
        FakeService f;
        sqlipc_statement *s;
        sqlipc_cursor *c;

        fake_start(&f);
        f.on_call = lose_statement;
        f.reply_late = f.close_pipe = true;
        fake_set_result(&f, 1, 2);
        s = prepare(&f);
        for (int i = 0; i < 2; i++) {
                c = execute(s);
                check_rows(c, 1, 2);
                check_end(c);
                sqlipc_cursor_close(c);
        }
        CHECK_INT(f.n_prepare, 2);
        sqlipc_finalize(s);
        fake_wait_for(&f.n_finalize, 2); /* the lost one too */
        fake_done(&f);
}

/* A bus of the caller's is the caller's to open again. */
static void test_bus_gone(void) {
        FakeService f;
        sqlipc_statement *s;
        sqlipc_cursor *c;

        fake_start(&f);
        s = prepare(&f);
        fake_stop_service(&f);
        CHECK_INT(sqlipc_execute(s, &c), -ECONNRESET);
        CHECK_INT(sqlipc_error_code(f.connection), SQLIPC_ERROR_DAEMON_LOST);
        CHECK_INT(sqlipc_query(f.connection, "db", "SELECT 1", &c, NULL), -ECONNRESET);
        CHECK_INT(sqlipc_error_code(f.connection), SQLIPC_ERROR_DAEMON_LOST);
        sqlipc_finalize(s);
        fake_done(&f);
}

/* ---- parameters and arguments ------------------------------------------------------------------------------------- */

static void test_bind(void) {
        FakeService f;
        sqlipc_statement *s;
        sqlipc_cursor *c;

        fake_start(&f);
        f.parameters[0] = ":a";
        f.parameters[1] = "";
        f.parameters[2] = "@a";
        fake_set_result(&f, 1, 1);
        s = prepare(&f);
        CHECK_INT(sqlipc_statement_parameter_count(s), 3);
        CHECK_STRING(sqlipc_statement_parameter_name(s, 1), ":a");
        CHECK(!sqlipc_statement_parameter_name(s, 2));
        CHECK(!sqlipc_statement_parameter_name(s, 0));
        CHECK_INT(sqlipc_statement_parameter_index(s, "@a"), 3);
        CHECK_INT(sqlipc_statement_parameter_index(s, "a"), 0); /* two have that name */
        CHECK_STRING(sqlipc_statement_column_name(s, 0), "c");
        CHECK_STRING(sqlipc_statement_column_decltype(s, 0), "TEXT");

        CHECK_INT(sqlipc_bind_int64(s, 0, 1), -ERANGE);
        CHECK_INT(sqlipc_bind_int64(s, 4, 1), -ERANGE);
        CHECK_INT(sqlipc_bind_int64_by_name(s, "b", 1), -ENXIO);
        CHECK_INT(sqlipc_error_code(f.connection), SQLIPC_ERROR_UNKNOWN_PARAMETER);
        CHECK_INT(sqlipc_bind_blob(s, 1, NULL, 3), -EINVAL);
        CHECK_INT(sqlipc_bind_text_by_name(s, ":a", "text", SIZE_MAX), 0);
        CHECK_INT(sqlipc_bind_double(s, 3, 0.5), 0);

        c = execute(s);
        check_rows(c, 1, 1);
        {
                const char *text;
                double real;

                CHECK(sd_bus_message_rewind(f.last, true) >= 0);
                CHECK(sd_bus_message_skip(f.last, "t") >= 0);
                CHECK(sd_bus_message_read(f.last, "av", 3, "s", &text, "a{sv}", 0, "d", &real) >= 0);
                CHECK_STRING(text, "text");
                CHECK(real == 0.5);
        }
        sqlipc_cursor_close(c);
        CHECK_INT(sqlipc_clear_bindings(s), 0);
        sqlipc_finalize(s);
        fake_done(&f);
}

/* The same as by index, of each type; the last bind holds, and one that is refused changes nothing. */
static void test_bind_by_name(void) {
        FakeService f;
        sqlipc_statement *s;
        sqlipc_cursor *c;
        double real;
        uint8_t first, last;

        fake_start(&f);
        f.parameters[0] = ":a";
        f.parameters[1] = "@b";
        f.parameters[2] = ":c";
        fake_set_result(&f, 1, 1);
        s = prepare(&f);
        CHECK_INT(sqlipc_bind_double_by_name(s, "a", 0.5), 0);
        CHECK_INT(sqlipc_bind_int64_by_name(s, "b", 7), 0);
        CHECK_INT(sqlipc_bind_null_by_name(s, "@b"), 0);
        CHECK_INT(sqlipc_bind_blob_by_name(s, "c", "\0\377", 2), 0);

        CHECK_INT(sqlipc_bind_null_by_name(s, "d"), -ENXIO);
        CHECK_INT(sqlipc_bind_null_by_name(s, NULL), -EINVAL);
        CHECK_INT(sqlipc_bind_int64_by_name(s, NULL, 1), -EINVAL);
        CHECK_INT(sqlipc_bind_double_by_name(s, NULL, 1), -EINVAL);
        CHECK_INT(sqlipc_bind_text_by_name(s, NULL, "x", 1), -EINVAL);
        CHECK_INT(sqlipc_bind_text_by_name(s, "c", NULL, 3), -EINVAL);
        CHECK_INT(sqlipc_bind_blob_by_name(s, NULL, "x", 1), -EINVAL);
        CHECK_INT(sqlipc_bind_blob_by_name(s, "c", NULL, 3), -EINVAL);

        c = execute(s);
        check_rows(c, 1, 1);
        CHECK(sd_bus_message_rewind(f.last, true) >= 0);
        CHECK(sd_bus_message_skip(f.last, "t") >= 0);
        CHECK(sd_bus_message_read(f.last, "av", 3, "d", &real, "a{sv}", 0, "ay", 2, &first, &last) >= 0);
        CHECK(real == 0.5);
        CHECK_INT(first, 0);
        CHECK_INT(last, 255);
        sqlipc_cursor_close(c);
        sqlipc_finalize(s);
        fake_done(&f);
}

static void test_query_arguments(void) {
        FakeService f;
        sqlipc_cursor *c;
        const char *text;
        int64_t integer;
        double real;

        fake_start(&f);
        fake_set_result(&f, 1, 1);
        CHECK_INT(sqlipc_query(f.connection, "db", "SELECT ?, ?, ?, ?", &c, "idsn", (int64_t) -5, 2.5, "x"), 0);
        CHECK(sd_bus_message_rewind(f.last, true) >= 0);
        CHECK(sd_bus_message_read(f.last, "sav", NULL, 4, "x", &integer, "d", &real, "s", &text, "a{sv}", 0) >= 0);
        CHECK_INT(integer, -5);
        CHECK(real == 2.5);
        CHECK_STRING(text, "x");
        sqlipc_cursor_close(c);
        CHECK_INT(sqlipc_query(f.connection, "db", "SELECT ?", &c, "z", 1), -EINVAL);
        CHECK_INT(sqlipc_query(f.connection, "db", "SELECT \xff", &c, NULL), -EINVAL);
        CHECK_INT(sqlipc_error_code(f.connection), SQLIPC_ERROR_SQL);
        CHECK_INT(sqlipc_error_sql_offset(f.connection), 7);
        fake_done(&f);
}

static const char *fetch_error;

/* The first Fetch is refused. */
static int refuse_fetch(FakeService *f, sd_bus_message *m, const char *member) {
        if (strcmp(member, "Fetch") != 0 || f->n_fetch > 1)
                return 0;
        CHECK(sd_bus_reply_method_errorf(m, fetch_error, "No.") >= 0);
        return 1;
}

static void check_refused_fetch(bool writes, const char *error, bool repeated) {
        FakeService f;
        sqlipc_statement *s;
        sqlipc_cursor *c;

        fake_start(&f);
        fake_set_result(&f, 1, 2);
        f.writes = writes;
        f.on_call = refuse_fetch;
        fetch_error = error;
        s = prepare(&f);
        if (repeated) {
                c = execute(s);
                check_rows(c, 1, 2);
                check_end(c);
                sqlipc_cursor_close(c);
        } else {
                CHECK(sqlipc_execute(s, &c) < 0);
                CHECK_STRING(sqlipc_statement_error_name(s), error);
        }
        CHECK_INT(f.n_fetch, 1 + repeated);
        sqlipc_finalize(s);
        fake_done(&f);
}

/* The service's error decides if a request is repeated; otherwise the statement, by being read-only, does. */
static void test_repeated(void) {
        for (int writes = 0; writes <= 1; writes++) {
                check_refused_fetch(writes, "org.sqlipc1.Error.UnknownStatement", true);
                check_refused_fetch(writes, "org.sqlipc1.Error.ShuttingDown", true);
                check_refused_fetch(writes, "org.sqlipc1.Error.PipeClosed", true);
                check_refused_fetch(writes, "org.sqlipc1.Error.WorkerLost", !writes);
                check_refused_fetch(writes, "org.sqlipc1.Error.Busy", false);
        }
}

/* The service took the request and died: before its reply, or in the middle of the result. */
static int die(FakeService *f, sd_bus_message *m, const char *member) {
        (void) m;
        if (strcmp(member, "Fetch") != 0 && strcmp(member, "Query") != 0)
                return 0;
        f->stop = true;
        return 1;
}

static void check_outcome(bool writes, int r, sqlipc_error code) {
        FakeService f;
        sqlipc_statement *s;
        sqlipc_cursor *c;

        fake_start(&f);
        f.writes = writes;
        f.on_call = die;
        s = prepare(&f);
        CHECK_INT(sqlipc_execute(s, &c), r);
        CHECK_INT(sqlipc_statement_error_code(s), code);
        CHECK_INT(f.n_fetch, 1);
        sqlipc_finalize(s);
        fake_done(&f);

        fake_start(&f);
        f.writes = writes;
        fake_set_unfinished(&f, 1, 2);
        c = query(&f);
        check_rows(c, 1, 2);
        fake_stop_service(&f);
        check_failure(&f, c, r, code);
        CHECK_INT(f.n_query, 1);
        sqlipc_cursor_close(c);
        fake_done(&f);
}

/* The worker was killed, because it did not obey a cancellation. */
static void check_killed(bool writes, int r, sqlipc_error code) {
        FakeService f;
        sqlipc_cursor *c;

        fake_start(&f);
        f.writes = writes;
        f.close_pipe = true;
        fake_set_unfinished(&f, 1, 2);
        c = query(&f);
        check_rows(c, 1, 1);
        CHECK_INT(sqlipc_cursor_cancel(c), 0);
        check_rows(c, 2, 2);
        check_failure(&f, c, r, code);
        sqlipc_cursor_close(c);
        fake_done(&f);
}

static void test_killed(void) {
        check_killed(false, -ECANCELED, SQLIPC_ERROR_CANCELLED);
        check_killed(true, -ECONNABORTED, SQLIPC_ERROR_OUTCOME_UNKNOWN);
}

static void test_outcome_unknown(void) {
        check_outcome(false, -ECONNRESET, SQLIPC_ERROR_DAEMON_LOST);
        check_outcome(true, -ECONNABORTED, SQLIPC_ERROR_OUTCOME_UNKNOWN);
}

/* ---- The service is killed ---- */

/* The next failures of Query and Fetch, one a letter:  n: no reply  N: the bus has nothing that owns the name  S: killed
 * while it started  D: it stops  q: an error of the SQL  e: the pipe ends without a byte  c: after the columns
 * r: after all rows  L: a limit is exceeded  -: none. The same of Prepare. */
static const char *kills, *kills_of_prepare;
static bool kills_early;
static atomic_int n_kill_runs;

static const char *error_of_kill(char kind) {
        switch (kind) {
        case 'n':
                return "org.freedesktop.DBus.Error.NoReply";
        case 'N':
                return "org.freedesktop.DBus.Error.NameHasNoOwner";
        case 'S':
                return "org.freedesktop.DBus.Error.Spawn.ChildSignaled";
        case 'D':
                return "org.sqlipc1.Error.ShuttingDown";
        case 'L':
                return "org.sqlipc1.Error.LimitsExceeded";
        case 'q':
                return "org.sqlipc1.Error.Sql";
        default:
                return NULL;
        }
}

static int kill_service(FakeService *f, sd_bus_message *m, const char *member) {
        bool is_prepare = strcmp(member, "Prepare") == 0;
        const char **next = is_prepare ? &kills_of_prepare : &kills;
        char kind;

        if (strcmp(member, "NextRows") == 0) {
                CHECK(sd_bus_reply_method_return(m, "aavba{sv}", 2, 1, "x", INT64_C(1), 1, "x", INT64_C(2), 0, 2, "columns",
                                                 "a(ssa{sv})", 1, "c", "", 0, "rows", "t", UINT64_C(2)) >= 0);
                return 1;
        }
        if (!is_prepare && strcmp(member, "Query") != 0 && strcmp(member, "Fetch") != 0 && strcmp(member, "OpenRows") != 0)
                return 0;
        n_kill_runs += !is_prepare;
        kind = **next ? *(*next)++ : '-';
        if (error_of_kill(kind)) {
                CHECK(sd_bus_reply_method_errorf(m, error_of_kill(kind), "a sentence of the bus") >= 0);
                return 1;
        }
        if (strcmp(member, "OpenRows") == 0) {
                CHECK(sd_bus_reply_method_return(m, "ta(ssa{sv})a{sv}", (uint64_t) FAKE_RUN, 0, 1, "readonly", "b", 1) >= 0);
                return 1;
        }
        if (kills_early)
                f->writes = !is_prepare;
        fake_set_result(f, 1, 2);
        if (kind == 'r')
                fake_set_unfinished(f, 1, 2);
        f->close_pipe = kind == 'e' || kind == 'c' || kind == 'r';
        if (kind == 'e' || kind == 'c')
                stream_done(&f->rows);
        if (kind == 'c')
                stream_add_columns(&f->rows, FAKE_RUN, 1, SQLIPC_PAGE_SIZE_MIN);
        return 0;
}

typedef struct Kill {
        bool prepared, writes, early; /* early: Query does not say that the statement only reads */
        const char *kills, *kills_of_prepare;
        sqlipc_error code; /* NONE: the rows come */
        int n_runs, n_rows; /* the latter if the run fails */
} Kill;

static void check_kill(const Kill *k) {
        FakeService f;
        sqlipc_statement *s = NULL;
        sqlipc_cursor *c = NULL;
        int r, n = 0;

        fake_start(&f);
        f.writes = k->writes;
        kills = k->kills;
        kills_early = k->early;
        n_kill_runs = 0;
        kills_of_prepare = k->kills_of_prepare;
        f.on_call = kill_service;
        if (k->prepared) { /* without blocking, the refusal to keep the statement does not refuse it */
                CHECK_INT(sqlipc_set_blocking(f.connection, k->kills_of_prepare[0] != 'L'), 0);
                s = prepare(&f);
                CHECK_INT(sqlipc_set_blocking(f.connection, 1), 0);
        }
        r = s ? sqlipc_execute(s, &c) : sqlipc_query(f.connection, "db", "SELECT 1", &c, NULL);
        while (r >= 0 && (r = sqlipc_cursor_next(c)) == 1)
                n++;
        CHECK_INT(sqlipc_error_code(f.connection), r < 0 ? k->code : SQLIPC_ERROR_NONE);
        CHECK_INT(r < 0, k->code != SQLIPC_ERROR_NONE);
        CHECK_INT(n, r < 0 ? k->n_rows : 2);
        CHECK(r >= 0 || !strstr(sqlipc_error_message(f.connection), "of the bus"));
        CHECK_INT(n_kill_runs, k->n_runs);
        sqlipc_cursor_close(c);
        sqlipc_finalize(s);
        fake_done(&f);
}

/* At each step of a run. A statement that only reads runs again, once, and its outcome is never unknown. */
static void test_kills(void) {
        static const Kill table[] = {
                { .kills = "n", .n_runs = 2 },
                { .kills = "e", .code = SQLIPC_ERROR_WORKER_LOST, .n_runs = 1 },
                { .kills = "c", .code = SQLIPC_ERROR_WORKER_LOST, .n_runs = 1 },
                { .kills = "n", .kills_of_prepare = "n", .n_runs = 2 },
                { .kills = "n", .kills_of_prepare = "nn", .n_runs = 2 },
                { .kills = "n", .kills_of_prepare = "nnSN", .n_runs = 2 },
                { .kills = "n", .kills_of_prepare = "nnnnnnnn", .code = SQLIPC_ERROR_OUTCOME_UNKNOWN, .n_runs = 1 },
                { .kills = "n", .kills_of_prepare = "nnq", .code = SQLIPC_ERROR_OUTCOME_UNKNOWN, .n_runs = 1 },
                { .kills = "nn", .code = SQLIPC_ERROR_DAEMON_LOST, .n_runs = 2 },
                { .kills = "ne", .code = SQLIPC_ERROR_WORKER_LOST, .n_runs = 2 },
                { .kills = "N", .n_runs = 2 },
                { .kills = "S", .n_runs = 2 },
                { .kills = "NN", .n_runs = 3 },
                { .kills = "NNN", .code = SQLIPC_ERROR_DAEMON_LOST, .n_runs = 3 },
                { .kills = "DDN", .code = SQLIPC_ERROR_DAEMON_LOST, .n_runs = 3 },
                { .kills = "Dn", .n_runs = 3 },
                { .kills = "nD", .n_runs = 3 },
                { .kills = "DnDn", .code = SQLIPC_ERROR_DAEMON_LOST, .n_runs = 4 },
                { .kills = "n", .kills_of_prepare = "DnDnDn", .n_runs = 2 },
                { .early = true, .kills = "n", .n_runs = 2 },
                { .early = true, .kills = "nn", .code = SQLIPC_ERROR_DAEMON_LOST, .n_runs = 2 },
                { .early = true, .kills = "ne", .code = SQLIPC_ERROR_WORKER_LOST, .n_runs = 2 },
                { .early = true, .kills = "r", .code = SQLIPC_ERROR_WORKER_LOST, .n_runs = 1, .n_rows = 2 },
                { .early = true, .kills = "nr", .code = SQLIPC_ERROR_WORKER_LOST, .n_runs = 2, .n_rows = 2 },
                { .writes = true, .kills = "r", .code = SQLIPC_ERROR_OUTCOME_UNKNOWN, .n_runs = 1, .n_rows = 2 },
                { .kills = "N", .writes = true, .n_runs = 2 },
                { .kills = "n", .writes = true, .code = SQLIPC_ERROR_OUTCOME_UNKNOWN, .n_runs = 1 },
                { .kills = "e", .writes = true, .code = SQLIPC_ERROR_OUTCOME_UNKNOWN, .n_runs = 1 },
                { .prepared = true, .kills = "n", .n_runs = 2 },
                { .prepared = true, .kills = "e", .code = SQLIPC_ERROR_WORKER_LOST, .n_runs = 1 },
                { .prepared = true, .kills = "c", .code = SQLIPC_ERROR_WORKER_LOST, .n_runs = 1 },
                { .prepared = true, .kills = "N", .n_runs = 2 },
                { .prepared = true, .kills = "Dn", .n_runs = 3 },
                { .prepared = true, .kills = "nD", .n_runs = 3 },
                { .prepared = true, .kills = "DDDn", .n_runs = 5 }, /* the call is repeated twice, and then the run */
                { .prepared = true, .kills = "Dnn", .code = SQLIPC_ERROR_DAEMON_LOST, .n_runs = 3 },
                { .prepared = true, .kills = "DDDDDDDDN", .code = SQLIPC_ERROR_DAEMON_LOST, .n_runs = 9 },
                { .prepared = true, .kills = "Dn", .writes = true, .code = SQLIPC_ERROR_OUTCOME_UNKNOWN, .n_runs = 2 },
                { .prepared = true, .kills = "", .kills_of_prepare = "n", .n_runs = 1 },
                { .prepared = true, .kills = "", .kills_of_prepare = "Dn", .n_runs = 1 },
                { .prepared = true, .kills = "", .kills_of_prepare = "nD", .n_runs = 1 },
                { .prepared = true, .kills = "", .kills_of_prepare = "S", .n_runs = 1 },
                { .prepared = true, .kills = "n", .kills_of_prepare = "L", .n_runs = 2 },
                { .prepared = true, .kills = "n", .kills_of_prepare = "Lnn", .n_runs = 2 },
                { .prepared = true, .kills = "nn", .kills_of_prepare = "L-L", .code = SQLIPC_ERROR_DAEMON_LOST,
                  .n_runs = 2 },
                { .prepared = true, .kills = "nn", .code = SQLIPC_ERROR_DAEMON_LOST, .n_runs = 2 },
                { .prepared = true, .kills = "n", .writes = true, .code = SQLIPC_ERROR_OUTCOME_UNKNOWN, .n_runs = 1 },
                { .prepared = true, .kills = "e", .writes = true, .code = SQLIPC_ERROR_OUTCOME_UNKNOWN, .n_runs = 1 },
        };

        for (size_t i = 0; i < N_ELEMENTS(table); i++) {
                Kill k = table[i];

                if (!k.kills_of_prepare)
                        k.kills_of_prepare = "";
                printf("# kill %zu\n", i);
                check_kill(&k);
        }
}

/* The time limit of the last Query or Fetch; 0: none. */
static uint64_t last_timeout(FakeService *f, bool is_query) {
        const char *key;
        uint64_t usec = 0;
        int r;

        CHECK(sd_bus_message_rewind(f->last, true) >= 0);
        CHECK(sd_bus_message_skip(f->last, is_query ? "sava{sv}" : "tava{sv}") >= 0);
        CHECK(sd_bus_message_enter_container(f->last, 'a', "{sv}") > 0);
        while ((r = sd_bus_message_enter_container(f->last, 'e', "sv")) > 0) {
                CHECK(sd_bus_message_read(f->last, "s", &key) > 0);
                if (strcmp(key, "timeout-usec") == 0)
                        CHECK(sd_bus_message_read(f->last, "v", "t", &usec) > 0);
                else
                        CHECK(sd_bus_message_skip(f->last, "v") > 0);
                CHECK(sd_bus_message_exit_container(f->last) >= 0);
        }
        CHECK_INT(r, 0);
        return usec;
}

/* The time limit of a run is that of when it was asked for. */
static void test_run_timeout(void) {
        FakeService f;
        sqlipc_statement *s;

        fake_start(&f);
        fake_set_result(&f, 1, 1);
        s = prepare(&f);
        sqlipc_cursor_close(execute(s));
        CHECK_INT(last_timeout(&f, false), 0);
        CHECK_INT(sqlipc_set_run_timeout(f.connection, 0), -EINVAL);
        CHECK_INT(sqlipc_set_run_timeout(NULL, 1), -EINVAL);
        CHECK_INT(sqlipc_set_run_timeout(f.connection, 1500000), 0);
        sqlipc_cursor_close(execute(s));
        CHECK_INT(last_timeout(&f, false), 1500000);
        sqlipc_cursor_close(query(&f));
        CHECK_INT(last_timeout(&f, true), 1500000);
        CHECK_INT(sqlipc_set_run_timeout(f.connection, UINT64_MAX), 0);
        sqlipc_cursor_close(query(&f));
        CHECK_INT(last_timeout(&f, true), 0);
        sqlipc_finalize(s);
        fake_done(&f);
}

/* Each object keeps its own failure, whatever fails on another one of the same connection. */
static void test_errors_of_objects(void) {
        FakeService f;
        sqlipc_statement *s;
        sqlipc_cursor *broken, *slow;
        Stream more = STREAM_INIT;

        fake_start(&f);
        fake_set_unfinished(&f, 1, 1);
        s = prepare(&f);
        broken = query(&f);
        check_rows(broken, 1, 1);
        stream_add_error(&more, FAKE_RUN, SQLIPC_ERROR_CORRUPT, "database disk image is malformed");
        fake_write(&f, &more);
        stream_done(&more);
        slow = query(&f); /* the last: the service has one pipe at a time */
        check_rows(slow, 1, 1);
        CHECK_INT(sqlipc_statement_error_code(s), SQLIPC_ERROR_NONE);
        CHECK_INT(sqlipc_statement_error_sql_offset(s), -1);
        CHECK_STRING(sqlipc_cursor_error_message(broken), "");
        CHECK_INT(sqlipc_cursor_error_sql_offset(broken), -1);

        CHECK_INT(sqlipc_cursor_next(broken), -EUCLEAN);
        CHECK_INT(sqlipc_bind_int64_by_name(s, ":none", 1), -ENXIO);
        CHECK_INT(sqlipc_set_timeout(f.connection, 1000), 0);
        CHECK_INT(sqlipc_cursor_next(slow), -ETIMEDOUT);
        CHECK_INT(sqlipc_error_code(f.connection), SQLIPC_ERROR_NONE);

        CHECK_INT(sqlipc_cursor_error_code(broken), SQLIPC_ERROR_CORRUPT);
        CHECK_STRING(sqlipc_cursor_error_name(broken), "org.sqlipc1.Error.Corrupt");
        CHECK_STRING(sqlipc_cursor_error_message(broken), "database disk image is malformed");
        CHECK_INT(sqlipc_cursor_error_sqlite_code(broken), 1);
        CHECK_INT(sqlipc_cursor_error_sqlite_extended_code(broken), 1);
        CHECK_INT(sqlipc_statement_error_code(s), SQLIPC_ERROR_UNKNOWN_PARAMETER);
        CHECK_STRING(sqlipc_statement_error_name(s), "org.sqlipc1.Error.UnknownParameter");
        CHECK(strstr(sqlipc_statement_error_message(s), ":none"));
        CHECK_INT(sqlipc_statement_error_sqlite_code(s), 0);
        CHECK_INT(sqlipc_statement_error_sqlite_extended_code(s), 0);
        CHECK_INT(sqlipc_cursor_error_code(slow), SQLIPC_ERROR_NONE);
        CHECK(strstr(sqlipc_cursor_error_message(slow), "No answer"));
        CHECK_INT(sqlipc_bind_int64(s, 1, 1), -ERANGE);
        CHECK_INT(sqlipc_statement_error_code(s), SQLIPC_ERROR_NONE);
        CHECK(strstr(sqlipc_statement_error_message(s), "no parameter 1"));

        sqlipc_finalize(s);
        sqlipc_cursor_close(broken);
        sqlipc_cursor_close(slow);
        fake_done(&f);
}

/* A statement that fails to run tells why, without its connection. */
static int refuse_all(FakeService *f, sd_bus_message *m, const char *member) {
        (void) f, (void) member;
        CHECK(sd_bus_reply_method_errorf(m, "org.sqlipc1.Error.LimitsExceeded", "Enough.") >= 0);
        return 1;
}

static void test_error_of_execution(void) {
        FakeService f;
        sqlipc_statement *s;
        sqlipc_cursor *c;

        fake_start(&f);
        s = prepare(&f);
        f.on_call = refuse_all;
        CHECK_INT(sqlipc_execute(s, &c), -EDQUOT);
        CHECK_INT(sqlipc_prepare(f.connection, NULL, NULL, NULL), -EINVAL);
        CHECK_INT(sqlipc_statement_error_code(s), SQLIPC_ERROR_LIMITS_EXCEEDED);
        CHECK_STRING(sqlipc_statement_error_message(s), "Enough.");
        CHECK_INT(sqlipc_execute(s, NULL), -EINVAL);
        CHECK_INT(sqlipc_statement_error_code(s), SQLIPC_ERROR_NONE);
        sqlipc_finalize(s);
        fake_done(&f);
}

static int query_with(FakeService *f, const void *parameters, size_t n) {
        sqlipc_cursor *c = NULL;
        int r = sqlipc_query_with(f->connection, "db", "SELECT ?, ?", parameters, n, &c);

        sqlipc_cursor_close(c);
        return r;
}

static int64_t last_integer(FakeService *f, int at) {
        int64_t first, second;

        CHECK(sd_bus_message_rewind(f->last, true) >= 0);
        CHECK(sd_bus_message_read(f->last, "sav", NULL, 2, "x", &first, "x", &second) >= 0);
        return at == 0 ? first : second;
}

/* A program may have been built with a header that has more fields than this library knows, or without the size. */
static void test_size_of_parameters(void) {
        struct {
                sqlipc_parameter known;
                uint64_t unknown;
        } later[2] = {
                { .known = { .struct_size = sizeof later[0], .type = SQLIPC_INTEGER, .integer = 5 } },
                { .known = { .struct_size = sizeof later[0], .type = SQLIPC_INTEGER, .integer = 6 } },
        };
        sqlipc_parameter now[2] = {
                { .struct_size = sizeof now[0], .type = SQLIPC_INTEGER, .integer = 7 },
                { .struct_size = sizeof now[0], .type = SQLIPC_INTEGER, .integer = 8 },
        };
        FakeService f;

        fake_start(&f);
        fake_set_result(&f, 1, 1);
        CHECK_INT(query_with(&f, now, 2), 0);
        CHECK_INT(last_integer(&f, 0), 7);
        CHECK_INT(last_integer(&f, 1), 8);
        CHECK_INT(query_with(&f, later, 2), 0);
        CHECK_INT(last_integer(&f, 0), 5);
        CHECK_INT(last_integer(&f, 1), 6);
        later[1].unknown = 1;
        CHECK_INT(query_with(&f, later, 2), -EOPNOTSUPP);
        CHECK_INT(sqlipc_error_code(f.connection), SQLIPC_ERROR_NONE);
        now[1].struct_size = 0;
        CHECK_INT(query_with(&f, now, 2), -EINVAL);
        for (size_t size = 0; size < sizeof now[0]; size++) {
                now[0].struct_size = size;
                CHECK_INT(query_with(&f, now, 1), -EINVAL);
        }
        now[0].struct_size = sizeof now[0] + 1;
        CHECK_INT(query_with(&f, now, 1), -EINVAL);
        now[0].struct_size = SIZE_MAX;
        CHECK_INT(query_with(&f, now, 1), -EINVAL);
        CHECK_INT(query_with(&f, NULL, 1), -EINVAL);
        CHECK_INT(query_with(&f, NULL, 0), 0);
        fake_done(&f);
}

static int visit(const sqlipc_database *database, void *userdata) {
        const char *name = sqlipc_database_name(database);
        char *text = userdata;

        strcat(strcat(strcat(strcat(text, name), "="), sqlipc_database_description(database)), ":");
        strcat(strcat(text, sqlipc_database_mode(database)), ";");
        return strcmp(name, "stop") == 0 || text[0] == 'X' ? 17 : 0;
}

static void test_list_databases(void) {
        FakeService f;
        char text[100] = "", stopped[100] = "X";

        fake_start(&f);
        CHECK_INT(sqlipc_list_databases(f.connection, visit, text), 0);
        CHECK_STRING(text, "chinook=Music:read-only;empty=:;");
        CHECK_INT(sqlipc_list_databases(f.connection, visit, stopped), 17);
        CHECK_STRING(stopped, "Xchinook=Music:read-only;");
        fake_done(&f);
}

/* ---- a program in place of a bus ---------------------------------------------------------------------------------- */

static size_t file_size(const char *path) {
        struct stat st;

        return stat(path, &st) == 0 ? (size_t) st.st_size : 0;
}

/* ssh may have asked for a password: a call that fails because it ended does not start it again, the next call does. */
static void test_program_that_ended(void) {
        char log[] = "/tmp/sqlipc-program-XXXXXX", address[200];
        sqlipc_connection *connection;
        sqlipc_cursor *c = NULL;
        int fd = mkstemp(log);

        CHECK(fd >= 0);
        CHECK(snprintf(address, sizeof address, "unixexec:path=/bin/sh,argv1=-c,argv2=echo>>%s", log) <
              (int) sizeof address);
        CHECK_INT(sqlipc_open_address(address, &connection), 0);
        while (sqlipc_get_bus(connection) && file_size(log) <= 1)
                (void) poll(NULL, 0, 1);
        CHECK(!sqlipc_get_bus(connection));
        CHECK_INT(file_size(log), 1);
        for (size_t n_started = 1; n_started <= 3; n_started++) {
                CHECK(sqlipc_query(connection, "chinook", "SELECT 1", &c, NULL) < 0 || sqlipc_cursor_next(c) < 0);
                c = sqlipc_cursor_close(c);
                CHECK_INT(file_size(log), n_started);
        }
        sqlipc_close(connection);
        close(fd);
        CHECK_INT(unlink(log), 0);
}

static void test_null_handles(void) {
        sqlipc_connection *connection = NULL;

        CHECK(!sqlipc_close(NULL) && !sqlipc_finalize(NULL) && !sqlipc_cursor_close(NULL));
        CHECK_INT(sqlipc_cursor_next(NULL), -EINVAL);
        CHECK_INT(sqlipc_cursor_cancel(NULL), -EINVAL);
        CHECK_INT(sqlipc_open_address(NULL, &connection), -EINVAL);
        CHECK_INT(sqlipc_open_address("unix:path=/nonexistent/bus", &connection), -ENOENT);
        CHECK(!connection);
        CHECK_INT(sqlipc_open_bus(NULL, &connection), -EINVAL);
        CHECK(!sqlipc_database_name(NULL) && !sqlipc_database_description(NULL) && !sqlipc_database_mode(NULL));
        CHECK_INT(sqlipc_column_count(NULL), 0);
        CHECK_INT(sqlipc_column_type(NULL, 0), SQLIPC_NULL);
        CHECK_STRING(sqlipc_error_message(NULL), "");
        CHECK_STRING(sqlipc_statement_error_message(NULL), "");
        CHECK(!sqlipc_cursor_error_name(NULL));
        CHECK_INT(sqlipc_cursor_error_sql_offset(NULL), -1);
        CHECK(!sqlipc_connection_ref(NULL) && !sqlipc_connection_unref(NULL));
        CHECK_INT(sqlipc_bind_null(NULL, 1), -EINVAL);
        CHECK_INT(sqlipc_bind_int64(NULL, 1, 1), -EINVAL);
        CHECK_INT(sqlipc_bind_double(NULL, 1, 1), -EINVAL);
        CHECK_INT(sqlipc_bind_text(NULL, 1, "x", 1), -EINVAL);
        CHECK_INT(sqlipc_bind_blob(NULL, 1, "x", 1), -EINVAL);
        CHECK_INT(sqlipc_clear_bindings(NULL), -EINVAL);
}

int main(void) {
        static const Test tests[] = {
                TEST(test_prepared_again),
                TEST(test_prepared_again_once),
                TEST(test_statement_after_lost_worker),
                TEST(test_broken_pipe_before_reply),
                TEST(test_bus_gone),
                TEST(test_bind),
                TEST(test_bind_by_name),
                TEST(test_query_arguments),
                TEST(test_repeated),
                TEST(test_outcome_unknown),
                TEST(test_kills),
                TEST(test_killed),
                TEST(test_run_timeout),
                TEST(test_errors_of_objects),
                TEST(test_error_of_execution),
                TEST(test_size_of_parameters),
                TEST(test_list_databases),
                TEST(test_program_that_ended),
                TEST(test_null_handles),
        };

        (void) signal(SIGPIPE, SIG_IGN); /* the service's, which writes into pipes that we close */
        return test_main(tests, N_ELEMENTS(tests));
}
