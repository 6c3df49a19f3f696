/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Makes the copy: tables, their rows, and then indexes and other objects. See migration.h. */
#include <errno.h>
#include <inttypes.h>

#include "tools/ctl/complain.h"
#include "tools/ctl/migrate/migration.h"

/* Rows and bytes of one load, which is one transaction: what an interruption loses at most. */
enum { LOAD_ROWS = 50000, LOAD_SIZE = 16 << 20 };

/* ---- Rows --------------------------------------------------------------------------------------------------------- */

typedef struct Copy {
        Migration *m;
        const PlanTable *table;
        sqlipc_load *load;           /* owned; NULL: none is open */
        sqlipc_parameter *row;
        Converted *converted;
        size_t n_rows, size;         /* of this load */
        bool has_failed;             /* the load, not the reading */
} Copy;

static int finish_load(Copy *copy) {
        int r = copy->load ? sqlipc_load_finish(copy->load, NULL) : 0;

        copy->has_failed = r < 0;
        copy->load = sqlipc_load_close(copy->load);
        copy->m->n_copied += r < 0 ? 0 : copy->n_rows;
        copy->n_rows = copy->size = 0;
        return r;
}

static void convert_row(Copy *copy, const sqlipc_value *row) {
        for (guint i = 0; i < copy->table->columns->len; i++) {
                sqlipc_value *value = &copy->converted[i].value;

                value_sent(g_array_index(copy->table->columns, PlanColumn, i).kind, &row[i], &copy->converted[i]);
                copy->row[i] = (sqlipc_parameter) { .struct_size = sizeof copy->row[i], .type = value->type };
                if (value->type == SQLIPC_INTEGER)
                        copy->row[i].integer = value->as.integer;
                else if (value->type == SQLIPC_REAL)
                        copy->row[i].real = value->as.real;
                else if (value->type != SQLIPC_NULL) {
                        copy->row[i].bytes = value->as.blob;
                        copy->row[i].size = value->size;
                }
                copy->size += sizeof *value + value->size;
        }
}

static int copy_row(const sqlipc_value *row, void *userdata) {
        Copy *copy = userdata;
        Side *target = &copy->m->target;
        int r = copy->load ? 0 : sqlipc_load_open(target->connection, target->database, copy->table->insert, &copy->load);

        convert_row(copy, row);
        if (r >= 0)
                r = sqlipc_load_row(copy->load, copy->row, copy->table->columns->len);
        copy->has_failed = r < 0;
        if (r >= 0 && (++copy->n_rows >= LOAD_ROWS || copy->size >= LOAD_SIZE))
                r = finish_load(copy);
        return r < 0 ? r : migration_tick(copy->m);
}

/* Copies rows; those after the largest key of the copy if `continues`. */
static int copy_rows(Copy *copy, bool continues) {
        Migration *m = copy->m;
        const PlanTable *table = copy->table;
        g_autofree char *last = NULL;
        int64_t key = INT64_MIN;
        int r = continues ? side_number(&m->target, table->last_key, INT64_MIN, &key) : 0;

        if (r < 0)
                return r;
        migration_begin_work(m, "Copying ", table->source->name);
        last = key != INT64_MIN ? g_strdup_printf("%" PRId64, key) : NULL;
        r = side_read_rows(&m->source, last ? table->read_after : table->read, last, copy_row, copy);
        if (r >= 0)
                r = finish_load(copy);
        return r < 0 ? migration_fail(m, copy->has_failed ? &m->target : &m->source, r) : 0;
}

static int copy_table(Migration *m, guint n) {
        const PlanTable *table = m->plan->tables->pdata[n];
        const char *name = table->source->name, *state = state_get(&m->state, "table", name);
        bool continues = state && table->key >= 0;
        g_autofree sqlipc_parameter *row = g_new(sqlipc_parameter, table->columns->len);
        g_autofree Converted *converted = g_new(Converted, table->columns->len);
        Copy copy = { .m = m, .table = table, .row = row, .converted = converted };
        int r = 0;

        if (g_strcmp0(state, STATE_COPIED) == 0)
                return 0;
        if (!continues)
                r = state_set(&m->state, table->drop, table->create, "table", name, STATE_COPYING);
        if (r < 0)
                return side_fail(&m->target, table->create, r);
        r = copy_rows(&copy, continues);
        sqlipc_load_close(copy.load);
        if (r < 0)
                return r;
        r = state_set(&m->state, NULL, NULL, "table", name, STATE_COPIED);
        return r < 0 ? side_fail(&m->target, name, r) : 0;
}

/* ---- After the rows ----------------------------------------------------------------------------------------------- */

/* True if the target does not accept the definition, whenever it is asked. */
static bool is_refusal(int r) {
        return r == -EINVAL || r == -EPERM || r == -EROFS || r == -EDQUOT;
}

static int make_object(Migration *m, const PlanObject *object) {
        g_autofree char *digest = g_compute_checksum_for_string(G_CHECKSUM_SHA256, object->sql, -1);
        int r;

        if (g_strcmp0(state_get(&m->state, object->kind, object->name), digest) == 0)
                return 0;
        r = state_set(&m->state, object->before, object->sql, object->kind, object->name, digest);
        if (r >= 0)
                return 0;
        if (object->is_required || migration_is_interrupted() || !is_refusal(r))
                return side_fail(&m->target, object->sql, r);
        g_ptr_array_add(m->refused,
                        g_strdup_printf("%s %s: %s", object->kind, object->name, side_message(&m->target, r)));
        return 0;
}

int migration_make_tables(Migration *m) {
        int r = 0;

        for (guint i = 0; r >= 0 && i < m->plan->tables->len; i++)
                r = copy_table(m, i);
        progress_erase(&m->progress);
        return r;
}

int migration_make_objects(Migration *m) {
        int r = 0;

        g_ptr_array_set_size(m->refused, 0);
        for (guint i = 0; r >= 0 && i < m->plan->objects->len; i++)
                r = make_object(m, m->plan->objects->pdata[i]);
        return r;
}

/* ---- Again -------------------------------------------------------------------------------------------------------- */

typedef struct Dropped {
        const Plan *plan;
        const char *table;
} Dropped;

static bool is_named(const char *entry, const char *kind, const char *name) {
        return g_str_has_prefix(entry, kind) && entry[strlen(kind)] == ' ' && g_str_equal(entry + strlen(kind) + 1, name);
}

/* True for the table, and for the objects that the target drops with it. */
static gboolean goes_with(const char *entry, void *userdata) {
        const Dropped *dropped = userdata;

        if (is_named(entry, "table", dropped->table))
                return true;
        for (guint i = 0; i < dropped->plan->objects->len; i++) {
                const PlanObject *object = dropped->plan->objects->pdata[i];

                if (is_named(entry, object->kind, object->name))
                        return !object->table || g_str_equal(object->table, dropped->table) ||
                               g_strcmp0(object->parent, dropped->table) == 0;
        }
        return false;
}

int migration_drop(Migration *m, guint n) {
        const PlanTable *table = m->plan->tables->pdata[n];
        Dropped dropped = { m->plan, table->source->name };
        int r = state_forget(&m->state, table->drop, goes_with, &dropped);

        return r < 0 ? side_fail(&m->target, table->drop, r) : 0;
}
