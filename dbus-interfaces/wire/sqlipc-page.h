/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The page format: the bytes in a pipe. Pure. This header is normative; docs/man/sqlipc-page.5.rst renders it for other
 * languages, page-encoder.[ch] writes it, page-decoder.[ch] reads it, tests/vectors/ holds examples.
 *
 * Everything is little-endian. A stream is a series of frames, each starting at a multiple of 8:
 *
 *      offset  size
 *           0     4  size      bytes of payload, without this header and without padding
 *           4     1  kind      FrameKind
 *           5     1  version   SQLIPC_PAGE_VERSION
 *           6     2  flags     FRAME_MORE or 0; an unknown bit is an error
 *           8     8  run       number of the run, as the method returned it
 *          16  size  payload
 *            ...0-7  padding   zeros up to the next multiple of 8
 *
 * The whole frame, header and padding included, is at most one page (negotiated, SQLIPC_PAGE_SIZE_MIN..MAX, a power of two).
 *
 * A run is   COLUMNS  (ROWS | BIG_ROW)*  (END | ERROR)   or, if it fails before its first step, ERROR alone.
 * End-of-file anywhere else is a broken stream, never "no more rows". Frames of two runs never mix: the next run of a
 * statement starts after END or ERROR of the last. The pipe of Query carries one run and stays open after END or ERROR,
 * silent, until its reader closes it: a reader must not wait for end-of-file there.
 *
 * A payload that does not fit one frame is continued: FRAME_MORE is set on each frame of the series except the last, and the
 * payloads joined are the payload. A frame with FRAME_MORE has at least one byte of payload; the last of a series may have
 * none. Only COLUMNS and BIG_ROW may be continued. ERROR may follow any frame, also one with FRAME_MORE: a row that was
 * under way is then void. END never follows an unfinished series.
 *
 *   COLUMNS   u32 n_columns (0 for a statement without a result), u32 page_size, then 2 x n_columns u32 end offsets (name
 *             0, declared type 0, name 1, ...), counted from the end of the offsets, then the strings, each followed by a
 *             NUL, then the extension. An absent declared type (the column is an expression) takes no bytes at all; an empty
 *             one takes its NUL. page_size is at most the negotiated size, and no later frame of the run is larger.
 *   ROWS      u32 n_rows (at least 1), then that many rows, one after the other without padding.
 *   BIG_ROW   one row, larger than a page.
 *   END       u64 n_rows, u64 n_bytes (frames of this run before this one), u64 usec (from the job's arrival to its end,
 *             waits for the reader included), then SQLite's own counters for the run (sqlite3_stmt_status): u64 vm_steps,
 *             u64 fullscan_steps, u64 sorts, u64 autoindexes. Then, if the run wrote, and so is committed: i64 n_changes
 *             (sqlite3_changes64, or -1: it did not write), i64 last_rowid (sqlite3_last_insert_rowid). Then, if the service
 *             knows it: u64 sequence, the change sequence of the database (not 0). Each change that the run has not seen has
 *             a larger number; the run's own change has not. Then, after PRAGMA foreign_keys with a value: u64 foreign_keys
 *             (ForeignKeys), the setting that the client must send with its later requests; a value that the reader does not
 *             know is none. The sequence may be 0 then, for unknown. A field that is known has all fields before it. More
 *             may follow: a reader ignores the bytes that it does not know. A reader counts rows and bytes itself, and if
 *             n_rows or n_bytes differ the stream is broken.
 *   ERROR     u32 number (sqlipc-errors.h, not 0), i32 extended SQLite code (0: not SQLite's), i32 byte offset into the SQL
 *             (-1: none), u32 size of the message, the message in UTF-8, a NUL after it, then the extension. A message of
 *             more than SQLIPC_MESSAGE_SIZE_MAX bytes was cut there and ends in U+2026.
 *
 * END and ERROR fit one frame of SQLIPC_PAGE_SIZE_MIN bytes, however many fields later versions of the writer add. A run
 * without columns has neither ROWS nor BIG_ROW.
 *
 * An *extension* is the rest of a payload: items, one after the other without padding, or nothing. An item is u32 tag, u32
 * size, and `size` bytes. The last item ends at the end of the payload. Tags are assigned here, per kind of frame; none is
 * assigned yet. A writer uses a tag at most once in a payload. A reader skips the tags that it does not know, and of several
 * items with a known tag it uses the first.
 *
 * How the format grows: fields after END, items and new tags do not change the version, because every reader accepts them.
 * Anything else (kinds of frames, flags, types of values) needs another version. A client names the highest version that it
 * reads (option `page-version`, 1 if not given), and the service answers with the version that it writes (`page-version` in
 * `info`), at most that. All frames of the stream, and requests on a channel, then carry this version.
 *
 * A row is
 *
 *      n_columns  types   one byte a value, ValueType
 *    4*n_columns  ends    u32 a value: the end of its bytes, counted from the first byte after `ends`
 *                 data    the values, one after the other
 *
 *   NULL takes no bytes; INTEGER 8, two's complement; REAL 8, IEEE 754 binary64, every bit pattern that SQLite returns;
 *   TEXT its bytes (any: NULs and invalid UTF-8 too) and a NUL after them; BLOB its bytes.
 *   Value i starts where value i-1 ends, so access is O(1); nothing is aligned: load by copy.
 */
#ifndef SQLIPC_DBUS_INTERFACES_WIRE_SQLIPC_PAGE_H
#define SQLIPC_DBUS_INTERFACES_WIRE_SQLIPC_PAGE_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define SQLIPC_PAGE_VERSION 1

#define SQLIPC_PAGE_SIZE_MIN ((size_t) 4096)
#define SQLIPC_PAGE_SIZE_MAX ((size_t) 1048576)
#define SQLIPC_PAGE_SIZE_DEFAULT ((size_t) 262144)

/* Bounds that a decoder may hold a stream to. */
#define SQLIPC_N_COLUMNS_MAX ((size_t) 32767)             /* SQLite's own (SQLITE_MAX_COLUMN) */
#define SQLIPC_COLUMNS_SIZE_MAX ((size_t) 1048576)        /* payload of COLUMNS, joined */
#define SQLIPC_MESSAGE_SIZE_MAX ((size_t) 2048)           /* bytes of an error message, the NUL not counted */
#define SQLIPC_ROW_SIZE_MAX ((size_t) 1073741824)         /* one row; RowSizeMax= cannot exceed it */

#define FRAME_HEADER_SIZE ((size_t) 16)
#define FRAME_ALIGN ((size_t) 8)
#define FRAME_END_SIZE ((size_t) 56)                      /* payload of END, at least */
#define FRAME_END_WROTE_SIZE ((size_t) 72)                /* the same for a run that wrote */
#define FRAME_END_SEQUENCE_SIZE ((size_t) 80)             /* the same if the change sequence is known */
#define FRAME_END_SETTING_SIZE ((size_t) 88)              /* the same if the run has set foreign keys */
#define FRAME_ERROR_HEAD_SIZE ((size_t) 16)               /* payload of ERROR before the message */
#define ITEM_HEAD_SIZE ((size_t) 8)                       /* tag and size of an item of an extension */

typedef enum FrameKind {
        FRAME_COLUMNS = 1,
        FRAME_ROWS = 2,
        FRAME_BIG_ROW = 3,
        FRAME_END = 4,
        FRAME_ERROR = 5,
} FrameKind;

enum { FRAME_MORE = 1 << 0 };

/* SQLite's own numbers (SQLITE_INTEGER...). */
typedef enum ValueType {
        VALUE_INTEGER = 1,
        VALUE_REAL = 2,
        VALUE_TEXT = 3,
        VALUE_BLOB = 4,
        VALUE_NULL = 5,
} ValueType;

/* If foreign keys are enforced for a client. Settings belong to the client, which sends them with its requests. */
typedef enum ForeignKeys {
        FOREIGN_KEYS_CONFIGURED, /* as ForeignKeys= of the database says */
        FOREIGN_KEYS_OFF,
        FOREIGN_KEYS_ON,
        FOREIGN_KEYS_MAX_,
} ForeignKeys;

/* The fields of END, in order. */
typedef struct EndCounters {
        uint64_t n_rows, n_bytes, usec, vm_steps, fullscan_steps, sorts, autoindexes;
        int64_t n_changes, last_rowid; /* if it wrote */
        uint64_t sequence;             /* of changes; 0: not known */
        uint64_t foreign_keys;         /* ForeignKeys: what the run has set; CONFIGURED: nothing */
        bool wrote;                    /* not in the frame: n_changes is not -1 */
} EndCounters;

/* Size of a row's types and ends, which precede its data. */
#define ROW_HEAD_SIZE(n_columns) ((size_t) (n_columns) * 5)

static inline size_t frame_padded(size_t size) {
        return (size + (FRAME_ALIGN - 1)) & ~(FRAME_ALIGN - 1);
}

static inline uint16_t load_le16(const void *p) { uint16_t v; memcpy(&v, p, sizeof v); return le16toh(v); }
static inline uint32_t load_le32(const void *p) { uint32_t v; memcpy(&v, p, sizeof v); return le32toh(v); }
static inline uint64_t load_le64(const void *p) { uint64_t v; memcpy(&v, p, sizeof v); return le64toh(v); }
static inline void store_le16(void *p, uint16_t v) { v = htole16(v); memcpy(p, &v, sizeof v); }
static inline void store_le32(void *p, uint32_t v) { v = htole32(v); memcpy(p, &v, sizeof v); }
static inline void store_le64(void *p, uint64_t v) { v = htole64(v); memcpy(p, &v, sizeof v); }
static inline double load_le_double(const void *p) {
        uint64_t u = load_le64(p);
        double d;

        memcpy(&d, &u, sizeof d);
        return d;
}

static inline void store_le_double(void *p, double d) {
        uint64_t u;

        memcpy(&u, &d, sizeof u);
        store_le64(p, u);
}

#endif
