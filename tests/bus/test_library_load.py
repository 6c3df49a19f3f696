#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Loads of libsqlipc: many rows, large ones, an event loop, and every way in which a load ends."""
import os
import signal
import subprocess

from client import SECONDS
from harness import BUILD_ROOT, PATIENCE, main, wait_for
from library import Library, rows_of, service_of_notes
from relay import relay_address
from tap import equal, test, true

N = 100000
LOAD = "load notes INSERT INTO note (text) VALUES (?)"


def ask(path, sql):
    return rows_of(path, sql)[0]


def summary(path):
    return ask(path, "SELECT count(*), sum(text) FROM note")


def pause(service):
    """Stops all workers."""
    for pid in service.workers():
        os.kill(pid, signal.SIGSTOP)


@test
def many_rows():
    """100,000 rows arrive, in both journal modes, with blocking and in an event loop"""
    for journal in ("wal", "delete"):
        with service_of_notes(journal) as (service, path), Library(service) as library:
            library.ok(LOAD)
            library.ok(f"give 0 {N}")
            equal(summary(path), (0, None), "before the end")
            equal(library.ask("finish")[1], f"changes {N}")
            equal(summary(path), (N, N * (N - 1) // 2), "rows")
            equal(library.ask("finish")[1], f"changes {N}", "again")
            library.ok(LOAD)
            equal(library.ask(f"loop {N} {N}")[1], f"changes {N}", "in a loop")
            equal(summary(path), (2 * N, N * (2 * N - 1)), "rows of both")
            library.ok("load notes UPDATE note SET text = -text WHERE id <= ?")
            library.ok("give 2 2")
            equal(library.ask("finish")[1], "changes 5", "UPDATE")


@test
def bad_row():
    """A row in the middle that fails takes all back; the error names it, and the next load works"""
    with service_of_notes() as (service, path), Library(service) as library:
        library.ask("exec notes INSERT INTO note (text) VALUES (50000)")
        for give in (f"give 0 {N}", f"loop 0 {N}"):
            library.ok(LOAD)
            library.ask(give)  # which may not be the first to hear of it
            for _ in range(2):
                code, name, message = library.failure("finish")
                equal((code, name), (22, "Sql"), message)
                true("row 50001:" in message, message)
            equal(library.failure("give 0 1")[1:], (name, message), "another row")
            equal(summary(path), (1, 50000), "rows")
        library.ok(LOAD)
        library.ok("give 0 10")
        equal(library.ask("finish")[1], "changes 10")


@test
def close_without_finish():
    """Closing a load, or the program's end, writes nothing, and other writers go on at once"""
    with service_of_notes() as (service, path), Library(service) as library:
        library.ok(LOAD)
        library.ok("give 0 50000")
        library.ok("unload")
        equal(library.ask("exec notes INSERT INTO note (text) VALUES ('a')")[1], "changes 1")
        with Library(service) as leaver:
            leaver.ok(LOAD)
            leaver.ok("give 0 50000")
            leaver.process.kill()
            leaver.process.wait()
            leaver.close = lambda: None
        equal(library.ask("exec notes INSERT INTO note (text) VALUES ('b')")[1], "changes 1")
        equal(ask(path, "SELECT group_concat(text, '') FROM note"), ("ab",), "rows")
        library.ok(LOAD)
        library.ok("unload")
        wait_for(lambda: not service.states(), "the end of all loads")


@test
def wrong_values():
    """A row with another number of values is refused, and the load goes on without it"""
    with service_of_notes() as (service, path), Library(service) as library:
        library.ok(LOAD)
        library.ok("give 0 5")
        equal(library.failure("give-two")[1], "ParameterCount")
        library.ok("give 5 5")
        equal(library.ask("finish")[1], "changes 10")
        equal(summary(path), (10, 45), "rows")


@test
def bad_statements():
    """Statements that no load can run fail when it is opened"""
    with service_of_notes() as (service, path), Library(service) as library:
        equal(library.failure("load notes SELECT ?")[:2], (1, "NotAllowed"))
        equal(library.failure("load notes DELETE FROM note")[1], "ParameterCount")
        equal(library.failure("load notes INSERT INTO nowhere VALUES (?)")[1], "Sql")
        equal(library.failure("load nothing DELETE FROM note WHERE id = ?")[0], 2, "no such database")
        service.database("notes", Path=path)
        service.driver.manager("Reload")
        equal(library.failure(LOAD)[:2], (30, "ReadOnly"))


@test
def huge_blob():
    """A value of 50 MB goes through the pipe, between small ones; one that is too large ends the load"""
    with service_of_notes() as (service, path), Library(service) as library:
        library.ok(LOAD)
        library.ok("give 0 3")
        library.ok("give-blob 50000000")
        library.ok("give 3 3")
        equal(library.ask("finish")[1], "changes 7")
        equal(ask(path, "SELECT count(*), max(length(text)) FROM note"), (7, 50000000), "rows")
    with service_of_notes(limits={"RowSizeMax": "1M"}) as (service, path), Library(service) as library:
        library.ok(LOAD)
        library.ok("give 0 3")
        library.ask("give-blob 2000000")
        equal(library.failure("finish")[:2], (90, "RowTooLarge"))
        equal(summary(path), (0, None), "rows")


@test
def killed_worker():
    """A worker that is killed in the middle has written nothing; the next load works"""
    with service_of_notes() as (service, path), Library(service) as library:
        library.ok(LOAD)
        library.ok("give 0 50000")
        for pid in service.workers():
            os.kill(pid, signal.SIGKILL)
        library.ask(f"give 50000 {N}")
        equal(library.failure("finish")[:2], (104, "WorkerLost"))
        equal(summary(path), (0, None), "rows")
        library.ok(LOAD)
        library.ok("give 0 10")
        equal(library.ask("finish")[1], "changes 10")


@test
def killed_service():
    """A service that is killed before the end has written nothing; the next one loads"""
    with service_of_notes() as (service, path), Library(service) as library:
        library.ok(LOAD)
        library.ok("give 0 50000")
        service.kill()
        service.start()
        library.ask(f"give 50000 {N}")
        for _ in range(2):
            code, _, message = library.failure("finish")
            equal((code, message), (104, "The service was lost: nothing was written."), "finish")
        equal(summary(path), (0, None), "rows")
        library.ok(LOAD)
        library.ok("give 0 10")
        equal(library.ask("finish")[1], "changes 10")


@test
def unknown_outcome():
    """Once all rows are sent, the outcome is unknown until the answer comes, and stays so if the service dies before"""
    with service_of_notes() as (service, path), Library(service) as library:
        library.ok(LOAD)
        library.ok("give 0 10")
        pause(service)
        library.ok("timeout 200000")
        code, name, _ = library.failure("finish")
        equal((code, name), (103, "OutcomeUnknown"), "no answer")
        service.kill()
        library.ok(f"timeout {PATIENCE * 1000000}")
        equal(library.failure("finish")[1], "OutcomeUnknown", "the service is dead")
        library.ok("unload")
        service.start()
        true(summary(path)[0] in (0, 10), "all rows or none")


@test
def slow_service():
    """A row that meets the timeout is not taken, and can be given again"""
    with service_of_notes() as (service, path), Library(service) as library:
        library.ok(LOAD)
        pause(service)
        library.ok("timeout 200000")
        library.ok("give-blob 3000000")
        equal(library.failure("give 0 1")[0], 110, "ETIMEDOUT")
        for pid in service.workers():
            os.kill(pid, signal.SIGCONT)
        library.ok(f"timeout {PATIENCE * 1000000}")
        library.ok("give 0 1")
        equal(library.ask("finish")[1], "changes 2")


@test
def in_a_transaction():
    """A load in a transaction is a part of it, also if it fails or is closed"""
    with service_of_notes() as (service, path), Library(service) as library:
        library.ok("begin write notes")
        library.ask("exec notes INSERT INTO note (text) VALUES (-1)")
        library.ok(LOAD)
        library.ok("give 0 1000")
        equal(library.ask("finish")[1], "changes 1000")
        library.ok(LOAD)
        library.ok("give 2000 50000")
        library.ok("unload")
        library.ok(LOAD)
        library.ok("give 999 1")
        equal(library.failure("finish")[1], "Sql", "999 is there already")
        equal(library.ask("is-open")[1], "open 1")
        equal(summary(path), (0, None), "before the commit")
        library.ok("commit")
        equal(summary(path), (1001, 999 * 500 - 1), "after it")

        library.ok("begin write notes")
        library.ok(LOAD)
        library.ok("give 5000 10")
        for pid in service.workers():
            os.kill(pid, signal.SIGKILL)
        true(library.failure("finish")[1] in ("WorkerLost", "TransactionEnded"), "the worker is lost")
        equal(library.failure("commit")[1], "TransactionEnded")
        equal(summary(path)[0], 1001, "rows")


@test
def idle_load():
    """A load that keeps others waiting, and gets no rows, ends, and the program learns why"""
    with service_of_notes(limits={"TransactionIdleSec": "0.3"}) as (service, path):
        with Library(service) as library, Library(service) as other:
            library.ok(LOAD)
            library.ok("give 0 50000")
            equal(other.ask("exec notes INSERT INTO note (text) VALUES ('a')")[1], "changes 1")
            library.ask(f"give 50000 {N}")
            equal(library.failure("finish")[1], "TransactionEnded")
            equal(summary(path)[0], 1, "rows")


@test
def without_descriptors():
    """A load needs a pipe, so it fails on a bus that passes no descriptors"""
    with service_of_notes() as (service, _):
        with Library(service, opening=f"open {relay_address(service)}") as library:
            equal(library.failure(LOAD)[:2], (95, "NoDescriptors"))


def run_example(service, sql, lines):
    command = [BUILD_ROOT / "docs/examples/example-load", f"--address={service.address}", "notes", sql]
    return subprocess.run(command, input=lines, capture_output=True, timeout=SECONDS, check=False)


@test
def example():
    """The example in the documentation loads all lines, or none"""
    sql = "INSERT INTO note (id, text) VALUES (?, ?)"
    with service_of_notes() as (service, path):
        done = run_example(service, sql, b"1\ta\n2\tb\n")
        equal((done.returncode, done.stdout, done.stderr), (0, b"2 changed\n", b""), "two lines")
        done = run_example(service, sql, b"3\tc\n4\ta\n")
        equal((done.returncode, done.stdout), (1, b""), "the second line fails")
        true(b"row 2" in done.stderr, done.stderr)
        equal(ask(path, "SELECT group_concat(text, '') FROM note"), ("ab",), "rows")


main()
