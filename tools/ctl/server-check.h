/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Checks what the service needs on this machine for a database of a server: the unit of engine processes, and the password
 * file; and that a password does not go over a network without TLS. It does not connect to the server: only the service's
 * engine has the rights and the network for that.
 */
#ifndef SQLIPC_TOOLS_CTL_SERVER_CHECK_H
#define SQLIPC_TOOLS_CTL_SERVER_CHECK_H

#include "daemon/configuration/configuration.h"
#include "tools/ctl/finding.h"
#include "tools/ctl/service-user.h"

/** Adds errors and warnings to `findings`. `system`: the database is of the system's service. */
void server_check_access(const DatabaseConfig *d, bool system, const ServiceUser *user, GPtrArray *findings);

#endif
