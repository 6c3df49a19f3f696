/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Tells by its first words which statement gets its program a pin, a connection of SQLite of its own. The
 * library begins it (client-lib/transact.h), and does not tell. Pure. ADBC driver.
 */
#ifndef SQLIPC_CLIENT_LIB_ADBC_SQL_NEED_H
#define SQLIPC_CLIENT_LIB_ADBC_SQL_NEED_H

typedef enum SqlNeed {
        SQL_NEEDS_NO_PIN,
        SQL_NEEDS_PIN, /* or may need one: a setting of the connection */
        SQL_MAKES_TEMP, /* it creates something in the schema temp, and needs a pin */
} SqlNeed;

SqlNeed sql_need_of(const char *sql);

#endif
