# SPDX-License-Identifier: LGPL-2.1-or-later
"""Checks what the service holds, and that it holds the same as before. Used after every fault and attack.

There are four counters: descriptors of the supervisor, processes, objects that clients have open (statements, runs,
channels, watches), and read transactions (locks that processes of the service hold on the databases). They are compared
after the last worker has ended. Services of these tests therefore have a short WorkerIdleSec= (`QUICK`), and a long
ParkTimeoutSec=.
Locks are counted on all databases that the service publishes, or on those that a test names.
"""
import contextlib
import os
import pathlib
import re
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "bus"))

from channel import Channel  # noqa: E402
from client import Text  # noqa: E402
from harness import PATIENCE, PATIENT, descendants, fds, locks, wait_for  # noqa: E402
from tap import equal  # noqa: E402

QUICK = PATIENT | {"WorkerIdleSec": 0.1}
POINT = "SELECT Name FROM Artist WHERE ArtistId = 1"
ANSWER = [[Text(b"AC/DC")]]


def option(name, default):
    """A number behind --name on the command line, which is taken off it."""
    if name not in sys.argv:
        return default
    at = sys.argv.index(name)
    value = int(sys.argv[at + 1])
    del sys.argv[at : at + 2]
    return value


def send(pids, number):
    """A signal to those who are still there: a worker that is idle may end at any time."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


@contextlib.contextmanager
def stopped(pids, seconds=0):
    """They are stopped while the block runs, and so long after it."""
    send(pids, signal.SIGSTOP)
    try:
        yield
        time.sleep(seconds)
    finally:
        send(pids, signal.SIGCONT)


def is_transaction(line, path):
    """True if a lock lasts as long as a read transaction. In WAL mode each connection that is open keeps a lock
    on the database, too, and one on byte 128 of its -shm; there a reader has one of the bytes before."""
    if str(path).endswith("-shm"):
        return line.split()[6] != "128"
    return not os.path.exists(f"{path}-shm")


def transactions(service, paths):
    """Locks of read transactions that the service's processes hold; a foreign program's are none of its."""
    ours = set(map(str, [service.pid(), *descendants(service.pid())]))
    lines = [(line, path) for path in paths if os.path.exists(path) for line in locks(path)]
    return sum(line.split()[4] in ours and is_transaction(line, path) for line, path in lines)


def published(service):
    """Files of the databases in its configuration."""
    texts = [path.read_text() for path in (service.config_dir / "databases.d").glob("*.conf")]
    return [path for text in texts for path in re.findall(r"^Path=(.+)$", text, re.M)]


def n_processes(service):
    return 1 + len(descendants(service.pid()))


def held(service, paths=None):
    """The four counters, as they are now; `paths`: database files whose locks count, with their -shm if there is one."""
    now = service.counters()
    everything = [p for path in paths or published(service) for p in (path, f"{path}-shm")]
    return {
        # the memory with the counts of clients is there as long as their user, whose connections may outlive the measure
        "descriptors": sum(not target.startswith("/memfd:sqlipc-counts") for target in fds(service.pid()).values()),
        "processes": n_processes(service),
        "what clients have open": sum(now[name] for name in ("NStatements", "NRuns", "NChannels", "NWatches")),
        "read transactions": transactions(service, everything),
    }


def settle(service, paths=None):
    """Waits until the service has no worker and no client has anything of it; returns the resources that it then holds."""
    def at_rest():
        # the first only saves calls: a worker may have come since
        return not descendants(service.pid()) and service.is_idle() and not descendants(service.pid())

    wait_for(at_rest, "the service comes to rest")
    return held(service, paths)


def works(service, database="chinook", sql=POINT, answer=ANSWER):
    """A client that was not there before asks down a pipe and over a channel."""
    with contextlib.closing(service.client()) as client:
        equal(client.query(database, sql).read().rows, answer, "a new query, down a pipe")
        with contextlib.closing(Channel(client, database)) as channel:
            equal(channel.ask(sql), answer, "a new query, on a channel")
    service.clients.remove(client)


def as_before(service, before, paths=None, **query):
    """After a fault: a new query works, and then the service holds what it held `before` (of settle())."""
    works(service, **query)
    holds(service, before, paths)


def holds(service, before, paths=None, what="the service"):
    """It comes to hold what it held `before` (of held() or settle()). Descriptors may have become fewer, and processes, too:
    on a busy machine, a worker may be idle for so long that it ends."""

    def same():
        if n_processes(service) > before["processes"]:  # mostly the last to come true, and the cheapest to look at
            return False
        now = held(service, paths)
        fewer = {name: min(now[name], before[name]) for name in ("descriptors", "processes")}
        return now == before | fewer

    try:
        wait_for(same, "the service holds what it held before", PATIENCE)
    except AssertionError:
        equal(held(service, paths), before, f"what the service holds after {what}")
