/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Writes results to their destination (output.h). Each answer has its own stream, whose bytes take one of these ways:
 *
 *      DIRECT   to the descriptor, all of them, waiting if necessary
 *      HELD     held while they fit the screen, and shown after a moment; what is taller goes to PAGER
 *      PAGER    to the pager's spool
 */
#include "tools/cli/output/output.h"

#include <errno.h>
#include <glib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "tools/cli/output/interrupt.h"
#include "tools/cli/output/output-target.h"
#include "tools/cli/output/pager.h"
#include "tools/cli/output/screen.h"

/* The time after which a held first screen is shown. */
#define HELD_MSEC 300
/* The maximum wait for room after an answer was cancelled. */
#define HURRIED_MSEC 1000
/* The size of a write that must not block: small enough for a pipe that poll() calls writable. */
#define UNBLOCKED_SIZE ((size_t) 4096)
#define STREAM_BUFFER_SIZE ((size_t) 65536)

typedef enum Way {
        WAY_DIRECT,
        WAY_HELD,
        WAY_PAGER,
} Way;

typedef struct Alarm {
        void (*function)(void *userdata); /* NULL: none, or it was called */
        void *userdata;
        gint64 usec;
} Alarm;

struct Output {
        Target first, redirected, once;
        char *stream_buffer;
        Alarm alarm;

        /* The current answer. */
        FILE *file;       /* NULL: none */
        Target *target;
        OutputOptions options;
        Way way;
        bool hurried;     /* it was cancelled */
        int error;        /* sticky */
        GString *held;    /* of WAY_HELD */
        size_t n_shown;   /* bytes of .held that were shown */
        gint64 due;       /* when they must be shown; 0: nothing is held */
        Screen screen;
        Pager *pager;
};

/* ---- Targets ------------------------------------------------------------------------------------------------------ */

static Target *next_target(const Output *output) {
        const Target *lasting = output->redirected.name ? &output->redirected : &output->first;

        return (Target *) (output->once.name ? &output->once : lasting);
}

int output_redirect(Output *output, const char *target, bool once, char **ret_message) {
        Target new = TARGET_NONE;
        int r;

        if (*target != '\0' && !g_str_equal(target, "stdout")) {
                r = target_open(&new, target);
                if (r < 0) {
                        *ret_message = g_strdup_printf("%s: %s", target, g_strerror(-r));
                        return r;
                }
        }
        r = output->once.name ? target_close(&output->once) : 0;
        if (!once && output->redirected.name) {
                int q = target_close(&output->redirected);

                r = r < 0 ? r : q;
        }
        *(once ? &output->once : &output->redirected) = new;
        if (r == -ECHILD)
                *ret_message = g_strdup("The output before this may be incomplete");
        else if (r < 0)
                *ret_message = g_strdup_printf("The output before this is incomplete: %s", g_strerror(-r));
        return r;
}

const char *output_target(const Output *output) {
        return (output->target ?: next_target(output))->name;
}

Output *output_new(void) {
        Output *output = g_new0(Output, 1);

        output->redirected = output->once = TARGET_NONE;
        output->held = g_string_new(NULL);
        output->stream_buffer = g_malloc(STREAM_BUFFER_SIZE);
        target_open_stdout(&output->first);
        return output;
}

Output *output_free(Output *output) {
        if (!output)
                return NULL;
        if (output->file)
                (void) output_end(output);
        target_close(&output->once);
        target_close(&output->redirected);
        target_close(&output->first);
        g_string_free(output->held, TRUE);
        g_free(output->stream_buffer);
        g_free(output);
        return NULL;
}

/* ---- Writing ------------------------------------------------------------------------------------------------------ */

/* Returns the milliseconds until the alarm; -1: there is none. */
static int msec_to_alarm(const Output *output) {
        gint64 usec = output->alarm.usec - g_get_monotonic_time();

        if (!output->alarm.function)
                return -1;
        return usec <= 0 ? 0 : (int) MIN(usec / 1000 + 1, (gint64) G_MAXINT);
}

static void ring(Output *output) {
        Alarm alarm = output->alarm;

        output_clear_alarm(output);
        alarm.function(alarm.userdata);
}

/* Waits for room. Returns -ECANCELED after a signal, which the code that runs the query then handles. */
static int wait_for_room(Output *output) {
        struct pollfd fds[2] = { { .fd = output->target->fd, .events = POLLOUT },
                                 { .fd = interrupt_fd(), .events = POLLIN } };

        while (!interrupt_pending() && !interrupt_leave()) {
                int n = poll(fds, 2, msec_to_alarm(output));

                if (n > 0 && fds[0].revents)
                        return 0;
                if (n == 0)
                        ring(output);
        }
        return -ECANCELED;
}

/* Returns true if the reader takes data soon. The signal that cancelled an answer has been consumed before this write, and
 * would not interrupt it; hence the time limit. */
static bool is_read(const Target *target) {
        struct pollfd fd = { .fd = target->fd, .events = POLLOUT };
        int n;

        do
                n = poll(&fd, 1, HURRIED_MSEC);
        while (n < 0 && errno == EINTR && !interrupt_pending());
        return n > 0;
}

static int write_directly(Output *output, const char *bytes, size_t size) {
        int r = 0;

        while (size > 0 && r >= 0) {
                ssize_t n;

                if (output->hurried && !is_read(output->target))
                        return -ECANCELED;
                if (output->alarm.function && wait_for_room(output) < 0)
                        return -ECANCELED;
                n = write(output->target->fd, bytes,
                          output->hurried || output->alarm.function ? MIN(size, UNBLOCKED_SIZE) : size);
                if (n >= 0) {
                        bytes += n;
                        size -= (size_t) n;
                } else if (errno == EAGAIN)
                        r = wait_for_room(output);
                else if (errno != EINTR)
                        r = -errno;
                else if (interrupt_pending() || interrupt_leave())
                        r = -ECANCELED;
        }
        return r;
}

static int show_held(Output *output) {
        int r = write_directly(output, output->held->str + output->n_shown, output->held->len - output->n_shown);

        output->n_shown = output->held->len;
        output->due = 0;
        return r;
}

/* Writes everything that the pager was given to the terminal, because the pager does not exist; text that is already on the
 * screen is skipped. */
static int replay(Output *output) {
        char buffer[4096];
        uint64_t offset = output->n_shown;
        ssize_t n = 0;
        int r = 0;

        output->way = WAY_DIRECT;
        while (r >= 0 && (n = pager_read_back(output->pager, offset, buffer, sizeof buffer)) > 0) {
                offset += (uint64_t) n;
                r = write_directly(output, buffer, (size_t) n);
        }
        output->pager = pager_free(output->pager);
        return r < 0 ? r : n < 0 ? (int) n : 0;
}

/* Handles the result of a pager function. If the pager could not be started, the output continues without it. */
static int settle_pager(Output *output, int r) {
        if (r != -ENOEXEC)
                return r;
        output_say("There is no pager %s; .pager names another one.", pager_command(output->options.pager));
        return replay(output);
}

static int to_pager(Output *output, const char *bytes, size_t size) {
        return settle_pager(output, pager_write(output->pager, bytes, size));
}

/* Starts the pager, because the screen is full. */
static int start_pager(Output *output) {
        int r = pager_start(pager_command(output->options.pager), OUTPUT_SPOOL_MAX, &output->pager);

        output->due = 0;
        if (r < 0) {
                output_say("The pager cannot be started: %s", g_strerror(-r));
                output->way = WAY_DIRECT;
                return show_held(output);
        }
        output->way = WAY_PAGER;
        return to_pager(output, output->held->str, output->held->len);
}

static int hold(Output *output, const char *bytes, size_t size) {
        g_string_append_len(output->held, bytes, (gssize) size);
        if (!screen_take(&output->screen, bytes, size))
                return start_pager(output);
        if (output->n_shown > 0)
                return show_held(output);
        if (output->due == 0)
                output->due = g_get_monotonic_time() + HELD_MSEC * 1000;
        return 0;
}

static int send_on_way(Output *output, const char *bytes, size_t size) {
        switch (output->way) {
        case WAY_DIRECT:
                return write_directly(output, bytes, size);
        case WAY_HELD:
                return hold(output, bytes, size);
        case WAY_PAGER:
                return to_pager(output, bytes, size);
        }
        return -EINVAL;
}

static ssize_t on_write(void *userdata, const char *bytes, size_t size) {
        Output *output = userdata;

        if (output->error == 0)
                output->error = send_on_way(output, bytes, size);
        errno = -output->error;
        return output->error == 0 ? (ssize_t) size : 0;
}

/* ---- Answers ------------------------------------------------------------------------------------------------------ */

static Screen screen_of(const Target *target) {
        struct winsize size;

        if (!target->is_terminal || ioctl(target->fd, TIOCGWINSZ, &size) < 0)
                return (Screen) {};
        return (Screen) { .rows = size.ws_row, .columns = size.ws_col };
}

static bool wants_pager(const Output *output) {
        return output->options.interactive && output->target == &output->first && output->screen.rows > 1 &&
               output->screen.columns > 0 && pager_command(output->options.pager);
}

int output_begin(Output *output, const OutputOptions *options, FILE **ret) {
        int r;

        (void) fflush(stdout); /* earlier output of other code must come first */
        output->target = next_target(output);
        r = target_start(output->target);
        if (r < 0) {
                output->target = NULL;
                return r;
        }
        output->options = *options;
        output->error = 0;
        output->hurried = false;
        output->screen = screen_of(output->target);
        output->way = wants_pager(output) ? WAY_HELD : WAY_DIRECT;
        output->n_shown = 0;
        output->file = fopencookie(output, "w", (cookie_io_functions_t) { .write = on_write });
        if (!output->file) {
                output->target = NULL;
                return -ENOMEM;
        }
        (void) setvbuf(output->file, output->stream_buffer, _IOFBF, STREAM_BUFFER_SIZE);
        *ret = output->file;
        return 0;
}

size_t output_width(const Output *output) {
        return screen_of(output->target ?: next_target(output)).columns;
}

bool output_is_terminal(const Output *output) {
        return (output->target ?: next_target(output))->is_terminal;
}

struct pollfd output_pollfd(Output *output, int *timeout_msec) {
        if (!output->file)
                return (struct pollfd) { .fd = -1 };
        if (output->due > 0) {
                int msec = (int) (MAX(output->due - g_get_monotonic_time(), 0) / 1000) + 1;

                if (*timeout_msec < 0 || *timeout_msec > msec)
                        *timeout_msec = msec;
        }
        if (output->way == WAY_PAGER)
                return pager_pollfd(output->pager);
        return (struct pollfd) { .fd = output->target->tells_end ? output->target->fd : -1 };
}

void output_set_alarm(Output *output, gint64 usec, void (*function)(void *userdata), void *userdata) {
        output->alarm = (Alarm) { .function = function, .userdata = userdata, .usec = usec };
}

void output_clear_alarm(Output *output) { output->alarm = (Alarm) { .function = NULL }; }

void output_hurry(Output *output) {
        output->hurried = true;
}

int output_pump(Output *output) {
        int r = 0;

        if (!output->file || output->error < 0)
                return output->file ? output->error : 0;
        if (output->way == WAY_PAGER)
                r = settle_pager(output, pager_pump(output->pager));
        else if (output->way == WAY_HELD && output->due > 0 && g_get_monotonic_time() >= output->due)
                r = show_held(output);
        else if (output->way == WAY_DIRECT && output->target->tells_end) {
                struct pollfd fd = { .fd = output->target->fd };

                r = poll(&fd, 1, 0) > 0 && fd.revents & POLLERR ? -EPIPE : 0;
        }
        return output->error = r;
}

/* Writes the rest that is still held. */
static int finish(Output *output) {
        int r = output->error, q = 0;

        if (r == 0 && output->way == WAY_HELD)
                r = show_held(output);
        if (output->way == WAY_PAGER) {
                q = settle_pager(output, pager_end(output->pager));
                output->pager = pager_free(output->pager);
        }
        return r < 0 ? r : q;
}

int output_end(Output *output) {
        int r, q = 0;

        (void) fclose(output->file); /* on_write() has kept an error in output->error */
        output->file = NULL;
        r = finish(output);
        g_string_truncate(output->held, 0);
        output->due = 0;
        if (output->target == &output->once)
                q = target_close(&output->once);
        output->target = NULL;
        return r < 0 && (r != -EPIPE || q == 0) ? r : q;
}
