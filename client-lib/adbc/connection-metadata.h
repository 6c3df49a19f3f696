/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Tells about tables, and about the service and the driver. Databases are catalogs, each with one schema, "". ADBC driver.
 */
#ifndef SQLIPC_CLIENT_LIB_ADBC_CONNECTION_METADATA_H
#define SQLIPC_CLIENT_LIB_ADBC_CONNECTION_METADATA_H

#include "client-lib/adbc/adbc-abi.h"

/* Functions of the driver's table. */
AdbcStatusCode connection_metadata_info(struct AdbcConnection *connection, const uint32_t *codes, size_t n_codes,
                                        struct ArrowArrayStream *ret_stream, struct AdbcError *error);
AdbcStatusCode connection_metadata_table_types(struct AdbcConnection *connection, struct ArrowArrayStream *ret_stream,
                                               struct AdbcError *error);
AdbcStatusCode connection_metadata_table_schema(struct AdbcConnection *connection, const char *catalog,
                                                const char *db_schema, const char *table, struct ArrowSchema *ret_schema,
                                                struct AdbcError *error);
AdbcStatusCode connection_metadata_statistics(struct AdbcConnection *connection, const char *catalog, const char *db_schema,
                                              const char *table, char approximate, struct ArrowArrayStream *ret_stream,
                                              struct AdbcError *error);
AdbcStatusCode connection_metadata_statistic_names(struct AdbcConnection *connection, struct ArrowArrayStream *ret_stream,
                                                   struct AdbcError *error);
AdbcStatusCode connection_metadata_read_partition(struct AdbcConnection *connection, const uint8_t *partition, size_t size,
                                                  struct ArrowArrayStream *ret_stream, struct AdbcError *error);

#endif
