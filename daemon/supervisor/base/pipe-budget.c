/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How the kernel's pipe pages are shared among uids. Pure. */
#include <assert.h>

#include "daemon/supervisor/base/pipe-budget.h"

#define N_LITTLE 64u /* the number of uids that the reserve is enough for */

static uint64_t smaller(uint64_t a, uint64_t b) {
        return a < b ? a : b;
}

static uint64_t larger(uint64_t a, uint64_t b) {
        return a > b ? a : b;
}

static uint64_t three_quarters(uint64_t n) {
        return n - n / 4;
}

void pipe_budget_init(PipeBudget *b, uint64_t soft, uint64_t n_descriptors) {
        uint64_t pages = soft == 0 ? PIPE_PAGES_SOFT_DEFAULT : smaller(soft, PIPE_PAGES_SOFT_DEFAULT * 1024);
        uint64_t total = smaller(three_quarters(pages), n_descriptors - n_descriptors / 8 * 3), reserve = (total + 7) / 8;

        *b = (PipeBudget) { .total = total, .reserve = reserve, .little = larger(reserve / N_LITTLE, 1) };
}

/* The pages that are not reserved. */
static uint64_t rest(const PipeBudget *b) {
        return b->total - b->reserve;
}

/* The share of the account, before PipePagesMax= is applied. */
static uint64_t fair_share(const PipeBudget *b, const PipeAccount *a) {
        uint64_t of_others = b->granted - a->granted;
        uint64_t half = rest(b) > of_others ? (rest(b) - of_others) / 2 : 0;

        return larger(half, b->little);
}

/* The largest sum of pages of the account's retired pipes. */
static uint64_t retired_max(const PipeBudget *b, const PipeAccount *a, uint64_t account_max) {
        return larger(smaller(fair_share(b, a), account_max) / 2, b->little);
}

PipeVerdict pipe_budget_admits_new(const PipeBudget *b, const PipeAccount *a, uint64_t account_max) {
        uint64_t share = fair_share(b, a);

        if (a->used >= account_max)
                return PIPE_PAST_LIMIT;
        if (a->used >= share)
                return PIPE_PAST_SHARE;
        if (a->retired >= retired_max(b, a, account_max))
                return PIPE_PAST_RETIRED;
        return b->granted < b->total ? PIPE_ADMITTED : PIPE_PAST_TOTAL;
}

bool pipe_budget_leaves_retired(const PipeBudget *b, const PipeAccount *a, uint64_t account_max, uint64_t pages,
                                bool for_cached) {
        uint64_t all = retired_max(b, a, account_max), max = all / 2 + (for_cached ? 0 : all / 8);

        return a->retired <= max && pages <= max - a->retired;
}

/* True if `grow` pages fit the account's part under `cap`, and the part of all pages that may be used for growth. */
static bool may_grow(const PipeBudget *b, const PipeAccount *a, uint64_t cap, uint64_t grow) {
        uint64_t all = three_quarters(rest(b));

        return a->used <= cap && grow <= cap - a->used && b->granted <= all && grow <= all - b->granted;
}

bool pipe_budget_admits_first_run(const PipeBudget *b, const PipeAccount *a, uint64_t account_max, uint64_t grow) {
        return may_grow(b, a, three_quarters(smaller(account_max, fair_share(b, a))), grow);
}

bool pipe_budget_admits_filling(const PipeBudget *b, const PipeAccount *a, uint64_t account_max, uint64_t grow) {
        uint64_t n = b->n_holders + (a->used == 0), part = rest(b) / (n > 0 ? n : 1);

        return may_grow(b, a, smaller(smaller(account_max, fair_share(b, a)), part) / 2, grow);
}

void pipe_budget_change(PipeBudget *b, PipeAccount *a, const PipeShare *before, const PipeShare *after) {
        bool held = a->used > 0;
        uint64_t retired_before = before->retired ? before->pages : 0, retired_after = after->retired ? after->pages : 0;

        assert(a->used >= before->pages && a->retired >= retired_before);
        assert(b->granted >= a->granted && a->granted >= before->granted && after->granted <= after->pages);
        a->used += after->pages - before->pages;
        a->granted += after->granted - before->granted;
        a->retired += retired_after - retired_before;
        b->granted += after->granted - before->granted;
        if (held != (a->used > 0))
                b->n_holders += held ? UINT64_MAX : 1; /* unsigned addition wraps, so this subtracts 1 */
}
