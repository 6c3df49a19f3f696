# SPDX-License-Identifier: LGPL-2.1-or-later
"""A client of the service in Python, independent of libsqlipc: D-Bus by Gio, pages by docs/examples/page_decoder.py.

Values are None, int, float, Text (the bytes of SQL TEXT) and bytes (a BLOB), in both directions,
so that results compare with Python's own sqlite3 without conversions (see reference()).
"""
import contextlib
import itertools
import os
import pathlib
import re
import select
import sqlite3
import struct
import sys
import time

import gi

gi.require_version("Gio", "2.0")
from gi.repository import Gio, GLib  # noqa: E402

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "docs/examples"))
import page_decoder  # noqa: E402

NAME = "org.sqlipc1"
MANAGER_PATH = "/org/sqlipc1"
MANAGER = "org.sqlipc1.Manager"
DATABASE = "org.sqlipc1.Database"
SECONDS = 120

COLUMNS, ROWS, BIG_ROW, END, ERROR = 1, 2, 3, 4, 5
MORE = 1


class Text(bytes):
    """SQL TEXT, as bytes: it may hold anything."""

    def __eq__(self, other):
        return isinstance(other, Text) and bytes(self) == bytes(other)

    def __ne__(self, other):
        return not self == other

    __hash__ = bytes.__hash__

    def __repr__(self):
        return f"Text({bytes(self)!r})"


class Failure(Exception):
    """An error reply, or an ERROR frame with its number."""

    def __init__(self, name, message="", extended=0, offset=-1, number=0):
        super().__init__(name, message)
        self.name, self.message, self.extended, self.offset, self.number = name, message, extended, offset, number

    def __str__(self):
        return f"{self.name or self.number}: {self.message}"


class Broken(Exception):
    """The stream ended without END and ERROR."""


def to_variant(value):
    """Returns a parameter as the variant of the interface."""
    if isinstance(value, GLib.Variant):
        return value
    if value is None:
        return GLib.Variant("a{sv}", {})
    if isinstance(value, Text):
        return GLib.Variant("a{sv}", {"text": bytes_variant(value)})
    if isinstance(value, bytes):
        return bytes_variant(value)
    if isinstance(value, bool):
        return GLib.Variant("b", value)
    if isinstance(value, int):
        return GLib.Variant("x", value)
    if isinstance(value, float):
        return GLib.Variant("d", value)
    return GLib.Variant("s", value)


def bytes_variant(value):
    return GLib.Variant.new_from_bytes(GLib.VariantType("ay"), GLib.Bytes.new(bytes(value)), True)


def from_variant(value):
    """Converts a value of a row in a reply; raises an error for a value that no row may contain."""
    kind = value.get_type_string()
    if kind == "v":
        return from_variant(value.get_variant())
    if kind == "x":
        return value.get_int64()
    if kind == "d":
        return value.get_double()
    if kind == "s":
        return Text(value.get_string().encode())
    if kind == "ay":
        return bytes(value.get_data_as_bytes().get_data() or b"")
    if kind == "a{sv}":
        entries = {
            value.get_child_value(i).get_child_value(0).get_string(): value.get_child_value(i).get_child_value(1)
            for i in range(value.n_children())
        }
        if not entries:
            return None
        return Text(from_variant(entries["text"]))
    raise AssertionError(f"a row holds a value of type {kind}")


def rows_from_variant(rows):
    return [
        [from_variant(row.get_child_value(c)) for c in range(row.n_children())]
        for row in (rows.get_child_value(r) for r in range(rows.n_children()))
    ]


@contextlib.contextmanager
def effective_uid(uid, groups=()):
    """Connects as another user with these supplementary groups. The kernel tells the bus the credentials at the connect."""
    if uid is None or uid == os.geteuid():
        yield
        return
    before = os.getgroups()
    os.setgroups(groups)
    os.setegid(uid)
    os.seteuid(uid)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)
        os.setgroups(before)


class Pending:
    """A call whose reply has not been read yet."""

    def __init__(self, client, path, interface, method, body, descriptors=()):
        self.connection, self.task = client.connection, None
        message = client.new_call(path, interface, method, body)
        if descriptors:
            message.set_unix_fd_list(Gio.UnixFDList.new_from_array([os.dup(fd) for fd in descriptors]))
        # result() limits the wait: many calls may be answered one after the other
        self.connection.send_message_with_reply(message, Gio.DBusSendMessageFlags.NONE, GLib.MAXINT, None, self._done)
        self.serial = message.get_serial()

    def _done(self, _, task):
        self.task = task

    def is_done(self):
        while GLib.MainContext.default().iteration(False):
            pass
        return self.task is not None

    def reply(self, seconds=SECONDS):
        end = time.monotonic() + seconds
        while not self.is_done():
            if time.monotonic() > end:
                raise AssertionError("a call is not answered")
            time.sleep(0.001)
        return values_or_failure(self.connection.send_message_with_reply_finish(self.task))

    def result(self, seconds=SECONDS):
        """Returns the values of the reply as variants, or raises the Failure."""
        body = self.reply(seconds).get_body()
        return [body.get_child_value(i) for i in range(body.n_children())] if body else []


def values_or_failure(reply):
    if reply.get_message_type() == Gio.DBusMessageType.ERROR:
        details = reply.get_body().unpack() if reply.get_body() else ()
        raise Failure(reply.get_error_name(), *details)
    return reply


def connect(address):
    """Connects to a bus. GLib waits 25 s for the answer to Hello, but a machine may stall for longer."""
    flags = Gio.DBusConnectionFlags.AUTHENTICATION_CLIENT | Gio.DBusConnectionFlags.MESSAGE_BUS_CONNECTION
    end = time.monotonic() + SECONDS
    while True:
        try:
            return Gio.DBusConnection.new_for_address_sync(address, flags, None, None)
        except GLib.Error as error:
            if not error.matches(Gio.io_error_quark(), Gio.IOErrorEnum.TIMED_OUT) or time.monotonic() > end:
                raise


def own(connection, name):
    """Takes a name. An owner before that has left keeps it until the bus has seen the end of its connection."""

    def call(method, signature, *arguments):
        reply = connection.call_sync(
            "org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", method,
            GLib.Variant(signature, arguments), None, Gio.DBusCallFlags.NONE, SECONDS * 1000, None,
        )  # fmt: skip
        return reply.unpack()[0]

    end = time.monotonic() + SECONDS
    call("RequestName", "(su)", name, 0)  # waits in the queue
    while call("GetNameOwner", "(s)", name) != connection.get_unique_name():
        if time.monotonic() > end:
            raise AssertionError(f"{name} has another owner")
        time.sleep(0.01)


class Client:
    interactive = False  # whether calls allow interactive authorization

    def __init__(self, address, uid=None, groups=()):
        with effective_uid(uid, groups):
            self.connection = connect(address)
        self.connection.set_exit_on_close(False)
        self.fds = set()

    def name(self):
        return self.connection.get_unique_name()

    def close(self):
        """Leaves the bus and closes every pipe."""
        for fd in list(self.fds):
            self.drop(fd)
        with contextlib.suppress(GLib.Error):  # the bus may have closed it first
            self.connection.close_sync(None)

    def drop(self, fd):
        self.fds.discard(fd)
        os.close(fd)

    # ---- messages ----

    def new_call(self, path, interface, method, body, destination=NAME):
        message = Gio.DBusMessage.new_method_call(destination, path, interface, method)
        if body is not None:
            message.set_body(body)
        if self.interactive:
            message.set_flags(Gio.DBusMessageFlags.ALLOW_INTERACTIVE_AUTHORIZATION)
        return message

    def message(self, path, interface, method, body, timeout=SECONDS, destination=NAME):
        message = self.new_call(path, interface, method, body, destination)
        try:
            reply, _ = self.connection.send_message_with_reply_sync(
                message, Gio.DBusSendMessageFlags.NONE, int(timeout * 1000), None
            )
        except GLib.Error as error:
            raise Failure(f"local:{error.domain}", error.message) from None
        return values_or_failure(reply)

    def begin(self, path, interface, method, signature, *arguments, descriptors=()):
        """Sends a call and does not wait for the reply."""
        body = GLib.Variant(signature, arguments) if signature else None
        return Pending(self, path, interface, method, body, descriptors)

    def signals(self):
        """Collects the manager's signals to this client from now on. Returns a function that returns the list of them."""
        heard = []
        self.connection.signal_subscribe(
            None, MANAGER, None, MANAGER_PATH, None, Gio.DBusSignalFlags.NO_MATCH_RULE,
            lambda _c, _s, _p, _i, member, values: heard.append((member, *values.unpack())),
        )  # fmt: skip

        def fetch():
            while GLib.MainContext.default().iteration(False):
                pass
            return heard

        return fetch

    def bus_call(self, method, signature, *arguments):
        reply = self.message(
            "/org/freedesktop/DBus",
            "org.freedesktop.DBus",
            method,
            GLib.Variant(signature, arguments),
            destination="org.freedesktop.DBus",
        )
        return reply.get_body().unpack()

    def raw(self, path, interface, method, signature, *arguments, timeout=SECONDS):
        """Returns the reply's values as variants, and its descriptors."""
        reply = self.message(path, interface, method, GLib.Variant(signature, arguments) if signature else None, timeout)
        passed = reply.get_unix_fd_list()
        fds = list(passed.steal_fds()) if passed else []
        self.fds.update(fds)
        body = reply.get_body()
        return [body.get_child_value(i) for i in range(body.n_children())] if body else [], fds

    def manager(self, method, signature="(a{sv})", *arguments, options=None):
        values, _ = self.raw(MANAGER_PATH, MANAGER, method, signature, *arguments, options or {})
        return [value.unpack() for value in values]

    def properties(self, interface, path=MANAGER_PATH):
        values, _ = self.raw(path, "org.freedesktop.DBus.Properties", "GetAll", "(s)", interface)
        return values[0].unpack()

    def databases(self):
        """Returns the Manager's property Databases."""
        values, _ = self.raw(MANAGER_PATH, "org.freedesktop.DBus.Properties", "Get", "(ss)", MANAGER, "Databases")
        return values[0].unpack()

    def introspect(self, path):
        values, _ = self.raw(path, "org.freedesktop.DBus.Introspectable", "Introspect", None)
        return values[0].get_string()

    # ---- one database ----

    def database(self, name, method, signature, *arguments, timeout=SECONDS):
        return self.raw(object_path(name), DATABASE, method, signature, *arguments, timeout=timeout)

    @staticmethod
    def _parameters(positional, named):
        return [to_variant(v) for v in positional], {k: to_variant(v) for k, v in (named or {}).items()}

    @staticmethod
    def _options(options):
        kinds = {
            "page-size": "u", "page-version": "u", "timeout-usec": "t", "max-bytes": "u", "error-details": "b",
            "describe": "b", "memory": "b",
        }  # fmt: skip
        return {k: v if isinstance(v, GLib.Variant) else GLib.Variant(kinds[k], v) for k, v in (options or {}).items()}

    def prepare(self, database, sql, options=None):
        values, fds = self.database(database, "Prepare", "(sa{sv})", sql, self._options(options))
        equal_count(fds, 1)
        return Statement(
            self, database, values[0].get_uint64(), fds[values[1].get_handle()], values[2].unpack(), values[3].unpack()
        )

    def query(self, database, sql, positional=(), named=None, options=None):
        values, fds = self.database(
            database, "Query", "(sava{sv}a{sv})", sql, *self._parameters(positional, named), self._options(options)
        )
        equal_count(fds, 1)
        return Run(
            self, database, values[0].get_uint64(), fds[values[1].get_handle()], values[2].unpack(), values[3].unpack()
        )

    def query_rows(self, database, sql, positional=(), named=None, options=None):
        values, _ = self.database(
            database, "QueryRows", "(sava{sv}a{sv})", sql, *self._parameters(positional, named), self._options(options)
        )
        return values[0].unpack(), rows_from_variant(values[1]), values[2].unpack()

    def execute(self, database, sql, positional=(), named=None, options=None):
        """Returns the number of changes, and the reply's other values."""
        values, _ = self.database(
            database, "Execute", "(sava{sv}a{sv})", sql, *self._parameters(positional, named), self._options(options)
        )
        return values[0].get_int64(), values[1].unpack()

    def execute_batch(self, database, statements, options=None):
        """`statements`: SQL, or tuples of SQL, positional and named parameters. Returns their changes, and other values."""
        full = [(s, (), None) if isinstance(s, str) else (*s, (), None)[:3] for s in statements]
        values, _ = self.database(
            database, "ExecuteBatch", "(a(sava{sv})a{sv})",
            [(sql, *self._parameters(positional, named)) for sql, positional, named in full], self._options(options),
        )  # fmt: skip
        return values[0].unpack(), values[1].unpack()

    def open_rows(self, database, sql, positional=(), named=None, options=None):
        values, _ = self.database(
            database, "OpenRows", "(sava{sv}a{sv})", sql, *self._parameters(positional, named), self._options(options)
        )
        return values[0].get_uint64(), values[1].unpack(), values[2].unpack()

    def next_rows(self, database, run, options=None):
        values, _ = self.database(database, "NextRows", "(ta{sv})", run, self._options(options))
        return rows_from_variant(values[0]), values[1].get_boolean(), values[2].unpack()

    def all_rows(self, database, sql, positional=(), named=None, options=None, next_options=None):
        """Calls OpenRows, and NextRows up to the end; returns columns and rows."""
        run, columns, _ = self.open_rows(database, sql, positional, named, options)
        rows, more = [], True
        while more:
            some, more, _ = self.next_rows(database, run, next_options)
            if more and not some:
                raise AssertionError("NextRows came back without a row before the end")
            rows += some
        return columns, rows

    def cancel(self, database, run):
        return self.database(database, "Cancel", "(ta{sv})", run, {})[0][0].unpack()

    def finalize(self, database, statement):
        return self.database(database, "Finalize", "(ta{sv})", statement, {})[0][0].unpack()

    def point(self, database="chinook"):
        """Runs a query that must always be answered."""
        result = self.query(database, "SELECT 6 * 7").read()
        if result.rows != [[42]]:
            raise AssertionError(f"point query answered {result.rows}")


def object_path(name):
    """Returns the object path of a database, with its name encoded as by sd_bus_path_encode(3)."""
    escaped = "".join(
        c if c.isascii() and c.isalnum() and not (c.isdigit() and i == 0) else f"_{ord(c):02x}" for i, c in enumerate(name)
    )
    return f"{MANAGER_PATH}/database/{escaped}"


def equal_count(fds, n):
    if len(fds) != n:
        raise AssertionError(f"{len(fds)} descriptors came with the reply instead of {n}")


class Statement:
    """A statement, the result of Prepare."""

    def __init__(self, client, database, number, pipe, columns, info):
        self.client, self.database, self.number, self.pipe = client, database, number, pipe
        self.columns, self.info = columns, info

    def fetch(self, *positional, named=None, options=None):
        parameters = Client._parameters(positional, named)
        values, _ = self.client.database(
            self.database, "Fetch", "(tava{sv}a{sv})", self.number, *parameters, Client._options(options)
        )
        return Run(
            self.client, self.database, values[0].get_uint64(), self.pipe, self.columns, values[1].unpack(), owned=False
        )

    def close(self):
        self.client.finalize(self.database, self.number)
        self.client.drop(self.pipe)


class Result:
    def __init__(self, columns, rows, end):
        self.columns, self.rows, self.end = columns, rows, end


class Run:
    """A run whose frames arrive in `pipe`. An owned pipe (of Query) is closed after the run has ended."""

    def __init__(self, client, database, number, pipe, columns, info, owned=True):
        self.client, self.database, self.number, self.pipe = client, database, number, pipe
        self.columns, self.info, self.owned = columns, info, owned
        self.n_rows = self.n_bytes = 0  # of the frames that were read
        self.head = []  # The COLUMNS frames read so far: with them, later rows can be decoded without the rows before.

    def cancel(self):
        return self.client.cancel(self.database, self.number)

    def close(self):
        if self.owned and self.pipe in self.client.fds:
            self.client.drop(self.pipe)

    def _exactly(self, size, end):
        data = bytearray()
        while len(data) < size:
            left = end - time.monotonic()
            poll = select.poll()
            poll.register(self.pipe, select.POLLIN)
            if left <= 0 or not poll.poll(left * 1000):
                raise AssertionError("nothing came down the pipe in time")
            piece = os.read(self.pipe, size - len(data))
            if not piece:
                raise Broken(f"end of file after {len(data)} of {size} bytes")
            data += piece
        return bytes(data)

    def frame(self, timeout=SECONDS):
        """Reads the next frame; returns kind, flags, and the bytes with header and padding."""
        end = time.monotonic() + timeout
        header = self._exactly(16, end)
        size, kind, _, flags, run = struct.unpack("<IBBHQ", header)
        if run != self.number:
            raise AssertionError(f"a frame of run {run} in the pipe of run {self.number}")
        data = header + self._exactly((size + 7) & ~7, end)
        if kind == COLUMNS:
            self.head.append(data)
        elif kind in (ROWS, BIG_ROW):
            self.n_bytes += len(data)
            self.n_rows += struct.unpack_from("<I", data, 16)[0] if kind == ROWS else not flags & MORE
        return kind, flags, data

    def frames(self, timeout=SECONDS):
        """Yields frames up to END or ERROR."""
        while True:
            kind, flags, data = self.frame(timeout)
            yield kind, flags, data
            if kind in (END, ERROR):
                return

    def counted(self, timeout=SECONDS):
        """Reads to the end without decoding rows; returns the bytes and the END frame's row count, or the failure."""
        size, last = 0, (0, 0, b"")
        for last in self.frames(timeout):
            size += len(last[2])
        self.close()
        if last[0] == ERROR:
            decode([last[2]])
        return size, struct.unpack_from("<Q", last[2], 16)[0]

    def read(self, timeout=SECONDS):
        """Reads to the end; returns a Result, or raises the Failure of its ERROR frame. Rows taken before are left out."""
        try:
            before = (self.n_rows, self.n_bytes)
            return decode(itertools.chain(list(self.head), (data for _, _, data in self.frames(timeout))), before)
        finally:
            self.close()


def error_names():
    """Returns number -> name of the errors, from the error table."""
    header = pathlib.Path(__file__).resolve().parents[2] / "dbus-interfaces/sqlipc-errors.h"
    return {int(number): name for number, name in re.findall(r"X\((\d+), [A-Z_]+, ([A-Za-z]+), ", header.read_text())}


ERROR_NAMES = error_names()


def from_page(value):
    """Returns decoded TEXT as its original bytes."""
    return Text(value.encode("utf-8", "surrogateescape")) if isinstance(value, str) else value


def decode(frames, before=(0, 0)):
    """Decodes the frames of one run into a Result, or raises the Failure of its ERROR frame. `before`: the numbers of
    rows and bytes of earlier frames that are not passed here."""
    decoder, columns, rows = page_decoder.PageDecoder(), [], []
    decoder.n_rows, decoder.n_bytes = before
    for frame in frames:
        for event in decoder.feed(frame):
            if isinstance(event, page_decoder.Columns):
                columns = [
                    (from_page(name), None if declared is None else from_page(declared)) for name, declared in event.columns
                ]
            elif isinstance(event, page_decoder.Row):
                rows.append([from_page(value) if isinstance(value, str) else value for value in event.values])
            elif isinstance(event, page_decoder.End):
                decoder.close()
                return Result(columns, rows, event)
            else:
                decoder.close()
                raise Failure(
                    "org.sqlipc1.Error." + ERROR_NAMES[event.number],
                    event.message,
                    event.extended_code,
                    event.sql_offset,
                    event.number,
                )
    raise Broken("neither END nor ERROR came")


def reference(path, sql, parameters=()):
    """Runs a query in SQLite itself; returns column names and rows as values of this module."""
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        connection.text_factory = Text
        cursor = connection.execute(sql, parameters)
        return [c[0] for c in cursor.description], [list(row) for row in cursor]
    finally:
        connection.close()


def same_rows(got, expected):
    """Compares rows by type and bit pattern: 1 is not 1.0, and -0.0 is not 0.0."""
    if len(got) != len(expected):
        raise AssertionError(f"{len(got)} rows instead of {len(expected)}")
    for number, (mine, theirs) in enumerate(zip(got, expected)):
        # The usual case, quickly: equal numbers of a type have equal bits, except 0.0 and -0.0.
        if mine == theirs and 0 not in mine and list(map(type, mine)) == list(map(type, theirs)):
            continue
        if list(map(exact, mine)) != list(map(exact, theirs)):
            raise AssertionError(f"row {number}: got {mine!r:.400}, expected {theirs!r:.400}")


def exact(value):
    kind = "Text" if isinstance(value, Text) else type(value).__name__
    return kind, struct.pack("<d", value) if isinstance(value, float) else value
