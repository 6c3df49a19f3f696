/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. The answer to a request, on its way from the socket through the parser to a handler.
 */
#ifndef SQLIPC_DAEMON_WORKER_RQLITE_ANSWER_H
#define SQLIPC_DAEMON_WORKER_RQLITE_ANSWER_H

#include "daemon/worker/core/sql-error.h"
#include "daemon/worker/rqlite/http.h"
#include "daemon/worker/rqlite/response.h"

/* Why an answer was not wanted to its end. The handler, which returns false then, sets the last four. */
typedef enum AnswerTrouble {
        ANSWER_GOOD,
        ANSWER_INVALID,           /* the JSON is not valid, or does not fit the statement */
        ANSWER_TOO_LARGE,
        ANSWER_NO_MEMORY,
        ANSWER_ERROR,             /* the server reports an error of a statement, in `message` */
        ANSWER_STALE,             /* the schema is another one than that of the shadow */
        ANSWER_NEEDS_INDEX,       /* the table needs several windows: the log's index must be known before the first */
} AnswerTrouble;

typedef struct Answer {
        ResponseHandler handler;
        ResponseParser *parser;   /* owned */
        uint64_t size, size_max;  /* in bytes */
        AnswerTrouble trouble;
        char *message;            /* owned: with ANSWER_ERROR */
} Answer;

/* All zeros are an answer that has not begun. */
void answer_init(Answer *a, const ResponseHandler *handler, uint64_t size_max);
void answer_done(Answer *a);

/* Forgets what came, for another attempt. */
void answer_restart(Answer *a);

/* Takes bytes. TAKEN or BROKEN, for which answer_finish() has the error. */
HttpSinkResult answer_take(Answer *a, const char *bytes, size_t size);

/* Called by the handler: statement `item` failed. Returns false. */
bool answer_set_error(Answer *a, const char *message);

/* Called when no more bytes come, before `trouble` is looked at: the handler may be called once more. */
void answer_end(Answer *a);

/* Sets the error of an answer that is not valid. Returns false. */
bool answer_set_invalid(SqlError *error);

/* Called after answer_end(), when the caller has handled ANSWER_ERROR, STALE and NEEDS_INDEX. False: the answer is of no
 * use, or is not about `n_items` statements. ERROR_BUSY: the cluster has no leader. `too_large` is the sentence of
 * LimitsExceeded. */
bool answer_finish(Answer *a, const char *too_large, unsigned n_items, SqlError *error);

#endif
