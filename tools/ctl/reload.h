/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reloading the service, for the verbs reload and add. */
#ifndef SQLIPC_TOOLS_CTL_RELOAD_H
#define SQLIPC_TOOLS_CTL_RELOAD_H

#include "tools/ctl/context.h"

/** Makes the service read its configuration again, and waits until it is in force. `*ret_info`: the reply, a{sv}; the caller
 * unrefs it; {"running": false} if the service does not run, because it will read the configuration when it starts. Returns
 * an exit code, and prints a message if that is a failure. */
int reload_service(Context *c, GVariant **ret_info);

/** Prints the warnings and errors of the configuration in force. Returns CTL_FAILED if there are errors. */
int reload_complain(GVariant *info);

/** Prints the outcome, then does the same as reload_complain(). */
int reload_print(const Context *c, GVariant *info);

#endif
