/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * MariaDB with its Connector/C. Unprepared results are read row by row while they arrive (mysql_use_result), which is the
 * faster of its two ways. Prepared results use the binary protocol, with buffers that are bound once. A whole table of texts
 * needs more processor time with the binary protocol, so it is read unprepared.
 *
 * The command line names the server as USER@SOCKET/DATABASE; there is no password.
 */
#include <errno.h>
#include <glib.h>
#include <mysql.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "tools/bench/core/database-server.h"

enum {
        TEXT_SIZE_MAX = 256, /* of one value of a prepared result; enough for the rows of `point` */
        COLUMNS_MAX = 32,
};

/* The buffer of a column of the prepared result. */
typedef struct BoundValue {
        union {
                long long integer;
                double real;
                char text[TEXT_SIZE_MAX];
        };
        unsigned long size;
        my_bool is_null;
} BoundValue;

struct ServerConnection {
        MYSQL *mysql;
        MYSQL_STMT *statement; /* NULL: none prepared */
        long long key;         /* its parameter */
        unsigned n_columns;
        MYSQL_BIND bound[COLUMNS_MAX];
        BoundValue values[COLUMNS_MAX];
};

static int failed(ServerConnection *connection, const char *what) {
        fprintf(stderr, "sqlipc-bench: MariaDB: %s: %s\n", what,
                connection->statement && mysql_stmt_errno(connection->statement) ? mysql_stmt_error(connection->statement)
                                                                                 : mysql_error(connection->mysql));
        return -EIO;
}

static ServerConnection *server_close(ServerConnection *connection) {
        if (!connection)
                return NULL;
        if (connection->statement)
                (void) mysql_stmt_close(connection->statement);
        mysql_close(connection->mysql);
        g_free(connection);
        return NULL;
}

static int server_connect(const DatabaseServerChoice *choice, ServerConnection **ret) {
        const char *where = choice->where;
        g_autofree char *words = g_strdup(where);
        char *socket = strchr(words, '@'), *database = strrchr(words, '/');
        ServerConnection *connection;
        int r = 0;

        if (!socket || !database || database < socket) {
                fprintf(stderr, "sqlipc-bench: '%s' is not USER@SOCKET/DATABASE.\n", where);
                return -EINVAL;
        }
        *socket++ = '\0';
        *database++ = '\0';

        connection = g_new0(ServerConnection, 1);
        connection->mysql = mysql_init(NULL);
        /* No conversion of text, and double quotes around identifiers, as in SQLite. */
        (void) mysql_options(connection->mysql, MYSQL_SET_CHARSET_NAME, "utf8mb4");
        (void) mysql_options(connection->mysql, MYSQL_INIT_COMMAND, "SET sql_mode = 'NO_BACKSLASH_ESCAPES'");
        if (!mysql_real_connect(connection->mysql, NULL, words, NULL, database, 0, socket, 0)) {
                r = failed(connection, where);
                server_close(connection);
                return r;
        }
        *ret = connection;
        return 0;
}

/* Threads serve the connections, so the process is the one that listens on the socket. */
static pid_t server_get_pid(ServerConnection *connection) {
        struct ucred peer;
        socklen_t size = sizeof peer;

        return getsockopt(mysql_get_socket(connection->mysql), SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0 ? 0 : peer.pid;
}

static void copy_text_value(const MYSQL_FIELD *field, const char *bytes, unsigned long size, Copy *copy) {
        if (!bytes)
                copy_null(copy);
        else if (field->type == MYSQL_TYPE_LONGLONG)
                copy_integer(copy, g_ascii_strtoll(bytes, NULL, 10));
        else if (field->type == MYSQL_TYPE_DOUBLE)
                copy_real(copy, g_ascii_strtod(bytes, NULL));
        else
                copy_bytes(copy, SQLIPC_TEXT, bytes, size);
}

static int copy_result(ServerConnection *connection, MYSQL_RES *result, Copy *copy) {
        const MYSQL_FIELD *fields = mysql_fetch_fields(result);
        unsigned n_columns = mysql_num_fields(result);
        MYSQL_ROW row;

        while ((row = mysql_fetch_row(result))) {
                const unsigned long *sizes = mysql_fetch_lengths(result);

                for (unsigned i = 0; i < n_columns; i++)
                        copy_text_value(&fields[i], row[i], sizes[i], copy);
                copy->n_rows++;
        }
        return mysql_errno(connection->mysql) != 0 ? failed(connection, "fetch") : 0;
}

static int server_copy(ServerConnection *connection, const char *sql, Copy *copy) {
        MYSQL_RES *result;
        int r;

        if (mysql_query(connection->mysql, sql) != 0)
                return failed(connection, "query");
        result = mysql_use_result(connection->mysql);
        if (!result) /* a statement without rows */
                return mysql_errno(connection->mysql) != 0 ? failed(connection, "query") : 0;
        r = copy_result(connection, result, copy);
        mysql_free_result(result);
        return r;
}

static int server_copy_table(ServerConnection *connection, const char *table, Copy *copy) {
        g_autofree char *sql = g_strconcat("SELECT * FROM ", table, NULL);

        return server_copy(connection, sql, copy);
}

static int server_execute(ServerConnection *connection, const char *sql) {
        Copy copy = {};
        int r = server_copy(connection, sql, &copy);

        copy_done(&copy);
        return r;
}

/* Binds every column to the buffer for its type. */
static int bind_columns(ServerConnection *connection) {
        MYSQL_RES *columns = mysql_stmt_result_metadata(connection->statement);
        const MYSQL_FIELD *fields;

        if (!columns) /* a statement without rows */
                return mysql_stmt_errno(connection->statement) != 0 ? failed(connection, "columns") : 0;
        fields = mysql_fetch_fields(columns);
        connection->n_columns = MIN(mysql_num_fields(columns), COLUMNS_MAX);
        for (unsigned i = 0; i < connection->n_columns; i++) {
                BoundValue *value = &connection->values[i];
                bool is_number = fields[i].type == MYSQL_TYPE_LONGLONG || fields[i].type == MYSQL_TYPE_DOUBLE;

                connection->bound[i] = (MYSQL_BIND) {
                        .buffer_type = is_number ? fields[i].type : MYSQL_TYPE_STRING,
                        .buffer = value->text,
                        .buffer_length = sizeof value->text,
                        .length = &value->size,
                        .is_null = &value->is_null,
                };
        }
        mysql_free_result(columns);
        return mysql_stmt_bind_result(connection->statement, connection->bound) != 0 ? failed(connection, "bind") : 0;
}

static int server_prepare(ServerConnection *connection, const char *sql) {
        MYSQL_BIND key = { .buffer_type = MYSQL_TYPE_LONGLONG, .buffer = &connection->key };

        connection->statement = mysql_stmt_init(connection->mysql);
        if (mysql_stmt_prepare(connection->statement, sql, strlen(sql)) != 0 ||
            mysql_stmt_bind_param(connection->statement, &key) != 0)
                return failed(connection, sql);
        return bind_columns(connection);
}

static void copy_bound_value(const MYSQL_BIND *bound, const BoundValue *value, Copy *copy) {
        if (value->is_null)
                copy_null(copy);
        else if (bound->buffer_type == MYSQL_TYPE_LONGLONG)
                copy_integer(copy, value->integer);
        else if (bound->buffer_type == MYSQL_TYPE_DOUBLE)
                copy_real(copy, value->real);
        else
                copy_bytes(copy, SQLIPC_TEXT, value->text, value->size);
}

static int server_copy_prepared(ServerConnection *connection, int64_t key, Copy *copy) {
        int r;

        connection->key = key;
        if (mysql_stmt_execute(connection->statement) != 0)
                return failed(connection, "execute");
        if (connection->n_columns == 0)
                return 0;
        while ((r = mysql_stmt_fetch(connection->statement)) == 0) {
                for (unsigned i = 0; i < connection->n_columns; i++)
                        copy_bound_value(&connection->bound[i], &connection->values[i], copy);
                copy->n_rows++;
        }
        return r == MYSQL_NO_DATA ? 0 : failed(connection, r == MYSQL_DATA_TRUNCATED ? "a value is too long" : "fetch");
}

const DatabaseServer database_server_mariadb = {
        .name = "MariaDB",
        .placeholder = "?",
        .table_options = " CHARACTER SET utf8mb4",
        .numbered = "BIGINT AUTO_INCREMENT PRIMARY KEY",
        .durability = "SELECT concat('innodb_flush_log_at_trx_commit ', @@innodb_flush_log_at_trx_commit)",
        .settle = "ANALYZE TABLE",
        .connect = server_connect,
        .close = server_close,
        .get_pid = server_get_pid,
        .execute = server_execute,
        .copy = server_copy,
        .copy_table = server_copy_table,
        .table_way = "the text protocol, row by row as they arrive, which takes less processor time than the binary one",
        .prepare = server_prepare,
        .copy_prepared = server_copy_prepared,
};
