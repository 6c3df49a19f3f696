/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How the kernel's pipe pages are shared among uids. Pure.
 *
 * All pipes of one unprivileged process owner share fs.pipe-user-pages-soft pages; past it every new pipe is crippled. We
 * stay below, and share the pages by these rules:
 *
 *      reserve         1/8 of the total is for uids that hold little: 1/64 of the reserve each, a page at least
 *      share           of the rest a uid may have half of what the others leave, and PipePagesMax= at most: n greedy uids
 *                      that take in turns get 1/(n+1) each, and leave as much; for one that comes after uids which took one
 *                      after the other there is the reserve
 *      retired pipes   may hold half of that: a client that keeps read ends of finished pipes still has the other half
 *      a new pipe      1 page within the share
 *      its first run   16 pages while the uid stays under 3/4 of its share
 *      a run fills it  256 pages while the uid stays under half of its share, and half of its part (the rest by the uids
 *                      that hold pipes)
 *
 * and nothing grows into the last quarter of the rest. So growth, which only speeds a run up, leaves pages for new pipes.
 * Pages that a client took by making a pipe larger count against its uid alone; the kernel still has them, and pipe.h says
 * how we get them back.
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
        uint64_t reserve;   /* of them, for uids that hold no more than `little` */
        uint64_t little;    /* what any uid may have, whatever the others hold, until the total is used up */
        uint64_t granted;   /* to all pipes */
        uint64_t n_holders; /* accounts that hold pages */
} PipeBudget;

/* What a pipe counts. */
typedef struct PipeShare {
        uint64_t pages;   /* its size */
        uint64_t granted; /* the size that we gave it; its reader may have made it larger */
        bool retired;     /* no statement and no run uses it, but its read end is open */
} PipeShare;

/* The sums over all pipes of a uid. */
typedef struct PipeAccount {
        uint64_t used, granted, retired;
} PipeAccount;

typedef enum PipeVerdict {
        PIPE_ADMITTED,
        PIPE_PAST_LIMIT,   /* PipePagesMax= */
        PIPE_PAST_SHARE,   /* what the others leave the uid */
        PIPE_PAST_RETIRED, /* pipes that the uid no longer uses hold too much of it */
        PIPE_PAST_TOTAL,   /* there is none left for anyone */
} PipeVerdict;

/* `soft`: fs.pipe-user-pages-soft, 0: none. A quarter stays for pipes of the same owner that are not ours. A pipe has a page
 * at least, so the total bounds the number of pipes too: of the descriptors that the process may have,
 * `n_descriptors`, three eighths stay for all else. */
void pipe_budget_init(PipeBudget *b, uint64_t soft, uint64_t n_descriptors);

/* May the account have one pipe more, or `grow` pages more for one that it has? `account_max`: PipePagesMax=. */
PipeVerdict pipe_budget_admits_new(const PipeBudget *b, const PipeAccount *a, uint64_t account_max);
bool pipe_budget_admits_first_run(const PipeBudget *b, const PipeAccount *a, uint64_t account_max, uint64_t grow);
bool pipe_budget_admits_filling(const PipeBudget *b, const PipeAccount *a, uint64_t account_max, uint64_t grow);

/* A pipe of the account changed. All zero: it was not there, or is gone. */
void pipe_budget_change(PipeBudget *b, PipeAccount *a, const PipeShare *before, const PipeShare *after);

#endif
