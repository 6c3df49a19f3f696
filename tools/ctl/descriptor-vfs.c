/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A database in a file that is already open, see descriptor-vfs.h. No other process uses the file, so locks do nothing. */
#include "tools/ctl/descriptor-vfs.h"

#include <errno.h>
#include <sqlite3.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int descriptor = -1;
static sqlite3_vfs *usual;

static int do_nothing(sqlite3_file *file) {
        return SQLITE_OK;
}

static int read_from(sqlite3_file *file, void *buffer, int size, sqlite3_int64 offset) {
        int done = 0;

        while (done < size) {
                ssize_t n = pread(descriptor, (char *) buffer + done, (size_t) (size - done), offset + done);

                if (n < 0 && errno != EINTR)
                        return SQLITE_IOERR_READ;
                if (n == 0) {
                        memset((char *) buffer + done, 0, (size_t) (size - done));
                        return SQLITE_IOERR_SHORT_READ;
                }
                done += n > 0 ? (int) n : 0;
        }
        return SQLITE_OK;
}

static int write_to(sqlite3_file *file, const void *buffer, int size, sqlite3_int64 offset) {
        int done = 0;

        while (done < size) {
                ssize_t n = pwrite(descriptor, (const char *) buffer + done, (size_t) (size - done), offset + done);

                if (n < 0 && errno != EINTR)
                        return errno == ENOSPC || errno == EDQUOT || errno == EFBIG ? SQLITE_FULL : SQLITE_IOERR_WRITE;
                done += n > 0 ? (int) n : 0;
        }
        return SQLITE_OK;
}

static int truncate_to(sqlite3_file *file, sqlite3_int64 size) {
        return ftruncate(descriptor, size) < 0 ? SQLITE_IOERR_TRUNCATE : SQLITE_OK;
}

static int synchronize(sqlite3_file *file, int flags) {
        return fsync(descriptor) < 0 ? SQLITE_IOERR_FSYNC : SQLITE_OK;
}

static int size_of(sqlite3_file *file, sqlite3_int64 *ret) {
        struct stat st;

        if (fstat(descriptor, &st) < 0)
                return SQLITE_IOERR_FSTAT;
        *ret = st.st_size;
        return SQLITE_OK;
}

static int lock(sqlite3_file *file, int level) {
        return SQLITE_OK;
}

static int is_reserved(sqlite3_file *file, int *ret) {
        *ret = 0;
        return SQLITE_OK;
}

static int control(sqlite3_file *file, int operation, void *argument) {
        return SQLITE_NOTFOUND;
}

static int zero(sqlite3_file *file) {
        return 0; /* of the sector size: SQLite's default; of characteristics: none */
}

static int open_it(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *ret_flags) {
        static const sqlite3_io_methods methods = {
                .iVersion = 1, .xClose = do_nothing, .xRead = read_from, .xWrite = write_to, .xTruncate = truncate_to,
                .xSync = synchronize, .xFileSize = size_of, .xLock = lock, .xUnlock = lock,
                .xCheckReservedLock = is_reserved, .xFileControl = control, .xSectorSize = zero,
                .xDeviceCharacteristics = zero,
        };

        file->pMethods = NULL;
        if (!name) /* a temporary file */
                return usual->xOpen(usual, name, file, flags, ret_flags);
        if (!(flags & SQLITE_OPEN_MAIN_DB))
                return SQLITE_CANTOPEN;
        file->pMethods = &methods;
        if (ret_flags)
                *ret_flags = flags;
        return SQLITE_OK;
}

static int remove_it(sqlite3_vfs *vfs, const char *name, int sync) {
        return SQLITE_OK; /* there is nothing beside the database */
}

static int is_there(sqlite3_vfs *vfs, const char *name, int flags, int *ret) {
        *ret = 0;
        return SQLITE_OK;
}

static int full_name(sqlite3_vfs *vfs, const char *name, int size, char *ret) {
        (void) sqlite3_snprintf(size, ret, "%s", name);
        return SQLITE_OK;
}

int descriptor_vfs_add(int fd) {
        static sqlite3_vfs vfs;

        descriptor = fd;
        usual = sqlite3_vfs_find(NULL);
        if (!usual)
                return SQLITE_ERROR;
        vfs = *usual;
        vfs.pNext = NULL;
        vfs.zName = DESCRIPTOR_VFS;
        vfs.xOpen = open_it;
        vfs.xDelete = remove_it;
        vfs.xAccess = is_there;
        vfs.xFullPathname = full_name;
        return sqlite3_vfs_register(&vfs, 0);
}
