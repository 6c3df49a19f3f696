/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Keys of [Database] about the engine. Pure. */
#include "daemon/configuration/configuration-server.h"

#include <errno.h>
#include <string.h>

#include "daemon/configuration/configuration-text.h"

#define CONNECTIONS_DEFAULT 10u
#define CONNECTIONS_MAX 1000u
#define CONNECTION_SIZE_MAX ((size_t) 4096)
#define NAME_SIZE_MAX ((size_t) 255)

void server_set_defaults(DatabaseConfig *d) {
        d->engine = ENGINE_KIND_SQLITE;
        d->connections_max = CONNECTIONS_DEFAULT;
        d->consistency = CONSISTENCY_WEAK;
}

/* ---- Keys ---- */

static bool is_in(const char *const *keys, const char *key) {
        for (; *keys; keys++)
                if (strcmp(*keys, key) == 0)
                        return true;
        return false;
}

void server_note_key(const Place *p, DatabaseConfig *d, const char *key) {
        static const char *const of_files[] = {
                "Path", "Immutable", "Expose", "SecurityBarrier", "Synchronous", "ForeignKeys", "DatabaseSizeMax",
                "WalSizeMax", NULL,
        };
        static const char *const of_servers[] = {
                "Service", "Connection", "ReplicaConnection", "PasswordFile", "ConnectionsMax", "Consistency", NULL,
        };
        char **at = is_in(of_files, key) ? &d->file_key_at : is_in(of_servers, key) ? &d->server_key_at : NULL;

        if (at && !*at)
                *at = g_strdup_printf("%s:%u: key %s=", p->file, p->line, key);
}

static void set_engine(Place *p, const char *key, const char *value, EngineKind *ret) {
        for (EngineKind i = 0; i < ENGINE_KIND_MAX_; i++)
                if (strcmp(value, engine_kind_name(i)) == 0) {
                        *ret = i;
                        return;
                }
        place_broken(p, "%s=%s is not known: give sqlite, postgresql or rqlite", key, value);
}

static void set_consistency(Place *p, const char *key, const char *value, Consistency *ret) {
        for (Consistency i = 0; i < CONSISTENCY_MAX_; i++)
                if (strcmp(value, consistency_name(i)) == 0) {
                        *ret = i;
                        return;
                }
        place_broken(p, "%s=%s is not known: give none, weak, strong or linearizable", key, value);
}

/* True if it gives a password: libpq's keywords password= and sslpassword=, as a word or in the query of a URI, or the part
 * of a URI between the user and the host. */
static bool has_password(const char *value) {
        for (const char *at = value; (at = strcasestr(at, "password")); at++) {
                const char *end = at + strlen("password");

                if (end[strspn(end, " \t\r\n")] == '=')
                        return true;
        }
        for (const char *at = value; (at = strstr(at, "://")); at++) {
                const char *user = at + strlen("://");
                size_t n = strcspn(user, "/?# \t");
                const char *host = memrchr(user, '@', n);

                if (host && memchr(user, ':', (size_t) (host - user)))
                        return true;
        }
        return false;
}

static void set_connection(Place *p, const char *key, const char *value, char **ret) {
        if (*value == 0)
                place_broken(p, "%s= is empty", key);
        else if (strlen(value) > CONNECTION_SIZE_MAX)
                place_broken(p, "%s=: more than %zu bytes", key, CONNECTION_SIZE_MAX);
        else if (has_password(value))
                place_broken(p, "%s=: a password does not belong here, where many may read it: use PasswordFile=", key);
        else {
                g_free(*ret);
                *ret = g_strdup(value);
        }
}

/* The name becomes a part of Connection=, so it has no character that is special there. */
static void set_service(Place *p, const char *key, const char *value, char **ret) {
        size_t n = strspn(value, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-");

        if (value[n] != 0 || n == 0 || n > NAME_SIZE_MAX) {
                place_broken(p, "%s=%s is no name of a service: use A-Z a-z 0-9 _ . -", key, value);
                return;
        }
        g_free(*ret);
        *ret = g_strconcat("service=", value, NULL);
}

static void set_password_file(Place *p, const char *key, char *value, char **ret) {
        if (!place_unescape(p, key, value))
                return;
        if (*value == 0 || (value[0] != '/' && (strchr(value, '/') || value[0] == '.')))
                place_broken(p, "%s=%s is neither an absolute path nor the name of a credential", key, value);
        else {
                g_free(*ret);
                *ret = g_strdup(value);
        }
}

static void set_connections(Place *p, const char *key, const char *value, uint64_t *ret) {
        uint64_t n;

        if (parse_count(value, &n) < 0 || n < 1 || n > CONNECTIONS_MAX)
                place_broken(p, "%s=%s is no number from 1 to %u", key, value, CONNECTIONS_MAX);
        else
                *ret = n;
}

/* Service= and Connection= say the same, so they are checked against each other when the second one is set. */
static bool is_second(Place *p, const char *key, const DatabaseConfig *d) {
        bool is_service = d->connection && g_str_has_prefix(d->connection, "service=");

        if (!d->connection || is_service == (strcmp(key, "Service") == 0))
                return false;
        place_broken(p, "%s=: give either Service= or Connection=", key);
        return true;
}

bool server_set(Place *p, DatabaseConfig *d, const char *key, char *value) {
        if (strcmp(key, "Engine") == 0)
                set_engine(p, key, value, &d->engine);
        else if (strcmp(key, "Service") == 0) {
                if (!is_second(p, key, d))
                        set_service(p, key, value, &d->connection);
        } else if (strcmp(key, "Connection") == 0) {
                if (!is_second(p, key, d))
                        set_connection(p, key, value, &d->connection);
        } else if (strcmp(key, "ReplicaConnection") == 0)
                set_connection(p, key, value, &d->replica_connection);
        else if (strcmp(key, "PasswordFile") == 0)
                set_password_file(p, key, value, &d->password_file);
        else if (strcmp(key, "ConnectionsMax") == 0)
                set_connections(p, key, value, &d->connections_max);
        else if (strcmp(key, "Consistency") == 0)
                set_consistency(p, key, value, &d->consistency);
        else
                return false;
        return true;
}

/* ---- Check ---- */

static bool are_urls(const char *connection) {
        g_auto(GStrv) words = g_strsplit_set(connection, " \t", -1);
        unsigned n = 0;

        for (char **word = words; *word; word++) {
                if (**word == 0)
                        continue;
                if (!g_str_has_prefix(*word, "http://") && !g_str_has_prefix(*word, "https://"))
                        return false;
                n++;
        }
        return n > 0;
}

static bool check_file(Config *c, DatabaseConfig *d, const char *file, unsigned line) {
        if (d->server_key_at)
                config_add_broken(c, d->name, "%s is for a server: give Engine=postgresql or Engine=rqlite with it",
                                  d->server_key_at);
        else if (!d->path)
                config_add_broken(c, d->name, "%s:%u: [Database] has no Path=", file, line);
        else
                return true;
        return false;
}

bool server_check(Config *c, DatabaseConfig *d, const char *file, unsigned line) {
        const char *engine = engine_kind_name(d->engine);

        if (!database_config_is_server(d))
                return check_file(c, d, file, line);
        if (d->file_key_at)
                config_add_broken(c, d->name, "%s is for a database file, and Engine=%s has none", d->file_key_at, engine);
        else if (!d->connection)
                config_add_broken(c, d->name, "%s:%u: [Database] has Engine=%s, but no %s", file, line, engine,
                                  d->engine == ENGINE_KIND_POSTGRESQL ? "Service= or Connection=" : "Connection=");
        else if (*d->write_tables)
                config_add_broken(c, d->name, "%s:%u: WriteTables= and Engine=%s: give the role that the service has on the "
                                  "server its rights there, by GRANT", file, line, engine);
        else if (d->engine == ENGINE_KIND_RQLITE && !are_urls(d->connection))
                config_add_broken(c, d->name, "%s:%u: Engine=rqlite needs a Connection= of one or more URLs, separated by "
                                  "blanks, which begin with http:// or https://", file, line);
        else if (d->engine == ENGINE_KIND_RQLITE && d->replica_connection)
                config_add_broken(c, d->name, "%s:%u: ReplicaConnection= is for Engine=postgresql: rqlite's nodes, which "
                                  "Connection= names, are equal", file, line);
        else if (d->engine != ENGINE_KIND_RQLITE && d->consistency != CONSISTENCY_WEAK)
                config_add_broken(c, d->name, "%s:%u: Consistency= is for Engine=rqlite", file, line);
        else {
                g_free(d->path);
                d->path = g_strdup("");
                g_free(d->server);
                d->server = g_strconcat(engine, " ", d->connection, NULL);
                return true;
        }
        return false;
}

/* ---- Comparison ---- */

bool server_shows_same(const DatabaseConfig *a, const DatabaseConfig *b) {
        return a->engine == b->engine && g_strcmp0(a->connection, b->connection) == 0;
}

bool server_equal(const DatabaseConfig *a, const DatabaseConfig *b) {
        return server_shows_same(a, b) && g_strcmp0(a->replica_connection, b->replica_connection) == 0 &&
               g_strcmp0(a->password_file, b->password_file) == 0 && a->connections_max == b->connections_max &&
               a->consistency == b->consistency;
}
