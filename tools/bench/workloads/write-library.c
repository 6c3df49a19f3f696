/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Writers that use libsqlipc: a statement is prepared once, and each row is a request on a channel, see write.h. */
#include <errno.h>
#include <stdio.h>

#include "tools/bench/core/library.h"
#include "tools/bench/workloads/write.h"

typedef struct LibraryWriter {
        sqlipc_connection *connection;
        sqlipc_statement *insert;
} LibraryWriter;

/* Runs a statement to its end; a first row of two integers is stored. Prints no error. */
static int ask(sqlipc_connection *connection, const WriteTarget *target, const char *sql, WriteCount *ret) {
        __attribute__((cleanup(sqlipc_cursor_closep))) sqlipc_cursor *cursor = NULL;
        int r = sqlipc_query(connection, target->table, sql, &cursor, NULL);

        while (r >= 0 && (r = sqlipc_cursor_next(cursor)) > 0)
                if (ret)
                        *ret = (WriteCount) { sqlipc_column_int64(cursor, 0), sqlipc_column_int64(cursor, 1) };
        return r;
}

static int ask_once(const WriteTarget *target, const char *sql, WriteCount *ret) {
        sqlipc_connection *connection;
        int r = library_open(target->options, SQLIPC_TRANSPORT_CHANNEL, &connection);

        if (r < 0)
                return r;
        r = ask(connection, target, sql, ret);
        if (r < 0)
                library_failed(connection, r, sql);
        sqlipc_close(connection);
        return r;
}

static int library_clear(const WriteTarget *target) {
        g_autofree char *sql = g_strconcat("DELETE FROM ", target->table, NULL);

        return ask_once(target, sql, NULL);
}

static int library_count(const WriteTarget *target, WriteCount *ret) {
        g_autofree char *sql = g_strdup_printf("SELECT count(*), count(DISTINCT n) FROM %s", target->table);

        return ask_once(target, sql, ret);
}

static void library_close(void *userdata) {
        LibraryWriter *writer = userdata;

        sqlipc_finalize(writer->insert);
        sqlipc_close(writer->connection);
        g_free(writer);
}

static int open_writer(const WriteTarget *target, void **ret_writer) {
        g_autofree char *sql = g_strdup_printf("INSERT INTO %s(n, r, t) VALUES (?1, " WRITE_VALUES ")", target->table);
        LibraryWriter *writer = g_new0(LibraryWriter, 1);
        int r;

        r = library_open(target->options, SQLIPC_TRANSPORT_CHANNEL, &writer->connection);
        if (r >= 0) {
                r = sqlipc_prepare(writer->connection, target->table, sql, &writer->insert);
                if (r < 0)
                        library_failed(writer->connection, r, sql);
        }
        if (r < 0)
                library_close(writer);
        else
                *ret_writer = writer;
        return r;
}

static int write_row(void *userdata, int64_t number, const char **ret_message) {
        __attribute__((cleanup(sqlipc_cursor_closep))) sqlipc_cursor *cursor = NULL;
        LibraryWriter *writer = userdata;
        int r;

        r = sqlipc_bind_int64(writer->insert, 1, number);
        if (r >= 0)
                r = sqlipc_execute(writer->insert, &cursor);
        if (r >= 0)
                r = sqlipc_cursor_next(cursor); /* no row, only the end */
        if (r < 0)
                *ret_message = sqlipc_error_message(writer->connection);
        return r;
}

WriterKind write_library(const WriteTarget *target) {
        return (WriterKind) {
                .name = "libsqlipc", .clear = library_clear, .count = library_count, .open = open_writer,
                .write = write_row, .close = library_close, .target = target,
        };
}

char *write_library_obstacle(const WriteTarget *target) {
        g_autofree char *sql = g_strconcat("DELETE FROM ", target->table, NULL);
        sqlipc_connection *connection;
        char *obstacle = NULL;
        int r = library_open(target->options, SQLIPC_TRANSPORT_CHANNEL, &connection);

        if (r < 0)
                return g_strdup("there is no bus");
        r = ask(connection, target, sql, NULL);
        if (r < 0)
                obstacle = g_strdup(*sqlipc_error_message(connection) ? sqlipc_error_message(connection) : g_strerror(-r));
        sqlipc_close(connection);
        return obstacle;
}
