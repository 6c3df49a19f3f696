/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A copy of what a client sizes: g_bytes_new() would end the service where there is no memory for it. Supervisor. */
#ifndef SQLIPC_TRY_BYTES_H
#define SQLIPC_TRY_BYTES_H

#include <glib.h>
#include <string.h>

/* The caller's; NULL: no memory. `data` may be NULL where `size` is 0. */
static inline GBytes *try_bytes(const void *data, size_t size) {
        void *copy = g_try_malloc(MAX(size, 1));

        if (!copy)
                return NULL;
        if (size > 0)
                (void) memcpy(copy, data, size);
        return g_bytes_new_take(copy, size);
}

#endif
