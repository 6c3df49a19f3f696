/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See engine.h. Here is the part that all engines share.
 */
#include "daemon/worker/core/engine.h"

bool engine_check_sql_size(const Setup *setup, size_t sql_size, SqlError *error) {
        if (sql_size <= setup->sql_size_max)
                return true;
        return sql_error_set(error, ERROR_LIMITS_EXCEEDED,
                             "this SQL has %zu bytes, and SQLSizeMax= allows %u: pass values as parameters",
                             sql_size, setup->sql_size_max);
}
