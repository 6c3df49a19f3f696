/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See pg-server.h.
 */
#include "daemon/worker/postgresql/pg-server.h"

#include <errno.h>
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/worker/core/monotonic.h"

#define NO_FILE "/nonexistent/pgpass"             /* libpq says nothing of a file that is not there */
#define CONNECT_USEC (10 * USEC_PER_SEC)          /* if there is no connect_timeout */

/* Each session has these settings, regardless of those of the server and the role. */
#define SETTINGS \
        "-c client_encoding=UTF8 -c datestyle=ISO -c timezone=UTC -c intervalstyle=postgres -c bytea_output=hex " \
        "-c extra_float_digits=1 -c standard_conforming_strings=on -c xmloption=content"

/* Keywords that get a value unless the connection has one: a cut network is noticed within 30 s. */
static const struct {
        const char *keyword, *value;
} usual[] = {
        { "application_name", "sqlipc" },
        { "keepalives_idle", "10" },
        { "keepalives_interval", "5" },
        { "keepalives_count", "3" },
        { "tcp_user_timeout", "20000" },
};

/* libpq prefers Connection= and a service file to the environment, and ignores sslmode on a socket of the file system. So a
 * variable of the environment is a default, and a PGSSLMODE of the unit stays. A keyword would overrule a service file.
 *
 * libpq would also take a password from the environment or from ~/.pgpass, and sqlipcctl could not warn that it goes over a
 * network without TLS. */
int pg_server_set_defaults(void) {
        if (unsetenv("PGPASSWORD") < 0 || setenv("PGPASSFILE", NO_FILE, 1) < 0)
                return -errno;
        return setenv("PGSSLMODE", "verify-full", 0) < 0 ? -errno : 0;
}

void pg_server_done(PgServer *s) {
        for (size_t i = 0; s->keywords && s->keywords[i]; i++) {
                if (strcmp(s->keywords[i], "password") == 0)
                        explicit_bzero(s->values[i], strlen(s->values[i]));
                free(s->keywords[i]);
                free(s->values[i]);
        }
        free(s->keywords);
        free(s->values);
        sql_error_done(&s->error);
        *s = (PgServer) { .error = SQL_ERROR_INIT };
}

static size_t count(char *const *list) {
        size_t n = 0;

        while (list && list[n])
                n++;
        return n;
}

static bool add(PgServer *s, const char *keyword, const char *value) {
        size_t n = count(s->keywords);
        char **keywords = reallocarray(s->keywords, n + 2, sizeof *keywords), **values;

        if (keywords) {
                s->keywords = keywords;
                keywords[n] = NULL;
        }
        values = keywords ? reallocarray(s->values, n + 2, sizeof *values) : NULL;
        if (!values)
                return false;
        s->values = values;
        values[n] = strdup(value);
        values[n + 1] = NULL;
        keywords[n] = values[n] ? strdup(keyword) : NULL;
        keywords[n + 1] = NULL;
        if (!keywords[n])
                free(values[n]);
        return keywords[n] != NULL;
}

static const char *value_of(const PQconninfoOption *options, const char *keyword) {
        for (const PQconninfoOption *o = options; o->keyword; o++)
                if (strcmp(o->keyword, keyword) == 0)
                        return o->val;
        return NULL;
}

/* The value of `keyword` that libpq will use. It ignores empty ones. NULL: none. */
static const char *effective(const PQconninfoOption *options, const PQconninfoOption *defaults, const char *keyword) {
        const char *value = value_of(options, keyword);

        if (!value || *value == 0)
                value = value_of(defaults, keyword);
        return value && *value ? value : NULL;
}

/* libpq reads the file of the service that the environment names. NULL: no memory. */
static PQconninfoOption *read_defaults(const PQconninfoOption *options) {
        const char *service = value_of(options, "service"), *own = getenv("PGSERVICE");
        char *before = own ? strdup(own) : NULL;
        PQconninfoOption *defaults = NULL;

        if (own && !before)
                return NULL;
        if (!service || *service == 0 || setenv("PGSERVICE", service, 1) == 0)
                defaults = PQconndefaults();
        if (before)
                (void) setenv("PGSERVICE", before, 1);
        else
                (void) unsetenv("PGSERVICE");
        free(before);
        return defaults;
}

/* True if one of the hosts is not a socket of the file system. An empty one is libpq's default, which is a socket. */
static bool is_over_tcp(const PQconninfoOption *options, const PQconninfoOption *defaults) {
        const char *host = effective(options, defaults, "host");

        if (effective(options, defaults, "hostaddr"))
                return true;
        for (; host; host = strchr(host, ',') ? strchr(host, ',') + 1 : NULL)
                if (!strchr("/@,", *host))
                        return true;
        return false;
}

static bool knows(const PQconninfoOption *options, const char *keyword) {
        while (options->keyword && strcmp(options->keyword, keyword) != 0)
                options++;
        return options->keyword;
}

/* A server that asks for the password as it is gets none, unless the administrator allows that. On a socket the folder's
 * owner decides which program answers. libpq has this from version 16, which need not be the one that we are built with. */
static bool add_required_method(PgServer *s, const PQconninfoOption *options) {
        PQconninfoOption *defaults;
        bool ok;

        if (!knows(options, "require_auth"))
                return true;
        defaults = read_defaults(options);
        ok = defaults && (effective(options, defaults, "require_auth") || !is_over_tcp(options, defaults) ||
                          add(s, "require_auth", "!password"));
        PQconninfoFree(defaults);
        return ok;
}

static bool has_secret(const PQconninfoOption *options) {
        return value_of(options, "password") || value_of(options, "sslpassword") || value_of(options, "passfile");
}

static bool has_several_hosts(const PQconninfoOption *options) {
        const char *host = value_of(options, "host"), *address = value_of(options, "hostaddr");

        return (host && strchr(host, ',')) || (address && strchr(address, ','));
}

static bool add_settings(PgServer *s, const PQconninfoOption *options) {
        const char *own = value_of(options, "options");
        char *all = NULL;
        bool ok = asprintf(&all, "%s%s%s", own ? own : "", own ? " " : "", SETTINGS) >= 0 && add(s, "options", all);

        free(all);
        return ok;
}

static bool add_all(PgServer *s, const PQconninfoOption *options, const char *password, bool is_primary) {
        bool ok = true;

        for (const PQconninfoOption *o = options; ok && o->keyword; o++)
                if (o->val && strcmp(o->keyword, "options") != 0)
                        ok = add(s, o->keyword, o->val);
        for (size_t i = 0; ok && i < sizeof usual / sizeof *usual; i++)
                if (!value_of(options, usual[i].keyword))
                        ok = add(s, usual[i].keyword, usual[i].value);
        if (ok && is_primary && has_several_hosts(options) && !value_of(options, "target_session_attrs"))
                ok = add(s, "target_session_attrs", "primary");
        return ok && (!password || add(s, "password", password)) && add_required_method(s, options) &&
               add_settings(s, options);
}

/* libpq's own message may repeat a part of the text, which may be a password. */
static bool fail_to_read(PgServer *s, bool secret) {
        return sql_error_set(&s->error, ERROR_LOGIN_FAILED,
                             secret ? "the connection in the configuration has a password or a passfile: put the password "
                                      "into a file, and name that by PasswordFile="
                                    : "the connection in the configuration is not valid: see the keywords of libpq");
}

bool pg_server_init(PgServer *s, const char *connection, const char *password, bool is_primary) {
        PQconninfoOption *options = PQconninfoParse(connection, NULL);
        const char *timeout;
        bool ok;

        *s = (PgServer) { .timeout_usec = CONNECT_USEC, .error = SQL_ERROR_INIT };
        if (!options)
                return !fail_to_read(s, false);
        timeout = value_of(options, "connect_timeout");
        if (timeout && atoi(timeout) > 0)
                s->timeout_usec = (uint64_t) atoi(timeout) * USEC_PER_SEC;
        ok = has_secret(options) ? !fail_to_read(s, true) : add_all(s, options, password, is_primary);
        PQconninfoFree(options);
        return ok;
}
