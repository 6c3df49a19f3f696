/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Memory of long rows (row-memory.h). Library.
 *
 * Blocks of the file are allocated before they are mapped: writing to a mapped page for which the disk has no room would
 * raise SIGBUS.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "client-lib/row-memory.h"
#include "client-lib/util.h"

static int open_file(void) {
        const char *folder = secure_getenv("TMPDIR");
        int fd;

        if (!folder || *folder != '/')
                folder = "/tmp";
        fd = open(folder, O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, 0600);
        return fd < 0 ? -errno : fd;
}

/* Allocates room in the file. A file that would exceed RLIMIT_FSIZE would raise SIGXFSZ, so the limit is checked first. */
static bool allocate(int fd, size_t size) {
        struct rlimit limit;

        if (getrlimit(RLIMIT_FSIZE, &limit) < 0 || limit.rlim_cur < size)
                return false;
        return posix_fallocate(fd, 0, (off_t) size) == 0;
}

static uint8_t *map_file(int fd, size_t size) {
        void *bytes;

        if (!allocate(fd, size))
                return NULL;
        bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        return bytes != MAP_FAILED ? bytes : NULL;
}

static void release(RowMemory *memory, uint8_t *bytes, size_t size) {
        if (memory->fd < 0) {
                free(bytes);
                return;
        }
        (void) munmap(bytes, size);
        memory->fd = safe_close(memory->fd);
}

/* Copies the content to the new memory, and releases the old one. */
static uint8_t *move(RowMemory *memory, uint8_t *bytes, size_t size, int fd, uint8_t *to, size_t new_size) {
        if (size > 0)
                memcpy(to, bytes, size < new_size ? size : new_size);
        release(memory, bytes, size);
        memory->fd = fd;
        return to;
}

static uint8_t *move_to_file(RowMemory *memory, uint8_t *bytes, size_t size, size_t new_size) {
        int fd = open_file();
        uint8_t *mapped;

        if (fd < 0)
                return NULL;
        mapped = map_file(fd, new_size);
        if (!mapped) {
                (void) safe_close(fd);
                return NULL;
        }
        return move(memory, bytes, size, fd, mapped, new_size);
}

/* Resizes the file and its mapping. */
static uint8_t *resize_file(RowMemory *memory, uint8_t *bytes, size_t size, size_t new_size) {
        void *resized;

        if (new_size > size && !allocate(memory->fd, new_size))
                return NULL;
        resized = mremap(bytes, size, new_size, MREMAP_MAYMOVE);
        if (resized == MAP_FAILED)
                return NULL;
        if (new_size < size)
                (void) ftruncate(memory->fd, (off_t) new_size); /* blocks that stay allocated are freed with the file */
        return resized;
}

uint8_t *row_memory_resize(void *userdata, uint8_t *bytes, size_t size, size_t new_size) {
        RowMemory *memory = userdata;
        uint8_t *resized = NULL;

        if (new_size == 0) {
                release(memory, bytes, size);
                return NULL;
        }
        if (memory->fd >= 0)
                resized = resize_file(memory, bytes, size, new_size);
        else if (new_size > memory->max)
                resized = move_to_file(memory, bytes, size, new_size);
        if (resized)
                return resized;
        if (memory->fd < 0)
                return realloc(bytes, new_size);
        resized = malloc(new_size);
        return resized ? move(memory, bytes, size, -1, resized, new_size) : NULL;
}
