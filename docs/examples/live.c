/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A live query in an sd_event loop: prints each change to the list of rows. Ends when the list is empty. An I/O source has
 * the descriptor of the live query; it needs no timer.
 */
#define _POSIX_C_SOURCE 200809L

#include <errno.h>
#include <sys/epoll.h>
#include <systemd/sd-event.h>

#include "example.h"

typedef struct Follower {
        sqlipc_live *live;
        size_t n_rows;
} Follower;

static void print_values(const Follower *follower, const sqlipc_value *values) {
        for (unsigned i = 0; values && i < sqlipc_live_column_count(follower->live); i++) {
                putchar(i > 0 ? '|' : ' ');
                switch (values[i].type) {
                case SQLIPC_INTEGER:
                        printf("%" PRId64, values[i].as.integer);
                        break;
                case SQLIPC_REAL:
                        printf("%.17g", values[i].as.real);
                        break;
                case SQLIPC_TEXT: /* by its size, because it may contain NULs */
                        fwrite(values[i].as.text, 1, values[i].size, stdout);
                        break;
                case SQLIPC_BLOB:
                        printf("(%" PRIu32 " bytes)", values[i].size);
                        break;
                default:
                        printf("NULL");
                        break;
                }
        }
        putchar('\n');
}

static void print_change(Follower *follower, const sqlipc_live_change *change) {
        switch (change->kind) {
        case SQLIPC_LIVE_ADDED:
                follower->n_rows++;
                printf("+%zu", change->position);
                break;
        case SQLIPC_LIVE_REMOVED:
                follower->n_rows--;
                printf("-%zu", change->position);
                break;
        case SQLIPC_LIVE_MOVED:
                printf("%zu>%zu", change->position, change->new_position);
                break;
        case SQLIPC_LIVE_CHANGED:
                printf("=%zu", change->position);
                break;
        default:
                printf("%zu rows", follower->n_rows);
                break;
        }
        print_values(follower, change->values);
}

static int on_news(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        Follower *follower = (Follower *) userdata;
        const sqlipc_live_change *change;
        int r;

        while ((r = sqlipc_live_next(follower->live, 0, &change)) > 0) {
                print_change(follower, change);
                if (change->kind == SQLIPC_LIVE_SETTLED && follower->n_rows == 0)
                        return sd_event_exit(sd_event_source_get_event(source), 0);
        }
        fflush(stdout);
        return r < 0 && r != -EAGAIN ? sd_event_exit(sd_event_source_get_event(source), r) : 0;
}

static int run(Follower *follower) {
        __attribute__((cleanup(sd_event_unrefp))) sd_event *event = NULL;
        int r;

        r = sd_event_new(&event);
        if (r >= 0)
                r = sd_event_add_io(event, NULL, sqlipc_live_get_fd(follower->live), EPOLLIN, on_news, follower);
        return r < 0 ? r : sd_event_loop(event);
}

int main(int argc, char **argv) {
        Arguments arguments = parse_arguments(argc, argv);
        __attribute__((cleanup(sqlipc_closep))) sqlipc_connection *connection = NULL;
        Follower follower = { NULL, 0 };
        int r;

        if (open_connection(&arguments, &connection) < 0)
                return 1;

        r = sqlipc_set_blocking(connection, 0);
        if (r >= 0)
                r = sqlipc_live_open(connection, arguments.database, arguments.sql, NULL, 0, NULL, &follower.live);
        if (r >= 0)
                r = run(&follower);
        if (r < 0)
                complain(connection, r);
        (void) sqlipc_live_close(follower.live);
        return r < 0;
}
