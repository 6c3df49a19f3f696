/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The progress of a migration, see state.h. */
#include "tools/ctl/migrate/state.h"

#include <errno.h>
#include <string.h>

#include "tools/ctl/complain.h"
#include "tools/ctl/migrate/copy-plan.h"

#define CREATE_SQL "CREATE TABLE " STATE_TABLE " (entry text PRIMARY KEY, state text)"

static char *entry_of(const char *kind, const char *name) {
        return g_strdup_printf("%s %s", kind, name);
}

/* ---- Reading ------------------------------------------------------------------------------------------------------ */

typedef struct Names {
        guint n;
        bool has_state;
} Names;

static int take_name(sqlipc_cursor *cursor, void *userdata) {
        Names *names = userdata;

        if (g_strcmp0(sqlipc_column_text(cursor, 0, NULL), STATE_TABLE) == 0)
                names->has_state = true;
        names->n++;
        return 0;
}

static int take_entry(sqlipc_cursor *cursor, void *userdata) {
        g_hash_table_replace(userdata, g_strdup(sqlipc_column_text(cursor, 0, NULL)),
                             g_strdup(sqlipc_column_text(cursor, 1, NULL)));
        return 0;
}

int state_make_table(State *state) {
        int r = state->has_table ? 0 : side_try(state->side, CREATE_SQL);

        if (r < 0)
                return side_fail(state->side, "the target cannot be written", r);
        state->has_table = true;
        return 0;
}

int state_open(State *state, const Side *side, const char *names_sql) {
        Names names = {};
        int r = side_query(side, names_sql, NULL, take_name, &names, NULL);

        *state = (State) {
                .side = side,
                .entries = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free),
                .has_table = names.has_state,
        };
        if (r < 0)
                return r;
        if (names.has_state)
                return side_query(side, "SELECT entry, state FROM " STATE_TABLE, NULL, take_entry, state->entries, NULL);
        if (names.n > 0) {
                complain("The target is not empty: it has tables or views, and no migration has made them.");
                return -ENOTEMPTY;
        }
        r = state_make_table(state); /* to find out if it can be written */
        if (r >= 0)
                r = side_query(side, "DROP TABLE " STATE_TABLE, NULL, NULL, NULL, NULL);
        state->has_table = false;
        return r;
}

void state_close(State *state) {
        g_clear_pointer(&state->entries, g_hash_table_unref);
}

const char *state_get(const State *state, const char *kind, const char *name) {
        g_autofree char *entry = entry_of(kind, name);

        return g_hash_table_lookup(state->entries, entry);
}

/* ---- Writing ------------------------------------------------------------------------------------------------------ */

static char *delete_sql(const char *entry) {
        g_autoptr(GString) sql = g_string_new("DELETE FROM " STATE_TABLE " WHERE entry = ");

        plan_append_literal(sql, entry);
        return g_string_free(g_steal_pointer(&sql), FALSE);
}

static char *insert_sql(const char *entry, const char *text) {
        g_autoptr(GString) sql = g_string_new("INSERT INTO " STATE_TABLE " (entry, state) VALUES (");

        plan_append_literal(sql, entry);
        g_string_append(sql, ", ");
        plan_append_literal(sql, text);
        g_string_append_c(sql, ')');
        return g_string_free(g_steal_pointer(&sql), FALSE);
}

int state_set(State *state, const char *before, const char *sql, const char *kind, const char *name, const char *text) {
        g_autofree char *entry = entry_of(kind, name), *delete = delete_sql(entry), *insert = insert_sql(entry, text);
        const char *statements[3];
        size_t n = 0;
        int r = before ? side_try(state->side, before) : 0;

        if (r < 0)
                return r;
        if (sql)
                statements[n++] = sql;
        statements[n++] = delete;
        statements[n++] = insert;
        r = side_try_together(state->side, statements, n);
        if (r >= 0)
                g_hash_table_replace(state->entries, g_steal_pointer(&entry), g_strdup(text));
        return r;
}

int state_forget(State *state, const char *sql, gboolean (*is_gone)(const char *entry, void *userdata), void *userdata) {
        g_autoptr(GPtrArray) statements = g_ptr_array_new_with_free_func(g_free);
        g_autoptr(GPtrArray) gone = g_ptr_array_new();
        GHashTableIter i;
        gpointer entry;
        int r;

        g_ptr_array_add(statements, g_strdup(sql));
        g_hash_table_iter_init(&i, state->entries);
        while (g_hash_table_iter_next(&i, &entry, NULL))
                if (is_gone(entry, userdata)) {
                        g_ptr_array_add(statements, delete_sql(entry));
                        g_ptr_array_add(gone, entry);
                }
        r = side_try_together(state->side, (const char *const *) statements->pdata, statements->len);
        for (guint n = 0; r >= 0 && n < gone->len; n++)
                g_hash_table_remove(state->entries, gone->pdata[n]);
        return r;
}
