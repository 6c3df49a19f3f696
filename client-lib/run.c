/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Pipes and what comes down them (run.h). Library. */
#include <fcntl.h>
#include <string.h>

#include "connection.h"
#include "run.h"

void run_init(Run *run, sqlipc_connection *connection, char *path) {
        *run = (Run) { .connection = connection, .path = path, .fd = -1 };
        page_decoder_init(&run->decoder, SQLIPC_PAGE_SIZE_DEFAULT, SQLIPC_ROW_SIZE_MAX);
}

void run_done(Run *run) {
        run->call = call_free(run->call);
        run_close_pipe(run);
        page_decoder_done(&run->decoder);
        free(steal(run->owner));
        free(steal(run->path));
}

void run_close_pipe(Run *run) {
        if (run->fd < 0)
                return;
        connection_disarm(run->connection, run->fd);
        run->fd = safe_close(run->fd);
}

int run_open_pipe(Run *run, sd_bus_message *reply, int fd, uint32_t page_size) {
        const char *sender = sd_bus_message_get_sender(reply);
        _cleanup_free_ char *owner = NULL;
        int copy, flags;

        if (page_size < SQLIPC_PAGE_SIZE_MIN || page_size > SQLIPC_PAGE_SIZE_MAX)
                return -EBADMSG;
        if (sender && !(owner = strdup(sender)))
                return -ENOMEM;

        /* The descriptor in the message goes with it. O_NONBLOCK is of this end alone: the writer has its own. */
        copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
        if (copy < 0)
                return -errno;
        flags = fcntl(copy, F_GETFL);
        if (flags < 0 || fcntl(copy, F_SETFL, flags | O_NONBLOCK) < 0) {
                int r = -errno;

                (void) safe_close(copy);
                return r;
        }

        run_close_pipe(run);
        page_decoder_done(&run->decoder);
        page_decoder_init(&run->decoder, page_size, SQLIPC_ROW_SIZE_MAX);
        free(run->owner);
        run->owner = steal(owner);
        run->fd = copy;
        run->at_end_of_file = false;
        return 0;
}

void run_begin(Run *run, sqlipc_cursor *cursor, Call *call) {
        run->cursor = cursor;
        run->call = call;
        run->number = 0;
        run->under_way = true;
        run->cancel_wanted = run->cancel_sent = false;
}

/* One read() into the decoder: 0, -EAGAIN, -ECONNRESET at end-of-file. */
static int fill(Run *run) {
        uint8_t *room;
        size_t size;
        ssize_t n;
        int r;

        r = page_decoder_reserve(&run->decoder, &room, &size);
        if (r < 0)
                return r;
        do
                n = read(run->fd, room, size);
        while (n < 0 && errno == EINTR);
        if (n < 0)
                return -errno;
        if (n == 0) {
                run->at_end_of_file = true;
                return -ECONNRESET;
        }
        page_decoder_commit(&run->decoder, (size_t) n);
        return 0;
}

int run_next(Run *run) {
        int r;

        for (;;) {
                r = page_decoder_next(&run->decoder);
                if (r < 0)
                        return r;
                if (r == PAGE_COLUMNS && !run->number)
                        run->number = run->decoder.run; /* before the reply says so */
                if (r == PAGE_END || r == PAGE_ERROR)
                        run->under_way = false;
                if (r != PAGE_MORE)
                        return r;
                if (run->fd < 0)
                        return -EAGAIN;
                if (run->at_end_of_file)
                        return -ECONNRESET;
                r = fill(run);
                if (r < 0)
                        return r;
        }
}

void run_cancel(Run *run) {
        run->cancel_wanted = true;
        if (run->cancel_sent || !run->number)
                return;
        call_notify(run->connection->bus, run->owner, run->path, "Cancel", run->number);
        connection_update_events(run->connection);
        run->cancel_sent = true;
}

void run_abandon(Run *run) {
        run->cursor = NULL;
        if (run->under_way)
                run_cancel(run);
}

int run_drain(Run *run) {
        int r;

        while (run->under_way) {
                r = run_next(run);
                if (r < 0)
                        return r == -ECONNRESET && run->call ? -EAGAIN : r;
        }
        return run->call ? -EAGAIN : 0;
}
