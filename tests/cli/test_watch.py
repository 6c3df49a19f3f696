#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
""".watch: repeats a statement, on a terminal and elsewhere. tests/unit/test-cli-watch.c tests the detection of changes."""
import contextlib
import os
import re
import signal
import sqlite3
import subprocess

from pty_shell import ENTER, Shell, control  # finds what follows

from harness import CLI, PATIENCE, Service, executable, main, wait_for
from tap import equal, test, true

INTERRUPTED = 130
ROWS = "SELECT name, n FROM t ORDER BY name"
ENDLESS = "WITH RECURSIVE n(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"

REVERSE = b"\x1b[7m%s\x1b[0m"
CLEAR_BELOW = b"\x1b[J"  # the end of each picture

service = Service(start=False)
path = service.data / "watched"


def execute(sql):
    with contextlib.closing(sqlite3.connect(path, timeout=PATIENCE)) as connection:
        connection.executescript(sql)


execute("CREATE TABLE t(name TEXT PRIMARY KEY, n)")
service.database("watched", Path=path)
service.start()


def reset():
    execute("DELETE FROM t; INSERT INTO t VALUES ('apple', 1), ('pear', 2), ('quince', '\x1b[31m3')")


def picture(shell):
    """Waits until a picture is complete."""
    begins = ("Every", "After each change")
    shell.wait_for(lambda: shell.lines()[0].startswith(begins) and shell.raw.endswith(CLEAR_BELOW), "a picture")


@contextlib.contextmanager
def watching(line, on=service, **keywords):
    """Returns a shell that has drawn the first picture."""
    with Shell("watched", on=on, **keywords) as shell:
        shell.type(line)
        shell.send(ENTER)
        picture(shell)
        yield shell


def leave(shell):
    shell.send("q")
    shell.wait_prompt()
    true("42" in "\n".join(shell.run("SELECT 6 * 7;")), "no answer after .watch")


def cells(shell, text):
    row, column = shell.find(text)
    return [shell.cell(row, column + i) for i in range(len(text))]


@test
def changes():
    """Changed values are highlighted for one round and counted; new and removed rows are counted"""
    reset()
    with watching(f".watch 0.2 {ROWS}") as shell:
        true("Every 0.2 s" in shell.lines()[0] and "3 rows" in shell.lines()[0], f"title {shell.lines()[0]!r}")
        true(ROWS in shell.lines()[1], f"the statement is not shown: {shell.lines()[1]!r}")
        true("\\x1b[31m3" in shell.text() and b"\x1b[31m3" not in shell.raw, "a value drives the terminal")
        true(not any(cell.reverse for cell in cells(shell, "pear")), "a cell is highlighted from the start")
        # Checks the written bytes: a round may be over before the test reads the screen.
        execute("UPDATE t SET n = 77 WHERE name = 'pear'")
        shell.wait_for(lambda: REVERSE % b"77" in shell.raw, "the changed cell is highlighted")
        shell.wait_for(lambda: "77" in shell.text() and not cells(shell, "77")[0].reverse, "for a round only")
        true(b"3 rows, 1 changed" in shell.raw, "it is not counted")
        equal(re.findall(rb"\x1b\[7m(.*?)\x1b", shell.raw), [b"77"], "what stood out")
        execute("INSERT INTO t VALUES ('banana', 5)")
        shell.wait_for(lambda: b"4 rows, 1 new" in shell.raw, "a row that came is counted")
        shell.wait_for(lambda: REVERSE % b"banana" in shell.raw, "and is highlighted")
        execute("DELETE FROM t WHERE name = 'apple'")
        shell.wait_for(lambda: b"3 rows, 1 gone" in shell.raw, "a row that went is counted")
        shell.wait_for(lambda: "apple" not in shell.text(), "it is not shown any more")
        leave(shell)


@test
def ends():
    """q and Ctrl-C end .watch; the last picture stays, earlier lines have moved up; the terminal echoes keys again"""
    reset()
    for key, clock in (("q", ""), (control("C"), ""), (control("C"), "--interval 100 ")):
        with Shell("watched", on=service) as shell:
            shell.run(".print before")
            shell.type(f".watch {clock}{ROWS}")
            shell.send(ENTER)
            picture(shell)  # Waits for the whole picture, because Ctrl-C drops output that the terminal has not read.
            shell.send(key)
            shell.wait_prompt()
            true("quince" in shell.text(), f"the picture is gone:\n{shell.text()}")
            true("before" in shell.all_lines(), "what stood there before is gone")
            shell.type("SELECT 6")
    wait_for(lambda: service.counters()["NRuns"] == 0, "no run is left")


@test
def cancelled():
    """Ctrl-C while the statement runs also ends it in the service"""
    with Shell("watched", on=service) as shell:
        shell.type(".watch " + ENDLESS)
        shell.send(ENTER)
        wait_for(lambda: service.counters()["NRuns"] == 1, "the run is under way")
        shell.send(control("C"))
        shell.wait_prompt()
        wait_for(lambda: service.counters()["NRuns"] == 0, "the run is over")


@test
def resized():
    """A new size of the window is drawn at once, and no line is wider"""
    reset()
    execute("INSERT INTO t VALUES ('long', 'a value that is longer than twenty columns')")
    with watching(f".watch 3600 {ROWS}") as shell:
        true("longer than twenty columns" in shell.text(), f"not whole:\n{shell.text()}")
        shell.resize(10, 20)
        shell.wait_for(lambda: "\u2026" in shell.text() and "quince" in shell.text(), "cut to the new width")
        leave(shell)


@test
def last_statement():
    """Without SQL .watch and \\watch repeat the typed or the last statement; with parameters"""
    reset()
    with Shell("watched", on=service) as shell:
        shell.run(".parameter set name 'pear'")
        shell.run("SELECT n + 40 FROM t WHERE name = :name;")
        shell.type(".watch 0.2")
        shell.send(ENTER)
        shell.wait_for(lambda: shell.lines()[0].startswith("Every") and "42" in shell.text(), "the last statement's rows")
        shell.send("q")
        shell.wait_prompt()
        shell.type("SELECT 6 * 8 \\watch 1")
        shell.send(ENTER)
        shell.wait_for(lambda: shell.lines()[0].startswith("Every 1 s") and "48" in shell.text(), "what was typed")
        shell.send("q")
        shell.wait_prompt()


@test
def failures():
    """A wrong statement ends .watch; if the daemon was killed, .watch waits for it"""
    reset()
    with Shell("watched", on=service) as shell:
        shown = "\n".join(shell.run(".watch 0.2 SELECT nosuch"))
        true("no such column: nosuch" in shown, f"shown: {shown!r}")
    with Service({"watched": path}, activation=True) as mortal:
        with watching(f".watch 0.2 {ROWS}", on=mortal) as shell:
            for value in ("102", "202"):
                pid = mortal.pid()
                os.kill(pid, signal.SIGKILL)
                wait_for(lambda pid=pid: not executable(pid), "the daemon is gone")
                execute("UPDATE t SET n = n + 100 WHERE name = 'pear'")
                shell.wait_for(lambda value=value: value in shell.text(), "the new value, from another daemon")
            leave(shell)


@test
def no_colours():
    """With NO_COLOR a changed value is marked by a * after it"""
    reset()
    with watching(f".watch 0.2 {ROWS}", environment={"NO_COLOR": "1"}) as shell:
        execute("UPDATE t SET n = 77 WHERE name = 'pear'")
        shell.wait_for(lambda: b"77*" in shell.raw, "a * behind it")
        leave(shell)


def script(*arguments, **keywords):
    command = [str(CLI), f"--address={service.address}", "--mode=csv", *arguments]
    return subprocess.Popen(command, env=service.environment, stdin=subprocess.DEVNULL, text=True, **keywords)


@test
def elsewhere():
    """Not on a terminal: the rows of each round, with an empty line between; --count or Ctrl-C ends .watch"""
    reset()
    process = script("watched", ".watch --count 3 0.1 SELECT 1 AS a", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    out, err = process.communicate(timeout=PATIENCE)
    equal((process.returncode, out, err), (0, "a\n1\n\na\n1\n\na\n1\n", ""), "three rounds")
    process = script("watched", ".watch 0.1 SELECT 1 AS a", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    for line in ("a", "1", "", "a"):
        equal(process.stdout.readline(), line + "\n", "line")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=PATIENCE)
    equal(process.returncode, INTERRUPTED, "exit code after Ctrl-C")
    for wrong in (
        "0", "--interval 0.01", "0.01", "1x SELECT 1", "--count SELECT 1", "--count 0 SELECT 1", "100000 SELECT 1",
    ):  # fmt: skip
        process = script("watched", f".watch {wrong}", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        _, err = process.communicate(timeout=PATIENCE)
        equal(process.returncode, 2, f"exit code of .watch {wrong}")
        true("usage: .watch" in err, f".watch {wrong} said {err!r}")


@test
def many_rows():
    """Of a long result the first rows are shown, and all rows are counted"""
    many = "WITH RECURSIVE n(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM n WHERE x < 200000) SELECT x, 'pear' FROM n"
    with watching(f".watch 3600 {many}") as shell:
        true("200000 rows" in shell.lines()[0], f"title {shell.lines()[0]!r}")
        shell.wait_for(lambda: sum("pear" in line for line in shell.lines()) == 21, "the rows that the screen has room for")
        leave(shell)


main(service)
