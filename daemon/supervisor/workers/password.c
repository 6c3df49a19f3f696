/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The password of a server. Supervisor. */
#include "daemon/supervisor/workers/password.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/supervisor/base/log.h"

#define PASSWORD_SIZE_MAX 1024

struct Password {
        char text[PASSWORD_SIZE_MAX + 2]; /* one byte more than allowed is read, to notice that; and a NUL */
};

void password_free(Password *p) {
        if (!p)
                return;
        explicit_bzero(p->text, sizeof p->text);
        g_free(p);
}

const char *password_text(const Password *p) {
        return p ? p->text : NULL;
}

/* Neither a FIFO nor a device can keep the supervisor: O_NONBLOCK opens both at once, and only a regular file is read. */
static int read_file(const char *path, Password *p) {
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK), r = 0;
        struct stat st;
        ssize_t n;

        if (fd < 0)
                return -errno;
        if (fstat(fd, &st) < 0)
                r = -errno;
        else if (!S_ISREG(st.st_mode))
                r = -EINVAL;
        if (r == 0) {
                do
                        n = read(fd, p->text, sizeof p->text - 1);
                while (n < 0 && errno == EINTR);
                if (n < 0)
                        r = -errno;
        }
        close(fd);
        if (r < 0)
                return r;
        size_t size = strcspn(p->text, "\r\n"); /* a byte after the last one is a NUL */
        explicit_bzero(p->text + size, sizeof p->text - size);
        return size == 0 ? -ENODATA : size > PASSWORD_SIZE_MAX ? -EMSGSIZE : 0;
}

static const char *reason(int r) {
        switch (r) {
        case -EINVAL: return "it is no regular file";
        case -ENODATA: return "its first line is empty";
        case -EMSGSIZE: return "its first line is too long";
        case -ENOENT: return "it does not exist";
        }
        return g_strerror(-r);
}

int password_read(const char *file, Password **ret) {
        const char *credentials = getenv("CREDENTIALS_DIRECTORY");
        g_autofree char *path = NULL;
        int r = -ENOENT;

        if (!file) {
                *ret = NULL;
                return 0;
        }
        if (file[0] == '/')
                path = g_strdup(file);
        else if (credentials)
                path = g_build_filename(credentials, file, NULL);
        g_autoptr(Password) p = g_new0(Password, 1);
        if (path)
                r = read_file(path, p);
        if (r == 0) {
                *ret = g_steal_pointer(&p);
                return 0;
        }
        if (file[0] != '/' && r == -ENOENT)
                log_warning_limited("PasswordFile=%s is no path, and the service has no credential of this name: give it "
                                    "one by LoadCredential= in a drop-in of its unit, and restart it.", file);
        else
                log_warning_limited("The password file %s cannot be used: %s.", path, reason(r));
        return -ENOKEY;
}
