/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See pg-write.h.
 */
#include "daemon/worker/postgresql/pg-write.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/worker/postgresql/pg-error.h"
#include "daemon/worker/postgresql/pg-snapshot.h"

static bool check(const PgConnection *c, SqlError *error) {
        if (c->pq && !c->broken && !c->lost)
                return true;
        return sql_error_set(error, ERROR_SERVER_UNREACHABLE,
                             "the connection to the server was lost, and the transaction with it");
}

/* BEGIN alone takes no snapshot. */
bool pg_write_snapshot(PgConnection *c, SqlError *error) {
        c->snapshot = c->open = true;
        pg_connection_order(c, PG_ORDER_BEGIN_SNAPSHOT);
        pg_connection_order(c, PG_ORDER_LOOK);
        return pg_connection_carry_out(c, true, error);
}

bool pg_write_begin(PgConnection *c, SqlError *error) {
        static uint64_t transaction;

        if (!check(c, error))
                return false;
        c->writes = c->open = true;
        c->sets = false;
        c->transaction = ++transaction;
        c->n_wrote = 0;
        c->n_own = 0;
        c->counted = false;
        free(c->before);
        c->before = NULL;
        pg_connection_order(c, PG_ORDER_BEGIN_WRITE);
        return true;
}

/* BEGIN has not been sent yet. */
void pg_write_allow_savepoints(PgConnection *c) {
        c->savepoints = true;
        if (pg_connection_recall(c, PG_ORDER_BEGIN_WRITE))
                pg_connection_order(c, PG_ORDER_BEGIN_SERIALIZABLE);
}

bool pg_write_save(PgConnection *c, SqlError *error) {
        pg_connection_order(c, PG_ORDER_SAVE);
        c->counted = false;
        return check(c, error);
}

/* A savepoint that the server has not heard of need not be made. */
bool pg_write_keep(PgConnection *c, SqlError *error) {
        if (!pg_connection_recall(c, PG_ORDER_SAVE))
                pg_connection_order(c, PG_ORDER_KEEP);
        return check(c, error);
}

void pg_write_undo(PgConnection *c) {
        if (pg_connection_recall(c, PG_ORDER_SAVE))
                return;
        pg_connection_order(c, PG_ORDER_UNDO);
        pg_connection_order(c, PG_ORDER_KEEP);
        c->failed = false;
}

/* After a failure it goes on from the savepoint. */
bool pg_write_is_in_transaction(const PgConnection *c) {
        return c->pq && c->open && !c->broken && !c->lost && !c->doomed;
}

/* Reads the answers. The last one must say COMMIT: a transaction that had failed is rolled back without an error. */
static bool read_commit(PgConnection *c, SqlError *error) {
        bool committed = false;
        PGresult *result;

        for (;;) {
                ExecStatusType status;

                if (!pg_connection_next(c, &result, error))
                        return false;
                if (!result)
                        continue;
                status = PQresultStatus(result);
                if (status == PGRES_FATAL_ERROR)
                        (void) pg_error_take(error, result, NULL);
                c->lost = c->broken = c->lost || pg_error_is_loss(result);
                committed = committed || (status == PGRES_COMMAND_OK && strcmp(PQcmdStatus(result), "COMMIT") == 0);
                PQclear(result);
                if (status == PGRES_PIPELINE_SYNC)
                        break;
        }
        if (!committed && error->error == ERROR_NONE)
                return sql_error_set(error, ERROR_TRANSACTION_ENDED, "the server has rolled the transaction back");
        return committed;
}

static bool outcome_unknown(PgConnection *c, SqlError *error) {
        static const char advice[] = "it is not known if the changes were written: look before you repeat them";
        SqlError lost = SQL_ERROR_INIT;

        c->lost = c->broken = true; /* a commit is not cancelled */
        sql_error_done(error);
        if (c->interrupted)
                return sql_error_set(error, ERROR_OUTCOME_UNKNOWN, "the server has not answered to the commit in time: %s",
                                     advice);
        (void) pg_error_lost(&lost, c->pq);
        (void) sql_error_set(error, ERROR_OUTCOME_UNKNOWN, "%s, during the commit: %s", sql_error_as_failure(&lost).message,
                             advice);
        sql_error_done(&lost);
        return false;
}

/* The transaction that was committed may have changed the session: its settings, by set_config(); and by functions its
 * temporary tables, cursors, channels and locks. The next user of the connection must find none of it. The answers are read
 * later. The settings come first and alone: a failure of the others must not undo their reset. */
static void reset_session(PgConnection *c) {
        SqlError error = SQL_ERROR_INIT;
        bool ok;

        pg_connection_order(c, PG_ORDER_RESET_ROLE);
        pg_connection_order(c, PG_ORDER_RESET_SETTINGS);
        if (PQserverVersion(c->pq) >= PG_CHECKS_CLIENT)
                pg_connection_order(c, PG_ORDER_CHECK_CLIENT);
        ok = pg_connection_carry_out(c, false, &error);
        c->timeout_msec = c->own_timeout_msec;
        for (PgOrder order = PG_ORDER_DROP_TEMPORARY; order <= PG_ORDER_UNLOCK; order++)
                pg_connection_order(c, order);
        if (!ok || !pg_connection_carry_out(c, false, &error))
                c->worn = true;
        sql_error_done(&error);
}

bool pg_write_commit(PgConnection *c, SqlError *error) {
        bool committed;

        if (c->doomed) {
                pg_connection_roll_back(c);
                return sql_error_set(error, ERROR_TRANSACTION_ENDED, "a statement has failed, and with it the transaction");
        }
        if (!c->begun) { /* nothing was done in it */
                pg_connection_roll_back(c);
                return check(c, error);
        }
        pg_connection_order(c, PG_ORDER_COMMIT);
        if (!check(c, error))
                return false;
        if (!pg_connection_send_orders(c, error) || !pg_connection_flush(c, error))
                return outcome_unknown(c, error);
        committed = pg_connection_settle(c, error) && read_commit(c, error);
        if (c->broken || c->lost)
                return committed || outcome_unknown(c, error);
        c->n_sent = 0;
        c->failed = PQtransactionStatus(c->pq) == PQTRANS_INERROR;
        c->open = c->begun = PQtransactionStatus(c->pq) != PQTRANS_IDLE;
        if (committed)
                reset_session(c);
        else
                pg_connection_roll_back(c);
        return committed;
}

char *pg_write_ask_snapshot(PgConnection *c, SqlError *error) {
        PGresult *result = NULL;
        char *snapshot = NULL;

        if (!pg_connection_send_orders(c, error))
                return NULL;
        if (PQsendQueryParams(c->pq, "SELECT pg_catalog.pg_current_snapshot()", 0, NULL, NULL, NULL, NULL, 0) != 1) {
                c->lost = c->broken = true;
                (void) pg_error_lost(error, c->pq);
                return NULL;
        }
        if (!pg_connection_flush(c, error) || !pg_connection_read_orders(c, error) || !pg_connection_next(c, &result, error))
                return NULL;
        if (PQresultStatus(result) == PGRES_TUPLES_OK && PQntuples(result) == 1)
                snapshot = strdup(PQgetvalue(result, 0, 0));
        else
                (void) pg_error_take(error, result, NULL);
        PQclear(result);
        if (pg_connection_finish(c, error))
                return snapshot;
        free(snapshot);
        return NULL;
}

/* The first call is before the first statement, the second one after the commit. */
void pg_write_state(PgConnection *c, FileState *ret) {
        SqlError error = SQL_ERROR_INIT;
        char *now;

        *ret = (FileState) {};
        if (c->setup->replica_connection)
                return;
        now = pg_write_ask_snapshot(c, &error);
        sql_error_done(&error);
        if (!now)
                return;
        if (!c->before || pg_snapshot_only_own(c->before, now, c->n_own))
                *ret = pg_snapshot_state(now);
        if (c->before)
                free(now);
        else
                c->before = now;
}
