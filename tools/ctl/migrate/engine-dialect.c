/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The dialect of a database, see engine-dialect.h. */
#include "tools/ctl/migrate/engine-dialect.h"

const Dialect *engine_dialect(const DatabaseConfig *d) {
        switch (d->engine) {
        case ENGINE_KIND_POSTGRESQL: return &dialect_postgresql;
        case ENGINE_KIND_RQLITE: return &dialect_rqlite;
        case ENGINE_KIND_SQLITE:
        case ENGINE_KIND_MAX_: break;
        }
        return &dialect_sqlite;
}

bool engine_has_sqlite_dialect(const DatabaseConfig *d) {
        return engine_dialect(d) != &dialect_postgresql;
}
