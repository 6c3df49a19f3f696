/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What is wrong with a configuration that was read, for the verbs check and add. */
#ifndef CTL_CONFIGURATION_CHECK_H
#define CTL_CONFIGURATION_CHECK_H

#include "configuration.h"
#include "context.h"
#include "finding.h"
#include "service-unit.h"
#include "service-user.h"

/** Turns the names of users and groups into ids; may ask the network. */
void configuration_resolve(Config *config);

/** The names of its databases, sorted; caller frees the list, the names are the configuration's. */
GList *configuration_names(const Config *config);

/** Adds to `findings` what is broken, what is odd, and what the files of the databases are like for `user` in `unit` (NULL:
 * there is none). */
void configuration_check(const Context *c, const Config *config, const ServiceUser *user, const ServiceUnit *unit,
                         GPtrArray *findings);

#endif
