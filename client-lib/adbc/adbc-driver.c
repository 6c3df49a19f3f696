/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * libadbc_driver_sqlipc.so: the entry points by which a driver manager gets the functions of the driver. ADBC driver.
 *
 *      AdbcDatabase       bus and database, defaults             driver-database.h
 *      AdbcConnection     a connection of libsqlipc              driver-connection.h, connection-metadata.h,
 * connection-objects.h AdbcStatement      SQL, bound rows, execution             driver-statement.h ArrowArrayStream   the
 * rows of a result as batches        result-stream.h
 */
#include <string.h>

#include "client-lib/adbc/adbc-driver.h"
#include "client-lib/adbc/adbc-error.h"
#include "client-lib/adbc/connection-metadata.h"
#include "client-lib/adbc/connection-objects.h"
#include "client-lib/adbc/driver-connection.h"
#include "client-lib/adbc/driver-database.h"
#include "client-lib/adbc/driver-statement.h"
#include "client-lib/adbc/metadata-stream.h"
#include "client-lib/adbc/result-stream.h"

static AdbcStatusCode release(struct AdbcDriver *driver, struct AdbcError *error) {
        driver->release = NULL;
        return ADBC_STATUS_OK;
}

static const struct AdbcError *error_of_stream(struct ArrowArrayStream *stream, AdbcStatusCode *ret_status) {
        const struct AdbcError *error;

        return metadata_stream_error(stream, ret_status, &error) ? error : result_stream_error(stream, ret_status);
}

static const struct AdbcDriver functions = {
        .release = release,
        .DatabaseInit = driver_database_init,
        .DatabaseNew = driver_database_new,
        .DatabaseSetOption = driver_database_set_option,
        .DatabaseRelease = driver_database_release,
        .ConnectionCommit = driver_connection_commit,
        .ConnectionGetInfo = connection_metadata_info,
        .ConnectionGetObjects = connection_objects_get,
        .ConnectionGetTableSchema = connection_metadata_table_schema,
        .ConnectionGetTableTypes = connection_metadata_table_types,
        .ConnectionInit = driver_connection_init,
        .ConnectionNew = driver_connection_new,
        .ConnectionSetOption = driver_connection_set_option,
        .ConnectionReadPartition = connection_metadata_read_partition,
        .ConnectionRelease = driver_connection_release,
        .ConnectionRollback = driver_connection_rollback,
        .StatementBind = driver_statement_bind,
        .StatementBindStream = driver_statement_bind_stream,
        .StatementExecuteQuery = driver_statement_execute,
        .StatementExecutePartitions = driver_statement_execute_partitions,
        .StatementGetParameterSchema = driver_statement_parameter_schema,
        .StatementNew = driver_statement_new,
        .StatementPrepare = driver_statement_prepare,
        .StatementRelease = driver_statement_release,
        .StatementSetOption = driver_statement_set_option,
        .StatementSetSqlQuery = driver_statement_set_sql,
        .StatementSetSubstraitPlan = driver_statement_set_substrait,

        .ErrorGetDetailCount = adbc_error_detail_count,
        .ErrorGetDetail = adbc_error_detail,
        .ErrorFromArrayStream = error_of_stream,
        .DatabaseGetOption = driver_database_get_option,
        .DatabaseGetOptionBytes = driver_database_get_option_bytes,
        .DatabaseGetOptionDouble = driver_database_get_option_double,
        .DatabaseGetOptionInt = driver_database_get_option_int,
        .DatabaseSetOptionBytes = driver_database_set_option_bytes,
        .DatabaseSetOptionDouble = driver_database_set_option_double,
        .DatabaseSetOptionInt = driver_database_set_option_int,
        .ConnectionCancel = driver_connection_cancel,
        .ConnectionGetOption = driver_connection_get_option,
        .ConnectionGetOptionBytes = driver_connection_get_option_bytes,
        .ConnectionGetOptionDouble = driver_connection_get_option_double,
        .ConnectionGetOptionInt = driver_connection_get_option_int,
        .ConnectionGetStatistics = connection_metadata_statistics,
        .ConnectionGetStatisticNames = connection_metadata_statistic_names,
        .ConnectionSetOptionBytes = driver_connection_set_option_bytes,
        .ConnectionSetOptionDouble = driver_connection_set_option_double,
        .ConnectionSetOptionInt = driver_connection_set_option_int,
        .StatementCancel = driver_statement_cancel,
        .StatementExecuteSchema = driver_statement_execute_schema,
        .StatementGetOption = driver_statement_get_option,
        .StatementGetOptionBytes = driver_statement_get_option_bytes,
        .StatementGetOptionDouble = driver_statement_get_option_double,
        .StatementGetOptionInt = driver_statement_get_option_int,
        .StatementSetOptionBytes = driver_statement_set_option_bytes,
        .StatementSetOptionDouble = driver_statement_set_option_double,
        .StatementSetOptionInt = driver_statement_set_option_int,
};

/* Copies the functions that a manager of this version knows; its own members stay. */
AdbcStatusCode AdbcDriverInit(int version, void *driver, struct AdbcError *error) {
        struct AdbcDriver *to = driver;
        void *manager;
        size_t size;

        switch (version) {
        case ADBC_VERSION_1_0_0:
                size = offsetof(struct AdbcDriver, ErrorGetDetailCount);
                break;
        case ADBC_VERSION_1_1_0:
                size = sizeof functions;
                break;
        default:
                return adbc_error_set(error, ADBC_STATUS_NOT_IMPLEMENTED, "0A000",
                                      "This driver has versions 1.0.0 and 1.1.0 of ADBC, not %d", version);
        }
        if (!to)
                return adbc_error_set(error, ADBC_STATUS_INVALID_ARGUMENT, "HY009", "There is no struct to fill");
        manager = to->private_manager;
        memcpy(to, &functions, size);
        to->private_manager = manager;
        return ADBC_STATUS_OK;
}

/* The name that a manager derives from the file name. */
AdbcStatusCode AdbcDriverSqlipcInit(int version, void *driver, struct AdbcError *error) {
        return AdbcDriverInit(version, driver, error);
}
