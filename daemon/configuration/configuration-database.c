/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* [Database]: one published database. Pure. */
#include "daemon/configuration/configuration-database.h"

#include <errno.h>
#include <string.h>

#include "daemon/configuration/configuration-limits.h"
#include "daemon/configuration/configuration-text.h"

/* Limit for one list; a group is better for more names. The list is searched for each new name, which stays fast at this
 * length. */
#define LIST_LENGTH_MAX 1024

/* SQLite's own limit is higher, but no real name is this long. */
#define EXPOSED_NAME_SIZE_MAX 1024

bool database_name_is_valid(const char *name) {
        size_t n = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-");

        return name[n] == 0 && n >= 1 && n <= DATABASE_NAME_SIZE_MAX;
}

/* ---- Lists ---- */

static void strv_add(char ***strv, char *item) {
        unsigned n = g_strv_length(*strv);

        *strv = g_renew(char *, *strv, n + 2);
        (*strv)[n] = item;
        (*strv)[n + 1] = NULL;
}

static void strv_reset(char ***strv) {
        g_strfreev(*strv);
        *strv = g_new0(char *, 1);
}

/* Adds the words of `value` that `check` accepts to `list`; an empty value empties it. `places` (or NULL) gets the place of
 * each word. */
static void add_words(Place *p, const char *key, const char *value, char ***list, char ***places,
                      bool (*check)(Place *p, char **list, const char *key, const char *word)) {
        const char *rest = value;
        char *word;
        int r;

        if (*value == 0) {
                strv_reset(list);
                if (places)
                        strv_reset(places);
        }
        while ((r = config_next_word(&rest, &word)) > 0) {
                if (g_strv_length(*list) >= LIST_LENGTH_MAX) {
                        place_broken(p, "%s=: more than %d names", key, LIST_LENGTH_MAX);
                        g_free(word);
                        return;
                }
                if (!check(p, *list, key, word)) {
                        g_free(word);
                        continue;
                }
                strv_add(list, word);
                if (places)
                        strv_add(places, g_strdup_printf("%s:%u", p->file, p->line));
        }
        if (r < 0)
                place_broken(p, "%s=: a quote or backslash leads nowhere", key);
}

static bool check_allowed(Place *p, char **list, const char *key, const char *word) {
        bool users = strcmp(key, "AllowUsers") == 0;
        uint32_t id;

        if (parse_id(word, &id) == -ERANGE)
                place_broken(p, "%s=: %s is no id that a %s has", key, word, users ? "user" : "group");
        else if (*word == 0)
                place_broken(p, "%s=: a name is empty", key);
        else if (!users && strcmp(word, "*") == 0)
                place_broken(p, "%s=: there is no * for groups: use AllowUsers=* for all users", key);
        else
                return true;
        return false;
}

static bool check_exposed(Place *p, char **list, const char *key, const char *word) {
        if (*word == 0)
                place_broken(p, "%s=: a name is empty", key);
        else if (strlen(word) > EXPOSED_NAME_SIZE_MAX)
                place_broken(p, "%s=%.40s...: no name of more than %d bytes is taken", key, word, EXPOSED_NAME_SIZE_MAX);
        else if (g_ascii_strncasecmp(word, "sqlite_", 7) == 0)
                place_broken(p, "%s=%s: what begins with sqlite_ is SQLite's own and is never exposed", key, word);
        else {
                for (char **i = list; *i; i++)
                        if (g_ascii_strcasecmp(*i, word) == 0) { /* SQLite compares names this way */
                                place_warn(p, "%s=%s is in the list already", key, word);
                                return false;
                        }
                return true;
        }
        return false;
}

/* ---- Keys ---- */

static void set_text(Place *p, const char *key, char *value, char **ret) {
        if (config_unescape(value) < 0) {
                place_broken(p, "%s=: behind a backslash only s, n, t, r and another one are known", key);
                return;
        }
        g_free(*ret);
        *ret = g_strdup(value);
}

static void set_path(Place *p, const char *key, char *value, DatabaseConfig *d) {
        if (value[0] != '/')
                place_broken(p, "%s=%s is not absolute", key, value);
        else
                set_text(p, key, value, &d->path);
}

static void set_mode(Place *p, const char *key, const char *value) {
        if (strcmp(value, "read-only") != 0)
                place_broken(p, "%s=%s is not known: give read-only", key, value);
}

static void set_boolean(Place *p, const char *key, const char *value, bool *ret) {
        if (parse_boolean(value, ret) < 0)
                place_broken(p, "%s=%s: give yes or no", key, value);
}

static KeyKind database_set(Place *p, void *database, const char *key, char *value) {
        DatabaseConfig *d = database;

        if (strcmp(key, "AllowUsers") == 0)
                add_words(p, key, value, &d->allow_users, &d->allow_users_at, check_allowed);
        else if (strcmp(key, "AllowGroups") == 0)
                add_words(p, key, value, &d->allow_groups, &d->allow_groups_at, check_allowed);
        else if (strcmp(key, "Expose") == 0)
                add_words(p, key, value, &d->expose, NULL, check_exposed);
        else {
                if (strcmp(key, "Path") == 0)
                        set_path(p, key, value, d);
                else if (strcmp(key, "Description") == 0)
                        set_text(p, key, value, &d->description);
                else if (strcmp(key, "Mode") == 0)
                        set_mode(p, key, value);
                else if (strcmp(key, "Immutable") == 0)
                        set_boolean(p, key, value, &d->immutable);
                else if (strcmp(key, "Polkit") == 0)
                        set_boolean(p, key, value, &d->polkit);
                else if (strcmp(key, "SecurityBarrier") == 0)
                        set_boolean(p, key, value, &d->security_barrier);
                else
                        return KEY_UNKNOWN;
                return KEY_SINGLE;
        }
        return KEY_LIST;
}

/* ---- Objects ---- */

static DatabaseConfig *database_config_new(const char *name) {
        DatabaseConfig *d = g_new(DatabaseConfig, 1);

        *d = (DatabaseConfig) {
                .name = g_strdup(name),
                .description = g_strdup(""),
                .mode = g_strdup("read-only"),
                .allow_users = g_new0(char *, 1),
                .allow_groups = g_new0(char *, 1),
                .allow_users_at = g_new0(char *, 1),
                .allow_groups_at = g_new0(char *, 1),
                .expose = g_new0(char *, 1),
                .limits = database_limits_default(),
        };
        return d;
}

G_DEFINE_AUTOPTR_CLEANUP_FUNC(DatabaseConfig, database_config_free)

static bool ids_are_equal(const uint32_t *a, size_t n_a, const uint32_t *b, size_t n_b) {
        return n_a == n_b && (n_a == 0 || memcmp(a, b, n_a * sizeof *a) == 0);
}

G_STATIC_ASSERT(sizeof(uid_t) == sizeof(uint32_t) && sizeof(gid_t) == sizeof(uint32_t));

bool database_config_shows_same(const DatabaseConfig *a, const DatabaseConfig *b) {
        return strcmp(a->path, b->path) == 0 && a->immutable == b->immutable &&
               a->security_barrier == b->security_barrier &&
               g_strv_equal((const char *const *) a->expose, (const char *const *) b->expose);
}

bool database_config_equal(const DatabaseConfig *a, const DatabaseConfig *b) {
        return database_config_shows_same(a, b) && strcmp(a->name, b->name) == 0 &&
               strcmp(a->description, b->description) == 0 && strcmp(a->mode, b->mode) == 0 &&
               a->polkit == b->polkit && a->allow_everybody == b->allow_everybody &&
               g_strv_equal((const char *const *) a->allow_users, (const char *const *) b->allow_users) &&
               g_strv_equal((const char *const *) a->allow_groups, (const char *const *) b->allow_groups) &&
               ids_are_equal(a->uids, a->n_uids, b->uids, b->n_uids) &&
               ids_are_equal(a->gids, a->n_gids, b->gids, b->n_gids) && database_limits_equal(&a->limits, &b->limits);
}

/* ---- Files ---- */

void config_add_database(Config *c, const char *name, const ConfigText *texts, size_t n_texts) {
        g_autoptr(DatabaseConfig) d = NULL;
        bool broken = false;

        if (!database_name_is_valid(name)) {
                config_add_broken(c, name, "%s: \"%s\" is no name for a database: use up to 64 of A-Z a-z 0-9 _ -",
                                  texts[0].file, name);
                return;
        }
        d = database_config_new(name);
        const char *file = texts[0].file;
        unsigned line = 0;
        for (size_t i = 0; i < n_texts; i++) {
                unsigned line_here = 0;
                const SectionRow sections[] = {
                        { "Database", database_set, &line_here },
                        { "Limits", database_limits_set },
                        { NULL },
                };

                broken |= config_walk(c, name, &texts[i], sections, d);
                if (line == 0 && line_here > 0) {
                        file = texts[i].file;
                        line = line_here;
                }
        }
        if (broken)
                return;
        if (line == 0)
                config_add_broken(c, name, "%s:1: there is no section [Database]", file);
        else if (!d->path)
                config_add_broken(c, name, "%s:%u: [Database] has no Path=", file, line);
        else {
                g_hash_table_replace(c->databases, d->name, d);
                d = NULL;
        }
}
