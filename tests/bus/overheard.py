# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the bus routes to the service: a test that stops the service knows so what lies before its door."""
from gi.repository import GLib

from client import Client

OBJECTS = "/org/sqlipc1"


class Overheard:
    """Members of the calls to the service's objects, by whichever of its names, in the order of the bus."""

    def __init__(self, address):
        self.members, self.client = [], Client(address)
        self.client.connection.add_filter(self.on_message)
        self.client.message(
            "/org/freedesktop/DBus",
            "org.freedesktop.DBus.Monitoring",
            "BecomeMonitor",
            GLib.Variant("(asu)", ([f"type='method_call',path_namespace='{OBJECTS}'"], 0)),
            destination="org.freedesktop.DBus",
        )

    def on_message(self, _connection, message, incoming):
        if incoming and (message.get_path() or "").startswith(OBJECTS):
            self.members.append(message.get_member())
            return None  # nothing that this client would answer
        return message

    def close(self):
        self.client.close()
