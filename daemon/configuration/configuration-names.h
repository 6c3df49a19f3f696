/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Names of users and groups in the configuration -> ids. NSS may ask a directory on the network and take its time, so the
 * supervisor never calls it: it has `sqlipcd --resolve` do that, a child that lives for one configuration, and reads its
 * answer when it comes (resolve.h there). sqlipcctl, which may wait, calls names_resolve() itself.
 *
 * Question and answer are lines of text, "u NAME" or "g NAME", and "u NAME ID". A name may hold spaces, as groups of a
 * Windows domain do; one with control characters is not asked for, and has no id.
 */
#ifndef SQLIPC_CONFIGURATION_NAMES_H
#define SQLIPC_CONFIGURATION_NAMES_H

#include "configuration.h"

/* What has to be asked about `c`, one line each and each once; "" where nothing has. Caller frees. Numbers and "*" need no
 * asking. */
char *names_question(const Config *c);

/* Asks NSS; may block. Names that it does not know are absent from the answer. Caller frees. */
char *names_resolve(const char *question);

/* Fills uids, gids and allow_everybody of each database of `c` by the answer (NULL: nobody answered), with a warning for
 * each name that it lacks: that name allows nobody. */
void names_apply(Config *c, const char *answer);

#endif
