# SPDX-License-Identifier: LGPL-2.1-or-later
"""Files with SQL and parameters, for the option "arguments"."""
import contextlib
import fcntl
import os
import struct

from client import DATABASE, Gio, GLib, object_path, values_or_failure

SEALS = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
INTEGER, TEXT, BLOB, NULL = 1, 3, 4, 5


def row(values):
    """A row of the page format."""
    types, ends, data = bytearray(), [], bytearray()
    for value in values:
        kind, content = {
            int: lambda v: (INTEGER, struct.pack("<q", v)),
            str: lambda v: (TEXT, v.encode() + b"\0"),
            bytes: lambda v: (BLOB, v),
            type(None): lambda v: (NULL, b""),
        }[type(value)](value)
        types.append(kind)
        data += content
        ends.append(len(data))
    return bytes(types) + struct.pack(f"<{len(ends)}I", *ends) + bytes(data)


def statement(sql="", positional=(), named=None):
    values = [*positional, *(part for item in (named or {}).items() for part in item)]
    parameters = row(values) if values else b""
    head = struct.pack("<4I", len(sql.encode()), len(parameters), len(positional), len(named or {}))
    return head + sql.encode() + b"\0" + parameters


@contextlib.contextmanager
def file(content, seals=SEALS):
    fd = os.memfd_create("arguments", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        os.write(fd, content)
        if seals:
            fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seals)
        yield fd
    finally:
        os.close(fd)


def call(client, database, method, signature, *arguments, fd, options=None):
    """Calls a method with the descriptor in the option. Returns the values, and the descriptors of the reply."""
    full = {"arguments": GLib.Variant("h", 0)} | (options or {})
    message = client.new_call(object_path(database), DATABASE, method, GLib.Variant(signature, (*arguments, full)))
    passed = Gio.UnixFDList.new()
    passed.append(fd)
    message.set_unix_fd_list(passed)
    reply, _ = client.connection.send_message_with_reply_sync(message, Gio.DBusSendMessageFlags.NONE, 60000, None)
    reply = values_or_failure(reply)
    got = reply.get_unix_fd_list()
    got = list(got.steal_fds()) if got else []
    client.fds.update(got)
    body = reply.get_body()
    return [body.get_child_value(i) for i in range(body.n_children())], got
