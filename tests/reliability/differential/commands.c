/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* See commands.h. */
#include "tests/reliability/differential/commands.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "dbus-interfaces/wire/sqlipc-page.h"

#define COMMAND_SIZE_MAX ((uint32_t) 64 * 1024 * 1024)

/* The rest of a command. */
typedef struct Rest {
        const uint8_t *at, *end;
        bool bad;
} Rest;

static const uint8_t *take(Rest *rest, size_t size) {
        const uint8_t *at = rest->at;

        if (rest->bad || size > (size_t) (rest->end - at)) {
                rest->bad = true;
                return (const uint8_t *) "\0\0\0\0\0\0\0";
        }
        rest->at += size;
        return at;
}

static const char *take_string(Rest *rest) {
        const uint8_t *nul = memchr(rest->at, 0, (size_t) (rest->end - rest->at));

        if (!nul) {
                rest->bad = true;
                return "";
        }
        return (const char *) take(rest, (size_t) (nul - rest->at) + 1);
}

static void take_parameter(Rest *rest, sqlipc_parameter *p) {
        uint8_t type = *take(rest, 1);
        const char *name = take_string(rest);
        uint32_t size = load_le32(take(rest, 4));
        const uint8_t *bytes;

        if ((type == SQLIPC_INTEGER || type == SQLIPC_REAL) && size != 8)
                rest->bad = true;
        bytes = take(rest, size);
        if (rest->bad)
                return;
        *p = (sqlipc_parameter) { .struct_size = sizeof *p, .type = (sqlipc_type) type, .size = size };
        p->name = *name ? g_strdup(name) : NULL;
        if (type == SQLIPC_INTEGER)
                p->integer = (int64_t) load_le64(bytes);
        else if (type == SQLIPC_REAL)
                p->real = load_le_double(bytes);
        else { /* one byte more: empty ones have a pointer, too */
                p->bytes = g_malloc0((size_t) size + 1);
                memcpy((void *) p->bytes, bytes, size);
        }
}

static void take_query(Rest *rest, Query *q) {
        uint32_t number = load_le32(take(rest, 4)), page_size = load_le32(take(rest, 4));
        uint8_t flags = *take(rest, 2);
        size_t n_parameters = load_le16(take(rest, 2));

        *q = (Query) {
                .number = number,
                .page_size = page_size,
                .on_channel = flags & QUERY_ON_CHANNEL,
                .prepared = flags & QUERY_PREPARED,
                .exposed = flags & QUERY_EXPOSED,
                .sql = g_strdup(take_string(rest)),
                .parameters = g_new0(sqlipc_parameter, n_parameters + 1),
                .n_parameters = n_parameters,
        };
        for (size_t i = 0; i < n_parameters; i++)
                take_parameter(rest, &q->parameters[i]);
}

int command_read(Command *c) {
        uint8_t head[5];
        size_t n = fread(head, 1, sizeof head, stdin);
        uint32_t size = n == sizeof head ? load_le32(head + 1) : 0;
        Rest rest;

        if (n == 0)
                return 0;
        if (n != sizeof head || size > COMMAND_SIZE_MAX)
                return -EBADMSG;
        c->letter = (char) head[0];
        c->bytes = g_realloc(c->bytes, (size_t) size + 1);
        if (fread(c->bytes, 1, size, stdin) != size)
                return -EBADMSG;
        rest = (Rest) { .at = c->bytes, .end = c->bytes + size };
        if (c->letter == 'D') {
                c->name = take_string(&rest);
                c->path = take_string(&rest);
                c->exposed = take_string(&rest);
        } else if (c->letter == 'Q')
                take_query(&rest, &c->query);
        return rest.bad || rest.at != rest.end ? -EBADMSG : 1;
}
