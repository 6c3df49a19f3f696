/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See read-ahead.h. The file remains the real VFS's own; only its table of methods is replaced by a copy in
 * which a few methods are ours.
 */
#include "daemon/worker/sqlite/read-ahead.h"

#include <stdbool.h>
#include <string.h>

#define AMOUNT_MIN 512 /* SQLite's smallest page; a smaller read is of the header, and must be fresh */
#define GAP_MAX 65536  /* a sequence may skip this much: pages of other tables and indexes */

static int state_offset;

static struct {
        const ReadAhead *owner; /* NULL: the buffer is empty */
        sqlite3_int64 start, end;
        char bytes[READ_AHEAD_SIZE_MAX];
} buffer;

static ReadAhead *state_of(sqlite3_file *file) {
        return (ReadAhead *) (void *) ((char *) file + state_offset);
}

static void forget(ReadAhead *state) {
        if (buffer.owner == state)
                buffer.owner = NULL;
        state->next = -1;
}

static bool holds(const ReadAhead *state, sqlite3_int64 start, sqlite3_int64 end) {
        return buffer.owner == state && start >= buffer.start && end <= buffer.end;
}

/* Reads the next piece of a sequence, beginning with the requested bytes. False: the file ends before, or cannot be read.
 * This is no error, because then only the requested bytes are read. */
static bool read_piece(sqlite3_file *file, ReadAhead *state, int amount, sqlite3_int64 offset) {
        int size = state->piece < READ_AHEAD_SIZE_MAX / 2 ? 2 * state->piece : READ_AHEAD_SIZE_MAX;

        if (size <= amount)
                return false;
        buffer.owner = NULL;
        if (state->real->xRead(file, buffer.bytes, size, offset) != SQLITE_OK)
                return false;
        buffer.owner = state;
        buffer.start = offset;
        buffer.end = offset + size;
        state->piece = size;
        return true;
}

/* Returns the page size from the file's header. 0: the header is not SQLite's, and SQLite will report that better. */
static int page_size(const unsigned char *first_page) {
        static const char magic[] = "SQLite format 3"; /* with its NUL */
        int size = first_page[16] << 8 | first_page[17];

        if (memcmp(first_page, magic, sizeof magic) != 0)
                return 0;
        return size == 1 ? 65536 : size;
}

/* A page that is not completely in the file is an error. SQLite would take zeros for the missing part, even in rows: it
 * asks for the file's size when a transaction begins, and trusts that the file is not truncated before it ends. But SQLite
 * first reads the first page before it knows the page size, so that read may go past the end of the file. */
static int read_page(sqlite3_file *file, const ReadAhead *state, void *bytes, int amount, sqlite3_int64 offset) {
        int rc = state->real->xRead(file, bytes, amount, offset);

        if (rc == SQLITE_IOERR_SHORT_READ && (offset > 0 || amount <= page_size(bytes)))
                return SQLITE_CORRUPT;
        return rc;
}

static int read_file(sqlite3_file *file, void *bytes, int amount, sqlite3_int64 offset) {
        ReadAhead *state = state_of(file);
        sqlite3_int64 gap = state->next < 0 ? -1 : offset - state->next;

        if (amount < AMOUNT_MIN)
                return state->real->xRead(file, bytes, amount, offset);
        state->next = offset + amount;
        if (holds(state, offset, offset + amount) ||
            (gap >= 0 && gap <= GAP_MAX && read_piece(file, state, amount, offset))) {
                memcpy(bytes, buffer.bytes + (offset - buffer.start), (size_t) amount);
                return SQLITE_OK;
        }
        state->piece = amount;
        return read_page(file, state, bytes, amount, offset);
}

static int close_file(sqlite3_file *file) {
        ReadAhead *state = state_of(file);
        int (*real_close)(sqlite3_file *) = state->real->xClose;

        forget(state);
        return real_close(file);
}

static int lock(sqlite3_file *file, int level) {
        ReadAhead *state = state_of(file);

        forget(state);
        return state->real->xLock(file, level);
}

static int unlock(sqlite3_file *file, int level) {
        ReadAhead *state = state_of(file);

        forget(state);
        return state->real->xUnlock(file, level);
}

static int shm_lock(sqlite3_file *file, int first, int n, int flags) {
        ReadAhead *state = state_of(file);

        forget(state);
        return state->real->xShmLock(file, first, n, flags);
}

void read_ahead_attach(sqlite3_file *file, int offset) {
        ReadAhead *state;

        state_offset = offset;
        state = state_of(file);
        *state = (ReadAhead) { .real = file->pMethods, .methods = *file->pMethods, .next = -1 };
        state->methods.xClose = close_file;
        state->methods.xRead = read_file;
        state->methods.xLock = lock;
        state->methods.xUnlock = unlock;
        state->methods.xShmLock = shm_lock;
        file->pMethods = &state->methods;
}
