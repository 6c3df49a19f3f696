/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* [Database]: one published database. Pure. */
#include "daemon/configuration/configuration-database.h"

#include <string.h>

#include "daemon/configuration/configuration-limits.h"
#include "daemon/configuration/configuration-list.h"
#include "daemon/configuration/configuration-server.h"
#include "daemon/configuration/configuration-text.h"
#include "daemon/configuration/configuration-writing.h"

bool database_name_is_valid(const char *name) {
        size_t n = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-");

        return name[n] == 0 && n >= 1 && n <= DATABASE_NAME_SIZE_MAX;
}

/* ---- Keys ---- */

static void set_text(Place *p, const DatabaseKey *key, char *value, DatabaseConfig *d) {
        char **text = (char **) G_STRUCT_MEMBER_P(d, key->offset);

        if (place_unescape(p, key->name, value)) {
                g_free(*text);
                *text = g_strdup(value);
        }
}

static void set_path(Place *p, const DatabaseKey *key, char *value, DatabaseConfig *d) {
        if (value[0] != '/')
                place_broken(p, "%s=%s is not absolute", key->name, value);
        else
                set_text(p, key, value, d);
}

static const DatabaseKey database_keys[] = {
        { "AllowGroups", list_set_groups, DATABASE_KEY_LIST, DATABASE_KEY_AT(allow_groups),
          DATABASE_KEY_PLACES(allow_groups_at) },
        { "AllowUsers", list_set_users, DATABASE_KEY_LIST, DATABASE_KEY_AT(allow_users),
          DATABASE_KEY_PLACES(allow_users_at) },
        { "Description", set_text, 0, DATABASE_KEY_AT(description) },
        { "Expose", list_set_tables, DATABASE_KEY_LIST | DATABASE_KEY_FILE, DATABASE_KEY_AT(expose) },
        { "Immutable", database_key_set_boolean, DATABASE_KEY_FILE, DATABASE_KEY_AT(immutable) },
        { "Path", set_path, DATABASE_KEY_FILE, DATABASE_KEY_AT(path) },
        { "Polkit", database_key_set_boolean, 0, DATABASE_KEY_AT(polkit) },
        { "SecurityBarrier", database_key_set_boolean, DATABASE_KEY_FILE, DATABASE_KEY_AT(security_barrier) },
        { NULL },
};

/* All keys of [Database]. NULL: there are no more. */
static const DatabaseKey *key_at(size_t i) {
        static const DatabaseKey *const tables[] = { database_keys, server_keys, writing_keys };

        for (size_t k = 0; k < G_N_ELEMENTS(tables); k++)
                for (const DatabaseKey *key = tables[k]; key->name; key++)
                        if (i-- == 0)
                                return key;
        return NULL;
}

static const char *database_key(size_t i) {
        const DatabaseKey *key = key_at(i);

        return key ? key->name : NULL;
}

/* Remembers the place of a key for a message, unless an earlier one is known. */
static void note(const Place *p, const DatabaseKey *key, char **at) {
        if (!*at)
                *at = g_strdup_printf("%s:%u: key %s=", p->file, p->line, key->name);
}

static KeyKind database_set(Place *p, void *database, const char *name, char *value) {
        DatabaseConfig *d = database;
        const DatabaseKey *key = NULL;

        for (size_t i = 0; (key = key_at(i)) && strcmp(key->name, name) != 0;)
                i++;
        if (!key)
                return KEY_UNKNOWN;
        if (key->flags & DATABASE_KEY_FILE)
                note(p, key, &d->file_key_at);
        if (key->flags & DATABASE_KEY_SERVER)
                note(p, key, &d->server_key_at);
        if (key->flags & DATABASE_KEY_WRITE)
                note(p, key, &d->write_key_at);
        key->set(p, key, value, d);
        return key->flags & DATABASE_KEY_LIST ? KEY_LIST : KEY_SINGLE;
}

/* ---- Objects ---- */

static DatabaseConfig *database_config_new(const char *name) {
        DatabaseConfig *d = g_new(DatabaseConfig, 1);

        *d = (DatabaseConfig) {
                .name = g_strdup(name),
                .description = g_strdup(""),
                .allow_users = g_new0(char *, 1),
                .allow_groups = g_new0(char *, 1),
                .allow_users_at = g_new0(char *, 1),
                .allow_groups_at = g_new0(char *, 1),
                .expose = g_new0(char *, 1),
                .limits = database_limits_default(),
        };
        server_set_defaults(d);
        writing_set_defaults(d);
        return d;
}

G_DEFINE_AUTOPTR_CLEANUP_FUNC(DatabaseConfig, database_config_free)

G_STATIC_ASSERT(sizeof(uid_t) == sizeof(uint32_t) && sizeof(gid_t) == sizeof(uint32_t));

bool database_config_shows_same(const DatabaseConfig *a, const DatabaseConfig *b) {
        return server_shows_same(a, b) && strcmp(a->path, b->path) == 0 && a->immutable == b->immutable &&
               a->security_barrier == b->security_barrier &&
               list_equal(a->expose, b->expose) && writing_allows_same(a, b);
}

bool database_config_equal(const DatabaseConfig *a, const DatabaseConfig *b) {
        return database_config_shows_same(a, b) && strcmp(a->name, b->name) == 0 &&
               strcmp(a->description, b->description) == 0 && a->polkit == b->polkit &&
               a->allow_everybody == b->allow_everybody && list_equal(a->allow_users, b->allow_users) &&
               list_equal(a->allow_groups, b->allow_groups) && list_ids_equal(a->uids, a->n_uids, b->uids, b->n_uids) &&
               list_ids_equal(a->gids, a->n_gids, b->gids, b->n_gids) && server_equal(a, b) && writing_equal(a, b) &&
               database_limits_equal(&a->limits, &b->limits);
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
                        { "Database", database_set, database_key, &line_here },
                        { "Limits", database_limits_set, database_limits_key },
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
        else if (server_check(c, d, file, line) && writing_check(c, d, file, line)) {
                g_hash_table_replace(c->databases, d->name, d);
                d = NULL;
        }
}
