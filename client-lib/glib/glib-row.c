/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Rows (glib-row.h). GLib library. */
#include "client-lib/glib/glib-row.h"

#include <string.h>

#include "client-lib/glib/value.h"

/**
 * SqlipcRow:
 *
 * One row of a result.
 *
 * A row of a cursor never changes. A row of a [class@Sqlipc.LiveModel] stays the same object as long as its key is in the
 * result: its values change in place, with a notification of [property@Sqlipc.Row:version], so that an expression that
 * watches this property is evaluated again.
 *
 * There are no conversions except between integer and real: a getter of another type returns 0 or %NULL.
 */
struct _SqlipcRow {
        GObject parent;
        Columns *columns;     /* NULL: not loaded */
        sqlipc_value *values; /* NULL: not loaded */
        guint version;
        RowIdentity identity;
};

enum { PROPERTY_0, PROPERTY_LOADED, PROPERTY_VERSION, N_PROPERTIES };

static GParamSpec *properties[N_PROPERTIES];

G_DEFINE_FINAL_TYPE(SqlipcRow, sqlipc_glib_row, G_TYPE_OBJECT)

/* ---- Columns and values ------------------------------------------------------------------------------------------- */

Columns *columns_new(sqlipc_cursor *cursor) {
        Columns *columns = g_new0(Columns, 1);

        g_atomic_ref_count_init(&columns->n_ref);
        columns->n = sqlipc_column_count(cursor);
        columns->names = g_new0(char *, columns->n + 1);
        columns->decltypes = g_new0(char *, columns->n + 1);
        for (guint i = 0; i < columns->n; i++) {
                const char *name = sqlipc_column_name(cursor, i);

                columns->names[i] = g_utf8_make_valid(name ? name : "", -1);
                columns->decltypes[i] = g_strdup(sqlipc_column_decltype(cursor, i));
        }
        return columns;
}

Columns *columns_new_named(const char *const *names, guint n) {
        Columns *columns = g_new0(Columns, 1);

        g_atomic_ref_count_init(&columns->n_ref);
        columns->n = n;
        columns->names = g_new0(char *, n + 1);
        columns->decltypes = g_new0(char *, n + 1);
        for (guint i = 0; i < n; i++)
                columns->names[i] = g_utf8_make_valid(names[i] ? names[i] : "", -1);
        return columns;
}

Columns *columns_new_prefix(const Columns *columns, guint n) {
        Columns *prefix = columns_new_named((const char *const *) columns->names, n);

        for (guint i = 0; i < n; i++)
                prefix->decltypes[i] = g_strdup(columns->decltypes[i]);
        return prefix;
}

Columns *columns_ref(Columns *columns) {
        g_atomic_ref_count_inc(&columns->n_ref);
        return columns;
}

void columns_unref(Columns *columns) {
        if (!g_atomic_ref_count_dec(&columns->n_ref))
                return;
        for (guint i = 0; i < columns->n; i++)
                g_free(columns->decltypes[i]);
        g_free(columns->decltypes);
        g_strfreev(columns->names);
        g_free(columns);
}

static bool has_bytes(const sqlipc_value *value) { return value->type == SQLIPC_TEXT || value->type == SQLIPC_BLOB; }

sqlipc_value *values_copy(const sqlipc_value *values, gsize n) {
        gsize size = n * sizeof(sqlipc_value);
        sqlipc_value *copy;
        char *bytes;

        for (gsize i = 0; i < n; i++)
                if (has_bytes(&values[i]))
                        size += (gsize) values[i].size + 1;
        copy = g_malloc(MAX(size, 1));
        if (n > 0)
                memcpy(copy, values, n * sizeof(sqlipc_value));
        bytes = (char *) (copy + n);
        for (gsize i = 0; i < n; i++) {
                if (!has_bytes(&values[i]))
                        continue;
                if (values[i].size > 0)
                        memcpy(bytes, values[i].as.blob, values[i].size);
                bytes[values[i].size] = '\0';
                copy[i].as.blob = bytes;
                bytes += (gsize) values[i].size + 1;
        }
        return copy;
}

bool values_equal(const sqlipc_value *a, const sqlipc_value *b, gsize n) {
        for (gsize i = 0; i < n; i++) {
                if (a[i].type != b[i].type || a[i].size != b[i].size)
                        return false;
                if (has_bytes(&a[i]) ? a[i].size > 0 && memcmp(a[i].as.blob, b[i].as.blob, a[i].size) != 0
                                     : a[i].as.integer != b[i].as.integer)
                        return false;
        }
        return true;
}

/* ---- For the other classes ---------------------------------------------------------------------------------------- */

SqlipcRow *row_new(Columns *columns, const sqlipc_value *values) {
        SqlipcRow *row = g_object_new(SQLIPC_TYPE_ROW, NULL);

        if (values) {
                row->columns = columns_ref(columns);
                row->values = values_copy(values, columns->n);
        }
        return row;
}

bool row_set(SqlipcRow *row, Columns *columns, const sqlipc_value *values) {
        bool was_loaded = row->values;

        if (was_loaded && row->columns->n == columns->n && values_equal(row->values, values, columns->n))
                return false;
        g_free(row->values);
        row->values = values_copy(values, columns->n);
        if (row->columns != columns) {
                g_clear_pointer(&row->columns, columns_unref);
                row->columns = columns_ref(columns);
        }
        row->version++;
        g_object_notify_by_pspec(G_OBJECT(row), properties[PROPERTY_VERSION]);
        if (!was_loaded)
                g_object_notify_by_pspec(G_OBJECT(row), properties[PROPERTY_LOADED]);
        return true;
}

const sqlipc_value *row_values(SqlipcRow *row) { return row->values; }

RowIdentity *row_identity(SqlipcRow *row) { return &row->identity; }

/* Never NULL: SQL's NULL if there is no such column. */
static const sqlipc_value *value_at(SqlipcRow *self, guint column) {
        static const sqlipc_value null = { .type = SQLIPC_NULL };

        return self->values && column < self->columns->n ? &self->values[column] : &null;
}

/* ---- What programs call ------------------------------------------------------------------------------------------- */

/**
 * sqlipc_glib_row_get_n_columns:
 * @self: a row
 *
 * Returns: the number of columns; 0 if the row is not loaded
 */
guint sqlipc_glib_row_get_n_columns(SqlipcRow *self) {
        g_return_val_if_fail(SQLIPC_IS_ROW(self), 0);
        return self->columns ? self->columns->n : 0;
}

/**
 * sqlipc_glib_row_get_column_name:
 * @self: a row
 * @column: a column, from 0
 *
 * Returns: (nullable): the name of the column; %NULL if there is no such column
 */
const char *sqlipc_glib_row_get_column_name(SqlipcRow *self, guint column) {
        g_return_val_if_fail(SQLIPC_IS_ROW(self), NULL);
        return self->columns && column < self->columns->n ? self->columns->names[column] : NULL;
}

/**
 * sqlipc_glib_row_find_column:
 * @self: a row
 * @name: the name of a column
 *
 * Finds the first column of this name, in the same case.
 *
 * Returns: the column, from 0; -1 if there is none
 */
int sqlipc_glib_row_find_column(SqlipcRow *self, const char *name) {
        g_return_val_if_fail(SQLIPC_IS_ROW(self) && name, -1);
        for (guint i = 0; self->columns && i < self->columns->n; i++)
                if (g_str_equal(self->columns->names[i], name))
                        return (int) i;
        return -1;
}

/**
 * sqlipc_glib_row_get_value_type:
 * @self: a row
 * @column: a column, from 0
 *
 * Returns: the type of the value
 */
SqlipcValueType sqlipc_glib_row_get_value_type(SqlipcRow *self, guint column) {
        g_return_val_if_fail(SQLIPC_IS_ROW(self), SQLIPC_GLIB_VALUE_TYPE_NULL);
        return (SqlipcValueType) value_at(self, column)->type;
}

/**
 * sqlipc_glib_row_is_null:
 * @self: a row
 * @column: a column, from 0
 *
 * Returns: whether the value is SQL's NULL
 */
gboolean sqlipc_glib_row_is_null(SqlipcRow *self, guint column) {
        g_return_val_if_fail(SQLIPC_IS_ROW(self), TRUE);
        return value_at(self, column)->type == SQLIPC_NULL;
}

/**
 * sqlipc_glib_row_get_int64:
 * @self: a row
 * @column: a column, from 0
 *
 * Returns: the value; 0 if it is not a number
 */
gint64 sqlipc_glib_row_get_int64(SqlipcRow *self, guint column) {
        g_return_val_if_fail(SQLIPC_IS_ROW(self), 0);
        return value_int64(value_at(self, column));
}

/**
 * sqlipc_glib_row_get_double:
 * @self: a row
 * @column: a column, from 0
 *
 * Returns: the value; 0 if it is not a number
 */
double sqlipc_glib_row_get_double(SqlipcRow *self, guint column) {
        g_return_val_if_fail(SQLIPC_IS_ROW(self), 0);
        return value_double(value_at(self, column));
}

/**
 * sqlipc_glib_row_get_text:
 * @self: a row
 * @column: a column, from 0
 *
 * Gets a text. For TEXT that is not valid UTF-8, or that contains a NUL, use [method@Sqlipc.Row.dup_blob].
 *
 * Returns: (nullable): the text, which is valid as long as the row does not change; %NULL if the value is not TEXT, or is no
 *   valid string
 */
const char *sqlipc_glib_row_get_text(SqlipcRow *self, guint column) {
        const sqlipc_value *value;

        g_return_val_if_fail(SQLIPC_IS_ROW(self), NULL);
        value = value_at(self, column);
        return value->type == SQLIPC_TEXT && g_utf8_validate_len(value->as.text, value->size, NULL) ? value->as.text : NULL;
}

/**
 * sqlipc_glib_row_dup_blob:
 * @self: a row
 * @column: a column, from 0
 *
 * Gets the bytes of a BLOB or of TEXT.
 *
 * Returns: (transfer full) (nullable): the bytes; %NULL if the value is neither
 */
GBytes *sqlipc_glib_row_dup_blob(SqlipcRow *self, guint column) {
        const sqlipc_value *value;

        g_return_val_if_fail(SQLIPC_IS_ROW(self), NULL);
        value = value_at(self, column);
        return has_bytes(value) ? g_bytes_new(value->as.blob, value->size) : NULL;
}

/**
 * sqlipc_glib_row_dup_string:
 * @self: a row
 * @column: a column, from 0
 *
 * Gets a text that shows the value to people: numbers in C's notation, invalid UTF-8 replaced, an empty string for NULL, and
 * the size for a BLOB.
 *
 * Returns: (transfer full): the text
 */
char *sqlipc_glib_row_dup_string(SqlipcRow *self, guint column) {
        g_return_val_if_fail(SQLIPC_IS_ROW(self), g_strdup(""));
        return value_dup_string(value_at(self, column));
}

/**
 * sqlipc_glib_row_dup_variant:
 * @self: a row
 * @column: a column, from 0
 *
 * Gets the value as a variant: `x`, `d`, `s` or `ay`; NULL is `mv` with nothing in it. TEXT that is no valid string is a
 * dictionary `a{sv}` with its bytes, `{"text": <ay>}`. Each of these is accepted as a parameter.
 *
 * Returns: (transfer full): the variant
 */
GVariant *sqlipc_glib_row_dup_variant(SqlipcRow *self, guint column) {
        g_return_val_if_fail(SQLIPC_IS_ROW(self), NULL);
        return g_variant_ref_sink(value_variant(value_at(self, column)));
}

/**
 * sqlipc_glib_row_get_value:
 * @self: a row
 * @column: a column, from 0
 * @value: (out caller-allocates): an uninitialised #GValue
 *
 * Gets the value as a #GValue of #gint64, #gdouble, a string or #GBytes. NULL is a string that is %NULL, and TEXT that is no
 * valid string is #GBytes.
 */
void sqlipc_glib_row_get_value(SqlipcRow *self, guint column, GValue *value) {
        g_return_if_fail(SQLIPC_IS_ROW(self) && value);
        value_get(value_at(self, column), value);
}

/**
 * sqlipc_glib_row_to_variant:
 * @self: a row
 *
 * Gets all values by one call, which suits languages in which a call for each value is slow.
 *
 * Returns: (transfer full): an array `av`, see [method@Sqlipc.Row.dup_variant]
 */
GVariant *sqlipc_glib_row_to_variant(SqlipcRow *self) {
        g_return_val_if_fail(SQLIPC_IS_ROW(self), NULL);
        return g_variant_ref_sink(value_variants(self->values, self->values ? self->columns->n : 0));
}

/**
 * sqlipc_glib_row_is_loaded: (get-property loaded)
 * @self: a row
 *
 * Returns: whether the row has its values
 */
gboolean sqlipc_glib_row_is_loaded(SqlipcRow *self) {
        g_return_val_if_fail(SQLIPC_IS_ROW(self), FALSE);
        return self->values != NULL;
}

/**
 * sqlipc_glib_row_get_version: (get-property version)
 * @self: a row
 *
 * Returns: how often the values have changed
 */
guint sqlipc_glib_row_get_version(SqlipcRow *self) {
        g_return_val_if_fail(SQLIPC_IS_ROW(self), 0);
        return self->version;
}

/* ---- The class ---------------------------------------------------------------------------------------------------- */

static void get_property(GObject *object, guint id, GValue *value, GParamSpec *pspec) {
        SqlipcRow *self = SQLIPC_ROW(object);

        switch (id) {
        case PROPERTY_LOADED:
                g_value_set_boolean(value, self->values != NULL);
                return;
        case PROPERTY_VERSION:
                g_value_set_uint(value, self->version);
                return;
        default:
                G_OBJECT_WARN_INVALID_PROPERTY_ID(object, id, pspec);
        }
}

static void finalize(GObject *object) {
        SqlipcRow *self = SQLIPC_ROW(object);

        g_clear_pointer(&self->columns, columns_unref);
        g_free(self->values);
        g_free(self->identity.key);
        G_OBJECT_CLASS(sqlipc_glib_row_parent_class)->finalize(object);
}

static void sqlipc_glib_row_init(SqlipcRow *self) { (void) self; }

static void sqlipc_glib_row_class_init(SqlipcRowClass *class) {
        GObjectClass *object_class = G_OBJECT_CLASS(class);

        object_class->get_property = get_property;
        object_class->finalize = finalize;

        /**
         * SqlipcRow:loaded: (getter is_loaded)
         *
         * Whether the row has its values. A row of a model with windows gets them soon after it was first asked for.
         */
        properties[PROPERTY_LOADED] =
                g_param_spec_boolean("loaded", NULL, NULL, FALSE, G_PARAM_READABLE | G_PARAM_STATIC_STRINGS);
        /**
         * SqlipcRow:version: (getter get_version)
         *
         * How often the values have changed.
         */
        properties[PROPERTY_VERSION] =
                g_param_spec_uint("version", NULL, NULL, 0, G_MAXUINT, 0, G_PARAM_READABLE | G_PARAM_STATIC_STRINGS);
        g_object_class_install_properties(object_class, N_PROPERTIES, properties);
}
