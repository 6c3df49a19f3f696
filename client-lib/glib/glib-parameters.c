/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Parameters from GVariant and GValue (glib-parameters.h). GLib library. */
#include <string.h>

#include "client-lib/glib/glib-error.h"
#include "client-lib/glib/glib-parameters.h"

static bool read_integer(GVariant *v, int64_t *ret, GError **error) {
        switch (g_variant_classify(v)) {
        case G_VARIANT_CLASS_BOOLEAN:
                *ret = g_variant_get_boolean(v);
                return true;
        case G_VARIANT_CLASS_BYTE:
                *ret = g_variant_get_byte(v);
                return true;
        case G_VARIANT_CLASS_INT16:
                *ret = g_variant_get_int16(v);
                return true;
        case G_VARIANT_CLASS_UINT16:
                *ret = g_variant_get_uint16(v);
                return true;
        case G_VARIANT_CLASS_INT32:
                *ret = g_variant_get_int32(v);
                return true;
        case G_VARIANT_CLASS_UINT32:
                *ret = g_variant_get_uint32(v);
                return true;
        case G_VARIANT_CLASS_INT64:
                *ret = g_variant_get_int64(v);
                return true;
        case G_VARIANT_CLASS_UINT64:
                if (g_variant_get_uint64(v) > INT64_MAX)
                        break;
                *ret = (int64_t) g_variant_get_uint64(v);
                return true;
        default:
                break;
        }
        error_set_invalid(error, "SQLite has no integer that holds the value of type '%s'.", g_variant_get_type_string(v));
        return false;
}

static bool is_integer(GVariant *v) {
        return strchr("bynqiuxt", *g_variant_get_type_string(v)) && !g_variant_is_container(v);
}

static void set_bytes(sqlipc_parameter *p, sqlipc_type type, const void *bytes, gsize size) {
        p->type = type;
        p->bytes = bytes;
        p->size = size;
}

/* a{sv} as on the bus: {} is NULL, and {"text": <ay>} is TEXT with any bytes. */
static bool read_dictionary(GVariant *v, sqlipc_parameter *p, GPtrArray *kept, GError **error) {
        GVariant *text = g_variant_lookup_value(v, "text", G_VARIANT_TYPE_BYTESTRING);
        gsize size;

        if (text && g_variant_n_children(v) == 1) {
                g_ptr_array_add(kept, text);
                const void *bytes = g_variant_get_fixed_array(text, &size, 1);

                set_bytes(p, SQLIPC_TEXT, bytes ? bytes : "", size);
                return true;
        }
        g_clear_pointer(&text, g_variant_unref);
        if (g_variant_n_children(v) == 0)
                return true;
        error_set_invalid(error, "A dictionary is no value of SQLite.");
        return false;
}

bool parameters_read_one(GVariant *variant, sqlipc_parameter *ret, GPtrArray *kept, GError **error) {
        GVariant *v = g_variant_ref(variant);
        gsize size;

        *ret = (sqlipc_parameter) { .struct_size = sizeof *ret, .type = SQLIPC_NULL };
        g_ptr_array_add(kept, v);
        while (g_variant_is_of_type(v, G_VARIANT_TYPE_VARIANT) || g_variant_is_of_type(v, G_VARIANT_TYPE_MAYBE)) {
                v = g_variant_is_of_type(v, G_VARIANT_TYPE_VARIANT) ? g_variant_get_variant(v) : g_variant_get_maybe(v);
                if (!v)
                        return true; /* nothing: NULL */
                g_ptr_array_add(kept, v);
        }
        if (is_integer(v)) {
                ret->type = SQLIPC_INTEGER;
                return read_integer(v, &ret->integer, error);
        }
        if (g_variant_is_of_type(v, G_VARIANT_TYPE_DOUBLE)) {
                ret->type = SQLIPC_REAL;
                ret->real = g_variant_get_double(v);
        } else if (g_variant_is_of_type(v, G_VARIANT_TYPE_STRING) || g_variant_is_of_type(v, G_VARIANT_TYPE_OBJECT_PATH) ||
                   g_variant_is_of_type(v, G_VARIANT_TYPE_SIGNATURE)) {
                const char *text = g_variant_get_string(v, &size);

                set_bytes(ret, SQLIPC_TEXT, text, size);
        } else if (g_variant_is_of_type(v, G_VARIANT_TYPE_BYTESTRING)) {
                const void *bytes = g_variant_get_fixed_array(v, &size, 1);

                set_bytes(ret, SQLIPC_BLOB, bytes ? bytes : "", size);
        } else if (g_variant_is_of_type(v, G_VARIANT_TYPE_VARDICT)) {
                return read_dictionary(v, ret, kept, error);
        } else if (!g_variant_is_of_type(v, G_VARIANT_TYPE_UNIT)) {
                error_set_invalid(error, "A value of type '%s' is no value of SQLite.", g_variant_get_type_string(v));
                return false;
        }
        return true;
}

bool parameters_init(VariantParameters *ret, GVariant *variant, GError **error) {
        bool named;

        *ret = (VariantParameters) { .values = g_array_new(FALSE, FALSE, sizeof(sqlipc_parameter)),
                              .kept = g_ptr_array_new_with_free_func((GDestroyNotify) g_variant_unref) };
        if (!variant)
                return true;
        named = g_variant_is_of_type(variant, G_VARIANT_TYPE_VARDICT);
        if (!named && !g_variant_is_of_type(variant, G_VARIANT_TYPE_TUPLE) &&
            !g_variant_is_of_type(variant, G_VARIANT_TYPE_ARRAY)) {
                error_set_invalid(error, "Parameters must be a tuple, an array or a dictionary a{sv}, not '%s'.",
                                  g_variant_get_type_string(variant));
                return false;
        }
        for (gsize i = 0; i < g_variant_n_children(variant); i++) {
                GVariant *child = g_variant_get_child_value(variant, i), *value = child;
                sqlipc_parameter parameter;

                g_ptr_array_add(ret->kept, child);
                if (named) {
                        value = g_variant_get_child_value(child, 1);
                        g_ptr_array_add(ret->kept, value);
                }
                if (!parameters_read_one(value, &parameter, ret->kept, error))
                        return false;
                if (named) {
                        GVariant *name = g_variant_get_child_value(child, 0);

                        g_ptr_array_add(ret->kept, name);
                        parameter.name = g_variant_get_string(name, NULL);
                }
                g_array_append_val(ret->values, parameter);
        }
        return true;
}

void parameters_done(VariantParameters *p) {
        g_clear_pointer(&p->values, g_array_unref);
        g_clear_pointer(&p->kept, g_ptr_array_unref);
}

static GVariant *from_bytes(GBytes *bytes) {
        return bytes ? g_variant_new_from_bytes(G_VARIANT_TYPE_BYTESTRING, bytes, TRUE)
                     : g_variant_new_maybe(G_VARIANT_TYPE_VARIANT, NULL);
}

GVariant *parameters_from_value(const GValue *value, GError **error) {
        GValue wide = G_VALUE_INIT;

        if (G_VALUE_HOLDS_STRING(value))
                return g_value_get_string(value) ? g_variant_new_string(g_value_get_string(value))
                                                 : g_variant_new_maybe(G_VARIANT_TYPE_VARIANT, NULL);
        if (G_VALUE_HOLDS(value, G_TYPE_BYTES))
                return from_bytes(g_value_get_boxed(value));
        if (G_VALUE_HOLDS_VARIANT(value) && g_value_get_variant(value))
                return g_variant_new_variant(g_value_get_variant(value));
        if (G_VALUE_HOLDS_FLOAT(value))
                return g_variant_new_double((double) g_value_get_float(value));
        if (G_VALUE_HOLDS_DOUBLE(value))
                return g_variant_new_double(g_value_get_double(value));
        if (G_VALUE_HOLDS_UINT64(value))
                return g_variant_new_uint64(g_value_get_uint64(value));
        g_value_init(&wide, G_TYPE_INT64);
        if (g_value_transform(value, &wide))
                return g_variant_new_int64(g_value_get_int64(&wide));
        error_set_invalid(error, "A value of type %s is no value of SQLite.", G_VALUE_TYPE_NAME(value));
        return NULL;
}
