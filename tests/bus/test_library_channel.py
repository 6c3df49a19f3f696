#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""libsqlipc on channels: when it moves to a channel and back, and how it hides the loss of a channel."""
import contextlib
import errno
import os
import signal
import socket
import struct
import threading
import time

from gi.repository import GLib

from clocks import Clocks
from harness import CHINOOK, PATIENCE, SOURCE_ROOT, Service, main, processor_time, wait_for
from library import Library, owner_pid
from pages import blocks
from tap import equal, test, true

SMALL = "query chinook SELECT Name FROM Artist WHERE ArtistId = 1"
LARGE = "query chinook SELECT a.Name FROM Track a, Track b LIMIT 20000"


def move(library):
    """Runs small queries until their results arrive over a channel."""

    def asked():
        library.ok(SMALL)
        via = library.via()
        equal(library.ask("rows 0")[1], "end 1", "rows")
        return via == "channel"

    wait_for(asked, "the library moves to a channel")


@test
def moves_by_itself():
    """Small results in succession move to a channel, queries and statements; PIPE does not, CHANNEL at once"""
    with Service({"chinook": CHINOOK}) as service:
        with Library(service) as library:
            library.ok(SMALL)
            equal(library.via(), "pipe", "the first")
            library.ask("rows 0")
            move(library)
            equal(service.counters()["NChannels"], 1, "channels")
            library.ok("prepare chinook SELECT ?1 + 1")
            library.ok("bind 1 i 41")
            library.ok("execute")
            equal((library.via(), library.ask("rows 0")), ("channel", ([[42]], "end 1")), "a statement")
            equal(service.counters()["NStatements"], 0, "statements that hold a pipe")
            library.ok("transport pipe")
            library.ok("execute")
            equal((library.via(), library.ask("rows 0")), ("pipe", ([[42]], "end 1")), "over the bus")
            library.ok("transport channel")
            library.ok("execute")
            equal((library.via(), library.ask("rows 0")), ("channel", ([[42]], "end 1")), "and back")
            equal(service.counters()["NStatements"], 0, "its pipe was given back")
        wait_for(service.is_idle, "nothing is left")
        with Library(service, "pipe") as library:
            for _ in range(20):
                library.ok(SMALL)
                equal(library.via(), "pipe", "transport")
                library.ask("rows 0")
            equal(service.counters()["NChannels"], 0, "channels")


@test
def left_early():
    """Unread rows are skipped: later queries, at once or after a while, keep the channel"""
    with Service({"chinook": CHINOOK}) as service, Library(service) as library:
        for pause in (0, 1.5):
            move(library)
            library.ok(f"query chinook SELECT {pause}, printf('%.*c', 1000, 'x') FROM Track LIMIT 3000")
            equal((library.via(), len(library.ok("rows 1"))), ("channel", 1), "the large one")
            library.ok("query chinook SELECT 0")  # closes its cursor
            library.ask("rows 0")
            time.sleep(pause)
            for n in range(1, 6):  # other SQL each time, because SQL that took long gets a pipe
                library.ok(f"query chinook SELECT {pause}, {n}")
                equal((library.via(), library.ask("rows 0")[1]), ("channel", "end 1"), f"behind it, after {pause} s")


@test
def unread_end():
    """A program that reads its only row, but not the end, also moves to a channel"""
    with Service({"chinook": CHINOOK}) as service, Library(service) as library:

        def asked():
            library.ok(SMALL)
            equal(len(library.ok("rows 1")), 1, "rows")
            return library.via() == "channel"

        wait_for(asked, "the library moves to a channel")


@test
def large_results():
    """A query with a large result uses a pipe from then on, queries with small ones stay on the channel"""
    with Service({"chinook": CHINOOK}) as service, Library(service) as library:
        move(library)
        for _ in range(2):
            library.ok(LARGE)
            equal(library.ask("rows 0")[1], "end 20000", "rows")
        equal(library.via(), "pipe", "the second")
        move(library)
        library.ok(LARGE.replace("query", "prepare"))
        for _ in range(2):
            library.ok("execute")
            equal(library.ask("rows 0")[1], "end 20000", "rows")
        equal(library.via(), "pipe", "the second run")


@test
def large_parameters():
    """Parameters that are too large for a message go over a channel, and to a pipe in a file"""
    text = "ab" * 1500000
    with Service({"chinook": CHINOOK}) as service, Library(service) as library:
        library.ok("prepare chinook SELECT length(?1)")
        library.ok(f"bind 1 b {text}")
        library.ok("execute")
        equal((library.via(), library.ask("rows 0")), ("channel", ([[1500000]], "end 1")), "a large parameter")
        library.ok("transport pipe")
        library.ok("execute")
        equal((library.via(), library.ask("rows 0")), ("pipe", ([[1500000]], "end 1")), "in a file")


@test
def reload():
    """The program does not notice a channel that closes at a reload; a withdrawn database is an error"""
    for transport in ("auto", "channel"):
        with Service({"chinook": CHINOOK}) as service, Library(service, transport) as library:
            move(library)
            library.ok("prepare chinook SELECT 6 * 7")
            for exposed in ("Artist", "Artist Album", "Artist Genre"):
                library.ok("execute")
                equal(library.ask("rows 0"), ([[42]], "end 1"), f"{transport}, before {exposed}")
                service.database("chinook", Path=CHINOOK, Expose=exposed)
                service.driver.manager("Reload")
                wait_for(lambda: service.counters()["NChannels"] == 0, "the channel closes")
                library.ok("execute")
                equal(library.ask("rows 0"), ([[42]], "end 1"), f"{transport}, with {exposed}")
                move(library)
            (service.config_dir / "databases.d/chinook.conf").unlink()
            service.driver.manager("Reload")
            wait_for(lambda: service.counters()["NChannels"] == 0, "the channel closes")
            equal(library.failure("execute")[0], 2, "errno of the withdrawn database")


@test
def restart():
    """The program does not notice a service that ends, and a bus that starts the next one"""
    for transport in ("auto", "channel"):
        with Service({"chinook": CHINOOK}, activation=True) as service, Library(service, transport) as library:
            move(library)
            library.ok("prepare chinook SELECT 6 * 7")
            for number in (signal.SIGTERM, signal.SIGKILL):
                # Perhaps the last rows came over a channel of the service that ended, and none was started since.
                pid = wait_for(lambda: service.counters() and owner_pid(service), "a service is there")
                os.kill(pid, number)
                wait_for(lambda: owner_pid(service) != pid, "the bus knows that the service ended")
                library.ok("execute")
                equal(library.ask("rows 0"), ([[42]], "end 1"), transport)
                move(library)


@test
def worker_killed():
    """The program does not notice a worker that dies between two queries"""
    for transport in ("auto", "channel"):
        with Service({"chinook": CHINOOK}) as service, Library(service, transport) as library:
            library.ok("prepare chinook SELECT 6 * 7")
            for _ in range(3):
                move(library)
                for pid in service.workers():
                    os.kill(pid, signal.SIGKILL)
                library.ok("execute")
                equal(library.ask("rows 0"), ([[42]], "end 1"), transport)


@test
def no_channel():
    """If no channel can be opened, AUTO stays with pipes, and CHANNEL reports the reason"""
    with Service({"chinook": CHINOOK}, limits={"ChannelsMax": 1}) as service, Library(service, "channel") as one:
        one.ok(SMALL)
        with Library(service) as other:
            for _ in range(20):
                other.ok(SMALL)
                equal((other.ask("rows 0")[1], other.via()), ("end 1", "pipe"), "beside the one channel")
            other.ok("transport channel")
            equal(other.failure(SMALL)[1], "LimitsExceeded", "error")
            equal(other.failure("prepare chinook SELECT 1")[1], "LimitsExceeded", "error of a statement")
            equal(other.failure("query nosuch SELECT 1")[0], 2, "errno of a database that is not there")


@test
def released():
    """A channel that AUTO opened makes room for one that another program asks for. Its program does not notice"""
    with Service({"chinook": CHINOOK}, limits={"ChannelsMax": 1}) as service, Library(service) as library:
        library.ok("prepare chinook SELECT 6 * 7")
        for _ in range(3):
            move(library)
            with Library(service, "channel") as other:
                other.ok(SMALL)
                equal((other.ask("rows 0")[1], other.via()), ("end 1", "channel"), "the other program")
                library.ok("execute")
                equal((library.ask("rows 0"), library.via()), (([[42]], "end 1"), "pipe"), "after that")
                equal(service.counters()["NChannels"], 1, "channels")


@test
def no_worker():
    """If no worker can be started each channel closes: AUTO reports the bus's reason, CHANNEL cannot know it"""
    with Service({"chinook": CHINOOK}, environment={"SQLIPC_WORKER_PATH": "/nonexistent"}) as service:
        with Library(service, "channel") as library:
            said = library.ask(SMALL)[1]
            if said == "ok":  # a query is not waited for until it has rows
                said = library.ask("rows 0")[1]
            equal(said.split()[1:6:4], [str(errno.ECONNRESET), "org.sqlipc1.Error.WorkerLost"], "a query down a channel")
            true("one channel after another" in said, said)
            for line in ("transport channel", "transport auto"):
                library.ok(line)
                equal(library.failure("prepare chinook SELECT 1")[1], "Internal", f"error of a statement, {line}")
            equal(library.failure(SMALL)[1], "Internal", "error of a query that may go anywhere")
        wait_for(service.is_idle, "nothing is left")


@test
def same_errors():
    """Errors over a channel are those over the bus: errno, name, SQLite's code, offset, sentence"""
    asked = (
        "SELECT nothing FROM Track",
        "SELECT",
        "",
        "SELECT 1; SELECT 2",
        "DELETE FROM Track",
        "SELECT abs(-9223372036854775808)",
        "SELECT f(1)",
        "SELECT ? + :b",
        "PRAGMA page_size",
        "SELECT 'x' COLLATE none",
    )
    with Service({"chinook": CHINOOK}) as service, Library(service) as library:

        def answers(line):
            answer = library.ask(line)
            return answer if answer[1] != "ok" or line.startswith("prepare") else library.ask("rows 0")

        for sql in asked:
            for verb in ("query", "prepare"):
                got = []
                for transport in ("pipe", "channel"):
                    library.ok(f"transport {transport}")
                    got.append(answers(f"{verb} chinook {sql}"))
                equal(got[1], got[0], f"{verb} {sql}")


def ask_past_compiles(service, clocks, library, line):
    """Returns the answer to the line, or of its rows. PrepareTimeoutSec= passes for each worker that compiles."""

    def ask():
        said.append(library.ask(line)[1])
        if said == ["ok"]:  # a query is not waited for until it has rows
            said.append(library.ask("rows 0")[1])

    said, used = [], {}
    thread = threading.Thread(target=ask)
    thread.start()
    while thread.is_alive():
        for pid in service.workers():
            with contextlib.suppress(OSError):  # it has just ended
                now = processor_time(pid)
                if now <= used.setdefault(pid, now) + 0.3:
                    continue
                used[pid] = now
                clocks.go_on(700)
                if pid in [more.get("worker-pid") for *_, more in service.driver.manager("ListChannels")[0]]:
                    os.kill(pid, signal.SIGALRM)  # its own timer counts the machine's time
        service.counters()
        thread.join(0.05)
    return said[-1]


@test
def compiles_too_long():
    """SQL whose compilation ends the worker is TimedOut over the bus, and a lost channel if only channels are allowed"""
    slow = "".join(f", c{n}(x) AS (SELECT x FROM c{n - 1} UNION ALL SELECT x FROM c{n - 1})" for n in range(1, 26))
    slow = f"WITH c0(x) AS (SELECT 1){slow} SELECT count(*) FROM c25"
    # so that neither memory nor another limit ends it
    limits = {"HeapMax": "4G", "WorkersMax": 1, "WorkerIdleSec": 86400, "RunTimeoutSec": 86400}
    with (
        Clocks() as clocks,
        Service({"chinook": CHINOOK}, limits=limits, environment=clocks.environment) as service,
        Library(service, environment={"LD_PRELOAD": ""}) as library,
    ):
        for transport in ("auto", "channel"):
            for verb in ("query", "prepare"):
                error = "WorkerLost" if (transport, verb) == ("channel", "query") else "TimedOut"
                library.ok(f"transport {transport}")
                move(library)
                (worker,) = service.workers()
                said = ask_past_compiles(service, clocks, library, f"{verb} chinook {slow}")
                equal(said.split()[5], f"org.sqlipc1.Error.{error}", f"{transport}: {verb}")
                wait_for(lambda: worker not in service.workers(), "the worker ends")
                library.ok(SMALL)
                equal(library.ask("rows 0")[1], "end 1", "rows afterwards")
            wait_for(lambda: service.counters()["NRuns"] == 0, "nothing goes on behind its back")


@test
def manual():
    """The service reads and writes the bytes that sqlipc-channel(5) shows"""
    requests, answers = map(bytes.fromhex, blocks(SOURCE_ROOT / "docs/man/sqlipc-channel.5.rst"))
    with Service({"chinook": CHINOOK}) as service:
        options = {"page-size": GLib.Variant("u", 65536)}
        values, fds = service.client().database("chinook", "OpenChannel", "(a{sv})", options)
        with socket.socket(fileno=os.dup(fds[values[0].get_handle()])) as channel:
            channel.settimeout(PATIENCE)
            channel.sendall(requests)
            got = b""
            while len(got) < len(answers):
                got += channel.recv(len(answers) - len(got))
        equal(got[:-64].hex(), answers[:-64].hex(), "answers, up to time, counters and change sequence")
        true(struct.unpack_from("<QQ", got, len(got) - 80) == (1, 80), "rows and bytes")


main()
