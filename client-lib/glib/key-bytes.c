/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Keys of rows (key-bytes.h). GLib library. Pure. */
#include "client-lib/glib/key-bytes.h"

#include <string.h>

static void append(GByteArray *array, const void *bytes, gsize size) { g_byte_array_append(array, bytes, (guint) size); }

static void append_value(GByteArray *array, const sqlipc_value *value) {
        guint8 type = (guint8) value->type;

        append(array, &type, 1);
        switch (value->type) {
        case SQLIPC_INTEGER:
        case SQLIPC_REAL:
                append(array, &value->as, 8);
                return;
        case SQLIPC_TEXT:
        case SQLIPC_BLOB:
                append(array, &value->size, sizeof value->size);
                append(array, value->as.blob, value->size);
                return;
        case SQLIPC_NULL:
                return;
        }
}

/* FNV-1a, by words. */
static guint hash(const guint8 *bytes, gsize size) {
        guint64 sum = G_GUINT64_CONSTANT(0xcbf29ce484222325), word;

        for (; size >= sizeof word; bytes += sizeof word, size -= sizeof word) {
                memcpy(&word, bytes, sizeof word);
                sum = (sum ^ word) * G_GUINT64_CONSTANT(0x100000001b3);
                sum ^= sum >> 29;
        }
        for (; size > 0; bytes++, size--)
                sum = (sum ^ *bytes) * G_GUINT64_CONSTANT(0x100000001b3);
        return (guint) (sum ^ sum >> 32);
}

const KeyBytes *key_bytes_make(KeyBuffer *buffer, const sqlipc_value *values, const guint *columns, guint n, guint number) {
        KeyBytes head = { .hash = 0 }, *key;

        if (!buffer->array)
                buffer->array = g_byte_array_new();
        g_byte_array_set_size(buffer->array, 0);
        append(buffer->array, &head, sizeof head);
        append(buffer->array, &number, sizeof number);
        for (guint i = 0; i < n; i++)
                append_value(buffer->array, &values[columns ? columns[i] : i]);
        key = (KeyBytes *) (void *) buffer->array->data;
        key->size = buffer->array->len - (guint) sizeof *key;
        key->hash = hash(key->bytes, key->size);
        return key;
}

void key_buffer_done(KeyBuffer *buffer) { g_clear_pointer(&buffer->array, g_byte_array_unref); }

KeyBytes *key_bytes_copy(const KeyBytes *key) { return g_memdup2(key, sizeof *key + key->size); }

guint key_bytes_hash(gconstpointer key) { return ((const KeyBytes *) key)->hash; }

gboolean key_bytes_equal(gconstpointer a, gconstpointer b) {
        const KeyBytes *x = a, *y = b;

        return x->hash == y->hash && x->size == y->size && memcmp(x->bytes, y->bytes, x->size) == 0;
}
