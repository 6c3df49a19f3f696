/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The dataset in a database server, see database-server.h. SQLite's quote() makes the literals of the SQL. Every server can
 * read them, because a dataset contains only numbers and letters.
 */
#include "tools/bench/core/database-server.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>

#include "tools/bench/core/measure.h"

enum { ROWS_AT_ONCE = 500 }; /* in one INSERT; far below the size of a statement that servers accept */

int database_servers_get(const BenchOptions *options, DatabaseServerChoice ret[static DATABASE_SERVERS_MAX]) {
        const struct {
                const char *option, *where;
                const DatabaseServer *server; /* NULL: this build does not support it */
        } servers[DATABASE_SERVERS_MAX] = {
#if HAVE_LIBPQ
                { "postgres", options->postgres, &database_server_postgres },
#else
                { "postgres", options->postgres, NULL },
#endif
                { "engine", options->engine, &database_server_by_service },
#if HAVE_LIBMARIADB
                { "mariadb", options->mariadb, &database_server_mariadb },
#else
                { "mariadb", options->mariadb, NULL },
#endif
        };
        int n = 0;

        for (size_t i = 0; i < G_N_ELEMENTS(servers); i++) {
                if (!servers[i].where)
                        continue;
                if (!servers[i].server) {
                        fprintf(stderr, "sqlipc-bench: --%s: this program was built without that server's library.\n",
                                servers[i].option);
                        return -EOPNOTSUPP;
                }
                ret[n++] = (DatabaseServerChoice) {
                        .server = servers[i].server, .where = servers[i].where, .options = options,
                };
        }
        if (n > 0) /* their tables must be dropped */
                measure_catch_signals();
        return n;
}

char *database_server_table(const char *table) {
        return g_strconcat("sqlipc_bench_", table, NULL);
}

static int failed(sqlite3 *db) {
        fprintf(stderr, "sqlipc-bench: reading a dataset: %s\n", sqlite3_errmsg(db));
        return -EIO;
}

/* Returns the only value of the query `sql` about `table`, as text. The caller frees it. */
static int ask_text(sqlite3 *db, const char *sql, const char *table, char **ret) {
        sqlite3_stmt *statement;
        const char *text;
        int r = -ENOENT;

        if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) != SQLITE_OK)
                return failed(db);
        if (sqlite3_bind_text(statement, 1, table, -1, SQLITE_STATIC) != SQLITE_OK || sqlite3_step(statement) != SQLITE_ROW)
                r = failed(db);
        else if ((text = (const char *) sqlite3_column_text(statement, 0))) {
                *ret = g_strdup(text);
                r = 0;
        } else
                fprintf(stderr, "sqlipc-bench: the dataset has no table '%s'.\n", table);
        (void) sqlite3_finalize(statement);
        return r;
}

static int create_table(const DatabaseServer *server, ServerConnection *connection, sqlite3 *db, const char *table) {
        g_autofree char *name = database_server_table(table), *drop = g_strdup_printf("DROP TABLE IF EXISTS %s", name);
        g_autofree char *columns = NULL, *create = NULL;
        int r;

        r = ask_text(db, "SELECT group_concat(name || CASE type WHEN 'INTEGER' THEN ' BIGINT' WHEN 'REAL' THEN"
                         " ' DOUBLE PRECISION' ELSE ' TEXT' END || iif(pk, ' PRIMARY KEY', ''), ', ')"
                         " FROM pragma_table_info(?)",
                     table, &columns);
        if (r < 0)
                return r;
        r = server->execute(connection, drop);
        if (r < 0)
                return r;
        create = g_strdup_printf("CREATE TABLE %s (%s)%s", name, columns, server->table_options);
        return server->execute(connection, create);
}

static int insert_rows(const DatabaseServer *server, ServerConnection *connection, sqlite3_stmt *rows, const char *name) {
        g_autoptr(GString) insert = g_string_new(NULL);
        unsigned n = 0;
        int r = 0, step = SQLITE_ROW;

        while (r >= 0 && step == SQLITE_ROW) {
                step = sqlite3_step(rows);
                if (step == SQLITE_ROW) {
                        if (n == 0)
                                g_string_printf(insert, "INSERT INTO %s VALUES ", name);
                        g_string_append_printf(insert, "%s(%s)", n > 0 ? "," : "", sqlite3_column_text(rows, 0));
                        n++;
                }
                if (n > 0 && (n == ROWS_AT_ONCE || step != SQLITE_ROW)) {
                        r = measure_interrupted();
                        if (r >= 0)
                                r = server->execute(connection, insert->str);
                        n = 0;
                }
        }
        if (r >= 0 && step != SQLITE_DONE)
                r = failed(sqlite3_db_handle(rows));
        return r;
}

static int fill_table(const DatabaseServer *server, ServerConnection *connection, sqlite3 *db, const char *table) {
        g_autofree char *name = database_server_table(table), *values = NULL, *select = NULL, *settle = NULL;
        sqlite3_stmt *rows;
        int r;

        r = ask_text(db, "SELECT group_concat('quote(' || name || ')', ' || '','' || ') FROM pragma_table_info(?)", table,
                     &values);
        if (r < 0)
                return r;
        select = g_strdup_printf("SELECT %s FROM %s", values, table);
        if (sqlite3_prepare_v2(db, select, -1, &rows, NULL) != SQLITE_OK)
                return failed(db);
        r = server->execute(connection, "BEGIN");
        if (r >= 0)
                r = insert_rows(server, connection, rows, name);
        if (r >= 0)
                r = server->execute(connection, "COMMIT");
        (void) sqlite3_finalize(rows);
        if (r < 0)
                return r;
        settle = g_strconcat(server->settle, " ", name, NULL);
        return server->execute(connection, settle);
}

int database_server_load(const DatabaseServerChoice *choice, const char *file, const char *table) {
        ServerConnection *connection = NULL;
        sqlite3 *db = NULL;
        int r;

        if (choice->server->by_service)
                return 0;
        r = choice->server->connect(choice, &connection);
        if (r >= 0 && sqlite3_open_v2(file, &db, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK)
                r = failed(db);
        if (r >= 0)
                r = create_table(choice->server, connection, db, table);
        if (r >= 0)
                r = fill_table(choice->server, connection, db, table);
        (void) sqlite3_close(db);
        choice->server->close(connection);
        return r;
}

void database_server_drop(const DatabaseServerChoice *choice, const char *table) {
        g_autofree char *name = database_server_table(table), *drop = g_strdup_printf("DROP TABLE IF EXISTS %s", name);
        ServerConnection *connection = NULL;

        if (choice->server->by_service)
                return;
        if (choice->server->connect(choice, &connection) >= 0)
                (void) choice->server->execute(connection, drop);
        choice->server->close(connection);
}
