/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: library. See remote-table.h. Everything is asked by SQL that also works on exposed
 * tables. Indexes and statistics are not shown there; then they stay unknown.
 */
#include "client-lib/extension/remote-table.h"

#include <errno.h>
#include <math.h>
#include <sqlite3ext.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "client-lib/sqlipc.h"

SQLITE_EXTENSION_INIT3

#define N_ROWS_UNKNOWN 1e6    /* SQLite's own guess is 2^20 */
#define N_ROWS_MAX 1e15       /* sqlite_stat1 may have any number; an estimate must fit into an sqlite3_int64 */
#define ROWS_PER_VALUE 10     /* SQLite's own guess for an index without statistics */
#define N_COLLATIONS_ASKED 50 /* columns in one query */
#define N_COLUMNS_ROWID 1999  /* a row of more columns has no room for the rowid: SQLite allows 2000 */

/* ---- questions ---- */

/* Called for each row. Returns 0 or a negative errno. */
typedef int (*SeeRow)(RemoteTable *t, sqlipc_cursor *row, void *userdata);

/* Runs `sql`, whose ?1 is the name of the table if `sql` has a parameter. Returns 0 or a negative errno. */
static int ask(RemoteTable *t, const char *sql, SeeRow see, void *userdata) {
        sqlipc_parameter name = {
                .struct_size = sizeof name,
                .type = SQLIPC_TEXT,
                .bytes = t->name,
                .size = strlen(t->name),
        };
        sqlipc_cursor *cursor = NULL;
        int r = sqlipc_query_with(t->connection, t->database, sql, &name, strstr(sql, "?1") ? 1 : 0, &cursor);

        while (r >= 0 && (r = sqlipc_cursor_next(cursor)) > 0)
                r = see(t, cursor, userdata);
        sqlipc_cursor_close(cursor);
        return r;
}

/* True if the service is there, and has refused this one question. */
static bool is_refused(const RemoteTable *t, int r) {
        return (r == -EINVAL || r == -EPERM) && sqlipc_error_code(t->connection) != SQLIPC_ERROR_NONE;
}

/* The same for a question whose answer is of use, but not needed. */
static int ask_if_allowed(RemoteTable *t, const char *sql, SeeRow see, void *userdata) {
        int r = ask(t, sql, see, userdata);

        return is_refused(t, r) ? 0 : r;
}

/* ---- columns ---- */

/* Section 3.1 of https://www.sqlite.org/datatype3.html */
static ColumnAffinity affinity_of(const char *type) {
        if (strcasestr(type, "INT"))
                return COLUMN_NUMERIC;
        if (strcasestr(type, "CHAR") || strcasestr(type, "CLOB") || strcasestr(type, "TEXT"))
                return COLUMN_TEXT;
        if (type[0] == 0 || strcasestr(type, "BLOB"))
                return COLUMN_PLAIN;
        return COLUMN_NUMERIC;
}

static int see_kind(RemoteTable *t, sqlipc_cursor *row, void *userdata) {
        (void) userdata;
        t->is_view = sqlipc_column_int64(row, 0);
        t->is_virtual = sqlipc_column_int64(row, 1);
        return 0;
}

static int add_column(RemoteTable *t, const char *name, const char *type) {
        RemoteColumn *c = &t->columns[t->n_columns++];

        *c = (RemoteColumn) {
                .name = strdup(name),
                .type = strdup(type ? type : ""),
                .collation = remote_collation("BINARY"),
                .affinity = affinity_of(type ? type : ""),
        };
        /* ANY of a STRICT table does not convert values, ANY of another table does */
        if ((!type && t->is_view) || (type && strcasecmp(type, "ANY") == 0))
                c->affinity = COLUMN_UNKNOWN;
        return c->name && c->type ? 0 : -ENOMEM;
}

static int read_columns(RemoteTable *t) {
        char *sql = sqlite3_mprintf("SELECT * FROM main.\"%w\"", t->name);
        sqlipc_statement *statement = NULL;
        int r = sql ? sqlipc_prepare(t->connection, t->database, sql, &statement) : -ENOMEM;
        unsigned n = r < 0 ? 0 : sqlipc_statement_column_count(statement);

        sqlite3_free(sql);
        t->columns = calloc(n + 1, sizeof *t->columns);
        if (r >= 0 && !t->columns)
                r = -ENOMEM;
        for (unsigned i = 0; r >= 0 && i < n; i++)
                r = add_column(t, sqlipc_statement_column_name(statement, i),
                               sqlipc_statement_column_decltype(statement, i));
        sqlipc_finalize(statement);
        return r;
}

static int find_column(const RemoteTable *t, const char *name) {
        for (int i = 0; name && i < t->n_columns; i++)
                if (sqlite3_stricmp(t->columns[i].name, name) == 0)
                        return i;
        return -1;
}

/* ---- collations ---- */

const char *remote_collation(const char *name) {
        static const char *const collations[] = {"BINARY", "NOCASE", "RTRIM"};

        for (size_t i = 0; name && i < sizeof collations / sizeof *collations; i++)
                if (sqlite3_stricmp(name, collations[i]) == 0)
                        return collations[i];
        return NULL;
}

static int see_collations(RemoteTable *t, sqlipc_cursor *row, void *userdata) {
        int start = *(int *) userdata;

        for (int i = start; i < t->n_columns && i < start + N_COLLATIONS_ASKED; i++) {
                int64_t n = sqlipc_column_int64(row, (unsigned) (i - start));

                t->columns[i].collation = remote_collation(n == 4 ? "NOCASE" : n == 3 ? "RTRIM" : "BINARY");
        }
        return 0;
}

/* No PRAGMA shows the collation of a column. But UNION removes what is equal by the collation of its first column, also if
 * that has no rows: five of these values are different by BINARY, four by NOCASE, three by RTRIM. */
static int read_collations(RemoteTable *t) {
        int r = 0;

        for (int start = 0; r >= 0 && start < t->n_columns; start += N_COLLATIONS_ASKED) {
                sqlite3_str *s = sqlite3_str_new(NULL);
                char *sql;

                for (int i = start; i < t->n_columns && i < start + N_COLLATIONS_ASKED; i++)
                        sqlite3_str_appendf(
                                s,
                                "%s (SELECT count(*) FROM (SELECT o.\"%w\" FROM main.\"%w\" AS o WHERE 0 UNION SELECT 'a' "
                                "UNION SELECT 'A' UNION SELECT 'b' UNION SELECT 'b ' UNION SELECT 'b  '))",
                                i == start ? "SELECT" : ",", t->columns[i].name, t->name);
                sql = sqlite3_str_finish(s);
                r = sql ? ask(t, sql, see_collations, &start) : -ENOMEM;
                sqlite3_free(sql);
        }
        return r;
}

static int see_encoding(RemoteTable *t, sqlipc_cursor *row, void *userdata) {
        const char *encoding = sqlipc_column_text(row, 0, NULL);

        (void) userdata;
        t->compares_as_utf8 = encoding && strcmp(encoding, "UTF-8") == 0;
        return 0;
}

/* ---- rowid ---- */

static int see_rowid(RemoteTable *t, sqlipc_cursor *row, void *userdata) {
        (void) t;
        *(bool *) userdata = sqlipc_column_type(row, 0) == SQLIPC_INTEGER;
        return 0;
}

/* Finds a name for the rowid, if there is one. A virtual table, such as an exposed view, may compile a statement with the
 * rowid, and fail when it reads one: it has a rowid only if it shows one. */
static int read_rowid(RemoteTable *t) {
        static const char *const names[] = {"rowid", "_rowid_", "oid"};

        for (size_t i = 0; !t->rowid && !t->is_view && i < sizeof names / sizeof *names; i++) {
                bool seen = !t->is_virtual;
                char *sql;
                int r;

                if (find_column(t, names[i]) >= 0 || t->n_columns >= N_COLUMNS_ROWID)
                        continue;
                sql = sqlite3_mprintf("SELECT o.%s FROM main.\"%w\" AS o LIMIT 1", names[i], t->name);
                r = sql ? ask(t, sql, see_rowid, &seen) : -ENOMEM;
                sqlite3_free(sql);
                if (r < 0 && !is_refused(t, r))
                        return r;
                if (r >= 0 && seen)
                        t->rowid = names[i];
        }
        return 0;
}

/* ---- indexes and statistics ---- */

static int see_index(RemoteTable *t, sqlipc_cursor *row, void *userdata) {
        int column = find_column(t, sqlipc_column_text(row, 0, NULL));

        (void) userdata;
        if (column >= 0 && t->columns[column].rows_per_value != 1)
                t->columns[column].rows_per_value = sqlipc_column_int64(row, 1) ? 1 : ROWS_PER_VALUE;
        t->knows_indexes = true;
        return 0;
}

static int see_statistics(RemoteTable *t, sqlipc_cursor *row, void *userdata) {
        const char *stat = sqlipc_column_text(row, 1, NULL);
        int column = find_column(t, sqlipc_column_text(row, 0, NULL));
        char *end;
        double value;

        *(bool *) userdata = true;
        if (!stat)
                return 0;
        value = strtod(stat, &end);
        if (end > stat && value >= 0)
                t->n_rows = fmin(value, N_ROWS_MAX);
        value = strtod(end, NULL);
        if (column >= 0 && value >= 1)
                t->columns[column].rows_per_value = fmin(value, N_ROWS_MAX);
        return 0;
}

static int see_n_rows(RemoteTable *t, sqlipc_cursor *row, void *userdata) {
        (void) userdata;
        t->n_rows = fmin(fmax((double) sqlipc_column_int64(row, 0), 0), N_ROWS_MAX);
        return 0;
}

static int read_costs(RemoteTable *t) {
        bool has_statistics = false;
        char *sql;
        int r;

        t->n_rows = N_ROWS_UNKNOWN;
        if (t->is_view || t->is_virtual)
                return 0;
        /* the first column of each index that has all rows; a column that is the rowid has no index in this list */
        r = ask_if_allowed(
                t,
                "SELECT x.name, i.\"unique\" AND (SELECT count(*) FROM pragma_index_info(i.name)) = 1"
                " FROM pragma_index_list(?1) AS i, pragma_index_info(i.name) AS x WHERE x.seqno = 0 AND NOT i.partial"
                " UNION ALL SELECT max(name), count(*) = 1 FROM pragma_table_info(?1) WHERE pk",
                see_index, NULL);
        if (r >= 0)
                r = ask_if_allowed(t,
                                   "SELECT x.name, s.stat FROM sqlite_stat1 AS s LEFT JOIN pragma_index_info(s.idx) AS x"
                                   " ON x.seqno = 0 WHERE s.tbl = ?1 COLLATE NOCASE",
                                   see_statistics, &has_statistics);
        if (r < 0 || has_statistics || !t->rowid)
                return r;
        sql = sqlite3_mprintf("SELECT max(o.%s) FROM main.\"%w\" AS o", t->rowid, t->name);
        r = sql ? ask_if_allowed(t, sql, see_n_rows, NULL) : -ENOMEM;
        sqlite3_free(sql);
        return r;
}

/* ---- the whole table ---- */

int remote_table_read(RemoteTable *t, sqlipc_connection *connection, const char *database, const char *name) {
        int r;

        *t = (RemoteTable) { .connection = connection, .database = strdup(database), .name = strdup(name) };
        if (!t->database || !t->name)
                return -ENOMEM;
        r = ask(t,
                "SELECT type = 'view', sql LIKE 'CREATE VIRTUAL%' FROM sqlite_schema"
                " WHERE name = ?1 COLLATE NOCASE AND type IN ('table', 'view')",
                see_kind, NULL);
        if (r >= 0)
                r = read_columns(t);
        if (r >= 0)
                r = read_collations(t);
        if (r >= 0)
                r = ask_if_allowed(t, "PRAGMA encoding", see_encoding, NULL);
        if (r >= 0)
                r = read_rowid(t);
        return r < 0 ? r : read_costs(t);
}

void remote_table_done(RemoteTable *t) {
        for (int i = 0; i < t->n_columns; i++) {
                free(t->columns[i].name);
                free(t->columns[i].type);
        }
        free(t->columns);
        free(t->database);
        free(t->name);
        *t = (RemoteTable) {};
}

/* A type that does not tell the affinity, or that SQLite would take for the mark of a hidden column, is left out or
 * replaced.
 */
static const char *declared_type(const RemoteColumn *c) {
        if (c->affinity == COLUMN_UNKNOWN)
                return "";
        if (!strcasestr(c->type, "hidden"))
                return c->type;
        return c->affinity == COLUMN_TEXT ? "TEXT" : c->affinity == COLUMN_NUMERIC ? "NUMERIC" : "";
}

char *remote_table_declaration(const RemoteTable *t) {
        sqlite3_str *s = sqlite3_str_new(NULL);

        for (int i = 0; i < t->n_columns; i++) {
                const char *type = declared_type(&t->columns[i]);

                sqlite3_str_appendf(s, "%s\"%w\"", i == 0 ? "CREATE TABLE x(" : ", ", t->columns[i].name);
                if (type[0])
                        sqlite3_str_appendf(s, " \"%w\"", type);
                sqlite3_str_appendf(s, " COLLATE %s", t->columns[i].collation);
        }
        sqlite3_str_appendall(s, ")");
        return sqlite3_str_finish(s);
}
