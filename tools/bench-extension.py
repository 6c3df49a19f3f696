#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The measurements of tools/bench-extension.sh: a virtual table beside ATTACH and beside a copy, in pairs.

usage: tools/bench-extension.py EXTENSION FOLDER PAIRS

FOLDER has data/study.sqlite, which a service publishes as `study`, and the service's configuration. The three ways take
turns; which one goes first changes.
"""
import pathlib
import sqlite3
import statistics
import sys
import time

EXTENSION, FOLDER, PAIRS = sys.argv[1], pathlib.Path(sys.argv[2]), int(sys.argv[3])
ALL = ", ".join(f"max(c{n:02})" for n in range(1, 31))
STATEMENTS = {
    "scan, all columns": f"SELECT max(id), {ALL} FROM {{}}",
    "scan, one column": "SELECT max(c05) FROM {}",
    "one row of a thousand": "SELECT max(c05), count(*) FROM {} WHERE c07 < 'AB' AND c08 < 'M'",
    "ten first rows by a column without index": "SELECT id, c09 FROM {} ORDER BY c09 LIMIT 10",
    "20,000 look-ups in a join": "SELECT max(s.c05), count(*) FROM wanted AS w CROSS JOIN {} AS s ON s.id = w.id",
    "20 look-ups in a join": "SELECT max(s.c05), count(*) FROM wanted AS w CROSS JOIN {} AS s ON s.id = w.id "
                             "WHERE w.rowid <= 20",
}


def service_times():
    """Processor time in nanoseconds that each process of the service took until now."""
    times = {}
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if f"--config-dir={FOLDER}/config".encode() not in path.read_bytes().split(b"\0"):
                continue
            pid = path.parent.name
            for each in (pid, *pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()):
                times[each] = int(pathlib.Path(f"/proc/{each}/schedstat").read_text().split()[0])
        except OSError:  # it ended meanwhile
            pass
    return times


def measure(db, sql):
    """Returns seconds, seconds of processor time with the service's, and the rows."""
    before, seconds, own = service_times(), time.perf_counter(), time.process_time()
    rows = db.execute(sql).fetchall()
    seconds, own = time.perf_counter() - seconds, time.process_time() - own
    # a worker without work may have ended meanwhile, and does not count
    service = sum(taken - before.get(pid, 0) for pid, taken in service_times().items())
    return seconds, own + service / 1e9, rows


def shown(values, unit=1000, decimals=1):
    median, least, most = (f"{value * unit:.{decimals}f}" for value in (statistics.median(values), min(values), max(values)))
    return f"{median} ({least} ... {most})"


def main():
    db = sqlite3.connect(":memory:")
    db.enable_load_extension(True)
    db.load_extension(EXTENSION)
    db.execute("CREATE VIRTUAL TABLE temp.shared USING sqlipc(study, study, user)")
    db.execute("ATTACH ? AS file", [str(FOLDER / "data" / "study.sqlite")])
    n_rows = db.execute("SELECT count(*) FROM file.study").fetchone()[0]
    db.execute("CREATE TABLE wanted(id INTEGER)")
    db.execute("WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 20000) INSERT INTO wanted "
               "SELECT 1 + x * 7919 % ? FROM n", [n_rows])
    copies = []
    for _ in range(PAIRS):
        db.execute("DROP TABLE IF EXISTS temp.copy")
        seconds, cpu, _ = measure(db, "CREATE TEMP TABLE copy AS SELECT * FROM shared")
        copies.append((seconds, cpu))
    db.execute("CREATE UNIQUE INDEX copy_id ON copy(id)")
    print(f"{n_rows} rows; {PAIRS} pairs; ms; CPU: processor time with that of the service")
    print(f"making the copy: {shown([c[0] for c in copies])}, CPU {shown([c[1] for c in copies])}")
    for name, sql in STATEMENTS.items():
        runs = {"temp.shared": [], "file.study": [], "temp.copy": []}
        tables = list(runs)
        for i in range(PAIRS + 1):
            for table in tables if i % 2 else reversed(tables):
                runs[table].append(measure(db, sql.format(table)))
        if len({str(run[2]) for of in runs.values() for run in of}) != 1:
            sys.exit(f"{name}: the results differ")
        shared, file, copy = (of[1:] for of in runs.values())  # in the first, statements are prepared and caches are cold
        print(f"{name}: extension {shown([r[0] for r in shared])}, CPU {shown([r[1] for r in shared])}; "
              f"ATTACH {shown([r[0] for r in file])}, CPU {shown([r[1] for r in file])}; "
              f"copy {shown([r[0] for r in copy])}, CPU {shown([r[1] for r in copy])}; "
              f"CPU ratio to ATTACH {shown([a[1] / b[1] for a, b in zip(shared, file)], 1, 2)}", flush=True)


main()
