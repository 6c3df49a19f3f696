/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. Encodes the description of a compiled statement: for the STARTED message, the COLUMNS frame and the
 * STATEMENT frame. Pure.
 */
#ifndef SQLIPC_DAEMON_WORKER_CORE_STATEMENT_FRAMES_H
#define SQLIPC_DAEMON_WORKER_CORE_STATEMENT_FRAMES_H

#include "daemon/worker/core/engine.h"

/* Fills in columns and parameters of `started`, which borrow from `d`. LimitsExceeded if the names alone take more than
 * SQLIPC_COLUMNS_SIZE_MAX. */
bool statement_frames_started(const EngineDescription *d, Started *started, SqlError *error);

/* Makes the payload of a COLUMNS frame (sqlipc-page.h), which the caller frees. Parameters do not count here:
 * LimitsExceeded, OutOfMemory. */
bool statement_frames_columns(const EngineDescription *d, uint32_t page_size, uint8_t **ret_payload, size_t *ret_size,
                              SqlError *error);

/* Sets the page size in such a payload. */
void statement_frames_set_page_size(uint8_t *payload, uint32_t page_size);

/* Makes the payload of a STATEMENT frame (sqlipc-channel.h), which the caller frees. LimitsExceeded, OutOfMemory. */
bool statement_frames_statement(const EngineDescription *d, bool read_only, uint8_t **ret_payload, size_t *ret_size,
                                SqlError *error);

#endif
