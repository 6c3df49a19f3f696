/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See channel-statements.h.
 */
#include "daemon/worker/core/channel-statements.h"

#include <stdlib.h>
#include <string.h>

#include "dbus-interfaces/wire/sqlipc-channel.h"

static void statement_free(ChannelStatement *s) {
        free(s->sql);
        free(s);
}

void channel_statements_free(ChannelStatements *s) {
        for (size_t i = 0; i < s->n; i++)
                statement_free(s->list[i]);
        free(s->list);
        *s = (ChannelStatements) {};
}

static ChannelStatement *statement_new(uint64_t number, const void *sql, size_t sql_size) {
        ChannelStatement *s = calloc(1, sizeof *s);

        if (!s)
                return NULL;
        *s = (ChannelStatement) { .number = number, .sql = malloc(sql_size + 1), .sql_size = sql_size };
        if (!s->sql) {
                free(s);
                return NULL;
        }
        if (sql_size > 0)
                memcpy(s->sql, sql, sql_size);
        s->sql[sql_size] = 0;
        return s;
}

static bool reserve(ChannelStatements *s) {
        size_t capacity = s->capacity > 0 ? 2 * s->capacity : 8;
        ChannelStatement **list;

        if (s->n < s->capacity)
                return true;
        list = reallocarray(s->list, capacity, sizeof(ChannelStatement *));
        if (!list)
                return false;
        s->list = list;
        s->capacity = capacity;
        return true;
}

ChannelStatement *channel_statements_add(ChannelStatements *s, uint64_t number, const void *sql, size_t sql_size,
                                         SqlError *error) {
        ChannelStatement *statement;

        if (s->n >= s->n_max) {
                (void) sql_error_set(error, ERROR_LIMITS_EXCEEDED,
                                     "this channel has the %zu statements that StatementsMax= allows: finalize some",
                                     s->n_max);
                return NULL;
        }
        if (sql_size > CHANNEL_STATEMENTS_SIZE_MAX - s->sql_size) {
                (void) sql_error_set(error, ERROR_LIMITS_EXCEEDED,
                                     "the SQL of all statements of a channel is %zu bytes at most: finalize some",
                                     CHANNEL_STATEMENTS_SIZE_MAX);
                return NULL;
        }
        statement = reserve(s) ? statement_new(number, sql, sql_size) : NULL;
        if (!statement) {
                (void) sql_error_set(error, ERROR_OUT_OF_MEMORY, "out of memory");
                return NULL;
        }
        s->list[s->n++] = statement;
        s->sql_size += sql_size;
        return statement;
}

/* The position of the first statement whose number is not smaller. */
static size_t place(const ChannelStatements *s, uint64_t number) {
        size_t low = 0, high = s->n;

        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (s->list[middle]->number < number)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

ChannelStatement *channel_statements_find(const ChannelStatements *s, uint64_t number) {
        size_t i = place(s, number);

        return i < s->n && s->list[i]->number == number ? s->list[i] : NULL;
}

void channel_statements_remove(ChannelStatements *s, uint64_t number) {
        size_t i = place(s, number);

        if (i >= s->n || s->list[i]->number != number)
                return;
        s->sql_size -= s->list[i]->sql_size;
        statement_free(s->list[i]);
        memmove(s->list + i, s->list + i + 1, (--s->n - i) * sizeof(ChannelStatement *));
}
