/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The events that an administrator acts on: X(SYMBOL, MESSAGE_ID, priority). Pure.
 *
 * systemd-units/sqlipc.catalog explains each event and what to do. An id never changes and is never used for another event:
 * administrators have these ids in the rules by which they watch the journal.
 */
#ifndef SQLIPC_DAEMON_SUPERVISOR_BASE_LOG_EVENTS_H
#define SQLIPC_DAEMON_SUPERVISOR_BASE_LOG_EVENTS_H

#include <syslog.h>

#define LOG_EVENT_TABLE(X)                                                                                            \
        /* The service as a whole. */                                                                                 \
        X(STARTED, "5c1e7a605009447dbda5d5aa58834050", LOG_INFO)                                                      \
        X(RELOADED, "a47f552d20c0426fac2c5ff3027deaad", LOG_INFO)                                                     \
        X(IDLE_EXIT, "fb610faecd4c4308a8f953167e68b4e2", LOG_INFO)                                                    \
        X(NAME_TAKEN_BACK, "24b9b3fadb974754b1752f591bc7f5cf", LOG_INFO)                                              \
        X(NAME_LOST, "31e481ac956349baa33fff6184d28218", LOG_NOTICE)                                                  \
        X(BUS_LOST, "d0bbdfb8904f417cabf3e1dbbdb208ae", LOG_ERR)                                                      \
        /* The configuration. */                                                                                      \
        X(CONFIGURATION_BROKEN, "21f51ab058f94beeaf9d44f4308a7e3c", LOG_ERR)                                          \
        X(CONFIGURATION_WARNING, "8de85093856b49d8ad01939bceeb4e70", LOG_WARNING)                                     \
        /* Databases. */                                                                                              \
        X(DATABASE_CORRUPT, "499d3beb4c634ab09a4e2cbd4785e7d3", LOG_ERR)                                              \
        X(DATABASE_UNAVAILABLE, "cecc811d062144a7b617a09c19b7b26f", LOG_ERR)                                          \
        X(SLOW_QUERY, "e8c27d46108c41e7bc9bb0109bd3d894", LOG_NOTICE)                                                 \
        /* Users. */                                                                                                  \
        X(QUOTA_HIT, "cfcd440b22e04c10a5912950ac76b355", LOG_NOTICE)                                                  \
        X(ACCESS_DENIED, "6fb1b249b82c412bb263de1087440ef3", LOG_NOTICE)                                              \
        X(POLKIT_ABSENT, "0f1f6f4085464d2bbe2da1b98844070f", LOG_WARNING)                                             \
        /* Workers. */                                                                                                \
        X(WORKER_LOST, "855a18937aed4fe6955f3fe13f2a802e", LOG_WARNING)                                               \
        X(WORKER_KILLED, "b5d0b6ccc81c47c6b31447061369dae3", LOG_WARNING)                                             \
        X(WORKERS_FAIL, "d809a16c3fbe43729c38155f55cd88e7", LOG_ERR)

typedef enum LogEvent {
#define X(symbol, id, priority) LOG_EVENT_##symbol,
        LOG_EVENT_TABLE(X)
#undef X
} LogEvent;

#endif
