#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Reads page streams: a second decoder, written only from docs/man/sqlipc-page.5.rst.

It shares no code with dbus-interfaces/wire/page-decoder.c and does everything in the simplest way. If the two agree, both
follow the man page. Tests that inspect pipes use it, too. Import it:

    for event in read_run(fd): ...   # one run, from the pipe of a statement or query

    decoder = PageDecoder()
    for event in decoder.feed(os.read(fd, 65536)): ...
    decoder.close()                  # BrokenStream if END or ERROR is missing

    runs = decode(stream)            # all at once

Values are None, int, float, str (TEXT) and bytes (BLOB). Bytes of a TEXT that are not UTF-8 are lone surrogates, as
os.fsdecode() makes them: text.encode("utf-8", "surrogateescape") gives them back.
"""

import os
import struct
import sys
from collections import namedtuple

COLUMNS, ROWS, BIG_ROW, END, ERROR = 1, 2, 3, 4, 5
MORE = 1
INTEGER, REAL, TEXT, BLOB, NULL = 1, 2, 3, 4, 5

PAGE_SIZE_MIN, PAGE_SIZE_MAX = 4096, 1048576
COLUMNS_SIZE_MAX = 1048576
ROW_SIZE_MAX = 1073741824
N_COLUMNS_MAX = 32767
MESSAGE_SIZE_MAX = 2048
HEADER_SIZE = 16

# columns: [(name, declared type or None)]; extension: [(tag, bytes)], which this module does not interpret
Columns = namedtuple("Columns", "run page_size columns extension")
Row = namedtuple("Row", "run values")
# n_changes, last_rowid: None if the run did not write; sequence: None if it is not known
End = namedtuple("End", "run n_rows n_bytes usec vm_steps fullscan_steps sorts autoindexes n_changes last_rowid sequence")
Error = namedtuple("Error", "run number extended_code sql_offset message extension")
Frame = namedtuple("Frame", "kind more run payload size")


class BrokenStream(Exception):
    """The stream does not follow sqlipc-page(5)."""


def require(condition, what):
    if not condition:
        raise BrokenStream(what)


def text(data):
    return data.decode("utf-8", "surrogateescape")


def read_ends(data, offset, count):
    require(len(data) >= offset + 4 * count, "no room for the ends")
    ends = struct.unpack_from(f"<{count}I", data, offset)
    require(list(ends) == sorted(ends), "decreasing ends")
    return ends


def read_extension(data):
    items, offset = [], 0
    while offset < len(data):
        require(len(data) >= offset + 8, "half of an item")
        tag, size = struct.unpack_from("<II", data, offset)
        offset += 8
        require(size <= len(data) - offset, "an item exceeds the payload")
        items.append((tag, data[offset:offset + size]))
        offset += size
    return items


def read_columns(payload):
    require(len(payload) >= 8, "short COLUMNS")
    count, page_size = struct.unpack_from("<II", payload)
    require(count <= N_COLUMNS_MAX, "number of columns")
    require(PAGE_SIZE_MIN <= page_size <= PAGE_SIZE_MAX and page_size & (page_size - 1) == 0, "page size")
    ends = read_ends(payload, 8, 2 * count)
    strings = payload[8 + 8 * count:]
    found, start = [], 0
    for index, end in enumerate(ends):
        require(end <= len(strings), "a string exceeds COLUMNS")
        data, start = strings[start:end], end
        if index % 2 == 1 and not data:
            found.append(None)
            continue
        require(data.endswith(b"\0"), "string without NUL")
        found.append(text(data[:-1]))
    return page_size, list(zip(found[0::2], found[1::2])), read_extension(strings[start:])


def read_value(kind, data):
    if kind == NULL:
        require(not data, "NULL with bytes")
        return None
    if kind == INTEGER:
        require(len(data) == 8, "size of INTEGER")
        return struct.unpack("<q", data)[0]
    if kind == REAL:
        require(len(data) == 8, "size of REAL")
        return struct.unpack("<d", data)[0]
    if kind == TEXT:
        require(data.endswith(b"\0"), "TEXT without NUL")
        return text(data[:-1])
    require(kind == BLOB, "unknown type")
    return data


def read_row(payload, offset, count):
    """One row at `offset`: its values, and the offset after it."""
    types = payload[offset:offset + count]
    ends = read_ends(payload, offset + count, count)
    data = offset + 5 * count
    require(data + ends[-1] <= len(payload), "the row exceeds the payload")
    starts = (0,) + ends[:-1]
    values = [read_value(kind, payload[data + start:data + end]) for kind, start, end in zip(types, starts, ends)]
    return values, data + ends[-1]


def read_rows(payload, count):
    require(len(payload) >= 4, "short ROWS")
    n_rows, offset = struct.unpack_from("<I", payload)[0], 4
    require(n_rows > 0, "ROWS without rows")
    for _ in range(n_rows):
        values, offset = read_row(payload, offset, count)
        yield values
    require(offset == len(payload), "bytes behind the last row")


def read_end(run, payload):
    require(len(payload) >= 56, "short END")
    n_changes, last_rowid = struct.unpack_from("<qq", payload, 56) if len(payload) >= 72 else (-1, 0)
    require(n_changes >= -1, "number of changes")
    sequence = struct.unpack_from("<Q", payload, 72)[0] if len(payload) >= 80 else 0
    changes = (n_changes, last_rowid) if n_changes >= 0 else (None, None)
    return End(run, *struct.unpack_from("<7Q", payload), *changes, sequence or None)


def read_error(run, payload):
    require(len(payload) >= 17, "short ERROR")
    number, extended_code, sql_offset, size = struct.unpack_from("<IiiI", payload)
    require(number != 0 and sql_offset >= -1 and size <= MESSAGE_SIZE_MAX, "head of ERROR")
    require(len(payload) >= 17 + size and payload[16 + size] == 0, "message of ERROR")
    message, extension = payload[16:16 + size], read_extension(payload[17 + size:])
    return Error(run, number, extended_code, sql_offset, text(message), extension)


class PageDecoder:
    """Decodes a stream in pieces of any size."""

    def __init__(self, page_size_max=PAGE_SIZE_MAX, row_size_max=ROW_SIZE_MAX):
        self.page_size_max = page_size_max
        self.row_size_max = row_size_max
        self.buffer = b""
        self.run = None         # of the current run, None between runs
        self.n_columns = None   # of the current run, None before COLUMNS
        self.page_size = page_size_max
        self.series = None      # kind of the payload that is being continued
        self.joined = b""
        self.n_rows = self.n_bytes = 0  # of the current run, as END counts them

    def feed(self, data):
        """Yields the events (Columns, Row, End and Error) that `data` completes."""
        self.buffer += data
        while (frame := self.next_frame()) is not None:
            yield from self.take(frame)

    def close(self):
        """Checks that the stream ended between runs."""
        require(self.run is None and not self.buffer, "end-of-file before END or ERROR")

    def next_frame(self):
        if len(self.buffer) < HEADER_SIZE:
            return None
        size, kind, version, flags, run = struct.unpack_from("<IBBHQ", self.buffer)
        frame_size = HEADER_SIZE + (size + 7) // 8 * 8
        require(version == 1, "version")
        require(kind in (COLUMNS, ROWS, BIG_ROW, END, ERROR), "kind of frame")
        require(flags == 0 or (flags == MORE and kind in (COLUMNS, BIG_ROW)), "flags")
        require(flags == 0 or size > 0, "an empty part of a series")
        require(frame_size <= self.page_size, "frame larger than a page")
        if len(self.buffer) < frame_size:
            return None
        payload, padding = self.buffer[HEADER_SIZE:HEADER_SIZE + size], self.buffer[HEADER_SIZE + size:frame_size]
        require(not any(padding), "padding")
        self.buffer = self.buffer[frame_size:]
        return Frame(kind, flags == MORE, run, payload, frame_size)

    def take(self, frame):
        require(self.run in (None, frame.run), "frame of another run")
        if frame.kind in (END, ERROR):
            yield self.take_last(frame)
            return

        require(self.series in (None, frame.kind), "another frame in a series")
        require((frame.kind == COLUMNS) == (self.n_columns is None), "COLUMNS come first, and once")
        require(frame.kind == COLUMNS or self.n_columns > 0, "rows without columns")
        self.run = frame.run
        self.n_bytes += frame.size
        if frame.kind == ROWS:
            for values in read_rows(frame.payload, self.n_columns):
                self.n_rows += 1
                yield Row(self.run, values)
            return

        self.joined += frame.payload
        self.series = frame.kind
        require(len(self.joined) <= (COLUMNS_SIZE_MAX if frame.kind == COLUMNS else self.row_size_max), "payload too large")
        if frame.more:
            return
        payload, self.series, self.joined = self.joined, None, b""
        if frame.kind == COLUMNS:
            page_size, columns, extension = read_columns(payload)
            require(page_size <= self.page_size_max, "page size")
            self.n_columns, self.page_size = len(columns), page_size
            yield Columns(self.run, page_size, columns, extension)
        else:
            values, end = read_row(payload, 0, self.n_columns)
            require(end == len(payload), "bytes behind a BIG_ROW")
            self.n_rows += 1
            yield Row(self.run, values)

    def take_last(self, frame):
        """Takes END or ERROR, and returns its event."""
        if frame.kind == ERROR:
            event = read_error(frame.run, frame.payload)
        else:
            require(self.n_columns is not None, "END without COLUMNS")
            require(self.series is None, "END in a series")
            event = read_end(frame.run, frame.payload)
            require((event.n_rows, event.n_bytes) == (self.n_rows, self.n_bytes), "totals of END")
        self.run, self.n_columns, self.series, self.joined = None, None, None, b""
        self.page_size, self.n_rows, self.n_bytes = self.page_size_max, 0, 0
        return event


def read_run(fd):
    """Yields the events of one run from the blocking pipe `fd`. The last one is End or Error."""
    decoder, event = PageDecoder(), None
    while not isinstance(event, (End, Error)):
        data = os.read(fd, 65536)
        require(data, "end-of-file before END or ERROR")
        for event in decoder.feed(data):
            yield event


def decode(stream, **limits):
    """Decodes a whole stream: a dict per run, with run, rows, end or error, and columns and page_size if COLUMNS came."""
    decoder, runs, current = PageDecoder(**limits), [], None
    for event in decoder.feed(stream):
        if current is None:
            current = {"run": event.run, "page_size": None, "columns": None, "rows": [], "end": None, "error": None}
            runs.append(current)
        if isinstance(event, Columns):
            current["columns"], current["page_size"] = event.columns, event.page_size
        elif isinstance(event, Row):
            current["rows"].append(event.values)
        else:
            current["end" if isinstance(event, End) else "error"] = event
            current = None
    decoder.close()
    return runs


if __name__ == "__main__":
    for one in decode(sys.stdin.buffer.read()):
        print(one)
