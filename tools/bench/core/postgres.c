/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * PostgreSQL with libpq. Values of small results are requested in binary form, which needs no parsing, and a result is
 * fetched as a whole, because PQsetSingleRowMode makes an object per row.
 *
 * A whole table is read row by row, so that client and server work at the same time, and as text, which takes the server
 * less time if most values are texts. Slower are the whole result in either form, single rows in binary form, and COPY
 * in binary form, which needs as little processor time, but more of it in the server.
 */
#include <endian.h>
#include <errno.h>
#include <glib.h>
#include <libpq-fe.h>
#include <stdbool.h>
#include <stdio.h>

#include "tools/bench/core/database-server.h"

struct ServerConnection {
        PGconn *connection;
        bool in_order; /* a scan of a whole table begins at its start */
};

/* Types of columns, from PostgreSQL's catalog (pg_type.h); they have never changed. */
enum { OID_INT8 = 20, OID_TEXT = 25, OID_FLOAT8 = 701 };
enum { FORMAT_TEXT = 0, FORMAT_BINARY = 1 };

#define STATEMENT_NAME "point"

static int failed(ServerConnection *connection, const char *what) {
        fprintf(stderr, "sqlipc-bench: PostgreSQL: %s: %s", what, PQerrorMessage(connection->connection));
        return -EIO;
}

static ServerConnection *server_close(ServerConnection *connection) {
        if (!connection)
                return NULL;
        PQfinish(connection->connection);
        g_free(connection);
        return NULL;
}

/* Ignores notices, which libpq would print. */
static void ignore_notice(void *userdata, const PGresult *result) {
        (void) userdata;
        (void) result;
}

static int server_connect(const DatabaseServerChoice *choice, ServerConnection **ret) {
        ServerConnection *connection = g_new0(ServerConnection, 1);

        connection->connection = PQconnectdb(choice->where);
        if (PQstatus(connection->connection) != CONNECTION_OK) {
                int r = failed(connection, choice->where);

                server_close(connection);
                return r;
        }
        (void) PQsetNoticeReceiver(connection->connection, ignore_notice, NULL);
        *ret = connection;
        return 0;
}

/* Each connection has its own process, whose parent is the server. */
static pid_t server_get_pid(ServerConnection *connection) {
        g_autofree char *path = g_strdup_printf("/proc/%d/status", PQbackendPID(connection->connection)), *status = NULL;
        const char *line;

        if (!g_file_get_contents(path, &status, NULL, NULL) || !(line = strstr(status, "\nPPid:")))
                return 0;
        return (pid_t) g_ascii_strtoll(line + strlen("\nPPid:"), NULL, 10);
}

static int copy_value(const PGresult *result, int row, int column, Copy *copy) {
        const char *bytes = PQgetvalue(result, row, column);
        uint64_t word;

        if (PQgetisnull(result, row, column)) {
                copy_null(copy);
                return 0;
        }
        switch (PQftype(result, column)) {
        case OID_INT8:
                memcpy(&word, bytes, sizeof word);
                copy_integer(copy, (int64_t) be64toh(word));
                return 0;
        case OID_FLOAT8: {
                double value;

                memcpy(&word, bytes, sizeof word);
                word = be64toh(word);
                memcpy(&value, &word, sizeof value);
                copy_real(copy, value);
                return 0;
        }
        case OID_TEXT:
                copy_bytes(copy, SQLIPC_TEXT, bytes, (size_t) PQgetlength(result, row, column));
                return 0;
        default:
                fprintf(stderr, "sqlipc-bench: PostgreSQL: a column of another type than BIGINT, FLOAT8 and TEXT.\n");
                return -EBADMSG;
        }
}

/* Copies `result`, which it owns and frees. */
static int copy_result(ServerConnection *connection, PGresult *result, Copy *copy) {
        int n_rows = PQntuples(result), n_columns = PQnfields(result), r = 0;

        if (PQresultStatus(result) != PGRES_TUPLES_OK && PQresultStatus(result) != PGRES_COMMAND_OK)
                r = failed(connection, "query");
        for (int row = 0; r >= 0 && row < n_rows; row++) {
                for (int column = 0; r >= 0 && column < n_columns; column++)
                        r = copy_value(result, row, column, copy);
                copy->n_rows++;
        }
        PQclear(result);
        return r;
}

static int server_execute(ServerConnection *connection, const char *sql) {
        PGresult *result = PQexec(connection->connection, sql);
        ExecStatusType status = PQresultStatus(result);

        PQclear(result);
        return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK ? 0 : failed(connection, "execute");
}

static int server_copy(ServerConnection *connection, const char *sql, Copy *copy) {
        return copy_result(connection,
                           PQexecParams(connection->connection, sql, 0, NULL, NULL, NULL, NULL, FORMAT_BINARY), copy);
}

/* Adds the only row of `result`, in text form. */
static void copy_text_row(const PGresult *result, const Oid *types, int n_columns, Copy *copy) {
        for (int i = 0; i < n_columns; i++) {
                const char *bytes = PQgetvalue(result, 0, i);

                if (PQgetisnull(result, 0, i))
                        copy_null(copy);
                else if (types[i] == OID_INT8)
                        copy_integer(copy, g_ascii_strtoll(bytes, NULL, 10));
                else if (types[i] == OID_FLOAT8)
                        copy_real(copy, g_ascii_strtod(bytes, NULL));
                else
                        copy_bytes(copy, SQLIPC_TEXT, bytes, (size_t) PQgetlength(result, 0, i));
        }
        copy->n_rows++;
}

/* Adds the rows of the query that was sent in single-row mode, which must be read to its end. */
static int copy_single_rows(ServerConnection *connection, Copy *copy) {
        g_autofree Oid *types = NULL;
        int n_columns = 0, r = 0;
        PGresult *result;

        while ((result = PQgetResult(connection->connection))) {
                ExecStatusType status = PQresultStatus(result);

                if (status == PGRES_SINGLE_TUPLE && !types) {
                        n_columns = PQnfields(result);
                        types = g_new(Oid, (size_t) n_columns);
                        for (int i = 0; i < n_columns; i++)
                                types[i] = PQftype(result, i);
                }
                if (status == PGRES_SINGLE_TUPLE)
                        copy_text_row(result, types, n_columns, copy);
                else if (status != PGRES_TUPLES_OK) /* which ends the rows */
                        r = failed(connection, "query");
                PQclear(result);
        }
        return r;
}

static int server_copy_table(ServerConnection *connection, const char *table, Copy *copy) {
        g_autofree char *sql = g_strconcat("SELECT * FROM ", table, NULL);
        int r = 0;

        /* Without it a scan of a large table may begin where another one is. */
        if (!connection->in_order)
                r = server_execute(connection, "SET synchronize_seqscans = off");
        if (r < 0)
                return r;
        connection->in_order = true;
        if (PQsendQueryParams(connection->connection, sql, 0, NULL, NULL, NULL, NULL, FORMAT_TEXT) != 1 ||
            PQsetSingleRowMode(connection->connection) != 1)
                return failed(connection, "query");
        return copy_single_rows(connection, copy);
}

static int server_prepare(ServerConnection *connection, const char *sql) {
        PGresult *result = PQprepare(connection->connection, STATEMENT_NAME, sql, 1, (const Oid[]) { OID_INT8 });
        ExecStatusType status = PQresultStatus(result);

        PQclear(result);
        return status == PGRES_COMMAND_OK ? 0 : failed(connection, sql);
}

static int server_copy_prepared(ServerConnection *connection, int64_t key, Copy *copy) {
        uint64_t word = htobe64((uint64_t) key);
        const char *const values[] = { (const char *) &word };
        const int sizes[] = { sizeof word }, formats[] = { FORMAT_BINARY };

        return copy_result(connection,
                           PQexecPrepared(connection->connection, STATEMENT_NAME, 1, values, sizes, formats, FORMAT_BINARY),
                           copy);
}

/* ---- Notices ------------------------------------------------------------------------------------------------------ */

static int server_notify(ServerConnection *connection, const char *table) {
        g_autofree char *sql = g_strdup_printf("CREATE RULE notify AS ON INSERT TO %s DO ALSO NOTIFY %s", table, table);

        return server_execute(connection, sql);
}

static int server_listen(ServerConnection *connection, const char *table) {
        g_autofree char *sql = g_strconcat("LISTEN ", table, NULL);
        int r = server_execute(connection, sql);

        return r < 0 ? r : PQsocket(connection->connection);
}

static int server_take_notices(ServerConnection *connection) {
        PGnotify *notice;
        int n = 0;

        if (PQconsumeInput(connection->connection) != 1)
                return failed(connection, "notices");
        for (; (notice = PQnotifies(connection->connection)); n++)
                PQfreemem(notice);
        return n;
}

const DatabaseServer database_server_postgres = {
        .name = "PostgreSQL",
        .placeholder = "$1",
        .table_options = "",
        .numbered = "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
        .durability = "SELECT 'fsync ' || current_setting('fsync') || ', synchronous_commit ' ||"
                      " current_setting('synchronous_commit')",
        .settle = "VACUUM ANALYZE",
        .connect = server_connect,
        .close = server_close,
        .get_pid = server_get_pid,
        .execute = server_execute,
        .copy = server_copy,
        .copy_table = server_copy_table,
        .table_way = "single rows in text form, which takes less time than whole results and binary form",
        .prepare = server_prepare,
        .copy_prepared = server_copy_prepared,
        .notify = server_notify,
        .listen = server_listen,
        .take_notices = server_take_notices,
};
