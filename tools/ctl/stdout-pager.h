/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Long output on a terminal goes through a pager, as systemctl's does. */
#ifndef SQLIPC_TOOLS_CTL_STDOUT_PAGER_H
#define SQLIPC_TOOLS_CTL_STDOUT_PAGER_H

#include <stdbool.h>
#include <stddef.h>

/** From now on $SYSTEMD_PAGER, $PAGER or less reads stdout, if that is a terminal and a pager is wanted. less ends by
 * itself if everything fits on the screen. Call this when the output is ready: nothing may prompt the user beside a
 * pager. */
void stdout_pager_open(bool wanted);

/** Waits until the user leaves the pager; does nothing without one. */
void stdout_pager_close(void);

/** Columns of the terminal on stdout, 0 if it is not a terminal. It does not change when a pager reads the output. */
size_t stdout_pager_width(void);

#endif
