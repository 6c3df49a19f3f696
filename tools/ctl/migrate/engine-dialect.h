/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The dialect of a database, by the engine that its configuration names. */
#ifndef SQLIPC_TOOLS_CTL_MIGRATE_ENGINE_DIALECT_H
#define SQLIPC_TOOLS_CTL_MIGRATE_ENGINE_DIALECT_H

#include "daemon/configuration/configuration.h"
#include "tools/ctl/migrate/copy-plan.h"

const Dialect *engine_dialect(const DatabaseConfig *d);
bool engine_has_sqlite_dialect(const DatabaseConfig *d);

#endif
