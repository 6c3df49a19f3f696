/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The dialect of a database, see engine-dialect.h. */
#include "tools/ctl/migrate/engine-dialect.h"

const Dialect *engine_dialect(const DatabaseConfig *d) {
        return d->engine == ENGINE_KIND_POSTGRESQL ? &dialect_postgresql : &dialect_sqlite;
}

bool engine_has_sqlite_dialect(const DatabaseConfig *d) {
        return engine_dialect(d) == &dialect_sqlite;
}
