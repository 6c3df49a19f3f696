/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See window-plan.h. The programs are read as EXPLAIN shows them.
 */
#include "daemon/worker/rqlite/window-plan.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

/* The facts about a program that matter here. */
typedef struct ProgramFacts {
        unsigned n_cursors, n_rewinds, n_seeks, n_nexts;
        int root;           /* the page of the table that is read */
        bool row_by_row;    /* all its instructions compute a row of the result from one row of the table */
} ProgramFacts;

/* Instructions that move no cursor, keep nothing from one row to the next, and call nothing that does. */
static const char *const row_instructions[] = {
        "Init",     "Transaction",  "Goto",     "Halt",      "Noop",       "Explain",  "ResultRow", "Column",
        "Rowid",    "RealAffinity", "Affinity", "Cast",      "Integer",    "Int64",    "Real",      "String",
        "String8",  "Null",         "SoftNull", "Blob",      "Variable",   "Copy",     "SCopy",     "IntCopy",
        "Function", "PureFunc",     "CollSeq",  "Add",       "Subtract",   "Multiply", "Divide",    "Remainder",
        "BitAnd",   "BitOr",        "BitNot",   "ShiftLeft", "ShiftRight", "Concat",   "Not",       "And",
        "Or",       "MustBeInt",    "IsTrue",   "Eq",        "Ne",         "Lt",       "Le",        "Gt",
        "Ge",       "ElseEq",       "If",       "IfNot",     "IsNull",     "NotNull",  "IsType",    "ZeroOrNull",
};

static bool is_row_instruction(const char *name) {
        for (size_t i = 0; i < sizeof row_instructions / sizeof *row_instructions; i++)
                if (strcmp(name, row_instructions[i]) == 0)
                        return true;
        return false;
}

static void note(ProgramFacts *f, const char *name, int p2) {
        if (strcmp(name, "OpenRead") == 0) {
                f->n_cursors++;
                f->root = p2;
        } else if (strcmp(name, "Rewind") == 0)
                f->n_rewinds++;
        else if (strcmp(name, "Next") == 0)
                f->n_nexts++;
        else if (strcmp(name, "SeekGT") == 0 || strcmp(name, "SeekGE") == 0)
                f->n_seeks++;
        else if (!is_row_instruction(name))
                f->row_by_row = false;
}

static sqlite3_stmt *prepare(ShadowSchema *shadow, const char *sql) {
        sqlite3_stmt *stmt = NULL;

        (void) sqlite3_prepare_v2(shadow->sqlite.db, sql, -1, &stmt, NULL);
        return stmt;
}

/* False: the SQL does not compile. */
static bool read_program(ShadowSchema *shadow, const char *sql, size_t sql_size, ProgramFacts *ret) {
        TextBuffer explain = {};
        sqlite3_stmt *stmt;
        bool ok;

        *ret = (ProgramFacts) { .row_by_row = true };
        text_buffer_puts(&explain, "EXPLAIN ");
        text_buffer_add(&explain, sql, sql_size);
        stmt = explain.state == TEXT_GOOD ? prepare(shadow, explain.bytes) : NULL;
        text_buffer_done(&explain);
        ok = stmt && sqlite3_stmt_isexplain(stmt) == 1;
        while (ok && sqlite3_step(stmt) == SQLITE_ROW)
                note(ret, (const char *) sqlite3_column_text(stmt, 1), sqlite3_column_int(stmt, 3));
        return sqlite3_finalize(stmt) == SQLITE_OK && ok;
}

/* The table whose rows are at a page. NULL: it is an index, or a table without rowids. */
static char *table_at(ShadowSchema *shadow, int root) {
        sqlite3_stmt *stmt = prepare(shadow, "SELECT s.name FROM sqlite_schema AS s JOIN pragma_table_list AS l "
                                             "ON l.name = s.name AND l.schema = 'main' "
                                             "WHERE s.type = 'table' AND s.rootpage = ?1 AND l.wr = 0 AND l.type = 'table'");
        char *name = NULL;

        if (stmt && sqlite3_bind_int(stmt, 1, root) == SQLITE_OK && sqlite3_step(stmt) == SQLITE_ROW &&
            sqlite3_column_text(stmt, 0))
                name = strdup((const char *) sqlite3_column_text(stmt, 0));
        (void) sqlite3_finalize(stmt);
        return name;
}

/* A column may have one of the names of the rowid. */
static const char *key_of(ShadowSchema *shadow, const char *table) {
        static const char *const names[] = { "_rowid_", "rowid", "oid" };
        const char *key = NULL;
        sqlite3_stmt *stmt = prepare(shadow, "SELECT count(*) FROM pragma_table_xinfo(?1) WHERE lower(name) = ?2");

        for (size_t i = 0; stmt && i < sizeof names / sizeof *names && !key; i++) {
                (void) sqlite3_bind_text(stmt, 1, table, -1, SQLITE_STATIC);
                (void) sqlite3_bind_text(stmt, 2, names[i], -1, SQLITE_STATIC);
                if (sqlite3_step(stmt) == SQLITE_ROW && sqlite3_column_int(stmt, 0) == 0)
                        key = names[i];
                (void) sqlite3_reset(stmt);
        }
        (void) sqlite3_finalize(stmt);
        return key;
}

/* True if a window takes effect. Parameters may stay unbound: EXPLAIN computes nothing. */
static bool check_window(ShadowSchema *shadow, const StatementText *s, const WindowPlan *plan, int root) {
        const StatementWindow window = { .table = plan->table, .key = plan->key, .bounded = true, .n_rows = 1 };
        ProgramFacts f = {};
        TextBuffer sql = {};
        bool ok;

        statement_text_window_sql(&sql, s, &window);
        ok = sql.state == TEXT_GOOD && read_program(shadow, sql.bytes, sql.size, &f) && f.n_cursors == 1 && f.root == root &&
             f.n_seeks == 1 && f.n_rewinds == 0;
        text_buffer_done(&sql);
        return ok;
}

void window_plan_make(ShadowSchema *shadow, const StatementText *s, WindowPlan *ret) {
        WindowPlan plan = {};
        ProgramFacts f;

        *ret = plan;
        if (!read_program(shadow, s->sql, s->sql_size, &f) || !f.row_by_row || f.n_cursors != 1 || f.n_nexts != 1 ||
            f.n_rewinds + f.n_seeks != 1)
                return;
        plan.table = table_at(shadow, f.root);
        plan.key = plan.table ? key_of(shadow, plan.table) : NULL;
        if (plan.key && check_window(shadow, s, &plan, f.root))
                *ret = plan;
        else
                free(plan.table);
}

void window_plan_done(WindowPlan *plan) {
        free(plan->table);
        *plan = (WindowPlan) {};
}
