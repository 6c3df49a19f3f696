/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * differential BUS RELAY [SIDE:SPOIL]
 *
 * Runs queries in process and through the service, every way there is, and compares what came. Commands come on standard
 * input (commands.h), answers go to standard output, a line each, with tabs between:
 *
 *      differs NUMBER SIDE PAGE-SIZE WHAT      this query, that side
 *      done QUERIES RUNS ERRORS BYTES BY-PIPE  the group is over: queries that were compared (not those that take too
 *                                              long), runs of all sides, queries that SQLite refused, bytes of values,
 *                                              runs that left the channel for a pipe
 *
 * BUS and RELAY are addresses of one bus, the second one passes no descriptors. SIDE:SPOIL falsifies what that side brings
 * (result_spoil()), for a test of the finder. Tests only.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/reliability/differential/commands.h"
#include "tests/reliability/differential/library-side.h"
#include "tests/reliability/differential/page-side.h"

#define GROUP_MAX 64

enum { PIPE, CHANNEL, DBUS, RELAY, EXPOSED, N_LIBRARY_SIDES };

static LibrarySide sides[N_LIBRARY_SIDES] = {
        [PIPE] = { .name = "pipe", .transport = SQLIPC_TRANSPORT_PIPE, .way = SQLIPC_TRANSPORT_PIPE },
        [CHANNEL] = { .name = "channel", .transport = SQLIPC_TRANSPORT_CHANNEL, .way = SQLIPC_TRANSPORT_CHANNEL },
        [DBUS] = { .name = "dbus", .transport = SQLIPC_TRANSPORT_DBUS, .way = SQLIPC_TRANSPORT_DBUS },
        [RELAY] = { .name = "relay", .transport = SQLIPC_TRANSPORT_AUTO, .way = SQLIPC_TRANSPORT_DBUS, .by_relay = true },
        [EXPOSED] = { .name = "exposed", .transport = SQLIPC_TRANSPORT_CHANNEL, .way = SQLIPC_TRANSPORT_CHANNEL },
};

typedef struct Comparer {
        PageSide pages;
        sqlite3 *db;
        char *database, *exposed;
        const char *spoiled_side, *spoil;
        Query queries[GROUP_MAX];
        LibraryRun runs[N_LIBRARY_SIDES][GROUP_MAX];
        Result expected[GROUP_MAX], got;
        bool comparable[GROUP_MAX];
        unsigned n_queries;
        uint64_t n_runs, n_errors, n_bytes;
} Comparer;

/* Compares what a side brought, and says what differs in one line. */
static void compare(Comparer *c, unsigned i, const char *side, uint32_t page_size, bool as_set) {
        g_autofree char *difference = NULL;

        if (c->spoil && strcmp(c->spoiled_side, side) == 0)
                result_spoil(&c->got, c->spoil);
        difference = result_difference(&c->expected[i], &c->got, as_set);
        c->n_runs++;
        if (difference)
                printf("differs\t%u\t%s\t%u\t%s\n", c->queries[i].number, side, page_size,
                       g_strdelimit(difference, "\t\n", ' '));
}

/* All that are under way at a time; a side's are taken in the order in which they were sent. */
static void run_library(Comparer *c) {
        for (unsigned s = 0; s < N_LIBRARY_SIDES; s++)
                for (unsigned i = 0; i < c->n_queries; i++)
                        if (s != EXPOSED || c->queries[i].exposed)
                                library_side_start(&sides[s], s == EXPOSED ? c->exposed : c->database, &c->queries[i],
                                                   &c->runs[s][i]);
        for (unsigned i = 0; i < c->n_queries; i++) {
                c->comparable[i] = reference_run(c->db, &c->queries[i], &c->expected[i]);
                c->n_errors += c->expected[i].failed;
                c->n_bytes += c->expected[i].values->len;
        }
        for (unsigned s = 0; s < N_LIBRARY_SIDES; s++)
                for (unsigned i = 0; i < c->n_queries; i++) {
                        if (s == EXPOSED && !c->queries[i].exposed)
                                continue;
                        if (!c->comparable[i]) {
                                library_side_drop(&c->runs[s][i]);
                                continue;
                        }
                        library_side_finish(&sides[s], &c->runs[s][i], &c->got);
                        compare(c, i, sides[s].name, 0, s == EXPOSED);
                }
}

static void run_pages(Comparer *c, unsigned i, uint32_t page_size, bool on_channel) {
        page_side_run(&c->pages, &c->queries[i], page_size, on_channel, &c->got);
        compare(c, i, on_channel ? "channel-pages" : "pipe-pages", page_size, false);
}

/* By every size if the smallest page is too small, otherwise by the size that was asked for: then the result is one frame,
 * with the same bytes for each size. */
static void run_by_page_size(Comparer *c) {
        for (unsigned i = 0; i < c->n_queries; i++)
                if (!c->comparable[i])
                        continue;
                else if (c->expected[i].values->len + c->expected[i].names->len <= SQLIPC_PAGE_SIZE_MIN)
                        run_pages(c, i, c->queries[i].page_size, c->queries[i].on_channel);
                else
                        for (unsigned size = 0; size < N_PAGE_SIZES; size++)
                                run_pages(c, i, page_size_of(size), (size + c->queries[i].on_channel) % 2 == 0);
}

static void run_group(Comparer *c) {
        unsigned n_compared = 0;

        c->n_runs = c->n_errors = c->n_bytes = 0;
        run_library(c);
        run_by_page_size(c);
        for (unsigned i = 0; i < c->n_queries; i++)
                n_compared += c->comparable[i];
        printf("done\t%u\t%" G_GUINT64_FORMAT "\t%" G_GUINT64_FORMAT "\t%" G_GUINT64_FORMAT "\t%" G_GUINT64_FORMAT "\n",
               n_compared, c->n_runs, c->n_errors, c->n_bytes, sides[CHANNEL].n_by_pipe);
        sides[CHANNEL].n_by_pipe = 0;
        fflush(stdout);
        for (unsigned i = 0; i < c->n_queries; i++) {
                query_done(&c->queries[i]);
                result_done(&c->expected[i]);
        }
        c->n_queries = 0;
}

static int use_database(Comparer *c, const Command *command) {
        (void) sqlite3_close(c->db);
        c->db = reference_open(command->path);
        g_free(c->database);
        g_free(c->exposed);
        c->database = g_strdup(command->name);
        c->exposed = g_strdup(command->exposed);
        page_side_use(&c->pages, command->name);
        return c->db ? 0 : -EIO;
}

static int obey(Comparer *c, Command *command) {
        switch (command->letter) {
        case 'D':
                return use_database(c, command);
        case 'Q':
                if (c->n_queries == GROUP_MAX)
                        run_group(c);
                c->queries[c->n_queries++] = command->query;
                return 0;
        case 'G':
                run_group(c);
                return 0;
        default:
                return -EBADMSG;
        }
}

static int open_sides(Comparer *c, const char *address, const char *relay) {
        int r = page_side_open(&c->pages, address);

        for (unsigned s = 0; s < N_LIBRARY_SIDES && r >= 0; s++)
                r = library_side_open(&sides[s], sides[s].by_relay ? relay : address);
        return r;
}

static void comparer_done(Comparer *c) {
        for (unsigned s = 0; s < N_LIBRARY_SIDES; s++)
                library_side_close(&sides[s]);
        page_side_close(&c->pages);
        result_done(&c->got);
        (void) sqlite3_close(c->db);
        g_free(c->database);
        g_free(c->exposed);
}

/* SIDE:SPOIL */
static int set_spoil(Comparer *c, char *argument) {
        char *colon = strchr(argument, ':');

        if (!colon || !g_strv_contains(result_spoils, colon + 1))
                return -EINVAL;
        *colon = '\0';
        c->spoiled_side = argument;
        c->spoil = colon + 1;
        return 0;
}

int main(int argc, char **argv) {
        static Comparer comparer;
        Command command = { .bytes = NULL };
        int r;

        if (argc < 3 || argc > 4 || (argc == 4 && set_spoil(&comparer, argv[3]) < 0)) {
                fprintf(stderr, "usage: differential BUS RELAY [SIDE:SPOIL]\n");
                return 2;
        }
        r = open_sides(&comparer, argv[1], argv[2]);
        while (r >= 0 && (r = command_read(&command)) > 0)
                r = obey(&comparer, &command);
        g_free(command.bytes);
        comparer_done(&comparer);
        if (r < 0)
                fprintf(stderr, "differential: %s\n", g_strerror(-r));
        return r < 0;
}
