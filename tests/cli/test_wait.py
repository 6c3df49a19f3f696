#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""ipcq-cli --wait: exit codes and numbers, for scripts; and .watch, which refreshes on changes."""
import contextlib
import os
import pathlib
import signal
import sqlite3
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "bus"))
from harness import CLI, PATIENCE, Service, executable, main, wait_for  # noqa: E402
from pty_shell import ENTER, Shell  # noqa: E402
from relay import relay_address  # noqa: E402
from tap import equal, test, true  # noqa: E402

OK, QUERY, USAGE, UNREACHABLE, UNCHANGED, INTERRUPTED, TERMINATED = 0, 1, 2, 3, 6, 130, 143

service = Service(start=False)


def publish(name):
    path = service.data / f"{name}.sqlite"
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.executescript("CREATE TABLE t(name TEXT PRIMARY KEY, n); CREATE TABLE other(n)")
    service.database(name, Path=path, Mode="read-write")
    return path


paths = {name: publish(name) for name in ("waited", "shown")}
service.start()


def start(*arguments, address=None, on=service):
    command = [str(CLI), f"--address={address or on.address}", "--mode=csv", *arguments]
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, env=on.environment, text=True, **streams)


def ask(*arguments, code=OK, **keywords):
    """Returns what the program has written to standard output, if it succeeded, or else to standard error."""
    with start(*arguments, **keywords) as process:
        out, err = process.communicate(timeout=PATIENCE)
    equal(process.returncode, code, f"exit code of {arguments}, which said {err!r}")
    return out if code in (OK, UNCHANGED) else err


def write(sql, database="waited", on=service):
    ask(database, sql, on=on)


def count_watches(on=service):
    return on.counters()["NWatches"]


def barrier(database, on):
    """Returns when all earlier watches of the database have begun, because a later one has."""
    ask("--wait", "--timeout=0.01", database, code=UNCHANGED, on=on)


@contextlib.contextmanager
def waiting(*arguments, on=service, **keywords):
    """A process that waits."""
    before = count_watches(on)
    with start("--wait", *arguments, on=on, **keywords) as process:
        wait_for(lambda: count_watches(on) > before, "it waits")
        barrier(arguments[0], on)
        yield process
        process.kill()


def end(process, code=OK):
    out, err = process.communicate(timeout=PATIENCE)
    equal((process.returncode, err), (code, ""), f"exit code and errors, of {out!r}")
    return int(out) if code in (OK, UNCHANGED) else None


@test
def changes():
    """A change of one of the tables ends the wait, and its number is written; other tables do not"""
    with waiting("waited", "t") as process:
        write("INSERT INTO other VALUES (1)")
        write("BEGIN; INSERT INTO t VALUES ('rolled back', 1); ROLLBACK")
        true(process.poll() is None, "it ended without a change")
        write("INSERT INTO t VALUES ('a', 1)")
        first = end(process)
    with waiting("waited", "other", "t") as process:
        write("UPDATE t SET n = 2")
        second = end(process)
    with waiting("waited") as process:
        write("INSERT INTO other VALUES (2)")
        third = end(process)
    true(first < second < third, f"numbers {first}, {second}, {third}")


@test
def time_limit():
    """Without a change --timeout ends the wait with another exit code, and writes the number of the last one"""
    last = int(ask("--wait", "--timeout=0.1", "waited", "t", code=UNCHANGED))
    equal(int(ask("--wait", "--timeout=0.1", f"--since={last}", "waited", code=UNCHANGED)), last, "number")


@test
def since():
    """A change between two waits is not missed: the second one returns at once"""
    number = int(ask("--wait", "--timeout=0.1", "waited", "t", code=UNCHANGED))
    for _ in range(3):
        write("UPDATE t SET n = n + 1")
        after = int(ask("--wait", f"--since={number}", "waited", "t"))
        true(after > number, f"number {after} after {number}")
        number = after
    write("INSERT INTO other VALUES (3)")
    ask("--wait", "--timeout=0.1", f"--since={number}", "waited", "t", code=UNCHANGED)


def mortal():
    """Another service for the same databases, which the bus starts again."""
    return Service({name: {"Path": path, "Mode": "read-write"} for name, path in paths.items()}, activation=True)


def kill(victim):
    pid = victim.pid()
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not executable(pid), "the service is gone")


@test
def restart():
    """The wait goes on if the service is killed, which counts as a change"""
    with mortal() as victim, waiting("waited", "t", on=victim) as process:
        kill(victim)
        end(process)


@test
def relayed():
    """Through a relay, which passes no descriptors"""
    with waiting("waited", "t", address=relay_address(service)) as process:
        write("UPDATE t SET n = n + 1")
        end(process)


@test
def failures():
    """Wrong usage, an unknown table or database, no bus, signals"""
    for arguments in (
        ("--wait",),
        ("--wait", "--list"),
        ("--wait", "-c", "SELECT 1", "waited"),
        ("--wait", "--single-transaction", "waited"),
        ("--wait", "--since=x", "waited"),
        ("--wait", "--since=-1", "waited"),
        ("--since=1", "waited", "SELECT 1"),
    ):
        true(ask(*arguments, code=USAGE), f"{arguments} said nothing")
    true("no such table" in ask("--wait", "waited", "nosuch", code=QUERY), "an unknown table")
    true("no database" in ask("--wait", "nosuch", code=QUERY), "an unknown database")
    true(ask("--wait", "waited", code=UNREACHABLE, address="unix:path=/nonexistent"), "no bus")
    for sent, code in ((signal.SIGINT, INTERRUPTED), (signal.SIGTERM, TERMINATED)):
        with waiting("waited", "t") as process:
            process.send_signal(sent)
            process.communicate(timeout=PATIENCE)
            equal(process.returncode, code, f"exit code after {sent.name}")
    wait_for(lambda: count_watches() == 0, "no watch is left")


@test
def watch_on_terminal():
    """.watch draws a new picture after a change, and only then; q ends it, and the watch"""
    write("INSERT INTO t VALUES ('apple', 1), ('pear', 2)", "shown")
    with mortal() as victim, Shell("shown", on=victim) as shell:
        shell.type(".watch SELECT name, n FROM t ORDER BY name")
        shell.send(ENTER)
        shell.wait_for(lambda: "After each change" in shell.lines()[0] and "2 rows" in shell.lines()[0], "a picture")
        wait_for(lambda: count_watches(victim) == 1, "it watches")
        barrier("shown", victim)
        for n in (77, 78):
            write(f"UPDATE t SET n = {n} WHERE name = 'pear'", "shown", on=victim)
            shell.wait_for(lambda n=n: b"\x1b[7m%d\x1b[0m" % n in shell.raw, "the changed cell is highlighted")
        before = len(shell.raw)
        kill(victim)
        write("UPDATE t SET n = 99 WHERE name = 'pear'", "shown", on=victim)
        shell.wait_for(lambda: b"99" in shell.raw[before:], "the new value, from another service")
        shell.send("q")
        shell.wait_prompt()
        wait_for(lambda: count_watches(victim) == 0, "no watch is left")


def lines_of(process, n):
    return [process.stdout.readline().strip() for _ in range(n)]


@test
def watch_elsewhere():
    """.watch in a script writes a result after each change, also through a relay; --interval keeps the clock"""
    write("DELETE FROM t", "shown")
    for address in (service.address, relay_address(service)):
        with start("shown", ".watch SELECT count(*) AS n FROM t", address=address) as process:
            for i in range(3):
                equal(lines_of(process, 2), ["n", str(i)], "result")
                write(f"INSERT INTO t VALUES ({i}, 1)", "shown")
                equal(lines_of(process, 1), [""], "line between")
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=PATIENCE)
            equal(process.returncode, INTERRUPTED, "exit code")
        write("DELETE FROM t", "shown")
    for clock in ("--interval 0.1 --count 2", "--count 2 --interval 0.1", "0.1 --count 2", "--count 2 0.1"):
        equal(ask("shown", f".watch {clock} SELECT 1 AS n"), "n\n1\n\nn\n1\n", clock)
    for wrong in ("--interval", "--interval x", "--interval 0", "--interval 1x"):
        true("usage: .watch" in ask("shown", f".watch {wrong} SELECT 1", code=USAGE), wrong)


main(service)
