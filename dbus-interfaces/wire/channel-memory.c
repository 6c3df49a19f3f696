/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* See channel-memory.h. */
#include "dbus-interfaces/wire/channel-memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

/* The memory is all zeros, except that both readers sleep. */
static int set_up(int fd) {
        const ChannelRingHead heads[2] = { { .reader_sleeps = 1 }, { .reader_sleeps = 1 } };
        ssize_t n;

        if (ftruncate(fd, (off_t) CHANNEL_MEMORY_SIZE) < 0 || fcntl(fd, F_ADD_SEALS, SEALS) < 0)
                return -errno;
        n = pwrite(fd, heads, sizeof heads, 0);
        return n == sizeof heads ? 0 : n < 0 ? -errno : -EIO;
}

int channel_memory_new(void) {
        int fd = memfd_create("sqlipc-channel", MFD_CLOEXEC | MFD_ALLOW_SEALING), r;

        if (fd < 0)
                return -errno;
        r = set_up(fd);
        if (r == 0)
                return fd;
        (void) close(fd);
        return r;
}

int channel_memory_map(int fd, ChannelMemory **ret) {
        int seals = fcntl(fd, F_GET_SEALS);
        struct stat st;
        void *memory;

        if (seals < 0 || (seals & SEALS) != SEALS || fstat(fd, &st) < 0 || st.st_size != (off_t) CHANNEL_MEMORY_SIZE)
                return -EBADMSG;
        memory = mmap(NULL, CHANNEL_MEMORY_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (memory == MAP_FAILED)
                return -errno;
        *ret = memory;
        return 0;
}

ChannelMemory *channel_memory_unmap(ChannelMemory *memory) {
        if (memory)
                (void) munmap(memory, CHANNEL_MEMORY_SIZE);
        return NULL;
}

bool channel_memory_has_requests(int fd) {
        uint32_t written, read;

        if (pread(fd, &written, sizeof written, offsetof(ChannelMemory, requests.written)) != sizeof written ||
            pread(fd, &read, sizeof read, offsetof(ChannelMemory, requests.read)) != sizeof read)
                return false;
        return written != read;
}
