/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Types of columns and values, see column-type.h. */
#include "tools/cli/import/column-type.h"

#include <errno.h>
#include <glib.h>
#include <math.h>
#include <string.h>

/* The longest number that is looked at: a text with more characters is no number that a double holds exactly. */
enum { NUMBER_SIZE_MAX = 40 };

static size_t count_digits(const char *text) {
        return strspn(text, "0123456789");
}

static const char *skip_exponent(const char *p) {
        const char *digits = p + 1;

        if (*p != 'e' && *p != 'E')
                return p;
        digits += *digits == '-' || *digits == '+';
        return count_digits(digits) > 0 ? digits + count_digits(digits) : p;
}

static bool is_integer(const char *text) {
        errno = 0;
        (void) g_ascii_strtoll(text, NULL, 10);
        return errno == 0;
}

static bool is_finite(const char *text) {
        return isfinite(g_ascii_strtod(text, NULL));
}

sqlipc_type column_type_of_text(const char *text, size_t size) {
        char number[NUMBER_SIZE_MAX + 1];
        const char *p = number, *after;
        size_t whole;

        if (size == 0 || size > NUMBER_SIZE_MAX || memchr(text, 0, size))
                return SQLIPC_TEXT;
        memcpy(number, text, size);
        number[size] = 0;
        p += *p == '-';
        whole = count_digits(p);
        if (whole == 0 || (whole > 1 && *p == '0'))
                return SQLIPC_TEXT;
        after = p + whole;
        if (!*after)
                return is_integer(number) ? SQLIPC_INTEGER : SQLIPC_TEXT;
        if (*after == '.') {
                if (count_digits(after + 1) == 0)
                        return SQLIPC_TEXT;
                after += 1 + count_digits(after + 1);
        }
        return !*skip_exponent(after) && is_finite(number) ? SQLIPC_REAL : SQLIPC_TEXT;
}

const char *column_type_for(ColumnTypes types, bool of_text) {
        const ColumnTypes numbers = COLUMN_TYPE(SQLIPC_INTEGER) | COLUMN_TYPE(SQLIPC_REAL);

        types &= ~COLUMN_TYPE(SQLIPC_NULL);
        if (types == 0 || types == COLUMN_TYPE(SQLIPC_TEXT))
                return "TEXT";
        if (types == COLUMN_TYPE(SQLIPC_INTEGER))
                return "INTEGER";
        if ((types & ~numbers) == 0)
                return "REAL";
        if (types == COLUMN_TYPE(SQLIPC_BLOB))
                return "BLOB";
        return of_text ? "TEXT" : "";
}

static bool contains(const char *declared, const char *word) {
        return strstr(declared, word) != NULL;
}

/* The rules of "Determination Of Column Affinity" in SQLite's documentation, in their order. */
char column_affinity(const char *declared) {
        g_autofree char *type = g_ascii_strup(declared ?: "", -1);

        if (contains(type, "INT"))
                return 'I';
        if (contains(type, "CHAR") || contains(type, "CLOB") || contains(type, "TEXT"))
                return 'T';
        if (!*type || contains(type, "BLOB"))
                return 'B';
        return contains(type, "REAL") || contains(type, "FLOA") || contains(type, "DOUB") ? 'R' : 'N';
}

bool column_takes(char affinity, const Value *value) {
        g_autofree char *text = NULL;
        char *end;

        if ((affinity != 'I' && affinity != 'R') || value->type != SQLIPC_TEXT)
                return true;
        text = g_strstrip(g_strndup(value->bytes, value->size));
        if (!*text || strspn(text, "0123456789+-.eE") != strlen(text))
                return false; /* strtod() also takes hexadecimal numbers, infinity and NaN */
        (void) g_ascii_strtod(text, &end);
        return !*end;
}
