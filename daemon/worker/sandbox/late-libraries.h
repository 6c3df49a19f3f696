/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. Loads the libraries that libc loads when it first needs them: the filter of system calls allows no code to
 * be mapped later.
 */
#ifndef SQLIPC_DAEMON_WORKER_SANDBOX_LATE_LIBRARIES_H
#define SQLIPC_DAEMON_WORKER_SANDBOX_LATE_LIBRARIES_H

/* Loads the plug-ins for names of hosts and users that nsswitch.conf(5) names, and the library by which threads end. One
 * that cannot be loaded is left out, as libc does. */
void late_libraries_load(void);

#endif
