/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Errors that a client provokes, see soak.h. An answer is right if it is exactly the expected error. */
#include <errno.h>

#include "tools/bench/soak/soak.h"

enum {
        TOO_DEEP = 1001, /* ExpressionDepthMax= is at most 1000 */
        TIMEOUT_USEC = 20000,
};

/* Asks, and checks that the expected error comes before the first row. */
static int provoke(SoakTurn *turn, const char *database, const char *sql, sqlipc_error expected) {
        __attribute__((cleanup(sqlipc_cursor_closep))) sqlipc_cursor *cursor = NULL;
        sqlipc_connection *connection = turn->client->connection;
        int r = sqlipc_query(connection, database, sql, &cursor, "");

        if (r >= 0)
                r = sqlipc_cursor_next(cursor);
        if (r < 0 && sqlipc_error_code(connection) == expected)
                return 0;
        return soak_wrong(turn, r < 0 ? r : -EBADMSG, "not the error that was provoked");
}

int soak_bad_sql(SoakTurn *turn) {
        return provoke(turn, turn->soak->options->database, "SELECT frobnicate FROM point", SQLIPC_ERROR_SQL);
}

int soak_unknown_database(SoakTurn *turn) {
        return provoke(turn, "no-such-database", "SELECT 1", SQLIPC_ERROR_UNKNOWN_DATABASE);
}

int soak_write(SoakTurn *turn) {
        return provoke(turn, turn->soak->options->database, "DELETE FROM point", SQLIPC_ERROR_READ_ONLY);
}

int soak_too_deep(SoakTurn *turn) {
        g_autoptr(GString) sql = g_string_new("SELECT 1");

        for (unsigned i = 0; i < TOO_DEEP; i++)
                g_string_append(sql, "+1");
        return provoke(turn, turn->soak->options->database, sql->str, SQLIPC_ERROR_LIMITS_EXCEEDED);
}

int soak_parameters(SoakTurn *turn) {
        __attribute__((cleanup(sqlipc_cursor_closep))) sqlipc_cursor *cursor = NULL;
        sqlipc_connection *connection = turn->client->connection;
        int r = sqlipc_query(connection, turn->soak->options->database, "SELECT ?", &cursor, "ii", (int64_t) 1, (int64_t) 2);

        if (r >= 0)
                r = sqlipc_cursor_next(cursor);
        if (r < 0 && sqlipc_error_code(connection) == SQLIPC_ERROR_PARAMETER_COUNT)
                return 0;
        return soak_wrong(turn, r < 0 ? r : -EBADMSG, "not the error that was provoked");
}

/* The client's own timeout ends its call, before or after the run has started, and the client drops the run. If the answer
 * was already on its way, the library ends the run only when a later call reads that answer, which may be after this turn.
 * Until then the run computes, perhaps in the worker that has a slow result of another client of this process, and the
 * process may wait for that result next. Therefore the connection is closed, too, which ends the run. */
int soak_our_timeout(SoakTurn *turn) {
        __attribute__((cleanup(sqlipc_cursor_closep))) sqlipc_cursor *cursor = NULL;
        sqlipc_connection *connection = turn->client->connection;
        int r = sqlipc_set_timeout(connection, TIMEOUT_USEC);

        if (r >= 0)
                r = sqlipc_query(connection, turn->soak->options->database, SOAK_ENDLESS_SQL, &cursor, "");
        if (r >= 0)
                r = sqlipc_cursor_next(cursor);
        (void) sqlipc_set_timeout(connection, SOAK_PATIENCE_USEC);
        /* the library learns that the statement only reads when the service has compiled it, which may come too late */
        if (!(r == -ETIMEDOUT && sqlipc_error_code(connection) == SQLIPC_ERROR_NONE) &&
            !(r == -ECONNABORTED && sqlipc_error_code(connection) == SQLIPC_ERROR_OUTCOME_UNKNOWN))
                return soak_wrong(turn, r < 0 ? r : -EBADMSG, "no timeout");
        cursor = sqlipc_cursor_close(cursor);
        r = soak_ask_point(turn);
        return r < 0 ? r : soak_reconnect(turn);
}

/* Uses the option timeout-usec, which the library does not use itself. */
int soak_their_timeout(SoakTurn *turn) {
        g_autofree char *path = NULL;
        sd_bus *bus = sqlipc_get_bus(turn->client->connection);
        sd_bus_error error = SD_BUS_ERROR_NULL;
        bool timed_out;
        int r;

        if (!bus)
                return soak_wrong(turn, -ENOTCONN, "no bus");
        r = sd_bus_path_encode("/org/sqlipc1/database", turn->soak->options->database, &path);
        if (r < 0)
                return soak_wrong(turn, r, "no path");
        r = sd_bus_call_method(bus, "org.sqlipc1", path, "org.sqlipc1.Database", "QueryRows", &error, NULL, "sava{sv}a{sv}",
                               SOAK_ENDLESS_SQL, 0, 0, 1, "timeout-usec", "t", (uint64_t) TIMEOUT_USEC);
        timed_out = sd_bus_error_has_name(&error, "org.sqlipc1.Error.TimedOut");
        r = timed_out ? 0 : soak_wrong(turn, r < 0 ? r : -EBADMSG, error.message ?: "no error");
        sd_bus_error_free(&error);
        return r;
}
