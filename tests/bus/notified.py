# SPDX-License-Identifier: LGPL-2.1-or-later
"""The service manager's end of sd_notify(3): reads the service's messages one by one."""
import os
import pathlib
import socket
import tempfile

from harness import PATIENCE


class Notified:
    """Pass `environment` to Service(); close it after that."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="sqlipc-notify-")
        os.chmod(self.folder.name, 0o755)
        path = pathlib.Path(self.folder.name) / "socket"
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        self.socket.bind(str(path))
        os.chmod(path, 0o666)
        self.socket.settimeout(PATIENCE)
        self.environment = {"NOTIFY_SOCKET": str(path)}

    def next(self):
        """Returns key -> value of the next message."""
        return dict(line.split("=", 1) for line in self.socket.recv(4096).decode().splitlines())

    def until(self, key, value=None):
        """Reads messages until one has `key` (with this value); returns all messages read, the last one last."""
        said = [self.next()]
        while key not in said[-1] or value not in (None, said[-1][key]):
            said.append(self.next())
        return said

    def close(self):
        self.socket.close()
        self.folder.cleanup()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
