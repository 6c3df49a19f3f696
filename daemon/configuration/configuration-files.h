/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Where the configuration lies, by systemd's rules: files -> Config. These are the only files that the supervisor opens.
 *
 *      DIR/sqlipcd.conf            the first DIR that has it counts
 *      DIR/sqlipcd.conf.d/X.conf   drop-ins: by the names of X, of each the first DIR's
 *      DIR/databases.d/NAME.conf, DIR/databases.d/NAME.conf.d/X.conf   likewise
 *
 * A file that is empty, or a link to /dev/null, masks those of its name in later directories: a database masked so is not
 * published, a drop-in masked so says nothing.
 */
#ifndef SQLIPC_CONFIGURATION_FILES_H
#define SQLIPC_CONFIGURATION_FILES_H

#include "configuration.h"

/* Reads all files in `directories` (NULL-terminated, first wins); any may be absent. Never fails: what cannot be read stands
 * in `broken`. Names of users are not resolved. */
Config *config_load(const char *const *directories);

/* Where the files are unless --config-dir= says; caller frees with g_strfreev(). The system's: SQLIPC_CONFIG_DIR
 * (/etc/sqlipc), /run/sqlipc, SQLIPC_VENDOR_DIR (/usr/lib/sqlipc). A user's: $XDG_CONFIG_HOME/sqlipc (~/.config/sqlipc),
 * $XDG_RUNTIME_DIR/sqlipc, where the environment names them, SQLIPC_CONFIG_DIR/user, SQLIPC_VENDOR_DIR/user. */
char **config_default_directories(bool user);

#endif
