/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The needs of a database of a server on this machine, see server-check.h. */
#include "tools/ctl/server-check.h"

#include <errno.h>
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

void server_check_access(const DatabaseConfig *d, bool system, const ServiceUser *user, GPtrArray *findings) {
        check_unit(d, system, findings);
        check_password(d, user, findings);
}
