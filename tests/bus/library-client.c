/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A client of libsqlipc that does what it is told, line by line, so that a test in Python can kill the daemon or its workers
 * at any moment of a client's life. Library, from the outside: includes sqlipc.h alone of ours.
 *
 *      open ADDRESS            query DATABASE SQL      rows N (0: all)       bind INDEX i|r|t|b|n VALUE
 *      timeout USEC            prepare DATABASE SQL    cancel                name NAME HEX
 *      interactive 0|1         transport auto|pipe|channel|dbus              which: "via ...", of the cursor
 *                              execute                 cancel-later          finalize
 *                              columns: of the statement, each a row of name and declared type
 *      remote system|user HOST     totals: "totals ROWS BYTES USEC"      bus: "bus NAME" of sqlipc_get_bus()
 *      names: of the cursor's columns, as columns                        lend ADDRESS: open with a bus of our own
 *      run-timeout USEC        exec DATABASE SQL: "changes N"      changes: "changes N ROWID", of the cursor
 *      readonly: "readonly 0|1", of the statement        begin read|write DATABASE       commit       rollback
 *      is-open: "open N", of the transaction            drop: close the transaction
 *      load DATABASE SQL       give FIRST N: rows of a number       give-blob SIZE      give-two: two values in a row
 *      finish: "changes N"     unload: close the load               loop FIRST N: gives and finishes without blocking
 *      batch DATABASE          add HEX|n|- SQL: with a text, NULL or no value
 *      run N: "changes SUM", and the changes of N statements
 *      watch DATABASE [TABLE...]       watch-sql DATABASE SQL      watch-since DATABASE NUMBER: all tables      unwatch
 *      await USEC: "changed 0|1 NUMBER"                            sequence: "sequence NUMBER", of the cursor
 *      live DATABASE SQL       unlive  follow USEC: a row for each change, of its kind, positions and values, then
 *      "settled NUMBER", or "quiet"
 *
 * Answers, one line each: "ok", "row VALUE...", "end ROWS", "error ERRNO CODE EXTENDED OFFSET NAME MESSAGE". A value is n,
 * i:DECIMAL, r:BITS, t:HEX or b:HEX. `cancel-later` reads rows while a second thread cancels. SIGUSR1 interrupts the
 * connection.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-bus.h>
#include <unistd.h>

#include "client-lib/sqlipc.h"

static sqlipc_connection *connection;
static sqlipc_statement *statement;
static sqlipc_cursor *cursor;
static sqlipc_transaction *transaction;
static sqlipc_load *load;
static sqlipc_batch *batch;
static sqlipc_watch *watch;
static sqlipc_live *live;

static void answer(int r) {
        const char *name;

        if (r >= 0) {
                puts("ok");
                return;
        }
        name = connection ? sqlipc_error_name(connection) : NULL;
        printf("error %d %d %d %d %s %s\n", -r, connection ? (int) sqlipc_error_code(connection) : 0,
               connection ? sqlipc_error_sqlite_extended_code(connection) : 0,
               connection ? sqlipc_error_sql_offset(connection) : -1, name ? name : "-",
               connection ? sqlipc_error_message(connection) : strerror(-r));
}

static void print_bytes(char type, const uint8_t *bytes, size_t size) {
        printf(" %c:", type);
        for (size_t i = 0; i < size; i++)
                printf("%02x", bytes[i]);
}

static void print_value(unsigned column) {
        double real;
        uint64_t bits;
        size_t size;
        const void *bytes;

        switch (sqlipc_column_type(cursor, column)) {
        case SQLIPC_NULL:
                printf(" n");
                return;
        case SQLIPC_INTEGER:
                printf(" i:%" PRId64, sqlipc_column_int64(cursor, column));
                return;
        case SQLIPC_REAL:
                real = sqlipc_column_double(cursor, column);
                memcpy(&bits, &real, sizeof bits);
                printf(" r:%016" PRIx64, bits);
                return;
        case SQLIPC_TEXT:
                bytes = sqlipc_column_text(cursor, column, &size);
                print_bytes('t', bytes, size);
                return;
        case SQLIPC_BLOB:
                bytes = sqlipc_column_blob(cursor, column, &size);
                print_bytes('b', bytes, size);
                return;
        }
        printf(" unknown");
}

static void rows(uint64_t n) {
        uint64_t total;
        int r;

        for (uint64_t i = 0; n == 0 || i < n; i++) {
                r = sqlipc_cursor_next(cursor);
                if (r < 0) {
                        answer(r);
                        return;
                }
                if (r == 0) {
                        sqlipc_cursor_get_totals(cursor, &total, NULL, NULL);
                        printf("end %" PRIu64 "\n", total);
                        return;
                }
                printf("row");
                for (unsigned c = 0; c < sqlipc_column_count(cursor); c++)
                        print_value(c);
                putchar('\n');
        }
        puts("ok");
}

static void *cancel_soon(void *userdata) {
        usleep(200 * 1000);
        (void) sqlipc_cursor_cancel(userdata);
        return NULL;
}

/* Waits in sqlipc_cursor_next() while another thread cancels. */
static void cancel_from_thread(void) {
        pthread_t thread;
        int r;

        if (pthread_create(&thread, NULL, cancel_soon, cursor) != 0) {
                answer(-EAGAIN);
                return;
        }
        do
                r = sqlipc_cursor_next(cursor);
        while (r > 0);
        pthread_join(thread, NULL);
        if (r == 0)
                puts("end 0");
        else
                answer(r);
}

/* Bytes of a hexadecimal string, in place. Without sscanf(), which measures the rest of the string each time. */
static size_t unhex(char *hex) {
        size_t n = 0;

        for (const char *at = hex; isxdigit((unsigned char) at[0]) && isxdigit((unsigned char) at[1]); at += 2) {
                char pair[] = { at[0], at[1], '\0' };

                hex[n++] = (char) strtoul(pair, NULL, 16);
        }
        return n;
}

static int bind(unsigned index, char type, char *value) {
        switch (type) {
        case 'i':
                return sqlipc_bind_int64(statement, index, strtoll(value, NULL, 10));
        case 'r':
                return sqlipc_bind_double(statement, index, strtod(value, NULL));
        case 't':
                return sqlipc_bind_text(statement, index, value, unhex(value));
        case 'b':
                return sqlipc_bind_blob(statement, index, value, unhex(value));
        default:
                return sqlipc_bind_null(statement, index);
        }
}

static void print_string(const char *string) {
        if (string)
                print_bytes('t', (const uint8_t *) string, strlen(string));
        else
                printf(" n");
}

static void columns(void) {
        for (unsigned i = 0; i < sqlipc_statement_column_count(statement); i++) {
                printf("row");
                print_string(sqlipc_statement_column_name(statement, i));
                print_string(sqlipc_statement_column_decltype(statement, i));
                printf("\n");
        }
        answer(0);
}

static void names(void) {
        for (unsigned i = 0; i < sqlipc_column_count(cursor); i++) {
                printf("row");
                print_string(sqlipc_column_name(cursor, i));
                print_string(sqlipc_column_decltype(cursor, i));
                printf("\n");
        }
        answer(0);
}

static void totals(void) {
        uint64_t n_rows, bytes, usec;

        sqlipc_cursor_get_totals(cursor, &n_rows, &bytes, &usec);
        printf("totals %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", n_rows, bytes, usec);
}

static void exec(const char *database, const char *sql) {
        int64_t n_changes;
        int r = sqlipc_exec(connection, database, sql, &n_changes);

        if (r < 0)
                answer(r);
        else
                printf("changes %" PRId64 "\n", n_changes);
}

static int begin(const char *mode, const char *database) {
        transaction = sqlipc_transaction_close(transaction);
        return sqlipc_begin(connection, database, strcmp(mode, "write") ? SQLIPC_TRANSACTION_READ : SQLIPC_TRANSACTION_WRITE,
                            &transaction);
}

static int open_load(const char *database, const char *sql) {
        load = sqlipc_load_close(load);
        return sqlipc_load_open(connection, database, sql, &load);
}

static int give_number(int64_t number) {
        sqlipc_parameter value = { .struct_size = sizeof value, .type = SQLIPC_INTEGER, .integer = number };

        return sqlipc_load_row(load, &value, 1);
}

static int give(int64_t first, int64_t n) {
        int r = 0;

        for (int64_t i = first; r >= 0 && i < first + n; i++)
                r = give_number(i);
        return r;
}

static int give_blob(size_t size) {
        sqlipc_parameter value = { .struct_size = sizeof value, .type = SQLIPC_BLOB, .size = size };
        char *blob = malloc(size);
        int r = -ENOMEM;

        if (blob) {
                memset(blob, 'x', size);
                value.bytes = blob;
                r = sqlipc_load_row(load, &value, 1);
        }
        free(blob);
        return r;
}

static int give_two(void) {
        const sqlipc_parameter values[] = { { .struct_size = sizeof values[0], .type = SQLIPC_NULL },
                                            { .struct_size = sizeof values[0], .type = SQLIPC_NULL } };

        return sqlipc_load_row(load, values, 2);
}

static void print_changes(int r, int64_t n_changes) {
        if (r < 0)
                answer(r);
        else
                printf("changes %" PRId64 "\n", n_changes);
}

static void finish(void) {
        int64_t n_changes = 0;
        int r = sqlipc_load_finish(load, &n_changes);

        print_changes(r, n_changes);
}

static void note_news(sqlipc_load *l, void *userdata) {
        (void) l;
        *(bool *) userdata = true;
}

/* A loop that tries again only after the callback. */
static int turn_until(const bool *news) {
        int r = 0;

        while (r >= 0 && !*news) {
                struct pollfd fd = { .fd = sqlipc_get_fd(connection), .events = (short) sqlipc_get_events(connection) };

                if (poll(&fd, 1, 60000) == 0)
                        return -ETIME;
                r = sqlipc_process(connection);
        }
        return r;
}

static void loop(int64_t first, int64_t n) {
        int64_t n_changes = 0, end = first + n;
        bool news = false;
        int r;

        (void) sqlipc_set_blocking(connection, 0);
        (void) sqlipc_load_set_ready_callback(load, note_news, &news);
        while ((r = first < end ? give_number(first) : sqlipc_load_finish(load, &n_changes)) >= 0 || r == -EAGAIN) {
                if (r >= 0 && first++ == end)
                        break;
                if (r < 0)
                        r = turn_until(&news);
                news = false;
                if (r < 0)
                        break;
        }
        (void) sqlipc_set_blocking(connection, 1);
        print_changes(r, n_changes);
}

static int new_batch(const char *database) {
        batch = sqlipc_batch_close(batch);
        return sqlipc_batch_new(connection, database, &batch);
}

static int add(char *value, const char *sql) {
        if (*value == '-')
                return sqlipc_batch_add(batch, sql, NULL);
        if (*value == 'n')
                return sqlipc_batch_add(batch, sql, "n");
        return sqlipc_batch_add(batch, sql, "t", value, unhex(value));
}

static void run(size_t n) {
        int64_t n_changes;
        int r = sqlipc_batch_run(batch, &n_changes);

        if (r < 0) {
                answer(r);
                return;
        }
        printf("changes %" PRId64, n_changes);
        for (size_t i = 0; i < n; i++)
                printf(" %" PRId64, sqlipc_batch_changes(batch, i));
        putchar('\n');
}

/* ---- Watches and live queries ---- */

static int open_watch(const char *database, char *tables) {
        const char *names[20] = { NULL };

        for (size_t i = 0; tables && *tables && i < 19; i++)
                names[i] = strsep(&tables, " ");
        watch = sqlipc_watch_close(watch);
        return sqlipc_watch_open(connection, database, names, &watch);
}

static int open_watch_sql(const char *database, const char *sql) {
        watch = sqlipc_watch_close(watch);
        return sqlipc_watch_open_sql(connection, database, sql, &watch);
}

static int open_watch_since(const char *database, const char *since) {
        watch = sqlipc_watch_close(watch);
        return sqlipc_watch_open_since(connection, database, NULL, strtoull(since, NULL, 10), &watch);
}

static void await(uint64_t usec) {
        int r = sqlipc_watch_next(watch, usec);

        if (r < 0)
                answer(r);
        else
                printf("changed %d %" PRIu64 "\n", r, sqlipc_watch_sequence(watch));
}

static int open_live(const char *database, const char *sql) {
        live = sqlipc_live_close(live);
        return sqlipc_live_open(connection, database, sql, NULL, 0, NULL, &live);
}

static void print_values(const sqlipc_value *values) {
        uint64_t bits;

        for (unsigned i = 0; values && i < sqlipc_live_column_count(live); i++)
                switch (values[i].type) {
                case SQLIPC_INTEGER:
                        printf(" i:%" PRId64, values[i].as.integer);
                        break;
                case SQLIPC_REAL:
                        memcpy(&bits, &values[i].as.real, sizeof bits);
                        printf(" r:%016" PRIx64, bits);
                        break;
                case SQLIPC_TEXT:
                        print_bytes('t', values[i].as.blob, values[i].size);
                        break;
                case SQLIPC_BLOB:
                        print_bytes('b', values[i].as.blob, values[i].size);
                        break;
                case SQLIPC_NULL:
                        printf(" n");
                        break;
                }
}

static void follow(uint64_t usec) {
        const sqlipc_live_change *change;
        int r;

        while ((r = sqlipc_live_next(live, usec, &change)) > 0) {
                if (change->kind == SQLIPC_LIVE_SETTLED) {
                        printf("settled %" PRIu64 "\n", sqlipc_live_sequence(live));
                        return;
                }
                printf("row i:%d i:%zu i:%zu", (int) change->kind, change->position, change->new_position);
                print_values(change->values);
                putchar('\n');
        }
        if (r == 0)
                puts("quiet");
        else
                answer(r);
}

static int open_remote(const char *which, const char *host) {
        if (!strcmp(which, "user"))
                return sqlipc_open_user_remote(host, &connection);
        return sqlipc_open_system_remote(host, &connection);
}

/* A bus connection of the program's own, set up as sd-bus does it by itself. */
static int lend(const char *address) {
        sd_bus *b = NULL;
        int r;

        r = sd_bus_new(&b);
        if (r >= 0)
                r = sd_bus_set_address(b, address);
        if (r >= 0)
                r = sd_bus_set_bus_client(b, true);
        if (r >= 0)
                r = sd_bus_start(b);
        if (r >= 0)
                r = sqlipc_open_bus(b, &connection);
        sd_bus_unref(b);
        return r;
}

/* A call of the program's own goes over the connection's bus. */
static void bus(void) {
        sd_bus *b = sqlipc_get_bus(connection);
        const char *name;

        if (!b)
                answer(-ENOTCONN);
        else if (sd_bus_get_unique_name(b, &name) < 0)
                puts("bus");
        else
                printf("bus %s\n", name);
}

static const char *const transports[] = { "auto", "pipe", "channel", "dbus" };

static int set_transport(const char *name) {
        for (int i = 0; i < 4; i++)
                if (!strcmp(name, transports[i]))
                        return sqlipc_set_transport(connection, (sqlipc_transport) i);
        return -EINVAL;
}

static void close_cursor(void) {
        cursor = sqlipc_cursor_close(cursor);
}

static void finalize(void) {
        close_cursor();
        statement = sqlipc_finalize(statement);
}

static void obey(char *line) {
        char *verb = strsep(&line, " "), *word = strsep(&line, " ");

        if (!strcmp(verb, "find")) {
                answer(sqlipc_open(word, line && *line ? line : NULL, &connection));
        } else if (!strcmp(verb, "bus-name")) {
                printf("bus %s\n", sqlipc_get_bus_name(connection) ? sqlipc_get_bus_name(connection) : "other");
        } else if (!strcmp(verb, "open")) {
                answer(sqlipc_open_address(word, &connection));
        } else if (!strcmp(verb, "remote")) {
                answer(open_remote(word, line ? line : ""));
        } else if (!strcmp(verb, "lend")) {
                answer(lend(word));
        } else if (!strcmp(verb, "bus")) {
                bus();
        } else if (!strcmp(verb, "totals")) {
                totals();
        } else if (!strcmp(verb, "exec")) {
                exec(word, line);
        } else if (!strcmp(verb, "begin")) {
                answer(begin(word, line));
        } else if (!strcmp(verb, "commit")) {
                answer(sqlipc_commit(transaction));
        } else if (!strcmp(verb, "rollback")) {
                answer(sqlipc_rollback(transaction));
        } else if (!strcmp(verb, "is-open")) {
                printf("open %d\n", sqlipc_transaction_is_open(transaction));
        } else if (!strcmp(verb, "drop")) {
                transaction = sqlipc_transaction_close(transaction);
                answer(0);
        } else if (!strcmp(verb, "load")) {
                answer(open_load(word, line));
        } else if (!strcmp(verb, "give")) {
                answer(give(strtoll(word, NULL, 10), strtoll(line, NULL, 10)));
        } else if (!strcmp(verb, "give-blob")) {
                answer(give_blob(strtoull(word, NULL, 10)));
        } else if (!strcmp(verb, "give-two")) {
                answer(give_two());
        } else if (!strcmp(verb, "finish")) {
                finish();
        } else if (!strcmp(verb, "loop")) {
                loop(strtoll(word, NULL, 10), strtoll(line, NULL, 10));
        } else if (!strcmp(verb, "unload")) {
                load = sqlipc_load_close(load);
                answer(0);
        } else if (!strcmp(verb, "batch")) {
                answer(new_batch(word));
        } else if (!strcmp(verb, "add")) {
                answer(add(word, line));
        } else if (!strcmp(verb, "run")) {
                run(strtoull(word, NULL, 10));
        } else if (!strcmp(verb, "changes")) {
                printf("changes %" PRId64 " %" PRId64 "\n", sqlipc_cursor_changes(cursor), sqlipc_cursor_last_rowid(cursor));
        } else if (!strcmp(verb, "readonly")) {
                printf("readonly %d\n", sqlipc_statement_is_readonly(statement));
        } else if (!strcmp(verb, "names")) {
                names();
        } else if (!strcmp(verb, "timeout")) {
                answer(sqlipc_set_timeout(connection, strtoull(word, NULL, 10)));
        } else if (!strcmp(verb, "run-timeout")) {
                answer(sqlipc_set_run_timeout(connection, strtoull(word, NULL, 10)));
        } else if (!strcmp(verb, "interactive")) {
                answer(sqlipc_set_allow_interactive_authorization(connection, atoi(word)));
        } else if (!strcmp(verb, "transport")) {
                answer(set_transport(word));
        } else if (!strcmp(verb, "which")) {
                printf("via %s\n", transports[sqlipc_cursor_get_transport(cursor)]);
        } else if (!strcmp(verb, "query")) {
                close_cursor();
                answer(sqlipc_query(connection, word, line, &cursor, NULL));
        } else if (!strcmp(verb, "prepare")) {
                finalize();
                answer(sqlipc_prepare(connection, word, line, &statement));
        } else if (!strcmp(verb, "execute")) {
                close_cursor();
                answer(sqlipc_execute(statement, &cursor));
        } else if (!strcmp(verb, "columns")) {
                columns();
        } else if (!strcmp(verb, "rows")) {
                rows(strtoull(word, NULL, 10));
        } else if (!strcmp(verb, "bind")) {
                char *type = strsep(&line, " ");
                answer(bind((unsigned) strtoul(word, NULL, 10), *type, line));
        } else if (!strcmp(verb, "name")) {
                answer(sqlipc_bind_text_by_name(statement, word, line, unhex(line)));
        } else if (!strcmp(verb, "cancel")) {
                answer(sqlipc_cursor_cancel(cursor));
        } else if (!strcmp(verb, "cancel-later")) {
                cancel_from_thread();
        } else if (!strcmp(verb, "watch")) {
                answer(open_watch(word, line));
        } else if (!strcmp(verb, "watch-sql")) {
                answer(open_watch_sql(word, line));
        } else if (!strcmp(verb, "watch-since")) {
                answer(open_watch_since(word, line));
        } else if (!strcmp(verb, "await")) {
                await(strtoull(word, NULL, 10));
        } else if (!strcmp(verb, "unwatch")) {
                watch = sqlipc_watch_close(watch);
                answer(0);
        } else if (!strcmp(verb, "sequence")) {
                printf("sequence %" PRIu64 "\n", sqlipc_cursor_sequence(cursor));
        } else if (!strcmp(verb, "live")) {
                answer(open_live(word, line));
        } else if (!strcmp(verb, "follow")) {
                follow(strtoull(word, NULL, 10));
        } else if (!strcmp(verb, "unlive")) {
                live = sqlipc_live_close(live);
                answer(0);
        } else if (!strcmp(verb, "finalize")) {
                finalize();
                answer(0);
        } else {
                puts("what?");
        }
}

static void interrupt(int number) {
        (void) number;
        (void) sqlipc_interrupt(connection);
}

int main(void) {
        const struct sigaction on_signal = { .sa_handler = interrupt, .sa_flags = SA_RESTART };
        char *line = NULL;
        size_t size = 0;
        ssize_t n;

        (void) sigaction(SIGUSR1, &on_signal, NULL);
        while ((n = getline(&line, &size, stdin)) > 0) {
                if (line[n - 1] == '\n')
                        line[n - 1] = '\0';
                obey(line);
                fflush(stdout);
        }
        free(line);
        finalize();
        sqlipc_load_close(load);
        sqlipc_batch_close(batch);
        sqlipc_live_close(live);
        sqlipc_watch_close(watch);
        sqlipc_transaction_close(transaction);
        sqlipc_close(connection);
        return 0;
}
