/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker, in a test build of it. Makes calls fail on demand, below the worker's own VFS, and between SQLite and its
 * memory. The worker asks for the VFS "unix" and gets this one, which is SQLite's except for the calls that fail.
 *
 * The file that $SQLIPC_FAULTS names says what must fail; the test and the worker map it (struct Plan, of 64-bit numbers).
 * The `first` call of one operation fails, counted from when the test wrote the plan, and if `forever` is set, each later
 * one.
 */
#include <fcntl.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* The order is that of test_sqlite_faults.py. */
typedef enum Operation {
        OPERATION_NONE,
        OPERATION_FULL_PATHNAME,
        OPERATION_ACCESS,
        OPERATION_OPEN,
        OPERATION_READ,
        OPERATION_WRITE,
        OPERATION_TRUNCATE,
        OPERATION_SYNC,
        OPERATION_FILE_SIZE,
        OPERATION_LOCK,
        OPERATION_UNLOCK,
        OPERATION_CHECK_RESERVED,
        OPERATION_SHM_MAP,
        OPERATION_SHM_LOCK,
        OPERATION_FETCH,
        OPERATION_ALLOCATE,
        OPERATION_MAX,
} Operation;

/* The manner in which a call fails. */
typedef enum Manner {
        MANNER_CODE,    /* nothing is done, except by xUnlock; the code is returned */
        MANNER_HALF,    /* half of the bytes are read, or written, and the code is returned */
        MANNER_CORRUPT, /* some of the bytes that were read are changed, without an error */
} Manner;

typedef struct Plan {
        int64_t operation, first, forever, code, manner;
        int64_t seen, hits; /* calls of `operation`, and those of them that failed */
        int64_t calls[OPERATION_MAX];
} Plan;

/* Stands behind the file of the real VFS. */
typedef struct FaultyFile {
        const sqlite3_io_methods *real;
        sqlite3_io_methods methods;
} FaultyFile;

static Plan *plan;
static sqlite3_vfs *real_vfs;
static sqlite3_vfs faulty_vfs;
static sqlite3_mem_methods real_memory;

int __real_sqlite3_initialize(void);
int __wrap_sqlite3_initialize(void);
sqlite3_vfs *__real_sqlite3_vfs_find(const char *name);
sqlite3_vfs *__wrap_sqlite3_vfs_find(const char *name);

static void map_plan(void) {
        const char *path = getenv("SQLIPC_FAULTS");
        int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
        void *p = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *plan, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

        if (p == MAP_FAILED) {
                perror("sqlipc-worker-vfs: $SQLIPC_FAULTS");
                exit(1);
        }
        (void) close(fd);
        plan = p;
}

static bool fails(Operation operation) {
        plan->calls[operation]++;
        if (plan->operation != operation)
                return false;
        plan->seen++;
        if (plan->seen < plan->first || (plan->seen > plan->first && !plan->forever))
                return false;
        plan->hits++;
        return true;
}

static int code(void) {
        return (int) plan->code;
}

/* ---- files ---- */

static FaultyFile *faulty(sqlite3_file *file) {
        return (FaultyFile *) (void *) ((char *) file + real_vfs->szOsFile);
}

static const sqlite3_io_methods *real(sqlite3_file *file) {
        return faulty(file)->real;
}

static int file_read(sqlite3_file *file, void *buffer, int size, sqlite3_int64 offset) {
        const bool now = fails(OPERATION_READ);
        int rc;

        if (now && plan->manner == MANNER_CODE)
                return code();
        rc = real(file)->xRead(file, buffer, size, offset);
        if (now && plan->manner == MANNER_HALF) {
                (void) memset((char *) buffer + size / 2, 0, (size_t) (size - size / 2));
                return code();
        }
        for (int i = (int) plan->seen % 13; now && i < size; i += 61)
                ((unsigned char *) buffer)[i] ^= (unsigned char) (i | 1);
        return rc;
}

static int file_write(sqlite3_file *file, const void *buffer, int size, sqlite3_int64 offset) {
        if (!fails(OPERATION_WRITE))
                return real(file)->xWrite(file, buffer, size, offset);
        if (plan->manner == MANNER_HALF)
                (void) real(file)->xWrite(file, buffer, size / 2, offset);
        return code();
}

static int file_truncate(sqlite3_file *file, sqlite3_int64 size) {
        return fails(OPERATION_TRUNCATE) ? code() : real(file)->xTruncate(file, size);
}

static int file_sync(sqlite3_file *file, int flags) {
        return fails(OPERATION_SYNC) ? code() : real(file)->xSync(file, flags);
}

static int file_size(sqlite3_file *file, sqlite3_int64 *ret) {
        return fails(OPERATION_FILE_SIZE) ? code() : real(file)->xFileSize(file, ret);
}

static int file_lock(sqlite3_file *file, int level) {
        return fails(OPERATION_LOCK) ? code() : real(file)->xLock(file, level);
}

/* The lock goes in any case: no kernel keeps one that was given back. */
static int file_unlock(sqlite3_file *file, int level) {
        int rc = real(file)->xUnlock(file, level);

        return fails(OPERATION_UNLOCK) ? code() : rc;
}

static int file_check_reserved(sqlite3_file *file, int *ret) {
        return fails(OPERATION_CHECK_RESERVED) ? code() : real(file)->xCheckReservedLock(file, ret);
}

static int file_shm_map(sqlite3_file *file, int page, int size, int extend, void volatile **ret) {
        if (!fails(OPERATION_SHM_MAP))
                return real(file)->xShmMap(file, page, size, extend, ret);
        *ret = NULL;
        return code();
}

static int file_shm_lock(sqlite3_file *file, int first, int n, int flags) {
        return (flags & SQLITE_SHM_LOCK) && fails(OPERATION_SHM_LOCK) ? code() : real(file)->xShmLock(file, first, n, flags);
}

static int file_fetch(sqlite3_file *file, sqlite3_int64 offset, int size, void **ret) {
        return fails(OPERATION_FETCH) ? code() : real(file)->xFetch(file, offset, size, ret);
}

static int vfs_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *ret_flags) {
        FaultyFile *f = faulty(file);
        int rc;

        (void) vfs;
        file->pMethods = NULL;
        if (fails(OPERATION_OPEN))
                return code();
        rc = real_vfs->xOpen(real_vfs, name, file, flags, ret_flags);
        if (!file->pMethods)
                return rc;
        *f = (FaultyFile) { .real = file->pMethods, .methods = *file->pMethods };
        f->methods.xRead = file_read;
        f->methods.xWrite = file_write;
        f->methods.xTruncate = file_truncate;
        f->methods.xSync = file_sync;
        f->methods.xFileSize = file_size;
        f->methods.xLock = file_lock;
        f->methods.xUnlock = file_unlock;
        f->methods.xCheckReservedLock = file_check_reserved;
        f->methods.xShmMap = file_shm_map;
        f->methods.xShmLock = file_shm_lock;
        f->methods.xFetch = file_fetch;
        file->pMethods = &f->methods;
        return rc;
}

static int vfs_access(sqlite3_vfs *vfs, const char *name, int flags, int *ret) {
        (void) vfs;
        return fails(OPERATION_ACCESS) ? code() : real_vfs->xAccess(real_vfs, name, flags, ret);
}

static int vfs_full_pathname(sqlite3_vfs *vfs, const char *name, int size, char *ret) {
        (void) vfs;
        return fails(OPERATION_FULL_PATHNAME) ? code() : real_vfs->xFullPathname(real_vfs, name, size, ret);
}

sqlite3_vfs *__wrap_sqlite3_vfs_find(const char *name) {
        real_vfs = __real_sqlite3_vfs_find(name);
        if (!real_vfs)
                return NULL;
        faulty_vfs = *real_vfs;
        faulty_vfs.szOsFile += (int) sizeof(FaultyFile);
        faulty_vfs.xOpen = vfs_open;
        faulty_vfs.xAccess = vfs_access;
        faulty_vfs.xFullPathname = vfs_full_pathname;
        return &faulty_vfs;
}

/* ---- memory ---- */

static void *allocate(int size) {
        return fails(OPERATION_ALLOCATE) ? NULL : real_memory.xMalloc(size);
}

static void *reallocate(void *p, int size) {
        return fails(OPERATION_ALLOCATE) ? NULL : real_memory.xRealloc(p, size);
}

/* The worker calls this once its own settings are made. */
int __wrap_sqlite3_initialize(void) {
        sqlite3_mem_methods memory;
        int rc = sqlite3_config(SQLITE_CONFIG_GETMALLOC, &memory);

        map_plan();
        real_memory = memory;
        memory.xMalloc = allocate;
        memory.xRealloc = reallocate;
        if (rc == SQLITE_OK)
                rc = sqlite3_config(SQLITE_CONFIG_MALLOC, &memory);
        return rc == SQLITE_OK ? __real_sqlite3_initialize() : rc;
}
