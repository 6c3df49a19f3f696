/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The quotas of a uid on a database. Supervisor. */
#include "daemon/configuration/configuration-limits.h"
#include "daemon/supervisor/base/context.h"
#include "daemon/supervisor/base/log.h"
#include "daemon/supervisor/base/quota.h"
#include "dbus-interfaces/wire/sqlipc-page.h"

#define NEVER_USEC (UINT64_C(366) * 86400 * 1000000) /* practically never */
#define TIB (UINT64_C(1) << 40)
#define RELEASED_CHANNELS_MAX 16 /* of a user */
#define WAITING_PER_TRANSACTION 16u /* so many transactions may wait to write for each that may be open */

static bool is_exempt(const User *u) {
        return u->uid == 0 && u->context->config->limits.exempt_root;
}

/* Sets the largest values that SQLite, the page format and arithmetic allow. QueueTimeoutSec=, BusyTimeoutSec= and
 * WorkerIdleSec= are not changed: they do not bound any resource, but say when to stop waiting. */
static void lift(Limits *l) {
        l->statements_max = l->runs_max = l->channels_max = l->watches_max = l->transactions_max = l->pins_max = UINT64_MAX;
        l->result_rows_max = l->result_size_max = l->statement_idle_usec = UINT64_MAX;
        l->workers_max = l->workers_total_max;
        l->row_size_max = SQLIPC_ROW_SIZE_MAX;
        l->run_timeout_usec = l->prepare_timeout_usec = NEVER_USEC;
        l->park_timeout_usec = l->park_timeout_rollback_usec = NEVER_USEC;
        l->transaction_timeout_usec = l->transaction_idle_usec = NEVER_USEC;
        l->temp_size_max = 1024 * TIB;
        l->heap_max = TIB;
        l->sql_size_max = SQL_SIZE_MAX;
        l->expression_depth_max = 1000;
        l->compound_selects_max = 500;
        l->vdbe_ops_max = 250000000;
        l->variables_max = 32766;
}

Limits quota_limits(const User *u, const Database *d) {
        const Context *context = u->context;
        Limits l = config_limits(context->config, d->config);

        if (l.workers_total_max == 0)
                l.workers_total_max = limits_workers_total(context->memory_size, context->config->limits.heap_max);
        if (is_exempt(u))
                lift(&l);
        return l;
}

Limits quota_caller_limits(const User *u, const Database *d) {
        const DatabaseLimits *shared = &d->config->limits;
        Limits l = quota_limits(u, d);

        l.temp_size_max /= l.workers_max;
        if (!is_exempt(u)) {
                l.statements_max = MIN(l.statements_max, shared->statements_max);
                l.runs_max = MIN(l.runs_max, shared->runs_max);
                l.channels_max = MIN(l.channels_max, shared->channels_max);
                l.watches_max = MIN(l.watches_max, shared->watches_max);
        }
        return l;
}

uint64_t quota_pipe_pages(const User *u) {
        return is_exempt(u) ? UINT64_MAX : u->context->config->limits.pipe_pages_max;
}

/* About other users, the sentence tells only that there are some. */
static int refuse_shared(const User *u, const Database *d, const char *key, const char *things, Refusal *refusal) {
        log_event_limited(LOG_EVENT_QUOTA_HIT, key, &(LogFields) { .uid = &u->uid, .database = database_name(d) },
                          "uid %u is refused more: all users together have reached %s of this database.", (unsigned) u->uid,
                          key);
        return refuse_for_now(refusal, "This database has all the %s that it may have (its %s): try again later, or end "
                              "some if they are yours.", things, key);
}

StatementBound quota_statement_bound(const User *u, const Database *d) {
        if (is_exempt(u))
                return STATEMENT_BOUND_NONE;
        if (d->n_statements >= d->config->limits.statements_max)
                return STATEMENT_BOUND_DATABASE;
        return u->n_statements >= u->context->config->limits.statements_max ? STATEMENT_BOUND_USER : STATEMENT_BOUND_NONE;
}

int quota_check_statement(const User *u, const Database *d, Refusal *refusal) {
        switch (quota_statement_bound(u, d)) {
        case STATEMENT_BOUND_NONE: break;
        case STATEMENT_BOUND_USER:
                return user_refuse(u, "StatementsMax=", refusal,
                                   "You have %" PRIu64 " prepared statements, which is all you may have (StatementsMax=): "
                                   "finalize some.", u->n_statements);
        case STATEMENT_BOUND_DATABASE:
                return refuse_shared(u, d, "StatementsMax=", "prepared statements", refusal);
        }
        return 0;
}

int quota_check_run(const User *u, const Database *d, Refusal *refusal) {
        if (is_exempt(u))
                return 0;
        if (u->n_runs >= u->context->config->limits.runs_max)
                return user_refuse(u, "RunsMax=", refusal,
                                   "You have %" PRIu64 " runs under way, which is all you may have (RunsMax=): let one end, "
                                   "or cancel it.", u->n_runs);
        if (d->n_runs >= d->config->limits.runs_max)
                return refuse_shared(u, d, "RunsMax=", "runs under way", refusal);
        return 0;
}

/* Of those that write to one database, one is open at a time. So they count as one, and the others only wait. */
int quota_check_transaction(const User *u, bool writes, uint64_t n_writers, Refusal *refusal) {
        uint64_t max = u->context->config->limits.transactions_max;

        if (is_exempt(u))
                return 0;
        if ((!writes || n_writers == 0) && u->n_transactions >= max)
                return user_refuse(u, "TransactionsMax=", refusal,
                                   "You have %" PRIu64 " transactions open, which is all you may have (TransactionsMax=): "
                                   "end one.", u->n_transactions);
        if (writes && u->n_writers >= max * WAITING_PER_TRANSACTION)
                return user_refuse(u, "TransactionsMax=", refusal,
                                   "You have %" PRIu64 " transactions that wait to write, which is all you may have (%u for "
                                   "each of TransactionsMax=): let some end.", u->n_writers, WAITING_PER_TRANSACTION);
        return 0;
}

/* A worker with pins keeps its place for as long as its clients like. So pins leave half of all places to other work, one on
 * each database to other users, and one to the user's own work, except if there is no other. */
int quota_check_pin(const User *u, const Database *d, const PinPlaces *places, Refusal *refusal) {
        const Limits l = quota_limits(u, d);

        if (places && places->n_all >= l.workers_total_max / 2)
                return user_refuse(u, "WorkersTotalMax=", refusal,
                                   "Connections with TEMP tables or settings of their own keep %" PRIu64 " workers, and may "
                                   "keep half of all (WorkersTotalMax=): try again when one of them is closed.",
                                   places->n_all);
        if (places && places->n_of_user > 0 && places->n_of_user + 1 >= l.workers_max)
                return user_refuse(u, "WorkersMax=", refusal,
                                   "Connections with TEMP tables or settings of their own keep %" PRIu64 " of your workers, "
                                   "and must leave one (WorkersMax=): close those to one database.", places->n_of_user);
        if (places && !is_exempt(u) && places->n_on_database + 1 >= d->config->limits.workers_max)
                return refuse_shared(u, d, "WorkersMax=", "workers with TEMP tables or settings of clients", refusal);
        if (is_exempt(u) || u->n_pins < u->context->config->limits.pins_max)
                return 0;
        return user_refuse(u, "PinsMax=", refusal,
                           "You have %" PRIu64 " connections with TEMP tables or settings of their own, which is all you "
                           "may have (PinsMax=): close one of them.", u->n_pins);
}

/* How many of `max` objects that take descriptors the user may have, as pipe-budget.h shares pages: half of those that the
 * others leave, but an eighth is a reserve, of which any user may have 1/64. `n_all`: how many there are; `n_own`: those of
 * the user. */
static uint64_t share_of(const User *u, uint64_t max, uint64_t n_all, uint64_t n_own) {
        uint64_t of_others = n_all - n_own, left = max - MIN(max, of_others);
        uint64_t reserve = max / 8, little = MIN(MAX(reserve / 64, 1), left);
        uint64_t rest = max - reserve - MIN(max - reserve, of_others);

        return is_exempt(u) ? left : MAX(rest - rest / 2, little);
}

static uint64_t channels_share(const User *u) {
        uint64_t n_own = u->n_channels + u->n_released_channels;

        return share_of(u, u->context->channels_max, g_hash_table_size(u->context->channels), n_own);
}

static uint64_t watch_pipes_share(const User *u) {
        return share_of(u, u->context->watch_pipes_max, u->context->n_watch_pipes, u->n_watch_pipes);
}

/* Also true if channels that were released still have descriptors. */
static bool are_all_channels_open(const Context *context) {
        return g_hash_table_size(context->channels) >= context->channels_max;
}

ChannelBound quota_channel_bound(const User *u, const Database *d) {
        const Context *context = u->context;
        bool exempt = is_exempt(u);

        if (!exempt && d->n_channels >= d->config->limits.channels_max)
                return CHANNEL_BOUND_DATABASE;
        if (u->n_channels >= channels_share(u) || are_all_channels_open(context))
                return CHANNEL_BOUND_DESCRIPTORS;
        return !exempt && u->n_channels >= context->config->limits.channels_max ? CHANNEL_BOUND_USER : CHANNEL_BOUND_NONE;
}

bool quota_may_release_channel(const User *u) {
        return u->n_released_channels < RELEASED_CHANNELS_MAX && !are_all_channels_open(u->context);
}

int quota_check_channel(const User *u, const Database *d, Refusal *refusal) {
        switch (quota_channel_bound(u, d)) {
        case CHANNEL_BOUND_NONE: break;
        case CHANNEL_BOUND_DATABASE:
                return refuse_shared(u, d, "ChannelsMax=", "open channels", refusal);
        case CHANNEL_BOUND_DESCRIPTORS:
                return refuse_for_now(refusal, "The service has no descriptor left for a channel of yours (LimitNOFILE= of "
                                      "its unit): close one, or try again later.");
        case CHANNEL_BOUND_USER:
                return user_refuse(u, "ChannelsMax=", refusal,
                                   "You have %" PRIu64 " channels open, which is all you may have (ChannelsMax=): close "
                                   "some.", u->n_channels);
        }
        return 0;
}

int quota_check_watch(const User *u, const Database *d, bool has_pipe, Refusal *refusal) {
        const Context *context = u->context;

        if (has_pipe && u->n_watch_pipes >= watch_pipes_share(u))
                return refuse_for_now(refusal, "The service has no descriptor left for a watch of yours (LimitNOFILE= of "
                                      "its unit): end one, or try again later.");
        if (is_exempt(u))
                return 0;
        if (u->n_watches >= context->config->limits.watches_max)
                return user_refuse(u, "WatchesMax=", refusal,
                                   "You have %" PRIu64 " watches, which is all you may have (WatchesMax=): end some.",
                                   u->n_watches);
        if (d->n_watches >= d->config->limits.watches_max)
                return refuse_shared(u, d, "WatchesMax=", "watches", refusal);
        return 0;
}

uint32_t quota_channels_left(const User *u, const Database *d) {
        uint64_t max = u->context->config->limits.channels_max, of_database = d->config->limits.channels_max;
        uint64_t share = channels_share(u), left = share - MIN(share, u->n_channels);

        if (!is_exempt(u)) {
                left = MIN(left, max - MIN(max, u->n_channels));
                left = MIN(left, of_database - MIN(of_database, d->n_channels));
        }
        return (uint32_t) MIN(left, UINT32_MAX);
}

/* True if one of `max` places is free for an owner that has `n_own`. `reserved` of them are for owners that have none. */
static bool has_place(uint64_t n_own, uint64_t n_all, uint64_t max, uint64_t reserved) {
        return n_all < max && (n_own == 0 || max - n_all > reserved);
}

/* Half of all places, rounded up, is kept for uids without a worker. So no uid ever has more than the other half, or a
 * single place. Half of the reserved places may be used by a uid that has workers, but none on this database: otherwise it
 * would wait there as long as its other workers, and those of other uids, are busy. */
static uint64_t n_reserved(uint64_t n_on_database, uint64_t total) {
        uint64_t half = total - total / 2;

        return n_on_database > 0 ? half : half - half / 2;
}

WorkerBound quota_worker_bound(const User *u, const Database *d, uint64_t n_on_database, bool has_connection) {
        const Limits l = quota_limits(u, d);
        uint64_t n_all = u->context->workers.length - u->context->n_undead;
        uint64_t total = l.workers_total_max, of_database = d->config->limits.workers_max;

        if (u->n_workers >= l.workers_max)
                return WORKER_BOUND_USER;
        if (!has_connection)
                return WORKER_BOUND_CONNECTIONS;
        if (!is_exempt(u) && !has_place(n_on_database, d->n_workers, of_database, of_database > 1))
                return WORKER_BOUND_DATABASE;
        return has_place(u->n_workers, n_all, total, n_reserved(n_on_database, total)) ? WORKER_BOUND_NONE
                                                                                       : WORKER_BOUND_TOTAL;
}

const char *quota_why_no_worker(WorkerBound bound) {
        switch (bound) {
        case WORKER_BOUND_NONE: break;
        case WORKER_BOUND_USER:
                return "All your workers are occupied (WorkersMax=): wait until a run of yours ends, or cancel one.";
        case WORKER_BOUND_CONNECTIONS:
                return "All your connections to the server of this database are in use (ConnectionsMax=): wait until a run "
                       "of yours ends, or cancel one.";
        case WORKER_BOUND_DATABASE:
                return "All workers that you may have on this database now are occupied (its WorkersMax=, which its users "
                       "share): try again later, or cancel a run of yours.";
        case WORKER_BOUND_TOTAL:
                return "All workers that you may have now are occupied (WorkersTotalMax=, which all users share): try again "
                       "later, or cancel a run of yours.";
        case WORKER_BOUND_CPU: return "The processors are occupied with other queries: try again later.";
        }
        return "No worker was free in time (QueueTimeoutSec=): try again later.";
}

void quota_count_statement(User *u, Database *d, int change) {
        u->n_statements += (uint64_t) change;
        d->n_statements += (uint64_t) change;
}

void quota_count_run(User *u, Database *d, int change) {
        u->n_runs += (uint64_t) change;
        d->n_runs += (uint64_t) change;
}

void quota_count_transaction(User *u, bool writes, uint64_t n_writers, int change) {
        if (!writes || n_writers == 0)
                u->n_transactions += (uint64_t) change;
        if (writes)
                u->n_writers += (uint64_t) change;
}

void quota_count_pin(User *u, int change) {
        u->n_pins += (uint64_t) change;
}

void quota_count_channel(User *u, Database *d, int change) {
        u->n_channels += (uint64_t) change;
        d->n_channels += (uint64_t) change;
}

void quota_release_channel(User *u, Database *d) {
        quota_count_channel(u, d, -1);
        u->n_released_channels++;
}

void quota_forget_released_channel(User *u) {
        u->n_released_channels--;
}

void quota_count_watch(User *u, Database *d, int change) {
        u->n_watches += (uint64_t) change;
        d->n_watches += (uint64_t) change;
}

void quota_count_watch_pipe(User *u, int change) {
        u->n_watch_pipes += (uint64_t) change;
        u->context->n_watch_pipes += (uint64_t) change;
}

void quota_count_worker(User *u, Database *d, int change) {
        u->n_workers += (uint64_t) change;
        d->n_workers += (uint64_t) change;
}
