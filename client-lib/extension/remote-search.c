/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: library. See remote-search.h.
 */
#include "client-lib/extension/remote-search.h"

#include <errno.h>
#include <sqlite3ext.h>
#include <stdlib.h>
#include <string.h>

SQLITE_EXTENSION_INIT3

#define N_KEPT_MAX 8                         /* searches of a table that no cursor uses */
#define WAIT_USEC UINT64_C(100000)           /* between two looks at sqlite3_interrupt() */
#define CALL_TIMEOUT_USEC UINT64_C(25000000) /* for a service that is being started */

/* ---- prepared searches ---- */

static RemoteSearch *search_free(RemoteSearch *s) {
        if (!s)
                return NULL;
        sqlipc_cursor_close(s->run);
        sqlipc_finalize(s->statement);
        sqlite3_free(s->text);
        free(s);
        return NULL;
}

void searched_table_done(SearchedTable *t) {
        while (t->kept) {
                RemoteSearch *s = t->kept;

                t->kept = s->next;
                (void) search_free(s);
        }
        remote_table_done(&t->remote);
}

static int search_new(SearchedTable *t, const char *text, const RemotePlan *plan, const char *uses, RemoteSearch **ret) {
        RemoteSearch *s = calloc(1, sizeof *s + (size_t) t->remote.n_columns * sizeof s->at[0]);
        char *sql = remote_plan_sql(&t->remote, plan, uses);
        int r = -ENOMEM, n = t->remote.rowid ? 1 : 0;

        if (s && sql && (s->text = sqlite3_mprintf("%s", text)))
                r = sqlipc_prepare(t->remote.connection, t->remote.database, sql, &s->statement);
        sqlite3_free(sql);
        if (r < 0) {
                (void) search_free(s);
                return r;
        }
        s->plan = *plan;
        strcpy(s->uses, uses);
        for (int i = 0; i < t->remote.n_columns; i++)
                s->at[i] = remote_plan_reads(plan, i) ? n++ : -1;
        s->n_columns = n > 0 ? (unsigned) n : 1; /* NULL, if no column is read */
        *ret = s;
        return 0;
}

int remote_search_take(SearchedTable *t, const char *text, const RemotePlan *plan, const char *uses, RemoteSearch **ret) {
        for (RemoteSearch **link = &t->kept; *link; link = &(*link)->next) {
                RemoteSearch *s = *link;

                if (strcmp(s->text, text) != 0 || strcmp(s->uses, uses) != 0)
                        continue;
                *link = s->next;
                s->next = NULL;
                *ret = s;
                return 0;
        }
        return search_new(t, text, plan, uses, ret);
}

static void end_run(RemoteSearch *s) {
        s->run = sqlipc_cursor_close(s->run);
        s->values = NULL;
        s->n_rows = s->row = 0;
}

/* The search that was unused for the longest time is freed if there are too many. */
void remote_search_keep(SearchedTable *t, RemoteSearch *s) {
        RemoteSearch **link = &t->kept;

        if (!s)
                return;
        end_run(s);
        s->next = t->kept;
        t->kept = s;
        for (unsigned n = 0; *link && n < N_KEPT_MAX; n++)
                link = &(*link)->next;
        *link = search_free(*link);
}

/* ---- runs ---- */

static int bind_value(sqlipc_statement *statement, unsigned index, sqlite3_value *value) {
        const void *bytes;

        switch (sqlite3_value_type(value)) {
        case SQLITE_INTEGER:
                return sqlipc_bind_int64(statement, index, sqlite3_value_int64(value));
        case SQLITE_FLOAT:
                return sqlipc_bind_double(statement, index, sqlite3_value_double(value));
        case SQLITE_TEXT:
                bytes = sqlite3_value_text(value);
                return bytes ? sqlipc_bind_text(statement, index, bytes, (size_t) sqlite3_value_bytes(value)) : -ENOMEM;
        case SQLITE_BLOB:
                bytes = sqlite3_value_blob(value);
                return sqlipc_bind_blob(statement, index, bytes, (size_t) sqlite3_value_bytes(value));
        default:
                return sqlipc_bind_null(statement, index);
        }
}

/* Binds the values of IN. Parameters that are left repeat the first value. */
static int bind_list(sqlipc_statement *statement, unsigned *index, sqlite3_value *list, int n) {
        sqlite3_value *value;
        int r = 0, rc, i = 0;

        for (rc = sqlite3_vtab_in_first(list, &value); r >= 0 && rc == SQLITE_OK && value;
             rc = sqlite3_vtab_in_next(list, &value))
                if (sqlite3_value_type(value) != SQLITE_NULL && i < n) {
                        r = bind_value(statement, (*index)++, value);
                        i++;
                }
        while (r >= 0 && i < n) {
                if (sqlite3_vtab_in_first(list, &value) != SQLITE_OK)
                        return -EIO;
                while (sqlite3_value_type(value) == SQLITE_NULL && sqlite3_vtab_in_next(list, &value) == SQLITE_OK) {
                }
                for (; r >= 0 && i < n; i++)
                        r = bind_value(statement, (*index)++, value);
        }
        return r;
}

/* LIMIT with OFFSET needs as many rows as both say: SQLite itself skips the first ones. */
static int64_t n_rows_wanted(const RemotePlan *plan, int i, sqlite3_value **values) {
        int64_t n = sqlite3_value_int64(values[i]), offset;

        for (int k = 0; k < plan->n_constraints; k++) {
                if (plan->constraints[k].op != REMOTE_PLAN_OFFSET)
                        continue;
                offset = sqlite3_value_int64(values[k]);
                if (offset > 0 && __builtin_add_overflow(n, offset, &n))
                        return INT64_MAX;
        }
        return n;
}

static int bind_values(RemoteSearch *s, sqlite3_value **values) {
        unsigned index = 1;
        int r = 0;

        for (int i = 0; r >= 0 && i < s->plan.n_constraints; i++) {
                if (s->uses[i] == REMOTE_USE_LEFT || s->plan.constraints[i].op == REMOTE_PLAN_IS_NULL)
                        continue;
                if (s->plan.constraints[i].op == REMOTE_PLAN_LIMIT)
                        r = sqlipc_bind_int64(s->statement, index++, n_rows_wanted(&s->plan, i, values));
                else if (s->plan.constraints[i].op != REMOTE_PLAN_IN)
                        r = bind_value(s->statement, index++, values[i]);
                else
                        r = bind_list(s->statement, &index, values[i], 1 << (s->uses[i] - REMOTE_USE_IN));
        }
        return r;
}

int remote_search_run(const SearchedTable *t, RemoteSearch *s, sqlite3_value **values) {
        int r;

        end_run(s);
        r = bind_values(s, values);
        return r < 0 ? r : sqlipc_execute(s->statement, &s->run);
}

/* True after sqlite3_interrupt(). SQLite 3.40 tells it only by ending what is running. */
static bool is_interrupted(sqlite3 *db) { return sqlite3_exec(db, "SELECT 1", NULL, NULL, NULL) == SQLITE_INTERRUPT; }

/* A column of another type compares in another way than the one that SQLite knows. */
static int check_columns(const SearchedTable *t, const RemoteSearch *s) {
        if (sqlipc_column_count(s->run) != s->n_columns)
                return -EBADMSG;
        for (int i = 0; i < t->remote.n_columns; i++) {
                const char *type = s->at[i] < 0 ? NULL : sqlipc_column_decltype(s->run, (unsigned) s->at[i]);

                if (s->at[i] >= 0 && strcmp(type ? type : "", t->remote.columns[i].type) != 0)
                        return -ESTALE;
        }
        return 0;
}

static int next_block(const SearchedTable *t, RemoteSearch *s) {
        bool first = !s->values;
        int r;

        (void) sqlipc_set_timeout(t->remote.connection, WAIT_USEC);
        for (;;) {
                r = sqlipc_cursor_next_block(s->run, 0, &s->values, &s->n_rows);
                if (r != -ETIMEDOUT || sqlipc_cursor_error_code(s->run) != SQLIPC_ERROR_NONE)
                        break;
                if (is_interrupted(t->db)) {
                        r = -EINTR;
                        break;
                }
        }
        (void) sqlipc_set_timeout(t->remote.connection, CALL_TIMEOUT_USEC);
        s->row = 0;
        if (r <= 0)
                return r;
        r = first ? check_columns(t, s) : 0;
        return r < 0 ? r : 1;
}

int remote_search_next(const SearchedTable *t, RemoteSearch *s) {
        if (s->values && s->row + 1 < s->n_rows) {
                s->row++;
                return 1;
        }
        return next_block(t, s);
}
