/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Names of users and groups -> ids. Only names_resolve() may block. */
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/configuration/configuration-names.h"
#include "daemon/configuration/configuration-text.h"

/* Longer than any name in use: utmp and useradd allow 32 bytes, a directory on the network may allow more. */
#define NAME_SIZE_MAX 256

/* ---- The question ---- */

static bool name_can_be_asked(const char *name) {
        for (const char *i = name; *i; i++)
                if ((unsigned char) *i < ' ' || *i == 0x7f)
                        return false;
        return *name && strlen(name) <= NAME_SIZE_MAX;
}

static bool needs_asking(const char *word) {
        uint32_t id;

        return strcmp(word, "*") != 0 && parse_id(word, &id) < 0 && name_can_be_asked(word);
}

static void ask(GString *question, GHashTable *asked, char kind, char **words) {
        for (char **i = words; *i; i++) {
                if (!needs_asking(*i))
                        continue;
                char *line = g_strdup_printf("%c %s\n", kind, *i);
                if (!g_hash_table_contains(asked, line))
                        g_string_append(question, line);
                g_hash_table_add(asked, line);
        }
}

char *names_question(const Config *c) {
        g_autoptr(GHashTable) asked = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
        GString *question = g_string_new(NULL);
        GHashTableIter i;
        void *value;

        g_hash_table_iter_init(&i, c->databases);
        while (g_hash_table_iter_next(&i, NULL, &value)) {
                const DatabaseConfig *d = value;

                ask(question, asked, 'u', d->allow_users);
                ask(question, asked, 'g', d->allow_groups);
                ask(question, asked, 'u', d->write_users);
                ask(question, asked, 'g', d->write_groups);
        }
        return g_string_free(question, FALSE);
}

/* ---- The answer ---- */

static bool look_up(const char *line, uint32_t *ret) {
        if (line[0] == 'u') {
                const struct passwd *user = getpwnam(line + 2);

                *ret = user ? user->pw_uid : 0;
                return user;
        }
        const struct group *group = getgrnam(line + 2);
        *ret = group ? group->gr_gid : 0;
        return group;
}

char *names_resolve(const char *question) {
        g_auto(GStrv) lines = g_strsplit(question, "\n", -1);
        GString *answer = g_string_new(NULL);
        uint32_t id;

        for (char **i = lines; *i; i++)
                if ((g_str_has_prefix(*i, "u ") || g_str_has_prefix(*i, "g ")) && look_up(*i, &id))
                        g_string_append_printf(answer, "%s %" G_GUINT32_FORMAT "\n", *i, id);
        return g_string_free(answer, FALSE);
}

/* "u NAME" -> id + 1; lines in another format are skipped. */
static GHashTable *read_answer(const char *answer) {
        GHashTable *ids = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
        g_auto(GStrv) lines = g_strsplit(answer ?: "", "\n", -1);

        for (char **i = lines; *i; i++) {
                char *space = strrchr(*i, ' ');
                uint32_t id;

                if (space && parse_id(space + 1, &id) >= 0)
                        g_hash_table_replace(ids, g_strndup(*i, (size_t) (space - *i)), GSIZE_TO_POINTER((size_t) id + 1));
        }
        return ids;
}

/* ---- Use of the answer ---- */

static int compare_ids(const void *a, const void *b) {
        uint32_t x = *(const uint32_t *) a, y = *(const uint32_t *) b;

        return x < y ? -1 : x > y;
}

static bool find_id(GHashTable *ids, char kind, const char *word, uint32_t *ret) {
        g_autofree char *key = g_strdup_printf("%c %s", kind, word);
        size_t found = GPOINTER_TO_SIZE(g_hash_table_lookup(ids, key));

        if (parse_id(word, ret) >= 0)
                return true;
        if (found == 0)
                return false;
        *ret = (uint32_t) (found - 1);
        return true;
}

/* One list of a database. */
typedef struct NameList {
        char kind;             /* 'u' or 'g' */
        char **words, **places;
        const char *right;     /* that the list gives, for messages */
} NameList;

/* Returns the ids of the list, sorted, without duplicates. Warns of each name without an id, by its place in the file. */
static uint32_t *apply(Config *c, const DatabaseConfig *d, GHashTable *ids, NameList list, const char *problem,
                       size_t *ret_n) {
        uint32_t *found = g_new(uint32_t, g_strv_length(list.words) + 1);
        size_t n = 0, n_unique = 0;

        for (size_t i = 0; list.words[i]; i++)
                if (list.kind == 'u' && strcmp(list.words[i], "*") == 0)
                        continue;
                else if (find_id(ids, list.kind, list.words[i], &found[n]))
                        n++;
                else
                        config_add_warning(c, "%s: %s %s %s; the name gives no %s %s", list.places[i],
                                           list.kind == 'u' ? "user" : "group", list.words[i], problem, list.right, d->name);
        qsort(found, n, sizeof *found, compare_ids);
        for (size_t i = 0; i < n; i++)
                if (n_unique == 0 || found[n_unique - 1] != found[i])
                        found[n_unique++] = found[i];
        *ret_n = n_unique;
        return found;
}

static void apply_reading(Config *c, DatabaseConfig *d, GHashTable *ids, const char *problem) {
        const NameList users = { 'u', d->allow_users, d->allow_users_at, "access to" },
                       groups = { 'g', d->allow_groups, d->allow_groups_at, "access to" };

        g_free(d->uids);
        g_free(d->gids);
        d->allow_everybody = g_strv_contains((const char *const *) d->allow_users, "*");
        d->uids = apply(c, d, ids, users, problem, &d->n_uids);
        d->gids = apply(c, d, ids, groups, problem, &d->n_gids);
}

static void apply_writing(Config *c, DatabaseConfig *d, GHashTable *ids, const char *problem) {
        const NameList users = { 'u', d->write_users, d->write_users_at, "right to write to" },
                       groups = { 'g', d->write_groups, d->write_groups_at, "right to write to" };

        g_free(d->write_uids);
        g_free(d->write_gids);
        d->write_everybody = g_strv_contains((const char *const *) d->write_users, "*");
        d->write_uids = apply(c, d, ids, users, problem, &d->n_write_uids);
        d->write_gids = apply(c, d, ids, groups, problem, &d->n_write_gids);
}

void names_apply(Config *c, const char *answer) {
        const char *problem = answer ? "is not known" : "could not be looked up";
        g_autoptr(GHashTable) ids = read_answer(answer);
        GHashTableIter i;
        void *value;

        g_hash_table_iter_init(&i, c->databases);
        while (g_hash_table_iter_next(&i, NULL, &value)) {
                apply_reading(c, value, ids, problem);
                apply_writing(c, value, ids, problem);
        }
}
