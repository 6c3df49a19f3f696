# SPDX-License-Identifier: LGPL-2.1-or-later
"""The frames that a client of Load writes (sqlipc-page(5)), with values of Python."""
import os
import struct

COLUMNS, ROWS, BIG_ROW, END, ERROR = range(1, 6)
PAGE = 65536


def frame(kind, payload, flags=0):
    return struct.pack("<IBBHQ", len(payload), kind, 1, flags, 1) + payload + bytes(-len(payload) % 8)


def columns(n):
    offsets = [i // 2 + 1 for i in range(2 * n)]
    return frame(COLUMNS, struct.pack(f"<II{2 * n}I", n, PAGE, *offsets) + bytes(n))


def encode(value):
    if value is None:
        return 5, b""
    if isinstance(value, int):
        return 1, struct.pack("<q", value)
    if isinstance(value, float):
        return 2, struct.pack("<d", value)
    if isinstance(value, str):
        return 3, value.encode() + b"\0"
    return 4, value


def row(values):
    types, data = zip(*map(encode, values))
    ends = [sum(map(len, data[: i + 1])) for i in range(len(data))]
    return bytes(types) + struct.pack(f"<{len(ends)}I", *ends) + b"".join(data)


def rows(values, n=100):
    """Frames of `n` rows each."""
    frames = b""
    for at in range(0, len(values), n):
        some = values[at : at + n]
        frames += frame(ROWS, struct.pack("<I", len(some)) + b"".join(map(row, some)))
    return frames


def end(n_rows, frames):
    return frame(END, struct.pack("<7Q", n_rows, len(frames), 0, 0, 0, 0, 0))


def stream(values):
    frames = columns(len(values[0])) + rows(values)
    return frames + end(len(values), frames)


def send(pipe, data):
    while data:
        data = data[os.write(pipe, data) :]


def begin_load(client, database, sql, options=None):
    """The number of a load, and the end of the pipe that is written to."""
    values, fds = client.database(database, "Load", "(sa{sv})", sql, options or {})
    return values[0].get_uint64(), fds[values[1].get_handle()]


def wait_for_load(client, database, run):
    """The changes of a load, and other results, when it is durable."""
    values, _ = client.database(database, "Wait", "(ta{sv})", run, {})
    return values[0].get_int64(), values[1].unpack()
