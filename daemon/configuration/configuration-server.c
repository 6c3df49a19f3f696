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

static void set_engine(Place *p, const DatabaseKey *key, char *value, DatabaseConfig *d) {
        for (EngineKind i = 0; i < ENGINE_KIND_MAX_; i++)
                if (strcmp(value, engine_kind_name(i)) == 0) {
                        d->engine = i;
                        return;
                }
        place_broken(p, "%s=%s is not known: give sqlite, postgresql or rqlite", key->name, value);
}

static void set_consistency(Place *p, const DatabaseKey *key, char *value, DatabaseConfig *d) {
        for (Consistency i = 0; i < CONSISTENCY_MAX_; i++)
                if (strcmp(value, consistency_name(i)) == 0) {
                        d->consistency = i;
                        return;
                }
        place_broken(p, "%s=%s is not known: give none, weak, strong or linearizable", key->name, value);
}

/* True if a keyword of libpq ends with `word`, as a word of the text or in the query of a URI. */
static bool has_keyword(const char *value, const char *word) {
        for (const char *at = value; (at = strcasestr(at, word)); at++) {
                const char *end = at + strlen(word);

                if (end[strspn(end, " \t\r\n")] == '=')
                        return true;
        }
        return false;
}

/* True if it gives a password: by libpq's keywords password= and sslpassword=, or in the part of a URI between the user and
 * the host. */
static bool has_password(const char *value) {
        if (has_keyword(value, "password"))
                return true;
        for (const char *at = value; (at = strstr(at, "://")); at++) {
                const char *user = at + strlen("://");
                size_t n = strcspn(user, "/?# \t");
                const char *host = memrchr(user, '@', n);

                if (host && memchr(user, ':', (size_t) (host - user)))
                        return true;
        }
        return false;
}

static void set_address(Place *p, const DatabaseKey *key, char *value, DatabaseConfig *d) {
        char **address = (char **) G_STRUCT_MEMBER_P(d, key->offset);

        if (*value == 0)
                place_broken(p, "%s= is empty", key->name);
        else if (strlen(value) > CONNECTION_SIZE_MAX)
                place_broken(p, "%s=: more than %zu bytes", key->name, CONNECTION_SIZE_MAX);
        else if (has_password(value))
                place_broken(p, "%s=: a password does not belong here, where many may read it: use PasswordFile=",
                             key->name);
        else if (has_keyword(value, "passfile"))
                place_broken(p, "%s=: passfile= is not for the service, which reads one password: use PasswordFile=",
                             key->name);
        else {
                g_free(*address);
                *address = g_strdup(value);
        }
}

/* Service= and Connection= say the same, so they are checked against each other when the second one is set. */
static bool is_second(Place *p, const DatabaseKey *key, const DatabaseConfig *d) {
        bool is_service = d->connection && g_str_has_prefix(d->connection, "service=");

        if (!d->connection || is_service == (strcmp(key->name, "Service") == 0))
                return false;
        place_broken(p, "%s=: give either Service= or Connection=", key->name);
        return true;
}

static void set_connection(Place *p, const DatabaseKey *key, char *value, DatabaseConfig *d) {
        if (!is_second(p, key, d))
                set_address(p, key, value, d);
}

/* The name becomes a part of Connection=, so it has no character that is special there. */
static void set_service(Place *p, const DatabaseKey *key, char *value, DatabaseConfig *d) {
        size_t n = strspn(value, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-");

        if (is_second(p, key, d))
                return;
        if (value[n] != 0 || n == 0 || n > NAME_SIZE_MAX) {
                place_broken(p, "%s=%s is no name of a service: use A-Z a-z 0-9 _ . -", key->name, value);
                return;
        }
        g_free(d->connection);
        d->connection = g_strconcat("service=", value, NULL);
}

static void set_password_file(Place *p, const DatabaseKey *key, char *value, DatabaseConfig *d) {
        if (!place_unescape(p, key->name, value))
                return;
        if (*value == 0 || (value[0] != '/' && (strchr(value, '/') || value[0] == '.')))
                place_broken(p, "%s=%s is neither an absolute path nor the name of a credential", key->name, value);
        else {
                g_free(d->password_file);
                d->password_file = g_strdup(value);
        }
}

static void set_connections(Place *p, const DatabaseKey *key, char *value, DatabaseConfig *d) {
        uint64_t n;

        if (parse_count(value, &n) < 0 || n < 1 || n > CONNECTIONS_MAX)
                place_broken(p, "%s=%s is no number from 1 to %u", key->name, value, CONNECTIONS_MAX);
        else
                d->connections_max = n;
}

const DatabaseKey server_keys[] = {
        { "Connection", set_connection, DATABASE_KEY_SERVER, DATABASE_KEY_AT(connection) },
        { "ConnectionsMax", set_connections, DATABASE_KEY_SERVER },
        { "Consistency", set_consistency, DATABASE_KEY_SERVER },
        { "Engine", set_engine },
        { "PasswordFile", set_password_file, DATABASE_KEY_SERVER },
        { "ReplicaConnection", set_address, DATABASE_KEY_SERVER, DATABASE_KEY_AT(replica_connection) },
        { "Service", set_service, DATABASE_KEY_SERVER },
        { NULL },
};

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
