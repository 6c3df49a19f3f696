# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs ipcq-cli on a pseudo-terminal: a test sends keystrokes and reads the screen that a terminal would show.

    with Shell("chinook", on=service) as shell:      waits for the first prompt
        lines = shell.run("SELECT 1;")               types, presses Enter, waits for the next prompt; returns the lines
        shell.type("SEL"); shell.send(TAB)
        shell.wait_for("SELECT")                     a text on the screen, or a function that returns true; never a pause
        shell.cell(3, 0).fg                          colours as pyte names them

Every wait ends with its event, or fails after tap.PATIENCE seconds and shows the screen. `shell.raw` holds all output of
the program. Each shell has its own folder as HOME, unless shells share one (`home=`).
"""
import contextlib
import pathlib
import re
import shutil
import sqlite3
import tempfile
import time

from terminal import Terminal  # finds what follows

from harness import CLI

ENTER, TAB, ESCAPE, BACKSPACE = "\r", "\t", "\x1b", "\x7f"
UP, DOWN, RIGHT, LEFT = "\x1b[A", "\x1b[B", "\x1b[C", "\x1b[D"
# A Tab waits only briefly for a slow service, and Tabs of the next seconds do not wait. So the tests press Tab again.
TAB_AGAIN = 15


def control(letter):
    """Returns the character of Ctrl with a letter."""
    return chr(ord(letter.upper()) - ord("@"))


def paste(text):
    """Returns pasted text as a terminal with bracketed paste sends it."""
    return f"\x1b[200~{text}\x1b[201~"


def untimed(line):
    """Returns the line below a result without its times."""
    return re.sub(r" \(server [\d.]+ m?s, transfer [\d.]+ m?s\)", "", line)


class Shell(Terminal):
    """ipcq-cli at its prompt."""

    PROMPT = re.compile(r"[^\s<>]+>")
    CONTINUATION = re.compile(r" *\.\.\.>")

    def __init__(self, *arguments, on, home=None, environment=None, address=True, prompt=True, size=(24, 80)):
        """`address`: False if the arguments or the environment name the bus. `prompt`: True to wait for the prompt."""
        self.own_home = None if home else tempfile.mkdtemp(prefix="sqlipc-home-")
        self.home = pathlib.Path(home or self.own_home)
        everything = on.environment | {
            "HOME": str(self.home),
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
            "PAGER": "",
            "DBUS_SESSION_BUS_ADDRESS": on.address,
        }
        everything |= environment or {}
        which = [f"--address={on.address}"] if address else []
        wanted = {name: value for name, value in everything.items() if value is not None}
        super().__init__([CLI, *which, *arguments], wanted, size, self.home)
        if prompt:
            self.wait_prompt()

    def at_prompt(self):
        """Returns True if the cursor is after a prompt and nothing is typed."""
        line = self.cursor_line()
        is_prompt = self.PROMPT.fullmatch(line) and not self.CONTINUATION.fullmatch(line)
        return is_prompt and self.screen.cursor.x == len(line) + 1

    def wait_prompt(self):
        self.wait_for(self.at_prompt, "a prompt")

    def wait_continuation(self):
        self.wait_for(lambda: self.CONTINUATION.fullmatch(self.cursor_line()), "a continuation prompt")

    def run(self, line):
        """Types a line, presses Enter, waits for the next prompt; returns the lines in between."""
        self.type(line)
        first = len(self.screen.history.top) + self.screen.cursor.y + 1
        self.send(ENTER)
        self.wait_prompt()
        return self.all_lines()[first : len(self.screen.history.top) + self.screen.cursor.y]

    def tab_until(self, holds, describe, keys=TAB, untouched=lambda: True):
        """Presses Tab; repeats it while the service is too slow and the line is `untouched`; waits for the condition."""
        due = 0.0

        def condition():
            nonlocal due
            if due > 0 and holds():
                return True
            if time.monotonic() >= due and untouched():
                self.send(keys)
                due = time.monotonic() + TAB_AGAIN
            return False

        self.wait_for(condition, describe)

    def complete(self, typed, result):
        """Types, presses Tab, and waits until the line is `result`."""
        self.type(typed)
        self.tab_until(
            lambda: self.cursor_line().endswith("> " + result.rstrip()), f"{typed!r} becomes {result!r}",
            untouched=lambda: self.cursor_line().endswith("> " + typed.rstrip()),
        )  # fmt: skip

    def leave(self):
        """Presses Ctrl-D at an empty prompt; returns the exit code."""
        self.wait_prompt()  # Before the prompt appears, the terminal itself would interpret the key.
        self.send(control("D"))
        return self.wait_exit()

    def close(self):
        super().close()
        if self.own_home:
            shutil.rmtree(self.own_home, ignore_errors=True)


# Sequences that must not reach a terminal from a database: colours, title, charset, cursor, keys typed back, C1 codes.
HOSTILE = "\x1b[31mred\x1b]0;title\x07\x1b(0\x1b[2J\x1b[5n\x9b31m\x0e\x08\x7f\u202eright\u2028end"


def generate(path):
    """Creates a database of odd names and values: tables odd, hostile, "two words", empty, big; view recent."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            """
            CREATE TABLE odd(id INTEGER PRIMARY KEY, value);
            CREATE TABLE hostile(id INTEGER PRIMARY KEY, value TEXT);
            CREATE TABLE "two words"("a column" TEXT, "select" INTEGER);
            CREATE TABLE empty(value TEXT);
            CREATE TABLE big(id INTEGER PRIMARY KEY, text TEXT);
            CREATE INDEX big_text ON big(text);
            CREATE VIEW recent AS SELECT * FROM big WHERE id > 9990;
            INSERT INTO "two words" VALUES ('x', 1);
            WITH RECURSIVE n(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM n WHERE x < 10000)
                INSERT INTO big SELECT x, 'text of row ' || x FROM n;
            """
        )
        values = [None, 0, -(2**63), 2**63 - 1, 0.1, 1e308, float("inf"), float("-inf"), "", "it's", "a\nb", "漢字", "e\u0301"]
        values += [b"", b"\x00\xff" * 100, "a\0b", "\U0001f469\u200d\U0001f469\u200d\U0001f467"]
        connection.executemany("INSERT INTO odd(value) VALUES (?)", [(value,) for value in values])
        connection.execute("INSERT INTO hostile(value) VALUES (?)", (HOSTILE,))
        connection.commit()
