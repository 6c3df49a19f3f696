/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Converts NAME=VALUE to the library's parameters, see parameter.h. Pure. */
#include "tools/cli/sql/parameter.h"

#include <errno.h>
#include <string.h>

/* SQLite refuses positions above this, too (SQLITE_MAX_VARIABLE_NUMBER). */
enum { POSITION_MAX = 32766 };

typedef struct Parameter {
        char *name;        /* with its prefix if it was given; "?N" for a position */
        unsigned position; /* 0: none */
        bool used;         /* by a statement */
        sqlipc_type type;
        int64_t integer;
        double real;
        char *bytes;       /* TEXT, BLOB */
        size_t size;
} Parameter;

struct ParameterList {
        GPtrArray *parameters; /* of Parameter */
        GArray *public;        /* of sqlipc_parameter; points into .parameters */
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

/* Recognizes [+-] digits [. digits] [e [+-] digits], with at least one digit before the exponent; not hexadecimal, not
 * "inf". */
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

/* Reads the text between quotes, in which '' is a single quote. */
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
                *ret_message = g_strdup("a name or a position must come before the =");
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

/* Returns the index in the list; -1: none. */
static int find_name(const ParameterList *list, const char *name) {
        for (guint i = 0; i < list->parameters->len; i++) {
                const Parameter *parameter = list->parameters->pdata[i];

                if (g_str_equal(parameter->name, name))
                        return (int) i;
        }
        return -1;
}

/* Returns true if `name` matches `other`: a name without prefix matches that name with any prefix. */
static bool stands_for(const char *name, const char *other) {
        return g_str_equal(name, other) || (strchr(":@$", other[0]) && g_str_equal(name, other + 1));
}

/* Removes all parameters that `name` matches, because an older one could otherwise take precedence. Returns false if there
 * was none. */
static bool forget(ParameterList *list, const char *name) {
        const guint before = list->parameters->len;

        for (guint i = before; i-- > 0;)
                if (stands_for(name, ((const Parameter *) list->parameters->pdata[i])->name))
                        g_ptr_array_remove_index(list->parameters, i);
        return list->parameters->len < before;
}

/* ---- The list ----------------------------------------------------------------------------------------------------- */

static int parameter_read(const char *name, size_t name_size, const char *value, Parameter **ret, char **ret_message) {
        Parameter *parameter = g_new0(Parameter, 1);
        int r;

        r = read_name(parameter, name, name_size, ret_message);
        if (r >= 0)
                r = read_value(parameter, value, ret_message);
        if (r < 0) {
                parameter_free(parameter);
                return r;
        }
        *ret = parameter;
        return 0;
}

int parameter_list_add(ParameterList *list, const char *argument, char **ret_message) {
        const char *equals = strchr(argument, '=');
        Parameter *parameter;
        int r;

        if (!equals) {
                *ret_message = g_strdup("NAME=VALUE is expected");
                return -EINVAL;
        }
        r = parameter_read(argument, (size_t) (equals - argument), equals + 1, &parameter, ret_message);
        if (r < 0)
                return r;
        if (find_name(list, parameter->name) >= 0) {
                *ret_message = g_strdup("it was given before");
                parameter_free(parameter);
                return -EINVAL;
        }
        g_ptr_array_add(list->parameters, parameter);
        return 0;
}

int parameter_list_set(ParameterList *list, const char *name, const char *value, char **ret_message) {
        Parameter *parameter;
        int r;

        r = parameter_read(name, strlen(name), value, &parameter, ret_message);
        if (r < 0)
                return r;
        parameter->used = true;
        forget(list, parameter->name);
        g_ptr_array_add(list->parameters, parameter);
        return 0;
}

bool parameter_list_unset(ParameterList *list, const char *name) {
        Parameter wanted = {};
        g_autofree char *message = NULL;
        bool found = read_name(&wanted, name, strlen(name), &message) >= 0 && forget(list, wanted.name);

        g_free(wanted.name);
        return found;
}

void parameter_list_clear(ParameterList *list) {
        g_ptr_array_set_size(list->parameters, 0);
}

ParameterList *parameter_list_copy(const ParameterList *list) {
        ParameterList *copy = parameter_list_new();

        for (guint i = 0; i < list->parameters->len; i++) {
                Parameter *parameter = g_memdup2(list->parameters->pdata[i], sizeof *parameter);

                parameter->name = g_strdup(parameter->name);
                parameter->bytes = parameter->bytes ? g_memdup2(parameter->bytes, parameter->size + 1) : NULL;
                g_ptr_array_add(copy->parameters, parameter);
        }
        return copy;
}

void parameter_list_note_use(ParameterList *list, const ParameterList *copy) {
        for (guint i = 0; i < copy->parameters->len; i++) {
                const Parameter *used = copy->parameters->pdata[i];

                for (guint k = 0; used->used && k < list->parameters->len; k++) {
                        Parameter *parameter = list->parameters->pdata[k];

                        parameter->used |= stands_for(used->name, parameter->name);
                }
        }
}

const char *parameter_list_unused(const ParameterList *list) {
        for (guint i = 0; i < list->parameters->len; i++) {
                const Parameter *parameter = list->parameters->pdata[i];

                if (!parameter->used)
                        return parameter->name;
        }
        return NULL;
}

/* ---- Values for the library --------------------------------------------------------------------------------------- */

static int compare_positions(gconstpointer a, gconstpointer b) {
        const Parameter *x = *(Parameter *const *) a, *y = *(Parameter *const *) b;
        unsigned p = x->position ? x->position : UINT32_MAX, q = y->position ? y->position : UINT32_MAX;

        return p < q ? -1 : p > q;
}

/* Adds a parameter for the library. `value` NULL: SQL's NULL. */
static void publish(ParameterList *list, const char *name, const Parameter *value) {
        static const Parameter null = { .type = SQLIPC_NULL };
        const Parameter *parameter = value ?: &null;
        sqlipc_parameter public = {
                .struct_size = sizeof public,
                .name = name,
                .type = parameter->type,
                .integer = parameter->integer,
                .real = parameter->real,
                .bytes = parameter->bytes,
                .size = parameter->size,
        };

        g_array_append_val(list->public, public);
}

static const sqlipc_parameter *published(const ParameterList *list, size_t *ret_n) {
        *ret_n = list->public->len;
        return (const sqlipc_parameter *) (void *) list->public->data;
}

const sqlipc_parameter *parameter_list_get(ParameterList *list, size_t *ret_n) {
        g_ptr_array_sort(list->parameters, compare_positions); /* the sort is stable, so names keep their order */
        g_array_set_size(list->public, 0);
        for (guint i = 0; i < list->parameters->len; i++) {
                const Parameter *parameter = list->parameters->pdata[i];

                publish(list, parameter->name, parameter);
        }
        return published(list, ret_n);
}

/* ---- For a statement ---------------------------------------------------------------------------------------------- */

/* Returns a parameter's index by SQLite's rules: "?" is one more than the largest so far, "?N" is N (as is PostgreSQL's $N),
 * and a name has the same index everywhere. Returns 0 if SQLite will refuse it. */
static unsigned index_of(SqlDialect dialect, GHashTable *indices, const char *token, unsigned largest) {
        guint64 position;
        unsigned known;

        if (token[0] == '?' && token[1] == '\0')
                return largest + 1;
        if (token[0] == '?' || (token[0] == '$' && g_ascii_isdigit(token[1]) && dialect == SQL_DIALECT_POSTGRESQL))
                return g_ascii_string_to_unsigned(token + 1, 10, 1, POSITION_MAX, &position, NULL) ? (unsigned) position : 0;
        known = GPOINTER_TO_UINT(g_hash_table_lookup(indices, token));
        if (known == 0) {
                known = largest + 1;
                g_hash_table_insert(indices, g_strdup(token), GUINT_TO_POINTER(known));
        }
        return known;
}

/* Finds a value: by name with its prefix, by name without it, by position. */
static Parameter *find_value(const ParameterList *list, const char *token, unsigned position) {
        g_autofree char *number = g_strdup_printf("?%u", position);
        int found = token[0] == '?' ? -1 : find_name(list, token);

        if (found < 0 && token[0] != '?')
                found = find_name(list, token + 1);
        if (found < 0)
                found = find_name(list, number);
        return found < 0 ? NULL : list->parameters->pdata[found];
}

/* Returns the name of each index, or "?N"; index i is element i - 1. NULL: a gap. */
static GPtrArray *names_in(SqlDialect dialect, const char *sql) {
        g_autoptr(GHashTable) indices = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
        GPtrArray *names = g_ptr_array_new_with_free_func(g_free);
        size_t size = strlen(sql), position = 0;
        SqlToken token;

        while (sql_scan_next(dialect, sql, size, &position, &token)) {
                g_autofree char *name = NULL;
                unsigned index;

                if (token.type != SQL_PARAMETER)
                        continue;
                name = g_strndup(sql + token.start, token.size);
                index = index_of(dialect, indices, name, names->len);
                if (index == 0 || index > POSITION_MAX)
                        continue;
                if (index > names->len)
                        g_ptr_array_set_size(names, (int) index);
                if (!names->pdata[index - 1])
                        names->pdata[index - 1] = g_steal_pointer(&name);
        }
        return names;
}

const sqlipc_parameter *parameter_list_for(ParameterList *list, SqlDialect dialect, const char *sql, size_t *ret_n) {
        g_autoptr(GPtrArray) names = names_in(dialect, sql);

        g_array_set_size(list->public, 0);
        for (guint i = 0; i < names->len; i++) {
                const char *name = names->pdata[i];
                Parameter *parameter = name ? find_value(list, name, i + 1) : NULL;

                if (parameter)
                        parameter->used = true;
                publish(list, NULL, parameter); /* by position, so that each index has a value, also the gaps */
        }
        return published(list, ret_n);
}
