/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Cleanup attributes for libsystemd's types: g_autoptr(sd_bus_message) m = NULL. Supervisor. */
#ifndef SQLIPC_DAEMON_SUPERVISOR_BASE_SD_AUTOPTR_H
#define SQLIPC_DAEMON_SUPERVISOR_BASE_SD_AUTOPTR_H

#include <glib.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

G_DEFINE_AUTOPTR_CLEANUP_FUNC(sd_bus, sd_bus_flush_close_unref)
G_DEFINE_AUTOPTR_CLEANUP_FUNC(sd_bus_message, sd_bus_message_unref)
G_DEFINE_AUTOPTR_CLEANUP_FUNC(sd_event, sd_event_unref)

#endif
