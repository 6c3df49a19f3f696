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

static FilePlace *places;
static FileTrouble trouble;
static int last_fd = -1; /* of the last fstat() by SQLite */
static OpenCall real_open;
static StatCall real_stat;
static AccessCall real_access;
static FstatCall real_fstat;

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
        if (trouble == FILE_TROUBLE_NONE)
                trouble = what;
}

/* Returns -1, like open(), with an errno for which SQLite does not try again with other flags. */
static int refuse(int fd, FileTrouble why) {
        if (fd >= 0)
                (void) close(fd);
        note(why);
        errno = EISDIR;
        return -1;
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
        fd = openat(place->found.folder_fd, file, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, mode);
        if (fd < 0 && errno == EWOULDBLOCK)
                return refuse(fd, FILE_TROUBLE_LEASED);
        if (fd < 0 && errno != ELOOP && errno != ENXIO && errno != EISDIR) /* a link; a socket; a directory */
                return fd;
        if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
                return refuse(fd, FILE_TROUBLE_IRREGULAR);
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

static int replace(sqlite3_vfs *vfs, const char *name, sqlite3_syscall_ptr call, sqlite3_syscall_ptr *ret_real) {
        *ret_real = vfs->xGetSystemCall(vfs, name);
        return *ret_real ? vfs->xSetSystemCall(vfs, name, call) : SQLITE_NOTFOUND;
}

int file_names_install(sqlite3_vfs *vfs) {
        sqlite3_syscall_ptr calls[4];
        int rc;

        if (vfs->iVersion < 3)
                return SQLITE_ERROR;
        rc = replace(vfs, "open", (sqlite3_syscall_ptr) open_file, &calls[0]);
        if (rc == SQLITE_OK)
                rc = replace(vfs, "stat", (sqlite3_syscall_ptr) stat_file, &calls[1]);
        if (rc == SQLITE_OK)
                rc = replace(vfs, "access", (sqlite3_syscall_ptr) access_file, &calls[2]);
        if (rc == SQLITE_OK)
                rc = replace(vfs, "fstat", (sqlite3_syscall_ptr) fstat_file, &calls[3]);
        if (rc != SQLITE_OK)
                return rc;
        real_open = (OpenCall) calls[0];
        real_stat = (StatCall) calls[1];
        real_access = (AccessCall) calls[2];
        real_fstat = (FstatCall) calls[3];
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

FileTrouble file_names_trouble(void) {
        FileTrouble was = trouble;

        trouble = FILE_TROUBLE_NONE;
        return was;
}
