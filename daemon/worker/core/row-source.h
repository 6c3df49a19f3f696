/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. The rows of a load, from which an engine takes parameters: the opposite of row-sink.h. The functions of the
 * decoder are called for each row, without an allocation.
 */
#ifndef SQLIPC_DAEMON_WORKER_CORE_ROW_SOURCE_H
#define SQLIPC_DAEMON_WORKER_CORE_ROW_SOURCE_H

#include "daemon/worker/core/engine.h"
#include "daemon/worker/core/monotonic.h"
#include "dbus-interfaces/wire/page-decoder.h"

#define ROW_SOURCE_CHECK_ROWS 16 /* so many rows between two looks at the clock */

struct RowSource {
        PageDecoder decoder;  /* owned by the load */
        int event;            /* the last result of page_decoder_next(); PAGE_ROW: a row waits */
        uint64_t until_usec;  /* the end of the turn */
        uint64_t n_rows;      /* for which the statement has run */
        int64_t n_changes;    /* by all of them */
};

/* The statement has run for the row that waited, and changed `n_changes`. True: another row waits, and there is time. */
static inline bool row_source_next(RowSource *s, int64_t n_changes) {
        s->n_rows++;
        s->n_changes += n_changes;
        s->event = page_decoder_next(&s->decoder);
        return s->event == PAGE_ROW && (s->n_rows % ROW_SOURCE_CHECK_ROWS != 0 || now_usec() < s->until_usec);
}

#endif
