/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The exported functions of the driver. ADBC driver.
 */
#ifndef SQLIPC_CLIENT_LIB_ADBC_ADBC_DRIVER_H
#define SQLIPC_CLIENT_LIB_ADBC_ADBC_DRIVER_H

#include "client-lib/adbc/adbc-abi.h"

#define _public_ __attribute__((visibility("default")))

/* Fill the functions of `driver`, a struct AdbcDriver of the given version (ADBC_VERSION_...). Errors:
 * ADBC_STATUS_NOT_IMPLEMENTED for a version that the driver does not have: the manager tries an older one then. */
_public_ AdbcStatusCode AdbcDriverInit(int version, void *driver, struct AdbcError *error);
_public_ AdbcStatusCode AdbcDriverSqlipcInit(int version, void *driver, struct AdbcError *error);

#endif
