/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Frees a configuration, and adds messages to it. Pure. */
#include "daemon/configuration/configuration.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/configuration/dbus-text.h"

/* Limits the number of warnings, because each is logged and all are sent in one message. A directory of users that cannot
 * be reached makes one for each name. */
#define WARNINGS_MAX 1000

DatabaseConfig *database_config_free(DatabaseConfig *d) {
        if (!d)
                return NULL;
        g_free(d->name);
        g_free(d->path);
        g_free(d->description);
        g_free(d->connection);
        g_free(d->replica_connection);
        g_free(d->password_file);
        g_free(d->server);
        g_free(d->file_key_at);
        g_free(d->server_key_at);
        g_free(d->mode);
        g_strfreev(d->allow_users);
        g_strfreev(d->allow_groups);
        g_strfreev(d->allow_users_at);
        g_strfreev(d->allow_groups_at);
        g_strfreev(d->expose);
        g_strfreev(d->write_users);
        g_strfreev(d->write_groups);
        g_strfreev(d->write_users_at);
        g_strfreev(d->write_groups_at);
        g_strfreev(d->write_tables);
        g_free(d->write_key_at);
        g_free(d->write_uids);
        g_free(d->write_gids);
        g_free(d->uids);
        g_free(d->gids);
        g_free(d);
        return NULL;
}

bool database_config_is_writable(const DatabaseConfig *d) {
        return strcmp(d->mode, "read-write") == 0;
}

bool database_config_is_server(const DatabaseConfig *d) {
        return d->engine != ENGINE_KIND_SQLITE;
}

const char *database_config_data(const DatabaseConfig *d) {
        return database_config_is_server(d) ? d->server : d->path;
}

Config *config_free(Config *c) {
        if (!c)
                return NULL;
        g_hash_table_unref(c->databases);
        g_hash_table_unref(c->broken);
        g_ptr_array_unref(c->warnings);
        g_free(c);
        return NULL;
}

/* Replaces invalid bytes, because these texts are sent over D-Bus, and contain file names, which may have any bytes. */
static char *make_sendable(const char *text) {
        char *clean = dbus_text_replace(text, strlen(text)), *copy = g_strdup(clean ?: "(out of memory)");

        free(clean);
        return copy;
}

void config_add_broken(Config *c, const char *name, const char *format, ...) {
        char *key = make_sendable(name);
        const char *before = g_hash_table_lookup(c->broken, key);
        va_list ap;

        va_start(ap, format);
        g_autofree char *reason = g_strdup_vprintf(format, ap);
        va_end(ap);
        g_autofree char *all = g_strconcat(before ?: "", before ? "; " : "", reason, NULL);
        g_hash_table_replace(c->broken, key, make_sendable(all));
}

void config_add_warning(Config *c, const char *format, ...) {
        va_list ap;

        if (c->warnings->len == WARNINGS_MAX)
                g_ptr_array_add(c->warnings, g_strdup("there is more that is odd, which is not told"));
        if (c->warnings->len > WARNINGS_MAX)
                return;
        va_start(ap, format);
        g_autofree char *sentence = g_strdup_vprintf(format, ap);
        va_end(ap);
        g_ptr_array_add(c->warnings, make_sendable(sentence));
}
