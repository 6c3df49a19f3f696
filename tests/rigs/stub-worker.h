/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the supervisor takes for worker processes: two sockets each, at whose other ends an input decides what is said. In
 * turns honest, wrong, or dead. Tests only.
 */
#ifndef SQLIPC_TESTS_RIGS_STUB_WORKER_H
#define SQLIPC_TESTS_RIGS_STUB_WORKER_H

#include <stdbool.h>

#include "tests/fuzz/input.h"

/* The next thing that the worker chosen by the input does. */
void stub_worker_act(Input *in);

/* All of them do what they were told, to the end. True: something happened. */
bool stub_workers_be_honest(void);

/* The supervisor learns of those that died. True: there were some. */
bool stub_workers_reap(void);

unsigned stub_workers_count(void);

#endif
