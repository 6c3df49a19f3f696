# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs every block of README.md, docs/python.md, docs/engines.md and the manual's pages of first steps, with our packages.

A block belongs to a play by the words with which it begins. A block that no play knows fails the test.
"""
import contextlib
import os
import pathlib
import pty
import re
import shutil
import sqlite3
import subprocess
import textwrap

import served
from machine import DATABASES, HOME, USER, command, done, manager, query, session, wait_for, written
from tap import equal, true

# Blocks that run elsewhere, by their beginnings, and where.
ELSEWHERE = {
    "./tools/demo.sh  ": ".ci/run, and tests/run.sh runs this",
    "tools/install-dependencies.sh package": "test_package.py, and installs() of inside_package.py",
    "import adbc_driver_manager": "adbc/test_adbc_programs.py",
    "./tools/bench.sh": "bus/test_bench.py",
}
# These need the network: python/test_install.py and adbc/make-environment.sh do them.
BY_PIP = ("python3 -m venv ", "pip install ", "environment/bin/pip install ")


def blocks(page):
    """Returns the blocks of code of a page, without their indentation: those of Markdown, or those after "::"."""
    text = page.read_text()
    if page.suffix == ".md":
        found = re.findall(r"^```\w*\n([\s\S]*?)^```$|(?<=\n\n)((?: {4}.*\n|\n(?= {4}))+)", text, re.M)
        return [textwrap.dedent(fenced or indented).strip("\n") for fenced, indented in found]
    found = re.findall(r"^( *)\S.*::\n\n((?:\1 +.*\n|\n)+)|^::\n\n((?: +.*\n|\n)+)", text, re.M)
    return [textwrap.dedent(more or alone).strip("\n") for _, more, alone in found]


class Reader:
    """USER at the keyboard, in a folder with the files that the pages speak of."""

    def __init__(self, home, config):
        self.config = config
        self.folder = home / "work"
        self.folder.mkdir()
        (self.folder / "migration.sql").write_text("INSERT INTO note(author) VALUES('bob'), ('cid');\n")
        (self.folder / "people.csv").write_text("name,age\nann,34\n")
        self.database("packages", """CREATE TABLE package(name TEXT PRIMARY KEY, version, installed_size INT, section);
            CREATE TABLE dependency(package TEXT, depends_on TEXT);
            WITH n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 500)
            INSERT INTO package SELECT 'lib' || x, x || '.0-1', x * 1000, 'libs' FROM n;
            INSERT INTO dependency SELECT name, 'libc6' FROM package;""")
        self.database("notes", "CREATE TABLE note(id INTEGER PRIMARY KEY, author TEXT, text TEXT);", "Mode=read-write",
                      "WriteSchema=yes")
        done("chown", "-R", f"{USER}:{USER}", self.folder, config)

    def database(self, name, schema, *lines):
        path = self.folder / f"{name}.sqlite"
        with contextlib.closing(sqlite3.connect(path)) as db:
            db.executescript(schema)
        (self.config / f"{name}.conf").write_text("\n".join(["[Database]", f"Path={path}", *lines, ""]))

    def run(self, *words):
        """Runs a command, which must succeed and write nothing to standard error; returns its output."""
        result = command(*session(), *words, user=USER, cwd=self.folder)
        equal((result.returncode, result.stderr), (0, ""), "exit code and standard error")
        return result.stdout

    def shell(self, block):
        return self.run("bash", "-euo", "pipefail", "-c", block)

    def sql(self, sql, database="notes"):
        """Returns the rows of the output, without the column names."""
        return self.run("ipcq-cli", "--mode=list", database, sql).splitlines()[1:]

    @contextlib.contextmanager
    def beside(self, *words):
        """A program that does not end by itself; its output goes to a file."""
        output = self.folder / "output"
        as_reader = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--init-groups", "--", *session()]
        words = [*as_reader, "PYTHONUNBUFFERED=1", *words]
        with open(output, "w") as file, subprocess.Popen(
            words, cwd=self.folder, stdout=file, stderr=subprocess.STDOUT, start_new_session=True
        ) as process:
            try:
                yield lambda word: word in output.read_text()
            except AssertionError as error:
                raise AssertionError(f"{error}; it said {output.read_text()!r}") from error
            finally:
                command("pkill", "-KILL", "--session", str(process.pid))

    # ---- plays ----

    def play_configuration(self, block):
        path = re.search("^Path=(.*)$", block, re.M)[1]
        shutil.copy(self.folder / "packages.sqlite", path)
        pathlib.Path(path).chmod(0o644)
        (self.config / "again.conf").write_text(block)
        self.run("sqlipcctl", "--user", "check")
        self.run("sqlipcctl", "--user", "reload")
        equal(self.sql("SELECT count(*) FROM package", "again"), ["500"], "rows")
        (self.config / "again.conf").unlink()
        self.run("sqlipcctl", "--user", "reload")

    def play_shell(self, block):
        true(self.shell(block), f"printed nothing: {block}")

    def play_write(self, block):
        self.shell(block)
        equal(self.sql("SELECT author FROM note ORDER BY 1"), ["ann", "cid"], "notes")
        equal(self.sql("SELECT * FROM person"), ["ann|34"], "people")

    def play_waits(self, block):
        """The loop writes the table's rows after a change; it may begin to wait after the first ones."""
        name, table = re.search(r"> (\w+\.csv)", block)[1], re.search(r"FROM (\w+)", block)[1]
        column = {"note": "text", "package": "name"}[table]
        with contextlib.closing(sqlite3.connect(self.folder / f"{table}s.sqlite", timeout=120, isolation_level=None)) as db:
            def is_told():
                db.execute(f"INSERT INTO {table}({column}) VALUES('a change' || random())")
                return (self.folder / name).exists() and "a change" in (self.folder / name).read_text()
            with self.beside("bash", "-c", block):
                wait_for(is_told, "the change")

    def play_fragment(self, block):
        """C that is no program: the compiler takes it within a function."""
        names = "sqlipc_connection *connection, sqlipc_live *live, const sqlipc_live_change *change, void *list, int r"
        source = self.folder / "fragment.c"
        source.write_text(f"#include <sqlipc.h>\nvoid apply(void *list, const sqlipc_live_change *change);\n"
                          f"int f({names});\nint f({names}) {{\n{block}\nreturn r;\n}}\n")
        self.shell("cc -Wall -Werror -c fragment.c $(pkg-config --cflags libsqlipc)")

    def play_program(self, block):
        (self.folder / "readme.c").write_text(block)

    def play_compile(self, block):
        self.shell(block)
        if "readme.c" in block:
            equal(self.run("./readme").splitlines()[0], "lib500 500000", "first line of the program")

    def play_packages(self, block):
        """The packages are installed: ours by this test, others with those that the tests need."""
        for line in re.sub(" *#.*", "", block).splitlines():
            names = line.removeprefix("sudo apt install ").split()
            true(line.startswith("sudo apt install ") or line.startswith(BY_PIP), line)
            for name in names if line.startswith("sudo") else []:
                name = re.sub(r"^\.\./(.*)_\*\.deb$", r"\1", name)
                equal(done("dpkg-query", "--show", "--showformat=${db:Status-Status}", name), "installed", name)

    def play_packages_and_sql(self, block):
        install, sql = block.split("\n\n", 1)
        self.play_packages(install)
        self.play_sql(sql)

    def play_sql(self, sql):
        own = "CREATE TABLE wanted(name TEXT); INSERT INTO wanted VALUES('lib7'), ('none');"
        rows = self.run("sqlite3", ":memory:", f"{own}\n{sql}").splitlines()[-2:]
        equal(rows, ["lib7|7.0-1", "none|"], "rows of the join")

    def play_python(self, block):
        true(self.run("/usr/bin/python3", "-c", block) or "sqlipc.connect(\"notes\")" in block, "printed nothing")

    def play_python_gtk(self, block):
        with self.screen() as display:
            done_with = "\nfrom gi.repository import GLib\ncontext = GLib.MainContext.default()\n" \
                "while not model.is_settled(): context.iteration(True)\nprint(model.get_n_items())\n"
            words = ["env", f"DISPLAY={display}", "GDK_BACKEND=x11", "GSK_RENDERER=cairo", "GTK_A11Y=none"]
            begin = "import gi\ngi.require_version('Gtk', '4.0')\nfrom gi.repository import Gtk\nassert Gtk.init_check()\n"
            (n_rows,) = self.sql("SELECT count(*) FROM package", "packages")
            equal(self.run(*words, "/usr/bin/python3", "-c", begin + block + done_with).strip(), n_rows, "rows of the list")

    @contextlib.contextmanager
    def screen(self):
        words = ["Xvfb", "-displayfd", "1"]
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
            try:
                yield f":{server.stdout.readline().strip()}"
            finally:
                server.terminate()

    def play_aio(self, block):
        body = textwrap.indent(block.replace("import sqlipc.aio\n", ""), "    ")
        program = f"import asyncio\nimport sqlipc.aio\n\nasync def main():\n{body}\n\nasyncio.run(main())\n"
        true("water the plants" in self.run("/usr/bin/python3", "-c", program), "the rows")

    def play_follow(self, block):
        """The loops of docs/python.md do not end; each says something after a change."""
        for part, word in zip(block.split("\n\n"), ("note has changed", "settled"), strict=True):
            program = f"import sqlipc\ndb = sqlipc.connect('notes')\n{part}"
            with self.beside("/usr/bin/python3", "-c", program) as has_said:
                def is_told():
                    self.sql("INSERT INTO note(text) VALUES('again')")
                    return has_said(word)
                wait_for(is_told, word)

    def play_extension(self, block):
        self.run("/usr/bin/python3", "-c", f"import sqlite3\n{block}\nprint(db.execute('PRAGMA module_list').fetchall())")

    def play_settings(self, block):
        folder = self.config.parents[1] / "ipcq"
        folder.mkdir()
        (folder / "config").write_text(block + "\n")
        self.play_shell("ipcq-cli packages .show")

    def play_prompt(self, block):
        """cli/test_prompt.py has .watch, which needs a terminal."""
        lines = [line for line in block.splitlines() if not line.startswith(".watch")]
        (self.folder / "prompt").write_text("\n".join(lines) + "\n")
        true(self.shell("ipcq-cli packages < prompt"), "nothing")

    def play_first_steps(self, block):
        (self.config / "notes.conf").unlink()
        true("water the plants" in self.shell(block), "the row")

    def play_as_root(self, block):
        shutil.copy(self.folder / "packages.sqlite", "/srv/packages.sqlite")
        true("package" in done("bash", "-euc", block), "the tables")
        done("sqlipcctl", "remove", "packages")

    def play(self, block):
        for beginning in ELSEWHERE:
            if block.startswith(beginning):
                return
        for beginning, play in PLAYS.items():
            if re.match(beginning, block):
                try:
                    play(self, block)
                except AssertionError as error:
                    raise AssertionError(f"{error}\nin the block\n{block}") from error
                return
        raise AssertionError(f"nothing says how this block is run:\n{block}")


PLAYS = {
    r"# /etc/sqlipc/databases.d": Reader.play_configuration,
    r"ipcq-cli --list": Reader.play_shell,
    r"busctl ": Reader.play_shell,
    r"ipcq-cli notes \"INSERT": Reader.play_write,
    r"while number=": Reader.play_waits,
    r"r = sqlipc_live_open": Reader.play_fragment,
    r"/\* SPDX": Reader.play_program,
    r"cc ": Reader.play_compile,
    r"sudo apt install [^\n]*\n\nSELECT": Reader.play_packages_and_sql,
    r"sudo apt install": Reader.play_packages,
    r"import gi\n": Reader.play_python_gtk,
    r"import sqlipc\n": Reader.play_python,
    r"import sqlipc.aio\n": Reader.play_aio,
    r"with db\.watch": Reader.play_follow,
    r"\[ipcq\]": Reader.play_settings,
    r"\.tables": Reader.play_prompt,
    r"SELECT load_extension": Reader.play_sql,
    r"db = sqlite3\.connect": Reader.play_extension,
    r"echo \"CREATE TABLE note": Reader.play_first_steps,
    r"sqlipcctl add packages": Reader.play_as_root,
}


def documents():
    """Every block of README.md and docs/python.md works with the packages"""
    with manager() as (home, config):
        reader = Reader(home, config)
        for page, least in (("README.md", 15), ("docs/python.md", 4)):
            found = blocks(HOME / page)
            true(len(found) >= least, f"{page} has only {len(found)} blocks")
            for block in found:
                reader.play(block)


def manual():
    """man -k sqlipc finds every page, and the examples of the pages with first steps work"""
    pages = {path.name for path in (HOME / "docs/man").glob("*.rst")}
    done("mandb", "--quiet", "--create")
    found = {f"{name}.{section}.rst" for name, section in re.findall(r"^(\S+) \((\w+)\)", done("man", "-k", "sqlipc"), re.M)}
    equal(pages - found, set(), "pages that man -k does not find")
    with manager() as (home, config):
        reader = Reader(home, config)
        for page, least in (("ipcq-cli.1", 4), ("sqlipc-extension.7", 2), ("sqlipc.7", 2)):
            found = blocks(HOME / f"docs/man/{page}.rst")
            true(len(found) >= least, f"{page} has only {len(found)} blocks")
            for block in found:
                reader.play(block)


def answered(line, *answers):
    """Runs a command of an administrator at a terminal, who answers its questions; it must succeed."""
    line = line.replace("sudo -u postgres", f"env PGHOST={served.FOLDER} runuser -u postgres --").replace("sudo ", "")
    answers, said, since = list(answers), b"", 0
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir("/srv")
        os.execvp("bash", ["bash", "-euc", line])
    # Text that is typed before its question is lost.
    with contextlib.suppress(OSError):  # The command has closed its terminal.
        while piece := os.read(terminal, 4096):
            said += piece
            if answers and re.search(rb": |\? ", said[since:].rpartition(b"\n")[2]):
                os.write(terminal, f"{answers.pop(0)}\n".encode())
                since = len(said)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])  # before the terminal goes, which would be a SIGHUP
    os.close(terminal)
    equal(code, 0, f"{line}, which said {said.decode()}")
    equal(answers, [], f"questions of {line}, which said {said.decode()}")


def moves():
    """The steps of docs/engines.md move a database to a server of PostgreSQL, and back, as they are written"""
    text = (HOME / "docs/engines.md").read_text()
    role, password, configuration = blocks(HOME / "docs/engines.md")
    verbs = re.findall("`(sudo sqlipcctl [^`]* --to=[^`]*)`", text)
    equal([verb.split()[2] for verb in verbs], ["migrate", "check", "migrate"], "commands of the steps")
    old, new = pathlib.Path("/srv/notes.sqlite"), pathlib.Path("/srv/notes-new.conf")
    with contextlib.closing(sqlite3.connect(old)) as db:
        db.executescript("CREATE TABLE note(id INTEGER PRIMARY KEY, text TEXT); INSERT INTO note(text) VALUES('plants')")
    shutil.chown(old, "sqlipc", "sqlipc")
    pathlib.Path("/srv/queries.sql").write_text("SELECT text FROM note WHERE id = ?;\n")
    host = re.search("^Connection=(.*)$", configuration, re.M)[1]
    (local,) = re.findall(r"`Connection=(host=/run/postgresql [^`]*)`", text)
    (entry,) = re.findall("Add the line `(local [^`]*)`", text)
    new.write_text(configuration.replace(host, local.replace("/run/postgresql", str(served.FOLDER))) + "\n")
    reload = lambda: done("sqlipcctl", "reload")  # noqa: E731
    published = written(DATABASES / "notes.conf", f"[Database]\nPath={old}\nMode=read-write\nAllowUsers=*\n", then=reload)
    with served.server(), published, contextlib.ExitStack() as stack:
        for path in (DATABASES / "notes.conf.before-migration", pathlib.Path("/etc/sqlipc/notes.password")):
            stack.callback(path.unlink, missing_ok=True)
        rules = served.FOLDER / "data/pg_hba.conf"
        rules.write_text(f"{entry}\n{rules.read_text()}")
        served.administer("SELECT pg_reload_conf()")
        for line in role.splitlines():
            answered(line, *["watch words"] * 2 * ("--pwprompt" in line))
        install, ask = password.splitlines()
        answered(install)
        answered(ask, "watch words")
        for verb in verbs:
            answered(verb, *["yes"] * ("migrate" in verb))
        true("Engine=postgresql" in (DATABASES / "notes.conf").read_text(), "it is the server's")
        query("INSERT INTO note(text) VALUES ('bread')", "notes", user="root")
        equal(query("SELECT text FROM note ORDER BY 1", "notes"), "bread\nplants\n", "rows of the server")
        shutil.copy(DATABASES / "notes.conf.before-migration", DATABASES / "notes.conf")
        reload()
        equal(query("SELECT text FROM note", "notes"), "plants\n", "rows of the file")
