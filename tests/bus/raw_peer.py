# SPDX-License-Identifier: LGPL-2.1-or-later
"""A connection to the bus without a library: it reads only when a test reads, and can send malformed messages."""
import os
import socket
import struct

from client import DATABASE, NAME, SECONDS, Gio, GLib, effective_uid, object_path
from tap import equal

MIB = 1024 * 1024
BATCH = 1000
METHOD_RETURN, METHOD_ERROR = 2, 3

PREPARE = (object_path("chinook"), DATABASE, "Prepare", GLib.Variant("(sa{sv})", ("SELECT 1", {})))
OPEN_CHANNEL = (object_path("chinook"), DATABASE, "OpenChannel", GLib.Variant("(a{sv})", ({},)))
QUERY_ROWS = (object_path("chinook"), DATABASE, "QueryRows", GLib.Variant("(sava{sv}a{sv})", ("SELECT 1", [], {}, {})))


def begin(path, uid=None):
    """Connects to the bus at `path` and authenticates as `uid`. Raises ConnectionError if the bus refuses."""
    uid = uid if uid is not None else os.geteuid()
    raw = socket.socket(socket.AF_UNIX)
    raw.settimeout(SECONDS)
    with effective_uid(uid):
        raw.connect(str(path))
        raw.sendall(b"\0AUTH EXTERNAL " + str(uid).encode().hex().encode() + b"\r\n")
        if not raw.recv(100).startswith(b"OK"):
            raise ConnectionRefusedError("the bus does not let us in")
    return raw


class Raw:
    def __init__(self, path, uid=None, descriptors=True):
        """`path`: the bus's socket. Raises ConnectionError if the bus refuses another connection."""
        self.socket, self.serial, self.unread = begin(path, uid), 1, b""
        # Without this negotiation the bus drops replies with descriptors; recv() closes the descriptors.
        if descriptors:
            self.socket.sendall(b"NEGOTIATE_UNIX_FD\r\n")
            equal(self.socket.recv(100), b"AGREE_UNIX_FD\r\n", "what the bus says of descriptors")
        self.socket.sendall(b"BEGIN\r\n")
        self.send(self.blob("/org/freedesktop/DBus", "org.freedesktop.DBus", "Hello", destination="org.freedesktop.DBus"))
        refusal = self.answer()
        if refusal:
            raise ConnectionRefusedError(f"the bus answers Hello by {refusal}")

    @staticmethod
    def blob(path, interface, method, body=None, destination=NAME, flags=Gio.DBusMessageFlags.NONE, fds=()):
        """Returns a call as bytes; `fds`: the number of descriptors that send_with() adds."""
        message = Gio.DBusMessage.new_method_call(destination, path, interface, method)
        message.set_serial(1)
        message.set_flags(flags)
        if body is not None:
            message.set_body(body)
        if fds:
            passed = Gio.UnixFDList()
            for fd in fds:
                passed.append(fd)
            message.set_unix_fd_list(passed)
        return bytes(message.to_blob(Gio.DBusCapabilityFlags.UNIX_FD_PASSING))

    def send(self, blob, n=1):
        """Sends `n` copies of a message, each with its own serial."""
        for start in range(0, n, BATCH):
            copies = bytearray(blob * min(BATCH, n - start))
            for at in range(0, len(copies), len(blob)):
                self.serial += 1
                struct.pack_into("<I", copies, at + 8, self.serial)
            self.socket.sendall(copies)

    def send_with(self, blob, fds):
        """Sends a message with descriptors."""
        copy = bytearray(blob)
        self.serial += 1
        struct.pack_into("<I", copy, 8, self.serial)
        sent = socket.send_fds(self.socket, [copy], list(fds))
        self.socket.sendall(copy[sent:])

    def message(self):
        """Reads the next message as bytes. Raises ConnectionResetError if the bus has closed the connection."""
        while True:
            size = Gio.DBusMessage.bytes_needed(self.unread[:16]) if len(self.unread) >= 16 else 16
            if len(self.unread) >= size > 16:
                blob, self.unread = self.unread[:size], self.unread[size:]
                return blob
            piece = self.socket.recv(MIB)
            if not piece:
                raise ConnectionResetError("the bus hung up")
            self.unread += piece

    def answer(self):
        """Reads the next reply and skips signals; returns the name of its error, or ""."""
        while True:
            blob = self.message()
            if blob[1] == METHOD_RETURN:
                return ""
            if blob[1] == METHOD_ERROR:
                return Gio.DBusMessage.new_from_blob(blob, Gio.DBusCapabilityFlags.NONE).get_error_name()

    def replies(self, n):
        """Reads up to `n` available messages (replies, errors, NameAcquired), at least one; returns their number."""
        got = 0
        while True:
            while got < n and len(self.unread) >= 16:
                size = Gio.DBusMessage.bytes_needed(self.unread[:16])
                if len(self.unread) < size:
                    break
                self.unread = self.unread[size:]
                got += 1
            if got > 0:
                return got
            self.unread += self.socket.recv(MIB)

    def close(self):
        self.socket.close()
