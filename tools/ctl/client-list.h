/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The clients, as the service lists them. */
#ifndef SQLIPC_TOOLS_CTL_CLIENT_LIST_H
#define SQLIPC_TOOLS_CTL_CLIENT_LIST_H

#include "tools/ctl/process-name.h"

/** a(sa{sv}): the bus name and the service's data of each client. The list is empty if the service does not run, provided
 * that the bus could start it or `must_be_there` is false. Prints an error if it fails. Returns an exit code. The caller
 * unrefs. */
int client_list_read(Context *c, bool must_be_there, GVariant **ret);

#endif
