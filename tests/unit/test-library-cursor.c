/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Blocking cursors against a scripted service: rows, all ways to end, and a service or worker that dies.
 */
#include "client-lib/cursor.h"
#include "tests/unit/cursor-checks.h"

/* ---- rows and values ---------------------------------------------------------------------------------------------- */

static void add_every_type(Stream *s) {
        uint8_t page[SQLIPC_PAGE_SIZE_MIN];
        PageEncoder e;

        stream_add_columns(s, FAKE_RUN, 6, sizeof page);
        page_encoder_init(&e, page, sizeof page, FAKE_RUN);
        CHECK_INT(page_encoder_begin_row(&e, 6), 1);
        page_encoder_add_int64(&e, INT64_MIN);
        page_encoder_add_double(&e, 1e300);
        page_encoder_add_text(&e, "a\0b", 3);
        page_encoder_add_blob(&e, "\xff", 1);
        page_encoder_add_blob(&e, "", 0);
        page_encoder_add_null(&e);
        CHECK_INT(page_encoder_end_row(&e), 1);
        stream_take_page(s, &e);
        stream_add_end(s, FAKE_RUN, 1);
}

static void test_values(void) {
        FakeService f;
        sqlipc_cursor *c;
        size_t size;

        fake_start(&f);
        add_every_type(&f.rows);
        c = query(&f);
        CHECK_INT(sqlipc_cursor_next(c), 1);
        CHECK_INT(sqlipc_column_count(c), 6);
        CHECK_STRING(sqlipc_column_name(c, 5), "c");
        CHECK(!sqlipc_column_name(c, 6));
        CHECK(!sqlipc_column_decltype(c, 0));

        CHECK_INT(sqlipc_column_type(c, 0), SQLIPC_INTEGER);
        CHECK_INT(sqlipc_column_int64(c, 0), INT64_MIN);
        CHECK(sqlipc_column_double(c, 0) == -9223372036854775808.0);
        CHECK(!sqlipc_column_text(c, 0, &size));
        CHECK_INT(size, 0);

        CHECK_INT(sqlipc_column_type(c, 1), SQLIPC_REAL);
        CHECK(sqlipc_column_double(c, 1) == 1e300);
        CHECK_INT(sqlipc_column_int64(c, 1), INT64_MAX); /* what C leaves undefined ends at the bound */

        CHECK_INT(sqlipc_column_type(c, 2), SQLIPC_TEXT);
        CHECK(memcmp(sqlipc_column_text(c, 2, &size), "a\0b\0", 4) == 0);
        CHECK_INT(size, 3);
        CHECK_INT(sqlipc_column_int64(c, 2), 0);
        CHECK(sqlipc_column_double(c, 2) == 0.0);

        CHECK_INT(sqlipc_column_type(c, 3), SQLIPC_BLOB);
        CHECK(*(const uint8_t *) sqlipc_column_blob(c, 3, &size) == 0xff);
        CHECK_INT(size, 1);
        CHECK(sqlipc_column_blob(c, 4, &size));
        CHECK_INT(size, 0);

        CHECK_INT(sqlipc_column_type(c, 5), SQLIPC_NULL);
        CHECK_INT(sqlipc_column_is_null(c, 5), 1);
        CHECK_INT(sqlipc_column_is_null(c, 4), 0);
        CHECK_INT(sqlipc_column_type(c, 6), SQLIPC_NULL);
        check_end(c);
        CHECK_INT(sqlipc_column_count(c), 6);
        sqlipc_cursor_close(c);
        fake_done(&f);
}

static void test_query(void) {
        FakeService f;
        sqlipc_cursor *c;
        uint64_t rows, bytes;

        fake_start(&f);
        fake_set_result(&f, 1, 100);
        c = query(&f);
        check_rows(c, 1, 100);
        sqlipc_cursor_get_totals(c, &rows, &bytes, NULL);
        CHECK_INT(rows, 0);
        check_end(c);
        sqlipc_cursor_get_totals(c, &rows, &bytes, NULL);
        CHECK_INT(rows, 100);
        sqlipc_cursor_close(c);
        CHECK_INT(f.n_cancel, 0);
        fake_done(&f);
        CHECK_INT(f.n_cancel, 0);
}

static void test_rows_before_reply(void) {
        FakeService f;
        sqlipc_statement *s;

        fake_start(&f);
        f.reply_late = true;
        fake_set_result(&f, 1, 3);
        s = prepare(&f);
        for (int i = 0; i < 3; i++) { /* the next Fetch waits for the reply to the last */
                sqlipc_cursor *c = execute(s);

                check_rows(c, 1, 3);
                check_end(c);
                sqlipc_cursor_close(c);
        }
        CHECK_INT(f.n_prepare, 1);
        CHECK_INT(f.n_fetch, 3);
        sqlipc_finalize(s);
        fake_wait_for(&f.n_finalize, 1);
        fake_done(&f);
}

static void test_row_too_large(void) {
        FakeService f;
        sqlipc_cursor *c;

        fake_start(&f);
        fake_set_result(&f, 1, 1);
        c = query(&f);
        c->fetch->decoder.row_size_max = 1;
        CHECK_INT(sqlipc_cursor_next(c), -EMSGSIZE);
        CHECK_INT(sqlipc_error_code(f.connection), SQLIPC_ERROR_ROW_TOO_LARGE);
        CHECK(strstr(sqlipc_error_message(f.connection), "row is larger"));
        sqlipc_cursor_close(c);
        fake_done(&f);
}

/* Many rows at once are the same rows, whichever function takes which of them. */
static void test_blocks(void) {
        const sqlipc_value *values = NULL;
        FakeService f;
        sqlipc_cursor *c;
        size_t n = 0;

        fake_start(&f);
        add_every_type(&f.rows);
        c = query(&f);
        CHECK_INT(sqlipc_cursor_next_block(c, 0, &values, &n), 1);
        CHECK_INT(n, 1);
        CHECK_INT(values[0].type, SQLIPC_INTEGER);
        CHECK_INT(values[0].as.integer, INT64_MIN);
        CHECK_INT(values[1].type, SQLIPC_REAL);
        CHECK(values[1].as.real == 1e300);
        CHECK_INT(values[2].type, SQLIPC_TEXT);
        CHECK_INT(values[2].size, 3);
        CHECK(memcmp(values[2].as.text, "a\0b\0", 4) == 0);
        CHECK_INT(values[3].type, SQLIPC_BLOB);
        CHECK_INT(values[3].size, 1);
        CHECK(*(const uint8_t *) values[3].as.blob == 0xff);
        CHECK_INT(values[4].size, 0);
        CHECK(values[4].as.blob);
        CHECK_INT(values[5].type, SQLIPC_NULL);
        CHECK_INT(sqlipc_cursor_next_block(c, 0, &values, &n), 0);
        sqlipc_cursor_close(c);
        fake_done(&f);

        fake_start(&f);
        fake_set_unfinished(&f, 1, 100);
        fake_add_rows(&f.rows, FAKE_RUN, 101, 103);
        stream_add_end(&f.rows, FAKE_RUN, 103);
        c = query(&f);
        check_rows(c, 1, 2);
        CHECK_INT(sqlipc_cursor_next_block(c, 10, &values, &n), 1);
        CHECK_INT(n, 10);
        for (size_t i = 0; i < n; i++)
                CHECK_INT(values[i].as.integer, 3 + i);
        CHECK_INT(sqlipc_column_int64(c, 0), 12);
        check_rows(c, 13, 13);
        CHECK_INT(sqlipc_cursor_next_block(c, 0, &values, &n), 1); /* to the end of the frame */
        CHECK_INT(n, 87);
        CHECK_INT(values[86].as.integer, 100);
        CHECK_INT(sqlipc_cursor_next_block(c, SIZE_MAX, &values, &n), 1);
        CHECK_INT(n, 3);
        CHECK_INT(sqlipc_cursor_next_block(c, 1, NULL, &n), -EINVAL);
        CHECK_INT(sqlipc_cursor_next_block(NULL, 1, &values, &n), -EINVAL);
        check_end(c);
        sqlipc_cursor_close(c);
        fake_done(&f);
}

/* An error after a block is reported after it. */
static void test_block_before_garbage(void) {
        const sqlipc_value *values;
        FakeService f;
        sqlipc_cursor *c;
        size_t n;

        fake_start(&f);
        fake_set_unfinished(&f, 1, 3);
        for (size_t i = f.rows.size; i-- > 0;)
                if (f.rows.bytes[i] == 3) {
                        f.rows.bytes[i - 5] = 77; /* type and end come before the value */
                        break;
                }
        c = query(&f);
        CHECK_INT(sqlipc_cursor_next_block(c, 0, &values, &n), 1);
        CHECK_INT(n, 2);
        CHECK_INT(values[1].as.integer, 2);
        CHECK_INT(sqlipc_cursor_next_block(c, 0, &values, &n), -EBADMSG);
        CHECK_INT(sqlipc_cursor_next(c), -EBADMSG);
        sqlipc_cursor_close(c);
        fake_done(&f);
}

/* ---- ends --------------------------------------------------------------------------------------------------------- */

static void test_error_frame(void) {
        FakeService f;
        sqlipc_cursor *c;

        fake_start(&f);
        fake_set_unfinished(&f, 1, 2);
        stream_add_error(&f.rows, FAKE_RUN, SQLIPC_ERROR_CORRUPT, "database disk image is malformed");
        c = query(&f);
        check_rows(c, 1, 2);
        CHECK_INT(sqlipc_cursor_next(c), -EUCLEAN);
        CHECK_STRING(sqlipc_error_name(f.connection), "org.sqlipc1.Error.Corrupt");
        CHECK_STRING(sqlipc_error_message(f.connection), "database disk image is malformed");
        CHECK_INT(sqlipc_error_sqlite_extended_code(f.connection), 1);
        check_failure(&f, c, -EUCLEAN, SQLIPC_ERROR_CORRUPT);
        CHECK_INT(sqlipc_column_is_null(c, 0), 1);
        sqlipc_cursor_close(c);
        fake_done(&f);
}

/* A statement that has no result, as a service that writes will have them. */
static void test_no_columns(void) {
        FakeService f;
        sqlipc_cursor *c;

        fake_start(&f);
        stream_add_columns(&f.rows, FAKE_RUN, 0, SQLIPC_PAGE_SIZE_MIN);
        stream_add_end(&f.rows, FAKE_RUN, 0);
        c = query(&f);
        check_end(c);
        CHECK_INT(sqlipc_column_count(c), 0);
        CHECK_INT(sqlipc_column_is_null(c, 0), 1);
        CHECK_INT(sqlipc_error_code(f.connection), SQLIPC_ERROR_NONE);
        sqlipc_cursor_close(c);
        fake_done(&f);
}

/* A statement without a result tells what it changed, once it has ended. */
static void test_changes(void) {
        FakeService f;
        sqlipc_statement *s;
        sqlipc_cursor *c;

        fake_start(&f);
        f.writes = true;
        stream_add_columns(&f.rows, FAKE_RUN, 0, SQLIPC_PAGE_SIZE_MIN);
        stream_add_end_wrote(&f.rows, FAKE_RUN, 0, 3, -17, FRAME_END_WROTE_SIZE);
        s = prepare(&f);
        CHECK_INT(sqlipc_statement_is_readonly(s), 0);
        c = execute(s);
        CHECK(sqlipc_cursor_changes(c) == 0 && sqlipc_cursor_last_rowid(c) == 0);
        check_end(c);
        CHECK_INT(sqlipc_column_count(c), 0);
        CHECK_INT(sqlipc_cursor_changes(c), 3);
        CHECK_INT(sqlipc_cursor_last_rowid(c), -17);
        check_end(c);
        CHECK_INT(sqlipc_cursor_changes(c), 3);
        CHECK_INT(sqlipc_cursor_is_readonly(c), 0);
        sqlipc_cursor_close(c);
        sqlipc_finalize(s);

        f.writes = false;
        fake_set_result(&f, 1, 2);
        s = prepare(&f);
        CHECK_INT(sqlipc_statement_is_readonly(s), 1);
        c = execute(s);
        check_rows(c, 1, 2);
        check_end(c);
        CHECK(sqlipc_cursor_changes(c) == 0 && sqlipc_cursor_last_rowid(c) == 0);
        CHECK_INT(sqlipc_cursor_is_readonly(c), 1);
        sqlipc_cursor_close(c);
        sqlipc_finalize(s);
        CHECK(sqlipc_cursor_changes(NULL) == 0 && sqlipc_cursor_last_rowid(NULL) == 0);
        CHECK_INT(sqlipc_statement_is_readonly(NULL), 0);
        CHECK_INT(sqlipc_cursor_is_readonly(NULL), 0);
        fake_done(&f);
}

/* The service says which version it writes: one that was not offered is refused, none at all is 1. */
static void test_page_versions(void) {
        static const struct {
                bool said;
                uint32_t version;
                int expected;
        } cases[] = {
                { false, 0, 0 }, { true, 1, 0 },
                { true, 0, -EBADMSG }, { true, 2, -EBADMSG }, { true, UINT32_MAX, -EBADMSG },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                FakeService f;
                sqlipc_cursor *c;

                fake_start(&f);
                fake_set_result(&f, 1, 1);
                f.has_page_version = cases[i].said;
                f.page_version = cases[i].version;
                CHECK_INT(sqlipc_query(f.connection, "db", "SELECT c FROM t", &c, NULL), cases[i].expected);
                if (cases[i].expected >= 0) {
                        check_rows(c, 1, 1);
                        sqlipc_cursor_close(c);
                }
                fake_done(&f);
        }
}

/* END of a result of which something is missing is no end. */
static void test_wrong_totals(void) {
        FakeService f;
        sqlipc_cursor *c;

        fake_start(&f);
        fake_set_unfinished(&f, 1, 2);
        stream_add_end(&f.rows, FAKE_RUN, 3);
        c = query(&f);
        check_rows(c, 1, 2);
        CHECK_INT(sqlipc_cursor_next(c), -EBADMSG);
        sqlipc_cursor_close(c);
        fake_done(&f);
}

static void check_lost(bool torn, bool daemon_too) {
        FakeService f;
        sqlipc_cursor *c;

        fake_start(&f);
        fake_set_unfinished(&f, 1, 2);
        if (torn) { /* a frame that announces more than comes */
                stream_add_end(&f.rows, FAKE_RUN, 2);
                f.rows.size -= 8;
        }
        f.close_pipe = !daemon_too;
        c = query(&f);
        check_rows(c, 1, 2);
        if (daemon_too)
                fake_stop_service(&f);
        check_failure(&f, c, -ECONNRESET, daemon_too ? SQLIPC_ERROR_DAEMON_LOST : SQLIPC_ERROR_WORKER_LOST);
        sqlipc_cursor_close(c);
        fake_done(&f);
}

static void test_worker_lost(void) {
        check_lost(false, false);
        check_lost(true, false);
}

static void test_daemon_lost(void) {
        check_lost(false, true);
        check_lost(true, true);
}

static int stay_silent(FakeService *f, sd_bus_message *m, const char *member) {
        (void) f, (void) m;
        return strcmp(member, "Cancel") == 0 || strcmp(member, "Finalize") == 0;
}

/* A daemon that does not answer is as good as none. */
static void test_silent_daemon(void) {
        FakeService f;
        sqlipc_cursor *c;

        fake_start(&f);
        f.on_call = stay_silent;
        fake_set_unfinished(&f, 1, 1);
        f.close_pipe = true;
        c = query(&f);
        check_rows(c, 1, 1);
        check_failure(&f, c, -ECONNRESET, SQLIPC_ERROR_DAEMON_LOST);
        CHECK_INT(f.n_cancel, 1);
        sqlipc_cursor_close(c);
        fake_done(&f);
}

static void test_garbage(void) {
        FakeService f;
        sqlipc_cursor *c;

        fake_start(&f);
        fake_set_unfinished(&f, 1, 1);
        memset(stream_extend(&f.rows, 64), 0xff, 64);
        c = query(&f);
        check_rows(c, 1, 1);
        check_failure(&f, c, -EBADMSG, SQLIPC_ERROR_NONE);
        sqlipc_cursor_close(c);
        fake_done(&f);
        CHECK_INT(f.n_cancel, 1);
}

static int refuse(FakeService *f, sd_bus_message *m, const char *member) {
        sd_bus_message *reply = NULL;
        sd_bus_error e = SD_BUS_ERROR_MAKE_CONST("org.sqlipc1.Error.Sql", "no such table: t");

        (void) f, (void) member;
        CHECK(sd_bus_message_new_method_error(m, &reply, &e) >= 0);
        CHECK(sd_bus_message_append(reply, "ii", 257, 14) >= 0);
        CHECK(sd_bus_send(NULL, reply, NULL) >= 0);
        sd_bus_message_unref(reply);
        return 1;
}

static void test_refused(void) {
        FakeService f;
        sqlipc_statement *s = NULL;
        sqlipc_cursor *c = NULL;

        fake_start(&f);
        f.on_call = refuse;
        CHECK_INT(sqlipc_prepare(f.connection, "db", "SELECT c FROM t", &s), -EINVAL);
        CHECK(!s);
        CHECK_INT(sqlipc_error_code(f.connection), SQLIPC_ERROR_SQL);
        CHECK_STRING(sqlipc_error_message(f.connection), "no such table: t");
        CHECK_INT(sqlipc_error_sqlite_code(f.connection), 1);
        CHECK_INT(sqlipc_error_sqlite_extended_code(f.connection), 257);
        CHECK_INT(sqlipc_error_sql_offset(f.connection), 14);
        CHECK_INT(sqlipc_query(f.connection, "db", "SELECT c FROM t", &c, NULL), -EINVAL);
        CHECK(!c);
        CHECK_INT(sqlipc_error_code(f.connection), SQLIPC_ERROR_SQL);
        fake_done(&f);
}

/* A service of version 0.1. */
static int refuse_describe(FakeService *f, sd_bus_message *m, const char *member) {
        const char *key;
        int refused = 0;

        if (strcmp(member, "Query") != 0)
                return 0;
        for (int i = 0; i < 3; i++)
                CHECK(sd_bus_message_skip(m, NULL) > 0);
        CHECK(sd_bus_message_enter_container(m, 'a', "{sv}") > 0);
        while (!refused && sd_bus_message_enter_container(m, 'e', "sv") > 0) {
                CHECK(sd_bus_message_read(m, "s", &key) > 0);
                refused = strcmp(key, "describe") == 0;
                CHECK(sd_bus_message_skip(m, "v") > 0);
                CHECK(sd_bus_message_exit_container(m) > 0);
        }
        CHECK(sd_bus_message_rewind(m, true) >= 0);
        if (refused)
                CHECK(sd_bus_reply_method_errorf(m, "org.sqlipc1.Error.UnknownOption", "describe is unknown.") >= 0);
        return refused;
}

/* The library learns from the first query that the service is older. */
static void test_old_service(void) {
        FakeService f;
        sqlipc_cursor *c;

        fake_start(&f);
        CHECK_INT(sqlipc_set_transport(f.connection, SQLIPC_TRANSPORT_PIPE), 0);
        f.on_call = refuse_describe;
        for (int i = 0; i < 3; i++) {
                fake_set_result(&f, 1, 100);
                c = query(&f);
                check_rows(c, 1, 100);
                check_end(c);
                sqlipc_cursor_close(c);
                CHECK_INT(f.n_query, 2 + i);
        }
        fake_done(&f);
}

int main(void) {
        static const Test tests[] = {
                TEST(test_values),
                TEST(test_query),
                TEST(test_old_service),
                TEST(test_blocks),
                TEST(test_block_before_garbage),
                TEST(test_no_columns),
                TEST(test_changes),
                TEST(test_page_versions),
                TEST(test_wrong_totals),
                TEST(test_rows_before_reply),
                TEST(test_row_too_large),
                TEST(test_error_frame),
                TEST(test_worker_lost),
                TEST(test_daemon_lost),
                TEST(test_silent_daemon),
                TEST(test_garbage),
                TEST(test_refused),
        };

        (void) signal(SIGPIPE, SIG_IGN); /* the service's, which writes into pipes that we close */
        return test_main(tests, N_ELEMENTS(tests));
}
