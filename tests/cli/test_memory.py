#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The shell needs at most 16 MiB of memory of its own for any result. RLIMIT_DATA enforces the limit.

RLIMIT_DATA counts reserved memory, whether used or not, so the tests detect each large allocation. test_output.py samples
the memory during results of many rows. The D-Bus transport is not tested here, because a D-Bus message holds a whole row.
"""
import contextlib
import resource
import sqlite3
import subprocess

from pty_shell import ENTER, Shell  # finds what follows

from harness import CLI, PATIENCE, PATIENT, SANITIZED, Service, children, main, wait_for
from tap import equal, test, true

MIB = 1024 * 1024
MEMORY_MAX = 16 * MIB
CELL = 20 * MIB
MODES = "table box qbox markdown column csv tsv json jsonl line list html insert quote vertical ascii tcl".split()
# Before the shell reads on it writes a value of 20 MiB, in some modes several times: on a busy machine this takes seconds,
# and the run is parked meanwhile.
service = Service(limits=PATIENT | {"RowSizeMax": "64M"})


def make(name, *statements):
    path = service.data / f"{name}.sqlite"
    with contextlib.closing(sqlite3.connect(path)) as database:
        for sql, *values in statements:
            database.execute(sql, values)
        database.commit()
    service.database(name, Path=path)


make("long", ["CREATE TABLE t(v)"], ["INSERT INTO t VALUES(?), (?), (?)", "x" * CELL, "y" * CELL, b"\x01" * CELL])
NUMBERS = "WITH RECURSIVE n(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM n WHERE x < 30000) "
make("many", ["CREATE TABLE t(v)"], [f"INSERT INTO t {NUMBERS} SELECT printf('%.1000c', 'z') FROM n"])


def limited(size):
    return lambda: resource.setrlimit(resource.RLIMIT_DATA, (size, size))


def written(*arguments, size=MEMORY_MAX):
    """Runs the shell within the limit; returns its exit code, the number of bytes of output, and its stderr."""
    command = [CLI, f"--address={service.address}", "--no-init", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=service.environment,
                               preexec_fn=limited(size))  # fmt: skip
    n_bytes = sum(map(len, iter(lambda: process.stdout.read(MIB), b"")))
    err = process.stderr.read()
    process.stdout.close()
    process.stderr.close()
    return process.wait(PATIENCE), n_bytes, err


def limit_holds():
    """A shell with a limit of 256 KiB fails, which shows that the limit has an effect"""
    true(written("long", "SELECT 1", size=256 * 1024)[0] != 0, "it needs nothing")


def cells():
    """Values of 20 MiB are complete in every mode, because the output is not a terminal"""
    for mode in MODES:
        code, n_bytes, err = written(f"--mode={mode}", "long", "SELECT v FROM t")
        equal((code, err), (0, b""), f"exit code and complaints in mode {mode}")
        true(n_bytes > 2 * CELL, f"{n_bytes} bytes in mode {mode}")


def cells_on_a_channel():
    """Values of 20 MiB are complete on a channel"""
    code, n_bytes, err = written("--mode=csv", "--transport=channel", "long", "SELECT v FROM t")
    equal((code, err), (0, b""), "exit code and complaints")
    true(n_bytes > 2 * CELL, f"{n_bytes} bytes")


def commands():
    """.dump, .export, and .watch whose output is not a terminal, stay within the limit"""
    code, n_bytes, err = written("long", ".dump")
    equal((code, err), (0, b""), "exit code and complaints of .dump")
    true(n_bytes > 2 * CELL, f"{n_bytes} bytes of .dump")
    path = service.folder / "export.json"
    code, _, err = written("long", f".export json {path} t")
    equal(code, 0, f"exit code of .export, which said {err}")
    true(path.stat().st_size > 2 * CELL, "size of the export")
    code, n_bytes, err = written("--mode=list", "long", ".watch 1 --count 1 SELECT v FROM t")
    equal(code, 0, f"exit code of .watch, which said {err}")
    true(n_bytes > 2 * CELL, f"{n_bytes} bytes of .watch")


def backup():
    """.backup of short rows stays within the limit (SQLite builds each row in memory)"""
    path = service.folder / "copy.sqlite"
    code, _, err = written("many", f".backup {path}")
    equal(code, 0, f"exit code of .backup, which said {err}")
    true(path.stat().st_size > 29 * MIB, "size of the backup")


def terminal():
    """A pager that does not read, and .watch that redraws, stay within the limit"""
    with Shell("long", on=service, environment={"PAGER": "sleep 1000"}) as shell:
        resource.prlimit(shell.process.pid, resource.RLIMIT_DATA, (MEMORY_MAX, MEMORY_MAX))
        shell.run(".mode line")
        shell.send("SELECT v FROM t, (VALUES (1), (2), (3));" + ENTER)
        wait_for(lambda: children(shell.process.pid), "rows came, and the pager runs")
        wait_for(lambda: runs() == 0, "the run is over")
        equal(shell.process.poll(), None, "the shell's end")
    with Shell("long", on=service) as shell:
        resource.prlimit(shell.process.pid, resource.RLIMIT_DATA, (MEMORY_MAX, MEMORY_MAX))
        shell.send(".watch 0.1 SELECT v FROM t" + ENTER)
        shell.wait_for("3 rows")
        shell.send("q")
        shell.wait_prompt()


def runs():
    return service.counters()["NRuns"]


if not SANITIZED:  # Sanitizers reserve terabytes.
    for function in (limit_holds, cells, cells_on_a_channel, commands, terminal, backup):
        test(function)
service.driver.manager("Reload")
main(service)
