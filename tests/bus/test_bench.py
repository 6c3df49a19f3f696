#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""sqlipc-bench as a program: the same table everywhere, figures that a script can read, and none where the sides disagree.

How fast it is, no test decides: tools/bench.sh measures that.
"""
import json
import sqlite3
import subprocess

from harness import BUILD_ROOT, Service, main
from tap import equal, test, true

BENCH = BUILD_ROOT / "tools/bench/sqlipc-bench"
FAILED, USAGE = 1, 2

service = Service(limits={"WorkerIdleSec": "0.2"})
study = service.data / "study.sqlite"


def bench(*arguments, code=0):
    command = list(map(str, [BENCH, *arguments]))
    done = subprocess.run(command, env=service.environment, capture_output=True, text=True, check=False, timeout=300)
    equal(done.returncode, code, f"exit code of {arguments}, which said {done.stderr!r}")
    equal(bool(done.stderr), code != 0, f"whether {arguments} said something: {done.stderr!r}")
    return done.stdout


def ask(path, sql):
    db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        return db.execute(sql).fetchall()
    finally:
        db.close()


@test
def dataset():
    """The study's table: 31 columns, the first the identifier, the others 20 lowercase letters; the seed decides"""
    bench("dataset", "--rows=2000", study)
    columns = ask(study, "PRAGMA table_info(study)")
    equal((len(columns), {column[2] for column in columns[1:]}), (31, {"TEXT"}), "columns")
    rows = ask(study, "SELECT * FROM study ORDER BY 1")
    equal((len(rows), [row[0] for row in rows[:3]]), (2000, [1, 2, 3]), "rows")
    true(all(len(v) == 20 and v.isascii() and v.isalpha() and v.islower() for row in rows for v in row[1:]), "values")
    for name, options, same in (("again", [], True), ("other", ["--seed=2"], False), ("wal", ["--wal"], True)):
        bench("dataset", "--rows=2000", *options, service.data / name)
        equal(ask(service.data / name, "SELECT * FROM study ORDER BY 1") == rows, same, f"whether {name} has the same rows")
    equal(ask(study, "PRAGMA journal_mode"), [("delete",)], "journal mode")
    # A database in WAL mode says so in its header.
    equal((service.data / "wal").read_bytes()[18:20], b"\2\2", "versions in the header")
    before = study.read_bytes()
    bench("dataset", "--rows=10", study, code=FAILED)
    equal(study.read_bytes() == before, True, "whether an existing file was kept")
    bench("dataset", "--rows=10", "--force", service.data / "other")
    equal(ask(service.data / "other", "SELECT count(*) FROM study"), [(10,)], "rows of a file that was replaced")


def share():
    if not study.exists():
        bench("dataset", "--rows=2000", study)
    service.database("study", Path=study)
    service.driver.manager("Reload")
    return [f"--address={service.address}", "--database=study", f"--file={study}", "--json"]


@test
def fetch():
    """fetch: facts and figures as JSON, a value for each round"""
    measured = json.loads(bench("fetch", "--pairs=3", *share()))
    equal(sorted(measured), ["facts", "figures", "workload"], "parts")
    in_rounds = {name for name, figure in measured["figures"].items() if len(figure["values"]) == 3}
    true(len(in_rounds) >= 5, f"figures with a value a round: {in_rounds}")
    for name, figure in measured["figures"].items():
        equal(sorted(figure), ["median", "unit", "values"], f"parts of {name}")
        true(min(figure["values"]) <= figure["median"] <= max(figure["values"]), f"{name}: {figure}")
    facts = json.dumps(measured["facts"])
    true("2000" in facts and sqlite3.sqlite_version in facts, facts)


@test
def other_query():
    """fetch --sql measures another query"""
    measured = json.loads(bench("fetch", "--pairs=1", "--sql=SELECT * FROM study LIMIT 17", *share()))
    true(measured["facts"]["result"].startswith("17 rows"), measured["facts"])


@test
def sides_that_disagree():
    """Another file than the one that is shared gives no figures"""
    arguments = [word for word in share() if not word.startswith("--file=")]
    equal(bench("fetch", "--pairs=1", *arguments, f"--file={service.data}/other", code=FAILED), "", "output")


@test
def exposed():
    """exposed: the same file whole and exposed, and no figures where the two are not the same file"""
    arguments = share()
    service.database("part", Path=study, Expose="study")
    service.database("another", Path=service.data / "other", Expose="study")
    service.driver.manager("Reload")
    figures = json.loads(bench("exposed", "--pairs=3", "--exposed=part", *arguments))["figures"]
    for query in ("scan", "look-ups", "subqueries", "join"):
        equal(len(figures[f"{query}, exposed / whole"]["values"]), 3, f"ratios of {query}")
    equal(bench("exposed", "--pairs=1", "--exposed=another", *arguments, code=FAILED), "", "output")
    bench("exposed", *arguments, code=USAGE)


@test
def first_row():
    """first-row, on a warm worker and on one that has to start"""
    for n, options in ((5, []), (2, ["--cold"])):
        figures = json.loads(bench("first-row", f"--runs={n}", *options, *share()))["figures"]
        true(n in [len(figure["values"]) for figure in figures.values()], figures)


@test
def wrong_usage():
    """What it does not know is refused"""
    rows, pairs = ("dataset", "--rows=-1", "x"), ("fetch", "--pairs=0", *share())
    for arguments in ((), ("frobnicate",), ("dataset",), ("fetch",), rows, pairs):
        bench(*arguments, code=USAGE)


main(service)
