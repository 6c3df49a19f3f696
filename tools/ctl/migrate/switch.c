/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The switch to the new database, see switch.h. */
#include "tools/ctl/migrate/switch.h"

#include <errno.h>

#include "tools/ctl/bus.h"
#include "tools/ctl/configuration-write.h"
#include "tools/ctl/migrate/state.h"
#include "tools/ctl/reload.h"

static char *find_file(const Context *c, const char *database) {
        g_auto(GStrv) directories = context_directories(c);

        return configuration_find(directories, database);
}

bool switch_is_done(Context *c, const char *database, const Publication *target) {
        g_autofree char *file = find_file(c, database), *text = NULL;

        return file && g_file_get_contents(file, &text, NULL, NULL) && g_str_equal(text, target->text);
}

/* Drop-ins were written for the old database, and would apply to the new one. */
int switch_check(Context *c, const char *database) {
        g_auto(GStrv) directories = context_directories(c);

        for (char **directory = directories; *directory; directory++) {
                g_autofree char *folder = g_strdup_printf("%s/" DATABASES "/%s.conf.d", *directory, database);
                g_autoptr(GDir) entries = g_dir_open(folder, 0, NULL);

                if (entries && g_dir_read_name(entries)) {
                        complain("%s has drop-ins, which would apply to the new database, too: add what is needed of them "
                                 "to the new file, and remove them.", folder);
                        return -EEXIST;
                }
        }
        return 0;
}

static int write_files(Context *c, const char *database, const Publication *target) {
        g_auto(GStrv) directories = context_directories(c);
        g_autofree char *directory = g_build_filename(directories[0], DATABASES, NULL), *text = NULL;
        g_autofree char *name = g_strconcat(database, ".conf", NULL), *kept = g_strconcat(name, ".before-migration", NULL);
        g_autofree char *file = configuration_find(directories, database);
        int r = 0;

        if (file && g_file_get_contents(file, &text, NULL, NULL))
                r = configuration_write(c, directory, kept, text, true);
        if (r >= 0)
                r = configuration_write(c, directory, name, target->text, true);
        if (r < 0)
                complain("%s/%s cannot be written: %s", directory, name, g_strerror(-r));
        return r;
}

int switch_finish(Context *c, const Side *target, Publication *publication) {
        g_autoptr(GVariant) info = NULL;
        int r = side_try(target, "DROP TABLE IF EXISTS " STATE_TABLE);

        if (r < 0)
                return side_fail(target, STATE_TABLE " cannot be dropped", r);
        publication_remove(publication);
        if (reload_service(c, &info) != CTL_OK)
                return -EACCES;
        return reload_complain(info) == CTL_OK ? 0 : -EINVAL;
}

int switch_lock(Context *c, const Side *source, SwitchLock *lock) {
        int r = lock->side.connection ? 0 : sqlipc_open_bus(c->bus, &lock->side.connection);

        if (r < 0)
                return r;
        lock->side.database = source->database;
        if (lock->transaction && switch_lock_keep(lock))
                return 0;
        lock->transaction = sqlipc_transaction_close(lock->transaction);
        r = sqlipc_begin(lock->side.connection, source->database, SQLIPC_TRANSACTION_WRITE, &lock->transaction);
        if (r == -EROFS) /* none of the service's clients can write then */
                return 0;
        return r < 0 ? side_fail(&lock->side, "writers cannot be kept out", r) : 0;
}

bool switch_lock_keep(const SwitchLock *lock) {
        return !lock->transaction || side_try(&lock->side, "SELECT 1") >= 0;
}

void switch_unlock(SwitchLock *lock) {
        lock->transaction = sqlipc_transaction_close(lock->transaction);
        lock->side.connection = sqlipc_connection_unref(lock->side.connection);
}

int switch_run(Context *c, const Side *source, const Side *target, uint64_t sequence, SwitchLock *lock,
               Publication *publication) {
        uint64_t now = 0;
        int r = switch_lock(c, source, lock);

        if (r >= 0)
                r = side_query(source, "SELECT 1", NULL, NULL, NULL, &now);
        if (r < 0 || now != sequence)
                return r;
        r = write_files(c, source->database, publication);
        if (r >= 0)
                r = switch_finish(c, target, publication);
        return r < 0 ? r : 1;
}
