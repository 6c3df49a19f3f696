/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Runs the query in process. See query.h. */
#include <stdio.h>
#include <string.h>

#include "tests/reliability/differential/query.h"

#define OPCODES_MAX 20000000
#define SIZE_MAX_OF_RESULT ((guint) 128 * 1024 * 1024)

void query_done(Query *q) {
        for (size_t i = 0; i < q->n_parameters; i++) {
                g_free((char *) q->parameters[i].name);
                g_free((void *) q->parameters[i].bytes);
        }
        g_free(q->parameters);
        g_free(q->sql);
        *q = (Query) { .sql = NULL };
}

/* The limits that decide about results; docs/man/sqlipcd.conf.5.rst has the limits. */
static void set_up(sqlite3 *db) {
        (void) sqlite3_extended_result_codes(db, 1);
        (void) sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
        (void) sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 1, NULL);
        (void) sqlite3_limit(db, SQLITE_LIMIT_ATTACHED, 0);
        (void) sqlite3_limit(db, SQLITE_LIMIT_VDBE_OP, 1000000);
        (void) sqlite3_create_module_v2(db, "sqlite_stmt", NULL, NULL, NULL);
}

sqlite3 *reference_open(const char *path) {
        sqlite3 *db = NULL;

        if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK) {
                fprintf(stderr, "differential: %s: %s\n", path, sqlite3_errmsg(db));
                (void) sqlite3_close(db);
                return NULL;
        }
        set_up(db);
        /* what needs no table would not read the schema, and so not know of a database of UTF-16 */
        (void) sqlite3_exec(db, "SELECT 1 FROM sqlite_schema LIMIT 1", NULL, NULL, NULL);
        return db;
}

/* The index of a name that may lack its prefix. */
static int index_of(sqlite3_stmt *statement, const char *name) {
        int index = sqlite3_bind_parameter_index(statement, name);

        for (const char *prefix = ":@$"; index == 0 && *prefix; prefix++) {
                g_autofree char *prefixed = g_strdup_printf("%c%s", *prefix, name);

                index = sqlite3_bind_parameter_index(statement, prefixed);
        }
        return index;
}

static void bind(sqlite3_stmt *statement, int index, const sqlipc_parameter *p) {
        switch (p->type) {
        case SQLIPC_INTEGER:
                (void) sqlite3_bind_int64(statement, index, p->integer);
                break;
        case SQLIPC_REAL:
                (void) sqlite3_bind_double(statement, index, p->real);
                break;
        case SQLIPC_TEXT:
                (void) sqlite3_bind_text(statement, index, p->bytes, (int) p->size, SQLITE_STATIC);
                break;
        case SQLIPC_BLOB:
                (void) sqlite3_bind_blob(statement, index, p->bytes, (int) p->size, SQLITE_STATIC);
                break;
        case SQLIPC_NULL:
                (void) sqlite3_bind_null(statement, index);
                break;
        }
}

static void bind_all(sqlite3_stmt *statement, const Query *q) {
        int position = 0;

        for (size_t i = 0; i < q->n_parameters; i++) {
                const sqlipc_parameter *p = &q->parameters[i];

                bind(statement, p->name ? index_of(statement, p->name) : ++position, p);
        }
}

static void take_columns(sqlite3_stmt *statement, Result *result) {
        result->n_columns = (unsigned) sqlite3_column_count(statement);
        for (int i = 0; i < (int) result->n_columns; i++) {
                result_add_name(result, sqlite3_column_name(statement, i));
                result_add_name(result, sqlite3_column_decltype(statement, i));
        }
}

static void take_row(sqlite3_stmt *statement, Result *result) {
        result_begin_row(result);
        for (int i = 0; i < (int) result->n_columns; i++) {
                int type = sqlite3_column_type(statement, i);

                if (type == SQLITE_INTEGER)
                        result_add_int64(result, sqlite3_column_int64(statement, i));
                else if (type == SQLITE_FLOAT)
                        result_add_double(result, sqlite3_column_double(statement, i));
                else {
                        const void *bytes = type == SQLITE_TEXT ? (const void *) sqlite3_column_text(statement, i)
                                                                : sqlite3_column_blob(statement, i);

                        result_add_value(result, type, bytes, (size_t) sqlite3_column_bytes(statement, i));
                }
        }
}

/* Called once, after OPCODES_MAX. */
static int give_up(void *userdata) {
        *(bool *) userdata = true;
        return 1;
}

bool reference_run(sqlite3 *db, const Query *q, Result *result) {
        sqlite3_stmt *statement = NULL;
        bool too_much = false;
        int rc;

        result_init(result);
        sqlite3_progress_handler(db, OPCODES_MAX, give_up, &too_much);
        rc = sqlite3_prepare_v2(db, q->sql, -1, &statement, NULL);
        if (rc == SQLITE_OK) {
                bind_all(statement, q);
                while ((rc = sqlite3_step(statement)) == SQLITE_ROW && !too_much) {
                        if (!result->has_columns)
                                take_columns(statement, result);
                        take_row(statement, result);
                        too_much = result->values->len > SIZE_MAX_OF_RESULT;
                }
        }
        if (rc != SQLITE_DONE)
                result_fail(result, sqlite3_extended_errcode(db));
        else if (!result->has_columns)
                take_columns(statement, result);
        (void) sqlite3_finalize(statement);
        return !too_much;
}
