/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See exposed-table.h.
 */
#include "daemon/worker/exposed/exposed-table.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#define N_SEARCHES_MAX 32 /* kept for the next cursor */

/* A compiled SELECT of the file. */
typedef struct ExposedSearch ExposedSearch;
struct ExposedSearch {
        ExposedSearch *next;               /* only while it is kept */
        const ExposedObject *object;
        char *text;                        /* owned; the text of the plan */
        Plan plan;
        char uses[PLAN_N_CONSTRAINTS + 1]; /* a ValueUse for each constraint */
        sqlite3_stmt *stmt;
        bool single;                       /* it has one row at most */
        int at[];                          /* position of each column in the row, -1: the column is not read */
};

typedef struct Table {
        sqlite3_vtab base;
        ExposedTables *tables;
        const ExposedObject *object;
} Table;

typedef struct Cursor {
        sqlite3_vtab_cursor base;
        const char *text;      /* borrowed; the idxStr for `search`, unchanged while the statement runs */
        ExposedSearch *search; /* owned; NULL: none yet */
        bool ended;
        sqlite3_int64 row;     /* number of the row, if there is no rowid */
} Cursor;

/* ---- searches ---- */

static ExposedSearch *search_free(ExposedSearch *s) {
        if (!s)
                return NULL;
        (void) sqlite3_finalize(s->stmt);
        sqlite3_free(s->text);
        free(s);
        return NULL;
}

static ExposedSearch *search_new(sqlite3 *file, const ExposedObject *o, const char *text, const Plan *plan,
                                 const char *uses, int *ret_rc) {
        ExposedSearch *s = calloc(1, sizeof *s + (size_t) o->n_columns * sizeof s->at[0]);
        char *sql = exposed_plan_sql(o, plan, uses);
        int n = o->rowid ? 1 : 0;

        *ret_rc = SQLITE_NOMEM;
        if (s && sql && (s->text = sqlite3_mprintf("%s", text)))
                *ret_rc = sqlite3_prepare_v3(file, sql, -1, SQLITE_PREPARE_PERSISTENT, &s->stmt, NULL);
        sqlite3_free(sql);
        if (*ret_rc != SQLITE_OK)
                return search_free(s);
        s->object = o;
        s->plan = *plan;
        s->single = exposed_plan_is_single(o, plan, uses);
        memcpy(s->uses, uses, (size_t) plan->n_constraints);
        for (int i = 0; i < o->n_columns; i++)
                s->at[i] = exposed_plan_reads(plan, i) ? n++ : -1;
        return s;
}

static bool search_is(const ExposedSearch *s, const ExposedObject *o, const char *text, const char *uses) {
        return s->object == o && strcmp(s->text, text) == 0 && strcmp(s->uses, uses) == 0;
}

/* Keeps a search for the next cursor. The one that was unused for the longest time is freed. */
static void keep(ExposedTables *e, ExposedSearch *s) {
        ExposedSearch **link = &e->kept;

        if (!s)
                return;
        (void) sqlite3_reset(s->stmt);
        (void) sqlite3_clear_bindings(s->stmt);
        s->next = e->kept;
        e->kept = s;
        for (unsigned n = 0; *link && n < N_SEARCHES_MAX; n++)
                link = &(*link)->next;
        *link = search_free(*link);
}

static ExposedSearch *take(ExposedTables *e, const ExposedObject *o, const char *text, const char *uses) {
        for (ExposedSearch **link = &e->kept; *link; link = &(*link)->next)
                if (search_is(*link, o, text, uses)) {
                        ExposedSearch *s = *link;

                        *link = s->next;
                        s->next = NULL;
                        return s;
                }
        return NULL;
}

/* ---- the virtual table ---- */

/* Makes SQLite use its own sentence for `rc`. If that would say nothing, the message names the object. */
static int fail(sqlite3_vtab *table, int rc) {
        const ExposedObject *o = ((Table *) table)->object;

        if ((rc & 0xff) == SQLITE_ERROR) {
                sqlite3_free(table->zErrMsg);
                table->zErrMsg = sqlite3_mprintf(
                        "\"%w\" cannot be read like this: its definition or its data does not allow it", o->name);
        }
        return rc;
}

static const ExposedObject *find_object(const ExposedTables *e, const char *name) {
        for (uint32_t i = 0; i < e->n_objects; i++)
                if (strcmp(e->objects[i].name, name) == 0)
                        return &e->objects[i];
        return NULL;
}

static int declare(sqlite3 *db, const ExposedObject *o) {
        char *columns = exposed_object_columns(o);
        char *sql = columns ? sqlite3_mprintf("CREATE TABLE x(%s)%s", columns, o->is_strict ? " STRICT" : "") : NULL;
        int rc = sql ? sqlite3_declare_vtab(db, sql) : SQLITE_NOMEM;

        sqlite3_free(columns);
        sqlite3_free(sql);
        return rc;
}

/* argv has the module, the schema and the table. The columns after them are only for readers of sqlite_schema. */
static int connect_table(sqlite3 *db, void *userdata, int argc, const char *const *argv, sqlite3_vtab **ret, char **error) {
        ExposedTables *e = userdata;
        const ExposedObject *o = argc > 2 ? find_object(e, argv[2]) : NULL;
        Table *t;
        int rc;

        (void) error;
        if (!o)
                return SQLITE_ERROR;
        rc = declare(db, o);
        if (rc != SQLITE_OK)
                return rc;
        t = sqlite3_malloc(sizeof *t);
        if (!t)
                return SQLITE_NOMEM;
        *t = (Table) { .tables = e, .object = o };
        *ret = &t->base;
        return SQLITE_OK;
}

/* Must differ from connect_table: otherwise the module itself would be a table of its own name. */
static int create_table(sqlite3 *db, void *userdata, int argc, const char *const *argv, sqlite3_vtab **ret, char **error) {
        return connect_table(db, userdata, argc, argv, ret, error);
}

static int disconnect_table(sqlite3_vtab *table) {
        sqlite3_free(table);
        return SQLITE_OK;
}

static int choose_plan(sqlite3_vtab *table, sqlite3_index_info *info) {
        const Table *t = (Table *) table;

        return exposed_plan_choose(t->object, t->tables->hints, info);
}

static int open_cursor(sqlite3_vtab *table, sqlite3_vtab_cursor **ret) {
        Cursor *c = sqlite3_malloc(sizeof *c);

        (void) table;
        if (!c)
                return SQLITE_NOMEM;
        *c = (Cursor) { .ended = true };
        *ret = &c->base;
        return SQLITE_OK;
}

static int close_cursor(sqlite3_vtab_cursor *cursor) {
        Cursor *c = (Cursor *) cursor;

        keep(((Table *) cursor->pVtab)->tables, c->search);
        sqlite3_free(c);
        return SQLITE_OK;
}

static int next_row(sqlite3_vtab_cursor *cursor) {
        Cursor *c = (Cursor *) cursor;
        int rc;

        if (c->row > 0 && c->search->single) { /* a step costs more, and would find no row; frequent in joins */
                c->ended = true;
                return SQLITE_OK;
        }
        rc = sqlite3_step(c->search->stmt);
        c->row++;
        c->ended = rc != SQLITE_ROW;
        return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : fail(cursor->pVtab, rc);
}

/* Decides how each value is used in the search. False: no row can match. */
static bool see_values(const ExposedObject *o, const Plan *plan, sqlite3_value **values, char *ret_uses) {
        for (int i = 0; i < plan->n_constraints; i++) {
                ret_uses[i] = (char) exposed_plan_value_use(o, plan, i, values[i]);
                if (ret_uses[i] == VALUE_NEVER)
                        return false;
        }
        return true;
}

/* SQLite removes a byte order mark from text in UTF-16 that is bound. In a table U+FEFF is a character like any other. So
 * another mark is put before the text, and SQLite removes that one. The same goes for text that begins with the mark's
 * bytes in the other order. */
static int bind_marked(sqlite3_stmt *stmt, int index, sqlite3_value *value) {
        static const uint16_t mark = 0xfeff;
        const void *text = sqlite3_value_text16(value);
        size_t size = (size_t) sqlite3_value_bytes16(value);
        uint8_t *marked = text ? sqlite3_malloc64(sizeof mark + size) : NULL;

        if (!marked)
                return SQLITE_NOMEM;
        memcpy(marked, &mark, sizeof mark);
        memcpy(marked + sizeof mark, text, size);
        return sqlite3_bind_text64(stmt, index, (char *) marked, sizeof mark + size, sqlite3_free, SQLITE_UTF16);
}

static bool begins_with_mark(sqlite3_value *value) {
        const uint8_t *text;

        if (sqlite3_value_type(value) != SQLITE_TEXT || sqlite3_value_encoding(value) == SQLITE_UTF8)
                return false;
        text = sqlite3_value_text16(value);
        return text && sqlite3_value_bytes16(value) > 1 &&
               ((text[0] == 0xfe && text[1] == 0xff) || (text[0] == 0xff && text[1] == 0xfe));
}

static int bind_value(sqlite3_stmt *stmt, int index, sqlite3_value *value) {
        return begins_with_mark(value) ? bind_marked(stmt, index, value) : sqlite3_bind_value(stmt, index, value);
}

/* Binds the values that the SQL uses. Parameters of constraints that were left out, and of IS NULL, may be after the last
 * one. */
static int bind_values(sqlite3_stmt *stmt, const Plan *plan, sqlite3_value **values) {
        int rc = SQLITE_OK, n = sqlite3_bind_parameter_count(stmt);

        for (int i = 0; rc == SQLITE_OK && i < plan->n_constraints && i < n; i++)
                rc = bind_value(stmt, i + 1, values[i]);
        return rc;
}

static int filter(sqlite3_vtab_cursor *cursor, int number, const char *text, int n_values, sqlite3_value **values) {
        const Table *t = (Table *) cursor->pVtab;
        Cursor *c = (Cursor *) cursor;
        char uses[PLAN_N_CONSTRAINTS + 1] = {};
        Plan parsed;
        const Plan *plan = &parsed;
        int rc = SQLITE_OK;

        (void) number;
        (void) n_values;
        c->ended = true;
        c->row = 0;
        /* usually the same plan as before: in a join, for each row of the other table */
        if (c->search && c->text == text)
                plan = &c->search->plan;
        else
                exposed_plan_parse(text, &parsed);
        if (!see_values(t->object, plan, values, uses))
                return SQLITE_OK;
        if (c->search && c->text == text && strcmp(c->search->uses, uses) == 0)
                (void) sqlite3_reset(c->search->stmt);
        else {
                keep(t->tables, c->search);
                c->search = take(t->tables, t->object, text, uses);
                c->text = text;
        }
        if (!c->search)
                c->search = search_new(t->tables->file, t->object, text, plan, uses, &rc);
        if (rc == SQLITE_OK)
                rc = bind_values(c->search->stmt, &c->search->plan, values);
        return rc == SQLITE_OK ? next_row(cursor) : fail(cursor->pVtab, rc);
}

static int has_ended(sqlite3_vtab_cursor *cursor) {
        return ((Cursor *) cursor)->ended;
}

/* Returns text as sqlite3_result_value() would. But that call allocates memory for each row, and this one reuses the memory
 * that the result has from the row before. */
static void give_text(sqlite3_context *context, sqlite3_value *value) {
        const char *text = (const char *) sqlite3_value_text(value);

        if (text)
                sqlite3_result_text64(context, text, (sqlite3_uint64) sqlite3_value_bytes(value), SQLITE_TRANSIENT,
                                      SQLITE_UTF8);
        else
                sqlite3_result_error_nomem(context);
}

static int give_column(sqlite3_vtab_cursor *cursor, sqlite3_context *context, int i) {
        const ExposedTables *e = ((Table *) cursor->pVtab)->tables;
        const ExposedSearch *s = ((Cursor *) cursor)->search;
        sqlite3_value *value;

        if (s->at[i] < 0) /* SQLite had said that it would not read this column */
                return SQLITE_INTERNAL;
        value = sqlite3_column_value(s->stmt, s->at[i]);
        if (e->utf8 && sqlite3_value_type(value) == SQLITE_TEXT && sqlite3_value_subtype(value) == 0)
                give_text(context, value);
        else
                sqlite3_result_value(context, value);
        return SQLITE_OK;
}

static int give_rowid(sqlite3_vtab_cursor *cursor, sqlite3_int64 *ret) {
        const Table *t = (Table *) cursor->pVtab;
        const Cursor *c = (Cursor *) cursor;

        if (!t->object->rowid && !t->tables->hints.rowids) {
                sqlite3_free(cursor->pVtab->zErrMsg);
                cursor->pVtab->zErrMsg = sqlite3_mprintf("no such column: rowid");
                return SQLITE_ERROR;
        }
        *ret = t->object->rowid ? sqlite3_column_int64(c->search->stmt, 0) : c->row;
        return SQLITE_OK;
}

/* Never called, because no statement that writes is ever stepped. With it SQLite compiles such a statement, which is then
 * refused because it writes. */
static int refuse_update(sqlite3_vtab *table, int argc, sqlite3_value **argv, sqlite3_int64 *ret_rowid) {
        (void) table;
        (void) argc;
        (void) argv;
        (void) ret_rowid;
        return SQLITE_READONLY;
}

static const sqlite3_module module = {
        .xCreate = create_table,
        .xConnect = connect_table,
        .xBestIndex = choose_plan,
        .xDisconnect = disconnect_table,
        .xDestroy = disconnect_table,
        .xOpen = open_cursor,
        .xClose = close_cursor,
        .xFilter = filter,
        .xNext = next_row,
        .xEof = has_ended,
        .xColumn = give_column,
        .xRowid = give_rowid,
        .xUpdate = refuse_update,
};

int exposed_tables_register(ExposedTables *tables, sqlite3 *db) {
        return sqlite3_create_module_v2(db, EXPOSED_MODULE, &module, tables, NULL);
}

int exposed_tables_create(sqlite3 *db, const ExposedObject *o) {
        /* the number of arguments has the same limit as that of columns, and there are a few more arguments */
        bool all = o->n_columns < sqlite3_limit(db, SQLITE_LIMIT_COLUMN, -1) - 5;
        char *columns = all ? exposed_object_columns(o) : sqlite3_mprintf("%d columns", o->n_columns), *sql = NULL;
        int rc = SQLITE_NOMEM;

        if (columns && (sql = sqlite3_mprintf("CREATE VIRTUAL TABLE \"%w\" USING " EXPOSED_MODULE "(%s)", o->name, columns)))
                rc = sqlite3_exec(db, sql, NULL, NULL, NULL);
        sqlite3_free(columns);
        sqlite3_free(sql);
        return rc;
}

void exposed_tables_done(ExposedTables *tables) {
        while (tables->kept) {
                ExposedSearch *s = tables->kept;

                tables->kept = s->next;
                (void) search_free(s);
        }
        for (uint32_t i = 0; i < tables->n_objects; i++)
                exposed_object_done(&tables->objects[i]);
        free(tables->objects);
        *tables = (ExposedTables) {};
}
