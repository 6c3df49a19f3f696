/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See observation.h.
 */
#include "daemon/worker/sqlite/observation.h"

#include <limits.h>
#include <sqlite3.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "daemon/worker/sqlite/database-state.h"

#define OF_FILE IN_MODIFY
#define OF_FOLDER (IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR)

/* inotify tells nothing about writers on other machines, or behind a server. */
static bool is_remote(int folder_fd) {
        static const uint32_t remote[] = {
                0x6969,     /* NFS */
                0x517b,     /* SMB */
                0xfe534d42, /* SMB2 */
                0xff534d42, /* CIFS */
                0x65735546, /* FUSE */
                0x01021997, /* 9P */
                0x00c36400, /* Ceph */
                0x5346414f, /* AFS */
                0x01161970, /* GFS2 */
                0x7461636f, /* OCFS2 */
                0x0bd00bd0, /* Lustre */
                0x47504653, /* GPFS */
                0xbacbacbc, /* VMware's shared folders */
                0x786f4256, /* VirtualBox's shared folders */
        };
        struct statfs st;

        if (fstatfs(folder_fd, &st) < 0)
                return true;
        for (size_t i = 0; i < sizeof remote / sizeof *remote; i++)
                if ((uint32_t) st.f_type == remote[i])
                        return true;
        return false;
}

/* A file that does not exist yet is noticed by the folder. */
static bool notify_of(int notifier_fd, const char *name, const char *suffix) {
        char file[NAME_MAX + 16];

        (void) snprintf(file, sizeof file, "%s%s", name, suffix);
        return inotify_add_watch(notifier_fd, file, OF_FILE | IN_DONT_FOLLOW) >= 0 || access(file, F_OK) < 0;
}

/* Path= may be a symbolic link to a file of another folder, and another link may take its place. */
static bool notify_of_link(int notifier_fd, const char *path) {
        char folder[PATH_MAX];
        const char *slash = strrchr(path, '/');

        if (!slash || slash - path >= (ptrdiff_t) sizeof folder)
                return false;
        (void) snprintf(folder, sizeof folder, "%.*s", slash > path ? (int) (slash - path) : 1, path);
        return inotify_add_watch(notifier_fd, folder, OF_FOLDER) >= 0;
}

/* A journal need not be watched: each commit with a journal changes the file.
 * inotify_add_watch() opens no file, and takes no descriptor of a folder. A watch that exists stays as it is. */
static bool notify(int notifier_fd, const char *path, const FilePlace *place) {
        const char *name = place->found.name;

        return notifier_fd >= 0 && !is_remote(place->found.folder_fd) && fchdir(place->found.folder_fd) == 0 &&
               inotify_add_watch(notifier_fd, ".", OF_FOLDER) >= 0 && notify_of(notifier_fd, name, "") &&
               notify_of(notifier_fd, name, "-wal") && notify_of_link(notifier_fd, path);
}

void observation_close(Observation *o) {
        if (o->opened)
                sqlite_connection_close(&o->sqlite);
        o->opened = false;
        o->state = (FileState) {};
}

/* Opens the file that is there now. */
static bool open_present(Observation *o, const Setup *setup) {
        SqlError error = SQL_ERROR_INIT;
        FileIdentity now;
        bool ok = sqlite_connection_identify(setup, &now, &error);

        if (ok && o->opened && file_identity_equal(&now, &o->sqlite.identity))
                return true;
        observation_close(o);
        o->opened = ok && sqlite_connection_open_unread(&o->sqlite, setup, &error);
        sql_error_done(&error);
        return o->opened;
}

static sqlite3_file *file_of(const Observation *o) {
        sqlite3_file *file = NULL;

        (void) sqlite3_file_control(o->sqlite.file, "main", SQLITE_FCNTL_FILE_POINTER, &file);
        return file;
}

/* Has SQLite open the log. In WAL mode this is in no writer's way. */
static bool open_log(Observation *o) {
        SqlError error = SQL_ERROR_INIT;
        bool ok = sqlite_connection_complete(&o->sqlite, &error);

        sql_error_done(&error);
        return ok && database_state_is_wal(file_of(o));
}

static uint32_t read_schema(Observation *o) {
        sqlite3_stmt *stmt = NULL;
        uint32_t schema = 0;

        if (sqlite3_prepare_v2(o->sqlite.file, "PRAGMA schema_version", -1, &stmt, NULL) == SQLITE_OK &&
            sqlite3_step(stmt) == SQLITE_ROW)
                schema = (uint32_t) sqlite3_column_int(stmt, 0);
        (void) sqlite3_finalize(stmt);
        return schema;
}

/* If that is not known, a commit may become visible after this look and after the last event of inotify: the file is looked
 * at again in a second. */
static bool is_changing(const Observation *o, Observed *ret) {
        int fd = o->sqlite.place.log_index_fd, r = database_state_is_changing(file_of(o), fd > 0 ? fd : -1);

        ret->polls = ret->polls || r < 0;
        return r > 0;
}

/* False: the state cannot be known. */
static bool look_at_file(Observation *o, Observed *ret) {
        sqlite3_file *file = file_of(o);
        DatabaseHeader header;

        if (!database_state_is_wal(file)) {
                if (!database_state_header(file, &header) || (header.wal && !open_log(o)))
                        return false;
                o->schema = header.schema;
        }
        /* first: a writer that has ended by now has changed the state before */
        ret->busy = is_changing(o, ret);
        database_state_read(file, &ret->state);
        if (ret->state.kind == FILE_STATE_UNKNOWN) { /* a writer that has begun since then may have been changing it */
                ret->busy = ret->busy || is_changing(o, ret);
                database_state_read(file, &ret->state);
        }
        if (database_state_is_wal(file) && !file_state_same(&o->state, &ret->state))
                o->schema = read_schema(o);
        o->state = ret->state;
        ret->schema = o->schema;
        return ret->state.kind != FILE_STATE_UNKNOWN;
}

void observation_look(Pool *pool, int notifier_fd, Observed *ret) {
        Observation *o = &pool->observation;

        *ret = (Observed) { .polls = true, .name = o->name };
        if (!open_present(o, pool->setup))
                return;
        (void) snprintf(o->name, sizeof o->name, "%s", o->sqlite.place.found.name);
        ret->device = (uint64_t) o->sqlite.identity.device;
        ret->inode = (uint64_t) o->sqlite.identity.inode;
        ret->polls = !notify(notifier_fd, pool->setup->path, &o->sqlite.place);
        if (!look_at_file(o, ret)) {
                ret->state = (FileState) {};
                observation_close(o);
        }
}
