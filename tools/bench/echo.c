/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Ways of getting bytes to another process and back, see echo.h. */
#include "echo.h"

#include <string.h>

#include "random.h"

int echo_open(Echo *echo, const EchoKind *kind, const BenchOptions *options) {
        Random random;

        *echo = (Echo) { .kind = kind, .child = CHILD_INIT, .in = -1, .out = -1, .server_in = -1, .server_out = -1 };
        echo->message = g_malloc(ECHO_HEAD_SIZE + ECHO_SIZE_MAX);
        echo->payload = echo->message + ECHO_HEAD_SIZE;
        echo->back_message = g_malloc0(ECHO_HEAD_SIZE + ECHO_SIZE_MAX);
        echo->back = echo->back_message + ECHO_HEAD_SIZE;
        random_init(&random, 1);
        for (size_t i = 0; i < ECHO_SIZE_MAX; i += sizeof(uint64_t)) {
                uint64_t bytes = random_next(&random);

                memcpy(echo->payload + i, &bytes, sizeof bytes);
        }
        return kind->open(echo, options);
}

int echo_close(Echo *echo) {
        int r = echo->kind ? echo->kind->close(echo) : 0;

        g_clear_pointer(&echo->message, g_free);
        g_clear_pointer(&echo->back_message, g_free);
        g_clear_pointer(&echo->why, g_free);
        return r;
}
