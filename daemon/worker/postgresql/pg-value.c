/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See pg-value.h. From top to bottom: types, numbers, numeric, dates and times, bytes, the two forms.
 */
#include "daemon/worker/postgresql/pg-value.h"

#include <endian.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SMALL_SIZE 64 /* more than any date or UUID needs */

/* ---- types ---- */

/* The numbers of built-in types have never changed (pg_type.dat). */
PgKind pg_value_kind(uint32_t type) {
        switch (type) {
        case 16: return PG_KIND_BOOL;
        case 17: return PG_KIND_BYTEA;
        case 20: return PG_KIND_INT8;
        case 21: return PG_KIND_INT2;
        case 23: return PG_KIND_INT4;
        case 26: return PG_KIND_OID;
        case 700: return PG_KIND_FLOAT4;
        case 701: return PG_KIND_FLOAT8;
        case 1082: return PG_KIND_DATE;
        case 1083: return PG_KIND_TIME;
        case 1114: return PG_KIND_TIMESTAMP;
        case 1184: return PG_KIND_TIMESTAMPTZ;
        case 1700: return PG_KIND_NUMERIC;
        case 2950: return PG_KIND_UUID;
        case 3802: return PG_KIND_JSONB;
        case 19: /* name */
        case 25: /* text */
        case 114: /* json */
        case 705: /* unknown */
        case 1042: /* bpchar */
        case 1043: /* varchar */
                return PG_KIND_TEXT;
        default: return PG_KIND_OTHER;
        }
}

/* ---- memory ---- */

static uint8_t *reserve(PgScratch *scratch, size_t size) {
        uint8_t *bigger;

        if (size <= scratch->capacity)
                return scratch->bytes;
        bigger = realloc(scratch->bytes, size);
        if (!bigger)
                return NULL;
        scratch->bytes = bigger;
        scratch->capacity = size;
        return bigger;
}

void pg_scratch_done(PgScratch *scratch) {
        free(scratch->bytes);
        *scratch = (PgScratch) {};
}

static uint16_t load_be16(const uint8_t *bytes) {
        uint16_t v;

        memcpy(&v, bytes, sizeof v);
        return be16toh(v);
}

static uint32_t load_be32(const uint8_t *bytes) {
        uint32_t v;

        memcpy(&v, bytes, sizeof v);
        return be32toh(v);
}

static uint64_t load_be64(const uint8_t *bytes) {
        uint64_t v;

        memcpy(&v, bytes, sizeof v);
        return be64toh(v);
}

/* ---- numbers ---- */

static int set_integer(int64_t integer, PgValue *ret) {
        *ret = (PgValue) { .type = VALUE_INTEGER, .integer = integer };
        return 0;
}

static int set_text(const void *bytes, size_t size, PgValue *ret) {
        *ret = (PgValue) { .type = VALUE_TEXT, .bytes = bytes, .size = size };
        return 0;
}

static int set_real(double real, PgValue *ret) {
        if (isnan(real))
                return set_text("NaN", 3, ret);
        *ret = (PgValue) { .type = VALUE_REAL, .real = real };
        return 0;
}

static int float4_of_binary(const uint8_t *bytes, PgValue *ret) {
        uint32_t word = load_be32(bytes);
        float real;

        memcpy(&real, &word, sizeof real);
        return set_real((double) real, ret);
}

static int float8_of_binary(const uint8_t *bytes, PgValue *ret) {
        uint64_t word = load_be64(bytes);
        double real;

        memcpy(&real, &word, sizeof real);
        return set_real(real, ret);
}

static int integer_of_text(const char *text, size_t size, PgValue *ret) {
        char *end;
        long long integer;

        errno = 0;
        integer = strtoll(text, &end, 10);
        if (errno != 0 || size == 0 || end != text + size)
                return -EBADMSG;
        return set_integer(integer, ret);
}

/* A number with 4 bytes must become the double of those, not the double that is nearest to its digits. */
static int real_of_text(const char *text, size_t size, bool small, PgValue *ret) {
        char *end;
        double real = small ? (double) strtof(text, &end) : strtod(text, &end);

        if (size == 0 || end != text + size)
                return -EBADMSG;
        return set_real(real, ret);
}

/* ---- numeric ---- */

#define NUMERIC_HEAD_SIZE ((size_t) 8)
#define NUMERIC_BASE 10000 /* of each digit, which has two bytes */
#define NUMERIC_NEGATIVE 0x4000
#define NUMERIC_NAN 0xc000
#define NUMERIC_INFINITY 0xd000
#define NUMERIC_MINUS_INFINITY 0xf000

typedef struct Numeric {
        int n_digits, weight, scale; /* the first digit counts NUMERIC_BASE^weight; digits after the point */
        bool negative;
        const uint8_t *digits;
} Numeric;

/* Digits that were left out, because they are zeros, count. */
static unsigned digit_at(const Numeric *n, int weight) {
        int i = n->weight - weight;

        return i >= 0 && i < n->n_digits ? load_be16(n->digits + 2 * i) : 0;
}

static bool digits_are_valid(const Numeric *n) {
        for (int i = 0; i < n->n_digits; i++)
                if (load_be16(n->digits + 2 * i) >= NUMERIC_BASE)
                        return false;
        return true;
}

/* True if it has 64 bits. */
static bool as_integer(const Numeric *n, int64_t *ret) {
        int64_t value = 0;

        if (n->scale > 0 || n->weight > 4 || n->n_digits > n->weight + 1)
                return n->scale == 0 && n->n_digits == 0 ? !(*ret = 0) : false;
        for (int w = n->weight; w >= 0; w--)
                if (__builtin_mul_overflow(value, (int64_t) NUMERIC_BASE, &value) ||
                    __builtin_sub_overflow(value, (int64_t) digit_at(n, w), &value))
                        return false;
        if (!n->negative && value == INT64_MIN)
                return false;
        *ret = n->negative ? value : -value;
        return true;
}

static char *put_digits(char *at, unsigned digits, int n) {
        for (int i = n - 1; i >= 0; i--, digits /= 10)
                at[i] = (char) ('0' + digits % 10);
        return at + n;
}

static int write_numeric(const Numeric *n, PgScratch *scratch, PgValue *ret) {
        size_t whole = n->weight >= 0 ? 4 * ((size_t) n->weight + 1) : 1, size = whole + (size_t) n->scale + 8;
        char *start = (char *) reserve(scratch, size), *at = start;

        if (!start)
                return -ENOMEM;
        if (n->negative)
                *at++ = '-';
        if (n->weight < 0)
                *at++ = '0';
        else
                at += sprintf(at, "%u", digit_at(n, n->weight));
        for (int w = n->weight - 1; w >= 0; w--)
                at = put_digits(at, digit_at(n, w), 4);
        if (n->scale > 0)
                *at++ = '.';
        for (int left = n->scale, w = -1; left > 0; left -= 4, w--) {
                at = put_digits(at, digit_at(n, w), 4);
                if (left < 4)
                        at -= 4 - left;
        }
        *at = 0;
        return set_text(start, (size_t) (at - start), ret);
}

static int numeric_of_binary(const uint8_t *bytes, size_t size, PgScratch *scratch, PgValue *ret) {
        Numeric n;
        unsigned sign;
        int64_t integer;

        if (size < NUMERIC_HEAD_SIZE)
                return -EBADMSG;
        sign = load_be16(bytes + 4);
        n = (Numeric) {
                .n_digits = load_be16(bytes),
                .weight = (int16_t) load_be16(bytes + 2),
                .scale = load_be16(bytes + 6),
                .negative = sign == NUMERIC_NEGATIVE,
                .digits = bytes + NUMERIC_HEAD_SIZE,
        };
        if (size != NUMERIC_HEAD_SIZE + 2 * (size_t) n.n_digits)
                return -EBADMSG;
        switch (sign) {
        case NUMERIC_NAN:
                return set_text("NaN", 3, ret);
        case NUMERIC_INFINITY:
                return set_text("Infinity", 8, ret);
        case NUMERIC_MINUS_INFINITY:
                return set_text("-Infinity", 9, ret);
        case NUMERIC_NEGATIVE:
        case 0:
                break;
        default:
                return -EBADMSG;
        }
        if (!digits_are_valid(&n))
                return -EBADMSG;
        if (as_integer(&n, &integer))
                return set_integer(integer, ret);
        return write_numeric(&n, scratch, ret);
}

static int numeric_of_text(const char *text, size_t size, PgValue *ret) {
        bool whole = size > 0 && size < 21 && strspn(text, "-0123456789") == size;

        if (whole && integer_of_text(text, size, ret) == 0)
                return 0;
        return set_text(text, size, ret);
}

/* ---- dates and times ---- */

#define USEC_PER_SECOND INT64_C(1000000)
#define USEC_PER_DAY (INT64_C(86400) * USEC_PER_SECOND)
#define DAYS_TO_2000 INT64_C(730425) /* from the first of March of the year 0 */
#define DAYS_PER_ERA INT64_C(146097) /* 400 years */

static int64_t floor_div(int64_t a, int64_t b) {
        return a / b - (a % b < 0);
}

/* `days` since the first of January 2000, in the Gregorian calendar. Counts from March, so that the leap day is the last one
 * of a year. Year 0 is 1 BC. */
static int64_t civil(int64_t days, int *ret_month, int *ret_day) {
        int64_t z = days + DAYS_TO_2000, era = floor_div(z, DAYS_PER_ERA), of_era = z - era * DAYS_PER_ERA;
        int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
        int64_t of_year = of_era - (365 * year + year / 4 - year / 100), month = (5 * of_year + 2) / 153;

        *ret_day = (int) (of_year - (153 * month + 2) / 5 + 1);
        *ret_month = (int) (month < 10 ? month + 3 : month - 9);
        return year + era * 400 + (*ret_month <= 2);
}

/* *ret_bc: the text ends in " BC". */
static char *put_date(char *at, int64_t days, bool *ret_bc) {
        int month, day;
        int64_t year = civil(days, &month, &day);

        *ret_bc = year <= 0;
        if (year > 0 && year <= 9999)
                at = put_digits(at, (unsigned) year, 4);
        else
                at += sprintf(at, "%04lld", (long long) (year > 0 ? year : 1 - year));
        *at++ = '-';
        at = put_digits(at, (unsigned) month, 2);
        *at++ = '-';
        return put_digits(at, (unsigned) day, 2);
}

static char *put_time(char *at, int64_t usec) {
        unsigned seconds = (unsigned) (usec / USEC_PER_SECOND), fraction = (unsigned) (usec % USEC_PER_SECOND);

        at = put_digits(at, seconds / 3600, 2);
        *at++ = ':';
        at = put_digits(at, seconds / 60 % 60, 2);
        *at++ = ':';
        at = put_digits(at, seconds % 60, 2);
        if (fraction == 0)
                return at;
        *at++ = '.';
        at = put_digits(at, fraction, 6);
        while (at[-1] == '0')
                at--;
        return at;
}

static int end_small(PgScratch *scratch, char *at, bool bc, PgValue *ret) {
        if (bc)
                at = stpcpy(at, " BC");
        *at = 0;
        return set_text(scratch->bytes, (size_t) (at - (char *) scratch->bytes), ret);
}

static int date_of_binary(int32_t days, PgScratch *scratch, PgValue *ret) {
        char *at;
        bool bc;

        if (days == INT32_MAX)
                return set_text("infinity", 8, ret);
        if (days == INT32_MIN)
                return set_text("-infinity", 9, ret);
        at = put_date((char *) scratch->bytes, days, &bc);
        return end_small(scratch, at, bc, ret);
}

static int time_of_binary(int64_t usec, PgScratch *scratch, PgValue *ret) {
        if (usec < 0 || usec > USEC_PER_DAY)
                return -EBADMSG;
        return end_small(scratch, put_time((char *) scratch->bytes, usec), false, ret);
}

static int timestamp_of_binary(int64_t usec, bool with_zone, PgScratch *scratch, PgValue *ret) {
        int64_t days = floor_div(usec, USEC_PER_DAY);
        char *at = (char *) scratch->bytes;
        bool bc;

        if (usec == INT64_MAX)
                return set_text("infinity", 8, ret);
        if (usec == INT64_MIN)
                return set_text("-infinity", 9, ret);
        at = put_date(at, days, &bc);
        *at++ = ' ';
        at = put_time(at, usec - days * USEC_PER_DAY);
        if (with_zone)
                at = stpcpy(at, "+00:00");
        return end_small(scratch, at, bc, ret);
}

/* The session's time zone is UTC, which the server writes as "+00". */
static int timestamptz_of_text(const char *text, size_t size, PgScratch *scratch, PgValue *ret) {
        bool bc = size > 3 && strcmp(text + size - 3, " BC") == 0;
        size_t kept = bc ? size - 3 : size;

        if (kept <= 3 || kept > SMALL_SIZE / 2 || strncmp(text + kept - 3, "+00", 3) != 0)
                return set_text(text, size, ret);
        memcpy(scratch->bytes, text, kept);
        return end_small(scratch, stpcpy((char *) scratch->bytes + kept, ":00"), bc, ret);
}

/* ---- bytes ---- */

static int uuid_of_binary(const uint8_t *bytes, PgScratch *scratch, PgValue *ret) {
        static const char digits[] = "0123456789abcdef";
        char *at = (char *) scratch->bytes;

        for (int i = 0; i < 16; i++) {
                if (i == 4 || i == 6 || i == 8 || i == 10)
                        *at++ = '-';
                *at++ = digits[bytes[i] >> 4];
                *at++ = digits[bytes[i] & 15];
        }
        return end_small(scratch, at, false, ret);
}

static int nibble(uint8_t c) {
        if (c >= '0' && c <= '9')
                return c - '0';
        return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int bytea_of_text(const uint8_t *text, size_t size, PgScratch *scratch, PgValue *ret) {
        uint8_t *at;

        if (size < 2 || size % 2 != 0 || memcmp(text, "\\x", 2) != 0)
                return -EBADMSG;
        at = reserve(scratch, size / 2);
        if (!at)
                return -ENOMEM;
        for (size_t i = 2; i < size; i += 2) {
                int high = nibble(text[i]), low = nibble(text[i + 1]);

                if (high < 0 || low < 0)
                        return -EBADMSG;
                *at++ = (uint8_t) (high << 4 | low);
        }
        *ret = (PgValue) { .type = VALUE_BLOB, .bytes = scratch->bytes, .size = size / 2 - 1 };
        return 0;
}

/* ---- the two forms ---- */

static int decode_binary(PgKind kind, const uint8_t *bytes, size_t size, PgScratch *scratch, PgValue *ret) {
        static const size_t sizes[] = {
                [PG_KIND_BOOL] = 1, [PG_KIND_INT2] = 2, [PG_KIND_INT4] = 4, [PG_KIND_INT8] = 8, [PG_KIND_OID] = 4,
                [PG_KIND_FLOAT4] = 4, [PG_KIND_FLOAT8] = 8, [PG_KIND_UUID] = 16, [PG_KIND_DATE] = 4, [PG_KIND_TIME] = 8,
                [PG_KIND_TIMESTAMP] = 8, [PG_KIND_TIMESTAMPTZ] = 8,
        };

        if (sizes[kind] > 0 && size != sizes[kind])
                return -EBADMSG;
        switch (kind) {
        case PG_KIND_BOOL:
                return set_integer(bytes[0] != 0, ret);
        case PG_KIND_INT2:
                return set_integer((int16_t) load_be16(bytes), ret);
        case PG_KIND_INT4:
                return set_integer((int32_t) load_be32(bytes), ret);
        case PG_KIND_INT8:
                return set_integer((int64_t) load_be64(bytes), ret);
        case PG_KIND_OID:
                return set_integer(load_be32(bytes), ret);
        case PG_KIND_FLOAT4:
                return float4_of_binary(bytes, ret);
        case PG_KIND_FLOAT8:
                return float8_of_binary(bytes, ret);
        case PG_KIND_NUMERIC:
                return numeric_of_binary(bytes, size, scratch, ret);
        case PG_KIND_BYTEA:
                *ret = (PgValue) { .type = VALUE_BLOB, .bytes = bytes, .size = size };
                return 0;
        case PG_KIND_JSONB: /* one byte is the version of the format */
                return size > 0 && bytes[0] == 1 ? set_text(bytes + 1, size - 1, ret) : -EBADMSG;
        case PG_KIND_UUID:
                return uuid_of_binary(bytes, scratch, ret);
        case PG_KIND_DATE:
                return date_of_binary((int32_t) load_be32(bytes), scratch, ret);
        case PG_KIND_TIME:
                return time_of_binary((int64_t) load_be64(bytes), scratch, ret);
        case PG_KIND_TIMESTAMP:
        case PG_KIND_TIMESTAMPTZ:
                return timestamp_of_binary((int64_t) load_be64(bytes), kind == PG_KIND_TIMESTAMPTZ, scratch, ret);
        case PG_KIND_TEXT:
                return set_text(bytes, size, ret);
        case PG_KIND_OTHER: /* never asked for */
                break;
        }
        return -EBADMSG;
}

static int decode_text(PgKind kind, const uint8_t *bytes, size_t size, PgScratch *scratch, PgValue *ret) {
        const char *text = (const char *) bytes;

        switch (kind) {
        case PG_KIND_BOOL:
                return size == 1 ? set_integer(text[0] == 't', ret) : -EBADMSG;
        case PG_KIND_INT2:
        case PG_KIND_INT4:
        case PG_KIND_INT8:
        case PG_KIND_OID:
                return integer_of_text(text, size, ret);
        case PG_KIND_FLOAT4:
        case PG_KIND_FLOAT8:
                return real_of_text(text, size, kind == PG_KIND_FLOAT4, ret);
        case PG_KIND_NUMERIC:
                return numeric_of_text(text, size, ret);
        case PG_KIND_BYTEA:
                return bytea_of_text(bytes, size, scratch, ret);
        case PG_KIND_TIMESTAMPTZ:
                return timestamptz_of_text(text, size, scratch, ret);
        default:
                return set_text(text, size, ret);
        }
}

bool pg_values_in_binary(const PgKind *kinds, unsigned n) {
        unsigned n_texts = 0, n_cheap = 0;
        bool is_dear = false; /* in text form, for both sides */

        for (unsigned i = 0; i < n; i++)
                switch (kinds[i]) {
                case PG_KIND_OTHER:
                        return false;
                case PG_KIND_TEXT:
                        n_texts++;
                        break;
                case PG_KIND_BOOL:
                case PG_KIND_INT2:
                case PG_KIND_INT4:
                case PG_KIND_INT8:
                case PG_KIND_OID:
                        n_cheap++;
                        break;
                default:
                        is_dear = true;
                }
        return is_dear || n_texts <= n_cheap;
}

int pg_value_decode(PgKind kind, bool binary, const uint8_t *bytes, size_t size, PgScratch *scratch, PgValue *ret) {
        if (!reserve(scratch, SMALL_SIZE))
                return -ENOMEM;
        return binary ? decode_binary(kind, bytes, size, scratch, ret) : decode_text(kind, bytes, size, scratch, ret);
}
