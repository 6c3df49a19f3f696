#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The supervisor under valgrind, which finds uses of uninitialized memory; gcc's sanitizers do not. Also, no memory may be
lost, and no descriptor may be open at the end. The workers run without valgrind, because their filter of system calls
forbids it.
"""
import contextlib
import re
import shutil

import settled  # noqa: F401 - finds the modules below
from channel import Channel
from harness import CHINOOK, SQLIPCD, Service, expect, main, wait_for
from tap import Skip, cases, equal, test

VALGRIND = [
    "valgrind", "--error-exitcode=99", "--leak-check=full", "--show-leak-kinds=definite,indirect",
    "--errors-for-leak-kinds=definite,indirect", "--track-fds=yes", "--child-silent-after-fork=yes",
]
# valgrind 3.24 sees glibc 2.41 close the descriptor of sysconf(), and not that libsystemd's bus then gets its number.
SUPPRESSED = """{
   descriptor_of_the_bus
   CoreError:FdBadClose
   fun:__internal_syscall_cancel
   fun:__syscall_cancel
   fun:close
   obj:*/libsystemd.so.*
}
"""
ENDLESS = "WITH RECURSIVE n(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM n) SELECT x, 'some text' FROM n"
ROUNDS, N_CALLS = 3, 26
OPEN = re.compile(r"Open (?:file descriptor|AF_\w+ socket) (\d+):.*\n==\d+==\s+(.*)")


@contextlib.contextmanager
def service_under_valgrind(**keywords):
    """Yields the service; behind it, its report has been read."""
    if not shutil.which("valgrind"):
        raise Skip("valgrind is not installed")
    service = Service({"chinook": CHINOOK, "exposed": {"Path": CHINOOK, "Expose": "Artist Album"}}, start=False, **keywords)
    report, program = service.folder / "valgrind", service.folder / "sqlipcd-under-valgrind"
    suppressed = service.folder / "suppressed"
    suppressed.write_text(SUPPRESSED)
    options = f"--log-file={report} --suppressions={suppressed}"
    program.write_text(f"#!/bin/sh\nexec {' '.join(VALGRIND)} {options} {SQLIPCD} \"$@\"\n")
    program.chmod(0o755)
    service.sqlipcd = program
    with service:
        service.start()
        yield service
        service.stop()  # its exit code reports errors and lost memory
        left = [(int(fd), whence) for fd, whence in OPEN.findall(report.read_text()) if "inherited" not in whence]
        equal([fd for fd, _ in left if fd > 2], [], f"descriptors left open:\n{report.read_text()}")


def every_kind_of_call(service):
    """Right and wrong calls of clients."""
    client = service.client()
    statement = client.prepare("chinook", "SELECT Name FROM Artist WHERE ArtistId = ?")
    for number in range(1, 6):
        equal(len(statement.fetch(number).read().rows), 1, "rows of a fetch")
    statement.close()
    equal(len(client.query("exposed", "SELECT * FROM Album").read().rows), 347, "rows of an exposed table")
    equal(len(client.query_rows("chinook", "SELECT * FROM Genre")[1]), 25, "rows in a reply")
    equal(len(client.all_rows("chinook", "SELECT * FROM Artist")[1]), 275, "rows by cursor")
    client.open_rows("chinook", "SELECT * FROM Track")
    with contextlib.closing(Channel(client, "chinook")) as channel:
        equal(len(channel.ask("SELECT * FROM Artist")), 275, "rows on a channel")
    errors = {"SELEKT": "Sql", "SELECT * FROM nothing": "Sql", "DELETE FROM Artist": "ReadOnly", "": "EmptyStatement"}
    for sql, name in errors.items():
        expect(name, client.query, "chinook", sql)
    expect("UnknownStatement", client.finalize, "chinook", 12345)
    for method in ("ListDatabases", "ListStatements", "ListRuns", "ListChannels", "ListClients", "Reload"):
        client.manager(method)
    parked = client.query("chinook", ENDLESS)
    wait_for(lambda: service.counters()["NParked"] >= 1, "a run is parked")
    client.cancel("chinook", parked.number)
    parked.close()
    client.query("chinook", ENDLESS)  # and left, as the statement and the cursor are
    client.prepare("chinook", "SELECT 1")
    client.close()
    service.clients.remove(client)


@test
def nothing_uninitialised_lost_or_open():
    """Every kind of call: no uninitialised memory is read, no memory is lost, no descriptor is left open"""
    with service_under_valgrind(limits=settled.QUICK) as service:
        for _ in range(ROUNDS):
            every_kind_of_call(service)
        wait_for(service.is_idle, "all is given back")
    cases("valgrind", ROUNDS * N_CALLS, "a call of a client to a supervisor under valgrind")


@test
def errors_are_found():
    """The test understands valgrind's report of a descriptor that is left open"""
    open_one, inherited = "Open file descriptor 7: /x\n==1==    at 0x1: open\n", "inherited from parent>\n"
    report = f"==1== {open_one}==1== Open file descriptor 9: /y\n==1==    <{inherited}"
    equal([fd for fd, whence in OPEN.findall(report) if "inherited" not in whence], ["7"], "what is left open")


main()
