/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How the kernel's pipe pages are shared among uids. Pure.
 *
 * All pipes of one unprivileged process owner share fs.pipe-user-pages-soft pages. Past that limit the kernel gives new
 * pipes two pages at most. The service stays below it, and shares the pages by these rules:
 *
 *      reserve         1/8 of the total is for uids that hold little: 1/64 of the reserve each, at least a page
 *      share           of the rest a uid may have half of the pages that the others leave, and PipePagesMax= at most: n
 *                      greedy uids that take pages in turns get 1/(n+1) each, and leave as much. If one takes all its
 *                      pages before the next one starts, less is left for the next uid, which still has the reserve
 *      retired pipes   may hold half of that: a client that keeps read ends of finished pipes still has the other half
 *      a new pipe      1 page within the share
 *      its first run   16 pages while the uid stays under 3/4 of its share
 *      a run fills it  256 pages while the uid stays under half of its share, and half of its part (the rest divided by the
 *                      number of uids that hold pipes)
 *
 * Nothing grows into the last quarter of the rest. So growth, which only makes a run faster, leaves pages for new pipes.
 * Pages that a client took by making a pipe larger count against its uid alone. The kernel still counts them against the
 * service; pipe.h says how they are returned.
 */
#ifndef SQLIPC_DAEMON_SUPERVISOR_BASE_PIPE_BUDGET_H
#define SQLIPC_DAEMON_SUPERVISOR_BASE_PIPE_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#define PIPE_PAGES_FIRST_RUN ((uint64_t) 16)
#define PIPE_PAGES_FILLING ((uint64_t) 256)

/* The kernel's default. It also bounds the service if the kernel sets no bound. */
#define PIPE_PAGES_SOFT_DEFAULT ((uint64_t) 16384)

typedef struct PipeBudget {
        uint64_t total;     /* pages for all uids */
        uint64_t reserve;   /* of them, for uids that hold no more than `little` */
        uint64_t little;    /* pages that any uid may have, no matter what the others hold, until the total is used up */
        uint64_t granted;   /* pages granted to all pipes */
        uint64_t n_holders; /* accounts that hold pages */
} PipeBudget;

/* The pages of one pipe, as they are counted. */
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
        PIPE_PAST_SHARE,   /* more than the other uids leave */
        PIPE_PAST_RETIRED, /* too much of the share is held by pipes that the uid no longer uses */
        PIPE_PAST_TOTAL,   /* no page is left for any uid */
} PipeVerdict;

/* `soft`: fs.pipe-user-pages-soft; 0: no bound. A quarter is left for pipes of the same owner that are not ours. Each pipe
 * has at least a page, so the total also bounds the number of pipes. Three eighths of `n_descriptors`, the descriptors that
 * the process may have, are left for other uses. */
void pipe_budget_init(PipeBudget *b, uint64_t soft, uint64_t n_descriptors);

/* Can the account have one more pipe, or `grow` more pages for an existing one? `account_max` is PipePagesMax=. */
PipeVerdict pipe_budget_admits_new(const PipeBudget *b, const PipeAccount *a, uint64_t account_max);
/* True if the account may retire `pages` that its clients still use, so that it can have another pipe. `for_cached`: that
 * one may be retired in the same way, so an eighth of the pages that may be retired is left for others. Three eighths are
 * left for pipes that the clients have finished with. */
bool pipe_budget_leaves_retired(const PipeBudget *b, const PipeAccount *a, uint64_t account_max, uint64_t pages,
                                bool for_cached);
bool pipe_budget_admits_first_run(const PipeBudget *b, const PipeAccount *a, uint64_t account_max, uint64_t grow);
bool pipe_budget_admits_filling(const PipeBudget *b, const PipeAccount *a, uint64_t account_max, uint64_t grow);

/* A pipe of the account changed. A share of zeros means that the pipe did not exist before, or no longer exists. */
void pipe_budget_change(PipeBudget *b, PipeAccount *a, const PipeShare *before, const PipeShare *after);

#endif
