/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The needs of a database of a server on this machine, see server-check.h. */
#include "tools/ctl/server-check.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void check_unit(const DatabaseConfig *d, bool system, GPtrArray *findings) {
        g_autofree char *socket =
                g_build_filename(system ? "/run" : g_get_user_runtime_dir(), "sqlipc-engine", "socket", NULL);
        struct stat st;

        /* EACCES: the folder of another user's runtime directory */
        if (stat(socket, &st) < 0 && errno == ENOENT)
                findings_add(findings, FINDING_WARNING, d->name,
                             "Engine=%s needs sqlipc-engine.socket, which does not run: install the package sqlipc-engine, "
                             "and 'systemctl %senable --now sqlipc-engine.socket'", engine_kind_name(d->engine),
                             system ? "" : "--user ");
}

/* A name without a slash is a credential, which is there only while the service runs. */
static void check_password(const DatabaseConfig *d, const ServiceUser *user, GPtrArray *findings) {
        const char *file = d->password_file;
        struct stat st;

        if (!file || file[0] != '/')
                return;
        if (stat(file, &st) < 0)
                findings_add(findings, errno == EACCES ? FINDING_WARNING : FINDING_ERROR, d->name, "%s: %s", file,
                             g_strerror(errno));
        else if (!S_ISREG(st.st_mode))
                findings_add(findings, FINDING_ERROR, d->name, "PasswordFile=%s is no regular file", file);
        else if (!service_user_may(user, &st, R_OK))
                findings_add(findings, FINDING_ERROR, d->name,
                             "the service's user %s may not read %s: make it the file's owner, or use LoadCredential=",
                             user->name, file);
        else if (st.st_mode & 0077)
                findings_add(findings, FINDING_WARNING, d->name,
                             "other users than %s may read the password in %s: 'chmod 600' lets its owner alone do so",
                             user->name, file);
}

/* ---- a password on a network ---- */

/* Text of libpq up to its end or a blank, without quotes and backslashes. */
static char *take_value(const char **at) {
        GString *value = g_string_new(NULL);
        bool quoted = **at == '\'';
        const char *c = *at + quoted;

        for (; *c && (quoted ? *c != '\'' : !g_ascii_isspace(*c)); c++) {
                if (*c == '\\' && c[1])
                        c++;
                g_string_append_c(value, *c);
        }
        *at = c + (quoted && *c);
        return g_string_free(value, FALSE);
}

/* The parameters of "keyword = value keyword = value"; the last of a keyword counts. */
static void read_keywords(const char *at, GHashTable *ret) {
        while (*(at += strspn(at, " \t\r\n"))) {
                size_t n = strcspn(at, "= \t\r\n");
                char *keyword = g_strndup(at, n);

                at += n;
                at += strspn(at, " \t\r\n");
                at += *at == '=';
                at += strspn(at, " \t\r\n");
                g_hash_table_replace(ret, keyword, take_value(&at));
        }
}

static char *decode(const char *text, gssize size) {
        return g_uri_unescape_segment(text, size < 0 ? NULL : text + size, NULL) ?: g_strdup("");
}

/* The hosts of "user@host:port,host:port", without ports, as libpq's keyword has them. */
static char *hosts_of(const char *authority) {
        const char *user_end = strrchr(authority, '@');
        g_auto(GStrv) hosts = g_strsplit(user_end ? user_end + 1 : authority, ",", -1);

        for (char **host = hosts; *host; host++) {
                bool is_address = **host == '[';
                char *decoded = decode(*host + is_address, (gssize) strcspn(*host + is_address, is_address ? "]" : ":"));

                g_free(*host);
                *host = decoded;
        }
        return g_strjoinv(",", hosts);
}

/* postgresql://USER@HOST:PORT,.../DATABASE?KEYWORD=VALUE&... */
static void read_uri(const char *rest, GHashTable *ret) {
        size_t n = strcspn(rest, "/?");
        g_autofree char *authority = g_strndup(rest, n);
        const char *query = strchr(rest, '?');
        g_auto(GStrv) pairs = g_strsplit(query ? query + 1 : "", "&", -1);

        g_hash_table_replace(ret, g_strdup("host"), hosts_of(authority));
        for (char **pair = pairs; *pair; pair++) {
                const char *value = strchr(*pair, '=');

                if (value)
                        g_hash_table_replace(ret, decode(*pair, value - *pair), decode(value + 1, -1));
        }
}

/* Sockets of the file system, and loopback: what passes there leaves the machine on no network. */
static bool is_local(const char *host) {
        struct in6_addr v6;
        struct in_addr v4;

        if (*host == 0 || *host == '/' || *host == '@' || g_ascii_strcasecmp(host, "localhost") == 0)
                return true;
        return (inet_pton(AF_INET, host, &v4) == 1 && ntohl(v4.s_addr) >> 24 == IN_LOOPBACKNET) ||
               (inet_pton(AF_INET6, host, &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6));
}

static bool are_local(const char *hosts) {
        g_auto(GStrv) all = g_strsplit(hosts ?: "", ",", -1);

        for (char **host = all; *host; host++)
                if (!is_local(*host))
                        return false;
        return true;
}

static const char *parameter(GHashTable *parameters, const char *keyword) {
        const char *value = g_hash_table_lookup(parameters, keyword);

        return value && *value ? value : NULL;
}

static void check_postgresql(const DatabaseConfig *d, const char *key, const char *connection, GPtrArray *findings) {
        g_autoptr(GHashTable) parameters = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
        const char *mode;

        if (g_str_has_prefix(connection, "postgresql://") || g_str_has_prefix(connection, "postgres://"))
                read_uri(strstr(connection, "://") + strlen("://"), parameters);
        else
                read_keywords(connection, parameters);
        mode = parameter(parameters, "sslmode");
        if (!mode || !g_strv_contains((const char *const[]) { "disable", "allow", "prefer", NULL }, mode) ||
            are_local(parameter(parameters, "hostaddr") ?: parameter(parameters, "host")))
                return;
        findings_add(findings, FINDING_WARNING, d->name,
                     "%s has sslmode=%s: the password of PasswordFile= can go over the network without TLS, to any program "
                     "that answers there: use sslmode=verify-full, and name the certificate's authority by sslrootcert",
                     key, mode);
}

static void check_rqlite(const DatabaseConfig *d, GPtrArray *findings) {
        g_auto(GStrv) words = g_strsplit_set(d->connection, " \t", -1);

        for (char **word = words; *word; word++) {
                const char *rest = *word + strlen("http://");
                g_autofree char *authority = NULL, *host = NULL;

                if (!g_str_has_prefix(*word, "http://"))
                        continue;
                authority = g_strndup(rest, strcspn(rest, "/?#"));
                host = hosts_of(authority);
                if (is_local(host))
                        continue;
                findings_add(findings, FINDING_WARNING, d->name,
                             "Connection= has http: for host %s: the password of PasswordFile= goes over the network "
                             "without TLS, to any program that answers there: use https:",
                             host);
                return;
        }
}

/* Service= is not followed: its file is that of another user's process, which the environment may name. */
static void check_network(const DatabaseConfig *d, GPtrArray *findings) {
        if (!d->password_file || !d->connection)
                return;
        if (d->engine == ENGINE_KIND_RQLITE) {
                check_rqlite(d, findings);
                return;
        }
        check_postgresql(d, "Connection=", d->connection, findings);
        if (d->replica_connection)
                check_postgresql(d, "ReplicaConnection=", d->replica_connection, findings);
}

void server_check_access(const DatabaseConfig *d, bool system, const ServiceUser *user, GPtrArray *findings) {
        check_unit(d, system, findings);
        check_password(d, user, findings);
        check_network(d, findings);
}
