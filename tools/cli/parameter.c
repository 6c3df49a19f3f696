/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* NAME=VALUE on the command line to what the library binds, see parameter.h. Pure. */
#include "parameter.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

/* Positions above are names that SQLite would refuse as well (SQLITE_MAX_VARIABLE_NUMBER). */
enum { POSITION_MAX = 32766 };

typedef struct Parameter {
        char *name;       /* as it is sent: with its prefix where it was given, "?N" for a position */
        unsigned position; /* 0: none */
        sqlipc_type type;
        int64_t integer;
        double real;
        char *bytes;      /* TEXT, BLOB */
        size_t size;
} Parameter;

struct ParameterList {
        GPtrArray *parameters; /* of Parameter */
        GArray *public;        /* of sqlipc_parameter; borrows from them */
};

static void parameter_free(void *data) {
        Parameter *parameter = data;

        g_free(parameter->name);
        g_free(parameter->bytes);
        g_free(parameter);
}

ParameterList *parameter_list_new(void) {
        ParameterList *list = g_new(ParameterList, 1);

        *list = (ParameterList) {
                .parameters = g_ptr_array_new_with_free_func(parameter_free),
                .public = g_array_new(FALSE, FALSE, sizeof(sqlipc_parameter)),
        };
        return list;
}

ParameterList *parameter_list_free(ParameterList *list) {
        if (!list)
                return NULL;
        g_array_unref(list->public);
        g_ptr_array_unref(list->parameters);
        g_free(list);
        return NULL;
}

void parameter_list_freep(ParameterList **list) {
        *list = parameter_list_free(*list);
}

/* ---- Values ------------------------------------------------------------------------------------------------------- */

/* [+-] digits [. digits] [e [+-] digits], with a digit in front of the exponent; no hexadecimal, no "inf". */
static bool is_number(const char *text, bool *ret_is_integer) {
        const char *p = text + (*text == '+' || *text == '-');
        size_t n_digits = strspn(p, "0123456789");
        bool is_integer = true;

        p += n_digits;
        if (*p == '.') {
                size_t n = strspn(p + 1, "0123456789");

                n_digits += n;
                p += 1 + n;
                is_integer = false;
        }
        if (n_digits == 0)
                return false;
        if (*p == 'e' || *p == 'E') {
                p += 1 + (p[1] == '+' || p[1] == '-');
                if (!g_ascii_isdigit(*p))
                        return false;
                p += strspn(p, "0123456789");
                is_integer = false;
        }
        *ret_is_integer = is_integer;
        return *p == '\0';
}

static void read_number(Parameter *parameter, const char *text, bool is_integer) {
        const char *digits = text + (*text == '+');

        if (is_integer && g_ascii_string_to_signed(digits, 10, INT64_MIN, INT64_MAX, &parameter->integer, NULL)) {
                parameter->type = SQLIPC_INTEGER;
                return;
        }
        parameter->type = SQLIPC_REAL;
        parameter->real = g_ascii_strtod(text, NULL);
}

static int read_blob(Parameter *parameter, const char *hex, size_t size, char **ret_message) {
        g_autofree char *bytes = g_malloc(size / 2 + 1);

        for (size_t i = 0; i < size; i++) {
                int digit = g_ascii_xdigit_value(hex[i]);

                if (digit < 0 || size % 2 != 0) {
                        *ret_message = g_strdup(digit < 0 ? "a blob, x'...', has hexadecimal digits only"
                                                          : "a blob, x'...', has an even number of digits");
                        return -EINVAL;
                }
                bytes[i / 2] = (char) (i % 2 == 0 ? digit << 4 : bytes[i / 2] | digit);
        }
        parameter->type = SQLIPC_BLOB;
        parameter->size = size / 2;
        parameter->bytes = g_steal_pointer(&bytes);
        return 0;
}

/* The text between quotes, in which '' stands for one. */
static int read_quoted(Parameter *parameter, const char *text, size_t size, char **ret_message) {
        g_autoptr(GString) bytes = g_string_sized_new(size);

        for (size_t i = 0; i < size; i++) {
                if (text[i] == '\'' && (++i >= size || text[i] != '\'')) {
                        *ret_message = g_strdup("a quote inside of '...' is written twice");
                        return -EINVAL;
                }
                g_string_append_c(bytes, text[i]);
        }
        parameter->type = SQLIPC_TEXT;
        parameter->size = bytes->len;
        parameter->bytes = g_string_free(g_steal_pointer(&bytes), FALSE);
        return 0;
}

static int read_value(Parameter *parameter, const char *text, char **ret_message) {
        size_t size = strlen(text);
        bool is_integer;

        if (is_number(text, &is_integer)) {
                read_number(parameter, text, is_integer);
                return 0;
        }
        if (size >= 3 && (text[0] == 'x' || text[0] == 'X') && text[1] == '\'' && text[size - 1] == '\'')
                return read_blob(parameter, text + 2, size - 3, ret_message);
        if (size >= 2 && text[0] == '\'' && text[size - 1] == '\'')
                return read_quoted(parameter, text + 1, size - 2, ret_message);
        if (g_ascii_strcasecmp(text, "null") == 0) {
                parameter->type = SQLIPC_NULL;
                return 0;
        }
        parameter->type = SQLIPC_TEXT;
        parameter->bytes = g_strdup(text);
        parameter->size = size;
        return 0;
}

/* ---- Names -------------------------------------------------------------------------------------------------------- */

static int read_name(Parameter *parameter, const char *name, size_t size, char **ret_message) {
        const char *digits = name + (size > 0 && name[0] == '?');
        size_t n_digits = size - (size_t) (digits - name);
        g_autofree char *number = g_strndup(digits, n_digits);
        guint64 position;

        if (size == 0) {
                *ret_message = g_strdup("a name or a position stands in front of the =");
                return -EINVAL;
        }
        if (n_digits == 0 || strspn(number, "0123456789") < n_digits) {
                parameter->name = g_strndup(name, size);
                return 0;
        }
        if (!g_ascii_string_to_unsigned(number, 10, 1, POSITION_MAX, &position, NULL)) {
                *ret_message = g_strdup_printf("positions are 1 to %d", POSITION_MAX);
                return -EINVAL;
        }
        parameter->position = (unsigned) position;
        parameter->name = g_strdup_printf("?%u", parameter->position);
        return 0;
}

static const Parameter *find_name(const ParameterList *list, const char *name) {
        for (guint i = 0; i < list->parameters->len; i++) {
                const Parameter *parameter = list->parameters->pdata[i];

                if (g_str_equal(parameter->name, name))
                        return parameter;
        }
        return NULL;
}

int parameter_list_add(ParameterList *list, const char *argument, char **ret_message) {
        const char *equals = strchr(argument, '=');
        Parameter *parameter;
        int r;

        if (!equals) {
                *ret_message = g_strdup("NAME=VALUE is expected");
                return -EINVAL;
        }

        parameter = g_new0(Parameter, 1);
        r = read_name(parameter, argument, (size_t) (equals - argument), ret_message);
        if (r >= 0)
                r = read_value(parameter, equals + 1, ret_message);
        if (r >= 0 && find_name(list, parameter->name)) {
                *ret_message = g_strdup("it was given before");
                r = -EINVAL;
        }
        if (r < 0) {
                parameter_free(parameter);
                return r;
        }
        g_ptr_array_add(list->parameters, parameter);
        return 0;
}

/* ---- For the library ---------------------------------------------------------------------------------------------- */

static int compare_positions(gconstpointer a, gconstpointer b) {
        const Parameter *x = *(Parameter *const *) a, *y = *(Parameter *const *) b;
        unsigned p = x->position ? x->position : UINT32_MAX, q = y->position ? y->position : UINT32_MAX;

        return p < q ? -1 : p > q;
}

const sqlipc_parameter *parameter_list_get(ParameterList *list, size_t *ret_n) {
        g_ptr_array_sort(list->parameters, compare_positions); /* stable, so names stay in the order given */
        g_array_set_size(list->public, 0);

        for (guint i = 0; i < list->parameters->len; i++) {
                const Parameter *parameter = list->parameters->pdata[i];
                /* A position behind a gap can still be the name of a ?5. */
                bool nameless = parameter->position == i + 1;
                sqlipc_parameter public = {
                        .name = nameless ? NULL : parameter->name,
                        .type = parameter->type,
                        .integer = parameter->integer,
                        .real = parameter->real,
                        .bytes = parameter->bytes,
                        .size = parameter->size,
                };

                g_array_append_val(list->public, public);
        }
        *ret_n = list->public->len;
        return (const sqlipc_parameter *) (void *) list->public->data;
}
