/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Supervisor. See child-source.h. A child's source is one shot, also for epoll, and sd-event of 252 drops what becomes ready
 * while it looks for events of higher priority: the exit would never be told. Level-triggered it is told the next time.
 */
#include <sys/wait.h>

#include "child-source.h"

int child_source_add(sd_event *event, sd_event_source **ret, pid_t pid, sd_event_child_handler_t handler, void *userdata) {
        sd_event_source *source = NULL;
        int r = sd_event_add_child(event, &source, pid, WEXITED, handler, userdata);

        if (r >= 0)
                r = sd_event_source_set_enabled(source, SD_EVENT_OFF); /* and on, so that epoll learns of it */
        if (r >= 0)
                r = sd_event_source_set_enabled(source, SD_EVENT_ON);
        if (r < 0) {
                (void) sd_event_source_disable_unref(source);
                return r;
        }
        *ret = source;
        return 0;
}
