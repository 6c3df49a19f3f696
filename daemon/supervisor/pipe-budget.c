/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How the kernel's pipe pages are shared among uids. Pure. */
#include <assert.h>

#include "pipe-budget.h"

static uint64_t smaller(uint64_t a, uint64_t b) {
        return a < b ? a : b;
}

void pipe_budget_init(PipeBudget *b, uint64_t soft, uint64_t n_descriptors) {
        uint64_t pages = soft == 0 ? PIPE_PAGES_SOFT_DEFAULT : smaller(soft, PIPE_PAGES_SOFT_DEFAULT * 1024);

        *b = (PipeBudget) { .total = smaller(pages - pages / 4, n_descriptors / 2) };
}

static uint64_t seven_eighths(uint64_t n) {
        return n - n / 8;
}

/* `grow` fits what the account has left under `cap`, and what all have left under `all`. */
static bool fits(const PipeBudget *b, const PipeAccount *a, uint64_t cap, uint64_t all, uint64_t grow) {
        return a->used <= cap && grow <= cap - a->used && b->used <= all && grow <= all - b->used;
}

static uint64_t account_cap(const PipeBudget *b, uint64_t account_max) {
        return smaller(account_max, b->total / 2);
}

bool pipe_budget_admits_new(const PipeBudget *b, const PipeAccount *a, uint64_t account_max) {
        return fits(b, a, account_cap(b, account_max), b->total, 1);
}

bool pipe_budget_admits_first_run(const PipeBudget *b, const PipeAccount *a, uint64_t account_max, uint64_t grow) {
        return fits(b, a, seven_eighths(account_cap(b, account_max)), seven_eighths(b->total), grow);
}

bool pipe_budget_admits_filling(const PipeBudget *b, const PipeAccount *a, uint64_t account_max, uint64_t grow) {
        uint64_t n = b->n_holders + (a->used == 0), share = b->total / (n > 0 ? n : 1);

        return fits(b, a, smaller(account_cap(b, account_max), share) / 2, seven_eighths(b->total), grow);
}

uint64_t pipe_budget_of_all(const PipeBudget *b, const PipeAccount *a) {
        return smaller(a->used, b->total / 2);
}

void pipe_budget_change(PipeBudget *b, PipeAccount *a, uint64_t before, uint64_t after) {
        bool held = a->used > 0;
        uint64_t of_all = pipe_budget_of_all(b, a);

        assert(a->used >= before && b->used >= of_all);
        a->used += after - before;
        b->used += pipe_budget_of_all(b, a) - of_all;
        if (held != (a->used > 0))
                b->n_holders += held ? UINT64_MAX : 1; /* wraps: one less */
}
