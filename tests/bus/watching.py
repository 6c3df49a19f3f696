# SPDX-License-Identifier: LGPL-2.1-or-later
"""A client's watches, for tests."""
import contextlib
import os
import select
import struct
import time

from gi.repository import GLib
from harness import PATIENCE, descendants, status_of, wait_for
from tap import true

DB = "watched"
PAUSE = 0.1  # longer than any after which the service looks at a file again, while it expects a change
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


def sleeps(pid):
    """How often the process, which has one thread, was put to sleep; None: it is not asleep now."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        fields = status_of(pid)
        if fields["State"].startswith("S"):
            return int(fields["voluntary_ctxt_switches"]), int(fields["nonvoluntary_ctxt_switches"])
    return None


def has_rested(service, seconds=PAUSE):
    """True if no process of the service has done anything for so long. Load can only make it false: a process for which
    something has come, or whose timer has expired, is not asleep until it has seen to that."""

    def processes():
        return {pid: sleeps(pid) for pid in (service.pid(), *descendants(service.pid()))}

    before = processes()
    time.sleep(seconds)
    return None not in before.values() and processes() == before


def is_told(service, *watches):
    """True if one of them was told of something, after the service has looked at all that was done before."""
    wait_for(lambda: has_rested(service), "the service has looked at all that was done")
    return any(watch.is_readable() for watch in watches)


def settle(service, *watches):
    """Reads what is told about the past."""
    while is_told(service, *watches):
        for watch in watches:
            if watch.is_readable():
                watch.next()
