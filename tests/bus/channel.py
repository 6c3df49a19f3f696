# SPDX-License-Identifier: LGPL-2.1-or-later
"""The client's end of a channel (sqlipc-channel(5)) in Python, independent of libsqlipc.

    channel = Channel(client, "chinook")
    number = channel.prepare("SELECT ?")         # sends it; answers arrive in the order of requests
    run = channel.fetch(number, 1)
    channel.statement(number)                    # Described, or the Failure
    channel.read(run).rows                       # a Result, or the Failure
"""
import itertools
import select
import socket
import struct
import time
from collections import namedtuple

import channel_memory
from client import END, ERROR, SECONDS, Broken, Text, decode

CANCEL, FETCH, FOREIGN_KEYS, LOCK_WAIT, PREPARE, QUERY, FINALIZE, TIME_ZONE = 0x43, 0x46, 0x4B, 0x4C, 0x50, 0x51, 0x58, 0x5A
STATEMENT = 6
MORE = 1

Described = namedtuple("Described", "columns parameters read_only")


def encode_value(value):
    """Type and bytes."""
    if value is None:
        return 5, b""
    if isinstance(value, int):
        return 1, struct.pack("<q", value)
    if isinstance(value, float):
        return 2, struct.pack("<d", value)
    if isinstance(value, str):
        value = Text(value.encode())
    return (3, bytes(value) + b"\0") if isinstance(value, Text) else (4, bytes(value))


def encode_row(values):
    if not values:
        return b""
    encoded = [encode_value(value) for value in values]
    ends = itertools.accumulate(len(data) for _, data in encoded)
    return (
        bytes(kind for kind, _ in encoded)
        + b"".join(struct.pack("<I", end) for end in ends)
        + b"".join(data for _, data in encoded)
    )


def parameters(positional, named):
    flat = list(positional) + [part for name, value in (named or {}).items() for part in (name, value)]
    return struct.pack("<II", len(positional), len(named or {})), encode_row(flat)


def frame(kind, run, payload=b"", version=1, flags=0):
    return struct.pack("<IBBHQ", len(payload), kind, version, flags, run) + payload + bytes(-len(payload) % 8)


def string(strings, start, end):
    return strings[start : end - 1] if end > start else None


def read_statement(payload):
    n_columns, n_parameters, flags, _ = struct.unpack_from("<IIII", payload)
    n = 2 * n_columns + n_parameters
    ends = struct.unpack_from(f"<{n}I", payload, 16)
    strings = payload[16 + 4 * n :]
    texts = [string(strings, start, end) for start, end in zip((0, *ends), ends)]
    columns = list(zip(texts[0 : 2 * n_columns : 2], texts[1 : 2 * n_columns : 2]))
    return Described(columns, texts[2 * n_columns :], bool(flags & 1))


class Channel:
    def __init__(self, client, database="chinook", options=None):
        options = dict(options or {})
        if channel_memory.EVERYWHERE:
            options.setdefault("memory", True)
        values, fds = client.database(database, "OpenChannel", "(a{sv})", client._options(options))
        self.info = values[1].unpack()
        handle = self.info.pop("memory", None)
        fd = fds[values[0].get_handle()]
        client.fds.discard(fd)
        self.socket = socket.socket(fileno=fd)
        self.socket.setblocking(False)
        self.memory = None
        if handle is not None:
            client.fds.discard(fds[handle])
            self.memory = channel_memory.Memory(fds[handle], self.socket)
        self.last = 0
        self.buffer = bytearray()

    def close(self):
        self.socket.close()
        if self.memory:
            self.memory.close()

    # ---- requests ----

    def send(self, data, timeout=SECONDS):
        end = time.monotonic() + timeout
        while data:
            try:
                if self.memory:
                    size = self.memory.write(data)
                    data = data[size:]
                    if data and not size and not self.memory.wait_for_room(max(0, end - time.monotonic())):
                        raise AssertionError("the channel takes nothing")
                    if data and self.memory.at_end:
                        raise Broken("the channel was closed")
                    continue
                data = data[self.socket.send(data) :]
            except BlockingIOError:
                left = end - time.monotonic()
                if left <= 0 or not select.select([], [self.socket], [], left)[1]:
                    raise AssertionError("the channel takes nothing") from None
            except (BrokenPipeError, ConnectionResetError):
                raise Broken("the channel was closed") from None

    def number(self):
        self.last += 1
        return self.last

    def request(self, kind, payload):
        number = self.number()
        self.send(frame(kind, number, payload))
        return number

    def prepare(self, sql):
        return self.request(PREPARE, sql if isinstance(sql, bytes) else sql.encode())

    def fetch(self, statement, *positional, named=None, timeout_usec=0):
        counts, row = parameters(positional, named)
        return self.request(FETCH, struct.pack("<QQ", statement, timeout_usec) + counts + row)

    def query(self, sql, *positional, named=None, timeout_usec=0):
        text = sql if isinstance(sql, bytes) else sql.encode()
        counts, row = parameters(positional, named)
        return self.request(QUERY, struct.pack("<Q", timeout_usec) + counts + struct.pack("<II", len(text), 0) + text + row)

    def cancel(self, run):
        self.send(frame(CANCEL, run))

    def finalize(self, statement):
        self.send(frame(FINALIZE, statement))

    def foreign_keys(self, setting):
        self.send(frame(FOREIGN_KEYS, setting))

    def time_zone(self, zone):
        self.send(frame(TIME_ZONE, 0, zone.encode()))

    def lock_wait(self, usec):
        self.send(frame(LOCK_WAIT, usec))

    # ---- answers ----

    def can_read(self, timeout=SECONDS):
        """True if something comes in this time, or the end."""
        if self.memory:
            end = time.monotonic() + timeout
            while self.memory.wait(max(0, end - time.monotonic())):
                if self.memory.fill() or self.memory.at_end:
                    return True
            return False
        return bool(select.select([self.socket], [], [], timeout)[0])

    def _receive(self):
        if self.memory:
            return self.memory.take()
        try:
            return self.socket.recv(65536)
        except ConnectionResetError:
            return b""

    def _exactly(self, size, end):
        while len(self.buffer) < size:
            left = end - time.monotonic()
            if left <= 0 or not self.can_read(left):
                raise AssertionError("nothing came down the channel in time")
            piece = self._receive()
            if not piece:
                raise Broken(f"end of file after {len(self.buffer)} of {size} bytes")
            self.buffer += piece
        data = bytes(self.buffer[:size])
        del self.buffer[:size]
        return data

    def frame(self, timeout=SECONDS):
        """Reads the next frame; returns run, kind, flags, and the bytes with header and padding."""
        end = time.monotonic() + timeout
        header = self._exactly(16, end)
        size, kind, _, flags, run = struct.unpack("<IBBHQ", header)
        return run, kind, flags, header + self._exactly((size + 7) & ~7, end)

    def _frames(self, number, timeout):
        """Yields the frames of the answer to this request, which must be the next answer."""
        while True:
            run, kind, flags, data = self.frame(timeout)
            if run != number:
                raise AssertionError(f"a frame of request {run} in the answer to {number}")
            yield kind, flags, data
            if kind in (END, ERROR) or (kind == STATEMENT and not flags & MORE):
                return

    def read(self, number, timeout=SECONDS):
        """Reads the answer to FETCH or QUERY."""
        return decode(data for _, _, data in self._frames(number, timeout))

    def statement(self, number, timeout=SECONDS):
        """Reads the answer to PREPARE."""
        payload = b""
        for kind, _, data in self._frames(number, timeout):
            if kind == ERROR:
                decode([data])
            payload += data[16 : 16 + struct.unpack_from("<I", data)[0]]
        return read_statement(payload)

    def ask(self, sql, *positional, **keywords):
        """Returns the rows of one query."""
        return self.read(self.query(sql, *positional, **keywords)).rows

    def is_closed(self, timeout=SECONDS):
        """The service closed it, between two answers."""
        try:
            self.frame(timeout)
        except Broken as broken:
            return "after 0 of" in str(broken)
        return False
