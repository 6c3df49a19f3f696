#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tab at the prompt: the completed line, and the list of choices if there are several."""
import os
import signal
import sqlite3

from pty_shell import ENTER, TAB, Shell, control, generate  # finds what follows

import broken_schema
from harness import CHINOOK, Service, children, main, wait_for
from overheard import Overheard
from tap import equal, test, true

service = Service({"chinook": CHINOOK}, start=False)
generate(service.data / "odd.sqlite")
service.database("odd", Path=service.data / "odd.sqlite")
broken_schema.make(service.data / "broken.sqlite")
service.database("broken", Path=service.data / "broken.sqlite")
service.start()


def shell_of(*arguments, **keywords):
    return Shell(*(arguments or ["chinook"]), on=service, **keywords)


def completes(shell, typed, result):
    """Fails unless Tab after `typed` changes the line to `result`; drops the line."""
    shell.complete(typed, result)
    if result.endswith(" "):
        shell.wait_for(lambda: shell.screen.cursor.x == len(shell.cursor_line()) + 1, f"a blank behind {result!r}")
    drop(shell)


def drop(shell):
    shell.send(control("U") + control("K"))
    shell.wait_prompt()


def offers(shell, typed, *names):
    """Fails unless Tabs after `typed` list these choices. The first Tab may only add the common prefix."""
    shell.send(control("L"))
    shell.wait_for(lambda: shell.screen.cursor.y == 0 and shell.at_prompt(), "an empty screen")
    shell.type(typed)
    shell.tab_until(lambda: all(name in shell.text().split() for name in names), f"{typed!r} offers {names}", TAB * 3)
    text = shell.text()
    drop(shell)
    return text


@test
def keywords():
    """Keywords are completed in the case of the typed text"""
    with shell_of() as shell:
        completes(shell, "SEL", "SELECT ")
        completes(shell, "sel", "select ")
        completes(shell, "SELECT 1 GRO", "SELECT 1 GROUP ")


@test
def options():
    """Options of commands are offered as their usage shows them"""
    with shell_of() as shell:
        completes(shell, ".watch 2 --c", ".watch 2 --count ")
        completes(shell, ".chart bar --o", ".chart bar --output ")
        completes(shell, ".dump --p", ".dump --preserve-rowids ")
        completes(shell, ".export --f", ".export --force ")
        completes(shell, ".schema --i", ".schema --indent ")
        completes(shell, ".import --j", ".import --jsonl ")
        completes(shell, ".restore --f", ".restore --force ")
        offers(shell, ".connect --", "--system", "--user", "--address=", "--host=")


@test
def before_from():
    """Before FROM: columns of all tables; PRAGMAs, and tables as their arguments; tables after .export FORMAT FILE"""
    with shell_of() as shell:
        completes(shell, "SELECT Milli", "SELECT Milliseconds ")
        completes(shell, "pragma journal_m", "pragma journal_mode ")
        completes(shell, "PRAGMA table_x", "PRAGMA table_xinfo ")
        completes(shell, "pragma table_info(Gen", "pragma table_info(Genre ")
        completes(shell, ".export csv genre.csv Gen", ".export csv genre.csv Genre ")


@test
def beside_broken_objects():
    """A view that does not compile, and a table without its module, leave the names of all others"""
    with shell_of("broken") as shell:
        completes(shell, "SELECT twi", "SELECT twice ")
        completes(shell, "SELECT * FROM good_v", "SELECT * FROM good_view ")
        completes(shell, "SELECT * FROM good_view v WHERE v.upp", "SELECT * FROM good_view v WHERE v.upper ")
        completes(shell, 'SELECT * FROM "no tab', 'SELECT * FROM "no table" ')


@test
def tables():
    """Tables and views after FROM, quoted if necessary"""
    with shell_of() as shell:
        completes(shell, "SELECT * FROM Play", "SELECT * FROM Playlist")
        offers(shell, "SELECT * FROM Play", "Playlist", "PlaylistTrack")
        completes(shell, "SELECT * FROM Alb", "SELECT * FROM Album ")
    with shell_of("odd") as shell:
        completes(shell, "SELECT * FROM rec", "SELECT * FROM recent ")
        completes(shell, "SELECT * FROM tw", 'SELECT * FROM "two words" ')


@test
def columns():
    """Columns of the statement's tables: by alias, by table, with FROM before or after the cursor, and on other lines"""
    with shell_of() as shell:
        completes(shell, "SELECT * FROM Track t WHERE t.Mill", "SELECT * FROM Track t WHERE t.Milliseconds ")
        completes(shell, "SELECT * FROM Track AS t WHERE t.Mill", "SELECT * FROM Track AS t WHERE t.Milliseconds ")
        completes(shell, "SELECT * FROM Track WHERE Track.Mill", "SELECT * FROM Track WHERE Track.Milliseconds ")
        completes(shell, "SELECT * FROM Track WHERE Mill", "SELECT * FROM Track WHERE Milliseconds ")
        completes(shell, "SELECT * FROM Track WHERE com", "SELECT * FROM Track WHERE Composer ")  # not COMMIT
        shell.type("SELECT t.UnitP FROM Track t")
        shell.send(control("A") + "\x1bf\x1bf\x1bf")  # moves word by word to the end of UnitP
        shell.tab_until(
            lambda: "SELECT t.UnitPrice FROM Track t" in shell.text(), "the column",
            untouched=lambda: "SELECT t.UnitP FROM" in shell.text(),
        )  # fmt: skip
        drop(shell)
        for line in ("SELECT *", "FROM Album a"):
            shell.type(line)
            shell.send(ENTER)
            shell.wait_continuation()
        shell.complete("WHERE a.Tit", "WHERE a.Title")
        shell.send(control("C"))
        shell.wait_prompt()


@test
def functions():
    """Functions, with their parenthesis"""
    with shell_of() as shell:
        completes(shell, "SELECT group_c", "SELECT group_concat(")
        completes(shell, "SELECT json_arr", "SELECT json_array")


@test
def databases():
    """Databases, for .open"""
    with shell_of() as shell:
        completes(shell, ".open od", ".open odd ")
        offers(shell, ".open ", "chinook", "odd")


@test
def commands():
    """Dot and backslash commands, and their arguments: settings, modes, tables"""
    with shell_of() as shell:
        completes(shell, ".tab", ".tables ")
        completes(shell, ".mode mark", ".mode markdown ")
        completes(shell, ".schema Alb", ".schema Album ")
        completes(shell, ".timer o", ".timer o")
        offers(shell, ".timer o", "on", "off")
        completes(shell, ".help tab", ".help tables ")
        completes(shell, "\\d Alb", "\\d Album ")


@test
def files():
    """Files, for commands that read or write one; after a folder completion goes on"""
    with shell_of() as shell:
        (shell.home / "folder").mkdir()
        (shell.home / "folder/script.sql").write_text("SELECT 1;\n")
        completes(shell, ".read fol", ".read folder/")
        completes(shell, ".read folder/scr", ".read folder/script.sql ")
        completes(shell, ".once folder/s", ".once folder/script.sql ")


@test
def names_that_are_hostile():
    """Names of a database cannot control the terminal when they are offered"""
    path = service.data / "names.sqlite"
    connection = sqlite3.connect(path)
    connection.execute('CREATE TABLE "zz\x1b[31mred"(x)')
    connection.execute('CREATE TABLE "zz\x1b]0;title\x07"(x)')
    connection.execute('CREATE TABLE "yy\x9b31m\u202e"(x)')  # readline would write these characters unescaped.
    connection.close()
    service.database("names", Path=path)
    service.driver.manager("Reload")
    with shell_of("names") as shell:
        before = len(shell.raw)
        shell.type("SELECT * FROM zz")
        shell.tab_until(lambda: "title" in shell.text(), "names", TAB * 3)
        true(b"\x1b[31mred" not in shell.raw[before:] and b"\x1b]0;" not in shell.raw[before:], "it drove the terminal")
        drop(shell)
        shell.type("SELECT * FROM yy")
        shell.send(TAB * 3)
        shell.type("x")
        shell.wait_for("FROM yyx")
        drop(shell)
        shown = shell.raw.decode()
        true("\x9b" not in shown and "\u202e" not in shown, "what it wrote drove the terminal")


@test
def nobody_answers_in_time():
    """A Tab that needs several lists waits for only one if the service does not answer"""
    with Service({"chinook": CHINOOK}) as stuck, Shell("chinook", on=stuck) as shell:
        overheard = Overheard(stuck.address)
        os.kill(stuck.pid(), signal.SIGSTOP)
        try:
            shell.type("SELECT f")
            shell.send(TAB)
            shell.type("x")
            equal([member for member in overheard.members if member != "Cancel"], ["Query"], "what it asked")
        finally:
            os.kill(stuck.pid(), signal.SIGCONT)
            overheard.close()


@test
def nobody_answers():
    """If the daemon is gone or stopped, Tab offers choices that need no call, and the prompt works"""
    with Service({"chinook": CHINOOK}) as mortal, Shell("chinook", on=mortal) as shell:
        pid = mortal.pid()
        os.kill(pid, signal.SIGSTOP)
        try:
            completes(shell, "SEL", "SELECT ")
            shell.type("SELECT * FROM Alb")
            shell.send(TAB)
            shell.type("x")
            equal(shell.cursor_line().split("> ")[1], "SELECT * FROM Albx", "line")
            drop(shell)
        finally:
            os.kill(pid, signal.SIGCONT)
        mortal.kill()
        shell.type("SELECT * FROM Alb")
        shell.send(TAB)
        shell.type("y")
        drop(shell)
        mortal.start()
        true("│ 1" in "\n".join(shell.run("SELECT 1;")), "it does not go on")


@test
def temp_tables():
    """TEMP tables are offered, once, with their own columns"""
    with shell_of() as shell:
        shell.run("CREATE TEMP TABLE Genre(yardstick, xylophone); CREATE TEMP TABLE xyz(a);")
        completes(shell, "SELECT * FROM xy", "SELECT * FROM xyz ")
        completes(shell, "SELECT * FROM Gen", "SELECT * FROM Genre ")
        completes(shell, "SELECT * FROM Genre WHERE yards", "SELECT * FROM Genre WHERE yardstick ")
        completes(shell, "SELECT xylo", "SELECT xylophone ")


@test
def temp_tables_that_are_lost():
    """If the answer to Tab tells that TEMP tables are lost, the next statement fails with that, once"""
    with Service({"chinook": CHINOOK}) as mortal, Shell("chinook", on=mortal) as shell:
        shell.run("CREATE TEMP TABLE Genre AS SELECT 'temp' AS Name;")
        true("temp" in "\n".join(shell.run("SELECT Name FROM Genre;")), "the TEMP table")
        workers = children(mortal.pid())
        for worker in workers:
            os.kill(worker, signal.SIGKILL)
        wait_for(lambda: not set(workers) & set(children(mortal.pid())), "the service knows")
        shell.type("SELECT * FROM Playli")
        shell.send(TAB)
        shell.type("x")
        drop(shell)
        told = "\n".join(shell.run("SELECT Name FROM Genre LIMIT 1;"))
        true("TEMP tables" in told and "Rock" not in told, told)
        told = "\n".join(shell.run("SELECT Name FROM Genre LIMIT 1;"))
        true("Rock" in told, told)


main(service)
