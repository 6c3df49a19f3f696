/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A client of a library whose calls fail one after the other: library-client-faults ADDRESS. Includes sqlipc.h alone of the
 * library's; the sites are its own program's (site.h), so it arms them itself.
 *
 * A session is a client's life over one transport. With a fault it ends with an error that says what is wrong, or with
 * the right values; the connection can be asked again, and no descriptor is left. Who hangs is ended by SIGALRM.
 */
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "site.h"
#include "sqlipc.h"

#define SITES_MAX 1024
#define PATIENCE 60
#define SIZE 200000

static const char *address;
static const FaultSite *armed;

static void on_alarm(int signal) {
        (void) signal;
        static const char text[] = "not ok 1 - a call of the library did not come back\n";
        ssize_t n = write(STDOUT_FILENO, text, sizeof text - 1);
        (void) n;
        n = armed ? write(STDOUT_FILENO, armed->function, strlen(armed->function)) : 0;
        (void) n;
        _exit(1);
}

static int count_descriptors(void) {
        DIR *folder = opendir("/proc/self/fd");
        int n = 0;

        while (folder && readdir(folder))
                n++;
        closedir(folder);
        return n;
}

static void wrong(const char *what) {
        printf("not ok 1 - %s: %s:%d %s() %s\n", what, armed ? armed->file : "", armed ? armed->line : 0,
               armed ? armed->function : "", armed ? armed->call : "no fault");
        exit(1);
}

/* The one row of `cursor` has the values that were bound. */
static int check_values(sqlipc_cursor *cursor) {
        size_t size;
        int r = sqlipc_cursor_next(cursor);

        if (r <= 0)
                return r < 0 ? r : (wrong("a row is missing"), 0);
        if (sqlipc_column_int64(cursor, 0) != INT64_MIN || sqlipc_column_double(cursor, 1) != 2.5 ||
            strcmp(sqlipc_column_text(cursor, 2, &size), "text") != 0 || sqlipc_column_type(cursor, 3) != SQLIPC_NULL)
                wrong("a value is wrong");
        (void) sqlipc_column_blob(cursor, 4, &size);
        if (size != SIZE)
                wrong("a blob is too short");
        r = sqlipc_cursor_next(cursor);
        return r > 0 ? (wrong("a row too much"), 0) : r;
}

static int run_statement(sqlipc_connection *c) {
        static uint8_t blob[SIZE];
        sqlipc_statement *s = NULL;
        sqlipc_cursor *cursor = NULL;
        int r = sqlipc_prepare(c, "chinook", "SELECT ?, ?, ?, ?, :blob", &s);

        if (r >= 0)
                r = sqlipc_bind_int64(s, 1, INT64_MIN);
        if (r >= 0)
                r = sqlipc_bind_double(s, 2, 2.5);
        if (r >= 0)
                r = sqlipc_bind_text(s, 3, "text", 4);
        if (r >= 0)
                r = sqlipc_bind_null(s, 4);
        if (r >= 0)
                r = sqlipc_bind_blob_by_name(s, ":blob", blob, SIZE);
        for (int i = 0; i < 2 && r >= 0; i++) {
                r = sqlipc_execute(s, &cursor);
                if (r >= 0)
                        r = check_values(cursor);
                cursor = sqlipc_cursor_close(cursor);
        }
        (void) sqlipc_finalize(s);
        return r;
}

static int count_rows(sqlipc_connection *c, const char *sql, unsigned n_expected) {
        sqlipc_cursor *cursor = NULL;
        unsigned n = 0;
        int r = sqlipc_query(c, "chinook", sql, &cursor, NULL);

        while (r >= 0 && (r = sqlipc_cursor_next(cursor)) > 0)
                n++;
        if (r == 0 && n != n_expected)
                wrong("rows are missing");
        (void) sqlipc_cursor_close(cursor);
        return r;
}

static int give_up_half_way(sqlipc_connection *c) {
        sqlipc_cursor *cursor = NULL;
        int r = sqlipc_query(c, "chinook", "SELECT * FROM Track, Genre", &cursor, NULL);

        if (r >= 0)
                r = sqlipc_cursor_next(cursor);
        if (r >= 0)
                r = sqlipc_cursor_cancel(cursor);
        (void) sqlipc_cursor_close(cursor);
        return r;
}

/* What D-Bus has no type for, and a row that is too large for memory of its own. */
static int ask_for_odd_values(sqlipc_connection *c) {
        const sqlipc_parameter parameters[] = { { .name = ":a", .type = SQLIPC_TEXT, .bytes = "\xff", .size = 1 } };
        sqlipc_cursor *cursor = NULL;
        size_t size = 0;
        int r = sqlipc_query_with(c, "chinook", "SELECT :a AS \"a\", zeroblob(6000000)", parameters, 1, &cursor);

        if (r >= 0)
                r = sqlipc_cursor_next(cursor);
        if (r > 0 && (sqlipc_column_text(cursor, 0, &size)[0] != '\xff' || size != 1))
                wrong("a text is wrong");
        if (r > 0)
                (void) sqlipc_column_blob(cursor, 1, &size);
        if (r > 0 && size != 6000000)
                wrong("a large blob is too short");
        (void) sqlipc_cursor_close(cursor);
        return r;
}

static int wait_for_events(sqlipc_connection *c) {
        struct pollfd p = { .fd = sqlipc_get_fd(c) };
        int r = p.fd < 0 ? p.fd : sqlipc_get_events(c);

        if (r < 0)
                return r;
        p.events = (short) r;
        uint64_t usec;
        r = sqlipc_get_timeout(c, &usec);
        if (r < 0)
                return r;
        (void) poll(&p, 1, 1000); /* no later than what would come by time */
        return sqlipc_process(c);
}

/* From a loop of the program's own. */
static int ask_without_blocking(sqlipc_connection *c) {
        sqlipc_cursor *cursor = NULL;
        unsigned n = 0;
        int r = sqlipc_set_blocking(c, 0);

        if (r >= 0)
                r = sqlipc_query(c, "chinook", "SELECT * FROM Genre", &cursor, NULL);
        while (r >= 0 && ((r = sqlipc_cursor_next(cursor)) > 0 || r == -EAGAIN)) {
                n += r > 0;
                if (r == -EAGAIN)
                        r = wait_for_events(c);
        }
        if (r == 0 && n != 25)
                wrong("rows are missing");
        (void) sqlipc_cursor_close(cursor);
        (void) sqlipc_set_blocking(c, 1);
        return r;
}

static int count_database(const char *name, const char *description, void *userdata) {
        (void) name;
        (void) description;
        ++*(int *) userdata;
        return 0;
}

/* Everything, in a connection of its own. */
static int live(sqlipc_transport transport) {
        sqlipc_connection *c = NULL;
        sqlipc_cursor *cursor = NULL;
        int n = 0, r = sqlipc_open_address(address, &c);

        if (r >= 0)
                r = sqlipc_set_transport(c, transport);
        if (r >= 0)
                r = sqlipc_list_databases(c, count_database, &n);
        if (r >= 0)
                r = run_statement(c);
        if (r >= 0)
                r = count_rows(c, "SELECT * FROM Track", 3503);
        if (r >= 0)
                r = give_up_half_way(c);
        if (r >= 0)
                r = ask_for_odd_values(c);
        if (r >= 0)
                r = ask_without_blocking(c);
        if (r >= 0 && sqlipc_query(c, "chinook", "SELECT * FROM nowhere", &cursor, NULL) >= 0 &&
            sqlipc_cursor_next(cursor) >= 0)
                wrong("a wrong statement ran");
        cursor = sqlipc_cursor_close(cursor);
        if (r < 0 && c && !*sqlipc_error_message(c))
                wrong("an error without a sentence");
        if (c) /* it may be lost, but it answers */
                (void) count_rows(c, "SELECT 1", 1);
        (void) sqlipc_close(c);
        return r;
}

static void try_one(sqlipc_transport transport, unsigned index, int error, unsigned skip) {
        int n = count_descriptors(), r;

        armed = fault_site(index);
        (void) alarm(PATIENCE);
        fault_arm(index, error, skip);
        r = live(transport);
        if (!fault_fired() && r < 0)
                wrong("an error without a fault");
        (void) alarm(0);
        if (count_descriptors() > n)
                wrong("a descriptor is left");
        armed = NULL;
}

/* Each site that a life over this transport reaches, at its first and its last call. Returns how many cases these were. */
static unsigned try_all(sqlipc_transport transport) {
        static unsigned before[SITES_MAX];
        unsigned n = 0;

        for (unsigned i = 0; fault_site(i); i++)
                before[i] = fault_reached(i);
        if (live(transport) < 0)
                wrong("an error without a fault");
        for (unsigned i = 0; fault_site(i); i++)
                before[i] = fault_reached(i) - before[i];
        for (unsigned i = 0; fault_site(i); i++)
                for (int k = 0; before[i] > 0 && k < FAULT_ERRORS_MAX && fault_site(i)->errors[k] != 0; k++) {
                        try_one(transport, i, fault_site(i)->errors[k], 0);
                        n++;
                        if (before[i] > 1) {
                                try_one(transport, i, fault_site(i)->errors[k], before[i] - 1);
                                n++;
                        }
                }
        return n;
}

int main(int argc, char **argv) {
        static const sqlipc_transport transports[] = {
                SQLIPC_TRANSPORT_PIPE, SQLIPC_TRANSPORT_CHANNEL, SQLIPC_TRANSPORT_DBUS,
        };
        unsigned n = 0, n_never = 0;

        if (argc != 2)
                return 2;
        address = argv[1];
        (void) setvbuf(stdout, NULL, _IOLBF, 0);
        (void) signal(SIGALRM, on_alarm);
        printf("1..1\n");
        for (size_t i = 0; i < sizeof transports / sizeof transports[0]; i++)
                n += try_all(transports[i]);
        for (unsigned i = 0; fault_site(i); i++)
                if (fault_reached(i) == 0) {
                        printf("# not reached: %s:%d %s() %s\n", fault_site(i)->file, fault_site(i)->line,
                               fault_site(i)->function, fault_site(i)->call);
                        n_never++;
                }
        printf("# sites that these lives do not come to: %u\n", n_never);
        printf("# cases: faults library: %u: one call of the library fails once, with one of its errors, in a client\n", n);
        printf("ok 1 - Each call of the library fails once, in a client's life over each transport\n");
        return 0;
}
