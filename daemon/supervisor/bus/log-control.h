/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* org.freedesktop.LogControl1 on the bus. Supervisor. */
#ifndef SQLIPC_DAEMON_SUPERVISOR_BUS_LOG_CONTROL_H
#define SQLIPC_DAEMON_SUPERVISOR_BUS_LOG_CONTROL_H

#include "daemon/supervisor/base/context.h"

/* Puts the object on the bus. -errno. */
int log_control_export(Context *context);

#endif
