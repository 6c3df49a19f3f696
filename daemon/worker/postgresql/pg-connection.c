/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See pg-connection.h. From top to bottom: the wait, opening, orders, results, interrupted ones.
 */
#include "daemon/worker/postgresql/pg-connection.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "daemon/worker/core/compile-limit.h"
#include "daemon/worker/core/monotonic.h"
#include "daemon/worker/core/server-log.h"
#include "daemon/worker/postgresql/pg-error.h"

#define WAIT_MSEC 5                       /* between two calls of the progress function */
#define DEAF_USEC (500 * USEC_PER_MSEC)   /* after an error of the server */
#define N_READS_MAX 64                    /* at once, of results that are not wanted any more */

static const char *const commands[PG_ORDER_N] = {
        [PG_ORDER_BEGIN_READ] = "BEGIN READ ONLY",
        [PG_ORDER_BEGIN_SNAPSHOT] = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
        [PG_ORDER_BEGIN_WRITE] = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE",
        [PG_ORDER_BEGIN_SERIALIZABLE] = "BEGIN ISOLATION LEVEL SERIALIZABLE READ WRITE",
        [PG_ORDER_ROLLBACK] = "ROLLBACK",
        [PG_ORDER_COMMIT] = "COMMIT",
        [PG_ORDER_SAVE] = "SAVEPOINT " PG_SAVEPOINT,
        [PG_ORDER_KEEP] = "RELEASE " PG_SAVEPOINT,
        [PG_ORDER_UNDO] = "ROLLBACK TO " PG_SAVEPOINT,
        [PG_ORDER_RESET_ROLE] = "RESET SESSION AUTHORIZATION",
        [PG_ORDER_RESET_SETTINGS] = "RESET ALL",
        [PG_ORDER_DROP_TEMPORARY] = "DISCARD TEMP",
        [PG_ORDER_CLOSE_CURSORS] = "CLOSE ALL",
        [PG_ORDER_UNLISTEN] = "UNLISTEN *",
        [PG_ORDER_UNLOCK] = "SELECT pg_catalog.pg_advisory_unlock_all()",
        [PG_ORDER_CHECK_CLIENT] = "SET client_connection_check_interval = '1s'",
        [PG_ORDER_ONLY_READ] = "SET default_transaction_read_only = on",
        [PG_ORDER_LISTEN] = "LISTEN sqlipc_changes",
        [PG_ORDER_LOOK] = "SELECT 1",
};

/* ---- the wait ---- */

static bool lose(PgConnection *c, SqlError *error) {
        c->lost = c->broken = true;
        return pg_error_lost(error, c->pq);
}

/* False: the worker wants to stop. */
static bool goes_on(const PgConnection *c) {
        return !c->progress || now_coarse_usec() < c->deaf_until_usec || c->progress(c->userdata) == 0;
}

/* Waits for the socket, or for a moment. Calls progress all the time, also if the socket is always ready. */
static bool wait_for(PgConnection *c, short events, short *ret_events) {
        static uint64_t asked_usec;
        struct pollfd p = { .fd = PQsocket(c->pq), .events = events };
        int n = poll(&p, 1, WAIT_MSEC);
        uint64_t now = now_coarse_usec();

        *ret_events = n > 0 ? p.revents : 0;
        if (n > 0 && now < asked_usec + WAIT_MSEC * USEC_PER_MSEC)
                return true;
        asked_usec = now;
        return goes_on(c);
}

static bool consume(PgConnection *c, SqlError *error) {
        return PQconsumeInput(c->pq) == 1 || lose(c, error);
}

/* TLS and GSSAPI decrypt more at once than libpq takes at a time: the rest is there, and the socket is not readable. */
static bool may_hide_bytes(const PgConnection *c) {
        return PQsslInUse(c->pq) || PQgssEncInUse(c->pq);
}

bool pg_connection_exchange(PgConnection *c, SqlError *error) {
        short events;

        if (!wait_for(c, (short) (POLLIN | (c->flushes ? POLLOUT : 0)), &events)) {
                c->broken = c->interrupted = true;
                return false;
        }
        if ((events & ~POLLOUT || may_hide_bytes(c)) && !consume(c, error))
                return false;
        if (c->flushes) {
                int r = PQflush(c->pq);

                if (r < 0)
                        return lose(c, error);
                c->flushes = r > 0;
        }
        return true;
}

static bool send_command(PgConnection *c, const char *command, SqlError *error) {
        return PQsendQueryParams(c->pq, command, 0, NULL, NULL, NULL, NULL, 0) == 1 || lose(c, error);
}

bool pg_connection_send_all(PgConnection *c, SqlError *error) {
        int r = PQflush(c->pq);

        if (r < 0)
                return lose(c, error);
        c->flushes = r > 0;
        while (c->flushes)
                if (!pg_connection_exchange(c, error))
                        return false;
        return true;
}

/* ---- opening ---- */

static void ignore_notice(void *userdata, const PGresult *result) {
        (void) userdata;
        (void) result;
}

static bool fail_to_open(PgConnection *c, bool to_trust, SqlError *error) {
        server_log(PQerrorMessage(c->pq));
        (void) pg_error_connect(error, c->pq, to_trust);
        pg_connection_close(c);
        return false;
}

/* libpq looks up the host's name here, and cannot be interrupted meanwhile. */
static bool begin_to_open(PgConnection *c, const char *const *keywords, const char *const *values, SqlError *error) {
        compile_limit_begin();
        c->pq = PQconnectStartParams(keywords, values, 0);
        compile_limit_end();
        if (!c->pq)
                return sql_error_set(error, ERROR_OUT_OF_MEMORY, "out of memory");
        (void) PQsetNoticeReceiver(c->pq, ignore_notice, NULL);
        (void) PQsetErrorVerbosity(c->pq, PQERRORS_VERBOSE);
        return PQstatus(c->pq) != CONNECTION_BAD || fail_to_open(c, false, error);
}

static bool is_to_trust(ConnStatusType status) {
        return status == CONNECTION_SSL_STARTUP || status == CONNECTION_GSS_STARTUP ||
               status == CONNECTION_AWAITING_RESPONSE;
}

/* A server that ends, in a failover for example, says nothing before. One that refuses a client does. */
static bool is_silent_end(const PgConnection *c) {
        char byte;
        ssize_t n = recv(PQsocket(c->pq), &byte, sizeof byte, MSG_PEEK | MSG_DONTWAIT);

        return n == 0 || (n < 0 && errno == ECONNRESET);
}

static bool poll_to_open(PgConnection *c, uint64_t until_usec, SqlError *error) {
        PostgresPollingStatusType wanted = PGRES_POLLING_WRITING;

        while (wanted != PGRES_POLLING_OK) {
                ConnStatusType status = PQstatus(c->pq);
                bool ended;
                short events;

                if (wanted == PGRES_POLLING_FAILED)
                        return fail_to_open(c, false, error);
                if (!wait_for(c, wanted == PGRES_POLLING_READING ? POLLIN : POLLOUT, &events)) {
                        pg_connection_close(c);
                        return false;
                }
                if (now_usec() >= until_usec) {
                        pg_connection_close(c);
                        return sql_error_set(error, ERROR_SERVER_UNREACHABLE,
                                             "no connection to the server: it did not answer in time (connect_timeout)");
                }
                if (events == 0)
                        continue;
                ended = is_silent_end(c);
                wanted = PQconnectPoll(c->pq);
                if (wanted == PGRES_POLLING_FAILED)
                        return fail_to_open(c, is_to_trust(status) && !ended, error);
        }
        return true;
}

/* Commands that are sent again and again are prepared, which costs both sides less. */
static const char *const prepared[PG_ORDER_N] = {
        [PG_ORDER_BEGIN_READ] = "begin_read",
        [PG_ORDER_BEGIN_SNAPSHOT] = "begin_snapshot",
        [PG_ORDER_ROLLBACK] = "roll_back",
};

static void prepare_orders(PgConnection *c) {
        SqlError error = SQL_ERROR_INIT;
        bool ok = !c->broken;

        for (int i = 0; ok && i < PG_ORDER_N; i++)
                ok = !prepared[i] || PQsendPrepare(c->pq, prepared[i], commands[i], 0, NULL) == 1 || lose(c, &error);
        if (ok && pg_connection_flush(c, &error))
                c->n_unread++;
        sql_error_done(&error);
}

static void prepare_session(PgConnection *c) {
        (void) PQsetErrorVerbosity(c->pq, PQERRORS_DEFAULT);
        if (PQsetnonblocking(c->pq, 1) < 0 || PQenterPipelineMode(c->pq) == 0)
                c->broken = c->lost = true;
        prepare_orders(c);
        if (PQserverVersion(c->pq) >= PG_CHECKS_CLIENT)
                pg_connection_order(c, PG_ORDER_CHECK_CLIENT);
        if (!c->setup->writes)
                pg_connection_order(c, PG_ORDER_ONLY_READ);
}

/* The role or the server may have a limit, which is kept. */
static bool read_timeout(PgConnection *c, SqlError *error) {
        static const char sql[] = "SELECT setting FROM pg_catalog.pg_settings WHERE name = 'statement_timeout'";
        PGresult *result;

        if (!send_command(c, sql, error) || !pg_connection_flush(c, error) || !pg_connection_settle(c, error) ||
            !pg_connection_next(c, &result, error))
                return false;
        if (PQresultStatus(result) == PGRES_TUPLES_OK && PQntuples(result) == 1)
                c->own_timeout_msec = c->timeout_msec = strtoull(PQgetvalue(result, 0, 0), NULL, 10);
        PQclear(result);
        return pg_connection_finish(c, error);
}

bool pg_connection_open(PgConnection *c, const char *const *keywords, const char *const *values, uint64_t timeout_usec,
                        SqlError *error) {
        static uint64_t generation;
        const PgConnection fresh = {
                .setup = c->setup,
                .progress = c->progress,
                .userdata = c->userdata,
                .generation = ++generation,
        };

        *c = fresh;
        if (!begin_to_open(c, keywords, values, error) || !poll_to_open(c, now_usec() + timeout_usec, error))
                return false;
        prepare_session(c);
        if (pg_connection_carry_out(c, false, error) && read_timeout(c, error))
                return true;
        pg_connection_close(c);
        return false;
}

void pg_connection_close(PgConnection *c) {
        if (c->pq)
                PQfinish(c->pq);
        c->pq = NULL;
        free(c->before);
        c->before = NULL;
        c->open = c->begun = c->failed = c->doomed = c->busy = c->ahead = false;
        c->interrupted = c->rolls_back = false;
        c->n_orders = c->n_sent = c->n_unread = c->n_syncs = c->n_forgotten = 0;
}

bool pg_connection_is_alive(PgConnection *c) {
        struct pollfd p = { .fd = c->pq ? PQsocket(c->pq) : -1, .events = POLLIN | POLLRDHUP };

        if (!c->pq || c->broken || p.fd < 0)
                return false;
        if (poll(&p, 1, 0) <= 0)
                return true;
        return !(p.revents & ~POLLIN) && PQconsumeInput(c->pq) == 1 && PQstatus(c->pq) == CONNECTION_OK;
}

/* ---- orders ---- */

void pg_connection_order(PgConnection *c, PgOrder order) {
        if (c->n_orders < PG_ORDERS_MAX)
                c->orders[c->n_orders++] = order;
        else
                c->broken = true;
}

bool pg_connection_recall(PgConnection *c, PgOrder order) {
        if (c->n_orders == 0 || c->orders[c->n_orders - 1] != order)
                return false;
        c->n_orders--;
        return true;
}

void pg_connection_deallocate(PgConnection *c, const char *name) {
        if (c->n_forgotten >= PG_FORGOTTEN_MAX)
                c->worn = true;
        else
                (void) snprintf(c->forgotten[c->n_forgotten++], sizeof c->forgotten[0], "%s", name);
}

/* In a pipeline of their own: a failure is not that of the statement. */
static bool send_forgotten(PgConnection *c, SqlError *error) {
        char command[64];

        if (c->begun || c->n_forgotten == 0)
                return true;
        for (unsigned i = 0; i < c->n_forgotten; i++) {
                (void) snprintf(command, sizeof command, "DEALLOCATE %s", c->forgotten[i]);
                if (!send_command(c, command, error))
                        return false;
        }
        c->n_forgotten = 0;
        c->n_unread++;
        return pg_connection_flush(c, error);
}

static bool send_order(PgConnection *c, PgOrder order, SqlError *error) {
        if (!prepared[order])
                return send_command(c, commands[order], error);
        return PQsendQueryPrepared(c->pq, prepared[order], 0, NULL, NULL, NULL, 0) == 1 || lose(c, error);
}

bool pg_connection_send_orders(PgConnection *c, SqlError *error) {
        unsigned n = c->n_orders;

        c->n_orders = 0;
        if (!c->begun) { /* before anything that can fail: another connection may be needed for them */
                memcpy(c->first, c->orders, sizeof c->first);
                c->n_first = n;
        }
        if (!c->pq || c->broken)
                return c->pq ? lose(c, error)
                             : sql_error_set(error, ERROR_SERVER_UNREACHABLE, "the connection to the server was lost");
        if (!send_forgotten(c, error))
                return false;
        for (unsigned i = 0; i < n; i++)
                if (!send_order(c, c->orders[i], error))
                        return false;
        c->n_sent = n;
        c->deaf_until_usec = 0;
        c->begun = c->open;
        return true;
}

bool pg_connection_send_last(PgConnection *c, PgOrder order, SqlError *error) {
        return send_order(c, order, error);
}

bool pg_connection_flush(PgConnection *c, SqlError *error) {
        int r = PQpipelineSync(c->pq) == 1 ? PQflush(c->pq) : -1;

        if (r < 0)
                return lose(c, error);
        c->n_syncs++;
        c->flushes = r > 0;
        return true;
}

void pg_connection_limit(PgConnection *c, uint64_t deadline_usec) {
        SqlError error = SQL_ERROR_INIT;
        bool alone = !c->open && !c->held && !c->snapshot && deadline_usec > 0 && deadline_usec < UINT64_MAX;
        uint64_t now = now_coarse_usec(), msec = alone ? 1024 : c->own_timeout_msec;
        char command[64];

        if (c->begun || !c->pq || c->broken)
                return;
        while (alone && msec < INT32_MAX / 2 && now + msec * USEC_PER_MSEC < deadline_usec)
                msec *= 2;
        if (c->own_timeout_msec > 0 && msec > c->own_timeout_msec)
                msec = c->own_timeout_msec;
        if (msec == c->timeout_msec)
                return;
        c->timeout_msec = msec;
        (void) snprintf(command, sizeof command, "SET statement_timeout = %" PRIu64, msec);
        if (send_command(c, command, &error) && pg_connection_flush(c, &error))
                c->n_unread++;
        sql_error_done(&error);
}

/* ---- results ---- */

static PGresult *take_result(PgConnection *c) {
        PGresult *result = PQgetResult(c->pq);

        if (result && PQresultStatus(result) == PGRES_PIPELINE_SYNC && c->n_syncs > 0)
                c->n_syncs--;
        return result;
}

/* PQisBusy() makes results of the bytes that came. If the next one is the statement's, single rows are asked for before. */
static bool has_result(const PgConnection *c) {
        if (c->lost || c->flushes)
                return true;
        if (c->n_unread == 0 && c->n_sent == 0)
                (void) PQsetSingleRowMode(c->pq);
        return c->n_unread == 0 && !PQisBusy(c->pq);
}

/* PQconsumeInput() takes at least 8 KiB, or all there is, and PQisBusy() makes room for the rest of a larger message: after
 * two rounds nothing is hidden, or there is a result. */
static bool take_hidden(PgConnection *c, SqlError *error) {
        for (unsigned i = 0; i < 2 && may_hide_bytes(c); i++) {
                if (!consume(c, error))
                        return false;
                (void) PQisBusy(c->pq);
        }
        return true;
}

/* The first bytes may be answers to pipelines that were sent before. These are read as a whole, whether the bytes were taken
 * here or before: bytes in libpq make no socket readable, so they would not wake the worker. */
static bool settle_begun(PgConnection *c, SqlError *error) {
        return c->n_unread == 0 || PQisBusy(c->pq) || pg_connection_settle(c, error);
}

bool pg_connection_await(PgConnection *c, uint64_t usec) {
        struct pollfd p = { .events = POLLIN };
        SqlError error = SQL_ERROR_INIT;
        uint64_t until = 0;
        bool ok = true, late = false;

        while (ok && !has_result(c)) {
                uint64_t now = now_usec();
                struct timespec left = {};

                if (until == 0)
                        until = now + usec;
                left.tv_nsec = now < until ? (long) (until - now) * 1000 : 0;
                ok = take_hidden(c, &error) && settle_begun(c, &error);
                if (!ok || has_result(c))
                        break;
                p.fd = PQsocket(c->pq);
                if (late || ppoll(&p, 1, &left, NULL) == 0)
                        return false;
                ok = consume(c, &error);
                late = now >= until;
        }
        sql_error_done(&error);
        return !ok || has_result(c);
}

bool pg_connection_next(PgConnection *c, PGresult **ret, SqlError *error) {
        if (!c->pq || c->lost)
                return sql_error_set(error, ERROR_SERVER_UNREACHABLE, "the connection to the server was lost");
        while (PQisBusy(c->pq))
                if (!pg_connection_exchange(c, error))
                        return false;
        *ret = take_result(c);
        /* the job has its error now, which makes progress interrupt everything. But the rest of the pipeline follows at
         * once, and must be read, or the connection would be lost, with its transaction */
        if (*ret && PQresultStatus(*ret) == PGRES_FATAL_ERROR) {
                c->deaf_until_usec = now_coarse_usec() + DEAF_USEC;
                c->doomed = c->doomed || (c->writes && pg_error_is_of_transaction(*ret));
        }
        return PQstatus(c->pq) == CONNECTION_OK || *ret || lose(c, error);
}

/* The server may say why it ends the connection. If it no longer has a command that was prepared, a function has removed
 * it (DEALLOCATE): only another connection has it. Always returns false. */
static bool fail(PgConnection *c, const PGresult *result, SqlError *error) {
        bool is_gone = pg_error_is_outdated(result);

        c->lost = c->lost || is_gone || pg_error_is_loss(result);
        c->broken = c->broken || c->lost;
        if (is_gone && error->error == ERROR_NONE)
                return sql_error_set(error, ERROR_SERVER_UNREACHABLE, "a function has removed the statements that were "
                                     "prepared on the connection to the server");
        return pg_error_take(error, result, NULL);
}

/* Reads to the end of one pipeline. */
static bool read_to_sync(PgConnection *c, SqlError *error) {
        for (unsigned n_null = 0; n_null < 3;) {
                PGresult *result;
                ExecStatusType status;

                if (!pg_connection_next(c, &result, error))
                        return false;
                n_null = result ? 0 : n_null + 1;
                if (!result)
                        continue;
                status = PQresultStatus(result);
                if (status == PGRES_FATAL_ERROR)
                        (void) fail(c, result, error);
                PQclear(result);
                if (c->lost || PQstatus(c->pq) != CONNECTION_OK)
                        return lose(c, error);
                if (status == PGRES_PIPELINE_SYNC)
                        return true;
        }
        return lose(c, error); /* the end did not come */
}

static void drop_notices(PgConnection *c) {
        PGnotify *notice;

        while ((notice = PQnotifies(c->pq)))
                PQfreemem(notice);
}

bool pg_connection_finish(PgConnection *c, SqlError *error) {
        PGTransactionStatusType status;

        c->n_sent = 0;
        if (!read_to_sync(c, error))
                return false;
        drop_notices(c);
        status = PQtransactionStatus(c->pq);
        c->failed = status == PQTRANS_INERROR;
        c->open = status != PQTRANS_IDLE || (c->open && !c->begun);
        c->begun = status != PQTRANS_IDLE;
        return true;
}

/* A setting that the server does not have is no failure. */
bool pg_connection_settle(PgConnection *c, SqlError *error) {
        for (; c->n_unread > 0; c->n_unread--) {
                SqlError failure = SQL_ERROR_INIT;
                bool ok = read_to_sync(c, &failure);

                if (!ok && error->error == ERROR_NONE)
                        sql_error_copy(error, &failure);
                sql_error_done(&failure);
                if (!ok)
                        return false;
        }
        return true;
}

/* The result of one order, and the NULL after it. */
static bool read_order(PgConnection *c, SqlError *error) {
        PGresult *result;
        bool ok = true;

        do {
                if (!pg_connection_next(c, &result, error))
                        return false;
                if (result && PQresultStatus(result) == PGRES_FATAL_ERROR)
                        ok = fail(c, result, error);
                else if (result && PQresultStatus(result) == PGRES_PIPELINE_ABORTED)
                        ok = false;
                PQclear(result);
        } while (result);
        return ok;
}

bool pg_connection_read_orders(PgConnection *c, SqlError *error) {
        bool ok = pg_connection_settle(c, error);

        for (; ok && c->n_sent > 0; c->n_sent--)
                ok = read_order(c, error);
        return ok;
}

bool pg_connection_carry_out(PgConnection *c, bool waits, SqlError *error) {
        SqlError failure = SQL_ERROR_INIT;

        if (c->n_orders == 0)
                return true;
        if (!pg_connection_send_orders(c, error) || !pg_connection_flush(c, error))
                return false;
        c->n_sent = 0;
        if (!waits) {
                c->n_unread++;
                return true;
        }
        if (!pg_connection_settle(c, error) || !pg_connection_finish(c, &failure)) {
                if (error->error == ERROR_NONE)
                        sql_error_copy(error, &failure);
                sql_error_done(&failure);
                return false;
        }
        if (failure.error != ERROR_NONE)
                sql_error_copy(error, &failure);
        sql_error_done(&failure);
        return error->error == ERROR_NONE;
}

void pg_connection_roll_back(PgConnection *c) {
        SqlError error = SQL_ERROR_INIT;
        bool begun = c->begun;

        if (c->ahead) { /* if one of the statements that are on their way fails, the server skips the ROLLBACK after them */
                c->ahead = false;
                c->n_sent = 0;
                c->n_unread++;
        }
        c->n_orders = 0;
        c->open = c->begun = c->failed = c->doomed = false;
        if (begun && !c->broken) {
                pg_connection_order(c, PG_ORDER_ROLLBACK);
                (void) pg_connection_carry_out(c, false, &error);
        }
        sql_error_done(&error);
}

void pg_connection_begin_again(PgConnection *c) {
        PgOrder first[PG_ORDERS_MAX];
        unsigned n = c->writes ? c->n_first : 0;

        memcpy(first, c->first, sizeof first);
        pg_connection_roll_back(c);
        c->open = c->writes;
        for (unsigned i = 0; i < n; i++)
                pg_connection_order(c, first[i]);
}

/* ---- interrupted ones ---- */

/* The answers to pipelines before the present transaction must have been read: a request to cancel may have met commands
 * about the session, as the reset of its settings after a commit. */
bool pg_connection_is_in_step(const PgConnection *c) {
        return c->pq && c->interrupted && !c->lost && !c->flushes && c->n_unread == 0 && c->n_syncs > 0 &&
               PQpipelineStatus(c->pq) != PQ_PIPELINE_OFF;
}

/* False: the server does not keep to the protocol. */
static bool drop_results(PgConnection *c) {
        for (unsigned n_null = 0; c->n_syncs > 0 && !PQisBusy(c->pq);) {
                PGresult *result = take_result(c);

                n_null = result ? 0 : n_null + 1;
                PQclear(result);
                if (n_null >= 3)
                        return false;
        }
        return PQstatus(c->pq) == CONNECTION_OK;
}

static bool read_rest(PgConnection *c) {
        struct pollfd p = { .fd = PQsocket(c->pq), .events = POLLIN };
        bool ok = drop_results(c);

        for (unsigned i = 0; ok && i < N_READS_MAX && c->n_syncs > 0 && poll(&p, 1, 0) > 0; i++)
                ok = PQconsumeInput(c->pq) == 1 && drop_results(c);
        return ok;
}

static int roll_back_interrupted(PgConnection *c) {
        SqlError error = SQL_ERROR_INIT;
        bool ok = !c->rolls_back && send_order(c, PG_ORDER_ROLLBACK, &error) && pg_connection_flush(c, &error) &&
                  !c->flushes;

        c->rolls_back = true;
        sql_error_done(&error);
        return ok ? 0 : -1;
}

int pg_connection_recover(PgConnection *c, bool is_cancelled) {
        if (!read_rest(c))
                return -1;
        if (c->n_syncs > 0 || !is_cancelled)
                return 0;
        if (PQtransactionStatus(c->pq) != PQTRANS_IDLE)
                return roll_back_interrupted(c);
        drop_notices(c);
        c->broken = c->interrupted = c->rolls_back = false;
        c->open = c->begun = c->failed = c->doomed = c->busy = c->ahead = false;
        c->n_orders = c->n_sent = 0;
        c->deaf_until_usec = 0;
        return 1;
}
