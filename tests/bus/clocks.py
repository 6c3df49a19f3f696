# SPDX-License-Identifier: LGPL-2.1-or-later
"""Clocks that a test moves (clocks.c). Limits that no machine reaches by being slow end in a moment:

    with Clocks() as clocks, Service(limits={"StatementIdleSec": 600}, environment=clocks.environment) as service:
        clocks.go_on(700)

Supervisor and workers see that the time has passed when they wake up, which every call to the service causes. After stop()
no time passes except by go_on(), so that no deadline comes because the machine is slow; but it passes in workers, which look
at their orders by their clock. For the test's own libraries:

    with own_clocks.standing():
        cancel_a_load()
"""
import contextlib
import mmap
import os
import pathlib
import struct
import sys
import tempfile
import time

from harness import BUILD_ROOT, reachable
from tap import Skip

NSEC = 10**9


def library():
    path = BUILD_ROOT / "tests/bus/libclocks.so"
    if not path.exists():
        raise Skip("this build has no tests, and so no library that moves clocks")
    return str(reachable(path))


class Clocks:
    """The clocks of programs that are started with `environment`."""

    def __init__(self, path=None):
        self.gone_on = self.stopped_at = 0
        self.folder = None
        if path is None:
            preloaded = library()
            self.folder = tempfile.TemporaryDirectory(prefix="sqlipc-clocks-")
            os.chmod(self.folder.name, 0o755)
            path = pathlib.Path(self.folder.name, "clocks")
            self.environment = {"LD_PRELOAD": preloaded, "TEST_CLOCKS": str(path)}
        self.file = path
        self.move()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.folder.cleanup()

    def move(self, realtime=0, monotonic=0):
        """Sets the clocks so many seconds apart from those of the machine."""
        with open(self.file, "r+b" if os.path.exists(self.file) else "w+b") as file:
            file.truncate(24)
            with mmap.mmap(file.fileno(), 24) as numbers:
                numbers[:] = struct.pack("<qqq", realtime * NSEC, int(monotonic * NSEC), self.stopped_at)

    def go_on(self, seconds):
        """Lets so much time pass for timers and deadlines."""
        self.gone_on += seconds
        self.move(monotonic=self.gone_on)

    def let_pass(self, service, *seconds):
        """Lets these times pass one after the other, and the supervisor do after each what it has to do by then."""
        for time_to_pass in seconds:
            self.go_on(time_to_pass)
            for _ in range(2):  # a timer that is due when the first call comes goes before the second one
                service.counters()

    def stop(self):
        """The clocks stand still from now on."""
        self.stopped_at = time.monotonic_ns()
        self.move(monotonic=self.gone_on)

    def start(self):
        """They go on, at the time that they would have reached."""
        self.stopped_at = 0
        self.move(monotonic=self.gone_on)

    @contextlib.contextmanager
    def standing(self):
        """Inside of the block, only go_on() lets time pass for timers and deadlines."""
        self.stop()
        try:
            yield
        finally:
            self.start()


def clocks_of_our_libraries():
    """Starts this test again, so that our libraries in this process go by the clocks that are returned."""
    if "TEST_CLOCKS" not in os.environ:
        try:
            preloaded = library()
        except Skip as skip:
            print(f"1..0 # SKIP {skip}")
            sys.exit(0)
        numbers = os.memfd_create("clocks", 0)  # which the program inherits
        os.ftruncate(numbers, 24)
        preload = " ".join(filter(None, (os.environ.get("LD_PRELOAD"), preloaded)))  # first the sanitizers, if any
        clocks = {"LD_PRELOAD": preload, "TEST_CLOCKS": f"/proc/self/fd/{numbers}", "TEST_CLOCKS_OURS": "1"}
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | clocks)
    # Its children go by the machine's.
    path = os.environ.pop("TEST_CLOCKS")
    del os.environ["TEST_CLOCKS_OURS"]
    preload = os.environ.pop("LD_PRELOAD").split()
    if preload[:-1]:
        os.environ["LD_PRELOAD"] = " ".join(preload[:-1])
    return Clocks(path)
