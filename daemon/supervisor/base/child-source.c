/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Supervisor. See child-source.h. A child's source is one-shot in epoll too, and sd-event of version 252 drops an event that
 * becomes ready while it looks only for events of higher priority, so the exit would never be reported. A level-triggered
 * source reports it again.
 */
#include <sys/wait.h>

#include "daemon/supervisor/base/child-source.h"

int child_source_add(sd_event *event, sd_event_source **ret, pid_t pid, sd_event_child_handler_t handler, void *userdata) {
        sd_event_source *source = NULL;
        int r = sd_event_add_child(event, &source, pid, WEXITED, handler, userdata);

        if (r >= 0)
                r = sd_event_source_set_enabled(source, SD_EVENT_OFF); /* off and on: makes epoll level-triggered */
        if (r >= 0)
                r = sd_event_source_set_enabled(source, SD_EVENT_ON);
        if (r < 0) {
                (void) sd_event_source_disable_unref(source);
                return r;
        }
        *ret = source;
        return 0;
}
