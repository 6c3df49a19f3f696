/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Resolves names of users and groups in the configuration to ids. NSS may ask a directory on the network and take long, so
 * the supervisor never calls it. Instead it starts a child, `sqlipcd --resolve`, for one configuration, and reads its answer
 * when it comes (resolve.h there). sqlipcctl, which may wait, calls names_resolve() itself.
 *
 * Question and answer are lines of text: "u NAME" or "g NAME", and "u NAME ID". A name may contain spaces, as groups of a
 * Windows domain do. A name with control characters is not asked for, and has no id.
 */
#ifndef SQLIPC_DAEMON_CONFIGURATION_CONFIGURATION_NAMES_H
#define SQLIPC_DAEMON_CONFIGURATION_CONFIGURATION_NAMES_H

#include "daemon/configuration/configuration.h"

/* Returns what must be asked about `c`: one line for each name, without duplicates; "" if there is none. The caller frees
 * it. Numbers and "*" need no lookup. */
char *names_question(const Config *c);

/* Asks NSS; may block. Names that NSS does not know are missing from the answer. The caller frees it. */
char *names_resolve(const char *question);

/* Fills in the ids of each database of `c` (uids, gids, allow_everybody, and the same for writing) from the answer (NULL:
 * there was no answer). Warns of each name that is missing from it; such a name allows no user. */
void names_apply(Config *c, const char *answer);

#endif
