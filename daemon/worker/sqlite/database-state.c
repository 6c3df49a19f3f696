/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See database-state.h. The layout of the wal-index header is that of SQLite's wal.c (WalIndexHdr), which is
 * part of the format that programs of different versions share: all numbers are in the byte order of the machine, there are
 * two copies, and a reader that finds them different reads them again.
 */
#include "daemon/worker/sqlite/database-state.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define INDEX_VERSION 3007000u
#define INDEX_HEADER_SIZE 48
#define N_TRIES 100
#define FILE_HEADER_SIZE 100
#define PENDING_BYTE 0x40000000 /* of SQLite's file format; the bytes of RESERVED and SHARED follow */
#define SHARED_FIRST (PENDING_BYTE + 2)
#define SHARED_SIZE 510
#define LOG_WRITER_BYTE 120     /* of the wal-index */
#define CHECKPOINT_INFO 96      /* after the two headers: nBackfill and aReadMark of WalCkptInfo */
#define LOG_FRAME_HEADER_SIZE 24

typedef struct IndexHeader {
        uint32_t version, unused, change;
        uint8_t is_init, big_end_checksum;
        uint16_t page_size;
        uint32_t max_frame, n_pages, frame_checksum[2], salt[2], checksum[2];
} IndexHeader;

_Static_assert(sizeof(IndexHeader) == INDEX_HEADER_SIZE, "the layout is that of WalIndexHdr");

static int state_offset;

static DatabaseState *state_of(sqlite3_file *file) {
        return (DatabaseState *) (void *) ((char *) file + state_offset);
}

static int map_index(sqlite3_file *file, int region, int size, int extends, void volatile **ret) {
        DatabaseState *s = state_of(file);
        int rc = s->below->xShmMap(file, region, size, extends, ret);

        if (region == 0)
                s->index = rc == SQLITE_OK || rc == SQLITE_READONLY ? *ret : NULL;
        return rc;
}

static int unmap_index(sqlite3_file *file, int deletes) {
        DatabaseState *s = state_of(file);

        s->index = NULL;
        return s->below->xShmUnmap(file, deletes);
}

void database_state_attach(sqlite3_file *file, int offset, int fd) {
        DatabaseState *s;

        state_offset = offset;
        s = state_of(file);
        *s = (DatabaseState) { .below = file->pMethods, .methods = *file->pMethods, .fd = fd };
        s->methods.xShmMap = map_index;
        s->methods.xShmUnmap = unmap_index;
        file->pMethods = &s->methods;
}

static bool read_index_header(const volatile void *index, IndexHeader *ret) {
        IndexHeader copies[2];

        for (unsigned i = 0; i < N_TRIES; i++) {
                /* SQLite writes the second copy first */
                memcpy(&copies[0], (const void *) index, sizeof copies[0]);
                __atomic_thread_fence(__ATOMIC_SEQ_CST);
                memcpy(&copies[1], (const char *) (const void *) index + sizeof copies[0], sizeof copies[1]);
                if (memcmp(&copies[0], &copies[1], sizeof copies[0]) == 0)
                        break;
                if (i == N_TRIES - 1)
                        return false;
        }
        *ret = copies[0];
        return ret->version == INDEX_VERSION && ret->is_init;
}

static void read_index(const volatile void *index, FileState *ret) {
        IndexHeader header;

        if (read_index_header(index, &header))
                *ret = (FileState) {
                        .kind = FILE_STATE_WAL,
                        .counter = header.change,
                        .epoch = be32toh(header.salt[0]),
                        .size = header.max_frame,
                        .content = (uint64_t) header.frame_checksum[0] << 32 | header.frame_checksum[1],
                };
}

static uint32_t load_be32(const uint8_t *p) {
        return (uint32_t) p[0] << 24 | (uint32_t) p[1] << 16 | (uint32_t) p[2] << 8 | p[3];
}

/* An empty file is a database, too: all numbers are 0 then. */
static bool read_file(const DatabaseState *s, uint8_t header[static FILE_HEADER_SIZE]) {
        memset(header, 0, FILE_HEADER_SIZE);
        return pread(s->fd, header, FILE_HEADER_SIZE, 0) >= 0;
}

static void read_header(const DatabaseState *s, FileState *ret) {
        uint8_t header[FILE_HEADER_SIZE];

        if (read_file(s, header))
                *ret = (FileState) {
                        .kind = FILE_STATE_ROLLBACK,
                        .counter = load_be32(header + 24),
                        .epoch = load_be32(header + 92),
                        .size = load_be32(header + 28),
                };
}

void database_state_read(sqlite3_file *file, FileState *ret) {
        const DatabaseState *s = state_of(file);

        if (s->index)
                read_index(s->index, ret);
        else
                read_header(s, ret);
}

bool database_state_header(sqlite3_file *file, DatabaseHeader *ret) {
        uint8_t header[FILE_HEADER_SIZE];

        if (!read_file(state_of(file), header))
                return false;
        *ret = (DatabaseHeader) { .wal = header[18] == 2, .schema = load_be32(header + 40) };
        return true;
}

bool database_state_is_wal(sqlite3_file *file) {
        return state_of(file)->index;
}

uint64_t database_state_log_behind(sqlite3_file *file, int mark) {
        const volatile uint32_t *info, *index = state_of(file)->index;
        IndexHeader header;
        uint32_t backfilled, page_size;

        if (!index || !read_index_header(index, &header))
                return 0;
        info = index + CHECKPOINT_INFO / sizeof *info;
        backfilled = info[0];
        if (backfilled < info[1 + mark] || backfilled > header.max_frame)
                return 0;
        page_size = (header.page_size & 0xfe00u) + ((header.page_size & 1u) << 16);
        return (uint64_t) (header.max_frame - backfilled) * (LOG_FRAME_HEADER_SIZE + page_size);
}

/* Asks the kernel about a lock, which conflicts only with that of a writer. This changes no lock. */
static int is_locked(int fd, off_t start, off_t size) {
        struct flock lock = { .l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = start, .l_len = size };

        return fcntl(fd, F_GETLK, &lock) < 0 ? -errno : lock.l_type == F_WRLCK;
}

int database_state_is_changing(sqlite3_file *file, int log_index_fd) {
        const DatabaseState *s = state_of(file);

        if (s->index)
                return is_locked(log_index_fd, LOG_WRITER_BYTE, 1);
        int r = is_locked(s->fd, PENDING_BYTE, 1);
        return r != 0 ? r : is_locked(s->fd, SHARED_FIRST, SHARED_SIZE);
}
