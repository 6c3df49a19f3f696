/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See vfs.h. SQLite's registry of VFSs is global, so the counters here are global, too.
 *
 * A sync that fails is noted, because SQLite has one code for a full disk and for one that is broken.
 *
 * A temporary file is wrapped: a TempFile, followed in the same allocation by the file of the real VFS. Any other file is
 * the real VFS's own from its first byte, so that SQLite calls it directly; a database is followed by a DatabaseFile.
 * Temporary files need no xShmMap, xFetch or sector tricks; other calls are passed on.
 */
#include "daemon/worker/sqlite/vfs.h"

#include <sqlite3.h>
#include <stddef.h>
#include <string.h>

#include "daemon/worker/core/temp-space.h"
#include "daemon/worker/sqlite/commit-point.h"
#include "daemon/worker/sqlite/database-state.h"
#include "daemon/worker/sqlite/read-ahead.h"
#include "daemon/worker/sqlite/reader-lock.h"

typedef struct TempFile {
        sqlite3_file base;
        sqlite3_int64 size; /* as counted by temp-space.h */
        bool asks;          /* it was opened while there was `temp_progress`: a read of another connection must not fail */
} TempFile;

typedef struct DatabaseFile {
        ReadAhead ahead;
        ReaderLock lock;
        DatabaseState state;
        sqlite3_io_methods methods; /* of a file that never changes */
} DatabaseFile;

_Static_assert(sizeof(CommitFile) <= sizeof(DatabaseFile), "it is beside a log or journal");

/* Space that is allocated beside a file of the real VFS. */
#define BESIDE_SIZE (sizeof(TempFile) > sizeof(DatabaseFile) ? sizeof(TempFile) : sizeof(DatabaseFile))

static sqlite3_vfs *real_vfs;
static sqlite3_vfs our_vfs;
static uint64_t temp_size_max;
static int (*real_sync)(sqlite3_file *file, int flags); /* NULL: no file that is written was opened yet */
static bool temp_limit_hit, temp_disk_full, temp_open_failed;
static EngineProgress temp_progress; /* NULL: none */
static bool temp_is_spent;           /* see vfs_end_temp_writes() */
static void *temp_userdata;          /* borrowed */
static VfsFindName find_name;        /* NULL: no ATTACH is under way */
static void *find_userdata;          /* borrowed */

enum {
        TEMP_FLAGS = SQLITE_OPEN_TEMP_DB | SQLITE_OPEN_TRANSIENT_DB | SQLITE_OPEN_TEMP_JOURNAL | SQLITE_OPEN_SUBJOURNAL,
};

static sqlite3_file *real(sqlite3_file *file) {
        return (sqlite3_file *) ((TempFile *) file + 1);
}

/* The file has become smaller. */
static void count(TempFile *t, sqlite3_int64 size) {
        temp_space_give((uint64_t) (t->size - size));
        t->size = size;
}

static int temp_close(sqlite3_file *file) {
        count((TempFile *) file, 0);
        return real(file)->pMethods->xClose(real(file));
}

static int temp_read(sqlite3_file *file, void *buffer, int size, sqlite3_int64 offset) {
        if (((const TempFile *) file)->asks && temp_progress && temp_progress(temp_userdata) != 0)
                return SQLITE_IOERR_READ;
        return real(file)->pMethods->xRead(real(file), buffer, size, offset);
}

static int temp_write(sqlite3_file *file, const void *buffer, int size, sqlite3_int64 offset) {
        TempFile *t = (TempFile *) file;
        sqlite3_int64 more = offset + size > t->size ? offset + size - t->size : 0;
        int rc;

        if (t->asks && temp_is_spent)
                return SQLITE_OK;
        if (!temp_space_take((uint64_t) more, temp_size_max)) {
                temp_limit_hit = true;
                return SQLITE_FULL;
        }
        rc = real(file)->pMethods->xWrite(real(file), buffer, size, offset);
        temp_disk_full = temp_disk_full || rc == SQLITE_FULL;
        if (rc == SQLITE_OK)
                t->size += more;
        else
                temp_space_give((uint64_t) more);
        return rc;
}

static int temp_truncate(sqlite3_file *file, sqlite3_int64 size) {
        TempFile *t = (TempFile *) file;
        int rc = real(file)->pMethods->xTruncate(real(file), size);

        if (rc == SQLITE_OK && size < t->size)
                count(t, size);
        return rc;
}

static int temp_sync(sqlite3_file *file, int flags) {
        return real(file)->pMethods->xSync(real(file), flags);
}

static int temp_file_size(sqlite3_file *file, sqlite3_int64 *ret_size) {
        return real(file)->pMethods->xFileSize(real(file), ret_size);
}

static int temp_lock(sqlite3_file *file, int level) {
        return real(file)->pMethods->xLock(real(file), level);
}

static int temp_unlock(sqlite3_file *file, int level) {
        return real(file)->pMethods->xUnlock(real(file), level);
}

static int temp_check_reserved(sqlite3_file *file, int *ret) {
        return real(file)->pMethods->xCheckReservedLock(real(file), ret);
}

/* Ignores the size hint: the real VFS would grow the file, and our count would not include that. */
static int temp_file_control(sqlite3_file *file, int op, void *arg) {
        if (op == SQLITE_FCNTL_SIZE_HINT || op == SQLITE_FCNTL_CHUNK_SIZE)
                return SQLITE_OK;
        return real(file)->pMethods->xFileControl(real(file), op, arg);
}

static int temp_sector_size(sqlite3_file *file) {
        return real(file)->pMethods->xSectorSize(real(file));
}

static int temp_characteristics(sqlite3_file *file) {
        return real(file)->pMethods->xDeviceCharacteristics(real(file));
}

static const sqlite3_io_methods temp_methods = {
        .iVersion = 1,
        .xClose = temp_close,
        .xRead = temp_read,
        .xWrite = temp_write,
        .xTruncate = temp_truncate,
        .xSync = temp_sync,
        .xFileSize = temp_file_size,
        .xLock = temp_lock,
        .xUnlock = temp_unlock,
        .xCheckReservedLock = temp_check_reserved,
        .xFileControl = temp_file_control,
        .xSectorSize = temp_sector_size,
        .xDeviceCharacteristics = temp_characteristics,
};

static int open_temp(const char *name, sqlite3_file *file, int flags, int *ret_flags) {
        TempFile *t = (TempFile *) file;
        int rc;

        *t = (TempFile) { .asks = temp_progress };
        memset(real(file), 0, (size_t) real_vfs->szOsFile);
        rc = real_vfs->xOpen(real_vfs, name, real(file), flags, ret_flags);
        /* a file that failed to open must have no methods, otherwise SQLite closes it */
        if (rc == SQLITE_OK)
                t->base.pMethods = &temp_methods;
        else
                temp_open_failed = true;
        return rc;
}

/* ---- failures to sync ---- */

static int sync_file(sqlite3_file *file, int flags) {
        int rc = real_sync(file, flags), error = 0;

        if (rc != SQLITE_OK && file->pMethods->xFileControl(file, SQLITE_FCNTL_LAST_ERRNO, &error) == SQLITE_OK)
                file_names_note_errno(error);
        return rc;
}

/* The real VFS has a few constant sets of methods, with one xSync. */
static void watch_sync(sqlite3_file *file) {
        static struct {
                const sqlite3_io_methods *below;
                sqlite3_io_methods methods;
        } sets[4];

        if (real_sync && file->pMethods->xSync != real_sync)
                return;
        real_sync = file->pMethods->xSync;
        for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
                if (!sets[i].below) {
                        sets[i].below = file->pMethods;
                        sets[i].methods = *file->pMethods;
                        sets[i].methods.xSync = sync_file;
                }
                if (sets[i].below == file->pMethods) {
                        file->pMethods = &sets[i].methods;
                        return;
                }
        }
}

/* ---- files of databases ---- */

static int never_changes(sqlite3_file *file) {
        (void) file;
        return SQLITE_IOCAP_IMMUTABLE;
}

static DatabaseFile *beside(sqlite3_file *file) {
        return (DatabaseFile *) (void *) ((char *) file + real_vfs->szOsFile);
}

static void set_never_changes(sqlite3_file *file) {
        sqlite3_io_methods *methods = &beside(file)->methods;

        *methods = *file->pMethods;
        methods->xDeviceCharacteristics = never_changes;
        file->pMethods = methods;
}

/* Called before a lock is taken. If the file is not the one that was checked, SQLite's own xClose closes it, which keeps
 * the descriptor open as long as closing it would drop locks of other connections to the same file (I12). */
static int begin_database(FilePlace *place, sqlite3_file *file) {
        bool is_checked;
        int fd = file_names_opened(place, &is_checked);

        if (!is_checked) {
                (void) file->pMethods->xClose(file);
                file->pMethods = NULL;
                return SQLITE_CANTOPEN;
        }
        if (!place->writes) /* its pieces would not show what this file writes, and it takes a file that grows for damaged */
                read_ahead_attach(file, real_vfs->szOsFile + (int) offsetof(DatabaseFile, ahead));
        reader_lock_attach(file, real_vfs->szOsFile + (int) offsetof(DatabaseFile, lock), fd);
        database_state_attach(file, real_vfs->szOsFile + (int) offsetof(DatabaseFile, state), fd);
        if (place->never_changes)
                set_never_changes(file);
        place->commit.database = file;
        return SQLITE_OK;
}

/* Of the connection that writes. */
static void watch_changes(FilePlace *place, sqlite3_file *file, int flags) {
        watch_sync(file);
        if (flags & SQLITE_OPEN_WAL)
                commit_point_attach_log(file, real_vfs->szOsFile, &place->commit);
        if (flags & SQLITE_OPEN_MAIN_JOURNAL)
                commit_point_attach_journal(file, real_vfs->szOsFile, &place->commit);
}

static int vfs_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *ret_flags) {
        FilePlace *place;
        int rc;

        (void) vfs;
        if (flags & TEMP_FLAGS)
                return open_temp(name, file, flags, ret_flags);
        place = file_place_find(name);
        if (!place)
                return SQLITE_CANTOPEN;
        if (!place->own || (place->is_attached && (flags & SQLITE_OPEN_MAIN_DB))) {
                flags &= ~(SQLITE_OPEN_CREATE | SQLITE_OPEN_READWRITE | SQLITE_OPEN_DELETEONCLOSE);
                flags |= SQLITE_OPEN_READONLY;
        }
        rc = real_vfs->xOpen(real_vfs, name, file, flags, ret_flags);
        if (rc == SQLITE_OK && place->writes)
                watch_changes(place, file, flags);
        return rc == SQLITE_OK && (flags & SQLITE_OPEN_MAIN_DB) ? begin_database(place, file) : rc;
}

/* For a reader deletes nothing. The only file that SQLite would have it delete is a log or journal beside an empty database,
 * which is its owner's business. SQLite continues as if the file were gone, with the same result. (Temporary files are not
 * deleted by name.) */
static int vfs_delete(sqlite3_vfs *vfs, const char *name, int sync_directory) {
        FilePlace *place = file_place_find(name);

        (void) vfs;
        if (!place || !place->writes)
                return SQLITE_OK;
        return file_name_is_journal(name) ? commit_point_delete_journal(&place->commit, real_vfs, name, sync_directory)
                                          : real_vfs->xDelete(real_vfs, name, sync_directory);
}

/* While ATTACH runs, each name is the client's. */
static int vfs_full_name(sqlite3_vfs *vfs, const char *name, int size, char *ret) {
        char found[FILE_NAME_SIZE];
        int rc;

        (void) vfs;
        if (!find_name)
                return real_vfs->xFullPathname(real_vfs, name, size, ret);
        rc = find_name(name, found, find_userdata);
        if (rc == SQLITE_OK)
                sqlite3_snprintf(size, ret, "%s", found);
        return rc;
}

/* Does not sleep. SQLite sleeps, for ten seconds in total, if it cannot decode the start of a log, and nothing could
 * interrupt that. Without sleep its hundred attempts end at once, and a timer starts the run again, as after a lock (I7). */
static int vfs_sleep(sqlite3_vfs *vfs, int usec) {
        (void) vfs;
        return usec;
}

int vfs_register(uint64_t max) {
        int rc;

        real_vfs = sqlite3_vfs_find("unix");
        if (!real_vfs)
                return SQLITE_ERROR;
        rc = file_names_install(real_vfs);
        if (rc != SQLITE_OK)
                return rc;
        temp_size_max = max;
        our_vfs = *real_vfs; /* all other methods are the real ones, which use no field of our_vfs except pAppData */
        our_vfs.zName = VFS_NAME;
        our_vfs.pNext = NULL;
        our_vfs.szOsFile = real_vfs->szOsFile + (int) BESIDE_SIZE;
        our_vfs.xOpen = vfs_open;
        our_vfs.xDelete = vfs_delete;
        our_vfs.xFullPathname = vfs_full_name;
        our_vfs.xSleep = vfs_sleep;
        return sqlite3_vfs_register(&our_vfs, 0);
}

bool vfs_temp_limit_was_hit(void) {
        bool hit = temp_limit_hit;

        temp_limit_hit = false;
        return hit;
}

bool vfs_temp_disk_was_full(void) {
        bool was = temp_disk_full;

        temp_disk_full = false;
        return was;
}

bool vfs_temp_open_failed(void) {
        bool failed = temp_open_failed;

        temp_open_failed = false;
        return failed;
}

void vfs_set_temp_progress(EngineProgress progress, void *userdata) {
        temp_progress = progress;
        temp_userdata = userdata;
        temp_is_spent = false;
}

void vfs_end_temp_writes(void) {
        temp_is_spent = true;
}

void vfs_set_find_name(VfsFindName find, void *userdata) {
        find_name = find;
        find_userdata = userdata;
}
