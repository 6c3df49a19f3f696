# SPDX-License-Identifier: LGPL-2.1-or-later
"""Clocks of a service that a test moves (clocks.c). Limits that no machine reaches by being slow end in a moment:

    with Clocks() as clocks, Service(limits={"StatementIdleSec": 600}, environment=clocks.environment) as service:
        clocks.go_on(700)

Supervisor and workers see that the time has passed when they wake up, which every call to the service causes.
"""
import mmap
import os
import pathlib
import struct
import tempfile

from harness import BUILD_ROOT, SANITIZED, reachable
from tap import Skip


class Clocks:
    def __init__(self):
        if SANITIZED:
            raise Skip("a sanitizer wants to be the first library, before one that moves clocks")
        library = BUILD_ROOT / "tests/bus/libclocks.so"
        if not library.exists():
            raise Skip("this build has no tests, and so no library that moves clocks")
        self.folder = tempfile.TemporaryDirectory(prefix="sqlipc-clocks-")
        os.chmod(self.folder.name, 0o755)
        self.file = pathlib.Path(self.folder.name, "clocks")
        self.gone_on = 0
        self.move()
        self.environment = {"LD_PRELOAD": str(reachable(library)), "TEST_CLOCKS": str(self.file)}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.folder.cleanup()

    def move(self, realtime=0, monotonic=0):
        """Sets the clocks so many seconds apart from those of the machine."""
        with open(self.file, "r+b" if self.file.exists() else "w+b") as file:
            file.truncate(16)
            with mmap.mmap(file.fileno(), 16) as offsets:
                offsets[:] = struct.pack("<qq", realtime * 10**9, monotonic * 10**9)

    def go_on(self, seconds):
        """Lets so much time pass for timers and deadlines."""
        self.gone_on += seconds
        self.move(monotonic=self.gone_on)
