/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Copies data whose size a client or a worker chooses: g_bytes_new() would abort the service if memory runs out.
 * Supervisor. */
#ifndef SQLIPC_DAEMON_SUPERVISOR_BASE_TRY_BYTES_H
#define SQLIPC_DAEMON_SUPERVISOR_BASE_TRY_BYTES_H

#include <glib.h>
#include <string.h>

/* Returns a copy that the caller owns; NULL: no memory. `data` may be NULL if `size` is 0. */
static inline GBytes *try_bytes(const void *data, size_t size) {
        void *copy = g_try_malloc(MAX(size, 1));

        if (!copy)
                return NULL;
        if (size > 0)
                (void) memcpy(copy, data, size);
        return g_bytes_new_take(copy, size);
}

#endif
