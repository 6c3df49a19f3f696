/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See file-names.h.
 */
#include "daemon/worker/sqlite/file-names.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PREFIX "/sqlipc-database:"
#define SUFFIX_SIZE_MAX 16 /* "-journal" is the longest */

typedef int (*OpenCall)(const char *name, int flags, int mode);
typedef int (*StatCall)(const char *name, struct stat *ret);
typedef int (*AccessCall)(const char *name, int mode);
typedef int (*FstatCall)(int fd, struct stat *ret);
typedef int (*UnlinkCall)(const char *name);
typedef int (*FolderCall)(const char *name, int *ret_fd);
typedef ssize_t (*WriteCall)(int fd, const void *bytes, size_t size, off64_t offset);

static FilePlace *places;
static FileTrouble trouble;
static bool disk_full;
static int last_fd = -1; /* of the last fstat() by SQLite */
static OpenCall real_open;
static StatCall real_stat;
static AccessCall real_access;
static FstatCall real_fstat;
static UnlinkCall real_unlink;
static FolderCall real_open_folder;
static WriteCall real_write;

/* ---- names ---- */

static bool is_ours(const char *name) {
        return strncmp(name, PREFIX, strlen(PREFIX)) == 0;
}

static FilePlace *find(const char *name, const char **ret_suffix) {
        char *end;
        uint64_t number = strtoull(name + strlen(PREFIX), &end, 10);

        for (FilePlace *p = places; p; p = p->next)
                if (p->number == number) {
                        *ret_suffix = end;
                        return p;
                }
        return NULL;
}

FilePlace *file_place_find(const char *name) {
        const char *suffix;

        return name && is_ours(name) ? find(name, &suffix) : NULL;
}

bool file_name_is_journal(const char *name) {
        const char *suffix;

        return is_ours(name) && find(name, &suffix) && strcmp(suffix, "-journal") == 0;
}

static int name_beside(const FilePlace *place, const char *suffix, char ret[static NAME_MAX + SUFFIX_SIZE_MAX]) {
        int n = snprintf(ret, NAME_MAX + SUFFIX_SIZE_MAX, "%s%s", place->found.name, suffix);

        return n < 0 || n >= NAME_MAX + SUFFIX_SIZE_MAX ? -ENAMETOOLONG : 0;
}

/* Translates a name of ours to the name in the checked directory; NULL with errno if there is no such place. */
static const FilePlace *translate(const char *name, char ret[static NAME_MAX + SUFFIX_SIZE_MAX]) {
        const char *suffix;
        const FilePlace *place = find(name, &suffix);

        if (place && name_beside(place, suffix, ret) == 0)
                return place;
        errno = ENOENT;
        return NULL;
}

/* ---- replacements for SQLite's system calls ---- */

static void note(FileTrouble what) {
        if (trouble == FILE_TROUBLE_NONE || trouble == FILE_TROUBLE_READ_ONLY)
                trouble = what;
}

/* The kernel refused a call with this errno. A quota that is used up is treated as a full disk. */
void file_names_note_errno(int error) {
        if (error == ENOSPC || error == EDQUOT)
                disk_full = true;
        else if (error == EROFS)
                note(FILE_TROUBLE_READ_ONLY);
        else if (error == EFBIG)
                note(FILE_TROUBLE_TOO_LARGE);
}

/* Returns -1, like open(), with an errno for which SQLite does not try again with other flags. */
static int refuse(int fd, FileTrouble why) {
        if (fd >= 0)
                (void) close(fd);
        note(why);
        errno = EISDIR;
        return -1;
}

/* SQLite opens a read-only "-shm" after it has failed to open it to write. */
static void note_log_index(const char *name, int fd) {
        const char *suffix;
        FilePlace *place = find(name, &suffix);

        if (place && strcmp(suffix, "-shm") == 0)
                place->log_index_fd = fd;
}

/* SQLite opens a "-shm" to be read if it cannot open it to be written (I12). */
static bool may_open(const FilePlace *place, const char *name, int flags) {
        const char *suffix;

        return place->own || (flags & O_ACCMODE) == O_RDONLY || !find(name, &suffix) || strcmp(suffix, "-shm") != 0;
}

/* A descriptor that is closed here is not one of a regular file, so this drops no lock (I12). */
static int open_file(const char *name, int flags, int mode) {
        char file[NAME_MAX + SUFFIX_SIZE_MAX];
        const FilePlace *place;
        struct stat st;
        int fd;

        if (!is_ours(name))
                return real_open(name, flags, mode);
        place = translate(name, file);
        if (!place)
                return -1;
        if (!may_open(place, name, flags)) {
                errno = EACCES;
                return -1;
        }
        fd = openat(place->found.folder_fd, file, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, mode);
        if (fd < 0 && errno == EWOULDBLOCK)
                return refuse(fd, FILE_TROUBLE_LEASED);
        if (fd < 0 && errno != ELOOP && errno != ENXIO && errno != EISDIR) { /* a link; a socket; a directory */
                file_names_note_errno(errno);
                return fd;
        }
        if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
                return refuse(fd, FILE_TROUBLE_IRREGULAR);
        note_log_index(name, fd);
        return fd;
}

static int stat_file(const char *name, struct stat *ret) {
        char file[NAME_MAX + SUFFIX_SIZE_MAX];
        const FilePlace *place;

        if (!is_ours(name))
                return real_stat(name, ret);
        place = translate(name, file);
        return place ? fstatat(place->found.folder_fd, file, ret, AT_SYMLINK_NOFOLLOW) : -1;
}

static int access_file(const char *name, int mode) {
        char file[NAME_MAX + SUFFIX_SIZE_MAX];
        const FilePlace *place;

        if (!is_ours(name))
                return real_access(name, mode);
        place = translate(name, file);
        return place ? faccessat(place->found.folder_fd, file, mode, 0) : -1;
}

/* SQLite reveals no file's descriptor. But it calls fstat() for each database file that it opens, to find the locks by
 * inode. */
static int fstat_file(int fd, struct stat *ret) {
        last_fd = fd;
        return real_fstat(fd, ret);
}

static int delete_file(const FilePlace *place, const char *file) {
        int r = unlinkat(place->found.folder_fd, file, 0);

        if (r < 0)
                file_names_note_errno(errno);
        return r;
}

/* Deletes the "-journal", "-wal" or "-shm" of a database that this connection writes. If another file was put in the place
 * of the database, SQLite itself leaves the log of the other file alone. */
static int unlink_file(const char *name) {
        char file[NAME_MAX + SUFFIX_SIZE_MAX];
        const FilePlace *place;
        const char *suffix;

        if (!is_ours(name))
                return real_unlink(name);
        place = translate(name, file);
        if (!place)
                return -1;
        suffix = file + strlen(place->found.name);
        if (place->writes &&
            (strcmp(suffix, "-journal") == 0 || strcmp(suffix, "-wal") == 0 || strcmp(suffix, "-shm") == 0))
                return delete_file(place, file);
        errno = EPERM;
        return -1;
}

/* SQLite syncs the folder after it has made or deleted a journal. The descriptor of the place is O_PATH, which cannot be
 * synced. */
static int open_folder(const char *name, int *ret_fd) {
        const char *suffix;
        const FilePlace *place;

        if (!is_ours(name))
                return real_open_folder(name, ret_fd);
        place = find(name, &suffix);
        *ret_fd = place ? openat(place->found.folder_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
        return *ret_fd >= 0 ? SQLITE_OK : SQLITE_CANTOPEN;
}

/* Tells a full disk, and other reasons of the file system, from a disk that fails. */
static ssize_t write_file(int fd, const void *bytes, size_t size, off64_t offset) {
        ssize_t n = real_write(fd, bytes, size, offset);

        if (n < 0) {
                file_names_note_errno(errno);
                errno = errno == EDQUOT ? ENOSPC : errno;
        }
        return n;
}

int file_names_install(sqlite3_vfs *vfs) {
        const struct {
                const char *name;
                sqlite3_syscall_ptr ours;
                void *real; /* a pointer to the function of this type */
                bool required;
        } calls[] = {
                { "open", (sqlite3_syscall_ptr) open_file, &real_open, true },
                { "stat", (sqlite3_syscall_ptr) stat_file, &real_stat, true },
                { "access", (sqlite3_syscall_ptr) access_file, &real_access, true },
                { "fstat", (sqlite3_syscall_ptr) fstat_file, &real_fstat, true },
                { "unlink", (sqlite3_syscall_ptr) unlink_file, &real_unlink, true },
                { "openDirectory", (sqlite3_syscall_ptr) open_folder, &real_open_folder, true },
                { "pwrite64", (sqlite3_syscall_ptr) write_file, &real_write, false }, /* SQLite can be built without it */
        };

        if (vfs->iVersion < 3)
                return SQLITE_ERROR;
        for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
                sqlite3_syscall_ptr real = vfs->xGetSystemCall(vfs, calls[i].name);

                if (!real && !calls[i].required)
                        continue;
                memcpy(calls[i].real, &real, sizeof real);
                if (!real || vfs->xSetSystemCall(vfs, calls[i].name, calls[i].ours) != SQLITE_OK)
                        return SQLITE_NOTFOUND;
        }
        return SQLITE_OK;
}

/* ---- places ---- */

void file_place_add(FilePlace *place, FoundFile found, char ret_name[static FILE_NAME_SIZE]) {
        static uint64_t last_number;

        *place = (FilePlace) {
                .next = places,
                .number = ++last_number,
                .found = found,
                .own = found.st.st_uid == geteuid(),
        };
        places = place;
        (void) snprintf(ret_name, FILE_NAME_SIZE, PREFIX "%llu", (unsigned long long) place->number);
}

void file_place_remove(FilePlace *place) {
        FilePlace **link = &places;

        if (place->number == 0)
                return;
        while (*link != place)
                link = &(*link)->next;
        *link = place->next;
        found_file_done(&place->found);
        *place = (FilePlace) {};
}

bool file_place_may_be_written(const FilePlace *place) {
        struct stat folder;

        return place->own && fstat(place->found.folder_fd, &folder) == 0 && folder.st_uid == geteuid();
}

bool file_place_readable(const FilePlace *place, const char *suffix) {
        char file[NAME_MAX + SUFFIX_SIZE_MAX];

        return name_beside(place, suffix, file) == 0 &&
                faccessat(place->found.folder_fd, file, R_OK, AT_EACCESS) == 0;
}

int file_names_opened(const FilePlace *place, bool *ret_is_checked) {
        struct stat st;

        *ret_is_checked = last_fd >= 0 && fstat(last_fd, &st) == 0 && st.st_dev == place->found.st.st_dev &&
                st.st_ino == place->found.st.st_ino;
        if (!*ret_is_checked)
                note(FILE_TROUBLE_REPLACED);
        return last_fd;
}

bool file_names_disk_was_full(void) {
        bool was = disk_full;

        disk_full = false;
        return was;
}

FileTrouble file_names_trouble(void) {
        FileTrouble was = trouble;

        trouble = FILE_TROUBLE_NONE;
        return was;
}
