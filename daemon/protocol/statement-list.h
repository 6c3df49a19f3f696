/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The list of statements of an EXECUTE_BATCH, as bytes: the supervisor builds it, and the worker reads one statement after
 * the other. Pure.
 *
 * A statement has the form that call-arguments.h describes, so a list in a client's file is read in the same way.
 */
#ifndef SQLIPC_DAEMON_PROTOCOL_STATEMENT_LIST_H
#define SQLIPC_DAEMON_PROTOCOL_STATEMENT_LIST_H

#include "daemon/protocol/protocol.h"

typedef struct StatementList {
        uint8_t *bytes;   /* owned */
        size_t size, allocated;
        uint32_t n;
} StatementList;

#define STATEMENT_LIST_INIT ((StatementList) {})

/* Appends SQL and parameters of `statement`. -E2BIG past STATEMENT_LIST_N_MAX or STATEMENT_LIST_SIZE_MAX; -ENOMEM. */
int statement_list_add(StatementList *list, const JobSpec *statement);

/* Frees the bytes. */
void statement_list_done(StatementList *list);

/* Moves *at to the next statement, and sets SQL and parameters of `ret`, which borrow from the list; the rest of `ret`
 * stays. `end` is the end of the list. Returns false at the end, and if the bytes are no statement. */
bool statement_list_next(const uint8_t **at, const uint8_t *end, JobSpec *ret);

#endif
