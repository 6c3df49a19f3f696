/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A set of ways to get a result, which run in turn, see transport-field.h. */
#include "tools/bench/workloads/transport-field.h"

#include <inttypes.h>

static int run(void *userdata) {
        FieldRunner *runner = userdata;

        runner->transport.bytes_moved = 0;
        return runner->transport.kind->fetch(&runner->transport, runner->sql, &runner->copy);
}

static uint64_t check(void *userdata) {
        FieldRunner *runner = userdata;
        uint64_t hash = copy_hash(&runner->copy);

        runner->n_rows = runner->copy.n_rows;
        runner->n_bytes = runner->copy.n_bytes;
        copy_done(&runner->copy);
        return hash;
}

static void field_forget(Field *field) {
        for (size_t i = 0; field->has_findings && i < field->n; i++)
                findings_done(&field->findings[i]);
        field->has_findings = false;
        g_clear_pointer(&field->sql, g_free);
}

/* In reverse order, because a server has copies of our ends of the sockets of earlier servers. So a server sees the end of
 * its socket only when the later servers are gone. */
void field_close(Field *field) {
        field_forget(field);
        while (field->n > 0)
                transport_close(&field->runners[--field->n].transport);
}

int field_add(Field *field, const TransportSetup *setup, const TransportKind *kind, size_t buffer_size) {
        FieldRunner *runner = &field->runners[field->n];
        int r;

        g_assert(field->n < FIELD_MAX);
        r = transport_open(kind, setup, buffer_size, &runner->transport);
        if (r < 0)
                return r;
        field->sides[field->n++] = (Side) {
                .name = kind->name,
                .run = run,
                .check = check,
                .userdata = runner,
        };
        return 0;
}

int field_measure(Field *field, int64_t n_rows, int n_rounds, const char *what) {
        int r;

        field_forget(field);
        /* Keys start at 1. LIMIT would prevent SQLite from flattening a query around this one (transport-direct.c). */
        field->sql = g_strdup_printf("SELECT * FROM study WHERE id <= %" PRId64, n_rows);
        for (size_t i = 0; i < field->n; i++) {
                field->runners[i].sql = field->sql;
                field->sides[i].server = transport_server(&field->runners[i].transport);
        }
        r = measure_sides(field->sides, field->n, n_rounds, what, field->findings);
        field->has_findings = r >= 0;
        return r;
}

int field_run_once(Field *field, size_t which) {
        int r = run(&field->runners[which]);

        (void) check(&field->runners[which]);
        return r;
}
