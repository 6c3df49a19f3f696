/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The password of a server, from PasswordFile=. Supervisor.
 *
 * It is read each time when a worker starts, so a new one needs no reload, and it is wiped as soon as it was sent: the
 * supervisor keeps no password.
 */
#ifndef SQLIPC_DAEMON_SUPERVISOR_WORKERS_PASSWORD_H
#define SQLIPC_DAEMON_SUPERVISOR_WORKERS_PASSWORD_H

#include <glib.h>

typedef struct Password Password;

/* Reads the first line. `file`: as in the configuration; NULL: there is no password, which is NULL then, too. -ENOKEY: it
 * cannot be read, or is not valid; the log says why. */
int password_read(const char *file, Password **ret);

/* Borrowed; NULL: there is none. */
const char *password_text(const Password *p);

/* Wipes it. NULL is allowed. */
void password_free(Password *p);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Password, password_free)

#endif
