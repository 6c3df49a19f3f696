/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Numbers as text, see format.h. Pure.
 *
 * sqlite3_snprintf() would save half of this file, and was measured in its place (SQLite 3.40; medians of 7 rounds in turn;
 * processor time of shell and service, relative to sqlite3's shell): csv of 400,000 rows of two INTEGERs, a REAL and a TEXT
 * took 0.54 with this file and 1.47 with SQLite's functions, and with REALs of 16 and 17 digits 0.62 and 2.31. SQLite's own
 * digits are not correctly rounded, so the fewest digits would have to be found by trial. It would also link sqlipcctl with
 * SQLite. Texts alone took the same time.
 */
#include <float.h>
#include <math.h>
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

/* SQLite does not print doubles with the C library: it scales in long double and takes digit by digit, which sometimes
 * differs from correct rounding in the last place (one double in 250 at 15 digits). To write the same bytes as its shell,
 * these functions follow its printf.c (etGENERIC), including the order of operations and the constants of type double. */

/* 1.0 <= result < 10.0, result * 10^ret_exponent == value. */
static long double normalize(long double value, int *ret_exponent) {
        long double scale = 1.0;
        int exponent = 0;

        for (; value >= 1e100 * scale && exponent <= 350; exponent += 100)
                scale *= 1e100;
        for (; value >= 1e10 * scale && exponent <= 350; exponent += 10)
                scale *= 1e10;
        for (; value >= 10.0 * scale && exponent <= 350; exponent++)
                scale *= 10.0;

        value /= scale;
        for (; value < 1e-8; exponent -= 8)
                value *= 1e8;
        for (; value < 1.0; exponent--)
                value *= 10.0;

        *ret_exponent = exponent;
        return value;
}

/* Returns the next digit of `value`, and leaves the rest there. After 26 digits SQLite writes zeros. */
static char next_digit(long double *value, int *n_left) {
        if (*n_left <= 0)
                return '0';
        (*n_left)--;

        int digit = (int) *value;
        *value = (*value - digit) * 10.0;
        return (char) ('0' + digit);
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

size_t format_double(char ret_buffer[static FORMAT_NUMBER_SIZE], double value, int digits) {
        long double rest = value < 0 ? -(long double) value : value;
        int exponent = 0, n_left = 26, precision = digits - 1;
        char *p = ret_buffer;
        double rounder = 0.5;

        if (isnan(value) || isinf(value))
                return g_strlcpy(ret_buffer, isnan(value) ? "NaN" : value < 0 ? "-Inf" : "Inf", FORMAT_NUMBER_SIZE);

        if (rest > 0)
                rest = normalize(rest, &exponent);
        for (int i = precision; i > 0; i--)
                rounder *= 0.1;
        rest += rounder;
        if (rest >= 10.0) {
                rest *= 0.1;
                exponent++;
        }

        bool scientific = exponent < -4 || exponent > precision;
        int place = scientific ? 0 : exponent;
        if (!scientific)
                precision -= exponent;

        if (value < 0)
                *p++ = '-';
        if (place < 0)
                *p++ = '0';
        for (; place >= 0; place--)
                *p++ = next_digit(&rest, &n_left);
        *p++ = '.';
        for (place++; place < 0; place++, precision--)
                *p++ = '0';
        for (; precision > 0; precision--)
                *p++ = next_digit(&rest, &n_left);

        while (p[-1] == '0')
                p--;
        if (p[-1] == '.')
                *p++ = '0';
        if (scientific)
                p = put_exponent(p, exponent);
        *p = '\0';
        return (size_t) (p - ret_buffer);
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
 * here and those of SQLite's reader. */
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
        hair = scaled * (abs(16 - exponent) <= 27 ? 0x1p-62L : 0x1p-57L);

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

/* Reads the decimal as sqlite3AtoF() does: it multiplies or divides by a power of ten, and rounds more than once. */
static double read_as_sqlite(Decimal decimal) {
        long double power = 1, square = 10;
        int exponent = decimal.exponent - decimal.digits + 1;

        for (; decimal.number % 10 == 0; exponent++)
                decimal.number /= 10;
        for (unsigned rest = (unsigned) abs(exponent); rest > 0; rest /= 2, square *= square)
                if (rest % 2)
                        power *= square;
        return (double) (exponent < 0 ? (long double) decimal.number / power : (long double) decimal.number * power);
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
                if (g_ascii_strtod(text, NULL) == value && read_as_sqlite(*ret) == value)
                        return;
        }
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
