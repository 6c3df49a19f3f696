#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Commands of the shell: settings, parameters, scripts, the user's own files, named queries, the editor, charts.

test_every_command.py runs each command of .help at the prompt; test_watch.py tests .watch.
"""
import contextlib
import os
import pathlib
import re
import stat
import tempfile

from pty_shell import ENTER, Shell  # finds what follows

from harness import CHINOOK, CLI, Service, main
from tap import Skip, equal, test, true

OK, QUERY, USAGE, LOST, OUTPUT = 0, 1, 2, 4, 5
GENRE = "SELECT Name FROM Genre WHERE GenreId = "

service = Service({"chinook": CHINOOK})


@contextlib.contextmanager
def folder():
    with tempfile.TemporaryDirectory(prefix="sqlipc-commands-") as name:
        yield pathlib.Path(name)


def ask(*commands, code=OK, home=None, mode="csv", arguments=(), environment=None):
    """Runs the commands as a script, each with -c; returns the output of both streams."""
    words = [word for command in commands for word in ("-c", command)]
    variables = {"HOME": str(home or service.folder)} | (environment or {})
    line = ["env", "-u", "EDITOR", "-u", "VISUAL", *(f"{name}={value}" for name, value in variables.items())]
    done = service.run(*line, CLI, f"--address={service.address}", f"--mode={mode}", *arguments, *words, "chinook")
    err = done.stderr.decode()
    equal(done.returncode, code, f"exit code of {commands}, which said {err!r}")
    return done.stdout.decode(), err


def says(*commands, code, message, **keywords):
    """Fails unless the commands fail for this reason, with the command's name in front."""
    _, err = ask(*commands, code=code, **keywords)
    true(err.startswith("ipcq-cli: "), f"{commands} said {err!r}")
    true(message in err, f"{commands} said {err!r}, and nothing of {message!r}")


# ---- settings ----


@test
def settings():
    """A setting applies after its command; without a value the command shows it; a wrong value changes nothing"""
    out, _ = ask(".headers off", "SELECT NULL, 2", ".nullvalue -", "SELECT NULL, 2", ".headers on", "SELECT 1 AS a")
    equal(out, ",2\n-,2\na\n1\n", "rows")
    out, _ = ask(".mode list", ".headers off", '.separator "\\t"', "SELECT 1, 2", ".separator auto", "SELECT 1, 2")
    equal(out, "1\t2\n1|2\n", "separators")
    rows = "SELECT 1, 2"
    out, _ = ask(".mode list", ".headers off", ".separator \\t", rows, ".separator ' : '", rows, ".separator")
    equal(out, "1\t2\n1 : 2\nseparator:  : \n", "separators without escapes, and in quotes")
    out, _ = ask(".mode insert genre", "SELECT 1", ".mode", ".mode csv")
    equal(out, "INSERT INTO genre VALUES(1);\nmode: insert\n", "insert")
    equal(ask(".timeout 2.5", ".timeout", ".timeout off", ".timeout")[0], "timeout: 2.5\ntimeout: off\n", "timeout")
    out, _ = ask(".width 5 -6", ".width", ".bail on", ".nullvalue ' '", ".show")
    shown = dict(re.findall(r"^ *([a-z-]+): (.*)$", out, re.M))
    for name, value in {"mode": "csv", "width": "auto", "bail": "on", "nullvalue": " ", "database": "chinook"}.items():
        equal(shown.get(name), value, f"{name} of .show")
    says(".headers maybe", code=USAGE, message="on, off or auto")
    says(".mode xml", code=USAGE, message="one of table, box")
    says(".mode csv genre", code=USAGE, message="usage: .mode")
    says(".timeout yesterday", code=USAGE, message="seconds")
    says(".width 3 x", code=USAGE, message="numbers")
    says(".transport pigeon", code=USAGE, message="one of auto, pipe, channel, dbus")
    equal(ask(".headers off", ".headers maybe", "SELECT 1 AS a", code=USAGE)[0], "1\n", "headers after a refusal")


@test
def transports():
    """.transport: selects the transport of the next run; without an argument it shows that of the last run"""
    equal(ask(".transport")[0], "transport: auto\n", "before any run")
    for transport in ("pipe", "channel", "dbus"):
        out, err = ask(f".transport {transport}", ".stats on", "SELECT 1 AS a")
        true(re.search(f"Transport: +{transport}\n", out + err), f"with {transport}: {out!r}, {err!r}")
        out, _ = ask(f".transport {transport}", "SELECT 1 AS a", ".transport auto", ".transport")
        equal(out, f"a\n1\ntransport: auto, the last run by {transport}\n", "last run")


@test
def ended_as_statements_are():
    """A semicolon after a command or after the name of a table is ignored; in text it is kept"""
    for plain in (".tables", ".schema Genre", ".describe 'Genre'", "\\d Genre", ".databases", ".help tables", ".help"):
        equal(ask(plain + ";"), ask(plain), f"{plain};")
    equal(ask(".schema Genre ; "), ask(".schema Genre"), ".schema Genre ;")
    equal(ask("SELECT 1 AS a \\g;")[0], "a\n1\n", "\\g;")
    equal(ask(".print 1;")[0], "1;\n", ".print")
    equal(ask(".mode list", ".separator ;", ".headers off", "SELECT 1, 2")[0], "1;2\n", ".separator")
    says(".describe 'Genre;'", code=QUERY, message="there is no table or view Genre;")
    says(".tables;x", code=USAGE, message="there is no command .tables;x")


@test
def turned_by_a_backslash():
    """As in psql: \\x and \\timing toggle and report it; \\gx applies to one result"""
    with Shell("chinook", on=service, size=(40, 80)) as shell:
        equal(shell.run("\\x"), ["vertical is on."], "\\x")
        shown = "\n".join(shell.run("SELECT 40 + 2 AS x;"))
        true(re.search(r"x\W+42", shown) and "+--" not in shown, f"vertically: {shown!r}")
        equal(shell.run("\\x"), ["vertical is off."], "\\x again")
        equal(shell.run("\\timing"), ["timer is off."], "\\timing")
        shown = "\n".join(shell.run("SELECT 40 + 2 AS x \\gx"))
        true(re.search(r"x\W+42", shown), f"\\gx: {shown!r}")
        equal(shell.run(".vertical"), ["vertical: off"], "vertical after \\gx")


@test
def go_again():
    """\\g runs the typed or the last statement, also into a file or a command; \\r drops the typed text"""
    with folder() as home:
        out, _ = ask(".headers off", "SELECT 1;", "\\g", "SELECT 2\n\\g", ".go", home=home)
        equal(out, "1\n1\n2\n2\n", "rows")
        out, _ = ask(".headers off", f"SELECT 3\n\\g {home}/rows", "SELECT 4\n\\g | tr 4 5", "SELECT 6 \\r\nSELECT 7;")
        equal(out, "5\n7\n", "rows that did not go to the file")
        equal((home / "rows").read_text(), "3\n", "file")
    says("\\g", code=USAGE, message="no statement")


# ---- help ----


@test
def help_for_each():
    """.help lists each command with its aliases; each topic shows arguments and text; a wrong name gets a suggestion"""
    listed, _ = ask(".help")
    lines = re.findall(r"^(\.[a-z0-9]+(?:, \\[^ ,\n]+)*)( \S[^\n]*?)??(?:\n {32}|  *) (\S[^\n]*)$", listed, re.M)
    titles = re.findall(r"^[A-Z][^\n]*:$", listed, re.M)
    equal(len(titles), 7, f"groups of {listed!r}")
    true(re.search(r"^\.tables, \\dt \[LIKE\]  ", listed, re.M), f"no arguments in {listed!r}")
    true(len(lines) > 50, f"only {len(lines)} lines in {listed!r}")
    for names, _, summary in lines:
        name, *aliases = names.split(", ")
        topic, _ = ask(f".help {name}")
        true(topic.startswith(name), f".help {name} begins with {topic[:40]!r}")
        true(" " + summary.split()[0] in topic, f".help {name} is {topic!r}")
        true(max(map(len, topic.splitlines())) <= 80, f"{name} has a wide line: {topic!r}")
        for alias in aliases:
            equal(ask(f".help {alias}")[0], topic, f"help of {alias}")
    everything, _ = ask(".help --all")
    equal(len(re.findall(r"^\.", everything, re.M)), len(lines), "topics of .help --all")
    true(".chart" in ask(".help picture")[0], "no command by a word of its text")
    says(".help tabels", code=USAGE, message="did you mean .tables")
    says(".tabels", code=USAGE, message="did you mean .tables")


# ---- parameters ----


@test
def parameters():
    """.parameter: each type, by name and position; an unset parameter is NULL; list prints values that set reads"""
    types = "SELECT typeof(:a) AS a, typeof(:b) AS b, typeof($c) AS c, typeof(?) AS d, :e AS e, typeof(:f) AS f"
    setting = [".parameter set a 1", ".parameter set :b 1.5", ".parameter set c x'00ff'", ".parameter set 4 null"]
    out, _ = ask(*setting, ".parameter set e it's two words", ".headers off", types)
    equal(out, "integer,real,blob,null,\"it's two words\",null\n", "types")
    out, _ = ask(".headers off", ".parameter set a '12'", "SELECT typeof(:a)", ".parameter set a \"'1 2'\"", "SELECT :a")
    equal(out, 'text\n"1 2"\n', "quotes")
    listed, _ = ask(*setting, ".parameter set e 'it''s'", ".parameter list")
    equal(listed, "?4 NULL\na 1\n:b 1.5\nc x'00ff'\ne 'it''s'\n", "list")
    again = [f".parameter set {line}" for line in listed.splitlines()]
    equal(ask(*again, ".parameter list")[0], listed, "the list, set again")
    long = [("a", f"x'{'0f' * 300}'"), ("b", f"'{'long ' * 600}'"), ("c", "0.12345678901234568")]
    listed, _ = ask(*(f".parameter set {name} {value}" for name, value in long), ".parameter list")
    equal(listed, "".join(f"{name} {value}\n" for name, value in long), "long values")
    fewer = [".parameter unset a", ".parameter unset ?4", ".parameter list", ".parameter clear", ".parameter list"]
    out, _ = ask(*setting, *fewer)
    equal(out, ":b 1.5\nc x'00ff'\n", "after unset")
    for line in (".parameter", ".parameter set a", ".parameter frobnicate", ".parameter list a", ".parameter unset"):
        says(line, code=USAGE, message="usage: .parameter")
    says(".parameter unset a", code=USAGE, message="no parameter a")
    out, _ = ask(".parameter set :a 1", ".parameter set a 2", "SELECT :a AS a", ".parameter unset a", ".parameter list")
    equal(out, "a\n2\n", "the last one that was set, by another name of it")
    equal(ask(".parameter set :a 1", ".parameter unset a", ".parameter list")[0], "", "unset by another name")
    says(".parameter set a x'0'", code=USAGE, message="even number")


@test
def parameters_of_the_command_line():
    """--param applies to statements that name the parameter; a name that no statement has is an error"""
    out, _ = ask(GENRE + ":id", GENRE + "3", arguments=["--param", "id=1"])
    equal(out, "Name\nRock\nName\nMetal\n", "rows")
    says(GENRE + ":id", code=USAGE, message="parameter di", arguments=["--param", "di=1"])
    with folder() as home:
        ask(f".save genre {GENRE}:id", home=home)
        equal(ask(".run genre", home=home, arguments=["--param", "id=1"])[0], "Name\nRock\n", "rows of a saved query")
    ask(".parameter set unused 1")


# ---- scripts within scripts ----


@test
def scripts():
    """.read: files, nested files, and the output of commands, relative to .cd; errors name file and line"""
    with folder() as home:
        (home / "outer file.sql").write_text(".headers off\nSELECT 1;\n.read inner.sql\nSELECT\n  4; SELECT 5")
        (home / "inner.sql").write_text("-- a comment\n\nSELECT 2;\nSELECT nosuch;\nSELECT 3;\n.nosuch\n")
        out, err = ask(f".cd {home}", '.read "outer file.sql"', code=QUERY)
        equal(out, "1\n2\n3\n4\n5\n", "rows")
        true("ipcq-cli: inner.sql:4: no such column: nosuch" in err, f"complaint: {err!r}")
        true("ipcq-cli: inner.sql:6: there is no command .nosuch" in err, f"complaint: {err!r}")
        out, _ = ask(f".cd {home}", ".bail on", ".read 'outer file.sql'", code=QUERY)
        equal(out, "1\n2\n", "rows until the failure, with .bail")
        out, err = ask(".headers off", ".read |printf 'SELECT 1;\\nSELECT nosuch;'", code=QUERY)
        equal(out, "1\n", "rows of a command's script")
        true(":2: no such column" in err, f"complaint: {err!r}")
        says(".read |exit 3", code=QUERY, message="exit code 3")
        says(f".read {home}/nosuch.sql", code=QUERY, message="No such file")
        (home / "self.sql").write_text(f".read {home}/self.sql\n")
        says(f".read {home}/self.sql", code=QUERY, message="more than 32 deep")
        says(".read", code=USAGE, message="usage: .read")
        says(".read a b", code=USAGE, message="usage: .read")


@test
def system():
    """.shell: the command's output appears in order; its failure is reported; SIGPIPE has its default action"""
    equal(ask(".print one", ".shell echo two", ".print three")[0], "one\ntwo\nthree\n", "order")
    says(".shell exit 3", code=QUERY, message="exit code 3")
    # A program that ignores SIGPIPE would say "Broken pipe" here.
    out, err = ask(".shell yes | head -n 1")
    equal((out, err), ("y\n", ""), "a pipe within the command")


# ---- the user's own files ----


@test
def configuration():
    """The prompt reads ~/.config/ipcq/config and init.sql and reports errors; scripts and --no-init skip them"""
    with folder() as home:
        files = home / ".config/ipcq"
        files.mkdir(parents=True)
        (files / "config").write_text(
            "[ipcq]\nnullvalue=(none)\nmode=list\ntimeout=soon\nnosuch=1\nseparator=\\t\n\n[other]\nmode=csv\n"
        )
        (files / "init.sql").write_text(".parameter set genre 1\nSELECT 'from init';\n.nosuch\n")
        with Shell("chinook", on=service, home=home, size=(40, 100)) as shell:
            before = shell.text()
            for told in ("config: timeout=soon: it is a number of seconds", "config: nosuch=1: there is no such setting"):
                true(told in before, f"it did not say {told!r}:\n{before}")
            true("config: [other]" in before, f"it did not say which group is not its own:\n{before}")
            true("from init" in before, f"init.sql did not run:\n{before}")
            true("init.sql:3: there is no command .nosuch" in before, f"init.sql's mistake:\n{before}")
            shown = "\n".join(shell.run(f"SELECT NULL AS x, ({GENRE} :genre) AS y;"))
            true(re.search(r"\(none\)\s+Rock", shown), f"settings and parameter hold: {shown!r}")
        with Shell("--no-init", "chinook", on=service, home=home, size=(40, 100)) as shell:
            true("from init" not in shell.text() and "config" not in shell.text(), f"--no-init:\n{shell.text()}")
            equal(shell.run(".nullvalue"), ["nullvalue: auto"], "nullvalue with --no-init")
        equal(ask("SELECT NULL AS x", home=home), ("x\n\n", ""), "a script")


# ---- named queries ----


@test
def named_queries():
    """.save, .run with parameters, .queries, .forget: only the owner can read the files; parameters apply to one run"""
    with folder() as home:
        again = [".run genre id=3", ".run genre", ".headers off", ".run genre :id=4"]
        out, _ = ask(GENRE + ":id", ".save genre", *again, home=home)
        equal(out, 'Name\nMetal\n"Alternative & Punk"\n', "rows")
        file = home / ".config/ipcq/queries/genre.sql"
        equal(file.read_text(), GENRE + ":id\n", "file")
        equal(stat.S_IMODE(file.stat().st_mode), 0o600, "rights of the file")
        equal(stat.S_IMODE(file.parent.stat().st_mode), 0o700, "rights of its folder")
        ask(".save words SELECT :a AS a, :b AS b; SELECT nosuch", home=home)
        _, err = ask(".run words a='two words' b=\"it's\"", home=home, code=QUERY)
        true("words.sql:1: no such column: nosuch" in err, f"complaint: {err!r}")
        out, _ = ask(".run words a='two words' b=\"it's\"", home=home, code=QUERY)
        equal(out, 'a,b\n"two words","it\'s"\n', "values in quotes")
        out, _ = ask(".queries", home=home)
        equal([line.split()[0] for line in out.splitlines()], ["genre", "words"], "names")
        file.with_name("long.sql").write_text(f"SELECT 1,\n'{'long ' * 100}'\n")
        true(f"SELECT 1,\\n'{'long ' * 100}'\n" in ask(".queries", home=home)[0], "a long query is listed whole")
        out, _ = ask(".parameter set :id 1", ".run genre id=3", arguments=["-p", "@id=1"], home=home)
        equal(out, "Name\nMetal\n", "a parameter of the run, which has another name outside")
        says(".run genre di=3", code=USAGE, message="di: no statement of genre has this parameter", home=home)
        says(".run genre id=3 id=4", code=USAGE, message="id: it was given before", home=home)
        ask(".run genre id=3 di=4", arguments=["--bail"], home=home, code=USAGE)
        ask(".run genre di=4", "SELECT :di", arguments=["--param", "di=1"], home=home, code=USAGE)
        ask(".forget words", home=home)
        true("words" not in ask(".queries", home=home)[0], ".forget")
        says(".run words", code=QUERY, message="no query of this name", home=home)
        says(".forget words", code=QUERY, message="no query of this name", home=home)
        for name in ("../x", ".hidden", "a/b", "-x", "x" * 100):
            says(f".save {name} SELECT 1", code=USAGE, message="a name is of", home=home)
            says(f".run {name}", code=USAGE, message="a name is of", home=home)
        says(".save alone", code=USAGE, message="no statement", home=home)
        says(".run genre id", code=USAGE, message="usage: .run", home=home)
        ask(".save self .run self", home=home)
        says(".run self", code=QUERY, message="more than 32 deep", home=home)


# ---- the editor ----


@test
def editor():
    """.edit: the editor gets the typed or the last statement; its result runs and enters the history"""
    with folder() as home:
        seen = home / "seen"
        script = home / "an editor"
        edited = 'printf "SELECT 1 AS a;\\nSELECT 2 AS b" >"$1"'
        script.write_text(f'#!/bin/sh\ncp "$1" {seen}\nstat -c %a "$1" >>{seen}\n{edited}\n')
        script.chmod(0o755)
        how = {"EDITOR": f"'{script}'", "TMPDIR": str(home)}
        out, _ = ask("SELECT 7 AS old", ".edit", environment=how)
        equal(out, "old\n7\na\n1\nb\n2\n", "rows")
        equal(seen.read_text(), "SELECT 7 AS old;\n600\n", "what the editor saw")
        ask("SELECT 'pending' \\e", environment=how)
        true(seen.read_text().startswith("SELECT 'pending'"), f"the editor saw {seen.read_text()!r}")
        equal(ask("SELECT 7 AS old", ".edit", environment={"EDITOR": "true"})[0], "old\n7\n", "what was not changed")
        says(".edit file", code=USAGE, message="usage: .edit", environment={"EDITOR": "true"})
        says("SELECT 7 AS old", ".edit", code=QUERY, message="exit code 1", environment={"EDITOR": "false"})
        _, err = ask(".edit", code=QUERY, environment={"EDITOR": "printf 'SELECT\\n nosuch' >", "TMPDIR": str(home)})
        true("no such column: nosuch" in err, f"complaint about what came back: {err!r}")
        equal(sorted(path.name for path in home.iterdir()), ["an editor", "seen"], "files that are left")
        with Shell("chinook", on=service, environment={"VISUAL": f"'{script}'"}) as shell:
            shell.run(".edit")
            shell.send("\x1b[A")
            shell.wait_for(lambda: "SELECT2ASb" in shell.before_cursor(), "what was edited is in the history")


# ---- charts ----


def needs_gnuplot(function):
    @test
    def wrapped():
        if not any(os.access(pathlib.Path(path, "gnuplot"), os.X_OK) for path in os.environ["PATH"].split(":")):
            raise Skip("needs gnuplot")
        function()

    wrapped.__doc__ = function.__doc__
    return wrapped


def bars(chart):
    """Returns the label of each line with the length of its bar, in eighths of a character."""
    found = re.findall("^(.*?) *│([█▏▎▍▌▋▊▉]*)(?: .*)?$", chart, re.M)
    return {label: sum(8 if block == "█" else "▏▎▍▌▋▊▉".index(block) + 1 for block in row) for label, row in found}


@test
def bar_chart():
    """.chart bar: a bar for each row, proportional to its number, none for NULL; wide and hostile labels appear as text"""
    labels = "('one', 1), ('日本', 2), (char(27) || '[31m\"`id`\\n$x', 4), ('@@', NULL)"
    chart, err = ask(f".chart SELECT column1, column2 AS n FROM (VALUES {labels})")
    equal(err, "", "complaints")
    found = bars(chart)
    equal(list(found), ["one", "日本", '\\x1b[31m"`id`\\n$x', "@@"], f"labels of\n{chart}")
    one, two, four, none = found.values()
    true(abs(two - 2 * one) <= 1 and abs(four - 4 * one) <= 2 and none == 0, f"lengths {found}")
    true(all(len(line) <= 80 for line in chart.splitlines()), f"wider than 80 columns:\n{chart}")
    true("\x1b" not in chart, f"a label drives something:\n{chart!r}")


@test
def line_and_histogram():
    """.chart line shows a legend, blocks, and months on the axis; .chart hist shows a count for each class"""
    monthly = "SELECT strftime('%Y-%m', InvoiceDate), sum(Total) AS total, count(*) AS n FROM Invoice GROUP BY 1"
    lines = ask(f".chart line {monthly}")[0].splitlines()
    equal(lines[0], "█ total   ▒ n", "the legend")
    equal(lines[-1].split(), ["2021", "2022", "2023", "2024", "2025"], "x")
    true(all(len(line) <= 80 for line in lines), f"wider than 80 columns: {lines}")
    true(all("".join(lines).count(block) > 30 for block in "█▒"), f"lines: {lines}")
    chart, _ = ask(".chart hist SELECT column1 FROM (VALUES (1), (1), (1), (2), (4), (NULL))")
    found = bars(chart)
    equal(list(found), ["1", "2", "3", "4"], "classes")
    true(found["1"] > 2.5 * found["2"] and found["3"] == 0 and found["4"] == found["2"], f"numbers {found}")


@test
def charts_that_cannot_be():
    """.chart reports missing rows, missing numbers, text instead of a number, and too few or too many columns"""
    says(".chart SELECT 1 WHERE 0", code=QUERY, message="no rows")
    says(".chart hist SELECT NULL", code=QUERY, message="no numbers")
    says(".chart hist SELECT 1, 2", code=QUERY, message="one column")
    says(".chart line SELECT 1", code=QUERY, message="two columns")
    text = ".chart bar SELECT 'a', 1 UNION ALL SELECT 'b', 'c\x1b[31m'"
    says(text, code=QUERY, message="row 2 has c\\x1b[31m instead of a number")
    says(".chart bar SELECT 1, 1, 1, 1, 1, 1, 1, 1, 1, 1", code=QUERY, message="more than 8")
    says(".chart bar SELECT nosuch", code=QUERY, message="no such column")
    says(".chart --output x.gif SELECT 1", code=USAGE, message=".png or a .svg")
    many = "WITH RECURSIVE n(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM n) SELECT x, x FROM n"
    chart, err = ask(f".chart bar {many}")
    true("first 1000" in err, f"too many rows: {err!r}")
    equal(len(bars(chart)), 1000, "bars")


@test
def chart_arguments():
    """.chart reports unknown kinds, unknown options, and repeated arguments"""
    says(".chart pie SELECT 1", code=USAGE, message="there is no chart pie: a chart is bar, line or hist")
    says(".chart column SELECT 1", code=USAGE, message="there is no chart column")
    says(".chart --title x SELECT 1", code=USAGE, message="no option --title")
    says(".chart bar line SELECT 1", code=USAGE, message=".chart")
    says(".chart --output a.png bar --output b.png SELECT 1", code=USAGE, message=".chart")
    chart, _ = ask(".chart /* of nothing */ SELECT 1")
    true("│" in chart, f"comments: {chart!r}")


@needs_gnuplot
def pictures():
    """.chart --output: a complete PNG or SVG replaces an existing file; the statement may be the last one that ran"""
    with folder() as home:
        svg, png = home / "a picture.svg", home / "p.png"
        png.write_text("old")
        ask("SELECT 'a<b&`id`' AS x, 3 AS n", f'.chart bar --output "{svg}"')
        ask(f".chart line --output {png} SELECT 1, 2 UNION SELECT 2, 3")
        true(png.read_bytes().startswith(b"\x89PNG\r\n"), "no PNG")
        for words in (f"--output {png} line SELECT 1, 2", f"line SELECT '--output', 2 --output {png}"):
            png.unlink()
            equal(ask(f".chart {words}"), ("", ""), f"what it says with {words}")
            true(png.exists(), f"no picture with {words}")
        text = svg.read_text()
        true(text.rstrip().endswith("</svg>") and "a&lt;b&amp;`id`" in text, "no SVG with its label")
        says(".chart --output /nosuch/x.png SELECT 1", code=QUERY, message="No such file")
        equal(sorted(path.name for path in home.iterdir()), ["a picture.svg", "p.png"], "files that are left")


@needs_gnuplot
def labels_of_pictures():
    """Labels below a picture neither overlap nor are clipped, for any number of times, texts or numbers"""
    queries = {
        "times": "SELECT strftime('%Y-%m-%d %H:%M', InvoiceDate), Total FROM Invoice",
        "days": "SELECT date('2024-01-01', TrackId || ' days'), 1 FROM Track LIMIT 45",
        "texts": "SELECT 'a text of some length ' || TrackId, Bytes FROM Track LIMIT 300",
        "numbers": "SELECT Bytes * 1000, Milliseconds FROM Track",
    }
    with folder() as home:
        for name, sql in queries.items():
            ask(f".chart line --output {home}/{name}.svg {sql}")
            svg = (home / f"{name}.svg").read_text()
            centred = r'translate\(([\d.]+),([\d.]+)\)"[^>]*text-anchor="middle">\s*<text>\s*([^<]*)'
            found = re.findall(centred, svg)
            lowest = max(float(y) for _, y, label in found)
            labels = sorted((float(x), label.strip()) for x, y, label in found if float(y) == lowest and label.strip())
            true(len(labels) >= 2, f"labels of {name}: {found}")
            ends = [0]
            for x, label in labels:
                half = len(label) * 7 / 2  # pixels
                true(x - half >= ends[-1], f"{label} of {name} overlaps what is left of it: {labels}")
                ends.append(x + half)
            true(ends[-1] <= 900, f"{name}: the last label is clipped: {labels}")


@test
def no_gnuplot():
    """Without gnuplot .chart names its package, and draws in the terminal"""
    with folder() as home:
        true("│" in ask(".chart SELECT 1", environment={"PATH": str(home)})[0], "no chart")
        says(f".chart --output {home}/x.png SELECT 1", code=QUERY, message="gnuplot-nox", environment={"PATH": str(home)})


# ---- the end ----


@test
def leaving():
    """.quit: later commands do not run; its code is the program's exit code"""
    equal(ask("SELECT 1 AS a", ".quit", "SELECT 2")[0], "a\n1\n", "rows")
    equal(ask("SELECT 1 AS a", ".q", "SELECT 2")[0], "a\n1\n", "rows before .q")
    ask("SELECT nosuch", ".quit 7", code=7)
    says(".quit seven", code=USAGE, message="usage: .quit")
    with Shell("chinook", on=service) as shell:
        shell.type(".quit 9")
        shell.send(ENTER)
        equal(shell.wait_exit(), 9, "exit code")


main(service)
