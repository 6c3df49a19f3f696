# SPDX-License-Identifier: LGPL-2.1-or-later
"""Monitors the calls that the bus routes to the service, so that a test can stop the service and know its unread calls. With
another namespace of paths it monitors those to the bus driver, too."""
from gi.repository import Gio, GLib

from client import Client

OBJECTS = "/org/sqlipc1"


class Overheard:
    """Records the members of calls to the service's objects, by its well-known or unique name, in the order of the bus.
    `paths`: to all objects below this path, of any program."""

    def __init__(self, address, paths=OBJECTS):
        self.members, self.paths, self.client = [], paths, Client(address)
        self.client.connection.add_filter(self.on_message)
        self.client.message(
            "/org/freedesktop/DBus",
            "org.freedesktop.DBus.Monitoring",
            "BecomeMonitor",
            GLib.Variant("(asu)", ([f"type='method_call',path_namespace='{paths}'"], 0)),
            destination="org.freedesktop.DBus",
        )

    def on_message(self, _connection, message, incoming):
        # the bus tells a monitor by a signal that it has lost its name
        is_call = message.get_message_type() == Gio.DBusMessageType.METHOD_CALL
        if incoming and is_call and (message.get_path() or "").startswith(self.paths):
            self.members.append(message.get_member())
            return None  # Drops the message, so that this client does not answer it.
        return message

    def close(self):
        self.client.close()
