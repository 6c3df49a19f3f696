/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reads bound record batches row by row (bound-rows.h). ADBC driver. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client-lib/adbc/adbc-error.h"
#include "client-lib/adbc/arrow-struct.h"
#include "client-lib/adbc/bound-rows.h"
#include "client-lib/adbc/cleanup.h"

#define TEXT_MAX 64
#define SECONDS_PER_DAY 86400

typedef enum BoundKind {
        BOUND_NULL,
        BOUND_BOOL,
        BOUND_INT8,
        BOUND_UINT8,
        BOUND_INT16,
        BOUND_UINT16,
        BOUND_INT32,
        BOUND_UINT32,
        BOUND_INT64,
        BOUND_UINT64,
        BOUND_HALF,
        BOUND_FLOAT,
        BOUND_DOUBLE,
        BOUND_BYTES,       /* 32-bit offsets */
        BOUND_LARGE_BYTES, /* 64-bit offsets */
        BOUND_VIEW,
        BOUND_FIXED,
        BOUND_DATE32,
        BOUND_DATE64,
        BOUND_TIME32,
        BOUND_TIME64,
        BOUND_TIMESTAMP,
} BoundKind;

typedef struct BoundColumn {
        BoundKind kind;
        bool text;          /* of bytes: TEXT, not BLOB */
        bool zoned;         /* of timestamps */
        int64_t per_second; /* of times and timestamps: the unit */
        size_t width;       /* BOUND_FIXED */
        BoundKind index;    /* of a dictionary: the kind of its indices */
        bool is_dictionary; /* `kind` is that of the dictionary's values */
        const struct ArrowArray *array;
        int64_t offset;         /* of the record batch in the array */
        char written[TEXT_MAX]; /* a date or time */
} BoundColumn;

struct BoundRows {
        struct ArrowArrayStream stream;
        struct ArrowSchema schema;
        struct ArrowArray batch;
        int64_t at;     /* the next row of the batch */
        int64_t n_rows; /* taken so far */
        bool stays;     /* see bound_rows_stay() */
        size_t n_columns;
        BoundColumn *columns;
        sqlipc_parameter *values;
};

/* ---- Types --------------------------------------------------------------------------------------------------------- */

typedef struct FormatRow {
        const char *format;
        BoundKind kind;
        bool text;
} FormatRow;

static const FormatRow formats[] = {
        { "n", BOUND_NULL, false },       { "b", BOUND_BOOL, false },        { "c", BOUND_INT8, false },
        { "C", BOUND_UINT8, false },      { "s", BOUND_INT16, false },       { "S", BOUND_UINT16, false },
        { "i", BOUND_INT32, false },      { "I", BOUND_UINT32, false },      { "l", BOUND_INT64, false },
        { "L", BOUND_UINT64, false },     { "e", BOUND_HALF, false },        { "f", BOUND_FLOAT, false },
        { "g", BOUND_DOUBLE, false },     { "u", BOUND_BYTES, true },        { "z", BOUND_BYTES, false },
        { "U", BOUND_LARGE_BYTES, true }, { "Z", BOUND_LARGE_BYTES, false }, { "vu", BOUND_VIEW, true },
        { "vz", BOUND_VIEW, false },      { "tdD", BOUND_DATE32, true },     { "tdm", BOUND_DATE64, true },
        { "tts", BOUND_TIME32, true },    { "ttm", BOUND_TIME32, true },     { "ttu", BOUND_TIME64, true },
        { "ttn", BOUND_TIME64, true },
};

static int64_t units_per_second(char unit) {
        switch (unit) {
        case 'm':
                return 1000;
        case 'u':
                return 1000000;
        case 'n':
                return 1000000000;
        default:
                return 1;
        }
}

/* Returns false if the format is none that SQLite has a place for. */
static bool read_format(BoundColumn *column, const char *format) {
        for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
                if (strcmp(formats[i].format, format) == 0) {
                        column->kind = formats[i].kind;
                        column->text = formats[i].text;
                        column->per_second = format[0] == 't' ? units_per_second(format[2]) : 1;
                        return true;
                }
        if (strncmp(format, "w:", 2) == 0) {
                column->kind = BOUND_FIXED;
                column->width = strtoul(format + 2, NULL, 10);
                return true;
        }
        if (strncmp(format, "ts", 2) == 0 && format[2] && format[3] == ':') {
                column->kind = BOUND_TIMESTAMP;
                column->text = true;
                column->per_second = units_per_second(format[2]);
                column->zoned = format[4] != 0;
                return true;
        }
        return false;
}

static AdbcStatusCode read_type(BoundColumn *column, const struct ArrowSchema *schema, struct AdbcError *error) {
        if (schema->dictionary) {
                column->is_dictionary =
                        read_format(column, schema->format) && column->kind >= BOUND_INT8 && column->kind <= BOUND_UINT64;
                column->index = column->kind;
                if (column->is_dictionary && !schema->dictionary->dictionary &&
                    read_format(column, schema->dictionary->format))
                        return ADBC_STATUS_OK;
        } else if (read_format(column, schema->format)) {
                return ADBC_STATUS_OK;
        }
        return adbc_error_set(error, ADBC_STATUS_NOT_IMPLEMENTED, "0A000",
                              "Column \"%s\" has the Arrow type \"%s\", for which SQLite has no type. Cast it first.",
                              schema->name ? schema->name : "", schema->format);
}

const char *bound_rows_declaration(const BoundRows *rows, size_t i) {
        const BoundColumn *column = &rows->columns[i];

        if (column->kind == BOUND_NULL)
                return "";
        if (column->kind <= BOUND_UINT64)
                return "INTEGER";
        if (column->kind <= BOUND_DOUBLE)
                return "REAL";
        return column->text ? "TEXT" : "BLOB";
}

/* ---- Values -------------------------------------------------------------------------------------------------------- */

static bool bit(const void *bits, int64_t i) { return ((const uint8_t *) bits)[i / 8] >> i % 8 & 1; }

/* Returns the integer at `i` of an array. A uint64 is returned as its bits. */
static int64_t integer_at(BoundKind kind, const void *values, int64_t i) {
        switch (kind) {
        case BOUND_BOOL:
                return bit(values, i);
        case BOUND_INT8:
                return ((const int8_t *) values)[i];
        case BOUND_UINT8:
                return ((const uint8_t *) values)[i];
        case BOUND_INT16:
                return ((const int16_t *) values)[i];
        case BOUND_UINT16:
                return ((const uint16_t *) values)[i];
        case BOUND_INT32:
        case BOUND_DATE32:
        case BOUND_TIME32:
                return ((const int32_t *) values)[i];
        case BOUND_UINT32:
                return ((const uint32_t *) values)[i];
        default:
                return ((const int64_t *) values)[i];
        }
}

/* Converts IEEE 754's binary16. */
static double half(uint16_t bits) {
        int exponent = bits >> 10 & 0x1f;
        double fraction = bits & 0x3ff, value;

        if (exponent == 0x1f)
                value = fraction > 0 ? __builtin_nan("") : __builtin_inf();
        else if (exponent == 0)
                value = fraction / (1 << 24);
        else
                value = (1 + fraction / 1024) * __builtin_ldexp(1, exponent - 15);
        return bits & 0x8000 ? -value : value;
}

static double real_at(BoundKind kind, const void *values, int64_t i) {
        if (kind == BOUND_HALF)
                return half(((const uint16_t *) values)[i]);
        if (kind == BOUND_FLOAT)
                return ((const float *) values)[i];
        return ((const double *) values)[i];
}

/* A view has 16 bytes: the size, then up to 12 bytes of text; or four bytes of it, the number of a buffer, and an offset. */
static const void *view_at(const struct ArrowArray *array, int64_t i, size_t *ret_size) {
        const int32_t *view = (const int32_t *) array->buffers[1] + 4 * i;

        *ret_size = (size_t) view[0];
        if (view[0] <= 12)
                return view + 1;
        return (const uint8_t *) array->buffers[2 + view[2]] + view[3];
}

static const void *bytes_at(const BoundColumn *column, const struct ArrowArray *array, int64_t i, size_t *ret_size) {
        const void *offsets = array->buffers[1];
        int64_t from, to;

        if (column->kind == BOUND_VIEW)
                return view_at(array, i, ret_size);
        if (column->kind == BOUND_FIXED) {
                *ret_size = column->width;
                return (const uint8_t *) offsets + (size_t) i * column->width;
        }
        from = column->kind == BOUND_BYTES ? ((const int32_t *) offsets)[i] : ((const int64_t *) offsets)[i];
        to = column->kind == BOUND_BYTES ? ((const int32_t *) offsets)[i + 1] : ((const int64_t *) offsets)[i + 1];
        *ret_size = (size_t) (to - from);
        return (const uint8_t *) array->buffers[2] + from;
}

/* Writes the fraction of a second with the digits of its unit. Returns the number of characters. */
static int write_fraction(char *to, size_t size, int64_t fraction, int64_t per_second) {
        int digits = per_second == 1000 ? 3 : per_second == 1000000 ? 6 : 9;

        return per_second == 1 ? 0 : snprintf(to, size, ".%0*" PRId64, digits, fraction);
}

/* Writes `value` units since 1970, with the date, the time of day, or both. Returns the number of characters, or -1 if the
 * year has more than four digits. */
static int write_time(BoundColumn *column, int64_t value, int64_t per_second, bool date, bool time_of_day) {
        int64_t fraction = (value % per_second + per_second) % per_second;
        time_t seconds = (time_t) ((value - fraction) / per_second);
        char *to = column->written;
        struct tm tm;
        int n = 0;

        if (!gmtime_r(&seconds, &tm) || tm.tm_year < -1900 || tm.tm_year > 8099)
                return -1;
        if (date)
                n = snprintf(to, TEXT_MAX, "%04d-%02d-%02d", tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday);
        if (time_of_day) {
                n += snprintf(to + n, TEXT_MAX - (size_t) n, "%s%02d:%02d:%02d", date ? " " : "", tm.tm_hour, tm.tm_min,
                              tm.tm_sec);
                n += write_fraction(to + n, TEXT_MAX - (size_t) n, fraction, per_second);
        }
        return n;
}

static int write_value(BoundColumn *column, int64_t value) {
        int n;

        switch (column->kind) {
        case BOUND_DATE32:
                return write_time(column, value * SECONDS_PER_DAY, 1, true, false);
        case BOUND_DATE64:
                return write_time(column, value, 1000, true, false);
        case BOUND_TIME32:
        case BOUND_TIME64:
                return write_time(column, value, column->per_second, false, true);
        default:
                n = write_time(column, value, column->per_second, true, true);
                if (n >= 0 && column->zoned)
                        n += snprintf(column->written + n, TEXT_MAX - (size_t) n, "+00:00");
                return n;
        }
}

/* Returns false if SQLite cannot hold the value. */
static bool read_value(BoundColumn *column, const struct ArrowArray *array, int64_t i, sqlipc_parameter *value) {
        int n;

        if (column->kind <= BOUND_UINT64) {
                value->type = SQLIPC_INTEGER;
                value->integer = integer_at(column->kind, array->buffers[1], i);
                return column->kind != BOUND_UINT64 || value->integer >= 0;
        }
        if (column->kind <= BOUND_DOUBLE) {
                value->type = SQLIPC_REAL;
                value->real = real_at(column->kind, array->buffers[1], i);
                return true;
        }
        value->type = column->text ? SQLIPC_TEXT : SQLIPC_BLOB;
        if (column->kind <= BOUND_FIXED) {
                value->bytes = bytes_at(column, array, i, &value->size);
                if (value->size == 0)
                        value->bytes = column->written; /* NULL would be SQL's NULL for text */
                return true;
        }
        n = write_value(column, integer_at(column->kind, array->buffers[1], i));
        value->bytes = column->written;
        value->size = n < 0 ? 0 : (size_t) n;
        return n >= 0;
}

static bool is_null(BoundKind kind, const struct ArrowArray *array, int64_t i) {
        return kind == BOUND_NULL || (array->null_count != 0 && array->buffers[0] && !bit(array->buffers[0], i));
}

static bool read_column(BoundColumn *column, int64_t row, sqlipc_parameter *value) {
        const struct ArrowArray *array = column->array;
        int64_t i = column->offset + array->offset + row;

        *value = (sqlipc_parameter) { .struct_size = sizeof *value, .name = value->name, .type = SQLIPC_NULL };
        if (is_null(column->is_dictionary ? column->index : column->kind, array, i))
                return true;
        if (column->is_dictionary) {
                i = integer_at(column->index, array->buffers[1], i);
                array = array->dictionary;
                i += array->offset;
                if (is_null(column->kind, array, i))
                        return true;
        }
        return read_value(column, array, i, value);
}

/* ---- Batches ------------------------------------------------------------------------------------------------------- */

static AdbcStatusCode stream_error(BoundRows *rows, int code, struct AdbcError *error) {
        const char *message = rows->stream.get_last_error(&rows->stream);

        return adbc_error_set(error, ADBC_STATUS_INVALID_ARGUMENT, "HY000", "The bound stream failed: %s",
                              message ? message : strerror(code));
}

static AdbcStatusCode read_schema(BoundRows *rows, bool by_name, struct AdbcError *error) {
        int code = rows->stream.get_schema(&rows->stream, &rows->schema);

        if (code != 0) {
                rows->schema.release = NULL;
                return stream_error(rows, code, error);
        }
        if (strcmp(rows->schema.format, "+s") != 0)
                return adbc_error_set(error, ADBC_STATUS_INVALID_ARGUMENT, "HY000", "Bound data must be record batches");
        rows->n_columns = (size_t) rows->schema.n_children;
        rows->columns = calloc(rows->n_columns + 1, sizeof *rows->columns);
        rows->values = calloc(rows->n_columns + 1, sizeof *rows->values);
        if (!rows->columns || !rows->values)
                return adbc_error_memory(error);
        for (size_t i = 0; i < rows->n_columns; i++) {
                AdbcStatusCode status = read_type(&rows->columns[i], rows->schema.children[i], error);

                if (status != ADBC_STATUS_OK)
                        return status;
                if (by_name)
                        rows->values[i].name = rows->schema.children[i]->name;
        }
        return ADBC_STATUS_OK;
}

AdbcStatusCode bound_rows_new(struct ArrowArrayStream *stream, bool by_name, BoundRows **ret_rows, struct AdbcError *error) {
        _cleanup_(bound_rows_freep) BoundRows *rows = calloc(1, sizeof *rows);
        AdbcStatusCode status;

        if (!rows) {
                arrow_struct_release_stream(stream);
                return adbc_error_memory(error);
        }
        rows->stream = *stream;
        stream->release = NULL;
        status = read_schema(rows, by_name, error);
        if (status == ADBC_STATUS_OK)
                *ret_rows = steal(rows);
        return status;
}

BoundRows *bound_rows_free(BoundRows *rows) {
        if (!rows)
                return NULL;
        arrow_struct_release_array(&rows->batch);
        arrow_struct_release_schema(&rows->schema);
        arrow_struct_release_stream(&rows->stream);
        free(rows->columns);
        free(rows->values);
        free(rows);
        return NULL;
}

void bound_rows_freep(BoundRows **rows) { *rows = bound_rows_free(*rows); }

size_t bound_rows_n_columns(const BoundRows *rows) { return rows->n_columns; }

const char *bound_rows_name(const BoundRows *rows, size_t column) {
        const char *name = rows->schema.children[column]->name;

        return name ? name : "";
}

/* Goes to the next batch that has rows; there is none if `batch` is released afterwards. */
static AdbcStatusCode next_batch(BoundRows *rows, struct AdbcError *error) {
        do {
                int code;

                arrow_struct_release_array(&rows->batch);
                code = rows->stream.get_next(&rows->stream, &rows->batch);
                if (code != 0) {
                        rows->batch.release = NULL;
                        return stream_error(rows, code, error);
                }
        } while (rows->batch.release && rows->batch.length == 0);
        rows->at = 0;
        for (size_t i = 0; rows->batch.release && i < rows->n_columns; i++) {
                rows->columns[i].array = rows->batch.children[i];
                rows->columns[i].offset = rows->batch.offset;
        }
        return ADBC_STATUS_OK;
}

AdbcStatusCode bound_rows_next(BoundRows *rows, const sqlipc_parameter **ret_values, struct AdbcError *error) {
        if (rows->stays && rows->batch.release && rows->at == rows->batch.length) {
                *ret_values = NULL;
                return ADBC_STATUS_OK;
        }
        if (!rows->batch.release || rows->at == rows->batch.length) {
                AdbcStatusCode status = next_batch(rows, error);

                if (status != ADBC_STATUS_OK)
                        return status;
        }
        if (!rows->batch.release) {
                *ret_values = NULL;
                return ADBC_STATUS_OK;
        }
        for (size_t i = 0; i < rows->n_columns; i++)
                if (!read_column(&rows->columns[i], rows->at, &rows->values[i])) {
                        (void) adbc_error_set(error, ADBC_STATUS_INVALID_DATA, "22003",
                                              "Row %" PRId64
                                              ", column \"%s\" of the bound data: SQLite cannot hold this value",
                                              rows->n_rows + 1, bound_rows_name(rows, i));
                        adbc_error_add_number(error, "sqlipc.row", rows->n_rows + 1);
                        adbc_error_add(error, "sqlipc.column", bound_rows_name(rows, i));
                        return ADBC_STATUS_INVALID_DATA;
                }
        rows->at++;
        rows->n_rows++;
        *ret_values = rows->values;
        return ADBC_STATUS_OK;
}

/* ---- Giving back --------------------------------------------------------------------------------------------------- */

/* A batch that was read, and the stream that it came from. */
typedef struct GivenBack {
        struct ArrowArray batch; /* released: taken */
        struct ArrowArrayStream rest;
} GivenBack;

static int get_schema(struct ArrowArrayStream *stream, struct ArrowSchema *ret_schema) {
        GivenBack *g = stream->private_data;

        return g->rest.get_schema(&g->rest, ret_schema);
}

static int get_next(struct ArrowArrayStream *stream, struct ArrowArray *ret_array) {
        GivenBack *g = stream->private_data;

        if (!g->batch.release)
                return g->rest.get_next(&g->rest, ret_array);
        *ret_array = g->batch;
        g->batch.release = NULL;
        return 0;
}

static const char *get_last_error(struct ArrowArrayStream *stream) {
        GivenBack *g = stream->private_data;

        return g->rest.get_last_error(&g->rest);
}

static void release_given_back(struct ArrowArrayStream *stream) {
        GivenBack *g = stream->private_data;

        arrow_struct_release_array(&g->batch);
        arrow_struct_release_stream(&g->rest);
        free(g);
        stream->release = NULL;
}

void bound_rows_stay(BoundRows *rows) { rows->stays = true; }

int bound_rows_give_back(BoundRows *rows, struct ArrowArrayStream *ret_stream) {
        GivenBack *g = malloc(sizeof *g);

        if (g) {
                *g = (GivenBack) { .batch = rows->batch, .rest = rows->stream };
                rows->batch.release = NULL;
                rows->stream.release = NULL;
                *ret_stream = (struct ArrowArrayStream) {
                        .get_schema = get_schema,
                        .get_next = get_next,
                        .get_last_error = get_last_error,
                        .release = release_given_back,
                        .private_data = g,
                };
        }
        (void) bound_rows_free(rows);
        return g ? 0 : -ENOMEM;
}
