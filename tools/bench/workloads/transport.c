/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The common code of all transports, see transport.h. */
#include "tools/bench/workloads/transport.h"

#include <errno.h>
#include <stdio.h>

int transport_open(const TransportKind *kind, const TransportSetup *setup, size_t buffer_size, Transport *ret) {
        int r;

        *ret = (Transport) {
                .kind = kind,
                .setup = setup,
                .buffer_size = buffer_size ? buffer_size : kind->buffer_size,
                .child = CHILD_INIT,
                .values = g_new(StudyText, setup->n_columns),
        };
        r = kind->open(ret);
        if (r < 0)
                transport_close(ret);
        return r;
}

void transport_close(Transport *transport) {
        if (transport->kind && transport->kind->close)
                transport->kind->close(transport);
        if (child_stop(&transport->child) < 0)
                fprintf(stderr, "sqlipc-bench: %s: its server did not end well.\n", transport->kind->name);
        g_clear_pointer(&transport->values, g_free);
        transport->kind = NULL;
}

pid_t transport_server(const Transport *transport) {
        return transport->kind->ours ? transport->setup->service->pid : transport->child.pid;
}

int transport_failed(const Transport *transport, int r, const char *what) {
        fprintf(stderr, "sqlipc-bench: %s: %s: %s\n", transport->kind->name, what, g_strerror(-r));
        return r;
}

static int copy_number(sqlipc_type type, const StudyText *value, Copy *copy) {
        char *end;

        errno = 0;
        if (type == SQLIPC_INTEGER)
                copy_integer(copy, strtoll(value->text, &end, 10));
        else
                copy_real(copy, g_ascii_strtod(value->text, &end));
        return errno == 0 && value->size > 0 && end == value->text + value->size ? 0 : -EBADMSG;
}

int transport_copy_text(const Transport *transport, Copy *copy) {
        const TransportSetup *setup = transport->setup;

        for (unsigned i = 0; i < setup->n_columns; i++) {
                const StudyText *value = transport->values + i;

                if (setup->types[i] == SQLIPC_TEXT)
                        copy_bytes(copy, SQLIPC_TEXT, value->text, value->size);
                else if (copy_number(setup->types[i], value, copy) < 0)
                        return -EBADMSG;
        }
        copy->n_rows++;
        return 0;
}
