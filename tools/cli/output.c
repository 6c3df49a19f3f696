/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Where results go (output.h). Each answer has a stream of its own, whose bytes take one of these ways:
 *
 *      DIRECT   to the descriptor, whole, waiting where it must
 *      HELD     kept, as long as they fit the screen; shown after a moment; what is taller goes to PAGER
 *      PAGER    to the pager's spool
 */
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "feed.h"
#include "format.h"
#include "interrupt.h"
#include "pager.h"
#include "screen.h"
#include "sink.h"

/* A first screen is shown once it was held for so long. */
#define HELD_MSEC 300
#define STREAM_BUFFER_SIZE ((size_t) 65536)

typedef enum Way {
        WAY_DIRECT,
        WAY_HELD,
        WAY_PAGER,
} Way;

/* What a name of output_redirect() leads to. */
typedef struct Target {
        char *name;       /* owned; NULL: there is no such target */
        int fd;           /* owned; -1: a command that was not started yet */
        Feed feed;        /* of a command */
        bool is_terminal;
        bool tells_end;   /* a pipe: poll() says when its reader left */
} Target;

struct Output {
        Target first, redirected, once;
        char *stream_buffer;

        /* The answer under way. */
        FILE *file;       /* NULL: none */
        Target *target;
        OutputOptions options;
        Way way;
        int error;        /* sticky */
        GString *held;    /* of WAY_HELD */
        size_t n_shown;   /* of these */
        gint64 due;       /* when they are shown; 0: nothing is held */
        Screen screen;
        Pager *pager;
        GString *escaped; /* what `filter` gives */
        Sink filter;      /* where options.harmless is not set, and a terminal shows it */
        char filter_buffer[SINK_SIZE_MIN];
};

static void say(const char *format, ...) G_GNUC_PRINTF(1, 2);

static void say(const char *format, ...) {
        g_autoptr(GString) shown = g_string_new("ipcq-cli: ");
        g_autofree char *message = NULL;
        va_list arguments;

        va_start(arguments, format);
        message = g_strdup_vprintf(format, arguments);
        va_end(arguments);
        format_shown_text(shown, message, strlen(message), SIZE_MAX);
        g_string_append_c(shown, '\n');
        fputs(shown->str, stderr);
}

/* ---- Targets ------------------------------------------------------------------------------------------------------ */

/* Standard output is others' as well, and not to be made non-blocking for them: a pipe and a terminal are opened again, where that
 * goes. What cannot be written at once then never keeps us from seeing Ctrl-C. */
static int open_again(int fd) {
        char path[32];

        g_snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        return open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
}

static void open_standard_output(Target *target) {
        struct stat st;
        bool is_pipe = fstat(STDOUT_FILENO, &st) >= 0 && S_ISFIFO(st.st_mode);

        *target = (Target) { .name = g_strdup("stdout"), .fd = -1, .feed = FEED_NONE,
                             .is_terminal = isatty(STDOUT_FILENO), .tells_end = is_pipe };
        if (is_pipe || target->is_terminal)
                target->fd = open_again(STDOUT_FILENO);
        if (target->fd < 0)
                target->fd = STDOUT_FILENO;
}

/* Ends it; -errno of what was still to be written. */
static int close_target(Target *target) {
        int r = 0, status;

        if (target->fd > STDERR_FILENO && close(target->fd) < 0)
                r = -errno;
        if (target->feed.pid > 0) {
                target->feed.fd = -1;
                status = feed_wait(&target->feed, -1);
                if (status > 0 && status != 128 + SIGPIPE)
                        say("The command of .output ended with status %d: %s", status, target->name + 1);
        }
        g_free(target->name);
        *target = (Target) { .fd = -1 };
        return r;
}

static int open_target(Target *target, const char *name) {
        struct stat st;

        *target = (Target) { .fd = -1, .feed = FEED_NONE };
        if (*name != '|') {
                target->fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0666);
                if (target->fd < 0)
                        return -errno;
                target->is_terminal = isatty(target->fd);
                target->tells_end = fstat(target->fd, &st) >= 0 && S_ISFIFO(st.st_mode);
        }
        target->name = g_strdup(name);
        return 0;
}

/* A command starts with the first answer: a pager of the user's own would take the terminal before. */
static int start_command(Target *target) {
        int r;

        if (target->fd >= 0)
                return 0;
        r = feed_start(target->name + 1, &target->feed);
        if (r < 0)
                return r;
        target->fd = target->feed.fd;
        target->tells_end = true;
        return 0;
}

static Target *next_target(const Output *output) {
        return (Target *) (output->once.name ? &output->once : output->redirected.name ? &output->redirected : &output->first);
}

int output_redirect(Output *output, const char *target, bool once, char **ret_message) {
        Target new = { .fd = -1, .feed = FEED_NONE };
        int r;

        if (*target != '\0' && !g_str_equal(target, "stdout")) {
                r = open_target(&new, target);
                if (r < 0) {
                        *ret_message = g_strdup_printf("%s: %s", target, g_strerror(-r));
                        return r;
                }
        }
        r = output->once.name ? close_target(&output->once) : 0;
        if (!once && output->redirected.name) {
                int q = close_target(&output->redirected);

                r = r < 0 ? r : q;
        }
        *(once ? &output->once : &output->redirected) = new;
        if (r < 0)
                *ret_message = g_strdup_printf("What was written before is not whole: %s", g_strerror(-r));
        return r;
}

const char *output_target(const Output *output) {
        return (output->target ?: next_target(output))->name;
}

Output *output_new(void) {
        Output *output = g_new0(Output, 1);

        output->redirected = output->once = (Target) { .fd = -1, .feed = FEED_NONE };
        output->held = g_string_new(NULL);
        output->escaped = g_string_new(NULL);
        output->stream_buffer = g_malloc(STREAM_BUFFER_SIZE);
        open_standard_output(&output->first);
        return output;
}

Output *output_free(Output *output) {
        if (!output)
                return NULL;
        if (output->file)
                (void) output_end(output);
        close_target(&output->once);
        close_target(&output->redirected);
        close_target(&output->first);
        g_string_free(output->held, TRUE);
        g_string_free(output->escaped, TRUE);
        g_free(output->stream_buffer);
        g_free(output);
        return NULL;
}

/* ---- Writing ------------------------------------------------------------------------------------------------------ */

/* Waits for room. -ECANCELED: somebody lost patience, and who runs the query deals with that. */
static int wait_for_room(const Target *target) {
        struct pollfd fds[2] = { { .fd = target->fd, .events = POLLOUT }, { .fd = interrupt_fd(), .events = POLLIN } };

        while (!interrupt_pending() && !interrupt_leave()) {
                if (poll(fds, 2, -1) > 0 && fds[0].revents)
                        return 0;
                if (!interrupt_pending() && interrupt_take() > 0) /* the window was resized, and then Ctrl-C */
                        break;
        }
        return -ECANCELED;
}

static int write_directly(Output *output, const char *bytes, size_t size) {
        int r = 0;

        while (size > 0 && r >= 0) {
                ssize_t n = write(output->target->fd, bytes, size);

                if (n >= 0) {
                        bytes += n;
                        size -= (size_t) n;
                } else if (errno == EAGAIN)
                        r = wait_for_room(output->target);
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

/* There is no pager: all that it was given goes to the terminal, but for what stands there. */
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

/* What the pager said: where it could not be started, it is done without. */
static int settle_pager(Output *output, int r) {
        if (r != -ENOEXEC)
                return r;
        say("There is no pager %s; .pager names another one.", pager_command(output->options.pager));
        return replay(output);
}

static int to_pager(Output *output, const char *bytes, size_t size) {
        return settle_pager(output, pager_write(output->pager, bytes, size));
}

/* The screen is full. */
static int start_pager(Output *output) {
        int r = pager_start(pager_command(output->options.pager), OUTPUT_SPOOL_MAX, &output->pager);

        output->due = 0;
        if (r < 0) {
                say("The pager cannot be started: %s", g_strerror(-r));
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

static int write_escaped(Output *output) {
        int r = send_on_way(output, output->escaped->str, output->escaped->len);

        g_string_truncate(output->escaped, 0);
        return r;
}

static ssize_t on_write(void *userdata, const char *bytes, size_t size) {
        Output *output = userdata;

        if (output->error == 0 && output->filter.harmless) {
                sink_write(&output->filter, bytes, size);
                sink_flush(&output->filter);
                output->error = write_escaped(output);
        } else if (output->error == 0)
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

        (void) fflush(stdout); /* what others wrote there comes before */
        output->target = next_target(output);
        r = start_command(output->target);
        if (r < 0) {
                output->target = NULL;
                return r;
        }
        output->options = *options;
        output->error = 0;
        output->screen = screen_of(output->target);
        output->way = wants_pager(output) ? WAY_HELD : WAY_DIRECT;
        if (output->way == WAY_HELD)
                output->screen.rows--; /* the prompt's */
        output->n_shown = 0;
        output->filter = (Sink) { .string = output->escaped, .buffer = output->filter_buffer,
                                  .size = sizeof output->filter_buffer,
                                  .harmless = !options->harmless && output->target->is_terminal };
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

/* What is still kept back. */
static int finish(Output *output) {
        int r = output->error, q = 0;

        if (r == 0 && output->filter.harmless) {
                sink_finish(&output->filter);
                r = write_escaped(output);
        }
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

        (void) fclose(output->file); /* a failure is kept in output->error */
        output->file = NULL;
        r = finish(output);
        g_string_truncate(output->held, 0);
        g_string_truncate(output->escaped, 0);
        output->due = 0;
        if (output->target == &output->once)
                q = close_target(&output->once);
        output->target = NULL;
        return r < 0 ? r : q;
}
