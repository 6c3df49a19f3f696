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

static void set_mode(Place *p, const DatabaseKey *key, char *value, DatabaseConfig *d) {
        if (strcmp(value, "read-only") != 0 && strcmp(value, "read-write") != 0) {
                place_broken(p, "%s=%s is not known: give read-only or read-write", key->name, value);
                return;
        }
        g_free(d->mode);
        d->mode = g_strdup(value);
}

static void set_synchronous(Place *p, const DatabaseKey *key, char *value, DatabaseConfig *d) {
        if (strcmp(value, "full") != 0 && strcmp(value, "normal") != 0)
                place_broken(p, "%s=%s is not known: give full or normal", key->name, value);
        else
                d->sync_full = strcmp(value, "full") == 0;
}

#define FILE_WRITE (DATABASE_KEY_FILE | DATABASE_KEY_WRITE)
#define WRITE_LIST (DATABASE_KEY_LIST | DATABASE_KEY_WRITE)

const DatabaseKey writing_keys[] = {
        { "DatabaseSizeMax", database_size_set, FILE_WRITE },
        { "ForeignKeys", database_key_set_boolean, FILE_WRITE, DATABASE_KEY_AT(foreign_keys) },
        { "Mode", set_mode },
        { "Synchronous", set_synchronous, FILE_WRITE },
        { "WalSizeMax", database_size_set, DATABASE_KEY_FILE }, /* it bounds the log that readers keep, too */
        { "WriteGroups", list_set_groups, WRITE_LIST, DATABASE_KEY_AT(write_groups), DATABASE_KEY_PLACES(write_groups_at) },
        { "WritePolkit", database_key_set_boolean, DATABASE_KEY_WRITE, DATABASE_KEY_AT(write_polkit) },
        { "WriteSchema", database_key_set_boolean, DATABASE_KEY_WRITE, DATABASE_KEY_AT(write_schema) },
        { "WriteTables", list_set_tables, WRITE_LIST, DATABASE_KEY_AT(write_tables) },
        { "WriteUsers", list_set_users, WRITE_LIST, DATABASE_KEY_AT(write_users), DATABASE_KEY_PLACES(write_users_at) },
        { NULL },
};

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
