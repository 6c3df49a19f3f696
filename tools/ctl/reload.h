/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reloading the service, for the verbs reload and add. */
#ifndef CTL_RELOAD_H
#define CTL_RELOAD_H

#include "context.h"

/** Has the service read its configuration again, and waits until that is in force. `*ret_info`: what it said, a{sv}; caller
 * unrefs; {"running": false} where it does not run, for then it will read it when it starts. Returns an exit code, after a
 * sentence where that is a failure. */
int reload_service(Context *c, GVariant **ret_info);

/** Says what is odd and what is broken in the configuration now in force; CTL_FAILED where anything is broken. */
int reload_complain(GVariant *info);

/** Prints the outcome, and reload_complain(). */
int reload_print(const Context *c, GVariant *info);

#endif
