/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See node-list.h.
 */
#include "daemon/worker/rqlite/node-list.h"

#include <curl/curl.h>
#include <stdlib.h>
#include <string.h>

#define SPACE " \t\n\r"

/* The parts of a URL, owned by libcurl. */
typedef struct UrlParts {
        char *scheme, *host, *port, *path, *user, *password, *query, *fragment;
} UrlParts;

static char *part_of(CURLU *url, CURLUPart part, unsigned flags) {
        char *text = NULL;

        return curl_url_get(url, part, &text, flags) == CURLUE_OK ? text : NULL;
}

static void parts_done(UrlParts *p) {
        char **all[] = { &p->scheme, &p->host, &p->port, &p->path, &p->user, &p->password, &p->query, &p->fragment };

        for (size_t i = 0; i < sizeof all / sizeof *all; i++)
                curl_free(*all[i]);
        *p = (UrlParts) {};
}

/* False: it is no URL of HTTP. */
static bool split(const char *text, UrlParts *ret) {
        CURLU *url = curl_url();
        bool ok = url && curl_url_set(url, CURLUPART_URL, text, 0) == CURLUE_OK;

        *ret = (UrlParts) {};
        if (ok)
                *ret = (UrlParts) {
                        .scheme = part_of(url, CURLUPART_SCHEME, 0),
                        .host = part_of(url, CURLUPART_HOST, 0),
                        .port = part_of(url, CURLUPART_PORT, CURLU_DEFAULT_PORT),
                        .path = part_of(url, CURLUPART_PATH, 0),
                        .user = part_of(url, CURLUPART_USER, CURLU_URLDECODE),
                        .password = part_of(url, CURLUPART_PASSWORD, 0),
                        .query = part_of(url, CURLUPART_QUERY, 0),
                        .fragment = part_of(url, CURLUPART_FRAGMENT, 0),
                };
        curl_url_cleanup(url);
        return ok && ret->scheme && ret->host && ret->port &&
               (strcmp(ret->scheme, "http") == 0 || strcmp(ret->scheme, "https") == 0);
}

static bool same_host(const UrlParts *a, const UrlParts *b) {
        return strcmp(a->scheme, b->scheme) == 0 && strcasecmp(a->host, b->host) == 0 && strcmp(a->port, b->port) == 0;
}

/* The path without the slash at its end. */
static size_t path_size(const UrlParts *p) {
        size_t size = p->path ? strlen(p->path) : 0;

        return size > 0 && p->path[size - 1] == '/' ? size - 1 : size;
}

static bool set_node(Node *node, const UrlParts *p, SqlError *error) {
        size_t size = strlen(p->scheme) + strlen(p->host) + strlen(p->port) + path_size(p) + sizeof "://:";

        node->url = malloc(size);
        node->user = p->user ? strdup(p->user) : NULL;
        if (!node->url || (p->user && !node->user))
                return sql_error_set(error, ERROR_OUT_OF_MEMORY, "out of memory");
        (void) snprintf(node->url, size, "%s://%s:%s%.*s", p->scheme, p->host, p->port, (int) path_size(p), p->path ?: "");
        return true;
}

/* Messages name a URL by its position, because it may contain a password, although it must not. */
static bool check(const UrlParts *p, bool is_url, unsigned number, SqlError *error) {
        if (!is_url || p->query || p->fragment)
                return sql_error_set(error, ERROR_CANNOT_OPEN,
                                     "URL %u of Connection= of this database is not valid: write http://HOST:PORT or "
                                     "https://HOST:PORT",
                                     number);
        return !p->password ||
               sql_error_set(error, ERROR_LOGIN_FAILED,
                             "URL %u of Connection= of this database has a password: put it into a file, and name that by "
                             "PasswordFile=",
                             number);
}

static bool add(NodeList *list, const char *text, SqlError *error) {
        UrlParts parts;
        bool ok = split(text, &parts);

        ok = check(&parts, ok, list->n + 1, error);
        if (ok && list->n == NODE_LIST_N_MAX)
                ok = sql_error_set(error, ERROR_CANNOT_OPEN, "Connection= of this database has more than %d URLs",
                                   NODE_LIST_N_MAX);
        ok = ok && set_node(&list->nodes[list->n++], &parts, error);
        parts_done(&parts);
        return ok;
}

bool node_list_parse(const char *connection, NodeList *ret, SqlError *error) {
        NodeList list = {};
        char *copy = strdup(connection), *at = NULL;
        bool ok = copy || sql_error_set(error, ERROR_OUT_OF_MEMORY, "out of memory");

        for (char *url = ok ? strtok_r(copy, SPACE, &at) : NULL; ok && url; url = strtok_r(NULL, SPACE, &at))
                ok = add(&list, url, error);
        if (ok && list.n == 0)
                ok = sql_error_set(error, ERROR_CANNOT_OPEN, "Connection= of this database has no URL");
        free(copy);
        if (ok)
                *ret = list;
        else
                node_list_done(&list);
        return ok;
}

void node_list_done(NodeList *list) {
        for (unsigned i = 0; i < list->n; i++) {
                free(list->nodes[i].url);
                free(list->nodes[i].user);
        }
        *list = (NodeList) {};
}

int node_list_find(const NodeList *list, const char *url) {
        UrlParts wanted, node;
        int found = -1;

        if (split(url, &wanted))
                for (unsigned i = 0; i < list->n && found < 0; i++) {
                        if (split(list->nodes[i].url, &node) && same_host(&wanted, &node))
                                found = (int) i;
                        parts_done(&node);
                }
        parts_done(&wanted);
        return found;
}

void node_list_order(const NodeList *list, unsigned first, uint64_t now_usec, unsigned ret_order[static NODE_LIST_N_MAX]) {
        unsigned n = 0;

        for (int down = 0; down < 2; down++)
                for (unsigned i = 0; i < list->n; i++) {
                        unsigned node = (first + i) % list->n;

                        if ((list->nodes[node].down_usec > now_usec) == down)
                                ret_order[n++] = node;
                }
}
