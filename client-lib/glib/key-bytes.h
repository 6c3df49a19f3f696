/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Values of some columns of a row as bytes, by which rows are found in a hash table. GLib library. Pure. */
#ifndef SQLIPC_CLIENT_LIB_GLIB_KEY_BYTES_H
#define SQLIPC_CLIENT_LIB_GLIB_KEY_BYTES_H

#include <glib.h>

#include "client-lib/sqlipc.h"

typedef struct KeyBytes {
        guint hash, size;
        guint8 bytes[];
} KeyBytes;

/* A buffer for keys that are only looked up. */
typedef struct KeyBuffer {
        GByteArray *array;
} KeyBuffer;

/* Makes the key of the values at `columns` (NULL: of the first `n`), with a number that tells equal ones apart. Valid until
 * the next call with this buffer. */
const KeyBytes *key_bytes_make(KeyBuffer *buffer, const sqlipc_value *values, const guint *columns, guint n, guint number);
void key_buffer_done(KeyBuffer *buffer);

KeyBytes *key_bytes_copy(const KeyBytes *key);

/* For GHashTable. */
guint key_bytes_hash(gconstpointer key);
gboolean key_bytes_equal(gconstpointer a, gconstpointer b);

#endif
