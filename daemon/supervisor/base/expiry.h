/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Objects that end when they have been idle for some time, on one timer for thousands of them. Supervisor.
 */
#ifndef SQLIPC_DAEMON_SUPERVISOR_BASE_EXPIRY_H
#define SQLIPC_DAEMON_SUPERVISOR_BASE_EXPIRY_H

#include <glib.h>
#include <stdint.h>
#include <systemd/sd-event.h>

/* Part of such an object. */
typedef struct ExpiryItem {
        uint64_t usec;           /* when it ends */
        GSequenceIter *position; /* NULL: it is not idle */
} ExpiryItem;

/* Must end the object, which calls expiry_forget() for the item. */
typedef void (*ExpiryHandler)(ExpiryItem *item);

typedef struct Expiry {
        sd_event *event;         /* not owned */
        ExpiryHandler handler;
        GSequence *items;        /* by usec */
        sd_event_source *timer;  /* fires for the first of them; NULL: there was none yet */
} Expiry;

void expiry_init(Expiry *e, sd_event *event, ExpiryHandler handler);

/* Frees the timer and the list, which must be empty. */
void expiry_done(Expiry *e);

/* The object is idle from now on, and ends at `usec` (CLOCK_MONOTONIC). */
void expiry_watch(Expiry *e, ExpiryItem *item, uint64_t usec);

/* The object is not idle, or is freed; can be called at any time. */
void expiry_forget(ExpiryItem *item);

#endif
