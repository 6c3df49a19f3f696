/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: pure. See row-numbers.h.
 */
#include "client-lib/extension/row-numbers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client-lib/sqlipc.h"

/* The finalizer of splitmix64: every bit of the result depends on every bit of `x`. */
static uint64_t mix(uint64_t x) {
        x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
        return x ^ (x >> 31);
}

static uint64_t hash_word(uint64_t hash, uint64_t word) { return mix(hash + UINT64_C(0x9e3779b97f4a7c15) + mix(word)); }

static uint64_t hash_bytes(uint64_t hash, const char *bytes, size_t size) {
        uint64_t word = 0;

        for (; size >= sizeof word; bytes += sizeof word, size -= sizeof word) {
                memcpy(&word, bytes, sizeof word);
                hash = hash_word(hash, word);
        }
        word = 0;
        if (size > 0)
                memcpy(&word, bytes, size);
        return hash_word(hash, word);
}

static uint64_t hash_value(uint64_t hash, const sqlipc_value *value) {
        uint64_t word = 0;

        hash = hash_word(hash, (uint64_t) value->type << 32 | value->size);
        if (value->type == SQLIPC_TEXT || value->type == SQLIPC_BLOB)
                return hash_bytes(hash, value->type == SQLIPC_TEXT ? value->as.text : value->as.blob, value->size);
        if (value->type == SQLIPC_REAL)
                memcpy(&word, &value->as.real, sizeof word);
        else
                word = (uint64_t) value->as.integer;
        return hash_word(hash, word);
}

static size_t find_slot(const RowNumbers *numbers, uint64_t hash) {
        size_t i = hash & (numbers->n_slots - 1);

        while (numbers->slots[i].n > 0 && numbers->slots[i].hash != hash)
                i = (i + 1) & (numbers->n_slots - 1);
        return i;
}

static int grow(RowNumbers *numbers) {
        RowNumbers larger = { .n_slots = numbers->n_slots ? numbers->n_slots * 2 : 64, .n_used = numbers->n_used };

        larger.slots = calloc(larger.n_slots, sizeof *larger.slots);
        if (!larger.slots)
                return -ENOMEM;
        for (size_t i = 0; i < numbers->n_slots; i++)
                if (numbers->slots[i].n > 0)
                        larger.slots[find_slot(&larger, numbers->slots[i].hash)] = numbers->slots[i];
        free(numbers->slots);
        *numbers = larger;
        return 0;
}

int row_numbers_next(RowNumbers *numbers, const sqlipc_value *values, unsigned n_values, int64_t *ret) {
        uint64_t hash = n_values;
        size_t i;

        for (unsigned k = 0; k < n_values; k++)
                hash = hash_value(hash, &values[k]);
        if (numbers->n_used * 2 >= numbers->n_slots && grow(numbers) < 0)
                return -ENOMEM;
        i = find_slot(numbers, hash);
        if (numbers->slots[i].n == 0)
                numbers->n_used++;
        numbers->slots[i].hash = hash;
        *ret = (int64_t) hash_word(hash, numbers->slots[i].n++);
        return 0;
}

void row_numbers_done(RowNumbers *numbers) {
        free(numbers->slots);
        *numbers = (RowNumbers) {};
}
