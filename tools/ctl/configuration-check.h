/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Finds the errors and warnings of a configuration that was read, for the verbs check and add. */
#ifndef SQLIPC_TOOLS_CTL_CONFIGURATION_CHECK_H
#define SQLIPC_TOOLS_CTL_CONFIGURATION_CHECK_H

#include "daemon/configuration/configuration.h"
#include "tools/ctl/context.h"
#include "tools/ctl/finding.h"
#include "tools/ctl/service-unit.h"
#include "tools/ctl/service-user.h"

/** Resolves the names of users and groups to ids; this may use the network. */
void configuration_resolve(Config *config);

/** The names of its databases, sorted. The caller frees the list; the names are borrowed from the configuration. */
GList *configuration_names(const Config *config);

/** Adds to `findings` the errors and warnings of the configuration, and whether `user` could read the files of the databases
 * within the sandbox of `unit` (NULL: no unit). */
void configuration_check(const Context *c, const Config *config, const ServiceUser *user, const ServiceUnit *unit,
                         GPtrArray *findings);

#endif
