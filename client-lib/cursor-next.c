/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The next row (cursor-next.h). Library. */
#include "client-lib/block.h"
#include "client-lib/connection.h"
#include "client-lib/cursor-event.h"
#include "client-lib/cursor-next.h"
#include "client-lib/cursor.h"
#include "client-lib/fetch.h"
#include "client-lib/prepared-channel.h"
#include "client-lib/repeat.h"

/* How long a blocking sqlipc_execute() or sqlipc_query() waits for a run to show in its frames that it has started. */
#define START_TIMEOUT_USEC (USEC_PER_SEC / 10)

/* The descriptor that may bring news; fd -1: only the bus can. It is the one that the next step reads in this state, and
 * none else: a descriptor with bytes that are not read, or that is broken, would wake the program forever. */
struct pollfd cursor_next_pollfd(const sqlipc_cursor *c) {
        switch (c->state) {
        case CURSOR_RUNNING:
                return fetch_pollfd(c->fetch);
        case CURSOR_DRAINING: /* once the end was read, only the reply is missing */
                return c->fetch->state != FETCH_IDLE ? fetch_pollfd(c->fetch) : CONNECTION_NO_DATA;
        case CURSOR_WAITING:
                return c->statement ? prepared_channel_pollfd(c->statement) : CONNECTION_NO_DATA;
        case CURSOR_ASKING:
        case CURSOR_DONE:
        case CURSOR_STATE_MAX:
                break;
        }
        return CONNECTION_NO_DATA;
}

/* ---- Rows --------------------------------------------------------------------------------------------------------- */

/* Advances the cursor as far as possible without waiting. 1: a row; 0: the end; -EAGAIN: it waits; or its failure. */
int cursor_next_now(sqlipc_cursor *c) {
        int r;

        for (;;) {
                if (c->state != CURSOR_DONE && cursor_is_cancelled(c))
                        cursor_apply_cancel(c);
                switch (c->state) {
                case CURSOR_RUNNING:
                        r = cursor_event(c, fetch_next(c->fetch));
                        if (r != 0)
                                return r;
                        break;
                case CURSOR_WAITING:
                case CURSOR_DRAINING:
                        cursor_advance(c);
                        if (c->state == CURSOR_WAITING || c->state == CURSOR_DRAINING)
                                return -EAGAIN;
                        break;
                case CURSOR_ASKING:
                        return -EAGAIN;
                case CURSOR_DONE:
                case CURSOR_STATE_MAX:
                        return c->error.result < 0 ? connection_fail(c->connection, &c->error) : 0;
                }
        }
}

/* Arranges that the program's loop wakes when there is news. */
int cursor_next_arm(sqlipc_cursor *c) {
        int r;

        c->member.wait = MEMBER_WAITS;
        r = fetch_wait(c->fetch, cursor_next_pollfd(c));
        return r < 0 ? cursor_report(c, connection_fail_errno(c->connection, r)) : -EAGAIN;
}

/* connection_wait() failed with `r`, and the cursor has not ended meanwhile, which would tell more. If the bus is lost, a
 * request that was sent gets no answer. The library's own failures, such as a timeout, say nothing about the run, unless the
 * cursor ends here (`ends`), and nothing else would tell the outcome. */
static int fail_wait(sqlipc_cursor *c, int r, bool ends) {
        Error *e = &c->connection->error;

        (void) connection_fail_wait(c->connection, r);
        if (c->state != CURSOR_WAITING && c->state != CURSOR_DRAINING && (e->number != ERROR_NONE || ends))
                cursor_set_outcome(c, e, FATE_UNKNOWN);
        return e->result;
}

_public_ int sqlipc_cursor_next(sqlipc_cursor *c) {
        uint64_t deadline = 0;
        int r;

        if (!c)
                return -EINVAL;
        for (;;) {
                connection_be_patient(c->connection);
                r = cursor_next_now(c);
                c->connection->patient = false;
                if (r != -EAGAIN)
                        return r;
                if (!c->connection->blocking)
                        return cursor_next_arm(c);
                r = connection_wait(c->connection, cursor_next_pollfd(c), &deadline);
                if (r < 0 && c->state != CURSOR_DONE)
                        return cursor_report(c, fail_wait(c, r, false));
        }
}

_public_ int sqlipc_cursor_next_block(sqlipc_cursor *c, size_t n_rows_max, const sqlipc_value **ret_values,
                                      size_t *ret_n_rows) {
        int r;

        if (!c)
                return -EINVAL;
        if (!ret_values || !ret_n_rows)
                return cursor_report(c, connection_fail_errno(c->connection, -EINVAL));
        r = sqlipc_cursor_next(c);
        if (r <= 0)
                return r;
        r = block_take(&c->fetch->block, &c->fetch->decoder, n_rows_max, ret_n_rows);
        if (r < 0) { /* a row was taken that cannot be returned: the rest would not be a complete result */
                cursor_fail_errno(c, r);
                return connection_fail(c->connection, &c->error);
        }
        *ret_values = c->fetch->block.values;
        return 1;
}

/* ---- The start ---------------------------------------------------------------------------------------------------- */

/* True if only frames can show that the run started. */
static bool starts_in_frames(const sqlipc_cursor *c) {
        const Source *source = c->fetch->source;

        return c->state == CURSOR_RUNNING &&
               (source->operations->shared || (source == &c->fetch->pipe.source && c->fetch->pipe.starts_in_frames));
}

/* Advances the run as far as possible without waiting. 0: it waits; 1: it has started or failed. */
static int advance_to_start(sqlipc_cursor *c) {
        for (;;) {
                cursor_advance(c);
                if (c->state == CURSOR_DONE || (c->state == CURSOR_RUNNING && fetch_has_started(c->fetch)))
                        return 1;
                if (!starts_in_frames(c) || cursor_event(c, fetch_next(c->fetch)) == -EAGAIN)
                        return 0;
        }
}

/* Waits until the run may have advanced. If only the first page shows that the run started, the wait is short, and the
 * program can cancel the run after it. 1: stop waiting. */
static int wait_for_start(sqlipc_cursor *c, uint64_t *deadline, uint64_t *start_by) {
        bool in_frames = starts_in_frames(c);
        int r;

        if (in_frames && *start_by == 0) {
                uint64_t timeout = c->connection->timeout_usec;

                *start_by = now_usec() + (timeout < START_TIMEOUT_USEC ? timeout : START_TIMEOUT_USEC);
        }
        r = connection_wait(c->connection, cursor_next_pollfd(c), in_frames ? start_by : deadline);
        if (r == -ETIMEDOUT && in_frames)
                return 1;
        if (r > 0 && c->state == CURSOR_RUNNING && !starts_in_frames(c) && fetch_pollfd(c->fetch).fd >= 0)
                return 1; /* the pipe was quicker than the reply */
        return r < 0 ? r : 0;
}

int cursor_next_wait_ended(sqlipc_cursor *c) {
        uint64_t deadline = connection_answer_deadline(c->connection);
        int r;

        do {
                connection_be_patient(c->connection);
                r = cursor_next_now(c);
                connection_look_at_bus(c->connection);
                if (r != -EAGAIN)
                        continue;
                r = connection_wait(c->connection, cursor_next_pollfd(c), &deadline);
                if (r < 0 && c->state != CURSOR_DONE)
                        return fail_wait(c, r, true);
                r = 1;
        } while (r > 0);
        return r;
}

int cursor_next_wait_started(sqlipc_cursor *c) {
        uint64_t deadline = connection_answer_deadline(c->connection), start_by = 0;
        int r;

        for (;;) {
                connection_be_patient(c->connection);
                r = advance_to_start(c);
                connection_look_at_bus(c->connection);
                if (r == 0)
                        r = wait_for_start(c, &deadline, &start_by);
                if (r < 0 && c->state != CURSOR_DONE)
                        return fail_wait(c, r, true);
                if (r > 0)
                        break;
        }
        return c->state == CURSOR_DONE && c->error.result < 0 ? connection_fail(c->connection, &c->error) : 0;
}
