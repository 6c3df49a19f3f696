/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Blocks of rows (glib-row.h). GLib library. */
#include "client-lib/glib/glib-row.h"
#include "client-lib/glib/value.h"

/**
 * SqlipcRows:
 *
 * Some rows of a result, whose values can be had by the column: one call instead of one for each value.
 */
struct _SqlipcRows {
        GObject parent;
        Columns *columns;
        sqlipc_value *values; /* one row after the other */
        gsize n_rows;
};

G_DEFINE_FINAL_TYPE(SqlipcRows, sqlipc_glib_rows, G_TYPE_OBJECT)

SqlipcRows *rows_new(Columns *columns, const sqlipc_value *values, gsize n_rows) {
        SqlipcRows *rows = g_object_new(SQLIPC_TYPE_ROWS, NULL);

        rows->columns = columns_ref(columns);
        rows->values = values_copy(values, n_rows * columns->n);
        rows->n_rows = n_rows;
        return rows;
}

const sqlipc_value *rows_values(SqlipcRows *rows, gsize row) { return &rows->values[row * rows->columns->n]; }

/* NULL if there is no such value. */
static const sqlipc_value *value_at(SqlipcRows *self, gsize row, guint column) {
        return row < self->n_rows && column < self->columns->n ? &self->values[row * self->columns->n + column] : NULL;
}

/**
 * sqlipc_glib_rows_get_n_rows:
 * @self: a block of rows
 *
 * Returns: the number of rows
 */
guint sqlipc_glib_rows_get_n_rows(SqlipcRows *self) {
        g_return_val_if_fail(SQLIPC_IS_ROWS(self), 0);
        return (guint) self->n_rows;
}

/**
 * sqlipc_glib_rows_get_n_columns:
 * @self: a block of rows
 *
 * Returns: the number of columns
 */
guint sqlipc_glib_rows_get_n_columns(SqlipcRows *self) {
        g_return_val_if_fail(SQLIPC_IS_ROWS(self), 0);
        return self->columns->n;
}

/**
 * sqlipc_glib_rows_get_row:
 * @self: a block of rows
 * @row: a row, from 0
 *
 * Copies one row.
 *
 * Returns: (transfer full) (nullable): the row; %NULL if there is no such row
 */
SqlipcRow *sqlipc_glib_rows_get_row(SqlipcRows *self, guint row) {
        g_return_val_if_fail(SQLIPC_IS_ROWS(self), NULL);
        return row < self->n_rows ? row_new(self->columns, &self->values[(gsize) row * self->columns->n]) : NULL;
}

/**
 * sqlipc_glib_rows_dup_int64s:
 * @self: a block of rows
 * @column: a column, from 0
 * @n_values: (out): return location for the number of values
 *
 * Gets the values of one column as integers; 0 for a value that is not a number.
 *
 * Returns: (array length=n_values) (transfer full) (nullable): the values; %NULL if there is no such column
 */
gint64 *sqlipc_glib_rows_dup_int64s(SqlipcRows *self, guint column, gsize *n_values) {
        gint64 *values;

        g_return_val_if_fail(SQLIPC_IS_ROWS(self) && n_values, NULL);
        *n_values = column < self->columns->n ? self->n_rows : 0;
        values = *n_values > 0 ? g_new(gint64, *n_values) : NULL;
        for (gsize i = 0; i < *n_values; i++)
                values[i] = value_int64(value_at(self, i, column));
        return values;
}

/**
 * sqlipc_glib_rows_dup_doubles:
 * @self: a block of rows
 * @column: a column, from 0
 * @n_values: (out): return location for the number of values
 *
 * Gets the values of one column as doubles; 0 for a value that is not a number.
 *
 * Returns: (array length=n_values) (transfer full) (nullable): the values; %NULL if there is no such column
 */
double *sqlipc_glib_rows_dup_doubles(SqlipcRows *self, guint column, gsize *n_values) {
        double *values;

        g_return_val_if_fail(SQLIPC_IS_ROWS(self) && n_values, NULL);
        *n_values = column < self->columns->n ? self->n_rows : 0;
        values = *n_values > 0 ? g_new(double, *n_values) : NULL;
        for (gsize i = 0; i < *n_values; i++)
                values[i] = value_double(value_at(self, i, column));
        return values;
}

/**
 * sqlipc_glib_rows_dup_strings:
 * @self: a block of rows
 * @column: a column, from 0
 *
 * Gets the values of one column as text, see [method@Sqlipc.Row.dup_string].
 *
 * Returns: (array zero-terminated=1) (transfer full): the values; empty if there is no such column
 */
char **sqlipc_glib_rows_dup_strings(SqlipcRows *self, guint column) {
        char **strings;

        g_return_val_if_fail(SQLIPC_IS_ROWS(self), NULL);
        strings = g_new0(char *, self->n_rows + 1);
        for (gsize i = 0; value_at(self, i, column); i++)
                strings[i] = value_dup_string(value_at(self, i, column));
        return strings;
}

/**
 * sqlipc_glib_rows_dup_nulls:
 * @self: a block of rows
 * @column: a column, from 0
 * @n_values: (out): return location for the number of values
 *
 * Tells which values of one column are NULL.
 *
 * Returns: (array length=n_values) (transfer full) (nullable): %TRUE for each NULL; %NULL if there is no such column
 */
gboolean *sqlipc_glib_rows_dup_nulls(SqlipcRows *self, guint column, gsize *n_values) {
        gboolean *nulls;

        g_return_val_if_fail(SQLIPC_IS_ROWS(self) && n_values, NULL);
        *n_values = column < self->columns->n ? self->n_rows : 0;
        nulls = *n_values > 0 ? g_new(gboolean, *n_values) : NULL;
        for (gsize i = 0; i < *n_values; i++)
                nulls[i] = value_at(self, i, column)->type == SQLIPC_NULL;
        return nulls;
}

/**
 * sqlipc_glib_rows_to_variant:
 * @self: a block of rows
 *
 * Gets all values of all rows by one call.
 *
 * Returns: (transfer full): an array `aav` of rows, see [method@Sqlipc.Row.dup_variant]
 */
GVariant *sqlipc_glib_rows_to_variant(SqlipcRows *self) {
        GVariantBuilder builder;

        g_return_val_if_fail(SQLIPC_IS_ROWS(self), NULL);
        g_variant_builder_init(&builder, G_VARIANT_TYPE("aav"));
        for (gsize i = 0; i < self->n_rows; i++)
                g_variant_builder_add_value(&builder, value_variants(&self->values[i * self->columns->n], self->columns->n));
        return g_variant_ref_sink(g_variant_builder_end(&builder));
}

static void finalize(GObject *object) {
        SqlipcRows *self = SQLIPC_ROWS(object);

        g_clear_pointer(&self->columns, columns_unref);
        g_free(self->values);
        G_OBJECT_CLASS(sqlipc_glib_rows_parent_class)->finalize(object);
}

static void sqlipc_glib_rows_init(SqlipcRows *self) { (void) self; }

static void sqlipc_glib_rows_class_init(SqlipcRowsClass *class) { G_OBJECT_CLASS(class)->finalize = finalize; }
