/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * dataset: the table of the 2010 study, `study`: 31 columns, the identifier and 30 of TEXT with 20 random lowercase
 * letters each. The same rows and seed give the same values everywhere (random.c).
 *
 * The file is made beside its name and renamed into place when it is whole: a run that fails or is killed leaves what was
 * there before. It ends in rollback-journal mode, or with --wal in WAL mode.
 */
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "random.h"
#include "workload.h"

enum {
        TEXT_COLUMNS = 30,
        TEXT_LENGTH = 20,
};

typedef struct Dataset {
        gint64 n_rows, seed;
        gboolean force, wal;
        const char *path; /* of the file to be */
} Dataset;

static int failed(sqlite3 *db, const char *what) {
        fprintf(stderr, "sqlipc-bench: %s: %s\n", what, sqlite3_errmsg(db));
        return -EIO;
}

static int execute(sqlite3 *db, const char *sql) {
        return sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : failed(db, sql);
}

static char *column_list(const char *prefix, const char *suffix) {
        GString *list = g_string_new(NULL);

        for (int i = 1; i <= TEXT_COLUMNS; i++)
                g_string_append_printf(list, "%s%02d%s", prefix, i, suffix);
        return g_string_free(list, FALSE);
}

static int insert_rows(sqlite3 *db, sqlite3_stmt *insert, const Dataset *dataset) {
        char letters[TEXT_COLUMNS][TEXT_LENGTH];
        Random random;

        random_init(&random, (uint64_t) dataset->seed);
        for (gint64 row = 1; row <= dataset->n_rows; row++) {
                random_letters(&random, letters[0], sizeof letters);
                if (sqlite3_bind_int64(insert, 1, row) != SQLITE_OK)
                        return failed(db, "bind");
                for (int i = 0; i < TEXT_COLUMNS; i++)
                        if (sqlite3_bind_text(insert, i + 2, letters[i], TEXT_LENGTH, SQLITE_STATIC) != SQLITE_OK)
                                return failed(db, "bind");
                if (sqlite3_step(insert) != SQLITE_DONE || sqlite3_reset(insert) != SQLITE_OK)
                        return failed(db, "insert");
        }
        return 0;
}

static int fill(sqlite3 *db, const Dataset *dataset) {
        g_autofree char *columns = column_list(", c", " TEXT"), *names = column_list(", :c", "");
        g_autofree char *create = g_strconcat("CREATE TABLE study (id INTEGER PRIMARY KEY", columns, ")", NULL);
        g_autofree char *sql = g_strconcat("INSERT INTO study VALUES (:id", names, ")", NULL);
        sqlite3_stmt *insert;
        int r;

        r = execute(db, "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; BEGIN");
        if (r >= 0)
                r = execute(db, create);
        if (r < 0)
                return r;
        if (sqlite3_prepare_v2(db, sql, -1, &insert, NULL) != SQLITE_OK)
                return failed(db, "prepare");
        r = insert_rows(db, insert, dataset);
        sqlite3_finalize(insert);
        if (r < 0)
                return r;
        return execute(db, dataset->wal ? "COMMIT; PRAGMA synchronous = FULL; PRAGMA journal_mode = WAL"
                                        : "COMMIT; PRAGMA synchronous = FULL; PRAGMA journal_mode = DELETE");
}

static int make(const Dataset *dataset, const char *path) {
        sqlite3 *db = NULL;
        int r;

        if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK)
                r = fill(db, dataset);
        else
                r = failed(db, path);
        if (sqlite3_close(db) != SQLITE_OK && r >= 0)
                r = failed(db, path);
        return r;
}

/* Files that belonged to the database that is replaced: SQLite would take them for the new one's. */
static void remove_companions(const char *path) {
        static const char *const suffixes[] = { "-journal", "-wal", "-shm" };

        for (size_t i = 0; i < G_N_ELEMENTS(suffixes); i++) {
                g_autofree char *companion = g_strconcat(path, suffixes[i], NULL);

                (void) g_unlink(companion);
        }
}

static int create(const Dataset *dataset) {
        g_autofree char *temporary = g_strconcat(dataset->path, ".XXXXXX", NULL);
        int fd, r;

        if (!dataset->force && g_access(dataset->path, F_OK) == 0) {
                fprintf(stderr, "sqlipc-bench: %s exists; --force replaces it.\n", dataset->path);
                return -EEXIST;
        }
        fd = g_mkstemp_full(temporary, O_RDWR | O_CLOEXEC, 0666);
        if (fd < 0) {
                r = -errno;
                fprintf(stderr, "sqlipc-bench: cannot create %s: %s\n", temporary, g_strerror(errno));
                return r;
        }
        close(fd);

        r = make(dataset, temporary);
        if (r >= 0)
                remove_companions(dataset->path);
        if (r >= 0 && g_rename(temporary, dataset->path) < 0) {
                r = -errno;
                fprintf(stderr, "sqlipc-bench: cannot rename %s to %s: %s\n", temporary, dataset->path, g_strerror(errno));
        }
        if (r < 0)
                (void) g_unlink(temporary);
        return r;
}

int verb_dataset(int argc, char **argv) {
        Dataset dataset = { .n_rows = 300000, .seed = 1 };
        const GOptionEntry entries[] = {
                { "rows", 0, 0, G_OPTION_ARG_INT64, &dataset.n_rows, "Number of rows, 300000", "N" },
                { "seed", 0, 0, G_OPTION_ARG_INT64, &dataset.seed, "Which random strings, 1", "N" },
                { "wal", 0, 0, G_OPTION_ARG_NONE, &dataset.wal, "Leave the file in WAL mode", NULL },
                { "force", 0, 0, G_OPTION_ARG_NONE, &dataset.force, "Replace FILE where it exists", NULL },
                {},
        };
        g_autoptr(GOptionContext) context = g_option_context_new("FILE");
        g_autoptr(GError) error = NULL;

        g_option_context_set_summary(context, "Makes the table of the 2010 study: 31 columns, 30 of them random strings.");
        g_option_context_add_main_entries(context, entries, NULL);
        if (!g_option_context_parse(context, &argc, &argv, &error)) {
                fprintf(stderr, "sqlipc-bench: %s\n", error->message);
                return BENCH_USAGE;
        }
        if (argc != 2 || dataset.n_rows < 0) {
                fprintf(stderr, "sqlipc-bench: dataset takes one FILE, and --rows of 0 or more.\n");
                return BENCH_USAGE;
        }
        dataset.path = argv[1];
        return create(&dataset) < 0 ? BENCH_FAILED : BENCH_OK;
}
