/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The result of a function of AdbcConnection, such as AdbcConnectionGetObjects(), as an ArrowArrayStream. ADBC driver.
 *
 * All of it is in memory before the stream exists, but to a program the operation lasts until it has read the stream:
 * AdbcConnectionCancel() must end it until then, and is told that there is something to cancel.
 *
 *      open        the batch was not taken
 *      ended       the batch was taken, and the end was read
 *      cancelled   each later call repeats the error
 */
#ifndef SQLIPC_CLIENT_LIB_ADBC_METADATA_STREAM_H
#define SQLIPC_CLIENT_LIB_ADBC_METADATA_STREAM_H

#include "client-lib/adbc/arrow-tree.h"
#include "client-lib/adbc/driver-connection.h"

/* Makes a stream of the tree, whose root is a struct. `n_cancels` is driver_connection_cancels() from the begin of the
 * operation: ADBC_STATUS_CANCELLED if it was cancelled since. */
AdbcStatusCode metadata_stream_new(DriverConnection *connection, unsigned n_cancels, Tree *root,
                                   struct ArrowArrayStream *ret_stream, struct AdbcError *error);

/* True if the stream is one of this module. `*ret_error` is NULL unless it was cancelled. */
bool metadata_stream_error(struct ArrowArrayStream *stream, AdbcStatusCode *ret_status, const struct AdbcError **ret_error);

#endif
