/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Values (value.h). GLib library. Pure. */
#include "client-lib/glib/value.h"

#include <string.h>

gint64 value_int64(const sqlipc_value *value) {
        if (value->type == SQLIPC_INTEGER)
                return value->as.integer;
        if (value->type != SQLIPC_REAL || value->as.real != value->as.real)
                return 0;
        /* As in libsqlipc: the nearest integer that exists. */
        if (value->as.real >= 9223372036854775808.0)
                return G_MAXINT64;
        if (value->as.real <= -9223372036854775808.0)
                return G_MININT64;
        return (gint64) value->as.real;
}

double value_double(const sqlipc_value *value) {
        if (value->type == SQLIPC_INTEGER)
                return (double) value->as.integer;
        return value->type == SQLIPC_REAL ? value->as.real : 0;
}

char *value_dup_string(const sqlipc_value *value) {
        char buffer[G_ASCII_DTOSTR_BUF_SIZE];

        switch (value->type) {
        case SQLIPC_INTEGER:
                return g_strdup_printf("%" G_GINT64_FORMAT, value->as.integer);
        case SQLIPC_REAL:
                return g_strdup(g_ascii_formatd(buffer, sizeof buffer, "%.15g", value->as.real));
        case SQLIPC_TEXT:
                return g_utf8_make_valid(value->as.text, (gssize) value->size);
        case SQLIPC_BLOB:
                return g_strdup_printf("%" G_GUINT32_FORMAT " bytes", value->size);
        case SQLIPC_NULL:
                break;
        }
        return g_strdup("");
}

static gboolean is_string(const sqlipc_value *value) { return g_utf8_validate_len(value->as.text, value->size, NULL); }

/* Copies the bytes, so that the variant may outlive the row. */
static GVariant *bytes_variant(const sqlipc_value *value) {
        return g_variant_new_fixed_array(G_VARIANT_TYPE_BYTE, value->as.blob, value->size, 1);
}

static GVariant *text_variant(const sqlipc_value *value) {
        GVariantDict dictionary;

        if (is_string(value))
                return g_variant_new_string(value->as.text);
        g_variant_dict_init(&dictionary, NULL);
        g_variant_dict_insert_value(&dictionary, "text", bytes_variant(value));
        return g_variant_dict_end(&dictionary);
}

GVariant *value_variant(const sqlipc_value *value) {
        switch (value->type) {
        case SQLIPC_INTEGER:
                return g_variant_new_int64(value->as.integer);
        case SQLIPC_REAL:
                return g_variant_new_double(value->as.real);
        case SQLIPC_TEXT:
                return text_variant(value);
        case SQLIPC_BLOB:
                return bytes_variant(value);
        case SQLIPC_NULL:
                break;
        }
        return g_variant_new_maybe(G_VARIANT_TYPE_VARIANT, NULL);
}

GVariant *value_variants(const sqlipc_value *values, gsize n) {
        GVariantBuilder builder;

        g_variant_builder_init(&builder, G_VARIANT_TYPE("av"));
        for (gsize i = 0; i < n; i++)
                g_variant_builder_add_value(&builder, g_variant_new_variant(value_variant(&values[i])));
        return g_variant_builder_end(&builder);
}

static void get_bytes(const sqlipc_value *value, GValue *ret) {
        g_value_init(ret, G_TYPE_BYTES);
        g_value_take_boxed(ret, g_bytes_new(value->as.blob, value->size));
}

void value_get(const sqlipc_value *value, GValue *ret) {
        switch (value->type) {
        case SQLIPC_INTEGER:
                g_value_init(ret, G_TYPE_INT64);
                g_value_set_int64(ret, value->as.integer);
                return;
        case SQLIPC_REAL:
                g_value_init(ret, G_TYPE_DOUBLE);
                g_value_set_double(ret, value->as.real);
                return;
        case SQLIPC_BLOB:
                get_bytes(value, ret);
                return;
        case SQLIPC_TEXT:
                if (!is_string(value)) {
                        get_bytes(value, ret);
                        return;
                }
                g_value_init(ret, G_TYPE_STRING);
                g_value_set_string(ret, value->as.text);
                return;
        case SQLIPC_NULL:
                break;
        }
        g_value_init(ret, G_TYPE_STRING);
}
