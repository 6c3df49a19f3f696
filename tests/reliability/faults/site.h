/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A place in the source that can be made to fail (inject.h), and the interface that arms it (inject.c). Test builds only. */
#ifndef SQLIPC_TESTS_RELIABILITY_FAULTS_SITE_H
#define SQLIPC_TESTS_RELIABILITY_FAULTS_SITE_H

#include <stdbool.h>

#define FAULT_SHORT (-1) /* in place of an error: the call does less than it was asked to */
#define FAULT_ERRORS_MAX 4

/* Of one size, whatever the machine, so that those of all files are an array. */
typedef struct FaultSite {
        const char *call, *file, *function;
        int line, errors[FAULT_ERRORS_MAX]; /* 0 ends them */
} __attribute__((aligned(64))) FaultSite;

/* Called at each site. Returns 0, or the error to fail with, once. */
int fault_now(const FaultSite *site);

/* For a program that arms its own sites (else a test does, from outside): site `index` fails with its error `error` when
 * it is reached for the `skip` + 1st time from now on. */
void fault_arm(unsigned index, int error, unsigned skip);

/* True if the armed site has failed. Nothing is armed afterwards. */
bool fault_fired(void);

/* The sites of this program; `index` counts from 0. NULL: there are no more. */
const FaultSite *fault_site(unsigned index);

/* How often a site was reached in all. */
unsigned fault_reached(unsigned index);

#endif
