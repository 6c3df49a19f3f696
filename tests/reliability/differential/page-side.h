/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Runs the query with a given page size, by hand: Query over the bus with its pipe, or QUERY on a channel. The library
 * always asks for the same sizes, so it cannot test the others. Tests only.
 */
#ifndef SQLIPC_TESTS_RELIABILITY_DIFFERENTIAL_PAGE_SIDE_H
#define SQLIPC_TESTS_RELIABILITY_DIFFERENTIAL_PAGE_SIDE_H

#include <systemd/sd-bus.h>

#include "dbus-interfaces/wire/sqlipc-page.h"
#include "tests/reliability/differential/query.h"

#define N_PAGE_SIZES 9 /* 4 KiB to 1 MiB by powers of two */

static inline uint32_t page_size_of(unsigned i) {
        return (uint32_t) SQLIPC_PAGE_SIZE_MIN << i;
}

typedef struct PageSide {
        sd_bus *bus;
        char *path;                  /* the database's object */
        int channels[N_PAGE_SIZES];  /* for each size; -1: not open */
        uint64_t n_requests;         /* on all channels */
} PageSide;

/* Connects. A negative errno. */
int page_side_open(PageSide *side, const char *address);
void page_side_close(PageSide *side);

/* Another database; the channels are closed. */
void page_side_use(PageSide *side, const char *database);

/* By pages of `page_size`, on a channel or down a pipe. */
void page_side_run(PageSide *side, const Query *q, uint32_t page_size, bool on_channel, Result *result);

#endif
