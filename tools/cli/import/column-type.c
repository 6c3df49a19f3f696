/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Types of columns and values, see column-type.h. */
#include "tools/cli/import/column-type.h"

#include <errno.h>
#include <glib.h>
#include <math.h>
#include <string.h>

/* The longest number that is looked at: a text with more characters is no number that a double holds exactly. */
enum { NUMBER_SIZE_MAX = 40 };

/* So many digits fit into 64 bits, and into a double, whatever they are. */
enum { DIGITS_OF_INTEGER = 18, DIGITS_OF_REAL = 15 };

static uint64_t take_digits(const char **p, const char *end, uint64_t n) {
        for (; *p < end && g_ascii_isdigit(**p); ++*p)
                n = n * 10 + (uint64_t) (**p - '0');
        return n;
}

/* Reads most numbers: few digits and no exponent. The quotient of two exact doubles is rounded correctly. */
static bool read_short(const char *text, size_t size, Value *ret) {
        static const double powers[] = { 1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14 };
        const char *end = text + size, *whole = text + (size > 0 && *text == '-'), *p = whole, *fraction;
        uint64_t n = take_digits(&p, end, 0);

        if (p == whole || p - whole > DIGITS_OF_INTEGER || (p - whole > 1 && *whole == '0'))
                return false;
        if (p == end) {
                *ret = (Value) { .type = SQLIPC_INTEGER, .integer = whole > text ? -(int64_t) n : (int64_t) n };
                return true;
        }
        if (*p++ != '.')
                return false;
        fraction = p;
        n = take_digits(&p, end, n);
        if (p != end || p == fraction || p - whole - 1 > DIGITS_OF_REAL)
                return false;
        *ret = (Value) { .type = SQLIPC_REAL, .real = (double) n / powers[p - fraction] };
        ret->real = whole > text ? -ret->real : ret->real;
        return true;
}

static size_t count_digits(const char *text) {
        size_t n = 0;

        while (g_ascii_isdigit(text[n]))
                n++;
        return n;
}

static const char *skip_exponent(const char *p) {
        const char *digits = p + 1;

        if (*p != 'e' && *p != 'E')
                return p;
        digits += *digits == '-' || *digits == '+';
        return count_digits(digits) > 0 ? digits + count_digits(digits) : p;
}

static sqlipc_type read_integer(const char *text, Value *ret) {
        errno = 0;
        ret->integer = g_ascii_strtoll(text, NULL, 10);
        return errno == 0 ? SQLIPC_INTEGER : SQLIPC_TEXT;
}

static sqlipc_type read_real(const char *text, Value *ret) {
        ret->real = g_ascii_strtod(text, NULL);
        return isfinite(ret->real) ? SQLIPC_REAL : SQLIPC_TEXT;
}

/* Returns the type of a text of any number of digits, and reads it. */
static sqlipc_type read_long(const char *text, Value *ret) {
        const char *whole = text + (*text == '-'), *after = whole + count_digits(whole);

        if (after == whole || (after > whole + 1 && *whole == '0'))
                return SQLIPC_TEXT;
        if (!*after)
                return read_integer(text, ret);
        if (*after == '.') {
                if (count_digits(after + 1) == 0)
                        return SQLIPC_TEXT;
                after += 1 + count_digits(after + 1);
        }
        return !*skip_exponent(after) ? read_real(text, ret) : SQLIPC_TEXT;
}

bool column_read_number(const char *text, size_t size, Value *ret) {
        char number[NUMBER_SIZE_MAX + 1];

        if (read_short(text, size, ret))
                return true;
        if (size == 0 || size > NUMBER_SIZE_MAX || memchr(text, 0, size))
                return false;
        memcpy(number, text, size);
        number[size] = 0;
        *ret = (Value) {};
        ret->type = read_long(number, ret);
        return ret->type != SQLIPC_TEXT;
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

bool column_is_for_numbers(char affinity) {
        return affinity == 'I' || affinity == 'R';
}

bool column_takes(char affinity, const Value *value) {
        g_autofree char *text = NULL;
        Value number;
        char *end;

        if (!column_is_for_numbers(affinity) || value->type != SQLIPC_TEXT)
                return true;
        if (column_read_number(value->bytes, value->size, &number))
                return true;
        text = g_strstrip(g_strndup(value->bytes, value->size));
        if (!*text || strspn(text, "0123456789+-.eE") != strlen(text))
                return false; /* strtod() also takes hexadecimal numbers, infinity and NaN */
        (void) g_ascii_strtod(text, &end);
        return !*end;
}
