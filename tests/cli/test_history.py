#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The history: typed lines are recalled, searched, and kept in a file that only its owner can read."""
import pathlib
import tempfile

from pty_shell import DOWN, ENTER, ESCAPE, UP, Shell, control  # finds what follows

from harness import CHINOOK, Service, main, wait_for
from tap import equal, test, true

service = Service({"chinook": CHINOOK})
KEPT = ".local/state/ipcq/history"


def shell_of(home, **keywords):
    return Shell("chinook", on=service, home=home, **keywords)


def with_home(function):
    """Marks a test that gets its own home folder."""

    def run():
        with tempfile.TemporaryDirectory(prefix="sqlipc-home-") as folder:
            function(pathlib.Path(folder))

    run.__name__, run.__doc__ = function.__name__, function.__doc__
    return test(run)


@with_home
def recalled(home):
    """Up and Down recall statements of this shell and of earlier ones; of equal ones the last is kept"""
    with shell_of(home) as shell:
        for text in ("SELECT 1;", "SELECT 1;", "SELECT 2;", "SELECT 1;"):
            shell.run(text)
        shell.leave()
    file = home / KEPT
    equal(oct(file.stat().st_mode & 0o777), "0o600", "mode of the file")
    equal(oct(file.parent.stat().st_mode & 0o077), "0o0", "what others may in its folder")
    with shell_of(home) as shell:
        for keys, shown in ((UP, "SELECT 1;"), (UP + UP + UP, "SELECT 2;"), (DOWN, "SELECT 1;")):
            shell.send(keys)
            shell.wait_for(lambda shown=shown: shell.cursor_line().endswith("> " + shown), f"{shown} is recalled")
        shell.send(ENTER)
        shell.wait_for(lambda: "│ 1" in shell.text() and shell.at_prompt(), "its answer")


@with_home
def many_lines(home):
    """A statement of several lines is recalled as a whole with its line ends, also by the next shell"""
    text = ["SELECT 'one' ||", "  'two' -- note", "  AS x;"]

    def recall(shell):
        shell.send(UP)
        shell.wait_for(lambda: all(part in shell.text() for part in ("'one' ||", "'two' -- note", "AS x;")), "all of it")
        shell.send(ENTER)
        shell.wait_for(lambda: "│ onetwo" in shell.text() and shell.at_prompt(), "the answer")

    with shell_of(home) as shell:
        for line in text[:-1]:
            shell.type(line)
            shell.send(ENTER)
            shell.wait_continuation()
        shell.run(text[-1])
        shell.send(control("L"))
        shell.wait_for(lambda: "onetwo" not in shell.text() and shell.at_prompt(), "an empty screen")
        recall(shell)
        shell.leave()
    with shell_of(home) as shell:
        recall(shell)


@with_home
def searched(home):
    """Ctrl-R finds an entry with a text, and again an older one; Enter runs it, Ctrl-G cancels"""
    with shell_of(home) as shell:
        for text in ("SELECT 'needle', 1;", "SELECT 'straw';", "SELECT 'needle', 2;", "SELECT 'hay';"):
            shell.run(text)
        shell.send(control("L"))
        shell.wait_for(lambda: "hay" not in shell.text() and shell.at_prompt(), "an empty screen")
        shell.send(control("R") + "needle")
        shell.wait_for("SELECT 'needle', 2;")
        shell.send(control("R"))
        shell.wait_for("SELECT 'needle', 1;")
        shell.send(control("G"))
        shell.wait_prompt()
        shell.send(control("R") + "straw")
        shell.wait_for("SELECT 'straw';")
        shell.send(ENTER)
        shell.wait_for(lambda: "│ straw" in shell.text() and shell.at_prompt(), "the answer")
        shell.send(control("R") + "need")
        shell.wait_for("SELECT 'needle', 2;")
        shell.send(control("C"))
        shell.wait_prompt()


@with_home
def shared(home):
    """Two shells at once keep each other's entries; a line that begins with a blank is not kept"""
    with shell_of(home) as one, shell_of(home) as two:
        one.run("SELECT 'of one';")
        two.run("SELECT 'of two';")
        two.run(" SELECT 'a secret';")
        one.leave()
        two.leave()
    kept = (home / KEPT).read_text()
    true("of one" in kept and "of two" in kept, f"kept is {kept!r}")
    true("secret" not in kept, f"kept is {kept!r}")


@with_home
def killed(home):
    """The history is saved on SIGTERM, and on SIGHUP as from a closed terminal"""
    for name, signal in (("hup", 1), ("term", 15)):
        with shell_of(home) as shell:
            shell.run(f"SELECT 'before {name}';")
            shell.process.send_signal(signal)
            equal(shell.wait_exit(), 128 + signal, f"exit code by {name}")
    kept = (home / KEPT).read_text()
    true("before hup" in kept and "before term" in kept, f"kept is {kept!r}")


@with_home
def unwritable(home):
    """An unwritable history is reported, and the shell works; a link to another user's file is not followed"""
    file = home / KEPT
    file.mkdir(parents=True)  # A folder takes the place of the history file.
    with shell_of(home) as shell:
        true("history" in shell.text(), f"it says nothing:\n{shell.text()}")
        true("│ 1" in "\n".join(shell.run("SELECT 1;")), "the answer")
        equal(shell.leave(), 0, "exit code")


@with_home
def keys(home):
    """Escape sequences and unknown keys do no harm"""
    with shell_of(home) as shell:
        for key in (ESCAPE, "\x1b[99~", "\x1bOP", control("T"), control("Y"), "\x00", UP, DOWN, DOWN):
            shell.send(key)
        shell.send(control("U") + control("K"))
        shell.wait_prompt()
        true("│ 3" in "\n".join(shell.run("SELECT 3;")), "the answer")
    wait_for(service.is_idle, "nothing is left")


main(service)
