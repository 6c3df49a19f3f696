/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Runs a pager (pager.h). */
#include "tools/cli/output/pager.h"

#include <errno.h>
#include <glib.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "tools/cli/output/feed.h"
#include "tools/cli/output/interrupt.h"
#include "tools/cli/output/spool.h"

/* The time to wait for a pager that closed its input: it may be about to exit because the program does not exist, and then
 * all rows must go to the terminal. A pager that stays open shows its data meanwhile. */
enum { END_MSEC = 2000 };

struct Pager {
        Feed feed;
        Spool spool;
        struct termios terminal;
        bool has_terminal; /* `terminal` holds the original settings */
        int error;         /* sticky */
};

const char *pager_command(const char *setting) {
        const char *command = setting ?: g_getenv("PAGER"), *term = g_getenv("TERM");

        if (!command)
                command = "less -SR";
        if (*command == '\0' || !term || g_str_equal(term, "dumb"))
                return NULL;
        return command;
}

/* Starts the pager. A plain "less" must show our colours, too; options that the user has set in LESS stay. */
static int start(const char *command, Feed *ret) {
        bool has_options = g_getenv("LESS");
        int r;

        if (!has_options)
                g_setenv("LESS", "SR", TRUE);
        r = feed_start(command, ret);
        if (!has_options)
                g_unsetenv("LESS");
        return r;
}

int pager_start(const char *command, uint64_t ahead_max, Pager **ret) {
        Pager *pager = g_new0(Pager, 1);
        int r;

        pager->feed = FEED_NONE;
        pager->spool = SPOOL_NONE;
        pager->has_terminal = tcgetattr(STDOUT_FILENO, &pager->terminal) >= 0;
        r = spool_open(&pager->spool, ahead_max);
        if (r >= 0)
                r = start(command, &pager->feed);
        if (r < 0) {
                pager_free(pager);
                return r;
        }
        *ret = pager;
        return 0;
}

Pager *pager_free(Pager *pager) {
        if (!pager)
                return NULL;
        feed_close(&pager->feed);
        if (pager->feed.pid > 0)
                (void) feed_wait(&pager->feed, -1);
        spool_close(&pager->spool);
        g_free(pager);
        return NULL;
}

/* Restores the terminal after a pager was killed, which may have left it without echo and on the alternate screen. */
static void restore_terminal(const Pager *pager, int status) {
        static const char main_screen[] = "\033[?1049l\033[?25h\r";

        if (pager->has_terminal)
                (void) tcsetattr(STDOUT_FILENO, TCSADRAIN, &pager->terminal);
        if (status == 128 + SIGKILL || status == 128 + SIGSEGV || status == 128 + SIGABRT)
                (void) !write(STDOUT_FILENO, main_screen, strlen(main_screen));
}

/* Handles a pager that no longer reads. */
static int note_end(Pager *pager, int timeout_msec) {
        int status;

        feed_close(&pager->feed);
        if (pager->feed.pid == 0)
                return pager->error;
        status = feed_wait(&pager->feed, timeout_msec);
        if (status == -ETIMEDOUT) /* it still shows its data */
                return pager->error;
        restore_terminal(pager, status);
        if ((status == FEED_NOT_FOUND || status == FEED_NOT_EXECUTABLE) && pager->spool.read <= SPOOL_KEPT)
                pager->error = -ENOEXEC;
        return pager->error;
}

/* Writes as much as the pipe takes. Returns 1 if all is written. */
static int hand_on(Pager *pager) {
        char buffer[65536];

        while (pager->spool.read < pager->spool.written) {
                ssize_t size = spool_peek(&pager->spool, pager->spool.read, buffer, sizeof buffer), n;

                if (size <= 0)
                        return size < 0 ? (int) size : -EIO;
                n = write(pager->feed.fd, buffer, (size_t) size);
                if (n < 0 && errno == EAGAIN)
                        return 0;
                if (n < 0 && errno != EINTR)
                        return -errno;
                spool_advance(&pager->spool, n > 0 ? (size_t) n : 0);
        }
        return 1;
}

int pager_pump(Pager *pager) {
        struct pollfd fd = pager_pollfd(pager);
        int r;

        if (pager->error < 0)
                return pager->error;
        r = hand_on(pager);
        if (r > 0 && poll(&fd, 1, 0) > 0 && fd.revents & POLLERR) /* without a write, poll() shows that it left */
                r = -EPIPE;
        if (r >= 0)
                return 0;
        pager->error = r;
        return note_end(pager, END_MSEC);
}

/* Adds a last line that tells why the result ends there. */
static void tell_too_much(Pager *pager) {
        g_autofree char *line = g_strdup_printf("\n[The query was ended here: %" PRIu64 " MiB wait for the pager.]\n",
                                                pager->spool.max / 1024 / 1024);

        pager->spool.max += strlen(line);
        (void) spool_write(&pager->spool, line, strlen(line));
}

int pager_write(Pager *pager, const char *bytes, size_t size) {
        int r;

        if (pager->error < 0)
                return pager->error;
        r = spool_write(&pager->spool, bytes, size);
        if (r == -EFBIG) {
                tell_too_much(pager);
                r = -EPIPE;
        }
        return r < 0 ? pager->error = r : pager_pump(pager);
}

struct pollfd pager_pollfd(const Pager *pager) {
        bool waits = pager->spool.read < pager->spool.written;

        return (struct pollfd) { .fd = pager->feed.fd, .events = waits ? POLLOUT : 0 };
}

int pager_end(Pager *pager) {
        struct pollfd fds[2] = { {}, { .fd = interrupt_fd(), .events = POLLIN } };
        int r = 0;

        /* After an error of writing to the spool, the pager still gets the data before it. */
        while (r >= 0 && pager->feed.fd >= 0 && pager->spool.read < pager->spool.written && !interrupt_leave()) {
                fds[0] = pager_pollfd(pager);
                if (poll(fds, 2, -1) > 0 && fds[1].revents)
                        (void) interrupt_take(); /* the signal was meant for the pager */
                r = hand_on(pager);
        }
        if (r < 0 && pager->error == 0)
                pager->error = r;
        return note_end(pager, -1);
}

ssize_t pager_read_back(const Pager *pager, uint64_t offset, char *buffer, size_t size) {
        return spool_peek(&pager->spool, offset, buffer, size);
}
