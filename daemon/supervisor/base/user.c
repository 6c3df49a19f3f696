/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One uid and its sums. Supervisor. */
#include <assert.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/supervisor/base/context.h"
#include "daemon/supervisor/base/log.h"
#include "daemon/supervisor/base/user.h"

User *user_get(Context *context, uid_t uid) {
        User *u = g_hash_table_lookup(context->users, GUINT_TO_POINTER(uid));

        if (u)
                return user_ref(u);
        u = g_new(User, 1);
        *u = (User) { .context = context, .n_ref = 1, .uid = uid, .pipes = G_QUEUE_INIT, .groups = G_QUEUE_INIT };
        g_hash_table_insert(context->users, GUINT_TO_POINTER(uid), u);
        return u;
}

User *user_ref(User *u) {
        u->n_ref++;
        return u;
}

User *user_unref(User *u) {
        if (!u || --u->n_ref > 0)
                return NULL;
        assert(u->n_statements == 0 && u->n_runs == 0 && u->n_channels == 0 && u->n_released_channels == 0 &&
               u->n_workers == 0 && u->held_size == 0 && u->joined_size == 0 && u->unread_size == 0 && u->memory_size == 0 &&
               u->arguments_size == 0 &&
               u->pipe_account.used == 0 && u->pipe_account.granted == 0);
        g_hash_table_remove(u->context->users, GUINT_TO_POINTER(u->uid));
        if (u->counts.slots) {
                (void) munmap(u->counts.slots, u->counts.size);
                close(u->counts.fd);
        }
        g_clear_pointer(&u->counts.clients, g_hash_table_unref);
        g_queue_clear(&u->counts.unused);
        g_free(u);
        return NULL;
}

int user_refuse(const User *u, const char *limit, Refusal *refusal, const char *format, ...) {
        va_list ap;

        va_start(ap, format);
        g_autofree char *sentence = g_strdup_vprintf(format, ap);
        va_end(ap);
        log_event_limited(LOG_EVENT_QUOTA_HIT, limit, &(LogFields) { .uid = &u->uid }, "uid %u is refused more (%s): %s",
                          (unsigned) u->uid, limit, sentence);
        return refuse_for_now(refusal, "%s", sentence);
}

int user_hold(User *u, size_t size, Refusal *refusal) {
        if (size > HELD_SIZE_MAX - u->held_size)
                return user_refuse(u, "SQL and parameters", refusal,
                                   "Your statements and waiting runs may hold %zu MiB of SQL and parameters: finalize some.",
                                   HELD_SIZE_MAX >> 20);
        u->held_size += size;
        return 0;
}

void user_release(User *u, size_t size) {
        assert(u->held_size >= size);
        u->held_size -= size;
}

/* A small file counts for more, because it takes a descriptor, too. */
static uint64_t size_to_count(uint64_t size) {
        return size == 0 ? 0 : MAX(size, ARGUMENTS_OF_USER_MAX / 128);
}

int user_hold_file(User *u, uint64_t size, Refusal *refusal) {
        Context *context = u->context;

        size = size_to_count(size);
        if (size > 0 && context->n_argument_files >= context->argument_files_max)
                return refuse_for_now(refusal, "The service has no descriptor left for the SQL and parameters of your call; "
                                      "try again later.");
        if (size > ARGUMENTS_OF_USER_MAX - u->arguments_size)
                return user_refuse(u, "files of SQL and parameters", refusal,
                                   "Your calls that have not begun may have %" PRIu64 " MiB of SQL and parameters in files: "
                                   "let them begin.", ARGUMENTS_OF_USER_MAX >> 20);
        u->arguments_size += size;
        context->n_argument_files += size > 0;
        return 0;
}

void user_release_file(User *u, uint64_t size) {
        size = size_to_count(size);
        assert(u->arguments_size >= size);
        u->arguments_size -= size;
        u->context->n_argument_files -= size > 0;
}
