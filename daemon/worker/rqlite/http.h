/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. One HTTP request after the other on each *exchange*, several exchanges at a time, with libcurl's multi
 * interface.
 *
 * 1. Nothing blocks: http_wait() looks at the sockets for a moment, then calls the progress function, again and again.
 * 2. The body of an answer goes to a sink as it arrives. If the sink is full, libcurl stops reading, so a slow reader makes
 *    the server wait, and costs no memory here.
 * 3. libcurl sends nothing twice: a request whose body was begun on a connection that broke is failed, and sent_any tells.
 * 4. libcurl follows no redirect: the caller decides. No proxy is used, even if the environment names one.
 */
#ifndef SQLIPC_DAEMON_WORKER_RQLITE_HTTP_H
#define SQLIPC_DAEMON_WORKER_RQLITE_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/worker/core/engine.h"

#define HTTP_ERROR_SIZE_MAX ((size_t) 512)  /* of an answer that is an error: the rest is dropped */

typedef enum HttpSinkResult {
        HTTP_SINK_TAKEN,
        HTTP_SINK_FULL,   /* nothing was taken: offer it again at the next http_wait() */
        HTTP_SINK_BROKEN, /* the answer is of no use: end the exchange */
} HttpSinkResult;

typedef struct HttpSink {
        HttpSinkResult (*take)(void *userdata, const char *bytes, size_t size);
        void *userdata;
} HttpSink;

typedef struct HttpRequest {
        const char *url;                 /* borrowed until http_begin() returns */
        const char *user, *password;     /* the same; NULL: none */
        const char *body;                /* borrowed until the exchange ends; NULL: GET */
        size_t body_size;
} HttpRequest;

typedef struct HttpExchange {
        struct HttpClient *client;       /* borrowed */
        void *easy;                      /* owned: libcurl's handle, with its connection */
        struct curl_slist *headers;      /* owned */
        HttpSink sink;
        const char *body;                /* of the request under way */
        size_t body_size, body_sent;
        bool is_active;                  /* a request is under way */
        bool is_paused;                  /* the sink was full */
        bool is_broken;                  /* the sink says so */
        bool is_done;
        int code;                        /* libcurl's, when it is done */
        uint64_t n_bytes;                /* of the answer */
        char text[HTTP_ERROR_SIZE_MAX];  /* of an answer other than 200 */
        size_t text_size;
        char reason[256];                /* libcurl's sentence about a failure */
} HttpExchange;

typedef struct HttpClient {
        void *multi;                     /* owned */
        EngineProgress progress;         /* NULL: none */
        void *userdata;
} HttpClient;

typedef enum HttpWait {
        HTTP_WAIT_READY,                 /* `enough` says so */
        HTTP_WAIT_DONE,                  /* the exchange has ended, well or not */
        HTTP_WAIT_INTERRUPTED,           /* by the progress function */
        HTTP_WAIT_SILENT,                /* no byte went or came for `patience_usec` */
} HttpWait;

/* -ENOMEM */
int http_client_init(HttpClient *c, EngineProgress progress, void *userdata);
void http_client_done(HttpClient *c);

/* How many sockets there may be, whether a request is under way on them or not. One too many is closed after a request. */
void http_client_keep(HttpClient *c, unsigned n_max);

/* -ENOMEM */
int http_exchange_init(HttpExchange *x, HttpClient *client);
void http_exchange_done(HttpExchange *x);

/* Begins a request. -ENOMEM. */
int http_begin(HttpExchange *x, const HttpRequest *request, const HttpSink *sink);

/* Waits until the request has ended, or `enough`, which is asked after each step, returns true (NULL: until the end). A
 * server that computes is silent, too. If it is gone, the system ends the connection after two minutes. */
HttpWait http_wait(HttpExchange *x, bool (*enough)(void *userdata), void *userdata, uint64_t patience_usec);

/* Ends the request under way, if there is one, with its connection. */
void http_abort(HttpExchange *x);

/* ---- of a request that has ended ---- */

/* The status of the answer; 0: there was none. */
long http_status(const HttpExchange *x);

/* True if all of the answer has come. */
static inline bool http_is_whole(const HttpExchange *x) {
        return x->is_done && x->code == 0;
}

/* True if the server may have read the request. */
static inline bool http_sent_any(const HttpExchange *x) {
        return x->body_sent > 0;
}

/* Where a redirect leads to, borrowed until the next request; NULL: nowhere. */
const char *http_location(const HttpExchange *x);

/* Why the exchange failed, in words that name no host; NULL: it did not. */
const char *http_reason(const HttpExchange *x);

/* True if the failure is that the server's certificate is not trusted, or ours is not. */
bool http_is_distrusted(const HttpExchange *x);

#endif
