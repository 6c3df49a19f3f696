#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The service has run out of something: descriptors, pages of pipes, processes, or address space.

The limits of the running processes are lowered (prlimit(2)) to their present use plus k. A client then reads the right
rows or gets a named error, in time. No process spins, and the service works again as soon as the resource is available.
Resources that the kernel counts per uid, and that services of other tests also use, are taken from a uid of this test's
own.
"""
import contextlib
import fcntl
import os
import pathlib
import resource
import signal
import subprocess
import time

from settled import QUICK, as_before, holds, send, settle, works

from channel import Channel
from client import Broken, Client, Failure, reference, same_rows
from harness import CHINOOK, SANITIZED, UID_A, UID_B, Service, executable, fds, main, needs_root, wait_for
from steps import DB, STREAM, Stream, make_service
from tap import at_most, cases, diagnose, equal, true

UID_OWN = 3  # "sys"; no other test runs anything as it
FREE = (0, 1, 2, 3, 5, 8, 12) if SANITIZED else range(13)
OURS = "org.sqlipc1.Error."
REFUSALS = {OURS + name for name in ("LimitsExceeded", "OutOfMemory")}
OF_MEMORY = {OURS + "OutOfMemory"}
OF_WORKERS = REFUSALS | {OURS + name for name in ("CannotOpen", "WorkerLost")}


# ---- Every kind of thing ----


def prepare(service, client):
    statement = client.prepare(DB, "SELECT 6 * 7")
    equal(statement.fetch().read().rows, [[42]], "rows of a statement")
    statement.close()


def query(service, client):
    equal(client.query(DB, "SELECT count(*) FROM Track").read().rows, [[3503]], "rows of a query")


def query_rows(service, client):
    equal(client.query_rows(DB, "SELECT 6 * 7")[1], [[42]], "rows as values")


def channel(service, client):
    with contextlib.closing(Channel(client, DB)) as one:
        number = one.prepare("SELECT 6 * 7")
        one.statement(number)
        equal(one.read(one.fetch(number)).rows, [[42]], "rows on a channel")


def new_client(service, client):
    with contextlib.closing(Client(service.address)) as another:
        query(service, another)


def new_worker(service, client):
    """Somebody who never was there has no worker."""
    with contextlib.closing(Client(service.address, UID_B)) as another:
        query(service, another)


def reload(service, client):
    client.manager("Reload")


KINDS = (prepare, query, query_rows, channel, new_client, new_worker, reload)


def ask(service, client, kind, refusals=frozenset(REFUSALS)):
    """None: it got what it asked for; else the error's name, or that its channel was closed, as without a worker."""
    try:
        kind(service, client)
        return None
    except Broken as broken:
        true(kind is channel, f"{kind.__name__}: {broken}")
        return "closed"
    except Failure as failure:
        true(len(failure.message.split()) > 1, f"{kind.__name__}: {failure.name} says only {failure.message!r}")
        true(failure.name in refusals, f"{kind.__name__}: {failure}")
        return failure.name.removeprefix(OURS)


# ---- Limits ----


def limit_for(pid, free):
    """RLIMIT_NOFILE that leaves so many numbers free."""
    taken, number = set(fds(pid)), 0
    while True:
        if number not in taken:
            if free == 0:
                return number
            free -= 1
        number += 1


@contextlib.contextmanager
def limited(pid, which, soft):
    """A soft limit of a running process is another for a while."""
    before = resource.prlimit(pid, which)
    resource.prlimit(pid, which, (soft, before[1]))
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            resource.prlimit(pid, which, before)


def busy(pid):
    """Nanoseconds in which it has run, or waited for a CPU."""
    ran, waited, _ = map(int, pathlib.Path(f"/proc/{pid}/schedstat").read_text().split())
    return ran + waited


def sleeps(pid, seconds=0.2):
    """Most of the time, however busy the machine is: who spins runs, or waits for a CPU, all of it."""
    began, before = time.monotonic_ns(), busy(pid)
    time.sleep(seconds)
    return (busy(pid) - before) / (time.monotonic_ns() - began) <= 0.5


def is_at_rest(pid):
    """It comes to rest: what it has still to do may be little, and wait for a CPU for long."""
    wait_for(lambda: sleeps(pid), f"{pid} does not run, and does not want to")


# ---- Descriptors ----


def ask_all(service, client, first):
    """Asks for every kind of object, beginning with another one each time; returns the refusals by process."""
    order = KINDS[first % len(KINDS) :] + KINDS[: first % len(KINDS)]
    answers = {kind.__name__: ask(service, client, kind) for kind in order}
    is_at_rest(service.pid())
    return {name: error for name, error in answers.items() if error}


@needs_root
def supervisor_without_descriptors():
    """The supervisor has 0 to 12 descriptors left, with and without workers: named errors or right rows"""
    with make_service() as service:
        before = settle(service, [service.chinook])
        refused = {}
        for free in FREE:
            for has_worker in (False, True):
                client = service.client()
                if has_worker:
                    works(service)
                with limited(service.pid(), resource.RLIMIT_NOFILE, limit_for(service.pid(), free)):
                    refused[free, has_worker] = ask_all(service, client, free)
                service.forget()
                as_before(service, before, [service.chinook])
                diagnose(f"{free} free, {'a worker' if has_worker else 'no worker'}: refused {refused[free, has_worker]}")
        true(refused[0, False], "without a descriptor all was served: the limit is none")
    cases("exhaustion", 2 * len(FREE) * len(KINDS), "something asked of a supervisor with few descriptors left")


@needs_root
def no_high_descriptor():
    """The supervisor cannot get descriptors of certain numbers, but has lower ones: named errors"""
    limits = range(7, 13)
    with make_service() as service:
        before, pid = settle(service, [service.chinook]), service.pid()
        for soft in limits:
            for kind in KINDS:
                client = service.client()
                with limited(pid, resource.RLIMIT_NOFILE, soft):
                    ask(service, client, kind)
                    # The descriptor of a closed pipe stays for a moment.
                    wait_for(lambda: len(fds(pid)) <= before["descriptors"], "it has what it had")
                service.forget()
        as_before(service, before, [service.chinook])
    cases("exhaustion", len(limits) * len(KINDS), "something asked of a supervisor with few descriptors left")


def has_let_go(worker):
    """It has closed the pipe of its last run. The supervisor hears of the run's end before that, and so does the client."""
    return not any(to.startswith("pipe:") for number, to in fds(worker).items() if number > 2)


@needs_root
def worker_without_descriptors():
    """A worker has 0 to 12 descriptors left: named errors or right rows; users of its siblings are not affected"""
    refused = {}
    # It must not be gone, and replaced, before it is limited.
    with make_service(limits={"WorkersMax": 1, "WorkerIdleSec": 60}) as service:
        before = settle(service, [service.chinook])
        for free in FREE:
            client = service.client(UID_A)
            client.point()
            (worker,) = service.workers()
            wait_for(lambda pid=worker: has_let_go(pid), "it closes the pipe, which would count as taken")
            kinds = (prepare, query, query_rows, channel)
            with limited(worker, resource.RLIMIT_NOFILE, limit_for(worker, free)):
                answers = {kind.__name__: ask(service, client, kind, OF_WORKERS) for kind in kinds}
                works(service)
                is_at_rest(service.pid())
                with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it may have ended, rather than fail
                    is_at_rest(worker)
            refused[free] = {name: error for name, error in answers.items() if error}
            diagnose(f"{free} free: refused {refused[free]}")
            client.point()
            service.forget()
            works(service)
            send(service.workers(), signal.SIGKILL)  # they would stay for a minute
            holds(service, before, [service.chinook])
    true(refused[0], "without a descriptor all was served: the limit is none")
    cases("exhaustion", 4 * len(FREE), "something asked of a worker with few descriptors left")


# ---- Pages of pipes, processes ----

# Takes all that its uid may have in pipes, says so, and keeps it until its input ends.
TAKE_PIPES = """
import fcntl, os, sys
kept, refused = [], False
while not refused:
    kept.append(os.pipe())
    try:
        fcntl.fcntl(kept[-1][1], fcntl.F_SETPIPE_SZ, 1 << 20)
    except PermissionError:
        refused = True
print("taken", flush=True)
sys.stdin.read()
"""


@contextlib.contextmanager
def pipes_taken():
    """By another process of the service's uid: new ones have two pages, and do not grow."""
    who = {"user": UID_OWN, "group": UID_OWN, "extra_groups": []}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "cwd": "/"}
    with subprocess.Popen(["/usr/bin/python3", "-c", TAKE_PIPES], **pipes, **who) as process:
        try:
            equal(process.stdout.readline(), "taken\n", "what the other process says")
            yield
        finally:
            process.stdin.close()


def pipe_bytes(fd):
    return fcntl.fcntl(fd, fcntl.F_GETPIPE_SZ)


@needs_root
def no_pages_for_pipes():
    """Another process of the service's user has all pages of pipes: every row arrives, through small pipes"""
    with make_service(uid=UID_OWN) as service:
        before = settle(service, [service.chinook])
        client = service.client()
        with pipes_taken():
            run = client.query(DB, STREAM)
            at_most(pipe_bytes(run.pipe), 2 * os.sysconf("SC_PAGESIZE"), "bytes of a pipe: the budget was not used up")
            Stream(run.pipe).all_of(run.number)
            run.close()
            for kind in KINDS:
                equal(ask(service, client, kind), None, f"error of {kind.__name__}")
            rows = client.query(DB, "SELECT TrackId, Name, Composer, Bytes FROM Track").read().rows
            same_rows(rows, reference(service.chinook, "SELECT TrackId, Name, Composer, Bytes FROM Track")[1])
        client.close()
        as_before(service, before, [service.chinook])
    cases("exhaustion", 2 + len(KINDS), "something asked while the user's pages of pipes are used up")


@contextlib.contextmanager
def processes_limited(pid, most):
    """By a process of its own user, which needs no privilege for that."""

    def put(soft):
        text = "unlimited" if soft == resource.RLIM_INFINITY else soft
        who = {"user": UID_OWN, "group": UID_OWN, "extra_groups": []}
        subprocess.run(["prlimit", f"--pid={pid}", f"--nproc={text}:"], check=True, cwd="/", **who)

    put(most)
    try:
        yield
    finally:
        put(resource.getrlimit(resource.RLIMIT_NPROC)[0])  # what it had from us


@needs_root
def no_process():
    """The service's user may have no more processes: a query that needs a worker gets an error, others are served"""
    with make_service(uid=UID_OWN) as service:
        before = settle(service, [service.chinook])
        client, other = service.client(), service.client(UID_A)
        kept = Channel(client, DB)
        equal(kept.ask("SELECT 6 * 7"), [[42]], "rows")
        with processes_limited(service.pid(), 1):
            for kind in (prepare, query, query_rows):
                equal(ask(service, other, kind), "LimitsExceeded", f"error of {kind.__name__} without a worker")
                equal(kept.ask("SELECT 6 * 7"), [[42]], "rows of a client with a worker")
            equal(ask(service, other, channel), "closed", "what becomes of a channel")
            equal(ask(service, client, reload), "LimitsExceeded", "error of a reload that must look up names")
            is_at_rest(service.pid())
        equal(kept.ask("SELECT 6 * 7"), [[42]], "rows of a client that had a worker")
        query(service, other)
        kept.close()
        service.forget()
        as_before(service, before, [service.chinook])
    cases("exhaustion", 5, "a request that needs a process when none may be started")


# ---- Addresses ----

MIB = 1 << 20
BIG = {
    "SQL": lambda client: client.query(DB, f"SELECT 6 * 7 /*{'x' * 900000}*/").read(),
    "a parameter": lambda client: client.query(DB, "SELECT length(?)", (bytes(1000000),)).read(),
    "a value": lambda client: client.query_rows(DB, "SELECT zeroblob(1000000)"),
}


def needs_addresses(function):
    """A sanitizer has terabytes of them, of which RLIMIT_AS says nothing: such a test is for the other build alone."""
    return function if SANITIZED else needs_root(function)


def size(pid):
    """Bytes of addresses in use."""
    pages = int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[0])
    return pages * os.sysconf("SC_PAGESIZE")


@needs_addresses
def supervisor_without_memory():
    """The supervisor has addresses for 2 to 7 MiB more: clients that ask for much hear so, others are served

    With less than a message needs it is sd-bus that gives the bus up: the service ends, and says that it lost its bus.
    """
    refused = {}
    with make_service() as service:
        before = settle(service, [service.chinook])
        for free in range(2, 8):
            client = service.client()
            client.point()
            with limited(service.pid(), resource.RLIMIT_AS, size(service.pid()) + free * MIB):
                for name, call in BIG.items():
                    error = ask(service, client, lambda _, who, call=call: call(who), OF_MEMORY)
                    works(service)
                    if error:
                        refused[free, name] = error
            service.forget()
            as_before(service, before, [service.chinook])
    diagnose(refused)
    true(refused, "everything was served: the limit is none")
    cases("exhaustion", 6 * len(BIG), "something large asked of a supervisor with little memory left")


@needs_addresses
def bus_given_up():
    """With less memory than a message needs sd-bus gives the bus up: the service says so and ends; a call starts it"""
    with Service({"chinook": CHINOOK}, activation=True, limits=QUICK) as service:
        client = service.client()
        client.point()
        before, pid = settle(service), service.pid()
        with limited(pid, resource.RLIMIT_AS, size(pid)):
            lost = "org.freedesktop.DBus.Error.NoReply"
            equal(ask(service, client, lambda _, who: BIG["SQL"](who), {lost}), lost, "what becomes of the call")
            wait_for(lambda: not executable(pid), "it ends")
        client.point()
        true(service.pid() != pid, "it is the same one")
        true("The connection to the bus is lost." in service.log_text(), f"its log does not say so: {service.log_text()}")
        service.forget()
        as_before(service, before)
    cases("exhaustion", 1, "a message that sd-bus has no memory for")


if __name__ == "__main__":
    main()
