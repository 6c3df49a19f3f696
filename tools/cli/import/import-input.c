/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A file in a window, see import-input.h. */
#include "tools/cli/import/import-input.h"

#include <errno.h>
#include <glib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int import_input_init(ImportInput *input, int fd, size_t chunk, size_t max) {
        struct stat status;

        *input = (ImportInput) { .fd = fd, .chunk = chunk, .max = max, .newline = '\n' };
        if (fstat(fd, &status) < 0)
                return -errno;
        input->total = (uint64_t) status.st_size;
        return 0;
}

void import_input_done(ImportInput *input) {
        if (input->fd >= 0)
                (void) close(input->fd);
        g_free(input->text);
        *input = (ImportInput) { .fd = -1 };
}

static void enlarge(ImportInput *input) {
        input->allocated = MIN(MAX(input->chunk, input->allocated * 2), input->max);
        input->text = g_realloc(input->text, input->allocated);
}

static void pass(ImportInput *input, size_t used) {
        input->size -= used;
        input->passed += used;
        memmove(input->text, input->text + used, input->size);
}

int import_input_more(ImportInput *input, size_t used) {
        ssize_t n;

        if (used > 0)
                pass(input, used);
        if (input->size == input->allocated && input->allocated == input->max)
                return -EFBIG;
        if (input->size == input->allocated)
                enlarge(input);
        do
                n = read(input->fd, input->text + input->size, input->allocated - input->size);
        while (n < 0 && errno == EINTR);
        if (n < 0)
                return -errno;
        input->size += (size_t) n;
        input->is_last = n == 0;
        return 0;
}

int import_input_find_newline(ImportInput *input, bool has_quotes) {
        bool quoted = false, has_cr = false;
        char buffer[4096];
        off_t offset = 0;
        ssize_t n;

        while ((n = pread(input->fd, buffer, sizeof buffer, offset)) != 0) {
                if (n < 0 && errno != EINTR)
                        return -errno;
                for (ssize_t i = 0; i < n; i++) {
                        quoted ^= has_quotes && buffer[i] == '"';
                        if (!quoted && buffer[i] == '\n')
                                return 0;
                        has_cr |= !quoted && buffer[i] == '\r';
                }
                offset += MAX(n, 0);
        }
        input->newline = has_cr ? '\r' : '\n';
        return 0;
}

static int skip_mark(ImportInput *input) {
        static const char mark[] = "\357\273\277";
        int r = 0;

        while (r >= 0 && !input->is_last && input->size < strlen(mark))
                r = import_input_more(input, 0);
        if (r >= 0 && input->size >= strlen(mark) && memcmp(input->text, mark, strlen(mark)) == 0)
                pass(input, strlen(mark));
        return r;
}

static int skip_line(ImportInput *input) {
        const char *newline;

        while (!(newline = input->size > 0 ? memchr(input->text, input->newline, input->size) : NULL) && !input->is_last) {
                int r = import_input_more(input, input->size);

                if (r < 0)
                        return r;
        }
        pass(input, newline ? (size_t) (newline + 1 - input->text) : input->size);
        return 0;
}

int import_input_rewind(ImportInput *input, uint64_t n_lines) {
        int r;

        if (lseek(input->fd, 0, SEEK_SET) < 0)
                return -errno;
        input->size = 0;
        input->passed = 0;
        input->is_last = false;
        r = skip_mark(input);
        for (; n_lines > 0 && r >= 0 && (input->size > 0 || !input->is_last); n_lines--)
                r = skip_line(input);
        return r;
}
