/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Checks if a worker could use what the schema of a file has: each view, table, index and trigger is compiled, on a
 * connection that a worker's own code opens and guards, and by the rights of a reader. Nothing is run. It happens in a child
 * (service-child.h), because the file may come from any program.
 */
#ifndef SQLIPC_TOOLS_CTL_SCHEMA_CHECK_H
#define SQLIPC_TOOLS_CTL_SCHEMA_CHECK_H

#include "daemon/configuration/configuration.h"
#include "tools/ctl/finding.h"
#include "tools/ctl/service-user.h"

/** Adds an error if the schema cannot be read, a warning for each object that cannot be used, up to a limit, and a warning
 * if they cannot be told. With Expose= only the exposed tables and views count. `at_rest`: no program has the file open, so
 * no file beside it needs to be made for reading it. After Ctrl-C it does not return. */
void schema_check(const DatabaseConfig *d, const Limits *limits, bool at_rest, const ServiceUser *user,
                  GPtrArray *findings);

#endif
