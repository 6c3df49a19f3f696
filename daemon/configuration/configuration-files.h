/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Finds and reads the configuration files, by systemd's rules: files -> Config. These are the only files that the supervisor
 * opens.
 *
 *      DIR/sqlipcd.conf            from the first DIR that has it
 *      DIR/sqlipcd.conf.d/X.conf   drop-ins, in the order of the names X; each from the first DIR that has it
 *      DIR/databases.d/NAME.conf, DIR/databases.d/NAME.conf.d/X.conf   likewise
 *
 * A file that is empty, or a link to /dev/null, masks the files of its name in later directories: a database that is masked
 * is not published, a drop-in that is masked says nothing.
 */
#ifndef SQLIPC_DAEMON_CONFIGURATION_CONFIGURATION_FILES_H
#define SQLIPC_DAEMON_CONFIGURATION_CONFIGURATION_FILES_H

#include "daemon/configuration/configuration.h"

/* Reads all files in `directories` (NULL-terminated, the first one wins); any may be absent. Never fails: errors are in
 * `broken`. Names of users are not resolved. */
Config *config_load(const char *const *directories);

/* The directories to read unless --config-dir= is given; the caller frees them with g_strfreev(). For the system:
 * SQLIPC_CONFIG_DIR (/etc/sqlipc), /run/sqlipc, SQLIPC_VENDOR_DIR (/usr/lib/sqlipc). For a user: $XDG_CONFIG_HOME/sqlipc
 * (~/.config/sqlipc) and $XDG_RUNTIME_DIR/sqlipc, if the environment names them, SQLIPC_CONFIG_DIR/user,
 * SQLIPC_VENDOR_DIR/user. */
char **config_default_directories(bool user);

#endif
