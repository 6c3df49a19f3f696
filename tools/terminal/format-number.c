/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Numbers as text, see format.h.
 *
 * Integers and doubles with the fewest digits are most of a large result, and have functions of their own, because those
 * of SQLite are slower. Doubles that must look as in SQLite are printed by SQLite: its digits differ with its version.
 */
#include <float.h>
#include <math.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tools/terminal/format.h"

/* ---- Integers ----------------------------------------------------------------------------------------------------- */

/* Writes the digits of `value` so that they end before `end`; returns a pointer to the first. */
static char *put_digits(char *end, uint64_t value) {
        static const char pairs[] =
                "00010203040506070809101112131415161718192021222324252627282930313233343536373839404142434445464748"
                "4950515253545556575859606162636465666768697071727374757677787980818283848586878889909192939495969798"
                "99";

        for (; value >= 100; value /= 100)
                memcpy(end -= 2, pairs + 2 * (value % 100), 2);
        if (value >= 10)
                memcpy(end -= 2, pairs + 2 * value, 2);
        else
                *--end = (char) ('0' + value);
        return end;
}

size_t format_integer(char ret_buffer[static FORMAT_NUMBER_SIZE], int64_t value) {
        char digits[20], *end = digits + sizeof digits;
        char *start = put_digits(end, value < 0 ? -(uint64_t) value : (uint64_t) value);
        size_t n = (size_t) (end - start), sign = value < 0;

        ret_buffer[0] = '-';
        memcpy(ret_buffer + sign, start, n);
        ret_buffer[sign + n] = '\0';
        return sign + n;
}

/* ---- Doubles as SQLite prints them -------------------------------------------------------------------------------- */

size_t format_double(char ret_buffer[static FORMAT_NUMBER_SIZE], double value, int digits) {
        if (isnan(value) || isinf(value)) /* versions of SQLite differ */
                return g_strlcpy(ret_buffer, isnan(value) ? "NaN" : value < 0 ? "-Inf" : "Inf", FORMAT_NUMBER_SIZE);
        return strlen(sqlite3_snprintf(FORMAT_NUMBER_SIZE, ret_buffer, "%!.*g", digits, value));
}

size_t format_number(char ret_buffer[static FORMAT_NUMBER_SIZE], const Value *value) {
        if (value->type == SQLIPC_REAL)
                return format_double(ret_buffer, value->real, FORMAT_DIGITS_SHORT);
        return format_integer(ret_buffer, value->integer);
}

/* ---- Doubles with the fewest digits ------------------------------------------------------------------------------- */

/* 10^exponent, with an error of at most one in its last place. */
static long double power_of_ten(int exponent) {
        static const long double small[] = {
                1e0L, 1e1L, 1e2L, 1e3L, 1e4L, 1e5L, 1e6L, 1e7L, 1e8L, 1e9L, 1e10L, 1e11L, 1e12L, 1e13L, 1e14L, 1e15L, 1e16L,
                1e17L, 1e18L, 1e19L, 1e20L, 1e21L, 1e22L, 1e23L, 1e24L, 1e25L, 1e26L, 1e27L,
        };
        static const long double large[] = {
                1e0L, 1e28L, 1e56L, 1e84L, 1e112L, 1e140L, 1e168L, 1e196L, 1e224L, 1e252L, 1e280L, 1e308L,
        };

        return small[exponent % 28] * large[exponent / 28];
}

static long double scale(long double value, int exponent) {
        return exponent >= 0 ? value * power_of_ten(exponent) : value / power_of_ten(-exponent);
}

/* A decimal: `digits` is 15, 16 or 17; `number` has that many digits, the first of which counts 10^exponent. */
typedef struct Decimal {
        int digits, exponent;
        uint64_t number;
} Decimal;

/* The fewest digits that `value`, positive and normal, needs. False if the last bit would decide. A decimal reads back as
 * the same double if its distance is less than half the distance to the next double, by a margin of more than the errors
 * here and those of SQLite's readers: those up to 3.46 multiply by powers of ten up to 40 times, in long double. */
static bool fewest_digits(double value, Decimal *ret) {
        int binary, exponent;
        double fraction = frexp(value, &binary);
        long double scaled, half, hair;

        exponent = (int) floor((binary - 1) * 0.30102999566398120);
        scaled = scale(value, 16 - exponent);
        if (scaled >= 1e17L)
                scaled = scale(value, 16 - ++exponent);
        if (scaled < 1e16L || scaled >= 1e17L || fraction == 0.5) /* the next double below a power of two is nearer */
                return false;
        half = scaled / ((long double) fraction * 0x1p54L);
        hair = scaled * (abs(16 - exponent) <= 27 ? 0x1p-59L : 0x1p-57L);

        for (unsigned digits = 15, unit = 100; digits <= 17; digits++, unit /= 10) {
                uint64_t number = (unit > 1 ? (uint64_t) scaled + unit / 2 : (uint64_t) (scaled + 0.5L)) / unit;
                long double distance = fabsl((long double) (number * unit) - scaled);
                bool carried = number * unit == UINT64_C(100000000000000000);

                if (distance > half + hair)
                        continue;
                *ret = (Decimal) { (int) digits, exponent + carried, carried ? number / 10 : number };
                return distance < half - hair;
        }
        return false;
}

/* The installed SQLite's own reader, which has no function of its own in the interface. False if it cannot be asked, too. */
static bool sqlite_reads(const char *text, double value) {
        static sqlite3_stmt *statement;
        bool reads;

        if (!statement) {
                sqlite3 *db;

                if (sqlite3_open(":memory:", &db) != SQLITE_OK ||
                    sqlite3_prepare_v2(db, "SELECT CAST(? AS REAL)", -1, &statement, NULL) != SQLITE_OK) {
                        sqlite3_close(db);
                        return false;
                }
        }
        reads = sqlite3_bind_text(statement, 1, text, -1, SQLITE_STATIC) == SQLITE_OK &&
                sqlite3_step(statement) == SQLITE_ROW && sqlite3_column_double(statement, 0) == value;
        sqlite3_reset(statement);
        return reads;
}

/* The same by trial. The C library rounds correctly, so 17 digits are always enough for it. */
static void fewest_digits_by_trying(double value, Decimal *ret) {
        char text[FORMAT_NUMBER_SIZE], plain[20] = "";

        for (int digits = 15; digits <= 17; digits++) {
                g_ascii_formatd(text, sizeof text, digits == 15 ? "%.14e" : digits == 16 ? "%.15e" : "%.16e", value);
                plain[0] = text[0];
                memcpy(plain + 1, text + 2, (size_t) digits - 1);
                *ret = (Decimal) {
                        digits, (int) g_ascii_strtoll(strchr(text, 'e') + 1, NULL, 10), g_ascii_strtoull(plain, NULL, 10),
                };
                if (g_ascii_strtod(text, NULL) == value && sqlite_reads(text, value))
                        return;
        }
}

static char *put_exponent(char *p, int exponent) {
        *p++ = 'e';
        *p++ = exponent < 0 ? '-' : '+';
        exponent = abs(exponent);
        if (exponent >= 100)
                *p++ = (char) ('0' + exponent / 100);
        *p++ = (char) ('0' + exponent / 10 % 10);
        *p++ = (char) ('0' + exponent % 10);
        return p;
}

/* Writes digits and exponent in SQLite's layout. */
static size_t lay_out(char *buffer, const char *digits, int n_digits, int exponent) {
        int precision = n_digits - 1;
        bool scientific = exponent < -4 || exponent > precision;
        char *p = buffer;

        while (n_digits > 1 && digits[n_digits - 1] == '0')
                n_digits--;
        int before = scientific ? 1 : MAX(exponent + 1, 0);

        if (before == 0) {
                memcpy(p, "0.0000", (size_t) (1 - exponent));
                p += 1 - exponent;
        }
        for (int i = 0; i < MAX(before, n_digits); i++) {
                if (i == before && before > 0)
                        *p++ = '.';
                *p++ = i < n_digits ? digits[i] : '0';
        }
        if (n_digits <= before) {
                *p++ = '.';
                *p++ = '0';
        }
        if (scientific)
                p = put_exponent(p, exponent);
        *p = '\0';
        return (size_t) (p - buffer);
}

size_t format_double_exact(char ret_buffer[static FORMAT_NUMBER_SIZE], double value) {
        char digits[20], *end = digits + sizeof digits;
        size_t sign = signbit(value) != 0;
        Decimal decimal;

        if (isnan(value)) /* SQLite has none, and reads this as NULL */
                return g_strlcpy(ret_buffer, "", FORMAT_NUMBER_SIZE);
        if (isinf(value))
                return g_strlcpy(ret_buffer, sign ? "-1e999" : "1e999", FORMAT_NUMBER_SIZE);
        if (value == 0)
                return g_strlcpy(ret_buffer, sign ? "-0.0" : "0.0", FORMAT_NUMBER_SIZE);

        value = fabs(value);
        if (LDBL_MANT_DIG < 64 || value < DBL_MIN || !fewest_digits(value, &decimal))
                fewest_digits_by_trying(value, &decimal);
        ret_buffer[0] = '-';
        return sign + lay_out(ret_buffer + sign, put_digits(end, decimal.number), decimal.digits, decimal.exponent);
}
