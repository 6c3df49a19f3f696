/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The program of a client. */
#ifndef SQLIPC_TOOLS_CTL_PROCESS_NAME_H
#define SQLIPC_TOOLS_CTL_PROCESS_NAME_H

#include "tools/ctl/bus.h"

/** The rows (aa{sv}) with an added "process": the name of the process of each "client", if it is on this machine and still
 * exists. Each client is looked up once for `c`. The caller unrefs the result. */
GVariant *process_names_add(Context *c, GVariant *rows);

#endif
