/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Runs a query for a visitor (query-run.h). */
#include "tools/cli/shell/query-run.h"

#include "tools/cli/shell/query-failure.h"

int query_run(Shell *shell, const char *sql, const sqlipc_parameter *parameters, size_t n_parameters, QueryVisitor visit,
              void *userdata, QueryTotals *ret_totals) {
        Query query = query_init(shell, sql, visit, userdata);
        int r;

        query.parameters = parameters;
        query.n_parameters = n_parameters;
        r = query_execute(&query);
        if (ret_totals)
                *ret_totals = query.totals;
        (void) query_settle(&query, r);
        return r;
}
