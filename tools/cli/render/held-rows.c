/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Holds rows in memory, or one row in a file (held-rows.h). */
#include "tools/cli/render/held-rows.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tools/cli/output/files.h"

HeldRows *held_rows_new(void) {
        HeldRows *held = g_new0(HeldRows, 1);

        held->memory = g_string_new(NULL);
        return held;
}

HeldRows *held_rows_free(HeldRows *held) {
        if (!held)
                return NULL;
        held_rows_clear(held);
        g_string_free(held->memory, TRUE);
        g_free(held);
        return NULL;
}

static int open_file(HeldRows *held) {
        int fd = open_scratch(), r;

        if (fd < 0)
                return fd;
        held->file = fdopen(fd, "w+");
        if (held->file)
                return 0;
        r = -errno;
        (void) close(fd);
        return r;
}

int held_rows_begin(HeldRows *held, bool large, Sink **ret) {
        int r = large ? open_file(held) : 0;

        if (r < 0)
                return r;
        held->sink = (Sink) { .buffer = held->buffer, .size = sizeof held->buffer, .stream = held->file };
        if (!large)
                held->sink.string = held->memory;
        *ret = &held->sink;
        return 0;
}

static int map_file(HeldRows *held) {
        void *mapping;
        off_t size;

        errno = 0;
        if (fflush(held->file) != 0 || ferror(held->file))
                return errno > 0 ? -errno : -EIO;
        size = lseek(fileno(held->file), 0, SEEK_END);
        if (size < 0)
                return -errno;
        mapping = mmap(NULL, (size_t) size, PROT_READ, MAP_SHARED, fileno(held->file), 0);
        if (mapping == MAP_FAILED)
                return -errno;
        held->mapping = mapping;
        held->mapping_size = (size_t) size;
        return 0;
}

int held_rows_end(HeldRows *held) {
        int r = 0;

        sink_flush(&held->sink);
        held->n_rows++;
        if (held->file) {
                r = map_file(held);
                (void) fclose(held->file);
                held->file = NULL;
        }
        return r;
}

const char *held_rows_cells(const HeldRows *held) {
        return held->mapping ?: held->memory->str;
}

size_t held_rows_size(const HeldRows *held) {
        return held->mapping ? held->mapping_size : held->memory->len;
}

void held_rows_clear(HeldRows *held) {
        if (held->file)
                (void) fclose(held->file);
        if (held->mapping)
                (void) munmap(held->mapping, held->mapping_size);
        held->file = NULL;
        held->mapping = NULL;
        held->n_rows = 0;
        g_string_truncate(held->memory, 0);
}
