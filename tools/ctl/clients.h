/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The clients, as the service lists them. */
#ifndef CTL_CLIENTS_H
#define CTL_CLIENTS_H

#include "process-name.h"

/** a(sa{sv}): bus name and what the service says of each; none if the service does not run, but could be started or
 * `must_be_there` is false. Says why it fails; returns an exit code. Caller unrefs. */
int clients_list(Context *c, bool must_be_there, GVariant **ret);

#endif
