#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The prompt: the extent of a statement, the screen during typing, and the ways to leave."""
import re

from pty_shell import BACKSPACE, ENTER, LEFT, UP, Shell, control, paste  # finds what follows

from harness import CHINOOK, Service, main
from tap import equal, test, true

OK, QUERY, INTERRUPTED = 0, 1, 130

CONTINUED = Shell.CONTINUATION

service = Service({"chinook": CHINOOK})


def shell_of(*arguments, **keywords):
    return Shell(*(arguments or ["chinook"]), on=service, **keywords)


def joined(lines):
    return "\n".join(lines)


def colors(shell, text):
    """Returns the colours of each character of `text` on the screen."""
    row, column = shell.find(text)
    return {shell.cell(row, column + i).fg for i in range(len(text))}


# ---- The extent of a statement ----


@test
def statements_of_a_line():
    """Several statements on a line run in order; a result may be empty"""
    with shell_of() as shell:
        answer = joined(shell.run("SELECT 'first' AS a; SELECT 'second' AS b;"))
        true(answer.index("first") < answer.index("second"), answer)
        answer = joined(shell.run("SELECT Name FROM Genre WHERE GenreId < 0;"))
        true("0 rows" in answer, answer)
        equal(joined(shell.run(";;  ;")), "", "what empty statements say")


@test
def statements_of_many_lines():
    """A statement ends with its semicolon; until then the continuation prompt is as wide as the prompt"""
    with shell_of() as shell:
        prompt = shell.cursor_line().index(">")
        shell.type("SELECT 'one' ||")
        shell.send(ENTER)
        shell.wait_continuation()
        equal(shell.cursor_line().index(">"), prompt, "column of the continuation prompt's end")
        shell.type("-- a comment; with a semicolon")
        shell.send(ENTER)
        shell.wait_continuation()
        answer = joined(shell.run("'two' AS text;"))
        true("onetwo" in answer, answer)


@test
def semicolons_that_end_nothing():
    """Semicolons in strings, names and comments do not end a statement; a dot in a statement does not start a command"""
    with shell_of() as shell:
        for text in ("SELECT 'a;b' AS \"c;d\";", "/* ; */ SELECT 'a;b'; -- ;", "SELECT [a;b] FROM (SELECT 'a;b' AS [a;b]);"):
            answer = joined(shell.run(text))
            true("a;b" in answer and "Error" not in answer, f"{text}: {answer}")
        shell.type("SELECT 'an open")
        shell.send(ENTER)
        shell.wait_continuation()
        shell.type(".tables; string")
        shell.send(ENTER)
        shell.wait_continuation()
        answer = joined(shell.run("ends' AS x;"))
        true(".tables; string" in answer, answer)


@test
def commands_within_a_statement():
    """A backslash command within a statement leaves it unfinished, unless the command uses it; both are one history entry"""
    with shell_of() as shell:
        shell.type("SELECT 'one' ||")
        shell.send(ENTER)
        shell.wait_continuation()
        shell.type("\\d Genre")
        shell.send(ENTER)
        shell.wait_for(lambda: "GenreId" in shell.text() and CONTINUED.fullmatch(shell.cursor_line()), "to go on")
        shell.type("'two' \\nosuch")
        shell.send(ENTER)
        shell.wait_for(lambda: "no command" in shell.text() and CONTINUED.fullmatch(shell.cursor_line()), "to go on")
        answer = joined(shell.run("AS text \\gx"))
        true("onetwo" in answer and "RECORD" in answer, answer)
        shell.send(UP)
        shell.wait_for(lambda: shell.before_cursor().endswith("AStext\\gx"), "the entry of the history")
        true(shell.cursor_line().startswith("AS text"), shell.text())
        true("SELECT'one'||\\dGenre'two'\\nosuchAStext\\gx" in shell.before_cursor(), shell.text())
        shell.send(control("C"))
        shell.wait_prompt()
        equal(joined(shell.run("SELECT 1 \\r")), "The typed text is dropped.", "\\r")
        true("│ 2" in joined(shell.run("SELECT 2;")), "a statement after the dropped text")


@test
def pasted():
    """Pasted text runs only at Enter, completely and in order; tabs in it do not complete"""
    with shell_of() as shell:
        shell.send(paste("SELECT 'first' AS a;\nSELECT\t'sec' ||\n  'ond' AS b;"))
        shell.wait_for("'ond' AS b;")
        equal(service.counters()["NRuns"], 0, "runs before Enter")
        true("───" not in shell.text(), f"it ran before Enter:\n{shell.text()}")
        shell.send(ENTER)
        shell.wait_for(lambda: "second" in shell.text() and shell.at_prompt(), "both answers")
        text = shell.text()
        true(text.index("│ first") < text.index("│ second"), text)


@test
def edited():
    """A line can be edited before it runs"""
    with shell_of() as shell:
        shell.type("SELECT 11;")
        shell.send(LEFT + BACKSPACE + BACKSPACE + "23")
        shell.wait_for("SELECT 23;")
        shell.send(ENTER)
        shell.wait_for(lambda: "│ 23" in shell.text() and shell.at_prompt(), "the answer")


@test
def wrong():
    """Wrong SQL is shown with a caret under the error, and the shell goes on"""
    with shell_of() as shell:
        lines = shell.run("SELECT Name, sise FROM Track;")
        caret = next((line for line in lines if line.strip() == "^"), None)
        true(caret is not None, f"no caret: {joined(lines)}")
        place = lines[lines.index(caret) - 1][caret.index("^") :]
        true(place.startswith("sise"), f"the caret points at {place!r}")
        true("│ 1" in joined(shell.run("SELECT 1;")), "it did not go on")


# ---- Leaving and staying ----


@test
def interrupted_when_empty():
    """Ctrl-C at an empty prompt tells how to leave, a second one leaves; other keys in between reset this"""
    with shell_of() as shell:
        shell.send(control("C"))
        shell.wait_for("Ctrl-C again")
        shell.wait_prompt()
        shell.run("SELECT 1;")
        shell.send(control("C"))
        shell.wait_for(lambda: shell.text().count("Ctrl-C again") == 2 and shell.at_prompt(), "it says so again")
        shell.send(control("C"))
        equal(shell.wait_exit(), OK, "exit code")


@test
def interrupted_while_typing():
    """Ctrl-C while typing drops the line and the earlier lines of the statement; the shell stays"""
    with shell_of() as shell:
        shell.type("SELECT broken")
        shell.send(control("C"))
        shell.wait_prompt()
        true("│ 7" in joined(shell.run("SELECT 7;")), "the next statement")
        for line in ("SELECT", "nonsense"):
            shell.type(line)
            shell.send(ENTER)
            shell.wait_continuation()
        shell.send(control("C"))
        shell.wait_prompt()
        true("│ 8" in joined(shell.run("SELECT 8;")), "the next statement")
        for _ in range(3):  # A line is typed each time, so Ctrl-C never leaves.
            shell.type("x")
            shell.send(control("C"))
            shell.wait_prompt()
        shell.send(control("C"))
        shell.wait_for("Ctrl-C again")
        equal(shell.leave(), OK, "exit code")


@test
def left():
    """Ctrl-D, .quit and .quit with a code leave; Ctrl-D after typed text does not"""
    with shell_of() as shell:
        shell.type("SELECT 5")
        shell.send(control("D"))
        shell.type(" + 4;")
        shell.send(ENTER)
        shell.wait_for(lambda: "│     9 │" in shell.text() and shell.at_prompt(), "the answer")
        equal(shell.leave(), OK, "exit code of Ctrl-D")
    for line, code in ((".quit", OK), ("\\q", OK), (".quit 7", 7), (".exit", OK)):
        with shell_of() as shell:
            shell.run("SELECT wrong;")  # A failure at the prompt does not change the exit code.
            shell.type(line)
            shell.send(ENTER)
            equal(shell.wait_exit(), code, f"exit code of {line}")


@test
def terminal_is_given_back():
    """After the shell has left, the terminal reads and echoes lines as before"""
    with shell_of() as shell:
        true(shell.modes() != shell.first_modes, "the editor changes nothing")
        shell.leave()
        equal(shell.modes(), shell.first_modes, "modes of the terminal")
        equal(shell.raw.count(b"\x1b[?2004h"), shell.raw.count(b"\x1b[?2004l"), "bracketed paste, on and off")


# ---- The terminal ----


@test
def highlighted():
    """Keywords, strings, numbers and comments have different colours, and the text of the line is unchanged"""
    with shell_of() as shell:
        shell.type("SELECT 'text', 12 -- note")

        def painted():
            kinds = [colors(shell, text) for text in ("SELECT", "'text'", "12", "-- note")]
            return all(len(kind) == 1 for kind in kinds) and len(set.union(*kinds)) == 4

        shell.wait_for(painted, "four words in four colours")
        shell.send(control("C"))
        shell.wait_prompt()
        shell.type("SELECT 'wide 漢字 and e\u0301' AS x")
        equal(shell.cursor_line().split("> ")[1], "SELECT 'wide 漢字 and \u00e9' AS x", "line")
        equal(shell.screen.cursor.x, len("chinook> SELECT 'wide 1234 and e' AS x"), "column of the cursor")


@test
def colorless():
    """Input and results have colours, except with NO_COLOR"""
    for environment, colored in (({"NO_COLOR": "1"}, False), ({}, True)):
        with shell_of(environment=environment) as shell:
            shell.run("SELECT 'text' AS a, 12 AS b, NULL AS c;")
            shell.type("SELECT 'text', 12")
            found = re.findall(rb"\x1b\[[0-9;]*[1-9][0-9;]*m", shell.raw)
            equal(bool(found), colored, f"whether there are colours with {environment}: {found}")
            equal(colors(shell, "SELECT 'text', 12") != {"default"}, colored, "whether the input has any")


@test
def dumb():
    """TERM=dumb: lines are read and answered without escape sequences"""
    with shell_of(environment={"TERM": "dumb"}) as shell:
        lines = shell.run("SELECT 'te' || 'xt' AS a, NULL AS b;")
        true("text" in joined(lines), joined(lines))
        shell.type("SELECT")
        shell.send(ENTER)
        shell.wait_continuation()
        true("12" in joined(shell.run("12;")), "answer of two lines")
        shell.send(control("C"))
        shell.wait_for("Ctrl-C again")
        shell.wait_prompt()
        shell.send(control("D"))
        equal(shell.wait_exit(), OK, "exit code")
        true(b"\x1b" not in shell.raw, f"escape sequences in {shell.raw!r}")


@test
def resized():
    """After the window changes its size, lines wrap at its new end, and results fit, also a running one"""
    with shell_of(size=(24, 120)) as shell:
        wide = "SELECT " + ", ".join(f"'column {i}' AS c{i}" for i in range(8)) + ";"
        width = max(map(len, shell.run(wide)))
        true(80 < width <= 120, f"{width} columns of 120")
        shell.resize(24, 60)
        shell.wait_prompt()
        width = max(map(len, shell.run("SELECT 'a' AS a, 'b' AS b;")))
        true(width <= 60, f"{width} columns of 60")
        width = max(map(len, shell.run(wide)))
        true(width <= 60, f"{width} columns of 60")
        shell.type("SELECT 40 + ")
        shell.resize(24, 70)
        shell.type("4")
        shell.wait_for("SELECT 40 + 4")
        equal(shell.cursor_line(), "chinook> SELECT 40 + 4", "a line that is under way")
        shell.send(ENTER)
        shell.wait_continuation()
        shell.resize(24, 60)
        shell.type("4;")
        shell.wait_for(lambda: shell.cursor_line().endswith("4;"), "what follows")
        equal(shell.cursor_line(), "    ...> 4;", "the line behind it")
        shell.send(ENTER)
        shell.wait_prompt()
        long = "SELECT '" + "x" * 80 + "y';"
        shell.type(long)
        row, _ = shell.find("xxxy'")
        equal(row, shell.screen.cursor.y, "row of the end of a line that wraps")


@test
def vertical_when_wide():
    """A row that is wider than the screen is shown with one value per line; .vertical off keeps it wide"""
    with shell_of(size=(40, 60)) as shell:
        columns = ", ".join(f"'a value of column {i}' AS column{i}" for i in range(8))
        lines = shell.run(f"SELECT {columns};")
        true(all(any(f"column{i}" in line and f"a value of column {i}" in line for line in lines) for i in range(8)),
             joined(lines))


main(service)
