/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Finds the errors and warnings of a configuration that was read, for the verbs check and add. */
#ifndef CTL_CONFIGURATION_CHECK_H
#define CTL_CONFIGURATION_CHECK_H

#include "configuration.h"
#include "context.h"
#include "finding.h"
#include "service-unit.h"
#include "service-user.h"

/** Resolves the names of users and groups to ids; this may use the network. */
void configuration_resolve(Config *config);

/** The names of its databases, sorted. The caller frees the list; the names are borrowed from the configuration. */
GList *configuration_names(const Config *config);

/** Adds to `findings` the errors and warnings of the configuration, and whether `user` could read the files of the databases
 * within the sandbox of `unit` (NULL: no unit). */
void configuration_check(const Context *c, const Config *config, const ServiceUser *user, const ServiceUnit *unit,
                         GPtrArray *findings);

#endif
