# SPDX-License-Identifier: LGPL-2.1-or-later
"""The service manager's end of sd_notify(3): the service's messages one by one.

They are read at once, as systemd does: sd_notify(3) waits as long as the socket is full, and the service with it.
"""
import os
import pathlib
import queue
import socket
import tempfile
import threading

from harness import PATIENCE


class Notified:
    """Pass `environment` to Service(); close it after that."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="sqlipc-notify-")
        os.chmod(self.folder.name, 0o755)
        self.path = str(pathlib.Path(self.folder.name) / "socket")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        self.socket.bind(self.path)
        os.chmod(self.path, 0o666)
        self.environment = {"NOTIFY_SOCKET": self.path}
        self.messages = queue.SimpleQueue()
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        while message := self.socket.recv(4096):
            self.messages.put(message)

    def next(self):
        """Returns key -> value of the next message."""
        return dict(line.split("=", 1) for line in self.messages.get(timeout=PATIENCE).decode().splitlines())

    def until(self, key, value=None):
        """Reads messages until one has `key` (with this value); returns all messages read, the last one last."""
        said = [self.next()]
        while key not in said[-1] or value not in (None, said[-1][key]):
            said.append(self.next())
        return said

    def rest(self):
        """Returns all messages that were sent and not read until now."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as end:
            end.sendto(b"END=1", self.path)
        return self.until("END")[:-1]

    def close(self):
        self.socket.shutdown(socket.SHUT_RD)  # so recv() returns
        self.reader.join()
        self.socket.close()
        self.folder.cleanup()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
