#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Queries in scripts and at the prompt: plans, the lines below the rows, limits, progress, and all ways in which a query
ends early.

test_interrupts.py tests Ctrl-C at the prompt and in the pager.
"""
import contextlib
import os
import re
import signal
import subprocess
from sqlite3 import connect

from pty_shell import ENTER, Shell, Terminal, control  # finds what follows

from fake_polkit import FakePolkit
from harness import CHINOOK, CLI, PATIENCE, PATIENT, UID_A, UID_DAEMON, Service, main, on_server, processor_time, wait_for
from tap import Skip, equal, test, true

OK, QUERY, USAGE, UNREACHABLE, LOST, OUTPUT, INTERRUPTED = 0, 1, 2, 3, 4, 5, 130
ENDLESS = "WITH RECURSIVE n(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM n) SELECT "
SCAN = ENDLESS + "count(*) FROM n"
STREAM = ENDLESS + "x, 'some text' AS t FROM n"
# Returns one row, and then computes forever.
FIRST_ROW_ONLY = "SELECT 'first' AS t UNION ALL SELECT * FROM (" + SCAN + ")"

service = Service({"chinook": CHINOOK})


def command(*arguments, on=service):
    return [str(CLI), f"--address={on.address}", *arguments]


def start(*arguments, on=service, **keywords):
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | keywords
    return subprocess.Popen(command(*arguments, on=on), env=on.environment, text=True, **streams)


def ask(*arguments, code=OK, **keywords):
    process = start(*arguments, **keywords)
    out, err = process.communicate(timeout=PATIENCE * 2)
    equal(process.returncode, code, f"exit code of {arguments}, which said {err!r}")
    return out, err


def runs(on=service):
    return on.counters()["NRuns"]


def is_idle():
    wait_for(lambda: runs() == 0, "the run is over")


@contextlib.contextmanager
def shell_of(*arguments, on=service, **keywords):
    with Shell(*(arguments or ["chinook"]), on=on, **keywords) as shell:
        yield shell


def begin(shell, sql, on=service):
    shell.type(sql)
    shell.send(ENTER)
    shell.wait_for(lambda: runs(on) == 1, "the run is under way")


# ---- plans -------------------------------------------------------------------------------------------------------------


PLANNED = (
    "SELECT * FROM Track",
    "SELECT * FROM Track JOIN Album USING (AlbumId) JOIN Artist USING (ArtistId) WHERE Track.Name LIKE 'a%' ORDER BY Title",
    "SELECT * FROM Track WHERE AlbumId IN (SELECT AlbumId FROM Album WHERE ArtistId = 1) UNION ALL SELECT * FROM Track",
    "WITH a AS (SELECT ArtistId, count(*) AS n FROM Album GROUP BY 1) SELECT * FROM a, a AS b WHERE a.n = b.n",
    "SELECT 1 UNION SELECT 2 EXCEPT SELECT (SELECT max(TrackId) FROM Track)",
)


def sqlite3(*arguments):
    return subprocess.run(["sqlite3", str(CHINOOK), *arguments], capture_output=True, text=True, check=True).stdout


@test
def plans():
    """EXPLAIN QUERY PLAN, typed or by .eqp, is the same tree as in sqlite3; modes for programs show rows"""
    for sql in PLANNED:
        expected = sqlite3("EXPLAIN QUERY PLAN " + sql)
        true(expected.count("\n") > 1, f"sqlite3 drew {expected!r}")
        for mode in ("table", "list"):
            equal(ask(f"--mode={mode}", "chinook", "EXPLAIN QUERY PLAN " + sql)[0], expected, f"tree of {sql}")
        out, _ = ask("--mode=table", "chinook", ".eqp on", f"SELECT count(*) FROM ({sql})")
        true(out.startswith(sqlite3(f"EXPLAIN QUERY PLAN SELECT count(*) FROM ({sql})")), f".eqp wrote {out!r}")
    out, err = ask("--mode=csv", "chinook", ".eqp on", "SELECT 1 AS a")
    equal(out, "a\n1\n", "rows that a program reads")
    true(err.startswith("QUERY PLAN\n`--SCAN CONSTANT ROW"), f"the plan is elsewhere: {err!r}")
    out, _ = ask("--mode=csv", "chinook", "explain query plan SELECT 1")
    true(out.startswith("id,parent,notused,detail\n"), f"rows for a program: {out!r}")


@test
def plan_with_parameters():
    """.eqp shows the plan of a statement with parameters, set or unset"""
    for parameters in ((), ("--param=id=3",)):
        out, _ = ask(*parameters, "--mode=list", "chinook", ".eqp on", "SELECT Name FROM Genre WHERE GenreId = :id")
        true("SEARCH Genre USING INTEGER PRIMARY KEY" in out, f"plan: {out!r}")
        equal(out.endswith("Metal\n"), bool(parameters), f"row: {out!r}")


@test
def opcodes():
    """EXPLAIN is shown in the same columns as in sqlite3"""
    mine = ask("chinook", "EXPLAIN SELECT Name FROM Genre")[0].splitlines()
    theirs = sqlite3("EXPLAIN SELECT Name FROM Genre").splitlines()
    equal((mine[0].split(), mine[1]), (theirs[0].split(), theirs[1]), "names")
    # sqlite3 indents loops; another version of SQLite in the service may compile the statement differently.
    words = [line.split()[1] for line in mine[2:]]
    true({"Init", "OpenRead", "Column", "ResultRow", "Halt"} <= {*words}, f"opcodes: {words}")
    true(all(re.match(r" *\d+ +\w+ +-?\d+ ", line) for line in mine[2:]), f"lines: {mine}")


# ---- below the rows ----------------------------------------------------------------------------------------------------


@test
def footers():
    """At a prompt the number of rows and times follow the result; elsewhere only if an option asks for them"""
    with shell_of() as shell:
        line = shell.run("SELECT 1;")[-1]
        true(re.fullmatch(r"1 row \(server [\d.]+ m?s, transfer [\d.]+ m?s\)", line), f"from the start: {line!r}")
        shell.run(".timer off")
        shell.run(".once /dev/null")
        equal(shell.run("SELECT 1 UNION SELECT 2;"), ["2 rows"], "how many went into a file")
        equal(shell.run("SELECT 1;")[-1], "1 row", "one row")
        equal(shell.run("SELECT * FROM Track WHERE TrackId < 0;")[-1], "0 rows", "none")
        equal(shell.run("SELECT count(*) FROM Track; SELECT 1 UNION SELECT 2;")[-1], "2 rows", "two")
        shell.run(".timer on")
        line = shell.run("SELECT 1;")[-1]
        true(re.fullmatch(r"1 row \(server [\d.]+ m?s, transfer [\d.]+ m?s\)", line), f"with .timer: {line!r}")
        shell.run(".footer off")
        line = shell.run("SELECT 1;")[-1]
        true(re.fullmatch(r"server [\d.]+ m?s, transfer [\d.]+ m?s", line), f"the times alone: {line!r}")
        shell.run(".timer off")
        true(shell.run("SELECT 1;")[-1].startswith("└"), "nothing at all")
    equal(ask("--mode=csv", "chinook", "SELECT 1 AS a"), ("a\n1\n", ""), "not on a terminal")
    out, err = ask("--mode=csv", "chinook", ".timer on", "SELECT 1 AS a")
    equal(out, "a\n1\n", "data with .timer")
    true(re.fullmatch(r"server [\d.]+ m?s, transfer [\d.]+ m?s\n", err), f"times on stderr: {err!r}")


@test
def changes():
    """.changes writes what sqlite3 writes; at a prompt, the line below a statement without a result has the number"""
    statements = (
        "INSERT INTO note VALUES (1), (2);", "UPDATE note SET x = 3;", "SELECT count(*) FROM note;",
        "INSERT INTO note VALUES (5) RETURNING x;", "DELETE FROM note WHERE x = 99;", "DELETE FROM note;",
    )
    script = "\n".join((".changes on", *statements))  # one on a line: sqlite3 reports once for each line
    with Service({"chinook": CHINOOK}) as writing:
        path = writing.data / "notes.sqlite"
        made = "PRAGMA journal_mode = WAL; CREATE TABLE note (x);"
        subprocess.run(["sqlite3", path, made], capture_output=True, check=True)
        writing.database("notes", Path=path, Mode="read-write")
        writing.driver.manager("Reload")
        expected = subprocess.run(["sqlite3", ":memory:"], input="CREATE TABLE note (x);\n" + script, text=True,
                                  capture_output=True, check=True).stdout
        equal(ask("--mode=list", "--headers=off", "notes", script, on=writing)[0], expected, "output")
        equal(ask("notes", "INSERT INTO note VALUES (1)", on=writing), ("", ""), "nothing by default")
        with shell_of("notes", on=writing) as shell:
            shell.run(".timer off")
            equal(shell.run("INSERT INTO note VALUES (1), (2);")[-1], "2 rows changed", "INSERT")
            equal(shell.run("DELETE FROM note WHERE x = 99;")[-1], "0 rows changed", "DELETE")
            equal(shell.run("INSERT INTO note VALUES (6) RETURNING x;")[-1], "1 row, 1 changed", "RETURNING")


@test
def times():
    """The shown server time is the time that the server took"""
    slow = "WITH RECURSIVE n(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM n WHERE x < 2000000) SELECT count(*) FROM n"
    _, err = ask("--mode=csv", "chinook", ".timer on", slow)
    server, unit, transfer, _ = re.match(r"server ([\d.]+) (m?s), transfer ([\d.]+) (m?s)", err).groups()
    true(float(server) > (50 if unit == "ms" else 0), f"two million steps took the server {server} {unit}")
    true(float(transfer) < 1000, f"one row took {transfer} to come")


@test
def stats():
    """.stats shows the statistics of the run"""
    out, err = ask("--mode=csv", "chinook", ".stats on", "SELECT Name FROM Genre")
    true(out.startswith("Name\nRock\n"), f"data: {out!r}")
    for wanted in (r"25 rows, [\d.]+ k?B of pages", r"Transport: +pipe", r"First row: +after [\d.]+ m?s", r"Server: +\d"):
        true(re.search(wanted, err), f"{wanted} is not in {err!r}")
    _, err = ask("--mode=csv", "--transport=channel", "chinook", ".stats on", "SELECT Name FROM Genre")
    true(re.search(r"Transport: +channel", err), f"on a channel: {err!r}")


# ---- limits ------------------------------------------------------------------------------------------------------------


@test
def timeouts():
    """.timeout ends a run, also on the service, before its first row and between rows, and says so"""
    for sql in (SCAN, FIRST_ROW_ONLY, STREAM):
        with open(os.devnull, "w", encoding="ascii") as nowhere:
            _, err = ask("--mode=csv", "chinook", ".timeout 0.3", sql, code=QUERY, stdout=nowhere)
        true("ended after 300.0 ms" in err, f"it says {err!r}")
        is_idle()
    equal(ask("--mode=csv", "chinook", ".timeout 30", "SELECT 1 AS a"), ("a\n1\n", ""), "one that is quick")


@test
def timeout_of_an_unread_result():
    """.timeout also ends a run of which no row is read; those that arrived are written later"""
    with Service({"chinook": CHINOOK}, limits=PATIENT) as own:
        process = start("--mode=csv", "chinook", ".timeout 0.3", STREAM, on=own)
        wait_for(lambda: own.states() == ["draining"] or own.counters()["TotalRuns"] == 1, "it is over")
        out, err = process.communicate(timeout=PATIENCE)
        equal(process.returncode, QUERY, "exit code")
        true("ended after 300.0 ms" in err, f"it says {err!r}")
        true(out.startswith("x,t\n1,") and out.endswith('"\n'), "whole rows")


@test
def rows_max():
    """.limit rows cuts a result, and says so; a result of exactly as many rows is complete"""
    out, err = ask("--mode=csv", "chinook", ".limit rows 3", STREAM)
    equal(out, "x,t\n1,\"some text\"\n2,\"some text\"\n3,\"some text\"\n", "rows")
    true("first 3 rows" in err, f"it says {err!r}")
    is_idle()
    out, err = ask("--mode=json", "chinook", ".limit rows 25", "SELECT GenreId FROM Genre")
    true(out.endswith("]\n"), "an array that is closed")
    equal(err, "", "what it says of all 25 rows")
    out, err = ask("--mode=json", "chinook", ".limit rows 24", "SELECT GenreId FROM Genre")
    true(not out.rstrip().endswith("]"), "an array that is open: rows are missing")


# ---- early ends --------------------------------------------------------------------------------------------------------


@test
def interrupted_script():
    """SIGINT: the query ends on the service, received rows are written, later statements do not run, exit code 130"""
    for sql, streams in ((SCAN, {}), (STREAM, {}), (FIRST_ROW_ONLY, {})):
        with open(os.devnull, "w", encoding="ascii") as nowhere:
            process = start("--mode=csv", "chinook", "-c", sql, "-c", ".print behind", stdout=nowhere, **streams)
            wait_for(lambda: runs() == 1, "the run is under way")
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=PATIENCE)
        equal((process.returncode, err), (INTERRUPTED, ""), f"end of {sql}")
        is_idle()
    process = start("--mode=json", "chinook", FIRST_ROW_ONLY)
    equal(process.stdout.read(14), '[{"t":"first"}', "the row that there is shows, though no other follows")
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=PATIENCE)
    true("]" not in out, "the array is closed, as if it were whole")


@test
def terminated():
    """SIGTERM and SIGHUP: the query ends on the service, and the exit code tells the signal"""
    for number in (signal.SIGTERM, signal.SIGHUP):
        process = start("--mode=csv", "chinook", SCAN)
        wait_for(lambda: runs() == 1, "the run is under way")
        process.send_signal(number)
        process.communicate(timeout=PATIENCE)
        equal(process.returncode, 128 + number, f"exit code by {number.name}")
        is_idle()


@test
def reader_that_stands_still():
    """SIGINT ends a query whose output is not read"""
    with Service({"chinook": CHINOOK}, limits=PATIENT) as own:
        process = start("--mode=csv", "chinook", STREAM, on=own)
        wait_for(lambda: own.counters()["NParked"] == 1, "everything is full")
        process.send_signal(signal.SIGINT)
        equal(process.wait(PATIENCE), INTERRUPTED, "exit code")
        wait_for(lambda: runs(own) == 0, "the run is over")
        process.communicate()


@test
def reader_that_leaves():
    """A reader that closes the pipe ends the query, also while no row arrives"""
    process = start("--mode=csv", "chinook", FIRST_ROW_ONLY)
    equal([process.stdout.readline(), process.stdout.readline()], ["t\n", "first\n"], "what came")
    process.stdout.close()
    equal(process.wait(PATIENCE), OUTPUT, "exit code")
    equal(process.stderr.read(), "", "what it says")
    process.stderr.close()
    is_idle()


@test
def cancelled_while_polkit_is_asked():
    """Ctrl-C while polkit asks for a password: the question is withdrawn, and the shell goes on"""
    if os.geteuid() != 0:
        raise Skip("needs root, to be another user, since root is asked for none")
    asked = {"Path": CHINOOK, "AllowUsers": "root", "Polkit": "yes"}
    with Service({"chinook": CHINOOK, "asked": asked}, uid=UID_DAEMON) as guarded:
        fake = FakePolkit(guarded.address, {"asked": ("challenge", "hang")})
        other = ["setpriv", f"--reuid={UID_A}", f"--regid={UID_A}", "--clear-groups"]
        environment = guarded.environment | {"TERM": "xterm", "LANG": "C.UTF-8", "PAGER": "", "HOME": "/nonexistent"}
        with Terminal([*other, *command("--no-init", "asked", on=guarded)], environment) as shell:
            shell.wait_for("asked>")
            shell.send("SELECT 1;" + ENTER)
            shell.wait_for(lambda: len(fake.open) == 1, "the user is asked")
            shell.send(control("C"))
            shell.wait_for("Cancelled.")
            wait_for(lambda: not fake.open, "the question is withdrawn")
            shell.send(".open chinook" + ENTER)
            shell.wait_for("chinook>")
            shell.send("SELECT 6 * 7;" + ENTER)
            shell.wait_for(lambda: "42 │" in shell.text() and shell.cursor_line() == "chinook>", "the result, and a prompt")
            shell.send(control("D"))
            equal(shell.wait_exit(), OK, "exit code")
        fake.close()


# ---- losses ------------------------------------------------------------------------------------------------------------


@test
def daemon_lost():
    """The daemon dies during a result: rows so far, exit code 4, JSON array left open; a prompt reports loss and return"""
    with Service({"chinook": CHINOOK}) as mortal:
        process = start("--mode=json", "chinook", "-c", FIRST_ROW_ONLY, on=mortal)
        equal(process.stdout.read(14), '[{"t":"first"}', "what came")
        mortal.kill()
        out, err = process.communicate(timeout=PATIENCE)
        equal(process.returncode, LOST, f"exit code, having said {err!r}")
        true("]" not in out, "the array is closed, as if it were whole")
        true("DaemonLost" in err or "ShuttingDown" in err, f"it says {err!r}")
        mortal.start()
        with shell_of(on=mortal) as shell:
            begin(shell, FIRST_ROW_ONLY + ";", on=mortal)
            shell.wait_for("│ first")
            mortal.kill()
            shell.wait_prompt()
            true("│ first" in shell.text(), f"the row is gone:\n{shell.text()}")
            true("1 row so far" in shell.text(), f"it does not count:\n{shell.text()}")
            mortal.start()
            lines = shell.run("SELECT 6 * 7;")
            true("Connected again." in lines and any("42 │" in line for line in lines), f"afterwards:\n{shell.text()}")
            true("Connected again." not in shell.run("SELECT 6 * 7;"), "it says so twice")


@test
def repeated_after_a_kill():
    """The service is killed while it computes a query that only reads: the next instance gives the result"""
    if on_server():
        raise Skip("replaces the file of a database")
    sql = "WITH RECURSIVE n(x) AS (VALUES(1) UNION ALL SELECT x+1 FROM n LIMIT (SELECT n FROM size)) SELECT max(x) x FROM n"
    with Service(activation=True) as mortal:
        endless, short = (mortal.data / f"{name}.sqlite" for name in ("endless", "short"))
        for path, n in ((endless, 10**15), (short, 42)):
            with contextlib.closing(connect(path)) as db:
                db.executescript(f"CREATE TABLE size(n); INSERT INTO size VALUES ({n})")
        mortal.database("endless", Path=endless)
        process = start("--mode=csv", "endless", "-c", sql, on=mortal)
        wait_for(lambda: runs(mortal) > 0, "the query runs")
        before = sum(map(processor_time, mortal.workers()))
        wait_for(lambda: sum(map(processor_time, mortal.workers())) > before + 1, "it has read the size, and computes")
        short.replace(endless)  # for the next instance
        os.kill(mortal.pid(), signal.SIGKILL)
        out, err = process.communicate(timeout=PATIENCE)
        equal((process.returncode, out), (OK, "x\n42\n"), f"exit code and output, having said {err!r}")


@test
def nowhere():
    """Without a database a statement tells how to open one; without a service it names the missing service"""
    _, err = ask("-c", "SELECT 1", code=QUERY)
    true(".open NAME" in err, f"it says {err!r}")
    with Service({}, start=False) as empty:
        _, err = ask("chinook", "SELECT 1", code=UNREACHABLE, on=empty)
        true("sqlipcd is not installed on the bus at" in err and "ServiceUnknown" in err, f"it says {err!r}")
        _, err = ask("chinook", "-c", ".verbose off", "-c", "SELECT 1", code=UNREACHABLE, on=empty)
        true("sqlipcd is not installed on the bus at" in err and "ServiceUnknown" not in err, f"it says {err!r}")
    with Service({}) as empty:
        _, err = ask("--list", on=empty)
        true("nothing is published for you" in err and "sqlipcctl add" in err, f"--list says {err!r}")
        _, err = ask("chinook", "SELECT 1", code=QUERY, on=empty)
        true("nothing is published for you" in err and "sqlipcctl add" in err, f"a query says {err!r}")
        _, err = ask("-c", ".open chinook", code=QUERY, on=empty)
        true("nothing is published for you" in err and "sqlipcctl add" in err, f".open says {err!r}")


@test
def suggestions():
    """Unknown tables, columns and functions get a caret and a suggestion; commands of other systems get ours"""
    for sql, place, advice in (
        ("SELECT * FROM Gnere", "Gnere", "did you mean Genre?"),
        ("SELECT Nmae FROM Genre", "Nmae FROM Genre", "did you mean Name?"),
        ("SELECT g.Nmae\nFROM Genre g", "g.Nmae", "did you mean Name?"),
        ("SELECT conut(*) FROM Genre", "conut(*) FROM Genre", "did you mean count?"),
        ("WITH recent AS (SELECT 1) SELECT * FROM recnt", "recnt", "did you mean recent?"),
        ("show tables", "show tables", ".tables lists tables"),
        ("desc Genre", "desc Genre", ".describe NAME shows columns"),
        ("use other", "use other", ".open NAME opens another database"),
    ):
        _, err = ask("chinook", sql, code=QUERY)
        message, line, caret = err.splitlines()
        true(advice in message, f"{sql} says {err!r}")
        equal(line[caret.index("^") :], place, f"what the caret of {err!r} points to")


@test
def names_of_errors():
    """At a prompt errors are sentences; .verbose on adds their D-Bus names"""
    with shell_of() as shell:
        for line in ("SELECT nope;", ".open nosuch"):
            shown = "\n".join(shell.run(line))
            true("Error: " in shown and "org." not in shown, f"{line} says {shown!r}")
        shell.run(".verbose on")
        shown = "".join(shell.run("SELECT nope;"))
        true("org.sqlipc1.Error.Sql" in shown, f"with .verbose on it says {shown!r}")


@test
def places():
    """An error in a file has the line of the error, not the first line of the statement"""
    path = service.folder / "script.sql"
    path.write_text("SELECT 1 AS a;\n\n-- about\nSELECT a,\n       nope\n  FROM (SELECT 1 AS a);\nSELECT 2 AS b;\n")
    out, err = ask("--mode=csv", "chinook", "-f", str(path), code=QUERY)
    equal(out, "a\n1\nb\n2\n", "the statements around it")
    true(f"{path}:5: no such column: nope" in err, f"it says {err!r}")
    lines = err.splitlines()
    equal(lines[1][lines[2].index("^") :], "nope", "what the caret points to")
    out, _ = ask("--mode=csv", "--bail", "chinook", "-f", str(path), code=QUERY)
    equal(out, "a\n1\n", "with --bail")


# ---- progress ----------------------------------------------------------------------------------------------------------


PROGRESS = re.compile(rb"\r[\d,]+ rows, [\d.]+ .?B, [\d.]+ .?B/s, \d+:\d\d\x1b\[K")


@contextlib.contextmanager
def on_terminal(*arguments, term="xterm-256color", size=(24, 80)):
    """Runs the shell with a terminal for errors, but not for rows."""
    line = ["/bin/sh", "-c", 'exec "$@" >/dev/null', "sh", *command(*arguments)]
    with Terminal(line, service.environment | {"TERM": term, "LANG": "C.UTF-8"}, size) as terminal:
        yield terminal


@test
def progress():
    """A long fetch into a file shows rows, bytes, speed and time on the terminal, in one line that is removed at the end"""
    with on_terminal("--mode=csv", "chinook", STREAM) as terminal:
        terminal.wait_for(lambda: len(PROGRESS.findall(terminal.raw)) >= 3, "three states of the line")
        equal([bool(line) for line in terminal.lines()], [True] + 23 * [False], "lines of the screen")
        terminal.send(control("C"))
        equal(terminal.wait_exit(), INTERRUPTED, "exit code")
        # The terminal itself writes ^C after it has sent the signal, perhaps after the line was removed.
        equal(terminal.text().strip() in ("", "^C"), True, f"whether nothing stays of {terminal.text()!r}")
    is_idle()
    with on_terminal("--mode=csv", "chinook", STREAM, size=(24, 24)) as terminal:
        terminal.wait_for("rows")
        terminal.wait_for(lambda: terminal.raw.count(b"rows") > 3, "several states of the line")
        true(not terminal.lines()[1], f"a narrow terminal has two lines of it:\n{terminal.text()}")


@test
def no_progress():
    """No progress line on a dumb terminal, if off, beside rows on the same terminal, or if another program reads the keys"""
    with on_terminal("--mode=csv", "chinook", ".timeout 1.5", STREAM, term="dumb") as terminal:
        equal(terminal.wait_exit(), QUERY, "exit code")
        true(b"B/s" not in terminal.raw, f"on a dumb terminal: {terminal.raw!r}")
    with on_terminal("--mode=csv", "chinook", ".progress off", ".timeout 1.5", STREAM) as terminal:
        equal(terminal.wait_exit(), QUERY, "exit code")
        true(b"B/s" not in terminal.raw, f"turned off: {terminal.raw!r}")
    with shell_of("--no-pager") as shell:
        shell.run(".timeout 1.5")
        shell.run(STREAM + ";")
        true(b"B/s" not in shell.raw, "beside rows on the same terminal")
    raw = "import tty, time; tty.setcbreak(2); print('taken', flush=True); time.sleep(30)"
    mine = f"{' '.join(command('--mode=csv', 'chinook'))} '.timeout 2' \"{STREAM}\""
    line = f'{mine} | (/usr/bin/python3 -c "{raw}" >&2; cat >/dev/null)'
    with Terminal(["/bin/sh", "-c", line], service.environment | {"TERM": "xterm"}) as terminal:
        terminal.wait_for("taken")
        terminal.wait_for(service.is_over, "it is over")
        true(b"B/s" not in terminal.raw.split(b"taken")[1], f"in another program's screen: {terminal.raw!r}")


@test
def waiting():
    """Before the first row the line shows the elapsed time; at the end the line is removed"""
    with shell_of() as shell:
        shell.type(FIRST_ROW_ONLY.replace("SELECT 'first' AS t UNION ALL ", "") + ";")
        shell.send(ENTER)
        shell.wait_for("0 rows, 0:0")
        shell.send(control("C"))
        shell.wait_prompt()
        true("0 rows, 0:0" not in shell.text(), f"the line stays:\n{shell.text()}")


main(service)
