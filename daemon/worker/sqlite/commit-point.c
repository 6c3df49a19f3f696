/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See commit-point.h. The layout of the log is that of SQLite's file format: a header of 32 bytes, then
 * frames, each a header of 24 bytes and a page. The layout of the "-shm" is that of SQLite's wal.c: 4,096 frames in each
 * region of 32 KiB, and 34 fewer in the first.
 */
#include "daemon/worker/sqlite/commit-point.h"

#include <stdint.h>
#include <string.h>

#define LOG_HEADER_SIZE 32
#define FRAME_HEADER_SIZE 24
#define PAGE_SIZE_MIN 512
#define PAGE_SIZE_MAX 65536
#define REGION_SIZE 32768
#define REGION_FRAMES 4096
#define REGION_FRAMES_LACKING 34 /* in the first */
#define PIECE_SIZE 4096          /* in which files are compared */

static const uint8_t journal_magic[8] = { 0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7 };

static int state_offset;

static CommitFile *state_of(sqlite3_file *file) {
        return (CommitFile *) (void *) ((char *) file + state_offset);
}

static uint32_t load_be32(const uint8_t *p) {
        return (uint32_t) p[0] << 24 | (uint32_t) p[1] << 16 | (uint32_t) p[2] << 8 | p[3];
}

static void store_be32(uint8_t *p, uint32_t n) {
        p[0] = (uint8_t) (n >> 24);
        p[1] = (uint8_t) (n >> 16);
        p[2] = (uint8_t) (n >> 8);
        p[3] = (uint8_t) n;
}

/* True if the file is known to have other bytes there. */
static bool differs(sqlite3_file *file, const uint8_t *bytes, int size, sqlite3_int64 offset) {
        uint8_t piece[PIECE_SIZE];

        for (int at = 0, n; at < size; at += n) {
                int rc;

                n = size - at < PIECE_SIZE ? size - at : PIECE_SIZE;
                rc = state_of(file)->below->xRead(file, piece, n, offset + at);
                if (rc == SQLITE_IOERR_SHORT_READ) /* the file ends before */
                        return true;
                if (rc != SQLITE_OK)
                        return false;
                if (memcmp(piece, bytes + at, (size_t) n) != 0)
                        return true;
        }
        return false;
}

static bool may_commit(const CommitPoint *p) {
        return !p->may_commit || p->may_commit(p->userdata);
}

/* ---- the log ---- */

/* Writes what the commit point waits for. */
static int write_last(sqlite3_file *file, const uint8_t *bytes, int size, sqlite3_int64 offset) {
        CommitFile *f = state_of(file);
        int rc = f->below->xWrite(file, bytes, size, offset);

        f->point->passed = rc == SQLITE_OK || f->point->passed || !differs(file, bytes, size, offset);
        return rc;
}

/* The header of the log may have been damaged since SQLite has read it. */
static int find_page_size(sqlite3_file *file) {
        CommitFile *f = state_of(file);
        uint8_t bytes[4];
        uint32_t size;
        int rc;

        if (f->point->page_size > 0)
                return SQLITE_OK;
        rc = f->below->xRead(file, bytes, sizeof bytes, 8);
        if (rc != SQLITE_OK)
                return rc;
        size = load_be32(bytes);
        if (size < PAGE_SIZE_MIN || size > PAGE_SIZE_MAX)
                return SQLITE_CORRUPT;
        f->point->page_size = (int) size;
        return SQLITE_OK;
}

/* Maps the "-shm" as far as SQLite will need it for the frame at `offset`, and all before it. */
static int map_index(sqlite3_file *file, sqlite3_int64 offset) {
        const CommitPoint *p = state_of(file)->point;
        int rc = find_page_size(file), region;
        void volatile *mapped;

        if (rc != SQLITE_OK)
                return rc;
        region = (int) (((offset - LOG_HEADER_SIZE) / (FRAME_HEADER_SIZE + p->page_size) + REGION_FRAMES_LACKING) /
                        REGION_FRAMES);
        return region > 0 ? p->database->pMethods->xShmMap(p->database, region, REGION_SIZE, true, &mapped) : SQLITE_OK;
}

/* The header of a frame whose page is written next. If it has a checksum, SQLite will not compute checksums again. */
static int write_header(sqlite3_file *file, const uint8_t *header, sqlite3_int64 offset) {
        static const uint8_t nothing[FRAME_HEADER_SIZE - 8];
        CommitFile *f = state_of(file);
        CommitPoint *p = f->point;
        bool has_mark = load_be32(header + 4) != 0;
        int rc = has_mark ? map_index(file, offset) : SQLITE_OK;

        if (rc == SQLITE_OK && has_mark && !p->passed && !may_commit(p)) /* SQLite may repeat it, to fill a sector */
                return SQLITE_IOERR_WRITE;
        if (rc == SQLITE_OK)
                rc = f->below->xWrite(file, header, FRAME_HEADER_SIZE, offset);
        if (rc != SQLITE_OK)
                return rc;
        if (memcmp(header + 8, nothing, sizeof nothing) != 0)
                p->bare_at = p->changed_at = 0;
        else if (p->bare_at == 0 || offset < p->bare_at)
                p->bare_at = offset;
        p->page_at = offset + FRAME_HEADER_SIZE;
        p->has_mark = has_mark;
        return rc;
}

/* ---- checksums that SQLite forgets ---- */

typedef struct Checksum {
        uint8_t salt[8];
        bool big_endian;
        uint32_t sum[2];
} Checksum;

static void checksum_add(Checksum *c, const uint8_t *bytes, int size) {
        for (int i = 0; i < size; i += 8) {
                uint32_t a = load_be32(bytes + i), b = load_be32(bytes + i + 4);

                c->sum[0] += (c->big_endian ? a : __builtin_bswap32(a)) + c->sum[1];
                c->sum[1] += (c->big_endian ? b : __builtin_bswap32(b)) + c->sum[0];
        }
}

/* That of the frame before the one at `offset`, or of the log's header. */
static int checksum_begin(sqlite3_file *file, sqlite3_int64 offset, Checksum *ret) {
        CommitFile *f = state_of(file);
        uint8_t header[LOG_HEADER_SIZE], *sum = header + LOG_HEADER_SIZE - 8;
        int rc = f->below->xRead(file, header, sizeof header, 0);

        if (rc == SQLITE_OK && offset > LOG_HEADER_SIZE)
                rc = f->below->xRead(file, sum, 8, offset - f->point->page_size - 8);
        if (rc != SQLITE_OK)
                return rc;
        ret->big_endian = header[3] & 1;
        memcpy(ret->salt, header + 16, sizeof ret->salt);
        ret->sum[0] = load_be32(sum);
        ret->sum[1] = load_be32(sum + 4);
        return rc;
}

/* Adds the frame at `offset`. *ret is its header. */
static int checksum_add_frame(sqlite3_file *file, sqlite3_int64 offset, Checksum *c, uint8_t ret[FRAME_HEADER_SIZE]) {
        CommitFile *f = state_of(file);
        int rc = f->below->xRead(file, ret, FRAME_HEADER_SIZE, offset), size;
        uint8_t piece[PIECE_SIZE];

        if (rc == SQLITE_OK)
                checksum_add(c, ret, 8);
        for (int at = 0; rc == SQLITE_OK && at < f->point->page_size; at += size) {
                size = f->point->page_size - at < PIECE_SIZE ? f->point->page_size - at : PIECE_SIZE;
                rc = f->below->xRead(file, piece, size, offset + FRAME_HEADER_SIZE + at);
                if (rc == SQLITE_OK)
                        checksum_add(c, piece, size);
        }
        memcpy(ret + 8, c->salt, sizeof c->salt);
        store_be32(ret + 16, c->sum[0]);
        store_be32(ret + 20, c->sum[1]);
        return rc;
}

/* The frame at `last` has the mark. The frame before `changed_at` may be one that was taken back: SQLite takes its checksum
 * for that of the last frame. */
static int write_checksums(sqlite3_file *file, sqlite3_int64 last) {
        CommitFile *f = state_of(file);
        const CommitPoint *p = f->point;
        sqlite3_int64 frame_size = FRAME_HEADER_SIZE + p->page_size;
        uint8_t header[FRAME_HEADER_SIZE];
        Checksum c;
        int rc = checksum_begin(file, p->bare_at, &c);

        for (sqlite3_int64 at = p->bare_at; rc == SQLITE_OK && at <= last && at < p->changed_at; at += frame_size) {
                rc = checksum_add_frame(file, at, &c, header);
                if (rc == SQLITE_OK && at == last && p->changed_at - frame_size > last)
                        rc = f->below->xWrite(file, header + 16, 8, p->changed_at - frame_size + 16);
                if (rc == SQLITE_OK)
                        rc = at < last ? f->below->xWrite(file, header, sizeof header, at)
                                       : write_last(file, header, sizeof header, at);
        }
        return rc;
}

static int write_page(sqlite3_file *file, const uint8_t *page, int size, sqlite3_int64 offset) {
        CommitFile *f = state_of(file);
        CommitPoint *p = f->point;
        sqlite3_int64 frame_at = offset - FRAME_HEADER_SIZE;
        int rc;

        if (offset != p->page_at) { /* a spilled page is written again */
                if (p->changed_at == 0 || frame_at < p->changed_at)
                        p->changed_at = frame_at;
                return f->below->xWrite(file, page, size, offset);
        }
        p->page_at = 0;
        if (p->has_mark && p->bare_at == 0)
                return write_last(file, page, size, offset);
        rc = f->below->xWrite(file, page, size, offset);
        return rc == SQLITE_OK && p->has_mark && p->bare_at < p->changed_at ? write_checksums(file, frame_at) : rc;
}

static int log_write(sqlite3_file *file, const void *data, int size, sqlite3_int64 offset) {
        CommitFile *f = state_of(file);
        const uint8_t *bytes = data;
        /* SQLite computes checksums again, frame after frame; or it has just recovered the log, and begins after it */
        bool again = f->point->read_at == offset && f->point->changed_at > 0;

        f->point->read_at = 0;
        if (offset == 0) {
                if (size == LOG_HEADER_SIZE)
                        f->point->page_size = (int) load_be32(bytes + 8);
                return f->below->xWrite(file, bytes, size, offset);
        }
        if (size != FRAME_HEADER_SIZE)
                return write_page(file, bytes, size, offset);
        if (!again)
                return write_header(file, bytes, offset);
        return load_be32(bytes + 4) != 0 ? write_last(file, bytes, size, offset)
                                         : f->below->xWrite(file, bytes, size, offset);
}

static int log_read(sqlite3_file *file, void *bytes, int size, sqlite3_int64 offset) {
        CommitFile *f = state_of(file);

        f->point->read_at = offset;
        return f->below->xRead(file, bytes, size, offset);
}

/* ---- the journal ---- */

static bool ends_by_commit(const CommitPoint *p) {
        return p->commits && p->has_journal && !p->rolls_back;
}

static int journal_size(sqlite3_file *file, sqlite3_int64 *ret_size) {
        CommitFile *f = state_of(file);

        f->point->rolls_back = f->point->commits;
        return f->below->xFileSize(file, ret_size);
}

static int journal_truncate(sqlite3_file *file, sqlite3_int64 size) {
        CommitFile *f = state_of(file);
        bool commits = size == 0 && ends_by_commit(f->point);
        sqlite3_int64 left;
        int rc;

        if (commits && !may_commit(f->point))
                return SQLITE_IOERR_TRUNCATE;
        rc = f->below->xTruncate(file, size);
        if (commits)
                f->point->passed = rc == SQLITE_OK || f->below->xFileSize(file, &left) != SQLITE_OK || left == 0;
        return rc;
}

static int journal_write(sqlite3_file *file, const void *data, int size, sqlite3_int64 offset) {
        CommitFile *f = state_of(file);
        bool is_start = offset == 0 && size >= (int) sizeof journal_magic;
        bool completes = is_start && memcmp(data, journal_magic, sizeof journal_magic) == 0;
        bool commits = is_start && !completes && ends_by_commit(f->point);
        uint8_t magic[sizeof journal_magic];
        int rc;

        if (commits && !may_commit(f->point))
                return SQLITE_IOERR_WRITE;
        rc = f->below->xWrite(file, data, size, offset);
        if (completes) { /* only the connection's own transaction does this; it may have played another's back before */
                f->point->has_journal = true;
                f->point->rolls_back = false;
        }
        if (commits)
                f->point->passed = rc == SQLITE_OK || f->below->xRead(file, magic, sizeof magic, 0) != SQLITE_OK ||
                        memcmp(magic, journal_magic, sizeof magic) != 0;
        return rc;
}

int commit_point_delete_journal(CommitPoint *point, sqlite3_vfs *vfs, const char *name, int sync_directory) {
        bool commits = ends_by_commit(point);
        int exists = false, rc;

        if (commits && !may_commit(point))
                return SQLITE_IOERR_DELETE;
        rc = vfs->xDelete(vfs, name, sync_directory);
        if (!commits)
                return rc;
        if (rc != SQLITE_OK && vfs->xAccess(vfs, name, SQLITE_ACCESS_EXISTS, &exists) != SQLITE_OK)
                exists = false;
        point->passed = !exists;
        return rc;
}

/* ---- both ---- */

static CommitFile *attach(sqlite3_file *file, int offset, CommitPoint *point) {
        CommitFile *f;

        state_offset = offset;
        f = state_of(file);
        *f = (CommitFile) { .below = file->pMethods, .methods = *file->pMethods, .point = point };
        file->pMethods = &f->methods;
        return f;
}

void commit_point_attach_log(sqlite3_file *file, int offset, CommitPoint *point) {
        CommitFile *f = attach(file, offset, point);

        point->page_size = 0; /* another program may have made this log, for pages of another size */
        f->methods.xRead = log_read;
        f->methods.xWrite = log_write;
}

void commit_point_attach_journal(sqlite3_file *file, int offset, CommitPoint *point) {
        CommitFile *f = attach(file, offset, point);

        f->methods.xFileSize = journal_size;
        f->methods.xTruncate = journal_truncate;
        f->methods.xWrite = journal_write;
}

void commit_point_begin(CommitPoint *point) {
        *point = (CommitPoint) { .database = point->database, .page_size = point->page_size };
}

void commit_point_expect(CommitPoint *point) {
        point->commits = true;
        point->rolls_back = false;
}

bool commit_point_was_passed(CommitPoint *point) {
        point->commits = false;
        return point->passed;
}
