/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which program a client is. */
#ifndef CTL_PROCESS_NAME_H
#define CTL_PROCESS_NAME_H

#include "bus.h"

/** The rows (aa{sv}) with "process" added, the name of the process of each "client", if it is one of this machine that is
 * still there. Each client is looked up once for `c`. Caller unrefs. */
GVariant *process_names_add(Context *c, GVariant *rows);

#endif
