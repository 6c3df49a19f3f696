#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""sqlipc-bench as a program: the same data everywhere, figures that a script can read, and none if the sides disagree.

No test judges speed: tools/bench.sh measures it.
"""
import csv
import io
import json
import re
import shutil
import sqlite3
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

from harness import BUILD_ROOT, SOURCE_ROOT, Service, main, wait_for
from tap import Skip, equal, test, true

BENCH = BUILD_ROOT / "tools/bench/sqlipc-bench"
FAILED, USAGE = 1, 2
XHTML = "{http://www.w3.org/1999/xhtml}"

service = Service(limits={"WorkerIdleSec": "0.2"})
service.environment |= {  # for languages
    "PYTHONPATH": str(BUILD_ROOT / "client-lib/python"),
    "SQLIPC_BENCH_LANGUAGES": str(SOURCE_ROOT / "tools/bench/languages.py"),
    "SQLIPC_BENCH_PYTHON": sys.executable,
}
study = service.data / "study.sqlite"
sets = service.data / "sets"


def bench(*arguments, code=0):
    command = list(map(str, [BENCH, *arguments]))
    done = subprocess.run(command, env=service.environment, capture_output=True, check=False, timeout=300)
    equal(done.returncode, code, f"exit code of {arguments}, which said {done.stderr!r}")
    equal(bool(done.stderr), code != 0, f"whether {arguments} said something: {done.stderr!r}")
    return done.stdout.decode()


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


@test
def all_datasets():
    """dataset --all: a database for each kind, with the columns that the workloads ask for"""
    bench("dataset", "--all", sets, "--size=tiny")
    shapes = {
        "narrow": (5000, ["integer", "integer", "real", "text"], [None, None, None, 8]),
        "point": (1000, ["integer", "integer", "real", "text"], [None, None, None, 32]),
        "relay": (256, ["text"] * 16, [32] * 16),
        "study": (2000, ["integer"] + ["text"] * 30, [None] + [20] * 30),
        "wide": (4, ["integer", "blob"], [None, 1 << 20]),
        "write_rollback": (0, [], []),
        "write_study": (0, [], []),
        "write_wal": (0, [], []),
    }
    equal(sorted(path.stem for path in sets.glob("*.sqlite")), sorted(shapes), "databases")
    for name, (n_rows, types, sizes) in shapes.items():
        rows = ask(sets / f"{name}.sqlite", f"SELECT * FROM {name}")
        equal(len(rows), n_rows, f"rows of {name}")
        names = {int: "integer", float: "real", str: "text", bytes: "blob"}
        of_types = {tuple(names[type(value)] for value in row) for row in rows}
        of_sizes = {tuple(len(v) if isinstance(v, (str, bytes)) else None for v in row) for row in rows}
        if n_rows > 0:
            equal((of_types, of_sizes), ({tuple(types)}, {tuple(sizes)}), f"types and sizes of {name}")
        equal(len(set(rows)), n_rows, f"rows of {name} that differ")
    bench("dataset", "--kind=point", "--rows=7", service.data / "points")
    equal(
        ask(service.data / "points", "SELECT * FROM point"),
        ask(sets / "point.sqlite", "SELECT * FROM point LIMIT 7"),
        "the first rows of fewer",
    )


def change(name, sql):
    db = sqlite3.connect(sets / f"{name}.sqlite", timeout=30)
    try:
        db.execute(sql)
    finally:
        db.close()


def publish():
    """Shares the tiny datasets; the arguments that say where."""
    if not sets.exists():
        bench("dataset", "--all", sets, "--size=tiny")
    if not (sets / "many").exists():
        (sets / "many").mkdir()
        bench("dataset", "--kind=point", "--rows=10", sets / "many" / "0.sqlite")
        for i in range(200):
            if i > 0:
                shutil.copyfile(sets / "many" / "0.sqlite", sets / "many" / f"{i}.sqlite")
            service.database(f"many-{i}", Path=sets / "many" / f"{i}.sqlite")
    for path in sets.glob("*.sqlite"):
        service.database(path.stem, Path=path, **({"Mode": "read-write"} if path.stem.startswith("write_") else {}))
    exposed = {"Path": sets / "study.sqlite", "Expose": "study study_shown"}
    service.database("exposed", **exposed)
    service.database("exposed-barrier", **exposed, SecurityBarrier="yes")
    service.driver.manager("Reload")
    return [f"--address={service.address}", f"--folder={sets}", "--size=tiny"]


def verbs():
    """The workloads, as --help lists them, with the options that each has."""
    listed = bench("--help").split("What is measured:\n")[1].split("\n\n")[0]
    names = re.findall(r"^  (\S+)", listed, re.M)
    true({"exposed", "fetch", "first-row"} <= set(names), names)
    return {name: set(re.findall(r"--[a-z]+", bench(name, "--help"))) for name in names}


def reported():
    """The workloads that the page has: soak says if the service lasts, not how fast it is; many needs more databases."""
    return {verb: options for verb, options in verbs().items() if verb not in ("many", "soak")}


def arguments_for(options):
    return [argument for argument in publish() if argument.split("=")[0] in options]


def check_values(what, cell):
    true(cell["values"] and min(cell["values"]) <= cell["median"] <= max(cell["values"]), f"{what}: {cell}")


def check_report(report):
    """Checks the common parts of a report: facts, figures that belong together, tables whose rows fit; returns values."""
    verb = report["workload"]
    equal(report.get("failure"), None, f"failure of {verb}")
    true(sqlite3.sqlite_version in report["facts"]["SQLite in process"], report["facts"])
    measured = 0
    for name, figure in report["figures"].items():
        check_values(f"{verb}: {name}", figure)
        measured += 1
    for parts in (report["tables"], report["charts"]):
        equal(len({part["id"] for part in parts}), len(parts), f"ids of {verb}")
    for table in report["tables"]:
        true(re.fullmatch("[a-z0-9-]+", table["id"]), table["id"])
        true(table["rows"], f"{verb}: no row in {table['id']}")
        for row in table["rows"]:
            equal(len(row["cells"]), len(table["columns"]), f"{verb}: cells of {row['name']} in {table['id']}")
            for cell in row["cells"]:
                if isinstance(cell, dict):
                    check_values(f"{verb}: {row['name']}", cell)
                    measured += not row["published"]
    for chart in report["charts"]:
        true(any(series["points"] for series in chart["series"]), f"{verb}: no point in {chart['id']}")
    true(measured > 0, f"{verb} measured nothing")


@test
def workloads():
    """Each workload at its smallest size reports its results as JSON; its sides have compared their rows"""
    for verb, options in verbs().items():
        report = json.loads(bench(verb, "--json", *arguments_for(options)))
        equal(report["workload"], verb, "workload")
        check_report(report)


@test
def watch():
    """watch: each commit is told, through the service and past it; writers write beside watches that are read or not"""
    arguments = arguments_for(verbs()["watch"])

    def has_written():
        """False: a writer or a reader got no CPU in its part of a second."""
        *losses, latency = json.loads(bench("watch", "--json", *arguments))["tables"]
        equal([row["name"].partition(",")[0] for row in latency["rows"]], ["Watch", "Watch", "inotify alone"], "ways")
        equal([table["id"] for table in losses], ["watch-loss-1", "watch-loss-8"], "numbers of writers")
        least = []
        for table in losses:
            equal(len(table["rows"]), 4, "rows of the table")
            notices = [column["name"] for column in table["columns"]].index("notices read/s")
            equal(table["rows"][2]["cells"][notices]["median"], 0, "notices that were read by those that do not read")
            least += [row["cells"][0]["median"] for row in table["rows"]] + [table["rows"][3]["cells"][notices]["median"]]
        return min(least) > 0

    wait_for(has_written, "all write rows, and all that read are told")
    equal(list(sets.glob("direct-*")), [], "files that were left")


@test
def write():
    """write: libsqlipc is measured beside the processes that open the file, and the rows of the last run are in the file"""
    report = json.loads(bench("write", "--json", *arguments_for(verbs()["write"])))
    *rates, readers = report["tables"]
    equal(len(rates), 6, "numbers of writers and kinds of journals")
    equal(len(readers["rows"]), 2, "readers without writers, and beside them")
    true(all(cell["median"] > 0 for row in readers["rows"] for cell in row["cells"]), f"times of readers: {readers}")
    for table in rates:
        equal([row["name"] for row in table["rows"]], ["libsqlipc", "each opens the file"], f"ways of {table['id']}")
        failed = [column["name"] for column in table["columns"]].index("failed")
        equal([row["cells"][failed]["median"] for row in table["rows"]], [0, 0], f"writes that failed of {table['id']}")
    for name in ("write_wal", "write_rollback"):
        n_rows, n_different = ask(sets / f"{name}.sqlite", f"SELECT count(*), count(DISTINCT n) FROM {name}")[0]
        true(n_rows == n_different >= 32, f"rows of {name}: {n_rows}, different: {n_different}")
    equal(list(sets.glob("direct-*")), [], "files that were left")


@test
def relay():
    """relay: connections that ask the service, beside bare calls over the same bus"""
    report = json.loads(bench("relay", "--rounds=1", "--json", *arguments_for(verbs()["relay"])))
    rates, ratios = report["tables"]
    for table in (rates, ratios):
        bare = [row["cells"] for row in table["rows"] if row["name"] == "bare bus connection"]
        equal([all(cell["median"] > 0 for cell in cells) for cells in bare], [True], f"bare calls of {table['id']}")
    true("bare" not in json.dumps(report["verdicts"]), report["verdicts"])


@test
def load():
    """load: a load of libsqlipc beside a loop in process; no figures if the table is not what was loaded"""
    arguments = arguments_for(verbs()["load"])
    report = json.loads(bench("load", "--rounds=2", "--json", *arguments))
    table = report["tables"][0]
    equal([row["name"] for row in table["rows"]], ["libsqlipc", "in process"], "sides")
    true(all(min(row["cells"][0]["values"]) > 0 for row in table["rows"]), f"times: {table}")
    true("rows/s" == report["figures"]["rate, libsqlipc"]["unit"], report["figures"])
    equal(ask(sets / "write_study.sqlite", "SELECT count(*) FROM write_study"), [(0,)], "rows that were left")
    equal(list(sets.glob("direct-*")), [], "files that were left")
    trigger = (
        "CREATE TRIGGER spoils AFTER INSERT ON write_study WHEN new.id = 7 "
        "BEGIN UPDATE write_study SET c30 = 'spoiled' WHERE id = new.id; END"
    )
    change("write_study", trigger)
    try:
        equal(bench("load", *arguments, code=FAILED), "", "output if a row differs")
    finally:
        change("write_study", "DROP TRIGGER spoils")


@test
def forms():
    """fetch: the same as text and as CSV, of which every line has the same fields"""
    arguments = publish()
    report = json.loads(bench("fetch", "--rounds=3", "--json", *arguments))
    for row in report["tables"][0]["rows"]:
        equal(len(row["cells"][0]["values"]), 3, f"values of {row['name']}")
    records = list(csv.DictReader(io.StringIO(bench("fetch", "--csv", *arguments), newline="")))
    true(all(None not in record and None not in record.values() for record in records), "fields of each line")
    cells = {(record["table"], record["row"], record["column"]) for record in records}
    for table in report["tables"]:
        for row in table["rows"]:
            for column, cell in zip(table["columns"], row["cells"]):
                wanted = (table["id"], row["name"], column["name"])
                equal(wanted in cells, cell is not None, f"whether {wanted} is in the CSV")
    text = bench("fetch", *arguments)
    for words in ("libsqlipc", "in process, usual", "server CPU, ms", sqlite3.sqlite_version, "2000 rows"):
        true(words in text, f"{words!r} is not in the text:\n{text}")
    bench("fetch", "--csv", "--json", *arguments, code=USAGE)


@test
def other_query():
    """fetch --sql measures another query, --database and --file another database"""
    where = publish()[0]
    arguments = [where, "--database=point", f"--file={sets}/point.sqlite", "--sql=SELECT * FROM point LIMIT 17"]
    report = json.loads(bench("fetch", "--rounds=1", "--json", *arguments))
    true(report["facts"]["result"].startswith("17 rows"), report["facts"])


@test
def sides_that_disagree():
    """If the service shares another file, each workload that compares with SQLite in process reports no figures"""
    where = publish()[0]
    bench("dataset", "--rows=2000", "--seed=2", service.data / "otherwise")
    compared = [verb for verb, options in verbs().items() if {"--file", "--sql"} <= options and verb != "first-row"]
    true({"exposed", "fetch"} <= set(compared), compared)
    for verb in compared:
        arguments = [where, "--database=study", f"--file={service.data}/otherwise", "--size=tiny"]
        equal(bench(verb, *arguments, code=FAILED), "", f"output of {verb}")


@test
def soak_that_fails():
    """soak: values that differ from the file are reported, also by the exit code; the report is complete"""
    where = publish()[0]
    other = service.data / "other-points"
    bench("dataset", "--kind=point", "--rows=1000", "--seed=2", other)
    arguments = [where, f"--file={other}", "--time=1s", "--rounds=1", "--clients=10"]
    report = json.loads(bench("soak", "--json", *arguments, code=FAILED))
    true(report["figures"]["errors that were not, and wrong answers"]["median"] > 0, report["figures"])
    true(report["facts"]["verdict"].startswith("failed"), report["facts"])


@test
def exposed():
    """exposed: no figures if the exposed database is another file"""
    arguments = publish()
    service.database("another", Path=service.data / "other", Expose="study")
    service.driver.manager("Reload")
    equal(bench("exposed", "--exposed=another", *arguments, code=FAILED), "", "output")


@test
def first_row():
    """first-row, on a warm worker and on one that has to start"""
    for n, options, cases in ((5, [], 2), (2, ["--cold"], 3)):
        report = json.loads(bench("first-row", f"--rounds={n}", "--json", *options, *publish()))
        rows = report["tables"][0]["rows"]
        equal([len(row["cells"][0]["values"]) for row in rows], [n] * cases, f"values with {options}")


def needs_gnuplot():
    if not shutil.which("gnuplot"):
        raise Skip("needs gnuplot, which draws the charts")


def check_page(page, reports):
    """A page that needs nothing beside it, with a part for each report."""
    tree = ElementTree.parse(page)  # so every element is closed, and every character escaped that must be
    for element in tree.iter():
        for name, value in element.attrib.items():
            if name.split("}")[-1] in ("href", "src"):
                true(value.startswith("#"), f"{element.tag} leads to {value}")
        true(element.tag not in (XHTML + "script", XHTML + "link"), element.tag)
    ids = [element.get("id") for element in tree.iter() if element.get("id")]
    equal(len(set(ids)), len(ids), "ids")
    true("url(http" not in page.read_text() and "@import" not in page.read_text(), "the style leads out of the page")
    for report in reports:
        for part in [report["workload"]] + [f"{report['workload']}-{table['id']}" for table in report["tables"]]:
            true(part in ids, f"{part} is not in the page")
        for table in report["tables"]:
            element = tree.find(f".//*[@id='{report['workload']}-{table['id']}']")
            rows = element.findall(f"{XHTML}tbody/{XHTML}tr")
            equal(
                [row.get("class") == "published" for row in rows],
                [row["published"] for row in table["rows"]],
                f"published rows of {table['id']}",
            )
    n_charts = sum(len(report["charts"]) for report in reports)
    equal(len(tree.findall(".//{http://www.w3.org/2000/svg}svg")), n_charts, "charts in the page")


@test
def report_page():
    """report: all workloads and their charts on one page"""
    needs_gnuplot()
    folder = service.data / "report"
    bench("report", folder, "--quiet", *publish())
    reports = json.loads((folder / "report.json").read_text())["reports"]
    equal([report["workload"] for report in reports], list(reported()), "workloads")
    for report in reports:
        check_report(report)
        for chart in report["charts"]:
            picture = folder / f"{report['workload']}-{chart['id']}"
            ElementTree.parse(picture.with_suffix(".svg"))
            equal(picture.with_suffix(".png").read_bytes()[:8], b"\x89PNG\r\n\x1a\n", f"begin of {picture}.png")
    check_page(folder / "index.html", reports)
    equal("(failed)" in (folder / "index.html").read_text(), False, "whether a failure is shown")


@test
def report_of_a_failure():
    """report: a workload that fails is shown as failed, loses no other, and the exit code tells"""
    needs_gnuplot()
    folder = service.data / "report-of-a-failure"
    # All that needs the bus fails at once.
    bench("report", folder, "--quiet", "--address=unix:path=/missing", f"--folder={sets}", "--size=tiny", code=FAILED)
    reports = json.loads((folder / "report.json").read_text())["reports"]
    equal([report["workload"] for report in reports], list(reported()), "workloads")
    failed = {report["workload"] for report in reports if "failure" in report}
    true({"exposed", "fetch", "first-row"} <= failed, failed)
    equal("reference" in failed, False, "whether the workload failed that needs no bus")
    check_page(folder / "index.html", reports)
    page = (folder / "index.html").read_text()
    equal(page.count('<p class="failed">'), len(failed), "failures that are shown")
    equal(page.count("(failed)"), len(failed), "failures in the list of contents")


@test
def plot():
    """--plot: charts as SVG and PNG; without gnuplot nothing is measured"""
    if shutil.which("gnuplot"):
        folder = service.data / "plots"
        report = json.loads(bench("roundtrip", "--json", f"--plot={folder}", *arguments_for(verbs()["roundtrip"])))
        names = {f"roundtrip-{chart['id']}{suffix}" for chart in report["charts"] for suffix in (".svg", ".png")}
        true(names, "no chart")
        equal({path.name for path in folder.iterdir()}, names, "files")
    path = service.environment["PATH"]
    service.environment["PATH"] = str(service.data)
    try:
        equal(bench("fetch", "--plot=x", *publish(), code=FAILED), "", "output without gnuplot")
        bench("report", service.data / "none", *publish(), code=FAILED)
    finally:
        service.environment["PATH"] = path


@test
def wrong_usage():
    """Unknown options and workloads are refused"""
    where = publish()
    for arguments in (
        (),
        ("frobnicate",),
        ("dataset",),
        ("dataset", "--rows=-1", "x"),
        ("dataset", "--kind=unknown", "x"),
        ("dataset", "--all=x", "y"),
        ("fetch",),
        ("fetch", *where, "--rounds=0"),
        ("fetch", *where, "--size=huge"),
        ("fetch", *where, "word"),
        ("fetch", *where, "--postgres=x"),
        ("fetch", *where, "--user"),
        ("soak", *where, "--clients=0"),
        ("soak", *where, "--time=0s"),
        ("soak", *where, "--time=2days"),
        ("report", *where),
        ("report", "x"),
    ):
        bench(*arguments, code=USAGE)


main(service)
