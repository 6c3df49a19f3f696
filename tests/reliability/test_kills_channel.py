#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A process is killed at each step of a channel's life, and leaves no descriptor, process, channel or lock."""
import contextlib
import multiprocessing
import os
import pathlib
import signal
import sqlite3
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "bus"))
from channel import QUERY, Channel, frame  # noqa: E402
from client import Broken, Client  # noqa: E402
from harness import CHINOOK, PATIENCE, Service, children, fds, locks, main, wait_for  # noqa: E402
from tap import equal, test, true  # noqa: E402

SCAN = "SELECT count(*) FROM Track AS a, Track AS b, Track AS c, Track AS d"
STREAM = "SELECT a.* FROM Track AS a, Track AS b"
# More than a request may have, but not enough to end the channel: it is dropped as it arrives.
TOO_LARGE = frame(QUERY, 1, b"x" * 1000).replace((1000).to_bytes(4, "little"), (100 << 20).to_bytes(4, "little"), 1)
LIMITS = {"WorkerIdleSec": 0, "ParkTimeoutRollbackSec": 60, "BusyTimeoutSec": 60}


def prepared(channel):
    number = channel.prepare("SELECT count(*) FROM Genre")
    channel.statement(number)


def unread(channel):
    for _ in range(20):
        channel.query("SELECT * FROM Track")


# The client's step, and the state that its channel is then in. The place at which an answer fills a socket depends on the
# size of the pages before: in the middle of a run, after its last row, or in the page that was to be sent next, and then
# no run is under way: "answered".
STEPS = {
    "opened": (lambda channel: None, "resting"),
    "prepared": (prepared, "idle"),
    "given back": (prepared, "resting"),
    "half a request": (lambda channel: channel.send(frame(QUERY, 1, b"x" * 1000)[:500]), "idle"),
    "too large a request": (lambda channel: channel.send(TOO_LARGE), "idle"),
    "behind a lock": (lambda channel: channel.query("SELECT count(*) FROM Genre"), "running"),
    "running": (lambda channel: channel.query(SCAN), "running"),
    "parked": (lambda channel: channel.query(STREAM), "parked"),
    "unread answers": (unread, "parked or draining or answered"),
}


def bury_orphans():
    """At the end of a worker, builds with sanitizers look for leaks in a process that traces it. If the worker is killed
    then, it cannot be reaped before its tracer, which becomes our child, is reaped."""
    for pid in children(os.getpid()):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError, ChildProcessError):
            if pathlib.Path(f"/proc/{pid}/comm").read_text().strip() == "sqlipc-worker":
                os.waitpid(pid, os.WNOHANG)


class Life(Service):
    """A service with a database of its own, and the resources that it holds when it is idle."""

    def __init__(self):
        super().__init__(limits=LIMITS)
        self.chinook = self.data / "chinook.sqlite"
        self.chinook.write_bytes(CHINOOK.read_bytes())
        self.database("chinook", Path=self.chinook)
        self.driver.manager("Reload")
        self.writer = sqlite3.connect(self.chinook, isolation_level=None)
        self.driver.point()
        self.before = self.held()

    def held(self):
        def no_workers():
            bury_orphans()
            return self.counters()["NWorkers"] == 0 and not self.workers()

        wait_for(no_workers, "idle workers end")
        held = []

        def no_pipes():
            held[:] = sorted(target.split("[")[0] for target in fds(self.pid()).values())
            return not any(target.startswith("pipe:") for target in held)

        wait_for(no_pipes, "pipes whose readers are gone are closed")
        return held

    def state(self):
        ((_, _, _, more),) = self.driver.manager("ListChannels")[0]
        return "answered" if more["state"] == "idle" and more["total-runs"] > 0 else more["state"]

    def reach(self, step):
        """Waits for the state that the channel has at this step."""
        if step == "given back":  # as after ten seconds in which nothing comes
            wait_for(lambda: self.state() in ("idle", "resting"), "it has answered")
            self.limits(**LIMITS, RowSizeMax=10_000_000)
            self.driver.manager("Reload")
            self.limits(**LIMITS)
            wait_for(lambda: self.state() == "resting", "it is given back")
            self.driver.manager("Reload")
        wait_for(lambda: self.state() in STEPS[step][1].split(" or "), f"{step}: its state")

    def check(self):
        """Fails if anything is left."""
        wait_for(lambda: not self.driver.manager("ListChannels")[0], "no channel")
        wait_for(self.is_idle, "no statement and no run")
        equal(self.held(), self.before, "descriptors of the supervisor")
        wait_for(lambda: not locks(self.chinook), "locks of processes that end are dropped")


@contextlib.contextmanager
def locked(service, step):
    """A program writes while the block runs, at the step that is about that."""
    if step == "behind a lock":
        service.writer.execute("BEGIN EXCLUSIVE")
    try:
        yield
    finally:
        if step == "behind a lock":
            service.writer.execute("ROLLBACK")


def killed(service):
    """Lines of the log about killed workers, except idle ones that looked for leaks for too long when they ended."""
    lines = service.log_text().splitlines()
    return [line for line in lines if " is killed" in line and "it was told to end" not in line]


def live(address, step, ready):
    """A client's life until it is killed."""
    client = Client(address)
    channel = Channel(client)
    STEPS[step][0](channel)
    ready.set()
    signal.pause()


@test
def client_killed():
    """The client is killed at each step of a channel's life: nothing is left, not even a query that waits for a lock"""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["channel", "client", "harness", "tap"])
    with Life() as service:
        for step in STEPS:
            with locked(service, step):
                ready = context.Event()
                process = context.Process(target=live, args=(service.address, step, ready), daemon=True)
                process.start()
                true(ready.wait(PATIENCE), f"{step}: the client did not come up")
                service.reach(step)
                process.kill()
                process.join()
                wait_for(service.is_idle, f"{step}: the daemon forgets it")
            service.check()
        equal(killed(service), [], "workers that were killed for a client that left")


@test
def socket_closed():
    """The client closes its end of the channel, and stays on the bus"""
    with Life() as service:
        client = service.client()
        for step in STEPS:
            with locked(service, step):
                channel = Channel(client)
                STEPS[step][0](channel)
                service.reach(step)
                channel.close()
                wait_for(service.is_idle, f"{step}: the daemon forgets it")
            service.check()
        equal(killed(service), [], "workers that were killed for a channel that closed")


@test
def worker_killed():
    """A worker is killed: clients without an answer read end-of-file, a resting channel continues at another worker"""
    with Life() as service:
        client = service.client()
        for step, (act, state) in STEPS.items():
            with locked(service, step):
                channel = Channel(client)
                act(channel)
                service.reach(step)
                for pid in service.workers():
                    with contextlib.suppress(ProcessLookupError):  # of a channel that was given back it just ends
                        os.kill(pid, signal.SIGKILL)
                if state != "resting":
                    wait_for(service.is_idle, f"{step}: the channel goes with it")
            if state == "resting":
                equal(channel.ask("SELECT 40 + 2"), [[42]], f"{step}: rows")
            else:
                try:
                    while channel.frame():
                        pass
                except Broken:
                    pass
            channel.close()
            service.check()


@test
def daemon_killed():
    """The daemon is killed: its workers and their locks go, the client reads end-of-file, the next daemon starts afresh"""
    with Life() as service:
        client = service.client()
        for step, (act, _) in STEPS.items():
            with locked(service, step):
                channel = Channel(client)
                act(channel)
                service.reach(step)
                service.kill()
                try:
                    while channel.frame():
                        pass
                except Broken:
                    pass
                channel.close()
            # a killed process gives its memory back first, and is no worker any more, and then its files
            wait_for(lambda: not locks(service.chinook), f"{step}: locks are dropped")
            service.start()
            client.point()
            with contextlib.closing(Channel(client)) as another:
                equal(another.ask("SELECT 1"), [[1]], f"{step}: rows of a new channel")
            service.check()


if __name__ == "__main__":
    main()
