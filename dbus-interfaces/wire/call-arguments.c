/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* See call-arguments.h. */
#include "dbus-interfaces/wire/call-arguments.h"

#include <errno.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "dbus-interfaces/wire/sqlipc-page.h"

#define BLOCK_SIZE UINT64_C(512) /* of st_blocks */
#define PIECE_SIZE (UINT64_C(8) << 20)

/* In pieces, each of which a signal may interrupt: for a large file as a whole this might never end. */
static int allocate(int fd, uint64_t size) {
        int r = 0;

        for (uint64_t at = 0; at < size && r == 0; at += PIECE_SIZE)
                do
                        r = -posix_fallocate(fd, (off_t) at, (off_t) (size - at < PIECE_SIZE ? size - at : PIECE_SIZE));
                while (r == -EINTR);
        return r;
}

int call_arguments_new(uint64_t size, int *ret_fd, uint8_t **ret) {
        int fd, r;
        void *bytes;

        if (size > CALL_ARGUMENTS_SIZE_MAX || size > SIZE_MAX / 2)
                return -E2BIG;
        fd = memfd_create("sqlipc-arguments", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        if (fd < 0)
                return -errno;
        r = allocate(fd, size); /* without memory an access to the mapping would raise SIGBUS */
        if (r == 0) {
                bytes = mmap(NULL, (size_t) size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
                r = bytes == MAP_FAILED ? -errno : 0;
        }
        if (r < 0) {
                (void) close(fd);
                return r;
        }
        *ret_fd = fd;
        *ret = bytes;
        return 0;
}

int call_arguments_seal(int fd, uint8_t *bytes, uint64_t size) {
        call_arguments_unmap(bytes, size); /* a file with a mapping that can be written to cannot be sealed */
        if (fcntl(fd, F_ADD_SEALS, CALL_ARGUMENTS_SEALS) < 0) {
                int r = -errno;

                (void) close(fd);
                return r;
        }
        return 0;
}

void call_arguments_write_head(uint8_t *at, size_t sql_size, size_t row_size, uint32_t n_positional, uint32_t n_named) {
        store_le32(at, (uint32_t) sql_size);
        store_le32(at + 4, (uint32_t) row_size);
        store_le32(at + 8, n_positional);
        store_le32(at + 12, n_named);
}

int call_arguments_check(int fd, uint64_t *ret_size) {
        int seals = fcntl(fd, F_GET_SEALS);
        struct statfs fs;
        struct stat st;

        /* memory of huge pages has seals, too, but cannot be mapped to the byte */
        if (seals < 0 || (seals & CALL_ARGUMENTS_SEALS) != CALL_ARGUMENTS_SEALS || fstatfs(fd, &fs) < 0 ||
            fs.f_type != TMPFS_MAGIC || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
            st.st_size <= (off_t) CALL_ARGUMENTS_HEAD_SIZE)
                return -EBADMSG;
        if ((uint64_t) st.st_size > CALL_ARGUMENTS_SIZE_MAX)
                return -E2BIG;
        if (st.st_blocks < 0 || (uint64_t) st.st_blocks < ((uint64_t) st.st_size + BLOCK_SIZE - 1) / BLOCK_SIZE)
                return -ENODATA;
        *ret_size = (uint64_t) st.st_size;
        return 0;
}

int call_arguments_map(int fd, uint64_t size, uint8_t **ret) {
        void *bytes;

        if (size > SIZE_MAX / 2)
                return -ENOMEM;
        /* st_blocks counts memory past the end as well, so only this finds each hole; it looks at each page */
        if (lseek(fd, 0, SEEK_HOLE) < (off_t) size)
                return -ENODATA;
        /* a shared mapping of a file with this seal was refused by kernels before 6.7 */
        bytes = mmap(NULL, (size_t) size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (bytes == MAP_FAILED)
                return -errno;
        *ret = bytes;
        return 0;
}

void call_arguments_unmap(uint8_t *bytes, uint64_t size) {
        if (bytes)
                (void) munmap(bytes, (size_t) size);
}
