/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The rows of a live query's result (live-rows.h). Library. Pure. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client-lib/live-rows.h"

/* ---- Values ------------------------------------------------------------------------------------------------------- */

static bool has_bytes(const sqlipc_value *value) {
        return value->type == SQLIPC_TEXT || value->type == SQLIPC_BLOB;
}

/* The bits of a number: two zeros that SQLite takes for equal may differ, and a value always equals itself. */
static uint64_t bits_of(const sqlipc_value *value) {
        uint64_t bits = 0;

        if (value->type == SQLIPC_INTEGER)
                memcpy(&bits, &value->as.integer, sizeof bits);
        else if (value->type == SQLIPC_REAL)
                memcpy(&bits, &value->as.real, sizeof bits);
        return bits;
}

static bool equals(const sqlipc_value *a, const sqlipc_value *b) {
        if (a->type != b->type || a->size != b->size)
                return false;
        if (!has_bytes(a))
                return bits_of(a) == bits_of(b);
        return a->size == 0 || memcmp(a->as.blob, b->as.blob, a->size) == 0;
}

/* FNV-1a. Someone who chooses keys of one hash can make the comparison slow, but only that of his own rows' readers. */
static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t size) {
        const uint8_t *at = bytes;

        for (size_t i = 0; i < size; i++)
                hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
        return hash;
}

static uint64_t hash_value(uint64_t hash, const sqlipc_value *value) {
        uint64_t bits = bits_of(value);
        uint8_t type = (uint8_t) value->type;

        hash = hash_bytes(hash, &type, 1);
        return has_bytes(value) ? hash_bytes(hash, value->as.blob, value->size) : hash_bytes(hash, &bits, sizeof bits);
}

static uint64_t hash_key(const LiveIndex *index, const sqlipc_value *values) {
        uint64_t hash = UINT64_C(0xcbf29ce484222325);

        for (size_t i = 0; i < index->n_key_columns; i++)
                hash = hash_value(hash, &values[index->key_columns[i]]);
        return hash ^ hash >> 32;
}

/* ---- The rows before ---------------------------------------------------------------------------------------------- */

static size_t *bucket_of(LiveIndex *index, uint64_t hash) {
        return &index->buckets[hash & (index->n_buckets - 1)];
}

int live_rows_index_init(LiveIndex *index, const LiveRows *before, unsigned n_columns, const unsigned *key_columns,
                    size_t n_key_columns) {
        size_t n_buckets = 16;

        *index = (LiveIndex) { .key_columns = key_columns, .n_key_columns = n_key_columns, .before = before };
        if (before->n == 0 || before->n_columns != n_columns)
                return 0;
        while (n_buckets < before->n)
                n_buckets *= 2;
        index->buckets = calloc(n_buckets, sizeof *index->buckets);
        index->next = calloc(before->n, sizeof *index->next);
        if (!index->buckets || !index->next) {
                live_rows_index_done(index);
                return -ENOMEM;
        }
        index->n_buckets = n_buckets;
        for (size_t i = before->n; i-- > 0;) { /* so that the first row is the first in its list */
                size_t *bucket = bucket_of(index, before->rows[i]->hash);

                index->next[i] = *bucket;
                *bucket = i + 1;
        }
        return 0;
}

void live_rows_index_done(LiveIndex *index) {
        free(index->buckets);
        free(index->next);
        *index = (LiveIndex) { .n_buckets = 0 };
}

static bool has_key(const LiveIndex *index, const LiveRow *row, uint64_t hash, const sqlipc_value *values) {
        if (row->hash != hash)
                return false;
        for (size_t i = 0; i < index->n_key_columns; i++)
                if (!equals(&row->values[index->key_columns[i]], &values[index->key_columns[i]]))
                        return false;
        return true;
}

/* Takes the first row before with this key from its list. */
static size_t take_match(LiveIndex *index, uint64_t hash, const sqlipc_value *values) {
        if (index->n_buckets == 0)
                return ROWS_NO_MATCH;
        for (size_t *at = bucket_of(index, hash); *at > 0; at = &index->next[*at - 1]) {
                size_t i = *at - 1;

                if (has_key(index, index->before->rows[i], hash, values)) {
                        *at = index->next[i];
                        return i;
                }
        }
        return ROWS_NO_MATCH;
}

/* ---- Rows --------------------------------------------------------------------------------------------------------- */

static bool has_values(const LiveRow *row, const sqlipc_value *values, unsigned n_columns) {
        for (unsigned i = 0; i < n_columns; i++)
                if (!equals(&row->values[i], &values[i]))
                        return false;
        return true;
}

/* TEXT is followed by a NUL. */
static size_t size_of_bytes(const sqlipc_value *value) {
        return has_bytes(value) ? (size_t) value->size + 1 : 0;
}

static LiveRow *row_new(const sqlipc_value *values, unsigned n_columns, uint64_t hash) {
        size_t size = sizeof(LiveRow) + n_columns * sizeof *values;
        LiveRow *row;
        uint8_t *at;

        for (unsigned i = 0; i < n_columns; i++)
                size += size_of_bytes(&values[i]);
        row = malloc(size);
        if (!row)
                return NULL;
        row->n_ref = 1;
        row->hash = hash;
        at = (uint8_t *) (row->values + n_columns);
        for (unsigned i = 0; i < n_columns; i++) {
                row->values[i] = values[i];
                if (!has_bytes(&values[i]))
                        continue;
                if (values[i].size > 0)
                        memcpy(at, values[i].as.blob, values[i].size);
                at[values[i].size] = 0;
                row->values[i].as.blob = at;
                at += size_of_bytes(&values[i]);
        }
        return row;
}

static int reserve(LiveRows *rows) {
        size_t capacity = rows->capacity > 0 ? 2 * rows->capacity : 16;
        RowsMatch *matches;
        LiveRow **pointers;

        if (rows->n < rows->capacity)
                return 0;
        pointers = reallocarray(rows->rows, capacity, sizeof *pointers);
        if (!pointers)
                return -ENOMEM;
        rows->rows = pointers;
        matches = reallocarray(rows->matches, capacity, sizeof *matches);
        if (!matches)
                return -ENOMEM;
        rows->matches = matches;
        rows->capacity = capacity;
        return 0;
}

int live_rows_add(LiveRows *rows, LiveIndex *index, const sqlipc_value *values) {
        uint64_t hash = hash_key(index, values);
        RowsMatch match = { .changed = false };
        LiveRow *row = NULL;

        if (reserve(rows) < 0)
                return -ENOMEM;
        match.before = take_match(index, hash, values);
        if (match.before != ROWS_NO_MATCH) {
                row = index->before->rows[match.before];
                match.changed = !has_values(row, values, rows->n_columns);
        }
        if (row && !match.changed)
                row->n_ref++;
        else {
                row = row_new(values, rows->n_columns, hash);
                if (!row)
                        return -ENOMEM;
        }
        rows->rows[rows->n] = row;
        rows->matches[rows->n++] = match;
        return 0;
}

void live_rows_done(LiveRows *rows) {
        for (size_t i = 0; i < rows->n; i++)
                if (--rows->rows[i]->n_ref == 0)
                        free(rows->rows[i]);
        free(rows->rows);
        free(rows->matches);
        *rows = (LiveRows) { .n = 0 };
}
