#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Every command that .help lists, at the prompt: its output, and the shell's survival if the daemon is killed before the
command or while the command waits for an answer. A command without a row in the table below fails.
"""
import contextlib
import os
import re
import signal
import sqlite3

from pty_shell import ENTER, Shell, control  # finds what follows

from client import Failure
from harness import CHINOOK, CLI, WORKER, Service, executable, main, wait_for
from overheard import Overheard
from tap import diagnose, equal, test, true

GENRE = "SELECT Name FROM Genre WHERE GenreId = 1"
PLAYLISTS = r"Playlist\b"

# Command: the lines to type, each with the expected output (a regular expression), "" for none. If the command runs until a
# key ends it, the key is the third part.
COMMANDS = {
    "backup": [(".backup copy.sqlite", "copy.sqlite|"), (".shell sqlite3 copy.sqlite 'SELECT count(*) FROM Genre'", "^25$")],
    "bail": [(".bail on", ""), (".bail off", "")],
    "cd": [(".cd /", ""), (".shell pwd", "^/$"), (".cd", "")],
    "changes": [(".changes on", ""), (GENRE + ";", "changes: 0   total_changes: 0"), (".changes off", "")],
    "chart": [(".chart bar SELECT 'one', 1 UNION SELECT 'two', 2", "two")],
    "color": [(".color off", ""), (".color on", "")],
    "connect": [(".connect --address={address}", ""), (GENRE + ";", "Rock")],
    "databases": [(".databases", "chinook")],
    "describe": [(".describe Genre", "GenreId"), (".describe", PLAYLISTS)],
    "dump": [(".dump Genre", "INSERT INTO"), (".dump MediaType", "COMMIT;")],
    "echo": [(".echo on", ""), ("SELECT 40 + 2;", "42"), (".echo off", "")],
    "edit": [(".edit", "edited")],
    "eqp": [(".eqp on", ""), (GENRE + ";", "SEARCH Genre"), (".eqp off", "")],
    "exit": [],
    "explain": [(".explain " + GENRE, "SEARCH Genre")],
    "export": [(".export csv genre.csv " + GENRE, "^1 row to genre.csv"), (".shell tail -n 1 genre.csv", "Rock")],
    "footer": [(".footer off", ""), (".footer on", "")],
    "forget": [(".save rock " + GENRE, ""), (".forget rock", ""), (".queries", "")],
    "go": [(GENRE + ";", "Rock"), (".go", "Rock")],
    "fullschema": [(".fullschema", "(?s)CREATE TABLE.*STAT|ANALYZE")],
    "functions": [(".functions coun%", "count.*any|count"), ("\\df coun%", "count")],
    "gox": [(GENRE + ";", "Rock"), (".gox", "Name.*Rock")],
    "headers": [(".headers on", ""), (".headers auto", "")],
    "help": [(".help", r"\.tables"), (".help tables", "LIKE"), (".help nonsense", "nonsense")],
    "import": [
        (".shell printf 'x\\n1\\n' >x.csv", ""), (".open written", ""), (".import x.csv t", "^1 row into t$"),
        (".open chinook", ""),
    ],
    "indexes": [(".indexes Track", "IFK_TrackAlbumId|TrackAlbumId")],
    "limit": [(".limit", "row"), (".limit rows 2", ""), (".limit", "2"), (".limit rows off", "")],
    "mode": [(".mode csv", ""), (GENRE + ";", "^Rock"), (".mode box", ""), (".mode", "box")],
    "nullvalue": [(".nullvalue nothing", ""), ("SELECT NULL;", "nothing"), (".nullvalue auto", "")],
    "once": [(".once genre.txt", ""), (GENRE + ";", ""), (".shell grep -c Rock genre.txt", "^1$")],
    "open": [(".open other", ""), (".tables", PLAYLISTS), (".open chinook", "")],
    "output": [(".output genre.txt", ""), (GENRE + ";", ""), (".output", ""), (".shell grep -c Rock genre.txt", "^1$")],
    "pager": [(".pager off", ""), (".pager", "off")],
    "parameter": [
        (".parameter set genre 1", ""),
        (".parameter list", "genre 1"),
        ("SELECT Name FROM Genre WHERE GenreId = :genre;", "Rock"),
        (".parameter unset genre", ""),
        (".parameter clear", ""),
    ],
    "print": [(".print some words", "^some words$")],
    "progress": [(".progress off", ""), (".progress on", "")],
    "queries": [(".save rock " + GENRE, ""), (".queries", "rock")],
    "quit": [],
    "read": [(".shell echo 'SELECT 40 + 2;' >script.sql", ""), (".read script.sql", "42")],
    "reset": [(".reset", "")],
    "restore": [
        (".backup --force saved.sqlite", ""), (".open restored", ""), (".restore --force saved.sqlite", "rows from saved"),
        (".open chinook", ""),
    ],
    "run": [(".save rock " + GENRE, ""), (".run rock", "Rock")],
    "save": [(".save rock " + GENRE, ""), (".run rock", "Rock")],
    "schema": [(".schema Genre", r"CREATE TABLE.*Genre")],
    "separator": [(".separator ;", ""), (".mode list", ""), ("SELECT 1, 2;", "^1;2$"), (".mode box", "")],
    "sha3sum": [(".sha3sum genre", r"^[0-9a-f]{56}\|genre$")],
    "shell": [(".shell echo from a shell", "^from a shell$")],
    "show": [(".show", "transport: auto")],
    "stats": [(".stats on", ""), (GENRE + ";", "pipe|channel"), (".stats off", "")],
    "status": [(".status", "chinook")],
    "syntax": [(".syntax select", "ORDER BY"), ("\\h with", "RECURSIVE")],
    "system": [(".system echo from a shell", "^from a shell$")],
    "tables": [(".tables", PLAYLISTS), (".tables Play%", PLAYLISTS)],
    "timeout": [(".timeout 30", ""), (".timeout", "30"), (".timeout off", "")],
    "timer": [(".timer on", ""), (GENRE + ";", "server"), (".timer off", "")],
    "transport": [(".transport dbus", ""), (GENRE + ";", "Rock"), (".transport auto", "")],
    "verbose": [(".verbose on", ""), (".verbose", "verbose: on"), (".verbose auto", "")],
    "vertical": [(".vertical on", ""), (GENRE + ";", "Name.*Rock"), (".vertical auto", "")],
    "views": [(".views", "")],
    "watch": [(".watch 1 " + GENRE, "Rock", control("C"))],
    "width": [(".width 3", ""), (GENRE + ";", "R"), (".width", "")],
}

# These commands do not call the service, so they also work without one.
NEEDS_NOBODY = set(
    "bail cd changes color echo eqp exit footer forget headers help mode nullvalue once output pager parameter print "
    "progress queries quit reset save separator shell show stats syntax system timeout timer transport verbose vertical "
    "width".split()
)


def service_of():
    """A service whose daemon the bus starts, and starts again after its end, as on a desktop."""
    service = Service({"chinook": CHINOOK, "other": CHINOOK}, activation=True)
    for name in ("written", "restored"):
        path = service.data / f"{name}.sqlite"
        with contextlib.closing(sqlite3.connect(path)) as db:
            db.execute("CREATE TABLE t(x)")
        service.database(name, Path=path, Mode="read-write", WriteSchema="yes")
    return service


def shell_of(service, *options):
    editors = {"VISUAL": "./editor", "EDITOR": "./editor"}
    shell = Shell("--no-pager", *options, "chinook", on=service, size=(60, 100), environment=editors)
    editor = shell.home / "editor"
    editor.write_text('#!/bin/sh\necho "SELECT \'edi\' || \'ted\';" >"$1"\n')
    editor.chmod(0o755)
    return shell


def names(service):
    """Returns all commands that .help lists."""
    listed = service.run(CLI, f"--address={service.address}", "-c", ".help").stdout.decode()
    found = re.findall(r"^\.([a-z0-9]+)", listed, re.M)
    true(len(found) > 20, f".help lists {listed!r}")
    return found


def clear(shell):
    shell.send(control("L"))
    shell.wait_for(lambda: shell.screen.cursor.y == 0 and shell.at_prompt(), "an empty screen")


def run(shell, row):
    """Types a row of the table; returns what is wrong with the output, or ""."""
    line, expected, *keys = row
    clear(shell)
    if keys:
        shell.type(line)
        shell.send(ENTER)
        shell.wait_for(lambda: re.search(expected, shell.text()), f"{line} shows {expected}")
        shell.send(keys[0])
        shell.wait_prompt()
        return ""
    shown = "\n".join(shell.run(line))
    if "Error" in shown and line != ".help nonsense":
        return f"{line} says {shown!r}"
    if not re.search(expected, shown, re.M):
        return f"{line} shows {shown!r} and not {expected!r}"
    return ""


def answers(shell, what, again=False):
    """Fails unless the next statement works. `again`: True if it must say that it connected again; None: it may."""
    clear(shell)
    shown = "\n".join(shell.run("SELECT 6 * 7 AS x;"))
    true("42" in shown, f"{what}, the next statement shows {shown!r}")
    true(again in (None, "Connected again." in shown), f"whether, {what}, the next statement says so: {shown!r}")


def lines_of(service, name):
    return [(line.replace("{address}", service.address), *rest) for line, *rest in COMMANDS[name]]


@test
def all_are_here():
    """Each command of .help has a row in the table, and each row has a command"""
    with service_of() as service:
        equal(sorted(COMMANDS), sorted(set(names(service))), "commands")


@test
def each_works():
    """Each command shows its expected output"""
    with service_of() as service, shell_of(service) as shell:
        problems = [problem for name in COMMANDS for row in lines_of(service, name) if (problem := run(shell, row))]
        equal(problems, [], "problems")


@test
def each_leaves():
    """.quit and .exit end the shell, with and without a code"""
    with service_of() as service:
        for line, code in ((".quit", 0), (".exit", 0), (".quit 3", 3), (".exit 4", 4), ("\\q", 0)):
            with shell_of(service) as shell:
                shell.type(line)
                shell.send(ENTER)
                equal(shell.wait_exit(), code, f"exit code of {line}")


def owner(service):
    """Returns the pid of the process that owns the service's name, or None."""
    try:
        return service.pid()
    except Failure:
        return None


def kill(service):
    """Kills the daemon, if there is one. The bus may start another at once."""
    pid = owner(service)
    if pid:
        workers = service.workers()
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda: owner(service) != pid, "the daemon is gone")
        wait_for(lambda: not any(executable(worker) == str(WORKER) for worker in workers), "its workers are gone")


@test
def each_with_the_daemon_killed_before():
    """Each command works after the daemon was killed: the bus starts another, and the shell connects to it"""
    with service_of() as service, shell_of(service) as shell:
        problems = []
        for name in COMMANDS:
            for row in lines_of(service, name):
                kill(service)
                problem = run(shell, row)
                if problem:
                    problems.append(problem)
        equal(problems, [], "problems")


@test
def each_with_the_daemon_killed_during():
    """Each command returns if the daemon dies during its call, and the next statement works and says so"""
    with service_of() as service, shell_of(service, "--transport=pipe") as shell:  # so that each calls over the bus
        overheard = Overheard(service.address)
        for name in COMMANDS:
            if name in NEEDS_NOBODY:
                continue
            for line, _, *keys in lines_of(service, name):
                answers(shell, f"before {line}")
                clear(shell)
                os.kill(service.pid(), signal.SIGSTOP)
                shell.type(line)
                overheard.members.clear()
                shell.send(ENTER)
                shell.wait_for(lambda: overheard.members or shell.at_prompt(), "it calls the service, or needs no call")
                kill(service)
                for key in keys:
                    shell.wait_for(lambda: len(overheard.members) > 1 or shell.at_prompt(), "it asks again")
                    shell.send(key)
                shell.wait_prompt()
                shown = " ".join(" ".join(shell.lines()[1:-1]).split())
                diagnose(f"{line}: {shown[:100]}")
                # Only statements report this, other calls do not. A line of the screen may end within a word.
                again = "endedbeforeitanswered.Itisunknownwhether" in shown.replace(" ", "")
                answers(shell, f"behind {line}", None if keys else again)  # A repeated call may have connected.
        overheard.close()


@test
def each_with_nobody_there():
    """If no service can be started, commands without calls work; the others report it, and the prompt stays"""
    with Service({"chinook": CHINOOK}) as service, shell_of(service) as shell:
        service.stop()
        for name in COMMANDS:
            for line, expected, *keys in lines_of(service, name):
                if keys:
                    shell.type(line)
                    shell.send(ENTER)
                    shell.wait_for("Error")
                    shell.send(keys[0])
                    shell.wait_prompt()
                    continue
                clear(shell)
                shown = "\n".join(shell.run(line))
                if name in NEEDS_NOBODY and line.startswith("." + name) and line != ".help nonsense":
                    true("Error" not in shown and re.search(expected, shown, re.M), f"{line} says {shown!r}")
        service.start()
        answers(shell, "with a daemon again", again=True)


main()
