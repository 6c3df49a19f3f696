/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A configuration with its defaults, and the texts of sqlipcd.conf. Pure. */
#ifndef SQLIPC_DAEMON_CONFIGURATION_CONFIGURATION_MAIN_H
#define SQLIPC_DAEMON_CONFIGURATION_CONFIGURATION_MAIN_H

#include "daemon/configuration/configuration.h"

/* Everything has its default; no database is published. */
Config *config_new(void);

/* Adds sqlipcd.conf and its drop-ins. Errors go to c->broken, and their keys keep their defaults. */
void config_add_main(Config *c, const ConfigText *texts, size_t n_texts);

#endif
