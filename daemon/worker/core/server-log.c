/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See server-log.h.
 */
#include "daemon/worker/core/server-log.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "daemon/worker/core/monotonic.h"

#define LINE_SIZE_MAX 1024
#define PAUSE_USEC USEC_PER_SEC
#define SAME_USEC (60 * USEC_PER_SEC)

void server_log(const char *text) {
        static char last[LINE_SIZE_MAX];
        static uint64_t last_usec;
        char line[LINE_SIZE_MAX];
        uint64_t now = now_usec();
        size_t n = 0;

        for (; n < sizeof line - 1 && text[n]; n++)
                line[n] = (unsigned char) text[n] < ' ' || text[n] == 0x7f ? ' ' : text[n];
        while (n > 0 && line[n - 1] == ' ')
                n--;
        line[n] = 0;
        if (last_usec && now - last_usec < (strcmp(line, last) == 0 ? SAME_USEC : PAUSE_USEC))
                return;
        memcpy(last, line, n + 1);
        last_usec = now;
        (void) fprintf(stderr, "sqlipc-engine: %s\n", line);
}
