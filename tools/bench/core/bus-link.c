/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* D-Bus between this process and a child, see bus-link.h. */
#include "tools/bench/core/bus-link.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <systemd/sd-id128.h>
#include <unistd.h>

#include "tools/bench/core/bench-service.h"
#include "tools/bench/core/passing.h"

/* ---- The child ---------------------------------------------------------------------------------------------------- */

/* Like sd_bus_wait(), but also returns, with 1, when `starter` hangs up. */
static int wait_for_call(sd_bus *bus, int starter) {
        int fd = sd_bus_get_fd(bus), events = sd_bus_get_events(bus);
        struct pollfd fds[] = { { .fd = fd, .events = (short) events }, { .fd = starter } };

        if (fd < 0 || events < 0)
                return MIN(fd, events);
        if (poll(fds, G_N_ELEMENTS(fds), -1) < 0)
                return errno == EINTR ? 0 : -errno;
        return fds[1].revents != 0;
}

static int answer_one(sd_bus_message *message, BusLinkAnswer answer, void *userdata) {
        int r = answer(message, userdata);

        return r < 0 ? MIN(sd_bus_reply_method_errno(message, r, NULL), 0) : 0;
}

/* `starter`: the socket to the parent, or -1 if the connection itself is that socket. */
static int serve(sd_bus *bus, int starter, BusLinkAnswer answer, void *userdata) {
        int r = 0;

        while (r == 0) {
                __attribute__((cleanup(sd_bus_message_unrefp))) sd_bus_message *message = NULL;

                r = sd_bus_process(bus, &message);
                if (r > 0)
                        r = message ? answer_one(message, answer, userdata) : 0;
                else if (r == 0)
                        r = wait_for_call(bus, starter);
        }
        sd_bus_flush_close_unref(bus);
        return r == -ECONNRESET || r == -ENOTCONN ? 0 : r;
}

/* The child first sends its bus name to the parent. */
int bus_link_serve_on_bus(const BenchOptions *options, int fd, BusLinkAnswer answer, void *userdata) {
        sd_bus *bus = NULL;
        const char *name;
        int r;

        r = bench_service_open_bus(options, &bus);
        if (r >= 0)
                r = sd_bus_get_unique_name(bus, &name);
        if (r >= 0)
                r = passing_send(fd, name, strlen(name), NULL, 0);
        return r < 0 ? r : serve(bus, fd, answer, userdata);
}

int bus_link_serve_direct(int fd, BusLinkAnswer answer, void *userdata) {
        sd_id128_t id = SD_ID128_NULL;
        sd_bus *bus = NULL;
        int r;

        r = sd_id128_randomize(&id);
        if (r >= 0)
                r = sd_bus_new(&bus);
        if (r >= 0)
                r = sd_bus_set_fd(bus, fd, fd);
        if (r >= 0)
                r = sd_bus_set_server(bus, true, id);
        if (r >= 0)
                r = sd_bus_start(bus);
        return r < 0 ? r : serve(bus, -1, answer, userdata);
}

/* ---- Here --------------------------------------------------------------------------------------------------------- */

int bus_link_connect_on_bus(const BenchOptions *options, Child *child, sd_bus **ret, char **ret_name) {
        char name[256];
        ssize_t size;
        int r;

        size = TEMP_FAILURE_RETRY(read(child->fd, name, sizeof name));
        if (size <= 0)
                return size < 0 ? -errno : -ECONNRESET;
        r = bench_service_open_bus(options, ret);
        if (r >= 0)
                *ret_name = g_strndup(name, (size_t) size);
        return r;
}

int bus_link_connect_direct(Child *child, sd_bus **ret) {
        sd_bus *bus = NULL;
        int r;

        r = sd_bus_new(&bus);
        if (r >= 0)
                r = sd_bus_set_fd(bus, child->fd, child->fd);
        if (r >= 0) {
                child->fd = -1; /* the connection's now */
                r = sd_bus_start(bus);
        }
        if (r < 0) {
                sd_bus_close_unref(bus);
                return r;
        }
        *ret = bus;
        return 0;
}
