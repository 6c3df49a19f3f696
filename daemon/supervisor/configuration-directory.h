/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The configuration directory: files -> Config. Supervisor. The only files that it opens.
 */
#ifndef SQLIPC_CONFIGURATION_DIRECTORY_H
#define SQLIPC_CONFIGURATION_DIRECTORY_H

#include "configuration.h"

/* Reads DIR/sqlipcd.conf and DIR/databases.d/NAME.conf; either may be absent. Never fails: what cannot be read stands in
 * `broken`. */
Config *config_load(const char *directory);

/* Where the files are unless --config-dir= says: SQLIPC_CONFIG_DIR, or for a user's own service ~/.config/sqlipc. */
char *config_default_directory(bool user);

#endif
