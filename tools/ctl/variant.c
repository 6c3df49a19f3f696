/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Documents, see variant.h. */
#include "tools/ctl/variant.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "tools/terminal/format.h"
#include "tools/terminal/json.h"

/* ---- From the bus ------------------------------------------------------------------------------------------------- */

static int read_value(sd_bus_message *m, GVariant **ret);

static int read_basic(sd_bus_message *m, char type, GVariant **ret) {
        union {
                uint8_t y;
                int b;
                int16_t n;
                uint16_t q;
                int32_t i;
                uint32_t u;
                int64_t x;
                uint64_t t;
                double d;
                const char *s;
        } v = {};
        int r = type == 'h' ? -EBADMSG : sd_bus_message_read_basic(m, type, &v);

        if (r < 0)
                return r;
        switch (type) {
        case 'y': *ret = g_variant_new_byte(v.y); break;
        case 'b': *ret = g_variant_new_boolean(v.b); break;
        case 'n': *ret = g_variant_new_int16(v.n); break;
        case 'q': *ret = g_variant_new_uint16(v.q); break;
        case 'i': *ret = g_variant_new_int32(v.i); break;
        case 'u': *ret = g_variant_new_uint32(v.u); break;
        case 'x': *ret = g_variant_new_int64(v.x); break;
        case 't': *ret = g_variant_new_uint64(v.t); break;
        case 'd': *ret = g_variant_new_double(v.d); break;
        case 's': *ret = g_variant_new_string(v.s); break;
        case 'o': *ret = g_variant_new_object_path(v.s); break;
        case 'g': *ret = g_variant_new_signature(v.s); break;
        default: return -EBADMSG;
        }
        return 1;
}

/* Reads everything up to the end of the container in which `m` is positioned, or of the body, as one value of `type`. */
static int read_container(sd_bus_message *m, const char *type, GVariant **ret) {
        g_auto(GVariantBuilder) builder = {};
        GVariant *value;
        int r;

        g_variant_builder_init(&builder, G_VARIANT_TYPE(type));
        while ((r = read_value(m, &value)) > 0)
                g_variant_builder_add_value(&builder, value);
        if (r < 0)
                return r;
        *ret = g_variant_builder_end(&builder);
        return 1;
}

/* Returns 0 if there is no further value. `*ret` is floating. */
static int read_value(sd_bus_message *m, GVariant **ret) {
        const char *contents;
        char type;
        int r = sd_bus_message_peek_type(m, &type, &contents);

        if (r <= 0)
                return r;
        if (!strchr("arev", type))
                return read_basic(m, type, ret);

        g_autofree char *whole = type == 'a'   ? g_strconcat("a", contents, NULL)
                                 : type == 'r' ? g_strconcat("(", contents, ")", NULL)
                                               : g_strconcat("{", contents, "}", NULL);
        r = sd_bus_message_enter_container(m, type, contents);
        if (r < 0)
                return r;
        r = type == 'v' ? read_value(m, ret) : read_container(m, whole, ret);
        if (r > 0 && type == 'v')
                *ret = g_variant_new_variant(*ret);
        if (r <= 0)
                return r < 0 ? r : -EBADMSG;
        r = sd_bus_message_exit_container(m);
        return r < 0 ? r : 1;
}

int variant_from_message(sd_bus_message *m, GVariant **ret) {
        GVariant *body;
        int r = read_container(m, "r", &body);

        if (r < 0)
                return r;
        *ret = g_variant_ref_sink(body);
        return 0;
}

enum { JSON_INDENT = 2 };

/* ---- As JSON ------------------------------------------------------------------------------------------------------ */

static void append_double(GString *output, double value) {
        char number[FORMAT_NUMBER_SIZE];

        if (isfinite(value))
                g_string_append_len(output, number, (gssize) format_double(number, value, FORMAT_DIGITS_EXACT));
        else
                g_string_append(output, "null");
}

static void begin_line(GString *output, int depth) {
        if (depth != JSON_IN_A_LINE)
                g_string_append_printf(output, "\n%*s", depth * JSON_INDENT, "");
}

static void append_container(GString *output, GVariant *value, int depth) {
        bool object = g_variant_is_of_type(value, G_VARIANT_TYPE_DICTIONARY);
        gsize n = g_variant_n_children(value);
        int inside = depth == JSON_IN_A_LINE ? depth : depth + 1;

        g_string_append_c(output, object ? '{' : '[');
        for (gsize i = 0; i < n; i++) {
                g_autoptr(GVariant) child = g_variant_get_child_value(value, i);

                if (i > 0)
                        g_string_append_c(output, ',');
                begin_line(output, inside);
                json_append_variant(output, child, inside);
        }
        if (n > 0)
                begin_line(output, depth);
        g_string_append_c(output, object ? '}' : ']');
}

static void append_entry(GString *output, GVariant *value, int depth) {
        g_autoptr(GVariant) key = g_variant_get_child_value(value, 0), content = g_variant_get_child_value(value, 1);

        json_append_variant(output, key, depth);
        g_string_append(output, depth == JSON_IN_A_LINE ? ":" : ": ");
        json_append_variant(output, content, depth);
}

void json_append_variant(GString *output, GVariant *value, int depth) {
        g_autoptr(GVariant) inner = NULL;
        gsize size;

        switch (g_variant_classify(value)) {
        case G_VARIANT_CLASS_BOOLEAN:
                g_string_append(output, g_variant_get_boolean(value) ? "true" : "false");
                return;
        case G_VARIANT_CLASS_DOUBLE:
                append_double(output, g_variant_get_double(value));
                return;
        case G_VARIANT_CLASS_STRING:
        case G_VARIANT_CLASS_OBJECT_PATH:
        case G_VARIANT_CLASS_SIGNATURE: {
                const char *text = g_variant_get_string(value, &size);

                json_append_string(output, text, size);
                return;
        }
        case G_VARIANT_CLASS_VARIANT:
        case G_VARIANT_CLASS_MAYBE:
                inner = g_variant_classify(value) == G_VARIANT_CLASS_VARIANT ? g_variant_get_variant(value)
                                                                             : g_variant_get_maybe(value);
                if (inner)
                        json_append_variant(output, inner, depth);
                else
                        g_string_append(output, "null");
                return;
        case G_VARIANT_CLASS_ARRAY:
        case G_VARIANT_CLASS_TUPLE:
                append_container(output, value, depth);
                return;
        case G_VARIANT_CLASS_DICT_ENTRY:
                append_entry(output, value, depth);
                return;
        case G_VARIANT_CLASS_BYTE:
                g_string_append_printf(output, "%u", g_variant_get_byte(value));
                return;
        case G_VARIANT_CLASS_INT16:
        case G_VARIANT_CLASS_UINT16:
        case G_VARIANT_CLASS_INT32:
        case G_VARIANT_CLASS_UINT32:
        case G_VARIANT_CLASS_INT64:
        case G_VARIANT_CLASS_UINT64:
        case G_VARIANT_CLASS_HANDLE: {
                g_autofree char *number = g_variant_print(value, FALSE);

                g_string_append(output, number);
                return;
        }
        }
}

/* ---- Dictionaries ------------------------------------------------------------------------------------------------- */

void entry(GVariantBuilder *dictionary, const char *key, GVariant *value) {
        g_variant_builder_add(dictionary, "{sv}", key, value);
}

void properties_of(GVariantBuilder *dictionary, GVariant *from) {
        GVariantIter i;
        const char *name;
        GVariant *value;

        g_variant_iter_init(&i, from);
        while (g_variant_iter_loop(&i, "{&sv}", &name, &value)) {
                g_autoptr(GString) key = g_string_new(NULL);

                for (const char *c = name; *c; c++) {
                        if (g_ascii_isupper(*c) && c > name)
                                g_string_append_c(key, '-');
                        g_string_append_c(key, g_ascii_tolower(*c));
                }
                entry(dictionary, key->str, value);
        }
}

void entries_of(GVariantBuilder *dictionary, GVariant *from) {
        gsize n = g_variant_n_children(from);

        for (gsize i = 0; i < n; i++) {
                g_autoptr(GVariant) child = g_variant_get_child_value(from, i);

                g_variant_builder_add_value(dictionary, child);
        }
}

guint64 lookup_number(GVariant *dictionary, const char *key) {
        g_autoptr(GVariant) value = g_variant_lookup_value(dictionary, key, NULL);

        switch (value ? g_variant_classify(value) : G_VARIANT_CLASS_STRING) {
        case G_VARIANT_CLASS_UINT64: return g_variant_get_uint64(value);
        case G_VARIANT_CLASS_UINT32: return g_variant_get_uint32(value);
        default: return 0;
        }
}

const char *lookup_text(GVariant *dictionary, const char *key, const char *otherwise) {
        const char *text;

        return g_variant_lookup(dictionary, key, "&s", &text) || g_variant_lookup(dictionary, key, "&o", &text) ? text
                                                                                                               : otherwise;
}
