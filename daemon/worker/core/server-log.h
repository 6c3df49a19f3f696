/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. Failures to reach a server, for the administrator: the whole text of the library, which names hosts and
 * ports of Connection=. It goes to the standard error, which is the journal of the engine's unit. Clients get a text of
 * ours, because not all who may read a database may know where its server is.
 */
#ifndef SQLIPC_DAEMON_WORKER_CORE_SERVER_LOG_H
#define SQLIPC_DAEMON_WORKER_CORE_SERVER_LOG_H

/* Writes one line. Clients can cause failures, so the same text is written once a minute, and any at most once a second. */
void server_log(const char *text);

#endif
