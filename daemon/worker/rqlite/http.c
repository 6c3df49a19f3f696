/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See http.h.
 */
#include "daemon/worker/rqlite/http.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/worker/core/monotonic.h"

#define LOOK_MSEC 10            /* at the sockets, between two calls of the progress function */
#define CONNECT_MSEC 5000L
#define KEEPALIVE_SEC 30L       /* of silence before the first probe of the connection */
#define KEEPALIVE_NEXT_SEC 10L

/* ---- what libcurl calls ---- */

static size_t on_body_wanted(char *to, size_t size, size_t n, void *userdata) {
        HttpExchange *x = userdata;
        size_t room = size * n, left = x->body_size - x->body_sent, taken = left < room ? left : room;

        memcpy(to, x->body + x->body_sent, taken);
        x->body_sent += taken;
        return taken;
}

/* Without this function libcurl would send a body again after a connection broke. */
static int on_seek(void *userdata, curl_off_t offset, int origin) {
        const HttpExchange *x = userdata;

        return origin == SEEK_SET && offset == 0 && x->body_sent == 0 ? CURL_SEEKFUNC_OK : CURL_SEEKFUNC_FAIL;
}

static void keep_text(HttpExchange *x, const char *bytes, size_t size) {
        size_t room = sizeof x->text - 1 - x->text_size, taken = size < room ? size : room;

        memcpy(x->text + x->text_size, bytes, taken);
        x->text_size += taken;
        x->text[x->text_size] = 0;
}

static size_t on_body(char *bytes, size_t size, size_t n, void *userdata) {
        HttpExchange *x = userdata;
        size_t total = size * n;

        if (http_status(x) != 200) {
                keep_text(x, bytes, total);
                x->n_bytes += total;
                return x->n_bytes > 1 << 20 ? 0 : total;
        }
        switch (x->sink.take(x->sink.userdata, bytes, total)) {
        case HTTP_SINK_TAKEN:
                x->n_bytes += total;
                return total;
        case HTTP_SINK_FULL:
                x->is_paused = true;
                return CURL_WRITEFUNC_PAUSE;
        case HTTP_SINK_BROKEN:
                break;
        }
        x->is_broken = true;
        return 0;
}

/* ---- client and exchange ---- */

int http_client_init(HttpClient *c, EngineProgress progress, void *userdata) {
        *c = (HttpClient) { .multi = curl_multi_init(), .progress = progress, .userdata = userdata };
        if (!c->multi)
                return -ENOMEM;
        (void) curl_multi_setopt(c->multi, CURLMOPT_PIPELINING, CURLPIPE_NOTHING);
        return 0;
}

void http_client_keep(HttpClient *c, unsigned n_max) {
        (void) curl_multi_setopt(c->multi, CURLMOPT_MAXCONNECTS, (long) n_max);
}

void http_client_done(HttpClient *c) {
        if (c->multi)
                (void) curl_multi_cleanup(c->multi);
        c->multi = NULL;
}

/* The server's JSON, and no header that makes libcurl wait before it sends a body. */
static bool set_headers(HttpExchange *x) {
        static const char *const headers[] = { "Content-Type: application/json", "Accept: application/json", "Expect:" };

        for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
                struct curl_slist *longer = curl_slist_append(x->headers, headers[i]);

                if (!longer)
                        return false;
                x->headers = longer;
        }
        return true;
}

int http_exchange_init(HttpExchange *x, HttpClient *client) {
        *x = (HttpExchange) { .client = client, .easy = curl_easy_init() };
        if (!x->easy || !set_headers(x)) {
                http_exchange_done(x);
                return -ENOMEM;
        }
        return 0;
}

static void leave(HttpExchange *x) {
        if (x->is_active)
                (void) curl_multi_remove_handle(x->client->multi, x->easy);
        x->is_active = x->is_paused = false;
}

void http_exchange_done(HttpExchange *x) {
        if (!x->easy)
                return;
        leave(x);
        curl_easy_cleanup(x->easy);
        curl_slist_free_all(x->headers);
        x->easy = NULL;
        x->headers = NULL;
}

static CURLcode set_options(HttpExchange *x, const HttpRequest *r) {
        CURL *easy = x->easy;
        CURLcode code = CURLE_OK;

#define SET(option, value)                                                                                            \
        if (code == CURLE_OK)                                                                                         \
                code = curl_easy_setopt(easy, option, value)
        SET(CURLOPT_URL, r->url);
        SET(CURLOPT_PROTOCOLS_STR, "http,https");
        SET(CURLOPT_PROXY, "");
        SET(CURLOPT_NOSIGNAL, 1L);
        SET(CURLOPT_HTTP_VERSION, (long) CURL_HTTP_VERSION_1_1);
        SET(CURLOPT_HTTPHEADER, x->headers);
        SET(CURLOPT_PRIVATE, x);
        SET(CURLOPT_ERRORBUFFER, x->reason);
        SET(CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MSEC);
        SET(CURLOPT_TCP_KEEPALIVE, 1L);
        SET(CURLOPT_TCP_KEEPIDLE, KEEPALIVE_SEC);
        SET(CURLOPT_TCP_KEEPINTVL, KEEPALIVE_NEXT_SEC);
        SET(CURLOPT_WRITEFUNCTION, on_body);
        SET(CURLOPT_WRITEDATA, x);
        if (r->user) {
                SET(CURLOPT_HTTPAUTH, CURLAUTH_BASIC);
                SET(CURLOPT_USERNAME, r->user);
                SET(CURLOPT_PASSWORD, r->password ?: "");
        }
        if (r->body) {
                SET(CURLOPT_POST, 1L);
                SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t) r->body_size);
                SET(CURLOPT_READFUNCTION, on_body_wanted);
                SET(CURLOPT_READDATA, x);
                SET(CURLOPT_SEEKFUNCTION, on_seek);
                SET(CURLOPT_SEEKDATA, x);
        }
#undef SET
        return code;
}

int http_begin(HttpExchange *x, const HttpRequest *request, const HttpSink *sink) {
        leave(x);
        x->sink = *sink;
        x->body = request->body;
        x->body_size = request->body_size;
        x->body_sent = x->text_size = 0;
        x->is_broken = x->is_done = false;
        x->n_bytes = 0;
        x->text[0] = x->reason[0] = 0;
        curl_easy_reset(x->easy);
        if (set_options(x, request) != CURLE_OK || curl_multi_add_handle(x->client->multi, x->easy) != CURLM_OK)
                return -ENOMEM;
        x->is_active = true;
        return 0;
}

void http_abort(HttpExchange *x) {
        leave(x);
}

/* ---- waiting ---- */

/* Notes which exchanges have ended. */
static void take_ends(HttpClient *c) {
        const CURLMsg *m;
        int left;

        while ((m = curl_multi_info_read(c->multi, &left))) {
                HttpExchange *x = NULL;

                if (m->msg != CURLMSG_DONE || curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, (char **) &x) != CURLE_OK)
                        continue;
                x->is_done = true;
                x->code = (int) m->data.result;
        }
}

/* A pause that is taken back may deliver at once, and fill the sink again. */
static void go_on(HttpExchange *x) {
        if (!x->is_paused)
                return;
        x->is_paused = false;
        (void) curl_easy_pause(x->easy, CURLPAUSE_CONT);
}

HttpWait http_wait(HttpExchange *x, bool (*enough)(void *userdata), void *userdata, uint64_t patience_usec) {
        HttpClient *c = x->client;
        uint64_t silent_since = now_usec(), n_bytes = x->n_bytes;
        size_t sent = x->body_sent;
        int running;

        go_on(x);
        for (;;) {
                if (curl_multi_perform(c->multi, &running) != CURLM_OK)
                        return HTTP_WAIT_SILENT;
                take_ends(c);
                if (enough && enough(userdata))
                        return HTTP_WAIT_READY;
                if (x->is_done) {
                        leave(x);
                        return HTTP_WAIT_DONE;
                }
                if (x->n_bytes != n_bytes || x->body_sent != sent) {
                        n_bytes = x->n_bytes;
                        sent = x->body_sent;
                        silent_since = now_usec();
                } else if (now_usec() - silent_since >= patience_usec)
                        return HTTP_WAIT_SILENT;
                if (c->progress && c->progress(c->userdata) != 0)
                        return HTTP_WAIT_INTERRUPTED;
                (void) curl_multi_poll(c->multi, NULL, 0, LOOK_MSEC, NULL);
        }
}

/* ---- the end ---- */

long http_status(const HttpExchange *x) {
        long status = 0;

        (void) curl_easy_getinfo(x->easy, CURLINFO_RESPONSE_CODE, &status);
        return status;
}

const char *http_location(const HttpExchange *x) {
        char *location = NULL;

        (void) curl_easy_getinfo(x->easy, CURLINFO_REDIRECT_URL, &location);
        return location;
}

const char *http_reason(const HttpExchange *x) {
        return x->is_done && x->code != 0 ? curl_easy_strerror((CURLcode) x->code) : NULL;
}

bool http_is_distrusted(const HttpExchange *x) {
        switch (x->code) {
        case CURLE_PEER_FAILED_VERIFICATION:
        case CURLE_SSL_CERTPROBLEM:
        case CURLE_SSL_CACERT_BADFILE:
        case CURLE_SSL_ISSUER_ERROR:
        case CURLE_SSL_INVALIDCERTSTATUS:
                return true;
        default:
                return false;
        }
}
