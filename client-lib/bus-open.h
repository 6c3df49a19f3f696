/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Opens the bus that a connection uses. Library.
 */
#ifndef SQLIPC_CLIENT_LIB_BUS_OPEN_H
#define SQLIPC_CLIENT_LIB_BUS_OPEN_H

#include "client-lib/util.h"

/* Open a bus; they return an sd-bus error. `address`: of bus_open_address(), else NULL. */
int bus_open_system(sd_bus **ret, const char *address);
int bus_open_user(sd_bus **ret, const char *address);
int bus_open_address(sd_bus **ret, const char *address);

/* True if the path to the bus carries only bytes, no descriptors. */
bool bus_open_is_relayed(const char *address);

#endif
