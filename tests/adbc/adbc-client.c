/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * adbc-client ADDRESS CASE: calls the ADBC driver as a manager does, without one, so that a sanitizer sees all of it. Aborts
 * if something is not as it must be. The cases are at the end; test_adbc_driver.py runs them.
 */
#include <errno.h>
#include <glib.h>
#include <stdio.h>
#include <string.h>

#include "client-lib/adbc/adbc-driver.h"
#include "client-lib/adbc/arrow-struct.h"

#define ERROR_1_1 ((struct AdbcError) { .vendor_code = ADBC_ERROR_VENDOR_CODE_PRIVATE_DATA })
#define TRACKS 3503
#define ENDLESS "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c"

static struct AdbcDriver driver;
static struct AdbcDatabase database;
static struct AdbcConnection connection;
static struct AdbcStatement statement;

static void ok(AdbcStatusCode status, struct AdbcError *error) {
        if (status != ADBC_STATUS_OK)
                g_error("status %d: %s", status, error->message);
}

/* Expects the status, and a message with this part. */
static void fails(AdbcStatusCode status, AdbcStatusCode expected, struct AdbcError *error, const char *part) {
        if (status != expected || !strstr(error->message, part))
                g_error("status %d, expected %d: %s", status, expected, error->message ? error->message : "");
        error->release(error);
}

/* Makes a connection that is not open. `bus`: empty: not set. */
static void make_connection(const char *bus, const char *name) {
        struct AdbcError error = ERROR_1_1;

        ok(driver.DatabaseNew(&database, &error), &error);
        if (*bus)
                ok(driver.DatabaseSetOption(&database, "adbc.sqlipc.bus", bus, &error), &error);
        ok(driver.DatabaseSetOption(&database, "adbc.sqlipc.database", name, &error), &error);
        ok(driver.DatabaseInit(&database, &error), &error);
        ok(driver.ConnectionNew(&connection, &error), &error);
}

static void open_statement(const char *bus, const char *name) {
        struct AdbcError error = ERROR_1_1;

        make_connection(bus, name);
        ok(driver.ConnectionInit(&connection, &database, &error), &error);
        ok(driver.StatementNew(&connection, &statement, &error), &error);
}

static void close_all(void) {
        if (statement.private_data)
                g_assert_cmpint(driver.StatementRelease(&statement, NULL), ==, ADBC_STATUS_OK);
        if (connection.private_data)
                g_assert_cmpint(driver.ConnectionRelease(&connection, NULL), ==, ADBC_STATUS_OK);
        if (database.private_data)
                g_assert_cmpint(driver.DatabaseRelease(&database, NULL), ==, ADBC_STATUS_OK);
}

static struct ArrowArrayStream execute(const char *sql) {
        struct AdbcError error = ERROR_1_1;
        struct ArrowArrayStream stream;
        int64_t affected;

        ok(driver.StatementSetSqlQuery(&statement, sql, &error), &error);
        ok(driver.StatementExecuteQuery(&statement, &stream, &affected, &error), &error);
        return stream;
}

static int64_t count_rows(struct ArrowArrayStream *stream) {
        int64_t n = 0;

        for (;;) {
                struct ArrowArray batch;

                g_assert_cmpint(stream->get_next(stream, &batch), ==, 0);
                if (!batch.release)
                        return n;
                n += batch.length;
                batch.release(&batch);
        }
}

/* ---- Cases --------------------------------------------------------------------------------------------------------- */

/* Statement, connection, database and result are released in each of their orders. */
static void orders(const char *address) {
        for (unsigned order = 0; order < 24; order++) {
                unsigned left = 0xf, code = order;
                struct ArrowArrayStream stream;

                open_statement(address, "chinook");
                g_assert_cmpint(driver.StatementSetOption(&statement, "adbc.sqlipc.batch_rows", "1000", NULL), ==,
                                ADBC_STATUS_OK);
                stream = execute("SELECT * FROM Track");
                for (unsigned n = 4; n > 0; code /= n, n--) {
                        unsigned skip = code % n, which = 0;

                        for (; !(left >> which & 1) || skip-- > 0; which++)
                                ;
                        left &= ~(1u << which);
                        if (which == 0)
                                driver.StatementRelease(&statement, NULL);
                        else if (which == 1)
                                driver.ConnectionRelease(&connection, NULL);
                        else if (which == 2)
                                driver.DatabaseRelease(&database, NULL);
                        else if (order % 2)
                                stream.release(&stream);
                        else {
                                g_assert_cmpint(count_rows(&stream), ==, TRACKS);
                                stream.release(&stream);
                        }
                }
                close_all();
        }
}

/* A batch outlives everything, and its columns are released one by one. */
static void batches(const char *address) {
        struct ArrowArrayStream stream;
        struct ArrowSchema schema;
        struct ArrowArray batch;

        open_statement(address, "chinook");
        stream = execute("SELECT * FROM Track");
        g_assert_cmpint(stream.get_schema(&stream, &schema), ==, 0);
        g_assert_cmpint(stream.get_next(&stream, &batch), ==, 0);
        stream.release(&stream);
        close_all();
        for (int64_t i = 0; i < batch.n_children; i += 2) {
                struct ArrowArray column = *batch.children[i];

                batch.children[i]->release = NULL;
                g_assert_cmpint(column.length, ==, TRACKS);
                column.release(&column);
        }
        batch.release(&batch);
        g_assert_cmpstr(schema.children[1]->name, ==, "Name");
        schema.release(&schema);
}

static void endless(const char *address) {
        struct AdbcError error = ERROR_1_1;
        struct ArrowArrayStream stream, second;
        struct ArrowArray batch;

        open_statement(address, "chinook");
        stream = execute(ENDLESS);
        g_assert_cmpint(stream.get_next(&stream, &batch), ==, 0);
        batch.release(&batch);
        second = execute("SELECT 1"); /* closes the result before it */
        g_assert_cmpint(stream.get_next(&stream, &batch), ==, EINVAL);
        g_assert_nonnull(strstr(stream.get_last_error(&stream), "executed again"));
        g_assert_cmpint(count_rows(&second), ==, 1);
        second.release(&second);
        fails(driver.StatementCancel(&statement, &error), ADBC_STATUS_INVALID_STATE, &error, "nothing to cancel");
        stream.release(&stream);

        stream = execute(ENDLESS);
        ok(driver.StatementCancel(&statement, &error), &error);
        while (stream.get_next(&stream, &batch) == 0)
                batch.release(&batch);
        g_assert_cmpint(stream.get_next(&stream, &batch), ==, ECANCELED);
        stream.release(&stream);
        stream = execute(ENDLESS);
        stream.release(&stream); /* unread */
        close_all();
}

static void errors(const char *address) {
        struct AdbcError error = ERROR_1_1, old = { .message = NULL };
        struct ArrowArrayStream stream;
        struct ArrowArray batch;
        AdbcStatusCode status = ADBC_STATUS_OK;

        open_statement(address, "chinook");
        fails(driver.StatementExecuteQuery(&statement, &stream, NULL, &error), ADBC_STATUS_INVALID_STATE, &error, "no SQL");
        driver.StatementSetSqlQuery(&statement, "SELECT nothing", NULL);
        g_assert_cmpint(driver.StatementExecuteQuery(&statement, &stream, NULL, NULL), ==, ADBC_STATUS_INVALID_ARGUMENT);
        g_assert_cmpint(driver.StatementExecuteQuery(&statement, &stream, NULL, &old), ==, ADBC_STATUS_INVALID_ARGUMENT);
        g_assert_cmpint(old.vendor_code, ==, 1); /* SQLITE_ERROR */
        old.release(&old);
        fails(driver.StatementPrepare(&statement, &error), ADBC_STATUS_INVALID_ARGUMENT, &error, "nothing");

        driver.StatementSetOptionInt(&statement, "adbc.sqlipc.infer_rows", 1, NULL);
        stream = execute("SELECT 1 AS n UNION ALL SELECT 'two'");
        g_assert_null(driver.ErrorFromArrayStream(&stream, &status));
        g_assert_cmpint(stream.get_next(&stream, &batch), ==, EINVAL);
        g_assert_null(batch.release);
        g_assert_nonnull(strstr(driver.ErrorFromArrayStream(&stream, &status)->message, "Row 2, column \"n\""));
        g_assert_cmpint(status, ==, ADBC_STATUS_INVALID_DATA);
        stream.release(&stream);
        close_all();
}

static struct ArrowArray column_of(int64_t n, int64_t step) {
        void *buffers[2] = { NULL };
        struct ArrowArray array;

        buffers[1] = g_new(int64_t, n);
        for (int64_t i = 0; i < n; i++)
                ((int64_t *) buffers[1])[i] = i * step;
        g_assert_cmpint(arrow_struct_array(&array, n, 0, buffers, 2, 0), ==, 0);
        return array;
}

static void bind(int64_t n) {
        struct AdbcError error = ERROR_1_1;
        struct ArrowSchema schema;
        struct ArrowArray batch;
        void *none[1] = { NULL };

        g_assert_cmpint(arrow_struct_schema(&schema, "+s", "", 0, 1), ==, 0);
        g_assert_cmpint(arrow_struct_schema(schema.children[0], "l", "id", ARROW_FLAG_NULLABLE, 0), ==, 0);
        g_assert_cmpint(arrow_struct_array(&batch, n, 0, none, 1, 1), ==, 0);
        *batch.children[0] = column_of(n, 1);
        ok(driver.StatementBind(&statement, &batch, &schema, &error), &error);
        g_assert_null(batch.release);
        g_assert_null(schema.release);
}

static void writes(const char *address) {
        struct AdbcError error = ERROR_1_1;
        struct ArrowArrayStream stream;
        int64_t affected;

        open_statement(address, "notes");
        bind(3); /* is replaced, and released */
        bind(1000);
        driver.StatementSetSqlQuery(&statement, "INSERT INTO note (id) VALUES (?)", NULL);
        ok(driver.StatementExecuteQuery(&statement, NULL, &affected, &error), &error);
        g_assert_cmpint(affected, ==, 1000);
        bind(2); /* the second row fails, so the first one is not there either */
        driver.StatementSetSqlQuery(&statement, "INSERT INTO note (id) VALUES (? * 5000 + 5000 * (id = 0))", NULL);
        fails(driver.StatementExecuteQuery(&statement, NULL, &affected, &error), ADBC_STATUS_INVALID_ARGUMENT, &error, "id");
        bind(10);
        driver.StatementSetSqlQuery(&statement, "DELETE FROM note WHERE id = ? RETURNING id", NULL);
        ok(driver.StatementExecuteQuery(&statement, &stream, &affected, &error), &error);
        g_assert_cmpint(count_rows(&stream), ==, 10);
        stream.release(&stream);
        bind(5);
        ok(driver.StatementSetOption(&statement, "adbc.ingest.target_table", "ingested", &error), &error);
        ok(driver.StatementExecuteQuery(&statement, &stream, &affected, &error), &error);
        g_assert_cmpint(affected, ==, 5);
        g_assert_cmpint(count_rows(&stream), ==, 0);
        stream.release(&stream);
        bind(7); /* is not executed */
        close_all();
}

static void metadata(const char *address) {
        struct AdbcError error = ERROR_1_1;
        struct ArrowArrayStream stream;
        struct ArrowSchema schema;

        open_statement(address, "chinook");
        ok(driver.ConnectionGetObjects(&connection, 0, NULL, NULL, NULL, NULL, NULL, &stream, &error), &error);
        g_assert_cmpint(count_rows(&stream), ==, 2);
        g_assert_cmpint(stream.get_schema(&stream, &schema), ==, 0);
        schema.release(&schema);
        stream.release(&stream);
        ok(driver.ConnectionGetInfo(&connection, NULL, 0, &stream, &error), &error);
        stream.release(&stream);
        ok(driver.ConnectionGetTableSchema(&connection, NULL, NULL, "Track", &schema, &error), &error);
        g_assert_cmpint(schema.n_children, ==, 9);
        schema.release(&schema);
        ok(driver.StatementSetSqlQuery(&statement, "SELECT ? AS id", &error), &error);
        bind(3);
        for (unsigned i = 0; i < 2; i++) { /* the bound rows remain for the execution, or for the next call */
                ok(driver.StatementExecuteSchema(&statement, &schema, &error), &error);
                g_assert_cmpstr(schema.children[0]->format, ==, "l");
                schema.release(&schema);
        }
        ok(driver.StatementExecuteQuery(&statement, &stream, NULL, &error), &error);
        g_assert_cmpint(count_rows(&stream), ==, 3);
        stream.release(&stream);
        bind(0);
        ok(driver.StatementExecuteQuery(&statement, &stream, NULL, &error), &error);
        g_assert_cmpint(count_rows(&stream), ==, 0);
        stream.release(&stream);
        bind(3);
        ok(driver.StatementExecuteSchema(&statement, &schema, &error), &error);
        schema.release(&schema);
        close_all(); /* with bound rows that no execution has taken */
}

/* Cancels the connection while the stream is unread. */
static void cancel(struct ArrowArrayStream *stream) {
        struct AdbcError error = ERROR_1_1;
        AdbcStatusCode status = ADBC_STATUS_OK;
        struct ArrowArray batch;

        g_assert_null(driver.ErrorFromArrayStream(stream, &status));
        ok(driver.ConnectionCancel(&connection, &error), &error);
        for (unsigned i = 0; i < 2; i++) {
                g_assert_cmpint(stream->get_next(stream, &batch), ==, ECANCELED);
                g_assert_null(batch.release);
                g_assert_nonnull(strstr(stream->get_last_error(stream), "cancelled"));
        }
        g_assert_nonnull(driver.ErrorFromArrayStream(stream, &status));
        g_assert_cmpint(status, ==, ADBC_STATUS_CANCELLED);
        fails(driver.ConnectionCancel(&connection, &error), ADBC_STATUS_INVALID_STATE, &error, "nothing to cancel");
        stream->release(stream);
}

/* An unread stream of each kind is an operation of its connection, which ends it. */
static void cancelled(const char *address) {
        struct AdbcError error = ERROR_1_1;
        struct ArrowArrayStream stream;

        open_statement(address, "chinook");
        ok(driver.ConnectionGetObjects(&connection, 0, NULL, NULL, NULL, NULL, NULL, &stream, &error), &error);
        cancel(&stream);
        ok(driver.ConnectionGetInfo(&connection, NULL, 0, &stream, &error), &error);
        cancel(&stream);
        ok(driver.ConnectionGetTableTypes(&connection, &stream, &error), &error);
        cancel(&stream);
        stream = execute("SELECT * FROM Genre");
        cancel(&stream);
        ok(driver.ConnectionGetObjects(&connection, 0, NULL, NULL, NULL, NULL, NULL, &stream, &error), &error);
        g_assert_cmpint(count_rows(&stream), ==, 2); /* a later one is not affected */
        fails(driver.ConnectionCancel(&connection, &error), ADBC_STATUS_INVALID_STATE, &error, "nothing to cancel");
        stream.release(&stream);
        ok(driver.ConnectionGetTableTypes(&connection, &stream, &error), &error);
        stream.release(&stream); /* unread */
        fails(driver.ConnectionCancel(&connection, &error), ADBC_STATUS_INVALID_STATE, &error, "nothing to cancel");
        close_all();
}

/* Prints why no connection can be opened: adbc-client BUS missing:DATABASE. An empty BUS is not set. */
static void missing(const char *bus, const char *name) {
        struct AdbcError error = ERROR_1_1;

        make_connection(bus, name);
        g_assert_cmpint(driver.ConnectionInit(&connection, &database, &error), !=, ADBC_STATUS_OK);
        printf("%s\n", error.message);
        error.release(&error);
        close_all();
}

/* Prints the row of a database: adbc-client BUS place:DATABASE. */
static void place(const char *bus, const char *name) {
        struct ArrowArrayStream stream;
        struct ArrowArray rows;

        open_statement(bus, name);
        stream = execute("SELECT name FROM place");
        g_assert_cmpint(stream.get_next(&stream, &rows), ==, 0);
        printf("%.*s\n", ((const int32_t *) rows.children[0]->buffers[1])[1], (const char *) rows.children[0]->buffers[2]);
        rows.release(&rows);
        stream.release(&stream);
        close_all();
}

int main(int argc, char **argv) {
        static const struct {
                const char *name;
                void (*run)(const char *address);
        } cases[] = {
                { "orders", orders }, { "batches", batches }, { "endless", endless },
                { "errors", errors }, { "writes", writes },   { "metadata", metadata },
                { "cancelled", cancelled },
        };

        g_assert_cmpint(argc, ==, 3);
        g_assert_cmpint(AdbcDriverInit(ADBC_VERSION_1_1_0, &driver, NULL), ==, ADBC_STATUS_OK);
        if (g_str_has_prefix(argv[2], "missing:") || g_str_has_prefix(argv[2], "place:")) {
                (argv[2][0] == 'm' ? missing : place)(argv[1], strchr(argv[2], ':') + 1);
                return 0;
        }
        for (size_t i = 0; i < G_N_ELEMENTS(cases); i++)
                if (g_str_equal(argv[2], cases[i].name)) {
                        cases[i].run(argv[1]);
                        return 0;
                }
        return 2;
}
