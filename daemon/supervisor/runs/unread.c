/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The last bytes of a stream that its reader has not taken. Supervisor. */
#include <errno.h>
#include <unistd.h>

#include "daemon/supervisor/base/try-bytes.h"
#include "daemon/supervisor/runs/unread.h"

struct Unread {
        User *user; /* reference */
        GBytes *bytes;
        size_t sent;
};

int unread_new(User *u, Bytes bytes, Unread **ret) {
        if (bytes.size > UNREAD_OF_USER_MAX - u->unread_size)
                return -ENOBUFS;
        g_autoptr(GBytes) copy = try_bytes(bytes.data, bytes.size);
        if (!copy)
                return -ENOMEM;
        Unread *unread = g_new(Unread, 1);
        *unread = (Unread) { .user = user_ref(u), .bytes = g_steal_pointer(&copy) };
        u->unread_size += bytes.size;
        *ret = unread;
        return 0;
}

Unread *unread_free(Unread *u) {
        if (!u)
                return NULL;
        u->user->unread_size -= g_bytes_get_size(u->bytes);
        (void) user_unref(u->user);
        g_bytes_unref(u->bytes);
        g_free(u);
        return NULL;
}

size_t unread_size(const Unread *u) {
        return g_bytes_get_size(u->bytes);
}

int unread_write(Unread *u, int fd) {
        size_t size;
        const uint8_t *bytes = g_bytes_get_data(u->bytes, &size);

        while (u->sent < size) {
                ssize_t n = write(fd, bytes + u->sent, size - u->sent);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return errno == EAGAIN ? 0 : -errno;
                u->sent += (size_t) n;
        }
        return 1;
}

Bytes unread_left(const Unread *u) {
        size_t size;
        const char *bytes = g_bytes_get_data(u->bytes, &size);

        return (Bytes) { .data = bytes + u->sent, .size = size - u->sent };
}

int unread_note_written(Unread *u, size_t size) {
        u->sent += size;
        return u->sent == g_bytes_get_size(u->bytes);
}
