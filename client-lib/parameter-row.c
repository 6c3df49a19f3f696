/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Parameters as one row in the page format (parameter-row.h). Library. */
#include "client-lib/parameter-row.h"
#include "client-lib/parameter.h"

/* Write positions in the row. */
typedef struct RowWriter {
        uint8_t *types, *ends, *data, *next;
} RowWriter;

/* The size of a value in a row, in bytes. */
static size_t value_size(const Parameter *p) {
        switch (p->type) {
        case SQLIPC_INTEGER:
        case SQLIPC_REAL:
                return 8;
        case SQLIPC_TEXT:
                return p->size + 1;
        case SQLIPC_BLOB:
                return p->size;
        case SQLIPC_NULL:
                break;
        }
        return 0;
}

static int check_parameter(const Parameter *p, size_t size_max) {
        if (p->type < SQLIPC_INTEGER || p->type > SQLIPC_NULL)
                return -EINVAL;
        if (p->name && !parameter_is_bus_string(p->name, strlen(p->name), NULL))
                return -EINVAL;
        if (p->type != SQLIPC_TEXT && p->type != SQLIPC_BLOB)
                return 0;
        if (p->size > 0 && !p->bytes)
                return -EINVAL;
        return p->size > size_max ? -E2BIG : 0;
}

int parameter_row_init(ParameterRow *row, const Parameter *parameters, size_t n_parameters, size_t n_positional_min,
                       size_t size_max) {
        int r;

        *row = (ParameterRow) { .parameters = parameters, .n_parameters = n_parameters };
        if (n_parameters > N_PARAMETERS_MAX)
                return -EOVERFLOW;
        for (size_t i = 0; i < n_parameters; i++) {
                const Parameter *p = &parameters[i];

                r = check_parameter(p, size_max);
                if (r < 0)
                        return r;
                row->size += value_size(p) + (p->name ? strlen(p->name) + 1 : 0);
                if (row->size > size_max)
                        return -E2BIG;
                row->n_named += p->name != NULL;
                row->n_positional += !p->name;
        }
        if (row->n_positional < n_positional_min)
                row->n_positional = (unsigned) n_positional_min;
        row->size += ROW_HEAD_SIZE((size_t) row->n_positional + 2 * (size_t) row->n_named);
        return row->size > size_max ? -E2BIG : 0;
}

static void write_bytes(RowWriter *w, sqlipc_type type, const void *bytes, size_t size) {
        if (size > 0)
                memcpy(w->next, bytes, size);
        w->next += size;
        if (type == SQLIPC_TEXT)
                *w->next++ = 0;
}

static void write_end(RowWriter *w, sqlipc_type type) {
        *w->types++ = (uint8_t) type;
        store_le32(w->ends, (uint32_t) (w->next - w->data));
        w->ends += 4;
}

static void write_value(RowWriter *w, const Parameter *p) {
        switch (p->type) {
        case SQLIPC_INTEGER:
                store_le64(w->next, (uint64_t) p->integer);
                w->next += 8;
                break;
        case SQLIPC_REAL:
                store_le_double(w->next, p->real);
                w->next += 8;
                break;
        case SQLIPC_TEXT:
        case SQLIPC_BLOB:
                write_bytes(w, p->type, p->bytes, p->size);
                break;
        case SQLIPC_NULL:
                break;
        }
        write_end(w, p->type);
}

void parameter_row_write(const ParameterRow *row, uint8_t *at) {
        size_t n = (size_t) row->n_positional + 2 * (size_t) row->n_named;
        RowWriter w = { .types = at, .ends = at + n, .data = at + ROW_HEAD_SIZE(n), .next = at + ROW_HEAD_SIZE(n) };
        unsigned n_positional = 0;

        for (size_t i = 0; i < row->n_parameters; i++)
                if (!row->parameters[i].name) {
                        write_value(&w, &row->parameters[i]);
                        n_positional++;
                }
        for (; n_positional < row->n_positional; n_positional++)
                write_end(&w, SQLIPC_NULL);
        for (size_t i = 0; i < row->n_parameters; i++)
                if (row->parameters[i].name) {
                        write_bytes(&w, SQLIPC_TEXT, row->parameters[i].name, strlen(row->parameters[i].name));
                        write_end(&w, SQLIPC_TEXT);
                        write_value(&w, &row->parameters[i]);
                }
}

static Parameter read_value(const uint8_t *row, size_t n, size_t i) {
        const uint8_t *ends = row + n, *data = row + ROW_HEAD_SIZE(n);
        uint32_t start = i == 0 ? 0 : load_le32(ends + 4 * (i - 1)), end = load_le32(ends + 4 * i);
        Parameter p = { .type = (sqlipc_type) row[i], .bytes = data + start, .size = end - start };

        if (p.type == SQLIPC_INTEGER)
                p.integer = (int64_t) load_le64(data + start);
        else if (p.type == SQLIPC_REAL)
                p.real = load_le_double(data + start);
        else if (p.type == SQLIPC_TEXT)
                p.size--;
        return p;
}

int parameter_row_read(const uint8_t *row, unsigned n_positional, unsigned n_named, Parameter **ret) {
        size_t n = (size_t) n_positional + 2 * (size_t) n_named;
        Parameter *parameters = calloc((size_t) n_positional + n_named + 1, sizeof *parameters);

        if (!parameters)
                return -ENOMEM;
        for (size_t i = 0; i < n_positional; i++)
                parameters[i] = read_value(row, n, i);
        for (size_t i = 0; i < n_named; i++) {
                size_t at = n_positional + 2 * i;

                parameters[n_positional + i] = read_value(row, n, at + 1);
                parameters[n_positional + i].name = read_value(row, n, at).bytes;
        }
        *ret = parameters;
        return 0;
}
