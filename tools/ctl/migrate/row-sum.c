/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The checksum of a table, see row-sum.h. Pure. */
#include "tools/ctl/migrate/row-sum.h"

#include <endian.h>
#include <inttypes.h>
#include <string.h>

void row_sum_init(RowSum *sum) {
        *sum = (RowSum) { .digest = g_checksum_new(G_CHECKSUM_SHA256) };
}

void row_sum_done(RowSum *sum) {
        g_clear_pointer(&sum->digest, g_checksum_free);
}

/* Each value begins with its type, and a text or blob with its size, so no two rows have the same bytes. */
void row_sum_add_value(RowSum *sum, const sqlipc_value *value) {
        guchar head[1 + sizeof(uint64_t)] = { (guchar) value->type };
        uint64_t bits = value->size;

        if (value->type == SQLIPC_INTEGER || value->type == SQLIPC_REAL)
                memcpy(&bits, &value->as, sizeof bits);
        bits = htole64(bits);
        memcpy(head + 1, &bits, sizeof bits);
        g_checksum_update(sum->digest, head, sizeof head);
        if (value->type == SQLIPC_TEXT || value->type == SQLIPC_BLOB)
                g_checksum_update(sum->digest, value->as.blob, value->size);
}

void row_sum_end_row(RowSum *sum) {
        uint64_t parts[G_N_ELEMENTS(sum->parts)];
        gsize size = sizeof parts;

        g_checksum_get_digest(sum->digest, (guint8 *) parts, &size);
        for (size_t i = 0; i < G_N_ELEMENTS(parts); i++)
                sum->parts[i] += le64toh(parts[i]);
        sum->n_rows++;
        g_checksum_reset(sum->digest);
}

bool row_sum_equal(const RowSum *a, const RowSum *b) {
        return a->n_rows == b->n_rows && memcmp(a->parts, b->parts, sizeof a->parts) == 0;
}

char *row_sum_to_string(const RowSum *sum) {
        return g_strdup_printf("%016" PRIx64 "%016" PRIx64 "%016" PRIx64 "%016" PRIx64, sum->parts[3], sum->parts[2],
                               sum->parts[1], sum->parts[0]);
}
