/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Ways of sending bytes to another process and back, see echo.h. */
#include "tools/bench/workloads/echo.h"

#include <string.h>

#include "tools/bench/core/random.h"

void echo_bytes_init(EchoBytes *ret) {
        Random random;

        ret->payload = (uint8_t *) g_malloc(ECHO_HEAD_SIZE + ECHO_SIZE_MAX) + ECHO_HEAD_SIZE;
        ret->back = (uint8_t *) g_malloc0(ECHO_HEAD_SIZE + ECHO_SIZE_MAX) + ECHO_HEAD_SIZE;
        random_init(&random, 1);
        for (size_t i = 0; i < ECHO_SIZE_MAX; i += sizeof(uint64_t)) {
                uint64_t bytes = random_next(&random);

                memcpy(ret->payload + i, &bytes, sizeof bytes);
        }
}

void echo_bytes_done(EchoBytes *bytes) {
        if (bytes->payload)
                g_free(bytes->payload - ECHO_HEAD_SIZE);
        if (bytes->back)
                g_free(bytes->back - ECHO_HEAD_SIZE);
        *bytes = (EchoBytes) {};
}

int echo_open(Echo *echo, const EchoKind *kind, const EchoBytes *bytes, const BenchOptions *options) {
        *echo = (Echo) {
                .kind = kind, .payload = bytes->payload, .back = bytes->back, .child = CHILD_INIT,
                .in = -1, .out = -1, .server_in = -1, .server_out = -1,
        };
        return kind->open(echo, options);
}

int echo_close(Echo *echo) {
        int r = echo->kind ? echo->kind->close(echo) : 0;

        g_clear_pointer(&echo->why, g_free);
        return r;
}
