/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The contents of the datasets, see dataset.h. */
#include <sqlite3.h>

#include "tools/bench/core/dataset.h"

#define STUDY_COLUMNS DATASET_STUDY_COLUMNS
#define STUDY_LENGTH DATASET_STUDY_LENGTH
#define STUDY_TABLE                                                                                                        \
        "id INTEGER PRIMARY KEY, c01 TEXT, c02 TEXT, c03 TEXT, c04 TEXT, c05 TEXT, c06 TEXT, c07 TEXT, c08 TEXT, "         \
        "c09 TEXT, c10 TEXT, c11 TEXT, c12 TEXT, c13 TEXT, c14 TEXT, c15 TEXT, c16 TEXT, c17 TEXT, c18 TEXT, c19 TEXT, "   \
        "c20 TEXT, c21 TEXT, c22 TEXT, c23 TEXT, c24 TEXT, c25 TEXT, c26 TEXT, c27 TEXT, c28 TEXT, c29 TEXT, c30 TEXT"

enum {
        NARROW_LENGTH = 8,
        RELAY_COLUMNS = 16,
        TEXT_LENGTH = 32,
        BLOB_SIZE = 1024 * 1024,
};

/* Binds `n` values of `length` letters each to the parameters from `first` on. */
static int bind_letters(sqlite3_stmt *insert, Random *random, int first, int n, int length, char *letters) {
        int code = SQLITE_OK;

        random_letters(random, letters, (size_t) n * (size_t) length);
        for (int i = 0; code == SQLITE_OK && i < n; i++)
                code = sqlite3_bind_text(insert, first + i, letters + i * length, length, SQLITE_STATIC);
        return code;
}

static int bind_study(sqlite3_stmt *insert, gint64 row, Random *random) {
        static char letters[STUDY_COLUMNS * STUDY_LENGTH];
        int code = sqlite3_bind_int64(insert, 1, row);

        return code != SQLITE_OK ? code : bind_letters(insert, random, 2, STUDY_COLUMNS, STUDY_LENGTH, letters);
}

/* Returns a real number from 0 to less than 1, with all random bits that a double can hold. */
static double random_real(Random *random) {
        return (double) (random_next(random) >> 11) * 0x1p-53;
}

static int bind_numbers(sqlite3_stmt *insert, gint64 row, Random *random, int length, char *letters) {
        int code = sqlite3_bind_int64(insert, 1, row);

        if (code == SQLITE_OK)
                code = sqlite3_bind_int64(insert, 2, (sqlite3_int64) random_next(random));
        if (code == SQLITE_OK)
                code = sqlite3_bind_double(insert, 3, random_real(random));
        return code != SQLITE_OK ? code : bind_letters(insert, random, 4, 1, length, letters);
}

static int bind_narrow(sqlite3_stmt *insert, gint64 row, Random *random) {
        static char letters[NARROW_LENGTH];

        return bind_numbers(insert, row, random, NARROW_LENGTH, letters);
}

static int bind_point(sqlite3_stmt *insert, gint64 row, Random *random) {
        static char letters[TEXT_LENGTH];

        return bind_numbers(insert, row, random, TEXT_LENGTH, letters);
}

static int bind_relay(sqlite3_stmt *insert, gint64 row, Random *random) {
        static char letters[RELAY_COLUMNS * TEXT_LENGTH];

        return bind_letters(insert, random, 1, RELAY_COLUMNS, TEXT_LENGTH, letters);
}

static int bind_wide(sqlite3_stmt *insert, gint64 row, Random *random) {
        static uint64_t numbers[BLOB_SIZE / sizeof(uint64_t)];
        int code = sqlite3_bind_int64(insert, 1, row);

        for (size_t i = 0; i < G_N_ELEMENTS(numbers); i++)
                numbers[i] = GUINT64_TO_LE(random_next(random));
        return code != SQLITE_OK ? code : sqlite3_bind_blob(insert, 2, numbers, sizeof numbers, SQLITE_STATIC);
}

const DatasetKind dataset_kinds[] = {
        {
                "study",
                STUDY_TABLE,
                1 + STUDY_COLUMNS,
                { 2000, 300000, 300000 },
                bind_study,
                "CREATE VIEW study_shown AS SELECT * FROM study WHERE id % 10 <> 0", /* for workload-exposed.c */
        },
        {
                "narrow",
                "id INTEGER PRIMARY KEY, n INTEGER, r REAL, t TEXT",
                4,
                { 5000, 3000000, 30000000 },
                bind_narrow,
        },
        {
                "relay",
                "c01 TEXT, c02 TEXT, c03 TEXT, c04 TEXT, c05 TEXT, c06 TEXT, c07 TEXT, c08 TEXT, c09 TEXT, c10 TEXT, "
                "c11 TEXT, c12 TEXT, c13 TEXT, c14 TEXT, c15 TEXT, c16 TEXT",
                RELAY_COLUMNS,
                { 256, 256, 256 },
                bind_relay,
        },
        {
                "point",
                "id INTEGER PRIMARY KEY, n INTEGER, r REAL, t TEXT",
                4,
                { 1000, 100000, 100000 },
                bind_point,
        },
        {
                "wide",
                "id INTEGER PRIMARY KEY, b BLOB",
                2,
                { 4, 256, 2048 },
                bind_wide,
        },
        /* for workload-write.c: empty, one for each kind of journal */
        {
                "write_wal",
                "id INTEGER PRIMARY KEY, n INTEGER, r REAL, t TEXT",
                4,
                { 0, 0, 0 },
                bind_point,
                "CREATE INDEX write_wal_n ON write_wal (n)",
                true,
        },
        {
                "write_rollback",
                "id INTEGER PRIMARY KEY, n INTEGER, r REAL, t TEXT",
                4,
                { 0, 0, 0 },
                bind_point,
                "CREATE INDEX write_rollback_n ON write_rollback (n)",
        },
        /* for workload-load.c: empty, too */
        {
                "write_study",
                STUDY_TABLE,
                1 + STUDY_COLUMNS,
                { 0, 0, 0 },
                bind_study,
                .wal = true,
        },
        {},
};
