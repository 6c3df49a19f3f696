/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See exposed-schema.h. Everything is read by SQL: SQLite reports what it knows, and no part of the schema is
 * parsed here.
 */
#include "daemon/worker/exposed/exposed-schema.h"

#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "daemon/worker/exposed/exposed-collation.h"

#define N_ROWS_UNKNOWN 1e6 /* SQLite's own guess is 2^20 */
#define N_ROWS_MAX 1e15    /* limit for sqlite_stat1, which may have any number; must fit into an sqlite3_int64 */

/* ---- queries ---- */

/* Called for each row. Returns an SQLite result code. */
typedef int (*SeeRow)(ExposedObject *o, sqlite3_stmt *row, void *userdata);

/* Runs `sql` with ?1 bound to `argument`. Returns an SQLite result code. */
static int ask(ExposedObject *o, sqlite3 *db, const char *sql, const char *argument, SeeRow see, void *userdata) {
        sqlite3_stmt *stmt = NULL;
        int rc = sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), rc_end;

        if (rc == SQLITE_OK)
                rc = sqlite3_bind_text(stmt, 1, argument, -1, SQLITE_STATIC);
        while (rc == SQLITE_OK && (rc = sqlite3_step(stmt)) == SQLITE_ROW)
                rc = see(o, stmt, userdata);
        rc_end = sqlite3_finalize(stmt);
        if (rc == SQLITE_DONE)
                return SQLITE_OK;
        return rc == SQLITE_OK ? rc_end : rc;
}

static char *column_dup(sqlite3_stmt *row, int i) {
        const unsigned char *text = sqlite3_column_text(row, i);

        return strdup(text ? (const char *) text : "");
}

/* ---- the object ---- */

static int see_object(ExposedObject *o, sqlite3_stmt *row, void *userdata) {
        (void) userdata;
        if (o->name) /* impossible: names differ in more than case */
                return SQLITE_CORRUPT;
        o->name = column_dup(row, 0);
        o->is_view = sqlite3_column_int(row, 1);
        o->is_virtual = sqlite3_column_int(row, 2);
        return o->name ? SQLITE_OK : SQLITE_NOMEM;
}

/* ---- columns ---- */

/* Section 3.1 of https://www.sqlite.org/datatype3.html */
static Affinity affinity_of(const char *type) {
        if (strcasestr(type, "INT"))
                return AFFINITY_NUMERIC;
        if (strcasestr(type, "CHAR") || strcasestr(type, "CLOB") || strcasestr(type, "TEXT"))
                return AFFINITY_TEXT;
        if (type[0] == 0 || strcasestr(type, "BLOB"))
                return AFFINITY_NONE;
        return AFFINITY_NUMERIC;
}

static int see_column(ExposedObject *o, sqlite3_stmt *row, void *userdata) {
        ExposedColumn *columns = reallocarray(o->columns, (size_t) o->n_columns + 1, sizeof *columns), *c;

        (void) userdata;
        if (!columns)
                return SQLITE_NOMEM;
        o->columns = columns;
        c = &columns[o->n_columns++];
        *c = (ExposedColumn) {
                .name = column_dup(row, 0),
                .type = column_dup(row, 1),
                .collation = strdup("BINARY"),
                .hidden = sqlite3_column_int(row, 2) == 1, /* 2 and 3 are generated columns: as visible as others */
        };
        if (!c->name || !c->type || !c->collation)
                return SQLITE_NOMEM;
        c->affinity = affinity_of(c->type);
        return SQLITE_OK;
}

/* True for the type ANY, which means "no affinity" only in a STRICT table. */
static bool is_strict_any(const ExposedObject *o, const ExposedColumn *c) {
        return !o->is_view && !o->is_virtual && c->affinity == AFFINITY_NUMERIC && strcasecmp(c->type, "ANY") == 0;
}

/* Replaces a column's type if it does not say which affinity the column has (a cast in a view, ANY of a STRICT table that a
 * view shows), and a type that SQLite would take for the mark of a hidden column. */
static int see_affinity(ExposedObject *o, sqlite3_stmt *row, void *userdata) {
        const char *type = (const char *) sqlite3_column_text(row, 0);
        int *at = userdata;
        ExposedColumn *c;

        while (*at < o->n_columns && o->columns[*at].hidden)
                ++*at;
        if (*at >= o->n_columns || !type)
                return SQLITE_CORRUPT;
        c = &o->columns[(*at)++];
        if (affinity_of(type) == c->affinity && !strcasestr(c->type, "hidden"))
                return SQLITE_OK;
        if (is_strict_any(o, c)) {
                o->is_strict = true;
                c->affinity = AFFINITY_NONE;
                return SQLITE_OK;
        }
        free(c->type);
        c->type = strdup(type);
        c->affinity = affinity_of(type);
        return c->type ? SQLITE_OK : SQLITE_NOMEM;
}

/* SQLite tells the affinity of an expression only through the columns of a table that is created from it. */
static int read_affinities(ExposedObject *o, sqlite3 *db) {
        char *sql = sqlite3_mprintf("CREATE TEMP TABLE \"exposed affinities\" AS SELECT * FROM main.\"%w\" LIMIT 0",
                                    o->name);
        int rc, rc_drop, at = 0;

        if (!sql)
                return SQLITE_NOMEM;
        rc = sqlite3_exec(db, sql, NULL, NULL, NULL);
        sqlite3_free(sql);
        if (rc != SQLITE_OK)
                return rc;
        rc = ask(o, db, "SELECT type FROM pragma_table_info(?1, 'temp')", "exposed affinities", see_affinity, &at);
        /* a table that is left would make the next object fail, which would then seem to be the cause */
        rc_drop = sqlite3_exec(db, "DROP TABLE temp.\"exposed affinities\"", NULL, NULL, NULL);
        return rc == SQLITE_OK ? rc_drop : rc;
}

static int read_collations(ExposedObject *o, sqlite3 *db) {
        for (int i = 0; i < o->n_columns; i++) {
                ExposedColumn *c = &o->columns[i];
                char *collation = NULL;
                int rc = SQLITE_OK;

                if (o->is_view)
                        rc = exposed_collation(db, o->name, c->name, &collation);
                else {
                        const char *its = NULL;

                        rc = sqlite3_table_column_metadata(db, "main", o->name, c->name, NULL, &its, NULL, NULL, NULL);
                        if (rc == SQLITE_OK && its && !(collation = strdup(its)))
                                rc = SQLITE_NOMEM;
                }
                if (collation) {
                        free(c->collation);
                        c->collation = collation;
                }
                if (rc != SQLITE_OK)
                        return rc;
        }
        return SQLITE_OK;
}

static int find_column(const ExposedObject *o, const char *name) {
        for (int i = 0; i < o->n_columns; i++)
                if (strcasecmp(o->columns[i].name, name) == 0)
                        return i;
        return COLUMN_OTHER;
}

/* Finds a name for the rowid, if there is one, by compiling a statement with it. A table with as many columns as SQLite
 * allows gets none, because no row could have all columns and the rowid. */
static int read_rowid(ExposedObject *o, sqlite3 *db) {
        static const char *const names[] = { "rowid", "_rowid_", "oid" };

        if (o->is_view || o->n_columns >= sqlite3_limit(db, SQLITE_LIMIT_COLUMN, -1))
                return SQLITE_OK;
        for (size_t i = 0; !o->rowid && i < sizeof names / sizeof *names; i++) {
                sqlite3_stmt *stmt = NULL;
                char *sql;

                if (find_column(o, names[i]) != COLUMN_OTHER)
                        continue;
                sql = sqlite3_mprintf("SELECT o.%s FROM main.\"%w\" AS o", names[i], o->name);
                if (!sql)
                        return SQLITE_NOMEM;
                if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) == SQLITE_OK)
                        o->rowid = names[i];
                (void) sqlite3_finalize(stmt);
                sqlite3_free(sql);
        }
        return SQLITE_OK;
}

/* ---- indexes ---- */

static ExposedIndex *add_index(ExposedObject *o) {
        ExposedIndex *indexes = reallocarray(o->indexes, (size_t) o->n_indexes + 1, sizeof *indexes);

        if (!indexes)
                return NULL;
        o->indexes = indexes;
        indexes[o->n_indexes] = (ExposedIndex) {};
        return &indexes[o->n_indexes++];
}

static int add_index_column(ExposedIndex *x, int column, bool descending) {
        size_t n = (size_t) x->n_columns + 1;
        int *columns = reallocarray(x->columns, n, sizeof *columns);
        bool *directions = columns ? reallocarray(x->descending, n, sizeof *directions) : NULL;
        double *n_rows = directions ? reallocarray(x->n_rows, n, sizeof *n_rows) : NULL;

        x->columns = columns ?: x->columns;
        x->descending = directions ?: x->descending;
        if (!n_rows)
                return SQLITE_NOMEM;
        x->n_rows = n_rows;
        x->columns[n - 1] = column;
        x->descending[n - 1] = descending;
        x->n_rows[n - 1] = n < 5 ? 11.0 - (double) n : 6; /* SQLite's own guess */
        x->n_columns = (int) n;
        return SQLITE_OK;
}

static int see_index_column(ExposedObject *o, sqlite3_stmt *row, void *userdata) {
        ExposedIndex *x = userdata;
        int column = sqlite3_column_int(row, 0);
        const char *collation = (const char *) sqlite3_column_text(row, 2);

        if (column == COLUMN_ROWID || column == COLUMN_OTHER)
                return add_index_column(x, column, sqlite3_column_int(row, 1));
        column = find_column(o, (const char *) (sqlite3_column_text(row, 3) ?: (const unsigned char *) ""));
        if (column >= 0 && (!collation || strcasecmp(o->columns[column].collation, collation) != 0))
                column = COLUMN_OTHER;
        return add_index_column(x, column, sqlite3_column_int(row, 1));
}

static int see_stat(ExposedObject *o, sqlite3_stmt *row, void *userdata) {
        ExposedIndex *x = userdata;
        const char *s = (const char *) sqlite3_column_text(row, 0);
        char *end;
        double value;

        if (!s)
                return SQLITE_OK;
        value = strtod(s, &end);
        if (end > s && value >= 0)
                o->n_rows = fmin(value, N_ROWS_MAX);
        for (int i = 0; x && end > s && i < x->n_columns; i++) {
                s = end;
                value = strtod(s, &end);
                if (end > s && value >= 1)
                        x->n_rows[i] = fmin(value, N_ROWS_MAX);
        }
        return SQLITE_OK;
}

typedef struct IndexReader {
        sqlite3 *db;
        bool own_key; /* the primary key is an index, and not an alias of the rowid */
} IndexReader;

static int see_index(ExposedObject *o, sqlite3_stmt *row, void *userdata) {
        IndexReader *reader = userdata;
        const char *name = (const char *) sqlite3_column_text(row, 0);
        bool unique = sqlite3_column_int(row, 1);
        ExposedIndex *x;
        int rc;

        reader->own_key = reader->own_key || sqlite3_column_int(row, 3);
        if (!name || sqlite3_column_int(row, 2)) /* a partial index does not find all rows */
                return SQLITE_OK;
        x = add_index(o);
        if (!x)
                return SQLITE_NOMEM;
        rc = ask(o, reader->db,
                 "SELECT cid, \"desc\", coll, name FROM pragma_index_xinfo(?1, 'main') WHERE key ORDER BY seqno", name,
                 see_index_column, x);
        x->unique = unique;
        if (rc == SQLITE_OK && unique && x->n_columns > 0)
                x->n_rows[x->n_columns - 1] = 1;
        /* if there is no sqlite_stat1, the guesses stay */
        (void) ask(o, reader->db, "SELECT stat FROM main.sqlite_stat1 WHERE idx = ?1", name, see_stat, x);
        return rc;
}

static int add_key(ExposedObject *o, int column) {
        ExposedIndex *x = add_index(o);
        int rc = x ? add_index_column(x, column, false) : SQLITE_NOMEM;

        if (rc != SQLITE_OK)
                return rc;
        x->n_rows[0] = 1;
        x->unique = true;
        return rc;
}

static int see_alias(ExposedObject *o, sqlite3_stmt *row, void *userdata) {
        int *alias = userdata;

        /* if there are several key columns, none of them is an alias */
        *alias = *alias == COLUMN_OTHER ? find_column(o, (const char *) sqlite3_column_text(row, 0)) : COLUMN_ROWID;
        return SQLITE_OK;
}

static int read_indexes(ExposedObject *o, sqlite3 *db) {
        IndexReader reader = { .db = db };
        int rc, alias = COLUMN_OTHER;

        o->n_rows = N_ROWS_UNKNOWN;
        if (o->is_view || o->is_virtual)
                return SQLITE_OK;
        (void) ask(o, db, "SELECT stat FROM main.sqlite_stat1 WHERE tbl = ?1 AND idx IS NULL", o->name, see_stat, NULL);
        rc = ask(o, db, "SELECT name, \"unique\", partial, origin = 'pk' FROM pragma_index_list(?1, 'main')", o->name,
                 see_index, &reader);
        if (rc == SQLITE_OK && o->rowid)
                rc = add_key(o, COLUMN_ROWID);
        if (rc != SQLITE_OK || !o->rowid || reader.own_key)
                return rc;
        rc = ask(o, db, "SELECT name FROM pragma_table_info(?1, 'main') WHERE pk", o->name, see_alias, &alias);
        return rc == SQLITE_OK && alias >= 0 ? add_key(o, alias) : rc;
}

/* ---- the whole object ---- */

/* True for an error of this object alone, once the schema could be read: a table, function, collation or module is missing
 * (SQLITE_ERROR), a virtual table is damaged (SQLITE_CORRUPT), or an FTS4 table is its own content (SQLITE_LOCKED). */
static bool is_own_error(int rc) {
        rc &= 0xff;
        return rc == SQLITE_ERROR || rc == SQLITE_CORRUPT || rc == SQLITE_LOCKED;
}

int exposed_object_read(ExposedObject *o, sqlite3 *db, const char *name) {
        int rc;

        *o = (ExposedObject) {};
        rc = ask(o, db,
                 "SELECT name, type = 'view', type = 'table' AND rootpage = 0 FROM main.sqlite_schema "
                 "WHERE name = ?1 COLLATE NOCASE AND type IN ('table', 'view')",
                 name, see_object, NULL);
        if (rc != SQLITE_OK)
                return rc;
        if (!o->name)
                return SQLITE_NOTFOUND;
        rc = ask(o, db, "SELECT name, type, hidden FROM pragma_table_xinfo(?1, 'main')", o->name, see_column, NULL);
        if (rc == SQLITE_OK && o->n_columns > 0)
                rc = read_affinities(o, db);
        if (rc == SQLITE_OK && o->n_columns > 0)
                rc = read_collations(o, db);
        if (rc == SQLITE_OK && o->n_columns > 0)
                rc = read_rowid(o, db);
        if (rc == SQLITE_OK && o->n_columns > 0)
                rc = read_indexes(o, db);
        return is_own_error(rc) || (rc == SQLITE_OK && o->n_columns == 0) ? SQLITE_NOTFOUND : rc;
}

void exposed_object_done(ExposedObject *o) {
        for (int i = 0; i < o->n_columns; i++) {
                free(o->columns[i].name);
                free(o->columns[i].type);
                free(o->columns[i].collation);
        }
        for (int i = 0; i < o->n_indexes; i++) {
                free(o->indexes[i].columns);
                free(o->indexes[i].descending);
                free(o->indexes[i].n_rows);
        }
        free(o->columns);
        free(o->indexes);
        free(o->name);
        *o = (ExposedObject) {};
}

/* Quotes a name only if it must be quoted, because clients read it in sqlite_schema. */
static void append_name(sqlite3_str *s, const char *name) {
        bool plain = name[0] != 0 && !(name[0] >= '0' && name[0] <= '9') &&
                     !sqlite3_keyword_check(name, (int) strlen(name));

        for (const char *p = name; plain && *p; p++)
                plain = *p == '_' || (*p >= '0' && *p <= '9') || (*p >= 'A' && *p <= 'Z') || (*p >= 'a' && *p <= 'z');
        sqlite3_str_appendf(s, plain ? "%s" : "\"%w\"", name);
}

char *exposed_object_columns(const ExposedObject *o) {
        sqlite3_str *s = sqlite3_str_new(NULL);

        for (int i = 0; i < o->n_columns; i++) {
                const ExposedColumn *c = &o->columns[i];

                if (i > 0)
                        sqlite3_str_appendall(s, ", ");
                append_name(s, c->name);
                if (c->hidden)
                        sqlite3_str_appendall(s, " HIDDEN");
                else if (c->type[0]) {
                        sqlite3_str_appendchar(s, 1, ' ');
                        append_name(s, c->type);
                }
                if (strcasecmp(c->collation, "BINARY") != 0) {
                        sqlite3_str_appendall(s, " COLLATE ");
                        append_name(s, c->collation);
                }
        }
        return sqlite3_str_finish(s);
}
