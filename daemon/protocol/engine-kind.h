/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The engines that databases are served by, as the configuration names them and SETUP tells them. Pure. */
#ifndef SQLIPC_DAEMON_PROTOCOL_ENGINE_KIND_H
#define SQLIPC_DAEMON_PROTOCOL_ENGINE_KIND_H

/* Engine=: the program that has the data, and its dialect of SQL. All except SQLite are *servers*, which are reached over a
 * network or a socket of this machine. */
typedef enum EngineKind {
        ENGINE_KIND_SQLITE,
        ENGINE_KIND_POSTGRESQL,
        ENGINE_KIND_RQLITE,
        ENGINE_KIND_MAX_,
} EngineKind;

/* Consistency= of rqlite: how sure a node must be that its data is the newest before it answers a read. */
typedef enum Consistency {
        CONSISTENCY_NONE,
        CONSISTENCY_WEAK,
        CONSISTENCY_STRONG,
        CONSISTENCY_LINEARIZABLE,
        CONSISTENCY_MAX_,
} Consistency;

static inline const char *engine_kind_name(EngineKind kind) {
        static const char *const names[ENGINE_KIND_MAX_] = { "sqlite", "postgresql", "rqlite" };

        return kind < ENGINE_KIND_MAX_ ? names[kind] : "unknown";
}

static inline const char *consistency_name(Consistency consistency) {
        static const char *const names[CONSISTENCY_MAX_] = { "none", "weak", "strong", "linearizable" };

        return consistency < CONSISTENCY_MAX_ ? names[consistency] : "unknown";
}

#endif
