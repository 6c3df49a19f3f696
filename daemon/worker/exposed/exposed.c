/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See exposed.h.
 */
#include "daemon/worker/exposed/exposed.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "daemon/worker/exposed/exposed-collation.h"
#include "daemon/worker/exposed/exposed-table.h"
#include "daemon/worker/sqlite/vfs.h"

#define SCHEMA_VERSION "PRAGMA main.schema_version"

struct Exposed {
        sqlite3 *db;           /* in memory */
        ExposedTables tables;
        /* A named transaction. If only an unfinished statement kept the transaction, each search would check at its end if
         * there is a transaction to end. */
        sqlite3_stmt *begin, *commit;
        sqlite3_stmt *version; /* reads the schema's version */
        int schema_version;
};

/* Written once in the life of a worker, which opens many connections. */
static void complain(const Setup *setup, const char *name) {
        static bool said;

        if (!said)
                (void) fprintf(stderr,
                               "sqlipc-worker: %s: Expose=%s: no table or view of this name in the database can be read; it "
                               "is left out, and so are others like it\n",
                               setup->path, name);
        said = true;
}

/* Reads and declares one object. An error that is its own leaves it out; *ret_left_out is the first such name. */
static int expose(Exposed *e, const char *name, bool security_barrier, const char **ret_left_out) {
        ExposedObject *o = &e->tables.objects[e->tables.n_objects];
        int rc;

        for (uint32_t i = 0; i < e->tables.n_objects; i++)
                if (sqlite3_stricmp(e->tables.objects[i].name, name) == 0) /* the name is given twice */
                        return SQLITE_OK;
        rc = exposed_object_read(o, e->tables.file, name);
        if (rc == SQLITE_OK) {
                o->is_barrier = security_barrier && o->is_view;
                e->tables.n_objects++; /* connect_table() in exposed-table.c looks for it there */
                rc = exposed_tables_create(e->db, o);
                if (rc != SQLITE_OK)
                        e->tables.n_objects--;
        }
        if (rc != SQLITE_OK)
                exposed_object_done(o);
        if (rc != SQLITE_NOTFOUND && (rc & 0xff) != SQLITE_ERROR)
                return rc;
        *ret_left_out = *ret_left_out ?: name;
        return SQLITE_OK;
}

typedef struct Encoding {
        char *sql; /* statements that set the same encoding, and a small cache */
        bool utf8;
} Encoding;

static int see_encoding(void *userdata, int n, char **values, char **names) {
        Encoding *encoding = userdata;

        (void) names;
        if (n == 1 && values[0]) {
                encoding->sql = sqlite3_mprintf("PRAGMA encoding = \"%w\"; PRAGMA cache_size = -256", values[0]);
                encoding->utf8 = strcmp(values[0], "UTF-8") == 0;
        }
        return 0;
}

/* Opens a connection in memory, with the encoding of the file, so that text needs no conversion. */
static int open_memory(Exposed *e) {
        Encoding encoding = {};
        int rc = sqlite3_open_v2(":memory:", &e->db,
                                 SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, VFS_NAME);

        if (rc == SQLITE_OK)
                rc = sqlite3_exec(e->tables.file, "PRAGMA encoding", see_encoding, &encoding, NULL);
        if (rc == SQLITE_OK)
                rc = encoding.sql ? sqlite3_exec(e->db, encoding.sql, NULL, NULL, NULL) : SQLITE_NOMEM;
        sqlite3_free(encoding.sql);
        e->tables.utf8 = encoding.utf8;
        return rc == SQLITE_OK ? exposed_tables_register(&e->tables, e->db) : rc;
}

static int compile(Exposed *e, const char *sql, sqlite3_stmt **ret) {
        return sqlite3_prepare_v3(e->tables.file, sql, -1, SQLITE_PREPARE_PERSISTENT, ret, NULL);
}

static int compile_own(Exposed *e) {
        int rc = compile(e, "BEGIN", &e->begin);

        if (rc == SQLITE_OK)
                rc = compile(e, "COMMIT", &e->commit);
        return rc == SQLITE_OK ? compile(e, SCHEMA_VERSION, &e->version) : rc;
}

static int run_once(sqlite3_stmt *stmt) {
        (void) sqlite3_step(stmt);
        return sqlite3_reset(stmt);
}

/* Reads the schema's version, which also takes the lock of a reader until the transaction ends. */
static int read_version(Exposed *e, int *ret) {
        int rc = sqlite3_step(e->version);

        if (rc == SQLITE_ROW)
                *ret = sqlite3_column_int(e->version, 0);
        return sqlite3_reset(e->version) ?: rc == SQLITE_ROW ? SQLITE_OK : SQLITE_CORRUPT;
}

/* Reads all exposed objects. They are not read in one transaction, because a table cannot be dropped while another
 * statement reads (see read_affinities() in exposed-schema.c). If another program changes the schema in between, the result
 * is SQLITE_BUSY, whatever was read. */
static int read_schema(Exposed *e, const Setup *setup) {
        const char *left_out = NULL;
        int rc = compile_own(e), rc_again;

        if (rc == SQLITE_OK)
                rc = exposed_collation_setup(e->tables.file);
        if (rc == SQLITE_OK)
                rc = read_version(e, &e->schema_version);
        if (rc != SQLITE_OK)
                return rc;
        for (uint32_t i = 0; rc == SQLITE_OK && i < setup->n_exposed; i++)
                rc = expose(e, setup->exposed[i].data, setup->security_barrier, &left_out);
        rc_again = exposed_begin(e);
        exposed_end(e);
        if (rc_again == SQLITE_SCHEMA)
                return SQLITE_BUSY;
        if (left_out)
                complain(setup, left_out);
        return rc == SQLITE_OK ? rc_again : rc;
}

int exposed_open(Exposed **ret, sqlite3 *file, const Setup *setup, sqlite3 **ret_db) {
        Exposed *e = calloc(1, sizeof *e);
        int rc;

        if (!e)
                return SQLITE_NOMEM;
        e->tables.file = file;
        e->tables.objects = calloc(setup->n_exposed, sizeof *e->tables.objects);
        rc = e->tables.objects ? open_memory(e) : SQLITE_NOMEM;
        if (rc == SQLITE_OK)
                rc = read_schema(e, setup);
        if (rc != SQLITE_OK) {
                (void) exposed_close(e);
                return rc;
        }
        *ret = e;
        *ret_db = e->db;
        return SQLITE_OK;
}

int exposed_seal(Exposed *e) {
        /* json_each and json_tree read only their argument */
        static const char *kept[] = { EXPOSED_MODULE, "json_each", "json_tree", NULL };

        return sqlite3_drop_modules(e->db, kept);
}

Exposed *exposed_close(Exposed *e) {
        if (!e)
                return NULL;
        (void) sqlite3_close(e->db);
        (void) sqlite3_finalize(e->begin);
        (void) sqlite3_finalize(e->commit);
        (void) sqlite3_finalize(e->version);
        exposed_tables_done(&e->tables);
        free(e);
        return NULL;
}

int exposed_begin(Exposed *e) {
        int version, rc = run_once(e->begin);

        if (rc == SQLITE_OK)
                rc = read_version(e, &version);
        if (rc == SQLITE_OK && version != e->schema_version)
                rc = SQLITE_SCHEMA;
        if (rc != SQLITE_OK)
                exposed_end(e);
        return rc;
}

void exposed_end(Exposed *e) {
        /* After some errors SQLite has ended the transaction already. The progress handler of a run that has failed would
         * also interrupt the COMMIT if it is called in it; it is not called again in a second attempt. */
        for (int i = 0; i < 2 && !sqlite3_get_autocommit(e->tables.file); i++)
                (void) run_once(e->commit);
}

/* "?1or" is a parameter and a word, "x1or" is one word. */
static bool is_word(char c, bool begun) {
        return c == '_' || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (unsigned char) c >= 0x80 ||
               (begun && c >= '0' && c <= '9');
}

static bool is_one_of(const char *word, size_t size, const char *const *words) {
        for (; *words; words++)
                if (size == strlen(*words) && strncasecmp(word, *words, size) == 0)
                        return true;
        return false;
}

/* SQLite's tokenizer treats a byte order mark as white space anywhere; here it would look like a letter. */
static bool has_odd_space(const char *sql, size_t sql_size) {
        return memmem(sql, sql_size, "\xef\xbb\xbf", 3);
}

void exposed_expect(Exposed *e, const char *sql, size_t sql_size) {
        static const char *const rowids[] = { "or", "right", "full", NULL }, *const in[] = { "in", NULL };
        PlanHints *hints = &e->tables.hints;
        bool doubt = has_odd_space(sql, sql_size);
        char last = 0; /* the last character before the word that is not white space */

        /* words in strings and comments are found, too: such a statement only takes longer */
        *hints = (PlanHints) { .rowids = doubt, .row_in = doubt };
        for (size_t i = 0; i < sql_size;) {
                size_t n = 0;

                while (i + n < sql_size && is_word(sql[i + n], n > 0))
                        n++;
                hints->rowids = hints->rowids || is_one_of(sql + i, n, rowids);
                hints->row_in = hints->row_in || ((doubt || last == ')' || last == '/') && is_one_of(sql + i, n, in));
                i += n > 0 ? n : 1;
                doubt = doubt || (last == '-' && sql[i - 1] == '-'); /* a comment begins, and its end is not looked for */
                if (!strchr(" \t\n\f\r", sql[i - 1]))
                        last = sql[i - 1];
        }
}
