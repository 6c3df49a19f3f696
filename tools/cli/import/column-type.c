/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Types of columns and values, see column-type.h. */
#include "tools/cli/import/column-type.h"

#include <errno.h>
#include <glib.h>
#include <math.h>
#include <string.h>

#include "tools/terminal/format.h"

/* ---- Numbers ------------------------------------------------------------------------------------------------------ */

/* A longer text is no number. The digits of 0.1 to the last one, as a double has them, are shorter. */
enum { NUMBER_SIZE_MAX = 64 };

/* So many digits fit into 64 bits, and into a double, whatever they are. */
enum { DIGITS_OF_INTEGER = 18, DIGITS_OF_REAL = 15 };

static uint64_t take_digits(const char **p, const char *end, uint64_t n) {
        for (; *p < end && g_ascii_isdigit(**p); ++*p)
                n = n * 10 + (uint64_t) (**p - '0');
        return n;
}

/* SQLite writes a smaller number with an exponent. */
static bool is_small(const char *whole) {
        return g_str_has_prefix(whole, "0.0000");
}

/* Reads most numbers: few digits, no exponent, and no needless zeros if the text must be kept. The quotient of two exact
 * doubles is rounded correctly. */
static bool read_short(const char *text, size_t size, ColumnKeeps keeps, Value *ret) {
        static const double powers[] = { 1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14 };
        const char *end = text + size, *whole = text + (size > 0 && *text == '-'), *p = whole, *fraction;
        uint64_t n = take_digits(&p, end, 0);

        if (p == whole || p - whole > DIGITS_OF_INTEGER || (p - whole > 1 && *whole == '0'))
                return false;
        if (p == end) {
                *ret = (Value) { .type = SQLIPC_INTEGER, .integer = whole > text ? -(int64_t) n : (int64_t) n };
                return n > 0 || whole == text;
        }
        if (*p++ != '.')
                return false;
        fraction = p;
        n = take_digits(&p, end, n);
        if (p != end || p == fraction || p - whole - 1 > DIGITS_OF_REAL || n == 0)
                return false;
        *ret = (Value) { .type = SQLIPC_REAL, .real = (double) n / powers[p - fraction] };
        ret->real = whole > text ? -ret->real : ret->real;
        return keeps == COLUMN_KEEPS_NUMBER ||
                ((p[-1] != '0' || p - fraction == 1) && !(p - fraction > 4 && is_small(whole)));
}

static size_t count_digits(const char *text) {
        size_t n = 0;

        while (g_ascii_isdigit(text[n]))
                n++;
        return n;
}

/* Returns the end of the digits of an exponent; `p` itself: there is none. */
static const char *skip_exponent(const char *p) {
        const char *digits = p + 1;

        if (*p != 'e' && *p != 'E')
                return p;
        digits += *digits == '-' || *digits == '+';
        return count_digits(digits) > 0 ? digits + count_digits(digits) : p;
}

/* Returns the type that the text has by its form. */
static sqlipc_type form_of(const char *text) {
        const char *whole = text + (*text == '-'), *after = whole + count_digits(whole);

        if (after == whole)
                return SQLIPC_TEXT;
        if (!*after)
                return SQLIPC_INTEGER;
        if (*after == '.') {
                if (count_digits(after + 1) == 0)
                        return SQLIPC_TEXT;
                after += 1 + count_digits(after + 1);
        }
        return !*skip_exponent(after) ? SQLIPC_REAL : SQLIPC_TEXT;
}

/* A decimal without its sign: 0.d1 d2 d3... times 10^exponent. Neither the first digit nor the last is 0, so zero has no
 * digits. */
typedef struct Decimal {
        char digits[NUMBER_SIZE_MAX + 1];
        size_t n_digits;
        int exponent;
} Decimal;

static Decimal decimal_of(const char *text) {
        Decimal decimal = {};
        bool after_point = false;

        for (text += *text == '-'; g_ascii_isdigit(*text) || *text == '.'; text++) {
                if (*text == '.') {
                        after_point = true;
                        continue;
                }
                if (*text != '0' || decimal.n_digits > 0)
                        decimal.digits[decimal.n_digits++] = *text;
                if (!after_point && decimal.n_digits > 0)
                        decimal.exponent++;
                if (after_point && decimal.n_digits == 0)
                        decimal.exponent--;
        }
        if (*text)
                decimal.exponent += (int) CLAMP(g_ascii_strtoll(text + 1, NULL, 10), -100000, 100000);
        while (decimal.n_digits > 0 && decimal.digits[decimal.n_digits - 1] == '0')
                decimal.n_digits--;
        decimal.exponent = decimal.n_digits > 0 ? decimal.exponent : 0;
        return decimal;
}

static bool decimal_equals(const Decimal *a, const char *text) {
        const Decimal b = decimal_of(text);

        return a->n_digits == b.n_digits && a->exponent == b.exponent && memcmp(a->digits, b.digits, a->n_digits) == 0;
}

/* True if the number has the decimal's digits when it is written with so many, as programs write 15 to 17 of them; or the 20
 * that the shell writes, of which SQLite's arithmetic makes the last ones. */
static bool has_decimal(double real, const char *text) {
        const Decimal decimal = decimal_of(text);
        char written[NUMBER_SIZE_MAX + 16], shown[FORMAT_NUMBER_SIZE], format[8];

        (void) g_snprintf(format, sizeof format, "%%.%ue", (unsigned) MAX(decimal.n_digits, 1) - 1);
        (void) g_ascii_formatd(written, sizeof written, format, real);
        (void) format_double(shown, real, FORMAT_DIGITS_EXACT);
        return decimal_equals(&decimal, written) || decimal_equals(&decimal, shown);
}

/* SQLite drops the sign of zero in a column for REAL. The shell writes an infinity as 1e999, which another program may write
 * as a name. */
static bool keeps_real(double real, const char *text, ColumnKeeps keeps) {
        char written[FORMAT_NUMBER_SIZE];
        bool is_same;

        (void) format_double_exact(written, real);
        is_same = g_str_equal(written, text);
        if (keeps == COLUMN_KEEPS_TEXT)
                return is_same && isfinite(real) && !(real == 0 && signbit(real));
        return is_same || (isfinite(real) && has_decimal(real, text));
}

/* Returns the type of a text of any number of digits, and reads it. */
static sqlipc_type read_long(const char *text, ColumnKeeps keeps, Value *ret) {
        sqlipc_type form = form_of(text);
        char written[FORMAT_NUMBER_SIZE];

        if (form == SQLIPC_INTEGER) {
                errno = 0;
                ret->integer = g_ascii_strtoll(text, NULL, 10);
                (void) format_integer(written, ret->integer);
                if (errno == 0 && (keeps == COLUMN_KEEPS_NUMBER || g_str_equal(written, text)))
                        return SQLIPC_INTEGER;
        }
        if (form == SQLIPC_TEXT)
                return SQLIPC_TEXT;
        ret->real = g_ascii_strtod(text, NULL);
        return keeps_real(ret->real, text, keeps) ? SQLIPC_REAL : SQLIPC_TEXT;
}

bool column_read_number(const char *text, size_t size, ColumnKeeps keeps, Value *ret) {
        char number[NUMBER_SIZE_MAX + 1];

        if (read_short(text, size, keeps, ret))
                return true;
        if (size == 0 || size > NUMBER_SIZE_MAX || memchr(text, 0, size))
                return false;
        memcpy(number, text, size);
        number[size] = 0;
        *ret = (Value) {};
        ret->type = read_long(number, keeps, ret);
        return ret->type != SQLIPC_TEXT;
}

/* ---- Columns ------------------------------------------------------------------------------------------------------ */

/* The values that SQLite makes integers in a column for NUMERIC. */
static bool is_whole(double real) {
        return fabs(real) < 0x1p63 && real == floor(real);
}

ColumnTypes column_types_of(const Value *value) {
        return COLUMN_TYPE(value->type) | (value->type == SQLIPC_REAL && is_whole(value->real) ? COLUMN_WHOLE_REAL : 0);
}

const char *column_type_for(ColumnTypes types, bool of_text) {
        const ColumnTypes numbers = COLUMN_TYPE(SQLIPC_INTEGER) | COLUMN_TYPE(SQLIPC_REAL);
        bool has_whole = (types & COLUMN_WHOLE_REAL) != 0;

        types &= ~(COLUMN_TYPE(SQLIPC_NULL) | COLUMN_WHOLE_REAL);
        if (types == 0 || types == COLUMN_TYPE(SQLIPC_TEXT))
                return "TEXT";
        if (types == COLUMN_TYPE(SQLIPC_INTEGER))
                return "INTEGER";
        if (types == COLUMN_TYPE(SQLIPC_REAL))
                return "REAL";
        if (types == numbers) /* REAL would make 1 a 1.0, and NUMERIC 1.0 a 1 */
                return has_whole ? "" : "NUMERIC";
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
        if (read_short(value->bytes, value->size, COLUMN_KEEPS_NUMBER, &number))
                return true;
        if (memchr(value->bytes, 0, value->size))
                return false;
        text = g_strstrip(g_strndup(value->bytes, value->size));
        if (!*text || strspn(text, "0123456789+-.eE") != strlen(text))
                return false; /* strtod() also takes hexadecimal numbers, infinity and NaN */
        (void) g_ascii_strtod(text, &end);
        return !*end;
}
