/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. The rows of a statement: those of its answer, as it arrives, or of several answers if its table is read in
 * windows (window-plan.h).
 *
 * The server has no snapshots that outlast a request. So a result that needs several requests is that of one moment only if
 * nothing was committed between the first and the last. The node's index of the cluster's log tells: if it has changed, the
 * statement fails. A result that one request can bring needs no such check.
 */
#ifndef SQLIPC_DAEMON_WORKER_RQLITE_RQLITE_READ_H
#define SQLIPC_DAEMON_WORKER_RQLITE_RQLITE_READ_H

#include "daemon/worker/core/row-sink.h"
#include "daemon/worker/rqlite/rqlite-pool.h"

/* As step() of the engine, for a statement that does not write. */
EngineResult rqlite_read_step(RqliteStatement *s, RowSink *sink, SqlError *error);

/* As fill() of the engine, also for the rows that a statement that wrote has returned. */
EngineResult rqlite_read_fill(RqliteStatement *s, RowSink *sink, SqlError *error);

/* As measure() and value() of the engine. */
void rqlite_read_measure(RqliteStatement *s, unsigned i, ValueType *ret_type, uint64_t *ret_size);
const uint8_t *rqlite_read_value(RqliteStatement *s, unsigned i, uint8_t number[static 8]);

/* Ends the request under way, and forgets all rows. */
void rqlite_read_reset(RqliteStatement *s);

#endif
