#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Destinations of results: files, commands, pagers, full disks; and that none of them leaks memory, descriptors or the state
of the terminal.

test_interrupts.py tests pagers that stay open, and pagers that the user quits during a query.
"""
import contextlib
import os
import pathlib
import re
import signal
import sqlite3
import subprocess
import tempfile
import termios

from pty_shell import ENTER, Shell, control, untimed  # finds what follows

from harness import CHINOOK, CLI, PATIENCE, SANITIZED, Service, children, main, rss_anon, wait_for
from tap import Skip, at_most, diagnose, equal, test, true

OK, QUERY, OUTPUT = 0, 1, 5
MEMORY_MAX = 16 * 1024 * 1024
ENDLESS = "WITH RECURSIVE n(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM n) SELECT "
STREAM = ENDLESS + "x, 'some text' AS t FROM n"
GENRES = "SELECT Name FROM Genre WHERE GenreId <= 2"
# Returns one row, and then computes forever.
SLOW = "SELECT 'first' AS t UNION ALL SELECT * FROM (" + ENDLESS + "count(*) FROM n)"

service = Service({"chinook": CHINOOK})


def command(*arguments, on=service):
    return [str(CLI), f"--address={on.address}", *arguments]


def ask(*arguments, code=OK, on=service, environment=None, **keywords):
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | keywords
    everything = on.environment | (environment or {})
    done = subprocess.run(
        command(*arguments, on=on), env=everything, text=True, timeout=PATIENCE * 2, check=False, **streams
    )
    equal(done.returncode, code, f"exit code of {arguments}, which said {done.stderr!r}")
    return done.stdout, done.stderr


def runs():
    return service.counters()["NRuns"]


def shell_of(*arguments, on=service, pager=None, **keywords):
    """`pager`: the value of $PAGER; "default" leaves the choice to the shell."""
    environment = {"PAGER": None if pager == "default" else pager or "", "LESS": None} | keywords.pop("environment", {})
    return Shell(*(arguments or ["chinook"]), on=on, environment=environment, **keywords)


def at_less(shell):
    """Returns True if less waits for a key."""
    return shell.cursor_line().endswith((":", "(END)"))


def less_of(shell):
    """Returns the pid of less, which runs below the `sh` that started it."""
    (sh,) = children(shell.process.pid)
    return (children(sh) or [sh])[0]


# ---- files and commands ------------------------------------------------------------------------------------------------


@test
def files():
    """.output writes to a file until the next .output, .once for one result, --output from the start"""
    with tempfile.TemporaryDirectory() as folder:
        a, b, c = (pathlib.Path(folder, name) for name in "abc")
        out, err = ask(
            "--mode=list", "--headers=off", f"--output={a}", "chinook", "SELECT 1", f".once {b}", "SELECT 2", "SELECT 3",
            f".output {c}", "SELECT 4", "SELECT 5", ".output", "SELECT 6", f".once {b}", "SELECT 7",
        )  # fmt: skip
        equal((out, err), ("6\n", ""), "standard output")
        equal([path.read_text() for path in (a, b, c)], ["1\n3\n", "7\n", "4\n5\n"], "files")
        out, _ = ask("--mode=list", "chinook", "-c", f".once {a}", "-c", "-- nothing", "-c", GENRES)
        equal((out, a.read_text()), ("", "Name\nRock\nJazz\n"), "an answer is what has rows")


@test
def wrong_files():
    """A file that cannot be opened is reported, and later output goes to the previous destination"""
    out, err = ask("--mode=list", "chinook", ".output /nonexistent/file", "SELECT 1 AS a", code=QUERY)
    true("/nonexistent/file: No such file" in err, f"it says {err!r}")
    equal(out, "a\n1\n", "what follows")
    _, err = ask("--output=/nonexistent/file", "chinook", "SELECT 1", code=OUTPUT)
    true("/nonexistent/file: No such file" in err, f"it says {err!r}")


@test
def commands():
    """.output to a command: it gets all results, and the shell waits for it; a failure is reported, an early exit is not"""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "result")
        out, err = ask(
            "--mode=list", "--headers=off", "chinook", f".output |sleep 0.3; cat >{path}", "SELECT 1", "SELECT 2", ".output",
            f".shell cat {path}", "SELECT 3",
        )  # fmt: skip
        equal((out, err), ("1\n2\n3\n", ""), "all of it, in order")
    out, err = ask("--mode=list", "--headers=off", "chinook", ".once |tr a-z A-Z", GENRES, "SELECT 'after'")
    equal((out, err), ("ROCK\nJAZZ\nafter\n", ""), "one answer")
    for command, status in (("cat >/dev/null; exit 3", 3), ("nosuchcommand", 127)):
        for rows in ("SELECT 1", STREAM + " LIMIT 100000"):
            for how in ([f"--output=|{command}", "chinook", rows], ["chinook", f".once |{command}", rows]):
                _, err = ask("--mode=list", *how, code=OUTPUT)
                true(f"ended with status {status}" in err, f"{how} says {err!r}")
                true(err.count("\n") <= 2, f"{how} says too much: {err!r}")
    ask("--mode=list", "chinook", ".output |exit 3", "SELECT 1", ".output", code=QUERY)
    out, err = ask("--mode=list", "--headers=off", "chinook", ".once |head -n 2", STREAM, "SELECT 'after'")
    equal((out, err), ("1|some text\n2|some text\nafter\n", ""), "a reader that had enough")
    wait_for(lambda: runs() == 0, "the run is over")


@test
def full_disk():
    """A full disk is reported, and ends the query"""
    _, err = ask("--mode=csv", "--output=/dev/full", "chinook", STREAM, code=OUTPUT)
    true("No space left" in err, f"it says {err!r}")
    wait_for(lambda: runs() == 0, "the run is over")
    _, err = ask("--mode=csv", "chinook", ".once /dev/full", GENRES, "SELECT 1", code=OUTPUT)
    true("No space left" in err, f"a short one says {err!r}")


@test
def standard_output_is_shared():
    """The shell does not make standard output non-blocking for processes that share it"""
    script = 'exec 3>&1; { "$@"; /usr/bin/python3 -c "import os; print(os.get_blocking(1))"; } | cat'
    done = subprocess.run(
        ["/bin/sh", "-c", script, "sh", *command("--mode=list", "--headers=off", "chinook", "SELECT 1")],
        env=service.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True,
    )  # fmt: skip
    equal(done.stdout, "1\nTrue\n", "what the pipe is to its next writer")


@test
def at_once():
    """Rows appear although the next row takes long: in a pipe, and on a terminal also within the first screen"""
    process = subprocess.Popen(
        command("--mode=table", "chinook", SLOW), env=service.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
    )
    equal([process.stdout.readline() for _ in range(4)][3], b"| first |\n", "a row down a pipe")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=PATIENCE)
    wait_for(lambda: runs() == 0, "the run is over")
    with shell_of(pager="default") as shell:
        shell.type(SLOW + ";")
        shell.send(ENTER)
        shell.wait_for("│ first")
        equal(runs(), 1, "queries that go on")
        shell.send(control("C"))
        shell.wait_prompt()


# ---- pagers ------------------------------------------------------------------------------------------------------------


@test
def only_what_is_taller():
    """A result that fits the screen with the prompt gets no pager; one more line does; a wrapped line counts as several"""
    with tempfile.TemporaryDirectory() as folder:
        seen = pathlib.Path(folder, "seen")
        with shell_of(pager=f"cat >{seen}", size=(10, 60)) as shell:  # with room for all times
            shell.run(".mode list")
            shell.run(".headers off")
            for rows, width, paged in ((8, 10, False), (9, 10, True), (4, 70, False), (5, 70, True), (8, 60, False)):
                seen.unlink(missing_ok=True)
                lines = shell.run(f"SELECT substr(hex(zeroblob({width})), 1, {width}) FROM Genre LIMIT {rows};")
                equal(seen.exists(), paged, f"whether {rows} rows of {width} columns were paged")
                if paged:
                    equal(untimed(seen.read_text()), rows * ("0" * width + "\n") + f"{rows} rows\n", "what the pager got")
                else:
                    equal(untimed(lines[-1]), f"{rows} rows", "what the terminal got")


@test
def which_pager():
    """The pager is $PAGER, run by sh, or less with the user's LESS; none if $PAGER is empty or off, or on a dumb terminal"""
    tall = "SELECT Name FROM Track LIMIT 100;"
    with shell_of(pager="default") as shell:
        shell.type(tall)
        shell.send(ENTER)
        shell.wait_for(lambda: at_less(shell), "less")
        words = pathlib.Path(f"/proc/{less_of(shell)}/cmdline").read_bytes().split(b"\0")
        equal(words[:2], [b"less", b"-SR"], "what runs")
        shell.send("q")
        shell.wait_prompt()
    told = "cat >/dev/null; echo LESS is $LESS"
    for environment, expected in (({}, "LESS is SR"), ({"LESS": "-FX"}, "LESS is -FX"), ({"LESS": ""}, "LESS is")):
        with shell_of(pager=told, environment=environment) as shell:
            equal(shell.run(tall), [expected], f"with {environment}")
    with shell_of(pager="echo paged; cat >/dev/null") as shell:
        equal(shell.run(tall), ["paged"], "by $PAGER")
        shell.run(".pager off")
        equal(untimed(shell.run(tall)[-1]), "100 rows", "turned off")
        shell.run(".pager 'echo mine; cat >/dev/null'")
        equal(shell.run(tall), ["mine"], "by .pager")
    with shell_of(pager="echo paged; cat >/dev/null", environment={"TERM": "dumb"}) as shell:
        equal(untimed(shell.run(tall)[-1]), "100 rows", "on a dumb terminal")


@test
def pager_that_is_not_there():
    """A pager that cannot be started is reported, and all rows go to the terminal once"""
    with shell_of(pager="nosuchpager -x") as shell:
        for n in (100, 3503):
            lines = shell.run(f"SELECT TrackId FROM Track LIMIT {n};")
            true(any("There is no pager nosuchpager -x" in line for line in lines), f"it says {lines[:3]}")
            rows = [line for line in lines if re.fullmatch(r"│ +\d+ │", line)]
            equal(len(rows), n, "rows on the terminal")
            equal(untimed(lines[-1]), f"{n:,} rows", "the last line")


@test
def pager_without_room():
    """If the disk of the spool is full, the shell reports it, and the pager shows the stored rows"""
    if os.geteuid() != 0:
        raise Skip("needs root, to mount a small disk")
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", folder], check=True)
        try:
            with shell_of(pager="default", environment={"TMPDIR": folder}) as shell:
                shell.type(STREAM + ";")
                shell.send(ENTER)
                shell.wait_for(lambda: at_less(shell), "less")
                wait_for(lambda: runs() == 0, "the query is over")
                shell.send("q")
                shell.wait_prompt()
                true("No space left" in shell.text(), f"it says\n{shell.text()}")
                shell.run("SELECT 1;")
        finally:
            subprocess.run(["umount", folder], check=True)
    with shell_of(pager="cat", environment={"TMPDIR": "/nonexistent"}) as shell:
        lines = shell.run("SELECT Name FROM Track LIMIT 100;")
        true(any("pager cannot be started" in line for line in lines), f"without a folder: {lines[:3]}")
        equal(untimed(lines[-1]), "100 rows", "the last line")


@test
def pager_that_is_killed():
    """After a pager is killed, the terminal is restored and the shell goes on"""
    with shell_of(pager="default") as shell:
        before = termios.tcgetattr(shell.terminal)
        shell.type("SELECT Name FROM Track;")
        shell.send(ENTER)
        shell.wait_for(lambda: at_less(shell), "less")
        true(termios.tcgetattr(shell.terminal)[3] != before[3], "less has the terminal as it was")
        os.kill(less_of(shell), signal.SIGKILL)
        shell.wait_prompt()
        true("42 │" in "\n".join(shell.run("SELECT 6 * 7;")), "the next statement")
        shell.send("SELECT 1; -- echoed")
        shell.wait_for("-- echoed")


@test
def nothing_leaks():
    """A pager gets standard streams and no other descriptor; SIGPIPE kills it as it kills any program"""
    inherited = "ls -l /proc/self/fd | grep -c ^l; grep -E 'Sig(Ign|Blk)' /proc/self/status; cat >/dev/null"
    with shell_of(pager=inherited) as shell:
        lines = shell.run("SELECT Name FROM Track LIMIT 100;")
        equal(lines[0], "4", "descriptors, with the one that ls lists by")
        masks = {int(line.split()[1], 16) & (1 << signal.SIGPIPE - 1) for line in lines[1:3]}
        equal(masks, {0}, "SIGPIPE, blocked or ignored")
        shell.run(".output |ls -l /proc/self/fd | grep -c ^l >leaks; cat >/dev/null")
        shell.run("SELECT 1;")
        shell.run(".output")
        equal((shell.home / "leaks").read_text(), "4\n", "descriptors of a command")


# ---- memory ------------------------------------------------------------------------------------------------------------


def wide():
    """300,000 rows of 31 columns."""
    path = service.data / "wide.sqlite"
    with contextlib.closing(sqlite3.connect(path)) as connection:
        columns = ", ".join(f"c{i}" for i in range(31))
        values = ", ".join(f"x * {i} % 1000" if i % 3 else f"'text ' || x % 977" for i in range(31))
        connection.execute(f"CREATE TABLE t({columns})")
        connection.execute(
            f"INSERT INTO t WITH RECURSIVE n(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM n WHERE x < 300000) "
            f"SELECT {values} FROM n"
        )
        connection.commit()
    service.database("wide", Path=path)
    service.driver.manager("Reload")


def memory_is_flat():
    """300,000 rows of 31 columns need at most 16 MiB: into a pipe as table, CSV and JSON, and into an open pager"""
    wide()
    for mode in ("table", "csv", "json"):
        process = subprocess.Popen(
            command(f"--mode={mode}", "wide", "SELECT * FROM t"),
            env=service.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        )  # fmt: skip
        most, total = 0, 0
        for data in iter(lambda process=process: process.stdout.read(1 << 20), b""):
            total += len(data)
            with contextlib.suppress(AssertionError):  # The shell has written everything and ended.
                most = max(most, rss_anon(process.pid))
        process.stdout.close()
        equal(process.wait(), OK, "exit code")
        true(total > 20000000, f"{total} bytes in mode {mode}")
        diagnose(f"{mode}: {most >> 10} KiB at most, for {total >> 20} MiB")
        at_most(most, MEMORY_MAX, f"memory in mode {mode}")
    with shell_of("wide", pager="default") as shell:
        shell.type("SELECT * FROM t;")
        shell.send(ENTER)
        shell.wait_for(lambda: at_less(shell), "less")
        wait_for(lambda: runs() == 0, "all is read")
        diagnose(f"pager: {rss_anon(shell.process.pid) >> 10} KiB")
        at_most(rss_anon(shell.process.pid), MEMORY_MAX, "memory behind a pager")
        shell.send("q")
        shell.wait_prompt()


if not SANITIZED:  # AddressSanitizer keeps freed memory.
    test(memory_is_flat)


main(service)
