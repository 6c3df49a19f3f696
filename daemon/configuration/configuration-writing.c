/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Keys of [Database] for Mode=read-write. Pure. */
#include "daemon/configuration/configuration-writing.h"

#include <string.h>

#include "daemon/configuration/configuration-limits.h"
#include "daemon/configuration/configuration-list.h"

void writing_set_defaults(DatabaseConfig *d) {
        d->mode = g_strdup("read-only");
        d->write_users = g_new0(char *, 1);
        d->write_groups = g_new0(char *, 1);
        d->write_users_at = g_new0(char *, 1);
        d->write_groups_at = g_new0(char *, 1);
        d->write_tables = g_new0(char *, 1);
        d->sync_full = true;
        d->foreign_keys = true;
        database_sizes_set_defaults(d);
}

/* ---- Keys ---- */

static void set_mode(Place *p, const char *key, const char *value, char **ret) {
        if (strcmp(value, "read-only") != 0 && strcmp(value, "read-write") != 0) {
                place_broken(p, "%s=%s is not known: give read-only or read-write", key, value);
                return;
        }
        g_free(*ret);
        *ret = g_strdup(value);
}

static void set_synchronous(Place *p, const char *key, const char *value, bool *ret_full) {
        if (strcmp(value, "full") != 0 && strcmp(value, "normal") != 0)
                place_broken(p, "%s=%s is not known: give full or normal", key, value);
        else
                *ret_full = strcmp(value, "full") == 0;
}

static KeyKind set_list(Place *p, DatabaseConfig *d, const char *key, const char *value) {
        if (strcmp(key, "WriteUsers") == 0)
                list_add_words(p, LIST_USERS, key, value, &d->write_users, &d->write_users_at);
        else if (strcmp(key, "WriteGroups") == 0)
                list_add_words(p, LIST_GROUPS, key, value, &d->write_groups, &d->write_groups_at);
        else if (strcmp(key, "WriteTables") == 0)
                list_add_words(p, LIST_TABLES, key, value, &d->write_tables, NULL);
        else
                return KEY_UNKNOWN;
        return KEY_LIST;
}

static KeyKind set_single(Place *p, DatabaseConfig *d, const char *key, const char *value) {
        if (strcmp(key, "WritePolkit") == 0)
                place_set_boolean(p, key, value, &d->write_polkit);
        else if (strcmp(key, "WriteSchema") == 0)
                place_set_boolean(p, key, value, &d->write_schema);
        else if (strcmp(key, "Synchronous") == 0)
                set_synchronous(p, key, value, &d->sync_full);
        else if (strcmp(key, "ForeignKeys") == 0)
                place_set_boolean(p, key, value, &d->foreign_keys);
        else
                return database_size_set(p, d, key, value);
        return KEY_SINGLE;
}

KeyKind writing_set(Place *p, DatabaseConfig *d, const char *key, const char *value) {
        if (strcmp(key, "Mode") == 0) {
                set_mode(p, key, value, &d->mode);
                return KEY_SINGLE;
        }
        KeyKind kind = set_list(p, d, key, value);

        if (kind == KEY_UNKNOWN)
                kind = set_single(p, d, key, value);
        if (kind != KEY_UNKNOWN && strcmp(key, "WalSizeMax") != 0 && !d->write_key_at)
                d->write_key_at = g_strdup_printf("%s:%u: key %s=", p->file, p->line, key);
        return kind;
}

/* A drop-in may take the right to write away by Mode=read-only alone, so unused keys are no error. */
bool writing_check(Config *c, const DatabaseConfig *d, const char *file, unsigned line) {
        if (!database_config_is_writable(d)) {
                if (d->write_key_at)
                        config_add_warning(c, "%s does nothing without Mode=read-write", d->write_key_at);
                return true;
        }
        if (*d->expose)
                config_add_broken(c, d->name, "%s:%u: Mode=read-write and Expose=: a database with Expose= is shared for "
                                  "reading only in this version", file, line);
        else if (d->immutable)
                config_add_broken(c, d->name, "%s:%u: Mode=read-write and Immutable=yes: a file that requests may change is "
                                  "not immutable", file, line);
        else
                return true;
        return false;
}

/* ---- Comparison ---- */

bool writing_allows_same(const DatabaseConfig *a, const DatabaseConfig *b) {
        return strcmp(a->mode, b->mode) == 0 && a->write_schema == b->write_schema &&
               list_equal(a->write_tables, b->write_tables);
}

bool writing_equal(const DatabaseConfig *a, const DatabaseConfig *b) {
        return writing_allows_same(a, b) && a->sync_full == b->sync_full && a->foreign_keys == b->foreign_keys &&
               a->database_size_max == b->database_size_max && a->wal_size_max == b->wal_size_max &&
               a->write_polkit == b->write_polkit && a->write_everybody == b->write_everybody &&
               list_equal(a->write_users, b->write_users) &&
               list_equal(a->write_groups, b->write_groups) &&
               list_ids_equal(a->write_uids, a->n_write_uids, b->write_uids, b->n_write_uids) &&
               list_ids_equal(a->write_gids, a->n_write_gids, b->write_gids, b->n_write_gids);
}
