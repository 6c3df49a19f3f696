#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""libsqlipc in three kinds of event loop (docs/examples), and on a bus that is restarted."""
import os
import signal
import subprocess

from harness import BUILD_ROOT, CHINOOK, PATIENCE, SQLIPCD, Service, executable, main, wait_for
from library import Library
from tap import equal, test, true

LOOPS = ("plain-loop", "poll-loop", "sd-event-loop")
ENDLESS = "WITH RECURSIVE n(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM n) SELECT x, 'some text to fill the pages' FROM n"
SHELL = ["sqlite3", "-batch", "-noheader", "-nullvalue", "NULL", f"file:{CHINOOK}?mode=ro"]


def program(loop):
    return BUILD_ROOT / "docs/examples" / f"example-{loop}"


@test
def rows():
    """Each loop prints what sqlite3's shell prints"""
    with Service({"chinook": CHINOOK}) as service:
        for sql in (
            "SELECT TrackId, Name, Composer FROM Track ORDER BY TrackId",
            "SELECT * FROM Invoice WHERE 0",
            "SELECT 1, NULL, 'x'",
        ):
            expected = subprocess.run([*SHELL, sql], capture_output=True, check=True).stdout
            for loop in LOOPS:
                done = service.run(program(loop), f"--address={service.address}", "chinook", sql)
                equal((done.returncode, done.stderr), (0, b""), f"{loop}: {sql}")
                true(done.stdout == expected, f"{loop}: {sql}: {done.stdout[:200]}")


@test
def failures():
    """Each loop reports a failure and returns it"""
    with Service({"chinook": CHINOOK}) as service:
        for loop in LOOPS:
            done = service.run(program(loop), f"--address={service.address}", "chinook", "SELECT nothing FROM Track")
            equal((done.returncode, done.stdout), (1, b""), loop)
            true(b"org.sqlipc1.Error.Sql" in done.stderr and b"nothing" in done.stderr, f"{loop}: {done.stderr}")
            equal(service.run(program(loop)).returncode, 2, f"{loop} without arguments")


@test
def cancelled_by_the_loop():
    """A program that waits for something else beside its rows can cancel them"""
    with Service({"chinook": CHINOOK}) as service:
        command = [program("poll-loop"), f"--address={service.address}", "chinook", ENDLESS]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        with subprocess.Popen(command, **pipes, env=service.environment) as process:
            equal(process.stdout.readline(), b"1|some text to fill the pages\n", "first row")
            process.stdin.write(b"enough\n")
            process.stdin.flush()
            _, errors = process.communicate(timeout=PATIENCE)
            equal(process.returncode, 1, "exit code")
            true(errors.startswith(b"org.sqlipc1.Error.Cancelled"), errors)
        wait_for(service.is_idle, "nothing is left")


@test
def killed_reader():
    """A program that is killed in the middle of its rows leaves nothing behind"""
    with Service({"chinook": CHINOOK}) as service:
        for loop in LOOPS:
            command = [program(loop), f"--address={service.address}", "chinook", ENDLESS]
            pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE}
            with subprocess.Popen(command, **pipes, env=service.environment) as process:
                process.stdout.readline()
                os.kill(process.pid, signal.SIGKILL)
            wait_for(service.is_idle, f"nothing is left of {loop}")


@test
def bus_started_again():
    """A lost bus is a failure that says so; the next call opens another connection, statements are compiled again"""
    with Service({"chinook": CHINOOK}, activation=True) as service:
        library = Library(service)
        library.ok("prepare chinook SELECT x FROM (WITH RECURSIVE n(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM n) "
                   "SELECT x FROM n) LIMIT ?1")
        library.ok("bind 1 i 10000000")
        library.ok("execute")
        equal(len(library.ask("rows 5")[0]), 5, "rows")
        old = service.pid()
        service.kill_bus()
        _, answer = library.ask("rows 0")
        # The daemon, which lost its bus too, may have had the time to say so.
        true(answer.split()[5] in ("org.sqlipc1.Error.DaemonLost", "org.sqlipc1.Error.ShuttingDown"), answer)
        equal(library.ask("execute")[1].split()[5], "org.sqlipc1.Error.DaemonLost", "while there is no bus")
        wait_for(lambda: executable(old) != str(SQLIPCD), "the daemon ends")
        (service.folder / "bus").unlink(missing_ok=True)
        service._start_bus()
        library.ok("bind 1 i 7")
        library.ok("execute")
        equal(library.ask("rows 0"), ([[n] for n in range(1, 8)], "end 7"), "rows")
        library.ok("query chinook SELECT 1 UNION SELECT 2")
        equal(library.ask("rows 0"), ([[1], [2]], "end 2"), "rows")
        library.close()


@test
def bus_known_to_be_lost():
    """A statement that was idle when another call met the lost bus fails at once, and does not wait for an answer"""
    with Service({"chinook": CHINOOK}, activation=True) as service, Library(service) as library:
        library.ok("prepare chinook SELECT 6 * 7")
        library.ok("execute")
        equal(library.ask("rows 0"), ([[42]], "end 1"), "rows")
        old = service.pid()
        os.kill(old, signal.SIGSTOP)  # it has not noticed yet
        service.kill_bus()
        try:
            equal(library.failure("query chinook SELECT 1")[1], "DaemonLost", "the call that meets it")
            equal(library.failure("execute")[1], "DaemonLost", "the statement")
        finally:
            os.kill(old, signal.SIGCONT)
        wait_for(lambda: executable(old) != str(SQLIPCD), "the daemon ends")
        (service.folder / "bus").unlink(missing_ok=True)
        service._start_bus()
        library.ok("execute")
        equal(library.ask("rows 0"), ([[42]], "end 1"), "rows")


@test
def bus_lost_before_the_reply():
    """A client that reads the rows of a Fetch whose reply came too late for the bus learns that the service stops"""
    with Service({"chinook": CHINOOK}, activation=True) as service, Library(service, "pipe") as library:
        library.ok("prepare chinook SELECT x FROM (WITH RECURSIVE n(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM n) "
                   "SELECT x FROM n) LIMIT 10000000")
        supervisor, worker = service.pid(), service.workers()[0]
        os.kill(worker, signal.SIGSTOP)
        library.say("execute")
        wait_for(lambda: service.states() == ["running"], "the worker has the job")
        os.kill(supervisor, signal.SIGSTOP)  # it will not read that the job has started
        os.kill(worker, signal.SIGCONT)
        try:
            equal(library.hear(), "ok", "execute")
            equal(library.ask("rows 1")[0], [[1]], "the row is in the pipe")
            service.kill_bus()
        finally:
            os.kill(supervisor, signal.SIGCONT)
        _, answer = library.ask("rows 0")
        # The service learns of both at once, and either comes first.
        true(answer.split()[5] in ("org.sqlipc1.Error.DaemonLost", "org.sqlipc1.Error.ShuttingDown"), answer)
        wait_for(lambda: executable(supervisor) != str(SQLIPCD), "the daemon ends")


main()
