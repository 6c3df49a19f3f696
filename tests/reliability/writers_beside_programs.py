#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Measures the commits of the service beside those of programs that write to the same file.

    tests/reliability/writers_beside_programs.py [--programs 4] [--writers 12] [--seconds 20] [--journal wal]

This tests nothing: the shares depend on the disk and on the load of the machine.
"""
import argparse
import os
import sqlite3
import subprocess
import sys
import time

import settled  # noqa: F401, it makes the modules of tests/bus importable
from harness import PATIENT, Service
from writers import DB, make_written

INSERT = "INSERT INTO written(number) VALUES (1)"
PROGRAM = f"""
import sqlite3, sys, time
db = sqlite3.connect(sys.argv[1], timeout=100, isolation_level=None)
n, end, longest = 0, time.monotonic() + float(sys.argv[2]), 0
while (began := time.monotonic()) < end:
    db.execute("{INSERT}")
    n, longest = n + 1, max(longest, time.monotonic() - began)
print(n, longest)
"""
WRITER = f"""
import sys, time
from client import Client
client = Client(sys.argv[1])
n, end, longest = 0, time.monotonic() + float(sys.argv[2]), 0
while (began := time.monotonic()) < end:
    client.execute("{DB}", "{INSERT}", [])
    n, longest = n + 1, max(longest, time.monotonic() - began)
print(n, longest)
"""


def processor_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def changes(path, journal):
    """The number of commits so far, up to a constant: in the wal-index, or in the header of the file."""
    with open(f"{path}-shm" if journal == "wal" else path, "rb") as file:
        head = file.read(28)
    return int.from_bytes(head[8:12], sys.byteorder) if journal == "wal" else int.from_bytes(head[24:28], "big")


def start(code, n, *arguments):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return [subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) for _ in range(n)]


def results(processes):
    """The sum of the rows, and the longest time that one row took."""
    lines = [process.communicate()[0].split() for process in processes]
    return sum(int(n) for n, _ in lines), max((float(longest) for _, longest in lines), default=0)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--programs", type=int, default=4)
    parser.add_argument("--writers", type=int, default=12)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--journal", default="wal", choices=["wal", "delete"])
    options = parser.parse_args()
    with Service(limits=PATIENT | {"BusyTimeoutSec": 100}) as service:
        path = make_written(service.data / "written.sqlite", options.journal)
        service.database(DB, Path=path, Mode="read-write")
        service.driver.manager("Reload")
        service.driver.execute(DB, INSERT, [])
        kept = sqlite3.connect(path)  # otherwise SQLite deletes the log when the last program ends
        kept.execute("SELECT count(*) FROM written").fetchone()
        first, used = changes(path, options.journal), sum(map(processor_seconds, service.workers()))
        began = time.monotonic()
        programs = start(PROGRAM, options.programs, path, options.seconds)
        writers = start(WRITER, options.writers, service.address, options.seconds)
        (n_programs, programs_longest), (n_writers, writers_longest) = results(programs), results(writers)
        commits = changes(path, options.journal) - first - n_programs
        used = sum(map(processor_seconds, service.workers())) - used
        print(f"{options.journal}, {time.monotonic() - began:.0f} s")
        print(f"{options.programs} programs: {n_programs} commits, the longest took {programs_longest:.2f} s")
        print(f"{options.writers} writers of the service: {n_writers} rows in {commits} commits, the longest took "
              f"{writers_longest:.2f} s; {used:.2f} s of processor time of the workers")
        kept.close()


if __name__ == "__main__":
    main()
