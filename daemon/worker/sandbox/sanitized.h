/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Tells if this build has sanitizers. They reserve terabytes of address space and make system calls of their own, so the
 * address space limit and the filter are left out with them. Pure.
 */
#ifndef SQLIPC_DAEMON_WORKER_SANDBOX_SANITIZED_H
#define SQLIPC_DAEMON_WORKER_SANDBOX_SANITIZED_H

#include <stdbool.h>

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED true
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(undefined_behavior_sanitizer)
#define SANITIZED true
#endif
#endif
#ifndef SANITIZED
#define SANITIZED false
#endif

#endif
