#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Clients that misuse their end of a pipe: flags, size, splice, copies for other processes, a close before the end.

The pipe gives right results or a named error. Neighbours are answered meanwhile, and afterwards the service is as before.
"""
import contextlib
import ctypes
import fcntl
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import termios

import settled
from client import SECONDS, Broken, Client, Failure, decode, reference, same_rows
from harness import CHINOOK, SANITIZED, UID_A, UID_B, UID_DAEMON, Service, expect, fds, main, needs_root, wait_for
from neighbours import besieged
from tap import cases, equal, true

ROOT = os.geteuid() == 0
A = UID_A if ROOT else None
MIB = 1024 * 1024
TRACKS = "SELECT * FROM Track"
N_LONG = 20000
LONG = f"SELECT a.* FROM Track a, Track b LIMIT {N_LONG}"  # more than any pipe holds
ENDLESS = "WITH RECURSIVE n(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM n) SELECT x, 'some text' FROM n"
EXPECTED = reference(CHINOOK, TRACKS)[1]
SPLICE_F_NONBLOCK = 2
libc = ctypes.CDLL(None, use_errno=True)

service = Service({"chinook": CHINOOK}, limits=settled.QUICK)


def add_flags(fd, flags):
    fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) | flags)


def sigio_to_us(fd):
    """The kernel signals us whenever something comes."""
    signal.signal(signal.SIGIO, signal.SIG_IGN)
    fcntl.fcntl(fd, fcntl.F_SETOWN, os.getpid())
    add_flags(fd, os.O_ASYNC)


def reopened_for_writing(fd):
    """Opens a write end, as our own user or root may: the bytes written there harm only this client."""
    with contextlib.suppress(PermissionError):
        os.close(os.open(f"/proc/self/fd/{fd}", os.O_WRONLY | os.O_NONBLOCK))


MANIPULATIONS = {
    "O_NONBLOCK": lambda fd: add_flags(fd, os.O_NONBLOCK),
    "O_DIRECT": lambda fd: add_flags(fd, os.O_DIRECT),
    "O_ASYNC": sigio_to_us,
    "O_APPEND": lambda fd: add_flags(fd, os.O_APPEND),
    "owner without signal": lambda fd: fcntl.fcntl(fd, fcntl.F_SETOWN, 1 if ROOT else os.getpid()),
    "inherited": lambda fd: os.set_inheritable(fd, True),
    "FIONREAD": lambda fd: fcntl.ioctl(fd, termios.FIONREAD, bytes(4)),
    "FIONBIO": lambda fd: fcntl.ioctl(fd, termios.FIONBIO, struct.pack("i", 1)),
    "size of now": lambda fd: fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, fcntl.fcntl(fd, fcntl.F_GETPIPE_SZ)),
    "written to": lambda fd: written_to(fd),
    "reopened": lambda fd: os.close(os.open(f"/proc/self/fd/{fd}", os.O_RDONLY | os.O_NONBLOCK)) if ROOT else None,
    "reopened for writing": reopened_for_writing,
    "mode": lambda fd: chmod(fd),
}


def written_to(fd):
    with contextlib.suppress(OSError):
        os.write(fd, b"x")
        raise AssertionError("an end for reading can be written to")


def chmod(fd):
    with contextlib.suppress(PermissionError):
        os.fchmod(fd, 0)


def rows_of(run, data=b""):
    """Rows of a run of whose pipe `data` was read, and which may have become one that does not wait."""
    data = bytearray(data)
    while not ended(data, run.number):
        true(select.select([run.pipe], [], [], SECONDS)[0], "nothing came down the pipe in time")
        piece = os.read(run.pipe, MIB)
        if not piece:
            raise Broken("end of file")
        data += piece
    return decode(frames(bytes(data))).rows


def frames(data):
    while data:
        whole = 16 + ((struct.unpack_from("<I", data)[0] + 7) & ~7)
        yield data[:whole]
        data = data[whole:]


def ended(data, number):
    """END and ERROR of these runs begin within the last KiB, at a multiple of 8, and end with it."""
    for at in range(max(0, len(data) - 1024) & ~7, len(data) - 15, 8):
        size, kind, _, _, run = struct.unpack_from("<IBBHQ", data, at)
        if run == number and kind in (4, 5) and at + 16 + ((size + 7) & ~7) == len(data):
            return True
    return False


@besieged(service, UID_B)
def manipulated():
    """Changed flags, owner, mode, ioctl and copies of a pipe, before, during and after reading: rows are right"""
    client, tried = service.client(A), 0
    for name, manipulate in MANIPULATIONS.items():
        for when in ("at rest", "before", "amid", "after"):
            statement = client.prepare("chinook", TRACKS)
            if when == "at rest":
                manipulate(statement.pipe)
            run = statement.fetch()
            if when == "before":
                manipulate(run.pipe)
            if when == "amid":
                first = os.read(run.pipe, 1000)
                manipulate(run.pipe)
                same_rows(rows_of(run, first), EXPECTED)
            else:
                same_rows(rows_of(run), EXPECTED)
            if when == "after":
                manipulate(run.pipe)
                same_rows(rows_of(statement.fetch()), EXPECTED)
            statement.close()
            tried += 1
    cases("hostile pipe", tried, "a pipe manipulated at rest, in use or after")


@besieged(service, UID_B)
def sizes():
    """A pipe enlarged or shrunk, at rest, during rows or after Finalize: rows, or LimitsExceeded if it grew"""
    tried, outcomes = 0, set()
    # Too few pages for the service to make a pipe as large as its reader does.
    with Service({"chinook": CHINOOK}, limits={**settled.QUICK, "PipePagesMax": 128}) as small:
        client = small.client(A)
        settled.works(small)
        before = settled.settle(small)
        for size in (1, 4096, 8192, 65536, 131072, MIB, 2 * MIB, 2**31 - 1, 0, -1):
            for when in ("at rest", "amid", "kept"):
                outcomes.add(resized(small, client, size, when))
                while client.fds:
                    client.drop(next(iter(client.fds)))
                wait_for(lambda: not small.states(), "runs whose pipe is closed end")
                tried += 1
        wait_for(lambda: can_prepare(client), "pipes that were closed count no more")
        small.forget()
        settled.as_before(small, before)
    true({"rows", "LimitsExceeded", "finalized"} <= outcomes, f"all brought {outcomes}")
    cases("hostile pipe", tried, "a pipe resized at rest, in use or after")


def resized(small, client, size, when):
    """The result of the run whose pipe got this size."""
    try:
        statement = client.prepare("chinook", LONG)
        if when == "at rest":
            resize(statement.pipe, size)
        run = statement.fetch()
        first = b""
        if when == "amid":
            first = os.read(run.pipe, 1000)
            wait_for(lambda: small.states() == ["parked"], "the run waits for its reader")
            before = fcntl.fcntl(run.pipe, fcntl.F_GETPIPE_SZ)
            resize(run.pipe, size)
            if fcntl.fcntl(run.pipe, fcntl.F_GETPIPE_SZ) > before:
                can_prepare(client)  # before it makes one more, the service looks at those that there are
        if when == "kept":
            client.finalize("chinook", statement.number)
            resize(statement.pipe, size)
            client.drop(statement.pipe)
            return "finalized"
        equal(len(rows_of(run, first)), N_LONG, "rows")
        statement.close()
        return "rows"
    except Failure as failure:
        name = failure.name.removeprefix("org.sqlipc1.Error.")
        # A statement is gone once its pipe was seen to have grown.
        true(name in ("LimitsExceeded", "UnknownStatement"), str(failure))
        return name


def resize(fd, size):
    with contextlib.suppress(OSError):
        fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, size)


@besieged(service, UID_B)
def grown_and_kept():
    """64 pipe ends grown to 1 MiB and kept after Finalize: only their user waits, until they are closed"""
    client = service.client(A)
    kept = []
    for _ in range(64):
        try:
            statement = client.prepare("chinook", "SELECT 1")
        except Failure as failure:
            true(failure.name.endswith(".LimitsExceeded"), str(failure))
            break
        resize(statement.pipe, MIB)
        with contextlib.suppress(Failure):  # UnknownStatement: it was seen to have grown
            client.finalize("chinook", statement.number)
        kept.append(statement.pipe)
    true(len(kept) > 1, "not one pipe was made")
    if ROOT:
        expect("LimitsExceeded", client.prepare, "chinook", "SELECT 1")
        with contextlib.closing(Client(service.address, UID_B)) as other:
            pipe = other.prepare("chinook", TRACKS)
            same_rows(rows_of(pipe.fetch()), EXPECTED)
    for fd in kept:
        client.drop(fd)
    wait_for(lambda: can_prepare(client), "pipes that were closed count no more")
    cases("hostile pipe", len(kept), "a pipe grown and kept after Finalize")


@contextlib.contextmanager
def bound_by_the_kernel(**limits):
    """A service of an unprivileged user, who has 16384 pages for pipes, and both users at it."""
    with Service({"chinook": CHINOOK}, limits={**settled.QUICK, **limits}, uid=UID_DAEMON) as guarded:
        settled.works(guarded)
        before = settled.settle(guarded)
        yield guarded, guarded.client(A), guarded.client(UID_B)
        guarded.forget()
        settled.as_before(guarded, before)


def size_of_new_pipe(client):
    """The size of the pipe of a query's first run."""
    run = client.query("chinook", "SELECT 1")
    size = fcntl.fcntl(run.pipe, fcntl.F_GETPIPE_SZ)
    equal(rows_of(run), [[1]], "rows")
    client.drop(run.pipe)
    return size


@needs_root
def grown_all_at_once():
    """80 pipes grown to 1 MiB when all exist, at rest and parked: other users' pipes get their size, and these end"""
    # Too few for the service to make a pipe as large as its reader does.
    with bound_by_the_kernel(PipePagesMax=128) as (guarded, client, other):
        statements = [client.prepare("chinook", "SELECT 1") for _ in range(78)]
        runs = [client.query("chinook", ENDLESS) for _ in range(2)]
        wait_for(lambda: guarded.states() == ["parked"] * 2, "the runs wait for their reader")
        whole = size_of_new_pipe(other)
        for end in [*statements, *runs]:
            resize(end.pipe, MIB)
        true(size_of_new_pipe(other) < whole, "the kernel had a whole pipe left: nothing was attacked")
        wait_for(lambda: size_of_new_pipe(other) == whole, "others' pipes get their size")
        for run in runs:
            expect("LimitsExceeded", run.counted)
        for statement in statements:
            expect("UnknownStatement", statement.fetch)
        cases("hostile pipe", len(statements) + len(runs), "a pipe grown with all others, whose user asks no more")


@needs_root
def grown_after_finalize():
    """64 pipe ends kept after Finalize and grown to 1 MiB: other users' pipes get their size, and their user's next one"""
    with bound_by_the_kernel() as (guarded, client, other):
        statements = [client.prepare("chinook", "SELECT 1") for _ in range(64)]
        whole = size_of_new_pipe(other)
        for statement in statements:
            client.finalize("chinook", statement.number)
        wait_for(lambda: not guarded.counters()["NStatements"], "they are finalized")
        for statement in statements:
            resize(statement.pipe, MIB)
            equal(fcntl.fcntl(statement.pipe, fcntl.F_GETPIPE_SZ), MIB, "bytes of a pipe that its reader grew")
        true(size_of_new_pipe(other) < whole, "the kernel had a whole pipe left: nothing was attacked")
        wait_for(lambda: size_of_new_pipe(other) == whole, "others' pipes get their size")
        wait_for(lambda: can_prepare(client), "what was taken back counts no more")
        for statement in statements:
            client.drop(statement.pipe)
        cases("hostile pipe", len(statements), "a pipe grown and kept after Finalize")


@needs_root
def grown_and_filled():
    """80 pipes grown and filled take all that the kernel has: their user waits, and other users are served"""
    with bound_by_the_kernel() as (guarded, client, other):
        runs = [client.query("chinook", ENDLESS) for _ in range(80)]
        wait_for(lambda: guarded.states() == ["parked"] * 80, "the runs wait for their reader")
        for run in runs:
            resize(run.pipe, MIB)
        wait_for(lambda: not can_prepare(client), "they are seen to have grown, and full")
        for _ in range(20):
            size_of_new_pipe(other)
        for run in runs:
            client.drop(run.pipe)
        wait_for(lambda: can_prepare(client), "pipes that were closed count no more")
        cases("hostile pipe", len(runs), "a pipe grown and filled")


def can_prepare(client):
    try:
        client.prepare("chinook", "SELECT 1").close()
        return True
    except Failure:
        return False


@besieged(service, UID_B)
def spliced():
    """splice(), tee() and vmsplice() take a pipe's bytes unchanged, and cannot put any into it"""
    client, tried = service.client(A), 0
    for way in ("splice", "tee", "vmsplice", "splice into"):
        for amount in (1, 100, 4096, 65536):
            run = client.query("chinook", TRACKS)
            select.select([run.pipe], [], [], SECONDS)
            same_rows(rows_of(run, taken(way, run.pipe, amount)), EXPECTED)
            client.drop(run.pipe)
            tried += 1
    cases("hostile pipe", tried, "a pipe spliced from or into")


def taken(way, pipe, amount):
    """The bytes that are not in the pipe any more."""
    reader, writer = os.pipe()
    try:
        if way == "splice":
            return os.read(reader, os.splice(pipe, writer, amount))
        if way == "tee":
            n = libc.tee(pipe, writer, ctypes.c_size_t(amount), SPLICE_F_NONBLOCK)
            true(n > 0, f"tee: {os.strerror(ctypes.get_errno())}")
            return b""
        if way == "vmsplice":
            buffer = ctypes.create_string_buffer(amount)
            vector = (ctypes.c_size_t * 2)(ctypes.addressof(buffer), amount)
            n = libc.vmsplice(pipe, ctypes.byref(vector), ctypes.c_size_t(1), SPLICE_F_NONBLOCK)
            true(n > 0, f"vmsplice: {os.strerror(ctypes.get_errno())}")
            return buffer.raw[:n]
        os.write(writer, b"x" * amount)
        with contextlib.suppress(OSError):
            os.splice(reader, pipe, amount)
            raise AssertionError("something went into a pipe's end for reading")
        return b""
    finally:
        os.close(reader)
        os.close(writer)


# A process that gets a pipe over its standard input, a socket, tells that it has it, and reads it to the end when told to.
THIRD = """
import os, socket, sys
end = socket.socket(fileno=0)
_, fds, _, _ = socket.recv_fds(end, 1, 1)
end.send(b"x")
end.recv(1)
data = b""
while piece := os.read(fds[0], 1 << 20):
    data += piece
    sys.stdout.write(f"{len(data)}\\n")
    sys.stdout.flush()
"""


@contextlib.contextmanager
def third_process(fd):
    """It has `fd`; brings the socket that starts it, and the process."""
    mine, theirs = socket.socketpair()
    with mine, theirs, subprocess.Popen([sys.executable, "-c", THIRD], stdin=theirs, stdout=subprocess.PIPE) as process:
        socket.send_fds(mine, [b"x"], [fd])
        mine.recv(1)
        try:
            yield mine, process
        finally:
            process.kill()


@besieged(service, UID_B)
def read_by_another_process():
    """A client that leaves or finalizes ends its run, even if another process keeps a copy of the pipe's end"""
    tried = 0
    for how in ("client leaves", "finalized", "cancelled", "third is killed"):
        for reads in (False, True):
            client = service.client(A)
            statement = client.prepare("chinook", ENDLESS)
            run = statement.fetch()
            with third_process(statement.pipe) as (mine, process):
                if reads:
                    mine.send(b"x")
                    true(process.stdout.readline(), "it reads nothing")
                if how == "client leaves":
                    service.clients.remove(client)
                    client.close()
                elif how == "finalized":
                    statement.close()
                elif how == "cancelled":
                    run.cancel()
                else:
                    client.drop(statement.pipe)
                    process.kill()
                    process.wait()
                wait_for(lambda: service.states() in ([], ["draining"]), "the run is over")
            tried += 1
            if how in ("cancelled", "third is killed"):
                client.finalize("chinook", statement.number)
    cases("hostile pipe", tried, "a pipe that a third process has")


@besieged(service, UID_B)
def closed_early():
    """A pipe closed after so many bytes: the run ends, and the client's next query is answered"""
    client, tried = service.client(A), 0
    whole = sum(len(data) for _, _, data in client.query("chinook", settled.POINT).frames())
    for size in range(0, whole + 1, 8 if SANITIZED else 1):
        run = client.query("chinook", settled.POINT)
        left = size
        while left > 0:
            left -= len(os.read(run.pipe, left))
        client.drop(run.pipe)
        tried += 1
    for size in (0, 1, 1000, 4096, 65536, 200000):
        run = client.query("chinook", ENDLESS)
        left = size
        while left > 0:
            left -= len(os.read(run.pipe, left))
        client.drop(run.pipe)
        wait_for(lambda: not service.states(), "an unread run ends")
        tried += 1
    client.point()
    cases("hostile pipe", tried, "a pipe closed after so many bytes")


@besieged(service, UID_B)
def copies():
    """A hundred copies of a pipe's end, each read a little: together they get all bytes; the last close ends the run"""
    client = service.client(A)
    run = client.query("chinook", TRACKS)
    ends = [os.dup(run.pipe) for _ in range(100)]
    data = b""
    while not ended(data, run.number):
        data += os.read(ends[len(data) % 100], 777)
    same_rows(decode(frames(data)).rows, EXPECTED)
    for fd in ends:
        os.close(fd)
    client.drop(run.pipe)
    run = client.query("chinook", ENDLESS)
    ends = [os.dup(run.pipe) for _ in range(100)]
    client.drop(run.pipe)
    for fd in ends[1:]:
        os.close(fd)
    client.point()
    # The end of the point query's may lie in the service's other socket yet.
    wait_for(lambda: len(client.manager("ListRuns")[0]) == 1, "the run goes on while a copy is open")
    os.close(ends[0])
    wait_for(lambda: not service.states(), "the run ends")
    if ROOT:
        wait_for(lambda: not [link for link in fds(service.pid()).values() if "pipe:" in link], "its pipe is closed")
    cases("hostile pipe", 200, "a copy of a pipe's end")


if __name__ == "__main__":
    main(service)
