/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See cluster.h. From top to bottom: one attempt, its outcome, all attempts, the log's index.
 */
#include "daemon/worker/rqlite/cluster.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/worker/core/monotonic.h"
#include "daemon/worker/core/server-log.h"
#include "daemon/worker/rqlite/response.h"
#include "daemon/worker/rqlite/server-error.h"

#define DOWN_USEC USEC_PER_SEC          /* how long a node that did not answer is asked last */
#define STATUS_SIZE_MAX ((size_t) 1 << 20)
#define STATUS_PATIENCE_USEC (5 * USEC_PER_SEC)

typedef enum AttemptResult {
        ATTEMPT_ANSWERED,
        ATTEMPT_FAILED,      /* with an error that another node cannot help */
        ATTEMPT_REDIRECTED,
        ATTEMPT_NO_LEADER,
        ATTEMPT_UNREACHABLE, /* nothing was carried out */
} AttemptResult;

/* ---- one attempt ---- */

static bool out_of_memory(SqlError *error) {
        return sql_error_set(error, ERROR_OUT_OF_MEMORY, "out of memory");
}

/* Why there is no whole answer, for the client: without the host and port that libcurl's sentence has, which is logged. */
static const char *reason_of(const ClusterExchange *x) {
        const char *reason = http_reason(&x->http);

        if (x->http.reason[0])
                server_log(x->http.reason);
        return reason ?: "the connection was closed";
}

static bool send_to(ClusterExchange *x, int node, const ClusterRequest *r, bool redirects) {
        const Node *n = &x->cluster->nodes.nodes[node];
        size_t size = strlen(n->url) + strlen(r->target) + sizeof "&redirect";
        char *url = malloc(size);
        int result;

        if (!url)
                return false;
        (void) snprintf(url, size, "%s%s%s", n->url, r->target, redirects ? "&redirect" : "");
        x->reader.restart(x->reader.userdata);
        x->node = node;
        x->is_direct = redirects || !r->by_leader;
        result = http_begin(&x->http, &(HttpRequest) {
                .url = url,
                .user = n->user,
                .password = x->cluster->password,
                .body = r->body ? r->body->bytes : NULL,
                .body_size = r->body ? r->body->size : 0,
        }, &x->reader.sink);
        free(url);
        return result == 0;
}

/* ---- its outcome ---- */

static AttemptResult fail_unknown(SqlError *error, const char *reason) {
        (void) sql_error_set(error, ERROR_OUTCOME_UNKNOWN,
                             "the server may or may not have carried this out: %s. Look before you try again.", reason);
        return ATTEMPT_FAILED;
}

/* No answer. */
static AttemptResult judge_silence(ClusterExchange *x, const ClusterRequest *r, const char *reason, SqlError *error) {
        if (http_is_distrusted(&x->http)) {
                (void) sql_error_set(error, ERROR_LOGIN_FAILED, "node %d of Connection= is not trusted: %s", x->node + 1,
                                     reason);
                return ATTEMPT_FAILED;
        }
        return r->writes && http_sent_any(&x->http) ? fail_unknown(error, reason) : ATTEMPT_UNREACHABLE;
}

/* An answer that is an error. Its text is for the administrator: it may be that of a proxy, and name addresses. */
static AttemptResult judge_status(ClusterExchange *x, const ClusterRequest *r, long status, SqlError *error) {
        char *text = x->http.text;

        text[strcspn(text, "\r\n")] = 0;
        if (!text_is_utf8(text, strlen(text)))
                text[0] = 0;
        if (status == 401 || status == 403) {
                (void) sql_error_set(
                        error, ERROR_LOGIN_FAILED,
                        "the cluster refuses the user of Connection=, or the password of PasswordFile= (HTTP %ld)", status);
                return ATTEMPT_FAILED;
        }
        /* A node that would redirect, and knows no leader, answers with 500. */
        if ((status >= 500 && server_error_is_no_leader(text)) || (status == 503 && !r->writes))
                return ATTEMPT_NO_LEADER;
        if (status >= 300 && status < 400)
                return ATTEMPT_REDIRECTED;
        server_log(text);
        if (r->writes && status >= 500)
                return fail_unknown(error, "a node answered with an error of its own, which the log has");
        (void) sql_error_set(error, ERROR_INPUT_OUTPUT,
                             "node %d of Connection= answers with HTTP %ld; the log of sqlipc-engine has its text",
                             x->node + 1, status);
        return ATTEMPT_FAILED;
}

static AttemptResult judge(ClusterExchange *x, const ClusterRequest *r, HttpWait wait, SqlError *error) {
        long status = http_status(&x->http);

        switch (wait) {
        case HTTP_WAIT_READY:
                return ATTEMPT_ANSWERED;
        case HTTP_WAIT_INTERRUPTED:
                http_abort(&x->http);
                if (r->writes && http_sent_any(&x->http))
                        return fail_unknown(error, "it was interrupted");
                if (error->error == ERROR_NONE)
                        (void) sql_error_set(error, ERROR_CANCELLED, "interrupted");
                return ATTEMPT_FAILED;
        case HTTP_WAIT_SILENT:
                http_abort(&x->http);
                return judge_silence(x, r, "it does not answer", error);
        case HTTP_WAIT_DONE:
                break;
        }
        if (x->http.is_broken) /* the caller knows why */
                return ATTEMPT_ANSWERED;
        if (!http_is_whole(&x->http))
                return judge_silence(x, r, reason_of(x), error);
        return status == 200 ? ATTEMPT_ANSWERED : judge_status(x, r, status, error);
}

static AttemptResult attempt(ClusterExchange *x, int node, const ClusterRequest *r, bool redirects, SqlError *error) {
        AttemptResult result;

        if (!send_to(x, node, r, redirects)) {
                (void) out_of_memory(error);
                return ATTEMPT_FAILED;
        }
        result = judge(x, r, http_wait(&x->http, x->reader.enough, x->reader.userdata, x->patience_usec), error);
        x->cluster->nodes.nodes[node].down_usec = result == ATTEMPT_UNREACHABLE ? now_usec() + DOWN_USEC : 0;
        return result;
}

/* ---- all attempts ---- */

/* Asks one node, and the one that it redirects to. */
static AttemptResult ask(ClusterExchange *x, int node, const ClusterRequest *r, SqlError *error) {
        AttemptResult result = attempt(x, node, r, r->by_leader, error);

        for (unsigned hops = 0; result == ATTEMPT_REDIRECTED && hops < x->cluster->nodes.n; hops++) {
                const char *location = http_location(&x->http);
                int next = location ? node_list_find(&x->cluster->nodes, location) : -1;

                if (next < 0 || next == x->node || r->node != CLUSTER_ANY_NODE)
                        break;
                result = attempt(x, next, r, true, error);
        }
        if (result == ATTEMPT_REDIRECTED)
                result = attempt(x, node, r, false, error);
        if (result == ATTEMPT_REDIRECTED) {
                (void) sql_error_set(
                        error, ERROR_INPUT_OUTPUT,
                        "node %d of Connection= redirects to another address, although it was asked to pass the "
                        "request on",
                        x->node + 1);
                result = ATTEMPT_FAILED;
        }
        return result;
}

static unsigned first_node(Cluster *c, const ClusterRequest *r) {
        return r->by_leader ? c->nodes.first : c->turn++ % c->nodes.n;
}

bool cluster_begin(ClusterExchange *x, const ClusterRequest *request, const ClusterReader *reader, SqlError *error) {
        Cluster *c = x->cluster;
        unsigned order[NODE_LIST_N_MAX] = { (unsigned) (request->node >= 0 ? request->node : 0) };
        unsigned n = request->node >= 0 ? 1 : c->nodes.n;
        bool no_leader = false;

        x->reader = *reader;
        x->patience_usec = request->patience_usec;
        if (request->node < 0)
                node_list_order(&c->nodes, first_node(c, request), now_usec(), order);
        for (unsigned i = 0; i < n; i++)
                switch (ask(x, (int) order[i], request, error)) {
                case ATTEMPT_ANSWERED:
                        if (request->by_leader && x->is_direct)
                                c->nodes.first = (unsigned) x->node;
                        return true;
                case ATTEMPT_FAILED:
                        return false;
                case ATTEMPT_NO_LEADER:
                        no_leader = true;
                        break;
                case ATTEMPT_UNREACHABLE:
                case ATTEMPT_REDIRECTED:
                        break;
                }
        return no_leader ? server_error_retry(error, SERVER_TROUBLE_NO_LEADER, "the cluster has no leader")
                         : server_error_retry(error, SERVER_TROUBLE_UNREACHABLE, reason_of(x));
}

bool cluster_go_on(ClusterExchange *x, SqlError *error) {
        switch (http_wait(&x->http, x->reader.enough, x->reader.userdata, x->patience_usec)) {
        case HTTP_WAIT_READY:
                return true;
        case HTTP_WAIT_INTERRUPTED:
                http_abort(&x->http);
                return error->error == ERROR_NONE && sql_error_set(error, ERROR_CANCELLED, "interrupted");
        case HTTP_WAIT_DONE:
                if (x->http.is_broken || http_is_whole(&x->http))
                        return true;
                break;
        case HTTP_WAIT_SILENT:
                http_abort(&x->http);
                break;
        }
        return sql_error_set(error, ERROR_SERVER_UNREACHABLE, "the answer of node %d of Connection= broke off: %s",
                             x->node + 1, reason_of(x));
}

int cluster_exchange_init(ClusterExchange *x, Cluster *cluster) {
        *x = (ClusterExchange) { .cluster = cluster, .node = CLUSTER_ANY_NODE };
        return http_exchange_init(&x->http, &cluster->http);
}

void cluster_exchange_done(ClusterExchange *x) {
        http_exchange_done(&x->http);
}

void cluster_abort(ClusterExchange *x) {
        http_abort(&x->http);
}

/* ---- the log's index ---- */

static HttpSinkResult take_status(void *userdata, const char *bytes, size_t size) {
        TextBuffer *text = userdata;

        text_buffer_add(text, bytes, size);
        return text->state == TEXT_GOOD ? HTTP_SINK_TAKEN : HTTP_SINK_BROKEN;
}

static void restart_status(void *userdata) {
        text_buffer_cut(userdata, 0);
}

/* Newer servers send only the number; older ones the whole status. */
bool cluster_applied_index(ClusterExchange *x, int node, uint64_t *ret) {
        TextBuffer text = { .size_max = STATUS_SIZE_MAX };
        SqlError error = SQL_ERROR_INIT;
        const ClusterRequest request = {
                .target = "/status?key=store.db_applied_index",
                .node = node,
                .patience_usec = STATUS_PATIENCE_USEC,
        };
        const ClusterReader reader = { .sink = { take_status, &text }, .restart = restart_status, .userdata = &text };
        bool ok = cluster_begin(x, &request, &reader, &error) && http_is_whole(&x->http) &&
                  response_find_number(text.bytes ?: "", text.size, "store.db_applied_index", ret);

        sql_error_done(&error);
        text_buffer_done(&text);
        return ok;
}
