/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Names that completion offers, see catalog.h. They are read over the session's own connection, which is idle while the user
 * types. The connection is non-blocking during a request, so that Ctrl-C and the time limit end the wait. A list that could
 * not be read counts as read, and after a timeout no other request is sent for a while: otherwise each Tab would wait, once
 * for each list.
 */
#include "tools/cli/shell/catalog.h"

#include <errno.h>
#include <glib.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/output/interrupt.h"

/* Names are reused for this long. */
#define FRESH_USEC ((int64_t) 5 * G_USEC_PER_SEC)

typedef struct Names {
        char **list;      /* owned; NULL: none */
        int64_t asked;    /* monotonic; 0: never */
} Names;

struct Catalog {
        Session *session;    /* borrowed */
        unsigned generation; /* the session's generation that all names below belong to */
        Names databases, tables, functions, all_columns;
        GHashTable *columns; /* from a table's name to Names, owned */
        int64_t silent;      /* monotonic: when a request last timed out; 0: never */
};

static void free_names(void *userdata) {
        Names *names = userdata;

        g_strfreev(names->list);
        g_free(names);
}

static void clear_names(Names *names) {
        g_clear_pointer(&names->list, g_strfreev);
        names->asked = 0;
}

static void forget_all(Catalog *catalog) {
        clear_names(&catalog->databases);
        clear_names(&catalog->tables);
        clear_names(&catalog->functions);
        clear_names(&catalog->all_columns);
        g_hash_table_remove_all(catalog->columns);
        catalog->silent = 0;
}

Catalog *catalog_new(Session *session) {
        Catalog *catalog = g_new0(Catalog, 1);

        catalog->session = session;
        catalog->columns = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, free_names);
        return catalog;
}

Catalog *catalog_free(Catalog *catalog) {
        if (!catalog)
                return NULL;
        forget_all(catalog);
        g_hash_table_unref(catalog->columns);
        g_free(catalog);
        return NULL;
}

/* ---- Lists -------------------------------------------------------------------------------------------------------- */

/* Sorts without regard to the case of letters, like the search. */
static int compare(const void *a, const void *b) {
        const char *x = *(char *const *) a, *y = *(char *const *) b;
        int order = g_ascii_strcasecmp(x, y);

        return order != 0 ? order : strcmp(x, y);
}

/* Adds a name, unless a statement cannot contain it. */
static void take(GPtrArray *list, const char *name, size_t size) {
        if (size > 0 && g_utf8_validate_len(name, size, NULL))
                g_ptr_array_add(list, g_strndup(name, size));
}

/* Drops all names if the session has changed to another bus or database. */
static void check_generation(Catalog *catalog) {
        if (catalog->generation != catalog->session->generation)
                forget_all(catalog);
        catalog->generation = catalog->session->generation;
}

static bool is_recent(int64_t when) {
        return when != 0 && g_get_monotonic_time() - when < FRESH_USEC;
}

static bool is_fresh(const Names *names) {
        return is_recent(names->asked);
}

static const char *const *keep_order(Names *names, GPtrArray *list) {
        g_ptr_array_add(list, NULL);
        g_strfreev(names->list);
        names->list = (char **) g_ptr_array_free(list, false);
        names->asked = g_get_monotonic_time();
        return (const char *const *) names->list;
}

static const char *const *keep(Names *names, GPtrArray *list) {
        g_ptr_array_sort(list, compare);
        return keep_order(names, list);
}

/* ---- Requests ----------------------------------------------------------------------------------------------------- */

static void note_silence(Catalog *catalog, int r) {
        if (r == -ETIMEDOUT)
                catalog->silent = g_get_monotonic_time();
}

/* Prepares a request. Disables interactive authorization, because a Tab must not cause a password prompt. */
static sqlipc_connection *begin(const Catalog *catalog) {
        sqlipc_connection *connection;

        if (!catalog->session->database || is_recent(catalog->silent) ||
            session_connect(catalog->session, &connection) < 0)
                return NULL;
        (void) sqlipc_set_allow_interactive_authorization(connection, 0);
        (void) sqlipc_set_blocking(connection, 0);
        return connection;
}

static void end(const Catalog *catalog, sqlipc_connection *connection) {
        (void) sqlipc_set_blocking(connection, 1);
        (void) sqlipc_set_allow_interactive_authorization(connection, catalog->session->interactive_authorization);
}

/* Waits for data from the service. Returns 0; -ETIMEDOUT; -EINTR: a signal. */
static int wait_for_answer(sqlipc_connection *connection, int64_t deadline) {
        struct pollfd fds[] = {
                { .fd = sqlipc_get_fd(connection), .events = (short) sqlipc_get_events(connection) },
                { .fd = interrupt_fd(), .events = POLLIN },
        };
        int64_t until = deadline, now = g_get_monotonic_time();
        uint64_t wanted;

        if (now >= deadline)
                return -ETIMEDOUT;
        if (sqlipc_get_timeout(connection, &wanted) >= 0 && wanted < (uint64_t) until)
                until = (int64_t) wanted;
        if (poll(fds, G_N_ELEMENTS(fds), until > now ? (int) ((until - now + 999) / 1000) : 0) < 0 && errno != EINTR)
                return -errno;
        if (fds[1].revents != 0)
                return -EINTR;
        (void) sqlipc_process(connection);
        return 0;
}

/* Reads the first column of the rows of `sql`; `value` is bound to its parameter, NULL: it has none. The library tells only
 * once that TEMP tables are lost, and the user sees no error of this: so the next statement must fail with it. */
static int ask_rows(Session *session, sqlipc_connection *connection, const char *sql, const char *value, GPtrArray *list) {
        int64_t deadline = g_get_monotonic_time() + (int64_t) CATALOG_WAIT_USEC;
        sqlipc_cursor *cursor = NULL;
        int r;

        r = sqlipc_query(connection, session->database, sql, &cursor, value ? "s" : NULL, value);
        while (r >= 0 && (r = sqlipc_cursor_next(cursor)) != 0) {
                const char *name;
                size_t size;

                if (r == -EAGAIN)
                        r = wait_for_answer(connection, deadline);
                else if (r > 0) {
                        name = sqlipc_column_text(cursor, 0, &size);
                        take(list, name, size);
                }
        }
        if (r < 0 && sqlipc_error_code(connection) == SQLIPC_ERROR_PIN_LOST)
                session->untold_loss = g_strdup(sqlipc_error_message(connection));
        (void) sqlipc_cursor_close(cursor);
        return r;
}

/* Adds the rows to the list. Returns a negative number if not all of them came. */
static int add_rows(Catalog *catalog, const char *sql, const char *value, GPtrArray *list) {
        sqlipc_connection *connection = begin(catalog);
        int r = -ENOTCONN;

        if (connection) {
                r = ask_rows(catalog->session, connection, sql, value, list);
                note_silence(catalog, r);
                end(catalog, connection);
        }
        return r;
}

static GPtrArray *list_rows(Catalog *catalog, const char *sql, const char *value) {
        GPtrArray *list = g_ptr_array_new();

        (void) add_rows(catalog, sql, value, list);
        return list;
}

static const char *const *names_of_rows(Catalog *catalog, Names *names, const char *sql, const char *value) {
        return keep(names, list_rows(catalog, sql, value));
}

const char *const *catalog_tables(Catalog *catalog) {
        check_generation(catalog);
        if (is_fresh(&catalog->tables))
                return (const char *const *) catalog->tables.list;
        return names_of_rows(catalog, &catalog->tables,
                             "SELECT DISTINCT name FROM " CATALOG_OBJECTS
                             " WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite^_%' ESCAPE '^'", NULL);
}

/* Columns of all tables and views, those that most of them have first. SQLite cannot tell those of a view that does not
 * compile, or of a table whose module is missing, and fails for all; then the tables that are stored give theirs. */
#define ALL_COLUMNS_SQL(of)                                                                                                \
        "SELECT c.name FROM " CATALOG_OBJECTS ", pragma_table_xinfo(s.name, s.schema) AS c WHERE " of                   \
        " AND s.name NOT LIKE 'sqlite^_%' ESCAPE '^' AND c.hidden <> 1 GROUP BY c.name "                                \
        "ORDER BY count(*) DESC, c.name COLLATE NOCASE"

const char *const *catalog_all_columns(Catalog *catalog) {
        GPtrArray *list;
        int r;

        check_generation(catalog);
        if (is_fresh(&catalog->all_columns))
                return (const char *const *) catalog->all_columns.list;
        list = g_ptr_array_new();
        r = add_rows(catalog, ALL_COLUMNS_SQL("s.type IN ('table', 'view')"), NULL, list);
        if (r < 0 && r != -ETIMEDOUT && r != -EINTR && list->len == 0)
                (void) add_rows(catalog, ALL_COLUMNS_SQL("s.type = 'table' AND s.rootpage > 0"), NULL, list);
        return keep_order(&catalog->all_columns, list);
}

const char *const *catalog_functions(Catalog *catalog) {
        check_generation(catalog);
        if (is_fresh(&catalog->functions))
                return (const char *const *) catalog->functions.list;
        return names_of_rows(catalog, &catalog->functions, "SELECT DISTINCT name FROM pragma_function_list", NULL);
}

const char *const *catalog_columns(Catalog *catalog, const char *table) {
        Names *names;

        check_generation(catalog);
        names = g_hash_table_lookup(catalog->columns, table);
        if (names && is_fresh(names))
                return (const char *const *) names->list;
        names = g_new0(Names, 1);
        g_hash_table_replace(catalog->columns, g_strdup(table), names);
        return names_of_rows(catalog, names, "SELECT name FROM pragma_table_xinfo(?1) WHERE hidden <> 1", table);
}

static int on_database(const sqlipc_database *database, void *userdata) {
        const char *name = sqlipc_database_name(database);

        take(userdata, name, strlen(name));
        return 0;
}

const char *const *catalog_databases(Catalog *catalog) {
        GPtrArray *list;
        sqlipc_connection *connection;

        check_generation(catalog);
        if (is_fresh(&catalog->databases))
                return (const char *const *) catalog->databases.list;
        list = g_ptr_array_new();
        if (!is_recent(catalog->silent) && session_connect(catalog->session, &connection) >= 0) {
                (void) sqlipc_set_timeout(connection, CATALOG_WAIT_USEC);
                note_silence(catalog, sqlipc_list_databases(connection, on_database, list));
                (void) sqlipc_set_timeout(connection, SESSION_ANSWER_USEC);
        }
        return keep(&catalog->databases, list);
}
