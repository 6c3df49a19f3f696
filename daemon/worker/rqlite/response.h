/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. Reads the server's JSON as it arrives, without a copy of the whole. Pure except for malloc(). The server is
 * not trusted: any bytes end in values or in an error, and the memory is bounded by the longest row.
 *
 *      {"results": [ITEM, ...], "error": "...", "raft_index": 7}       ITEM: one for each statement
 *      ITEM: {"columns": [...], "types": [...], "values": [[VALUE, ...], ...], "error": "...",
 *             "last_insert_id": 1, "rows_affected": 1}
 *
 * Members that are not known, or not of use here, are skipped.
 */
#ifndef SQLIPC_DAEMON_WORKER_RQLITE_RESPONSE_H
#define SQLIPC_DAEMON_WORKER_RQLITE_RESPONSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum JsonKind {
        JSON_NULL,
        JSON_TRUE,
        JSON_FALSE,
        JSON_NUMBER, /* its text */
        JSON_STRING, /* without escapes */
        JSON_BYTES,  /* an array of numbers from 0 to 255 */
} JsonKind;

typedef struct JsonValue {
        JsonKind kind;
        const char *bytes; /* borrowed until the next call of the parser, followed by a NUL */
        size_t size;
} JsonValue;

/* The result of a statement, without its rows. */
typedef struct ResponseItem {
        unsigned index;     /* in the request */
        bool has_columns;   /* it returned rows, maybe none */
        int64_t last_rowid, n_changes;
        const char *error;  /* borrowed until the end of the item; NULL: none */
} ResponseItem;

typedef struct ResponseHandler {
        /* A row of statement `item`. False: stop. */
        bool (*row)(void *userdata, unsigned item, const JsonValue *values, size_t n);
        /* The end of a statement's result. False: stop. */
        bool (*item)(void *userdata, const ResponseItem *item);
        void *userdata;
} ResponseHandler;

typedef struct ResponseParser ResponseParser;

/* Creates a parser. `row_size_max`: of the values of a row, in bytes as JSON has them. -ENOMEM. */
int response_parser_new(const ResponseHandler *handler, size_t row_size_max, ResponseParser **ret);
ResponseParser *response_parser_free(ResponseParser *p);

/* Takes the next bytes. False: they are no such JSON, or the handler has stopped, response_parser_stopped(). */
bool response_parser_feed(ResponseParser *p, const char *bytes, size_t size);

/* Ends the text. False: it is not whole. */
bool response_parser_end(ResponseParser *p);

bool response_parser_stopped(const ResponseParser *p);

/* Error of the whole request, borrowed until response_parser_free(); NULL: none. */
const char *response_parser_error(const ResponseParser *p);

/* How many results there were, and the index of the request in the cluster's log; 0: the server does not say. */
unsigned response_parser_n_items(const ResponseParser *p);
uint64_t response_parser_raft_index(const ResponseParser *p);

/* The number at `path` of a text of JSON ("store.db_applied_index"), or of the whole text. False: it is not there. */
bool response_find_number(const char *json, size_t size, const char *path, uint64_t *ret);

/* Reads a number of JSON that is an integer of 64 bits. */
bool json_number_int64(const char *text, int64_t *ret);

#endif
