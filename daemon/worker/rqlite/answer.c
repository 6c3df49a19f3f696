/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See answer.h.
 */
#include "daemon/worker/rqlite/answer.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/worker/rqlite/server-error.h"

void answer_init(Answer *a, const ResponseHandler *handler, uint64_t size_max) {
        answer_done(a);
        *a = (Answer) { .handler = *handler, .size_max = size_max };
}

void answer_restart(Answer *a) {
        a->parser = response_parser_free(a->parser);
        a->size = 0;
        a->trouble = ANSWER_GOOD;
        free(a->message);
        a->message = NULL;
}

void answer_done(Answer *a) {
        answer_restart(a);
}

static bool set_trouble(Answer *a, AnswerTrouble trouble) {
        if (a->trouble == ANSWER_GOOD)
                a->trouble = trouble;
        return false;
}

bool answer_set_error(Answer *a, const char *message) {
        a->message = strdup(message);
        return set_trouble(a, a->message ? ANSWER_ERROR : ANSWER_NO_MEMORY);
}

/* The parser's limit for a row is that for the whole answer, so the error is always about the answer. */
static bool take(Answer *a, const char *bytes, size_t size) {
        if (!a->parser && response_parser_new(&a->handler, (size_t) a->size_max, &a->parser) < 0)
                return set_trouble(a, ANSWER_NO_MEMORY);
        a->size += size;
        if (a->size > a->size_max)
                return set_trouble(a, ANSWER_TOO_LARGE);
        return response_parser_feed(a->parser, bytes, size) || set_trouble(a, ANSWER_INVALID);
}

HttpSinkResult answer_take(Answer *a, const char *bytes, size_t size) {
        return take(a, bytes, size) ? HTTP_SINK_TAKEN : HTTP_SINK_BROKEN;
}

/* An error of the whole request. */
static bool fail(const char *message, SqlError *error) {
        if (server_error_is_no_leader(message))
                return server_error_retry(error, SERVER_TROUBLE_NO_LEADER, message);
        return sql_error_set(error, ERROR_INPUT_OUTPUT, "the server reports: %s", message);
}

bool answer_set_invalid(SqlError *error) {
        return sql_error_set(error, ERROR_INPUT_OUTPUT, "the server's answer is not valid: it is no rqlite, or is broken");
}

void answer_end(Answer *a) {
        if (a->trouble == ANSWER_GOOD && (!a->parser || !response_parser_end(a->parser)))
                (void) set_trouble(a, ANSWER_INVALID);
}

bool answer_finish(Answer *a, const char *too_large, unsigned n_items, SqlError *error) {
        const char *message = a->parser ? response_parser_error(a->parser) : NULL;

        switch (a->trouble) {
        case ANSWER_GOOD:
                if (message)
                        return fail(message, error);
                return response_parser_n_items(a->parser) == n_items || answer_set_invalid(error);
        case ANSWER_TOO_LARGE:
                return sql_error_set(error, ERROR_LIMITS_EXCEEDED, "%s", too_large);
        case ANSWER_NO_MEMORY:
                return sql_error_set(error, ERROR_OUT_OF_MEMORY, "out of memory");
        case ANSWER_INVALID:
        case ANSWER_ERROR:
        case ANSWER_STALE:
        case ANSWER_NEEDS_INDEX:
                break;
        }
        return answer_set_invalid(error);
}
