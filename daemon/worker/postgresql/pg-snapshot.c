/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See pg-snapshot.h.
 */
#include "daemon/worker/postgresql/pg-snapshot.h"

#include <stdlib.h>
#include <string.h>

/* *ret_list: the text after the second colon. */
static bool parse(const char *snapshot, uint64_t *ret_xmax, const char **ret_list) {
        char *end;

        if (strspn(snapshot, "0123456789") == 0)
                return false;
        (void) strtoull(snapshot, &end, 10);
        if (*end != ':' || strspn(end + 1, "0123456789") == 0)
                return false;
        *ret_xmax = strtoull(end + 1, &end, 10);
        *ret_list = end + 1;
        return *end == ':' && strspn(*ret_list, "0123456789,") == strlen(*ret_list);
}

/* FNV-1a. */
FileState pg_snapshot_state(const char *snapshot) {
        uint64_t hash = UINT64_C(14695981039346656037), xmax;
        const char *list;

        if (!parse(snapshot, &xmax, &list))
                return (FileState) {};
        for (const char *at = snapshot; *at; at++)
                hash = (hash ^ (unsigned char) *at) * UINT64_C(1099511628211);
        return (FileState) { .kind = FILE_STATE_SERVER, .content = hash };
}

static bool has(const char *list, uint64_t wanted) {
        for (char *end; *list; list = *end ? end + 1 : end)
                if (strtoull(list, &end, 10) == wanted)
                        return true;
        return false;
}

/* Counts the transactions of the list from `from` on. */
static uint64_t count_from(const char *list, uint64_t from) {
        uint64_t n = 0;

        for (char *end; *list; list = *end ? end + 1 : end)
                n += strtoull(list, &end, 10) >= from;
        return n;
}

bool pg_snapshot_only_own(const char *before, const char *after, uint64_t n_own) {
        const char *old_list, *new_list;
        uint64_t old_xmax, new_xmax;

        if (!parse(before, &old_xmax, &old_list) || !parse(after, &new_xmax, &new_list) || new_xmax < old_xmax)
                return false;
        for (char *end; *old_list; old_list = *end ? end + 1 : end)
                if (!has(new_list, strtoull(old_list, &end, 10)))
                        return false;
        return new_xmax - old_xmax - count_from(new_list, old_xmax) <= n_own;
}
