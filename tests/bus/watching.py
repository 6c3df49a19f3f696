# SPDX-License-Identifier: LGPL-2.1-or-later
"""A client's watches, for tests."""
import os
import select
import struct

from gi.repository import GLib
from harness import PATIENCE
from tap import true

DB = "watched"
KINDS = {"since": "t", "sql": "s", "statement": "t", "timeout-usec": "t"}


def variants(options):
    return {name: GLib.Variant(KINDS[name], value) for name, value in options.items()}


class Watch:
    """A watch of a client, with its end of the pipe."""

    def __init__(self, client, *tables, database=DB, **options):
        values, fds = client.database(database, "Watch", "(asa{sv})", list(tables), variants(options))
        self.client, self.database, self.number, self.info = client, database, values[0].get_uint64(), values[2].unpack()
        self.fd = fds[values[1].get_handle()]

    def is_readable(self, seconds=0):
        poll = select.poll()
        poll.register(self.fd, select.POLLIN)
        return bool(poll.poll(1000 * seconds))

    def next(self):
        """Waits for a change, and returns its number; None: end-of-file."""
        true(self.is_readable(PATIENCE), "no change was told")
        data = os.read(self.fd, 4096)
        return struct.unpack("<Q", data)[0] if data else None

    def end(self):
        self.client.database(self.database, "Unwatch", "(ta{sv})", self.number, {})

    def close(self):
        self.client.drop(self.fd)


def wait_change(client, since, *tables, database=DB, **options):
    values, _ = client.database(database, "WaitChange", "(asta{sv})", list(tables), since, variants(options))
    return values[0].get_uint64()
