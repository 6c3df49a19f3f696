/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The memory in which workers see the change sequences. Supervisor. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/supervisor/base/change-page.h"
#include "daemon/supervisor/base/high-descriptor.h"
#include "daemon/supervisor/base/log.h"

#define PAGE_SIZE (CHANGE_PAGE_N_SLOTS * sizeof(uint64_t))

/* F_SEAL_FUTURE_WRITE allows this process the mapping that it has, and no process any other one. */
static int make(ChangePage *p) {
        int fd = memfd_create("sqlipc-changes", MFD_CLOEXEC | MFD_ALLOW_SEALING);

        if (fd < 0)
                return -errno;
        p->fd = high_descriptor(fd);
        if (p->fd < 0)
                return p->fd;
        if (ftruncate(p->fd, (off_t) PAGE_SIZE) < 0 || fallocate(p->fd, 0, 0, sizeof(uint64_t)) < 0)
                return -errno;
        void *slots = mmap(NULL, PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, p->fd, 0);
        if (slots == MAP_FAILED)
                return -errno;
        p->slots = slots;
        return fcntl(p->fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) < 0 ? -errno : 0;
}

void change_page_init(ChangePage *p) {
        *p = (ChangePage) { .fd = -1 };
        int r = make(p);
        if (r < 0) {
                log_error("Results will have no change sequence: %s", strerror(-r));
                change_page_done(p);
        }
}

void change_page_done(ChangePage *p) {
        if (p->slots)
                (void) munmap(p->slots, PAGE_SIZE);
        if (p->fd >= 0)
                close(p->fd);
        *p = (ChangePage) { .fd = -1 };
}

/* Memory is allocated through the descriptor, which may fail: a write to a page that the kernel cannot allocate raises
 * SIGBUS. */
uint32_t change_page_take_slot(ChangePage *p) {
        off_t offset = (off_t) ((p->n_used + 1) * sizeof(uint64_t));

        if (!p->slots || p->n_used + 1 >= CHANGE_PAGE_N_SLOTS || fallocate(p->fd, 0, offset, sizeof(uint64_t)) < 0)
                return 0;
        return ++p->n_used;
}

void change_page_set(ChangePage *p, uint32_t slot, uint64_t number) {
        if (slot > 0)
                __atomic_store_n(&p->slots[slot], number, __ATOMIC_RELEASE);
}

void change_page_count_order(ChangePage *p) {
        if (p->slots)
                __atomic_fetch_add(&p->slots[0], 1, __ATOMIC_RELEASE);
}
