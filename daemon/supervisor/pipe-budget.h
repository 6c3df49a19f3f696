/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How the kernel's pipe pages are shared among uids. Pure.
 *
 * All pipes of one unprivileged process owner share fs.pipe-user-pages-soft pages; past it every new pipe is crippled. We
 * stay below, and no client uid may take the rest from the others:
 *
 *      a new pipe        1 page    while the uid is under its cap: PipePagesMax=, half of the total
 *      its first run    16 pages   while the uid stays under 7/8 of the cap
 *      a run fills it  256 pages   while the uid stays under half of the cap, and half of its fair share (the total by
 *                                  the uids that hold pipes)
 *
 * and nothing grows into the last eighth of the total. So growth, which only speeds a run up, never eats the pages that the
 * next pipe needs, of the same uid or, where several have a lot, of another one.
 */
#ifndef SQLIPC_PIPE_BUDGET_H
#define SQLIPC_PIPE_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#define PIPE_PAGES_FIRST_RUN ((uint64_t) 16)
#define PIPE_PAGES_FILLING ((uint64_t) 256)

/* The kernel's default, which also bounds us where it sets no bound. */
#define PIPE_PAGES_SOFT_DEFAULT ((uint64_t) 16384)

typedef struct PipeBudget {
        uint64_t total;     /* pages for all uids */
        uint64_t used;      /* of each account as much as it may have at most: what it took past that by itself is its own */
        uint64_t n_holders; /* accounts that hold pages */
} PipeBudget;

typedef struct PipeAccount {
        uint64_t used;
} PipeAccount;

/* `soft`: fs.pipe-user-pages-soft, 0: none. A quarter stays for pipes of the same owner that are not ours. A pipe has a page
 * at least, so the total bounds the number of pipes too: half of the descriptors that the process may have,
 * `n_descriptors`, stay for all else. */
void pipe_budget_init(PipeBudget *b, uint64_t soft, uint64_t n_descriptors);

/* May the account have one pipe more, or `grow` pages more for one that it has? `account_max`: PipePagesMax=. */
bool pipe_budget_admits_new(const PipeBudget *b, const PipeAccount *a, uint64_t account_max);
bool pipe_budget_admits_first_run(const PipeBudget *b, const PipeAccount *a, uint64_t account_max, uint64_t grow);
bool pipe_budget_admits_filling(const PipeBudget *b, const PipeAccount *a, uint64_t account_max, uint64_t grow);

/* What the account takes from the others: no more than half of the total. */
uint64_t pipe_budget_of_all(const PipeBudget *b, const PipeAccount *a);

/* A pipe of the account went from `before` to `after` pages; 0: it was not there, or is gone. */
void pipe_budget_change(PipeBudget *b, PipeAccount *a, uint64_t before, uint64_t after);

#endif
