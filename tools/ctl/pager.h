/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Long output on a terminal goes through a pager, as systemctl's does. */
#ifndef SQLIPC_TOOLS_CTL_PAGER_H
#define SQLIPC_TOOLS_CTL_PAGER_H

#include "tools/ctl/context.h"

/** From now on $SYSTEMD_PAGER, $PAGER or less reads stdout, if that is a terminal and --no-pager is not given. less ends by
 * itself if everything fits on the screen. Call this when the output is ready: nothing may prompt the user beside a
 * pager. */
void pager_open(const Context *c);

/** Waits until the user leaves the pager; does nothing without one. */
void pager_close(void);

#endif
