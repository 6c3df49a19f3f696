/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Arms faults and counts them (inject.h). Test builds only.
 *
 * SQLIPC_FAULTS=FOLDER: maps a file FOLDER/PROGRAM (sqlipcd, sqlipc-worker). In it a test arms a site in all processes of
 * that program and sees which sites they reached. Without the variable, the program uses its own memory instead of the
 * file. SQLIPC_FAULTS_LIST=1: the program prints its sites instead of running, a line each: call, file, line, function,
 * errors.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/reliability/faults/site.h"

#define SITES_MAX 4096

/* As faults.py has it. */
typedef struct Control {
        _Atomic uint32_t armed; /* index + 1; 0: nothing is */
        _Atomic int32_t error;
        _Atomic uint32_t skip;
        _Atomic uint32_t fired;
        _Atomic uint32_t more; /* so often again, each time that it is reached */
        _Atomic uint32_t reached[SITES_MAX];
} Control;

extern const FaultSite __start_fault_sites[], __stop_fault_sites[];

static Control own, *control = &own;

static size_t n_sites(void) {
        return (size_t) (__stop_fault_sites - __start_fault_sites);
}

int fault_now(const FaultSite *site) {
        uint32_t index = (uint32_t) (site - __start_fault_sites), armed = index + 1;

        atomic_fetch_add(&control->reached[index], 1);
        if (atomic_load(&control->armed) != armed)
                return 0;
        if (atomic_load(&control->skip) > 0) {
                atomic_fetch_sub(&control->skip, 1);
                return 0;
        }
        /* Whichever process comes first. */
        if (!atomic_compare_exchange_strong(&control->armed, &armed, 0))
                return 0;
        atomic_fetch_add(&control->fired, 1);
        if (atomic_load(&control->more) > 0) {
                atomic_fetch_sub(&control->more, 1);
                atomic_store(&control->armed, index + 1);
        }
        return atomic_load(&control->error);
}

void fault_arm(unsigned index, int error, unsigned skip) {
        control->error = error;
        control->skip = skip;
        control->fired = 0;
        control->more = 0;
        control->armed = index + 1;
}

bool fault_fired(void) {
        control->armed = 0;
        return control->fired;
}

const FaultSite *fault_site(unsigned index) {
        return index < n_sites() ? __start_fault_sites + index : NULL;
}

unsigned fault_reached(unsigned index) {
        return control->reached[index];
}

static void list(void) {
        for (const FaultSite *s = __start_fault_sites; s < __stop_fault_sites; s++) {
                printf("%s\t%s\t%d\t%s\t", s->call, s->file, s->line, s->function);
                for (int i = 0; i < FAULT_ERRORS_MAX && s->errors[i] != 0; i++)
                        printf("%s%d", i > 0 ? "," : "", s->errors[i]);
                putchar('\n');
        }
}

static void attach(const char *folder) {
        char *path;

        if (asprintf(&path, "%s/" FAULTS_PROGRAM, folder) < 0)
                abort();
        int fd = open(path, O_RDWR | O_CLOEXEC);
        free(path);
        if (fd < 0)
                return; /* no faults for this program */
        void *map = mmap(NULL, sizeof(Control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (map == MAP_FAILED)
                abort();
        close(fd);
        control = map;
}

__attribute__((constructor)) static void set_up(void) {
        const char *folder = getenv("SQLIPC_FAULTS");

        if (n_sites() > SITES_MAX)
                abort();
        if (getenv("SQLIPC_FAULTS_LIST")) {
                list();
                fflush(stdout);
                _exit(0);
        }
        if (folder)
                attach(folder);
}
