#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Ctrl-C and a daemon that dies: in every state of the shell, the run ends on the service and the next statement works.

The aim is 100 ms from the key to the end of the run. The tests print the time, and do not fail because of it.
"""
import os
import pathlib
import signal
import subprocess
import tempfile
import time

from pty_shell import ENTER, Shell, control, paste  # finds what follows

from client import SECONDS
from harness import BUILD_ROOT, CHINOOK, CLI, Service, children, executable, main, wait_for
from library import rows_of, service_of_notes
from overheard import Overheard
from tap import diagnose, equal, test, true

ENDLESS = "WITH RECURSIVE n(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM n) SELECT "
STREAM = ENDLESS + "x, 'some ' || 'text' AS t FROM n;"
SCAN = ENDLESS + "count(*) FROM n;"

service = Service({"chinook": CHINOOK})


def shell_of(*options, on=service, **keywords):
    return Shell(*options, "chinook", on=on, **keywords)


def runs():
    return service.counters()["NRuns"]


def begin(shell, sql):
    """Types a statement, and returns after the service has started it."""
    shell.type(sql)
    shell.send(ENTER)
    shell.wait_for(lambda: runs() == 1, "the run is under way")


def interrupt(shell, what):
    """Presses Ctrl-C; fails unless the run ends, and the prompt returns and works."""
    start = time.monotonic()
    shell.send(control("C"))
    shell.wait_for(lambda: runs() == 0, "the run is over")  # The terminal must read the rows that are still on their way.
    diagnose(f"{what}: {(time.monotonic() - start) * 1000:.0f} ms from the key to the end of the run")
    shell.wait_prompt()
    true("42" in "\n".join(shell.run("SELECT 6 * 7;")), "the next statement")


@test
def while_waiting():
    """Ctrl-C while a query computes, with no output yet, and with the progress line shown"""
    with shell_of() as shell:
        begin(shell, SCAN)
        interrupt(shell, "computing")
        true("ancelled" in shell.text(), f"it does not say so:\n{shell.text()}")
        begin(shell, SCAN)
        shell.wait_for("0:0")  # the progress line
        interrupt(shell, "computing, with a progress line")
        true("0:0" not in shell.cursor_line(), "the progress line stays")
    true("killed" not in service.log_text(), "a worker was killed")


@test
def while_reading():
    """The shell stays after Ctrl-C while .read waits for more of a script, and after a script that cannot be read"""
    fifo = service.folder / "fifo"
    os.mkfifo(fifo)
    held = os.open(fifo, os.O_RDWR)
    with shell_of() as shell:
        for target in (fifo, "|sleep 1000"):
            shell.type(f".read {target}")
            shell.send(ENTER)
            shell.wait_for(lambda: shell.cursor_line() == "", "the line is taken, which Ctrl-C would drop")
            shell.send(control("C"))
            shell.wait_prompt()
            true("ancelled" in shell.text(), f"it does not say so:\n{shell.text()}")
            true("42" in "\n".join(shell.run("SELECT 6 * 7;")), f"the next statement after {target}")
        equal(shell.run(f".read {service.folder}"), [f"ipcq-cli: {service.folder}:1: Is a directory"], "a folder")
        true("42" in "\n".join(shell.run("SELECT 6 * 7;")), "the next statement after a folder")
    os.close(held)


@test
def while_streaming():
    """Ctrl-C while rows scroll by, in a mode for people and one for programs, keeps the rows on the screen"""
    for mode in ("box", "csv", "json", "list"):
        with shell_of("--no-pager") as shell:
            shell.run(f".mode {mode}")
            begin(shell, STREAM)
            shell.wait_for("some text")
            interrupt(shell, f"streaming in mode {mode}")
            true(any("some text" in line for line in shell.all_lines()), "no row stayed")


@test
def while_going_to_a_file():
    """Ctrl-C while rows go to a file ends the run; the file keeps the rows so far"""
    with shell_of() as shell:
        shell.run(".once rows.csv")
        begin(shell, STREAM)
        file = shell.home / "rows.csv"
        shell.wait_for(lambda: file.exists() and file.stat().st_size > 100000, "rows in the file")
        interrupt(shell, "writing a file")


def quit_pager(shell):
    """Quits less. An interrupted less discards unread keys, so the key is sent again until less has ended."""
    due = 0.0

    def is_gone():
        nonlocal due
        if not any(map(executable, children(shell.process.pid))):
            return True
        if time.monotonic() >= due:
            shell.send("q")
            due = time.monotonic() + 0.2
        return False

    shell.wait_for(is_gone, "the pager is gone")
    shell.wait_for(lambda: "chin" in shell.cursor_line(), "a prompt, and keys that came too late for the pager")
    shell.send(control("U"))


@test
def in_the_pager():
    """A pager shows the first screen while rows arrive; its end and Ctrl-C in it end the run, not the shell"""
    for first in ("", control("C")):
        with shell_of(environment={"PAGER": "less -SR", "LESS": ""}) as shell:
            begin(shell, STREAM)
            shell.wait_for(lambda: shell.foreground() and "some text" in shell.text(), "the first screen")
            shell.wait_for(lambda: shell.cursor_line().endswith(":"), "the pager's prompt")
            if first:
                shell.send(first)
                wait_for(lambda: runs() == 0, "the run is over")
                shell.wait_for(lambda: shell.cursor_line() and not shell.at_prompt(), "the pager is still there")
            quit_pager(shell)
            wait_for(lambda: runs() == 0, "the run is over")
            true("42" in "\n".join(shell.run("SELECT 6 * 7;")), "the next statement")


@test
def a_pager_left_open():
    """An open pager holds no resources of the service: the run ends while the first screen is still shown"""
    many = STREAM.replace("FROM n)", "FROM n WHERE x < 300000)")
    with shell_of(environment={"PAGER": "less -SR", "LESS": ""}) as shell:
        shell.type(many)
        shell.send(ENTER)
        shell.wait_for(lambda: "some text" in shell.text() and shell.cursor_line().endswith(":"), "the pager's prompt")
        shell.wait_for(lambda: runs() == 0, "the run is over")
        true(shell.cursor_line().endswith(":"), f"the pager is gone:\n{shell.text()}")
        shell.send("G")
        shell.wait_for("300,000 rows")
        shell.send("q")
        shell.wait_prompt()


@test
def from_a_service_that_is_stuck():
    """Ctrl-C during a query does not wait for a supervisor that does not answer, on any transport"""
    for transport in ("pipe", "channel", "dbus"):
        with Service({"chinook": CHINOOK}) as mortal, shell_of(f"--transport={transport}", on=mortal) as shell:
            shell.type(SCAN)
            shell.send(ENTER)
            shell.wait_for(lambda mortal=mortal: mortal.counters()["NRuns"] == 1, "the run is under way")
            os.kill(mortal.pid(), signal.SIGSTOP)
            try:
                shell.send(control("C"))
                shell.wait_prompt()
            finally:
                os.kill(mortal.pid(), signal.SIGCONT)
            wait_for(lambda mortal=mortal: mortal.counters()["NRuns"] == 0, "the run is over")
            true("42" in "\n".join(shell.run("SELECT 6 * 7;")), "the next statement")


@test
def before_the_service_answers():
    """Ctrl-C before the service has read the query"""
    with Service({"chinook": CHINOOK}) as mortal, shell_of(on=mortal) as shell:
        shell.run("SELECT 1;")
        overheard = Overheard(mortal.address)
        os.kill(mortal.pid(), signal.SIGSTOP)
        try:
            shell.type("SELECT 2;")
            shell.send(ENTER)
            wait_for(lambda: {"Query", "OpenChannel"} & {*overheard.members}, "it asks")
            shell.send(control("C"))
            shell.wait_prompt()
        finally:
            os.kill(mortal.pid(), signal.SIGCONT)
            overheard.close()
        true("42" in "\n".join(shell.run("SELECT 6 * 7;")), "the next statement")


@test
def a_write_without_an_answer():
    """Ctrl-C during a write says that it may have taken effect, unless the service answers that it was cancelled"""
    insert = "INSERT INTO note(text) VALUES ('x');"
    for transport in ("pipe", "dbus"):
        with service_of_notes() as (mortal, _), Shell(f"--transport={transport}", "notes", on=mortal) as shell:
            shell.run("SELECT 1;")
            overheard = Overheard(mortal.address)
            os.kill(mortal.pid(), signal.SIGSTOP)
            try:
                shell.type(insert)
                shell.send(ENTER)
                wait_for(lambda: {"Query", "OpenRows"} & {*overheard.members}, "it asks")  # noqa: B023
                shell.send(control("C"))
                shell.wait_for("may have taken effect")
                shell.wait_prompt()
            finally:
                os.kill(mortal.pid(), signal.SIGCONT)
                overheard.close()
            true("42" in "\n".join(shell.run("SELECT 6 * 7;")), "the next statement")


@test
def temp_tables_without_an_answer():
    """They stay when Ctrl-C ends a write or a BEGIN without an answer, so that no other table is read instead"""
    for line in ("INSERT INTO note VALUES ('x');", "BEGIN IMMEDIATE;", "BEGIN; INSERT INTO note VALUES ('x');"):
        with service_of_notes() as (mortal, _), Shell("--transport=pipe", "notes", on=mortal) as shell:
            shell.run("CREATE TEMP TABLE note AS SELECT 'temp' AS text;")
            *before, last = line.split("; ")
            for statement in before:
                shell.run(f"{statement};")
            overheard = Overheard(mortal.address)
            os.kill(mortal.pid(), signal.SIGSTOP)
            try:
                shell.type(last)
                shell.send(ENTER)
                wait_for(lambda: {"Query", "OpenRows", "Begin"} & {*overheard.members}, "it asks")  # noqa: B023
                shell.send(control("C"))
                shell.wait_for("may have taken effect" if "INSERT" in line else "Cancelled.")
                shell.wait_prompt()
            finally:
                os.kill(mortal.pid(), signal.SIGCONT)
                overheard.close()
            true("temp" in "\n".join(shell.run("SELECT text FROM note;")), shell.text())


@test
def a_script_without_an_answer():
    """SIGINT to a script: the exit status is 130, and a message says so if the statement may have taken effect"""
    insert = "INSERT INTO note(text) VALUES ('x');\n"
    for transport in ("pipe", "dbus"):
        with service_of_notes() as (mortal, _):
            how = [f"--transport={transport}", "--mode=list", "--headers=off"]
            command = [CLI, f"--address={mortal.address}", *how, "notes"]
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
            with subprocess.Popen(command, env=mortal.environment, **pipes) as script:
                script.stdin.write("SELECT 1;\n")
                script.stdin.flush()
                equal(script.stdout.read(1), "1", "the first statement")
                overheard = Overheard(mortal.address)
                os.kill(mortal.pid(), signal.SIGSTOP)
                try:
                    script.stdin.write(insert)
                    script.stdin.flush()
                    wait_for(lambda: {"Query", "OpenRows"} & {*overheard.members}, "it asks")  # noqa: B023
                    script.send_signal(signal.SIGINT)
                    _, said = script.communicate()
                finally:
                    os.kill(mortal.pid(), signal.SIGCONT)
                    overheard.close()
                equal(script.returncode, 130, said)
                true("may have taken effect" in said, f"it does not say so: {said}")


@test
def a_script_between_statements():
    """SIGINT to a script that waits for its next statement says that the statements before it have been carried out"""
    with service_of_notes() as (mortal, path):
        command = [CLI, f"--address={mortal.address}", "notes"]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        with subprocess.Popen(command, env=mortal.environment, **pipes) as script:
            script.stdin.write("INSERT INTO note(text) VALUES ('x');\n.print 1\n")
            script.stdin.flush()
            equal(script.stdout.read(1), "1", "the command after it")
            script.send_signal(signal.SIGINT)
            _, said = script.communicate()
            equal(script.returncode, 130, said)
            true("have been carried out" in said, f"it does not say so: {said}")
        equal(rows_of(path, "SELECT text FROM note"), [("x",)], "rows")


@test
def ended_while_a_program_runs():
    """A signal that ends the shell during .shell, .edit or .once ends the child; the shell exits at once with its code"""
    for line in (".shell read x; echo read", ".edit", ".once |sleep 1000"):
        for number in (signal.SIGTERM, signal.SIGHUP):
            with shell_of("--no-pager", environment={"EDITOR": "read x; echo read;:", "VISUAL": ""}) as shell:
                shell.type(line)
                shell.send(ENTER)
                if line.startswith(".once"):
                    shell.wait_prompt()
                    begin(shell, STREAM)
                else:
                    shell.wait_for(lambda: children(shell.process.pid), "the program runs")  # noqa: B023
                shell.process.send_signal(number)
                equal(shell.wait_exit(), 128 + number, f"exit code of {line}")
    wait_for(service.is_idle, "nothing is left")


@test
def while_the_service_is_asked():
    """Ctrl-C ends a command whose service does not answer, and says so; a change of the window's size does not"""
    with Service({"chinook": CHINOOK}) as stuck, shell_of(on=stuck) as shell:
        for line in (".databases", ".limit", ".status"):
            overheard = Overheard(stuck.address)
            os.kill(stuck.pid(), signal.SIGSTOP)
            shell.type(line)
            shell.send(ENTER)
            wait_for(lambda: overheard.members, "it asks")  # noqa: B023
            shell.resize(30, 100)
            shell.send(control("C"))
            shell.wait_for("Cancelled.")
            shell.wait_prompt()
            os.kill(stuck.pid(), signal.SIGCONT)
            overheard.close()
            true("Interrupted" not in shell.text() and "Ctrl-C again" not in shell.text(), shell.text())
            shell.send(control("L"))
            shell.wait_for(lambda: shell.screen.cursor.y == 0 and shell.at_prompt(), "an empty screen")
            shell.resize(24, 80)
            true("42" in "\n".join(shell.run("SELECT 6 * 7;")), "the next statement")


@test
def just_before_it_waits():
    """Ctrl-C after the call was sent, and before the shell waits for the reply, is not lost"""
    with Service({"chinook": CHINOOK}) as stuck, tempfile.TemporaryDirectory(prefix="sqlipc-late-") as folder:
        late = pathlib.Path(folder) / "late"
        environment = {
            "LD_PRELOAD": str(BUILD_ROOT / "tests/cli/liblate-interrupt.so"),
            "TEST_LATE_INTERRUPT": str(late),
        }
        with shell_of(on=stuck, environment=environment) as shell:
            os.kill(stuck.pid(), signal.SIGSTOP)
            for line in (".databases", ".limit", ".status"):
                late.touch()
                shell.type(line)
                shell.send(ENTER)
                shell.wait_for("Cancelled.")
                shell.wait_prompt()
                true(not late.exists(), "it came")
                true("does not answer" not in " ".join(shell.lines()), shell.text())
                shell.send(control("L"))
                shell.wait_for(lambda: shell.screen.cursor.y == 0 and shell.at_prompt(), "an empty screen")
            os.kill(stuck.pid(), signal.SIGCONT)


@test
def with_statements_behind_it():
    """Ctrl-C drops the input after the interrupted statement: on its line, pasted with it, or in the same file"""
    behind = SCAN + " SELECT 'beh' || 'ind';"
    with shell_of() as shell:
        (shell.home / "script.sql").write_text(behind)
        for text in (behind, paste(behind.replace("; ", ";\n")), ".read script.sql"):
            shell.send(text + ENTER)
            shell.wait_for(lambda: runs() == 1, "the run is under way")
            interrupt(shell, text.split()[0])
        true("behind" not in "\n".join(shell.all_lines()), "what stood behind it ran")


@test
def daemon_dies_under_a_result():
    """The daemon dies during a result: the rows stay, marked as incomplete, and the next statement uses the new daemon"""
    small = {"PipePagesMax": 32}  # The content of the pipe is still shown.
    wide = STREAM.replace("'text'", "printf('text %2000s', '')")  # so that few rows fill the 2 MiB that a grid holds
    with Service({"chinook": CHINOOK}, limits=small) as mortal, shell_of("--no-pager", on=mortal) as shell:
        shell.type(wide)
        shell.send(ENTER)
        shell.wait_for("some text")
        mortal.kill()
        shell.wait_prompt()
        true("Error" in "\n".join(shell.lines()[-8:]), f"it says nothing:\n{shell.text()}")
        mortal.start()
        true("42" in "\n".join(shell.run("SELECT 6 * 7;")), "the next statement")


@test
def bus_dies():
    """The bus dies at the prompt and during a query: the shell reports it, and works with a new bus at the same address"""
    for during in (False, True):
        with Service({"chinook": CHINOOK}) as mortal, shell_of("--no-pager", on=mortal) as shell:
            shell.run("SELECT 1;")
            if during:
                shell.type(SCAN)
                shell.send(ENTER)
                shell.wait_for(lambda mortal=mortal: mortal.counters()["NRuns"] == 1, "the run is under way")
            daemon = mortal.daemon
            mortal.kill_bus()
            daemon.wait(SECONDS)
            mortal.daemon = None
            if during:
                shell.wait_prompt()
                true("Error" in shell.text(), f"it says nothing:\n{shell.text()}")
            lines = "\n".join(shell.run("SELECT 2;"))
            true("Error" in lines, f"without a bus it says {lines!r}")
            (mortal.folder / "bus").unlink(missing_ok=True)
            mortal._start_bus()
            mortal.start()
            lines = "\n".join(shell.run("SELECT 6 * 7;"))
            true("42" in lines, f"with a new bus it says {lines!r}")


main(service)
