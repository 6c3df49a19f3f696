/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. What a run encodes into its page: rows from SQLite's memory, and payloads that go out in parts. Nothing here
 * steps, writes or ends the run; run.c decides by the results.
 */
#ifndef RUN_ENCODE_H
#define RUN_ENCODE_H

#include "run.h"

/* The row that SQLite holds, into the page. 1: it is in; 0: no room; -EMSGSIZE: run->row_size is over the limit; -ENOMEM:
 * SQLite could not convert a value. */
int run_encode_row(Run *run);

/* Whether the waiting row fits no page at all, so that it may begin in what is left of this one. False also where a value
 * cannot be measured. */
bool run_row_is_big(Run *run);

/* The waiting row fits no page: it goes out as BIG_ROW, its head from run->payload, its data from SQLite's memory. 1: begun;
 * 0: over the limit, *ret_size says by how much; -ENOMEM. */
int run_begin_big_row(Run *run, uint64_t *ret_size);

/* More of the payload under way into the page: 1: all of it is in; 0: the page is full; -ENOMEM. */
int run_encode_payload(Run *run);

#endif
