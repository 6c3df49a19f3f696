/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A program with a database of its own, in memory, that has loaded the extension of its first argument. It runs SQL, line by
 * line, so that a test in Python can do things to the service in between. From the outside: knows SQLite only.
 *
 *      SQL           all rows of one statement
 *      first SQL     the first row, then the statement is ended
 *      twice SQL     all rows by two cursors that take turns
 *
 * Answers, one line each: "row VALUE...", then "ok" or "error CODE MESSAGE". A value is n, i:DECIMAL, r:BITS, t:HEX or
 * b:HEX. SIGUSR1 calls sqlite3_interrupt().
 */
#include <inttypes.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static sqlite3 *db;

static void interrupt(int signal) {
        (void) signal;
        sqlite3_interrupt(db);
}

static void print_bytes(char type, const unsigned char *bytes, int size) {
        printf(" %c:", type);
        for (int i = 0; i < size; i++)
                printf("%02x", bytes[i]);
}

static void print_value(sqlite3_stmt *stmt, int i) {
        double real;
        uint64_t bits;

        switch (sqlite3_column_type(stmt, i)) {
        case SQLITE_INTEGER:
                printf(" i:%" PRId64, (int64_t) sqlite3_column_int64(stmt, i));
                return;
        case SQLITE_FLOAT:
                real = sqlite3_column_double(stmt, i);
                memcpy(&bits, &real, sizeof bits);
                printf(" r:%016" PRIx64, bits);
                return;
        case SQLITE_TEXT:
                print_bytes('t', sqlite3_column_text(stmt, i), sqlite3_column_bytes(stmt, i));
                return;
        case SQLITE_BLOB:
                print_bytes('b', sqlite3_column_blob(stmt, i), sqlite3_column_bytes(stmt, i));
                return;
        default:
                printf(" n");
        }
}

static int print_row(sqlite3_stmt *stmt) {
        int rc = sqlite3_step(stmt);

        if (rc != SQLITE_ROW)
                return rc;
        printf("row");
        for (int i = 0; i < sqlite3_column_count(stmt); i++)
                print_value(stmt, i);
        puts("");
        return rc;
}

static void run(const char *sql, bool first, int n_cursors) {
        sqlite3_stmt *stmts[2] = {};
        int rc = SQLITE_ROW, codes[2] = {SQLITE_ROW, SQLITE_ROW};

        for (int i = 0; i < n_cursors; i++)
                if (sqlite3_prepare_v2(db, sql, -1, &stmts[i], NULL) != SQLITE_OK)
                        codes[i] = rc = sqlite3_errcode(db);
        while (rc == SQLITE_ROW) {
                rc = SQLITE_DONE;
                for (int i = 0; i < n_cursors && (rc == SQLITE_DONE || rc == SQLITE_ROW); i++) {
                        if (codes[i] == SQLITE_ROW)
                                codes[i] = print_row(stmts[i]);
                        if (codes[i] != SQLITE_DONE)
                                rc = codes[i];
                }
                if (first && rc == SQLITE_ROW)
                        rc = SQLITE_DONE;
        }
        if (rc == SQLITE_DONE)
                puts("ok");
        else
                printf("error %d %s\n", rc, sqlite3_errmsg(db));
        for (int i = 0; i < n_cursors; i++)
                (void) sqlite3_finalize(stmts[i]);
}

int main(int argc, char **argv) {
        char *line = NULL, *error = NULL;
        size_t size = 0;

        if (argc != 2 || sqlite3_open(":memory:", &db) != SQLITE_OK || sqlite3_enable_load_extension(db, 1) != SQLITE_OK)
                return EXIT_FAILURE;
        if (sqlite3_load_extension(db, argv[1], NULL, &error) != SQLITE_OK) {
                fprintf(stderr, "%s\n", error);
                return EXIT_FAILURE;
        }
        (void) signal(SIGUSR1, interrupt);
        while (getline(&line, &size, stdin) > 0) {
                line[strcspn(line, "\n")] = 0;
                if (strncmp(line, "first ", 6) == 0)
                        run(line + 6, true, 1);
                else if (strncmp(line, "twice ", 6) == 0)
                        run(line + 6, false, 2);
                else
                        run(line, false, 1);
                (void) fflush(stdout);
        }
        free(line);
        return sqlite3_close(db) == SQLITE_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
