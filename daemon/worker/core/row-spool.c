/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See row-spool.h.
 */
#include "daemon/worker/core/row-spool.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int reserve(RowSpool *s, size_t size) {
        size_t needed = s->size + size, capacity = 2 * s->capacity > needed ? 2 * s->capacity : needed;
        uint8_t *bytes;

        if (needed <= s->capacity)
                return 0;
        bytes = realloc(s->bytes, capacity);
        if (!bytes)
                return -ENOMEM;
        s->bytes = bytes;
        s->capacity = capacity;
        return 0;
}

int row_spool_add(RowSpool *s, const uint8_t *page, size_t size, const uint8_t *tail, size_t tail_size) {
        int r = reserve(s, sizeof size + size);

        if (r < 0)
                return r;
        memcpy(s->bytes + s->size, &size, sizeof size);
        s->size += sizeof size;
        memcpy(s->bytes + s->size, page, size - tail_size);
        if (tail_size > 0)
                memcpy(s->bytes + s->size + size - tail_size, tail, tail_size);
        s->size += size;
        s->left += size;
        return 0;
}

size_t row_spool_take(RowSpool *s, uint8_t *page) {
        size_t size;

        assert(s->left > 0);
        memcpy(&size, s->bytes + s->taken, sizeof size);
        memcpy(page, s->bytes + s->taken + sizeof size, size);
        s->taken += sizeof size + size;
        s->left -= size;
        return size;
}

void row_spool_clear(RowSpool *s) {
        free(s->bytes);
        *s = (RowSpool) {};
}
