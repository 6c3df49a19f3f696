/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The options that objects share (driver-settings.h). ADBC driver. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client-lib/adbc/adbc-error.h"
#include "client-lib/adbc/cleanup.h"
#include "client-lib/adbc/driver-settings.h"

/* Buffers of text have 32-bit offsets: what is in a batch, and the largest row after that, must stay below 2 GiB. */
#define BATCH_BYTES_MAX ((int64_t) 512 << 20)
#define ROWS_MAX ((int64_t) 1 << 24)
#define SECONDS_MAX 1e9

typedef enum OptionKind { OPTION_COUNT, OPTION_SECONDS, OPTION_WORD } OptionKind;

typedef struct SettingRow {
        const char *key;
        OptionKind kind;
        size_t offset;     /* of an int64_t, or a double for seconds */
        int64_t max;       /* of a count, which is at least 1 */
        const char *words; /* of an OPTION_WORD, in the order of its values: "a|b" */
} SettingRow;

static const SettingRow rows[] = {
        { "adbc.sqlipc.batch_rows", OPTION_COUNT, offsetof(DriverSettings, batch_rows), .max = ROWS_MAX },
        { "adbc.sqlipc.batch_bytes", OPTION_COUNT, offsetof(DriverSettings, batch_bytes), .max = BATCH_BYTES_MAX },
        { "adbc.sqlipc.infer_rows", OPTION_COUNT, offsetof(DriverSettings, infer_rows), .max = ROWS_MAX },
        { "adbc.sqlipc.types", OPTION_WORD, offsetof(DriverSettings, types), .words = "auto|declared|values" },
        { "adbc.sqlipc.text", OPTION_WORD, offsetof(DriverSettings, text), .words = "utf8|binary" },
        { "adbc.sqlipc.transaction", OPTION_WORD, offsetof(DriverSettings, transaction), .words = "deferred|read|write" },
        { "adbc.sqlipc.timeout", OPTION_SECONDS, offsetof(DriverSettings, timeout) },
        { "adbc.sqlipc.run_timeout", OPTION_SECONDS, offsetof(DriverSettings, run_timeout) },
};

static const SettingRow *find(const char *key) {
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
                if (strcmp(rows[i].key, key) == 0)
                        return &rows[i];
        return NULL;
}

/* Returns the number of `value` in `words`, or -1. */
static int64_t index_of_word(const char *words, const char *value) {
        size_t n = strlen(value);

        for (int64_t i = 0;; i++) {
                size_t size = strcspn(words, "|");

                if (size == n && strncmp(words, value, n) == 0)
                        return i;
                if (words[size] == 0)
                        return -1;
                words += size + 1;
        }
}

static bool parse_int(const char *text, int64_t *ret) {
        char *end;
        long long value;

        errno = 0;
        value = strtoll(text, &end, 10);
        if (errno != 0 || end == text || *end != 0)
                return false;
        *ret = value;
        return true;
}

static bool parse_double(const char *text, double *ret) {
        char *end;
        double value;

        errno = 0;
        value = strtod(text, &end);
        if (errno != 0 || end == text || *end != 0 || isnan(value))
                return false;
        *ret = value;
        return true;
}

static AdbcStatusCode set_count(const SettingRow *row, int64_t *ret, const char *value, struct AdbcError *error) {
        int64_t number;

        if (!parse_int(value, &number) || number < 1 || number > row->max)
                return adbc_error_set(error, ADBC_STATUS_INVALID_ARGUMENT, "HY024",
                                      "%s must be a number from 1 to %" PRId64 ", not \"%s\"", row->key, row->max, value);
        *ret = number;
        return ADBC_STATUS_OK;
}

static AdbcStatusCode set_seconds(const SettingRow *row, double *ret, const char *value, struct AdbcError *error) {
        double number;

        if (!parse_double(value, &number) || number < 0 || number > SECONDS_MAX)
                return adbc_error_set(error, ADBC_STATUS_INVALID_ARGUMENT, "HY024",
                                      "%s must be a number of seconds from 0, which means no limit, to %.0f, not \"%s\"",
                                      row->key, SECONDS_MAX, value);
        *ret = number;
        return ADBC_STATUS_OK;
}

static AdbcStatusCode set_word(const SettingRow *row, int64_t *ret, const char *value, struct AdbcError *error) {
        int64_t i = index_of_word(row->words, value);

        if (i < 0)
                return adbc_error_set(error, ADBC_STATUS_INVALID_ARGUMENT, "HY024", "%s must be one of %s, not \"%s\"",
                                      row->key, row->words, value);
        *ret = i;
        return ADBC_STATUS_OK;
}

AdbcStatusCode driver_settings_set(DriverSettings *settings, const char *key, const char *value, struct AdbcError *error) {
        const SettingRow *row = find(key);
        void *field = row ? (char *) settings + row->offset : NULL;

        if (!row)
                return driver_settings_unknown(key, error);
        switch (row->kind) {
        case OPTION_COUNT:
                return set_count(row, field, value, error);
        case OPTION_SECONDS:
                return set_seconds(row, field, value, error);
        case OPTION_WORD:
                break;
        }
        return set_word(row, field, value, error);
}

AdbcStatusCode driver_settings_get(const DriverSettings *settings, const char *key, char **ret_value,
                                   struct AdbcError *error) {
        const SettingRow *row = find(key);
        const char *word;
        int64_t number;
        int r;

        if (!row)
                return driver_settings_not_found(key, error);
        if (row->kind == OPTION_SECONDS) {
                r = asprintf(ret_value, "%.17g", *(const double *) ((const char *) settings + row->offset));
                return r < 0 ? adbc_error_memory(error) : ADBC_STATUS_OK;
        }
        number = *(const int64_t *) ((const char *) settings + row->offset);
        if (row->kind == OPTION_COUNT) {
                r = asprintf(ret_value, "%" PRId64, number);
                return r < 0 ? adbc_error_memory(error) : ADBC_STATUS_OK;
        }
        for (word = row->words; number > 0; number--)
                word += strcspn(word, "|") + 1;
        r = asprintf(ret_value, "%.*s", (int) strcspn(word, "|"), word);
        return r < 0 ? adbc_error_memory(error) : ADBC_STATUS_OK;
}

uint64_t driver_settings_usec(double seconds) {
        uint64_t usec = (uint64_t) (seconds * 1e6);

        if (seconds == 0)
                return UINT64_MAX;
        return usec > 0 ? usec : 1;
}

/* ---- Options of any object ----------------------------------------------------------------------------------------- */

AdbcStatusCode driver_settings_set_bytes(OptionSetter set, void *object, const char *key, const uint8_t *value, size_t size,
                                         struct AdbcError *error) {
        _cleanup_free_ char *text = NULL;

        if (size > 0 && memchr(value, 0, size))
                return adbc_error_set(error, ADBC_STATUS_INVALID_ARGUMENT, "HY024", "The value of %s contains a NUL byte",
                                      key);
        text = strndup((const char *) value, size);
        return text ? set(object, key, text, error) : adbc_error_memory(error);
}

AdbcStatusCode driver_settings_set_int(OptionSetter set, void *object, const char *key, int64_t value,
                                       struct AdbcError *error) {
        char text[24];

        (void) snprintf(text, sizeof text, "%" PRId64, value);
        return set(object, key, text, error);
}

AdbcStatusCode driver_settings_set_double(OptionSetter set, void *object, const char *key, double value,
                                          struct AdbcError *error) {
        char text[32];

        (void) snprintf(text, sizeof text, "%.17g", value);
        return set(object, key, text, error);
}

static AdbcStatusCode get_bytes(OptionGetter get, void *object, const char *key, void *value, size_t *length,
                                size_t terminator, struct AdbcError *error) {
        _cleanup_free_ char *text = NULL;
        AdbcStatusCode status = get(object, key, &text, error);
        size_t size;

        if (status != ADBC_STATUS_OK)
                return status;
        size = strlen(text) + terminator;
        if (size > 0 && size <= *length)
                memcpy(value, text, size);
        *length = size;
        return ADBC_STATUS_OK;
}

AdbcStatusCode driver_settings_get_string(OptionGetter get, void *object, const char *key, char *value, size_t *length,
                                          struct AdbcError *error) {
        return get_bytes(get, object, key, value, length, 1, error);
}

AdbcStatusCode driver_settings_get_bytes(OptionGetter get, void *object, const char *key, uint8_t *value, size_t *length,
                                         struct AdbcError *error) {
        return get_bytes(get, object, key, value, length, 0, error);
}

AdbcStatusCode driver_settings_get_int(OptionGetter get, void *object, const char *key, int64_t *ret_value,
                                       struct AdbcError *error) {
        _cleanup_free_ char *text = NULL;
        AdbcStatusCode status = get(object, key, &text, error);

        if (status != ADBC_STATUS_OK)
                return status;
        if (!parse_int(text, ret_value))
                return adbc_error_set(error, ADBC_STATUS_NOT_FOUND, "HY092", "%s is not an integer", key);
        return ADBC_STATUS_OK;
}

AdbcStatusCode driver_settings_get_double(OptionGetter get, void *object, const char *key, double *ret_value,
                                          struct AdbcError *error) {
        _cleanup_free_ char *text = NULL;
        AdbcStatusCode status = get(object, key, &text, error);

        if (status != ADBC_STATUS_OK)
                return status;
        if (!parse_double(text, ret_value))
                return adbc_error_set(error, ADBC_STATUS_NOT_FOUND, "HY092", "%s is not a number", key);
        return ADBC_STATUS_OK;
}

AdbcStatusCode driver_settings_parse_bool(const char *key, const char *value, int *ret_value, struct AdbcError *error) {
        int64_t i = index_of_word("false|true", value);

        if (i < 0)
                return adbc_error_set(error, ADBC_STATUS_INVALID_ARGUMENT, "HY024", "%s must be true or false, not \"%s\"",
                                      key, value);
        *ret_value = (int) i;
        return ADBC_STATUS_OK;
}

AdbcStatusCode driver_settings_no_value(const char *key, struct AdbcError *error) {
        return adbc_error_set(error, ADBC_STATUS_INVALID_ARGUMENT, "HY009", "The option %s has no value", key);
}

AdbcStatusCode driver_settings_unknown(const char *key, struct AdbcError *error) {
        return adbc_error_set(error, ADBC_STATUS_NOT_IMPLEMENTED, "HY092", "There is no option \"%s\" here", key);
}

AdbcStatusCode driver_settings_not_found(const char *key, struct AdbcError *error) {
        return adbc_error_set(error, ADBC_STATUS_NOT_FOUND, "HY092", "There is no option \"%s\" here", key);
}

AdbcStatusCode driver_settings_copy(const char *value, char **ret_value, struct AdbcError *error) {
        *ret_value = strdup(value);
        return *ret_value ? ADBC_STATUS_OK : adbc_error_memory(error);
}
