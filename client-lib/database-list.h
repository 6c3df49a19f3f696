/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The list of databases that the service publishes for the caller. Library.
 */
#ifndef SQLIPC_CLIENT_LIB_DATABASE_LIST_H
#define SQLIPC_CLIENT_LIB_DATABASE_LIST_H

#include "client-lib/sqlipc.h"

/* Asks the service for a database, and waits. 1: it has `name`, or `name` is NULL and there is a service; 0: it has none of
 * this name; a negative errno, with details in the connection: the service did not answer, or the configuration of the
 * database is broken. */
int database_list_find(sqlipc_connection *c, const char *name);

#endif
