/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Any bytes as configuration files, and as the answer about names: the result can be sent over D-Bus and names its file, a
 * published database has all that it needs, limits are in their ranges, and files in a folder give the same result as the
 * same texts.
 *
 * An input is up to five texts with a byte 0x1e (ASCII's record separator) between them: sqlipcd.conf, a drop-in of it, a
 * database, a drop-in of that, the answer; the last one replaces missing ones.
 *
 * The corpus is files as one would write them, and files with one thing wrong under a name that says what; one that broke
 * something joins them.
 *
 * About: daemon/configuration/configuration*.c daemon/configuration/dbus-text.c
 */
#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/configuration/configuration-database.h"
#include "daemon/configuration/configuration-files.h"
#include "daemon/configuration/configuration-limits.h"
#include "daemon/configuration/configuration-main.h"
#include "daemon/configuration/configuration-names.h"
#include "daemon/configuration/dbus-text.h"
#include "dbus-interfaces/wire/sqlipc-page.h"
#include "tests/fuzz/replay.h"

enum { WARNINGS_MAX = 1000 }; /* of configuration.c */

static void check_message(const char *text) {
        demand(dbus_text_is_valid(text, strlen(text)));
        demand(strstr(text, "/x.conf") != NULL);
}

static void check_list(char **list, size_t size_max) {
        for (char **i = list; *i; i++)
                demand(**i != 0 && strlen(*i) <= size_max && dbus_text_is_valid(*i, strlen(*i)));
}

/* Assumptions of other modules: no division by 0, no overflow in sums of times, no size over the format's limits. */
static void check_limits(Limits l) {
        const uint64_t usec[] = { l.run_timeout_usec, l.prepare_timeout_usec, l.queue_timeout_usec, l.park_timeout_usec,
                                  l.park_timeout_rollback_usec, l.busy_timeout_usec, l.statement_idle_usec,
                                  l.worker_idle_usec };
        const uint64_t counts[] = { l.statements_max, l.runs_max, l.channels_max, l.workers_max, l.pipe_pages_max,
                                    l.expression_depth_max, l.compound_selects_max, l.variables_max };

        for (size_t i = 0; i < G_N_ELEMENTS(usec); i++)
                demand(usec[i] <= UINT64_C(366) * 86400 * 1000000);
        for (size_t i = 0; i < G_N_ELEMENTS(counts); i++)
                demand(counts[i] >= 1 && counts[i] <= 1000000000);
        demand(l.row_size_max >= 1 && l.row_size_max <= SQLIPC_ROW_SIZE_MAX);
        demand(l.sql_size_max >= 1 && l.sql_size_max <= 1000000000);
        demand(l.workers_total_max <= 4096); /* 0: by memory */
        demand(l.heap_max >= 1048576 && l.exempt_root <= 1);
}

/* The worker relies on these. */
static void check_writing(const DatabaseConfig *d, size_t size) {
        demand(!database_config_is_writable(d) || (!*d->expose && !d->immutable));
        demand(g_strv_length(d->write_users) == g_strv_length(d->write_users_at));
        demand(g_strv_length(d->write_groups) == g_strv_length(d->write_groups_at));
        check_list(d->write_users, size);
        check_list(d->write_groups, size);
        check_list(d->write_tables, 1024);
        demand(d->database_size_max >= 65536 && d->wal_size_max >= 1048576 && d->wal_size_max <= UINT64_C(1) << 40);
        demand(d->n_write_uids <= g_strv_length(d->write_users) && d->n_write_gids <= g_strv_length(d->write_groups));
        for (size_t i = 1; i < d->n_write_uids; i++)
                demand(d->write_uids[i - 1] < d->write_uids[i]);
}

static void check_database(const Config *c, const DatabaseConfig *d, size_t size) {
        demand(d->path[0] == '/' && dbus_text_is_valid(d->description, strlen(d->description)));
        demand(g_strv_length(d->allow_users) == g_strv_length(d->allow_users_at));
        demand(g_strv_length(d->allow_groups) == g_strv_length(d->allow_groups_at));
        check_list(d->allow_users, size);
        check_list(d->allow_groups, size);
        check_list(d->expose, 1024);
        demand(d->n_uids <= g_strv_length(d->allow_users) && d->n_gids <= g_strv_length(d->allow_groups));
        for (size_t i = 1; i < d->n_uids; i++)
                demand(d->uids[i - 1] < d->uids[i]);
        check_writing(d, size);
        check_limits(config_limits(c, d));
        demand(database_config_equal(d, d));
}

static void check(Config *c, const char *answer, size_t size) {
        g_autofree char *question = names_question(c);
        GHashTableIter i;
        void *key, *value;

        names_apply(c, answer);
        g_hash_table_iter_init(&i, c->databases);
        while (g_hash_table_iter_next(&i, NULL, &value))
                check_database(c, value, size);
        g_hash_table_iter_init(&i, c->broken);
        while (g_hash_table_iter_next(&i, &key, &value)) {
                demand(!g_hash_table_contains(c->databases, key) || strcmp(key, "sqlipcd.conf") == 0);
                check_message(value);
        }
        demand(c->warnings->len <= WARNINGS_MAX + 1); /* the last says that there are more */
        for (guint k = 0; k < c->warnings->len && k < WARNINGS_MAX; k++)
                check_message(c->warnings->pdata[k]);
        g_auto(GStrv) lines = g_strsplit(question, "\n", -1);
        for (char **line = lines; *line; line++)
                demand(**line == 0 || (strlen(*line) > 2 && ((*line)[0] == 'u' || (*line)[0] == 'g') &&
                                       strcspn(*line, "\t\r\v\f") == strlen(*line)));
}

/* ---- the texts ---- */

enum { MAIN, MAIN_DROP_IN, DATABASE, DATABASE_DROP_IN, ANSWER, N_TEXTS };

typedef struct Text {
        char *text; /* owned; of exactly its size, so that AddressSanitizer sees a look behind the NUL */
        size_t size;
} Text;

static void split(const uint8_t *bytes, size_t size, Text texts[static N_TEXTS]) {
        const uint8_t *last = bytes;
        size_t last_size = 0;

        for (size_t i = 0; i < N_TEXTS; i++) {
                const uint8_t *end = size > 0 && i < N_TEXTS - 1 ? memchr(bytes, 0x1e, size) : NULL;

                if (i == 0 || bytes) {
                        last = bytes;
                        last_size = end ? (size_t) (end - bytes) : size;
                }
                texts[i] = (Text) { g_malloc(last_size + 1), last_size };
                if (last_size > 0)
                        memcpy(texts[i].text, last, last_size);
                texts[i].text[last_size] = 0;
                bytes = end ? end + 1 : NULL;
                size = end ? size - last_size - 1 : 0;
        }
}

static Config *from_texts(const Text texts[static N_TEXTS]) {
        const ConfigText main_texts[] = {
                { "/x.conf", texts[MAIN].text, texts[MAIN].size },
                { "/x.conf.d/x.conf", texts[MAIN_DROP_IN].text, texts[MAIN_DROP_IN].size },
        };
        const ConfigText database_texts[] = {
                { "/x.conf", texts[DATABASE].text, texts[DATABASE].size },
                { "/x.conf.d/x.conf", texts[DATABASE_DROP_IN].text, texts[DATABASE_DROP_IN].size },
        };
        Config *c = config_new();

        config_add_main(c, main_texts, 2);
        config_add_database(c, "one", database_texts, 1);
        config_add_database(c, "two", database_texts, 2);
        return c;
}

/* ---- the same from files ---- */

static char folder[64];

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *level) {
        (void) st, (void) type, (void) level;
        return remove(path);
}

static void remove_folder(void) {
        (void) nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void make_folder(void) {
        static const char *const below[] = { "sqlipcd.conf.d", "databases.d", "databases.d/two.conf.d" };

        snprintf(folder, sizeof folder, "%s/sqlipc-fuzz-XXXXXX", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
        demand(mkdtemp(folder) && atexit(remove_folder) == 0);
        for (size_t i = 0; i < G_N_ELEMENTS(below); i++) {
                g_autofree char *path = g_build_filename(folder, below[i], NULL);

                demand(mkdir(path, 0700) == 0);
        }
}

static void write_file(const char *name, const Text *text) {
        g_autofree char *path = g_build_filename(folder, name, NULL);

        FILE *file = fopen(path, "we");

        demand(file && fwrite(text->text, 1, text->size, file) == text->size && fclose(file) == 0);
}

/* NULL where files are not what the texts are: a file that is empty masks others, one that is too large is not read. */
static Config *from_files(const Text texts[static N_TEXTS]) {
        for (size_t i = 0; i < ANSWER; i++)
                if (texts[i].size == 0 || texts[i].size > 65536)
                        return NULL;
        if (!*folder)
                make_folder();
        write_file("sqlipcd.conf", texts + MAIN);
        write_file("sqlipcd.conf.d/x.conf", texts + MAIN_DROP_IN);
        write_file("databases.d/one.conf", texts + DATABASE);
        write_file("databases.d/two.conf", texts + DATABASE);
        write_file("databases.d/two.conf.d/x.conf", texts + DATABASE_DROP_IN);
        return config_load((const char *const[]) { folder, NULL });
}

static void check_same(const Config *a, const Config *b) {
        static const char *const names[] = { "one", "two" };

        demand(g_hash_table_size(a->databases) == g_hash_table_size(b->databases));
        demand(g_hash_table_size(a->broken) == g_hash_table_size(b->broken) && a->warnings->len == b->warnings->len);
        demand(memcmp(&a->limits, &b->limits, sizeof a->limits) == 0);
        for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
                const DatabaseConfig *x = g_hash_table_lookup(a->databases, names[i]);
                const DatabaseConfig *y = g_hash_table_lookup(b->databases, names[i]);

                demand(!x == !y && (!x || database_config_equal(x, y)));
        }
}

/* ---- names ---- */

/* NSS is asked, about a few. */
static void check_resolve(Config *c) {
        g_autofree char *question = names_question(c), *answer = NULL;

        if (strlen(question) > 200)
                return;
        answer = names_resolve(question);
        demand(strchr(question, '\n') || !*answer);
        names_apply(c, answer);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
        Text texts[N_TEXTS];

        split(bytes, size, texts);
        g_autoptr(Config) c = from_texts(texts), from_folder = from_files(texts);
        if (from_folder)
                check_same(c, from_folder);
        check(c, texts[ANSWER].text, size);
        check_resolve(c);
        check(c, NULL, size);
        for (size_t i = 0; i < N_TEXTS; i++)
                g_free(texts[i].text);
        return 0;
}
