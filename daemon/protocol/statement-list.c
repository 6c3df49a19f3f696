/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* See statement-list.h. */
#include "daemon/protocol/statement-list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "dbus-interfaces/wire/call-arguments.h"

#define HEAD_SIZE CALL_ARGUMENTS_HEAD_SIZE

static int grow(StatementList *list, size_t size) {
        size_t allocated = list->allocated ?: 1024;
        uint8_t *bytes;

        if (list->bytes && size <= list->allocated - list->size)
                return 0;
        while (size > allocated - list->size)
                allocated *= 2;
        bytes = realloc(list->bytes, allocated);
        if (!bytes)
                return -ENOMEM;
        list->bytes = bytes;
        list->allocated = allocated;
        return 0;
}

int statement_list_add(StatementList *list, const JobSpec *statement) {
        size_t room = STATEMENT_LIST_SIZE_MAX - list->size, sql_size = statement->sql_size;
        uint8_t *at;

        if (list->n == STATEMENT_LIST_N_MAX || room <= HEAD_SIZE || sql_size >= room - HEAD_SIZE ||
            statement->parameters_size > room - HEAD_SIZE - sql_size - 1)
                return -E2BIG;
        if (grow(list, HEAD_SIZE + sql_size + 1 + statement->parameters_size) < 0)
                return -ENOMEM;
        at = list->bytes + list->size;
        call_arguments_write_head(at, sql_size, statement->parameters_size, statement->n_positional, statement->n_named);
        at += HEAD_SIZE;
        memcpy(at, statement->sql, sql_size);
        at[sql_size] = 0;
        if (statement->parameters_size > 0)
                memcpy(at + sql_size + 1, statement->parameters, statement->parameters_size);
        list->size += HEAD_SIZE + sql_size + 1 + statement->parameters_size;
        list->n++;
        return 0;
}

void statement_list_done(StatementList *list) {
        free(list->bytes);
        *list = STATEMENT_LIST_INIT;
}

bool statement_list_next(const uint8_t **at, const uint8_t *end, JobSpec *ret) {
        const uint8_t *head = *at;
        size_t room = (size_t) (end - head), sql_size, row_size;

        if (room <= HEAD_SIZE)
                return false;
        sql_size = load_le32(head);
        row_size = load_le32(head + 4);
        if (sql_size >= room - HEAD_SIZE || row_size > room - HEAD_SIZE - sql_size - 1)
                return false;
        ret->sql = (const char *) head + HEAD_SIZE;
        ret->sql_size = sql_size;
        ret->n_positional = load_le32(head + 8);
        ret->n_named = load_le32(head + 12);
        ret->parameters = head + HEAD_SIZE + sql_size + 1;
        ret->parameters_size = row_size;
        *at = ret->parameters + row_size;
        return true;
}

bool job_statements_are_valid(const JobSpec *j) {
        const uint8_t *at = j->statements, *end = at + j->statements_size;
        JobSpec statement = {};

        if (j->n_statements == 0 || j->n_statements > STATEMENT_LIST_N_MAX)
                return false;
        for (uint32_t i = 0; i < j->n_statements; i++)
                if (!statement_list_next(&at, end, &statement) || statement.sql[statement.sql_size] != 0 ||
                    !job_parameters_are_valid(&statement))
                        return false;
        return at == end;
}
