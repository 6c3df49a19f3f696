/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What could stand at the cursor, see complete.h. */
#include "complete.h"

char **complete(Shell *shell, const char *text, size_t cursor, size_t *ret_start) {
        *ret_start = cursor;
        return g_new0(char *, 1);
}
