/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Long output on a terminal goes through a pager, as systemctl's does. */
#ifndef CTL_PAGER_H
#define CTL_PAGER_H

#include "context.h"

/** From here on stdout is read by $SYSTEMD_PAGER, $PAGER or less, if it is a terminal and --no-pager is not given. less ends
 * by itself if all fits on the screen. Call it when the output is ready: nothing may ask the user beside a pager. */
void pager_open(const Context *c);

/** Waits until the user leaves the pager; does nothing without one. */
void pager_close(void);

#endif
