# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs every block of README.md, docs and the manual with our packages.

A block belongs to a play by the words with which it begins. A block that no play knows fails the test.
"""
import contextlib
import os
import pathlib
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import textwrap

import served
from machine import (
    DATABASES, HOME, STATE, UNIT, USER, command, done, dropped, manager, published, query, refused, session, stop,
    wait_for, words_of, written,
)  # fmt: skip
from pages import IN_A_BUILD, OF_A_CHECKOUT, PAGES, blocks, commands, screen, text_of
from tap import equal, true

sys.path.insert(0, str(HOME / "tests/cli"))
from terminal import Terminal  # noqa: E402

# Blocks that others run, by their beginnings.
ELSEWHERE = (
    re.compile("import adbc_driver_manager"),  # adbc/adbc_programs, which has the packages from Python's registry
    re.compile("PRAGMA foreign_keys = OFF;"),  # python/test_keys.py, with sqlite3
    re.compile("TZ=America/New_York ipcq-cli "),  # python/test_time_zone.py
    re.compile("(?:[0-9a-f]{8}|[0-9a-f]{2}) [0-9a-f]{2} "),  # vectors, and bus/library_channel
)
# test_package.py does these, and installs() of inside_package.py.
BY_BUILD = ("dpkg-buildpackage ", "lintian ", "sudo apt install ../")
# Groups that pages name; USER belongs to one.
GROUPS = f"accounting:x:4240:{USER}\ntelephone:x:4241:\ndomain users:x:4242:\nsupport:x:4243:\nsales:x:4244:\n"
# These need the network: python/test_install.py and adbc/make-environment.sh do them.
BY_PIP = ("python3 -m venv ", "pip install ", "environment/bin/pip install ")


class Reader:
    """USER at the keyboard, in a folder with the files that the pages speak of."""

    def __init__(self, home, config):
        self.home = home
        self.config = config
        self.folder = home / "work"
        self.folder.mkdir()
        (self.folder / "migration.sql").write_text("INSERT INTO note(author) VALUES('bob'), ('cid');\n")
        (self.folder / "people.csv").write_text("name,age\nann,34\n")
        self.database("packages", """CREATE TABLE package(name TEXT PRIMARY KEY, version, installed_size INT, section);
            CREATE TABLE dependency(package TEXT, depends_on TEXT);
            WITH n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 500)
            INSERT INTO package SELECT 'lib' || x, x || '.0-1', x * 1000, 'libs' FROM n;
            INSERT INTO dependency SELECT name, 'libc6' FROM package;
            INSERT INTO package VALUES('nmap', '7', 4000, 'net');""")
        self.database("notes", "CREATE TABLE note(id INTEGER PRIMARY KEY, author TEXT, text TEXT);", "Mode=read-write",
                      "WriteSchema=yes")
        with contextlib.closing(sqlite3.connect(home / "music.sqlite")) as db:
            db.execute("CREATE TABLE track(name TEXT)")
        done("chown", "-R", f"{USER}:{USER}", home)

    def database(self, name, schema, *lines):
        path = self.folder / f"{name}.sqlite"
        with contextlib.closing(sqlite3.connect(path)) as db:
            db.executescript(schema)
        self.publish(name, path, *lines)

    def publish(self, name, path, *lines):
        (self.config / f"{name}.conf").write_text("\n".join(["[Database]", f"Path={path}", *lines, ""]))

    def run(self, *words):
        """Runs a command, which must succeed and write nothing to standard error; returns its output."""
        result = command(*session(), *words, user=USER, cwd=self.folder)
        equal((result.returncode, result.stderr), (0, ""), "exit code and standard error")
        return result.stdout

    def shell(self, block):
        return self.run("bash", "-euo", "pipefail", "-c", "\n".join(commands(block)))

    def copy(self, path, name="packages", owner="root"):
        """Makes a copy of a database for the system's service."""
        pathlib.Path(path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(self.folder / f"{name}.sqlite", path)
        pathlib.Path(path).chmod(0o644)
        shutil.chown(path, owner, owner)
        return path

    def sql(self, sql, database="notes"):
        """Returns the rows of the output, without the column names."""
        return self.run("ipcq-cli", "--mode=list", database, sql).splitlines()[1:]

    @contextlib.contextmanager
    def beside(self, *words):
        """A program that does not end by itself; its output goes to a file."""
        output = self.folder / "output"
        words = words_of(USER, *session(), "PYTHONUNBUFFERED=1", *words)
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
        self.copy(path)
        (self.config / "again.conf").write_text(block)
        self.run("sqlipcctl", "--user", "check")
        self.run("sqlipcctl", "--user", "reload")
        equal(self.sql("SELECT count(*) FROM package", "again"), ["501"], "rows")
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
        """C that is no program: the compiler takes it within a function, or as one."""
        names = "sqlipc_connection *connection, sqlipc_live *live, const sqlipc_live_change *change, void *list, int r"
        body = block if block.startswith("static ") else f"int f({names});\nint f({names}) {{{{\n{block}\n}}\nreturn r; }}"
        (self.folder / "fragment.c").write_text(f"""#include <inttypes.h>\n#include <stdio.h>\n#include <sqlipc.h>
            void apply(void *list, const sqlipc_live_change *change);
            int show_messages(sqlipc_connection *connection);\n{body}\n""")
        self.shell("cc -Wall -Werror -Wno-unused-function -c fragment.c $(pkg-config --cflags libsqlipc)")

    def play_types(self, block):
        """Structures of the synopsis are those of the header."""
        names = re.findall(r"^} sqlipc_(\w+);$", block, re.M)
        own = re.sub(rf"sqlipc_({'|'.join(names)})\b", r"own_\1", block)
        checks = [f'_Static_assert(sizeof(own_{name}) == sizeof(sqlipc_{name}), "{name}");' for name in names]
        (self.folder / "types.c").write_text("\n".join(["#include <sqlipc.h>", own, *checks, ""]))
        self.shell("cc -Wall -Werror -c types.c $(pkg-config --cflags libsqlipc)")

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
        is_silent = "sqlipc.connect(\"notes\")" in block or "sys.modules" in block
        true(self.run("/usr/bin/python3", "-c", block) or is_silent, "printed nothing")

    def play_python_gtk(self, block):
        with screen() as variables:
            done_with = "\nfrom gi.repository import GLib\ncontext = GLib.MainContext.default()\n" \
                "while not model.is_settled(): context.iteration(True)\nprint(model.get_n_items())\n"
            begin = "import gi\ngi.require_version('Gtk', '4.0')\nfrom gi.repository import Gtk\nassert Gtk.init_check()\n"
            (n_rows,) = self.sql("SELECT count(*) FROM package", "packages")
            said = self.run("env", *variables, "/usr/bin/python3", "-c", begin + block + done_with)
            equal(said.strip(), n_rows, "rows of the list")

    def play_tutorial(self, page):
        self.sql("INSERT INTO note(author) VALUES('ann')")
        (n_rows,) = self.sql("SELECT count(*) FROM package", "packages")
        with screen() as variables:
            said = self.run("env", *variables, "/usr/bin/python3", HOME / "tests/glib/glib_tutorial.py", page).splitlines()
        equal(said[0], "nmap 4000", "the rows of a section")
        true(said[1].endswith(" 7") and "nothing" in said[1], f"an error, and its place: {said[1]}")
        equal(said[2:], ["1", f"4 blocks, read this, {n_rows} rows in ColumnView"], "a change; the list")

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
        words = words_of(USER, *session(), "TERM=xterm-256color", "LANG=C.UTF-8", "ipcq-cli", "--no-pager", "packages")
        with Terminal(words, os.environ, size=(60, 120), cwd=self.folder) as terminal:
            at_prompt = lambda: re.fullmatch(r"[^\s<>]+>", terminal.cursor_line())  # noqa: E731
            for line in commands(block):
                terminal.wait_for(at_prompt, "a prompt")
                size = len(terminal.raw)  # before the echo the last prompt is on the screen
                terminal.send(f"{line}\r")
                terminal.wait_for(lambda size=size: len(terminal.raw) > size, "its echo")
                if line.startswith(".watch"):
                    terminal.wait_for(lambda: re.search(r"^ *\d{3}$", terminal.text(), re.M), "its row")
                    terminal.send("\x03")
            terminal.wait_for(at_prompt, "a prompt")
            true("Error" not in terminal.raw.decode(), f"it said {terminal.raw.decode()}")
        (n_rows,) = self.sql("SELECT count(*) FROM package", "packages")
        equal(len((self.folder / "copy.csv").read_text().splitlines()), 1 + int(n_rows), "lines of the export")

    def play_first_steps(self, block):
        (self.config / "notes.conf").unlink()
        true("water the plants" in self.shell(block), "the row")

    def play_as_root(self, block):
        self.copy("/srv/packages.sqlite")
        true("package" in done("bash", "-euc", block), "the tables")
        done("sqlipcctl", "remove", "packages")

    def play_unit(self, block):
        true(done("bash", "-euc", block), "the settings")

    def play_look_inside(self, block):
        for line in commands(block):
            self.sql("SELECT 1")  # now there is a service with a worker
            if line.startswith(("strace", "perf")):  # They do not end, and are not everywhere, or not allowed.
                result = command("timeout", "--signal=INT", "1", "bash", "-c", line)
                true(result.returncode in (0, 124, 127) or "ermission" in result.stderr, f"{line}: {result}")
            elif " monitor " in line:
                with self.beside("bash", "-c", line) as has_said:
                    wait_for(lambda: self.sql("SELECT 1") and has_said("org.sqlipc1"), "a message")
            else:
                true(self.shell(line) or "log-level" in line, f"printed nothing: {line}")

    def play_bench(self, block):
        """Each command at its smallest size, by USER on its bus, or by root on the system's."""
        by_root, on_server = "--system" in block, "--postgres=CONNINFO" in block
        folder = pathlib.Path("/srv/bench") if by_root else self.folder / "bench"
        done("install", "-d", "-o", "root" if by_root else USER, folder)
        run = (lambda line: done("bash", "-euc", line)) if by_root else self.shell
        connection = f"host={self.folder} dbname=postgres"
        smallest = {
            "FOLDER": str(folder), "NAME": "served", "CONNINFO": f"'{connection}'", "--size=full": "",
            r"--rounds=\d+": "--rounds=1", r"--time=\w+": "--time=1s", "--kind=": "--rows=1000 --kind=",
        }
        with contextlib.ExitStack() as stack:
            stack.callback(shutil.rmtree, folder)
            if on_server:
                self.run(served.programs() / "initdb", "-A", "trust", "-N", "-D", self.folder / "server")
                words = [served.programs() / "postgres", "-D", self.folder / "server", "-k", self.folder]
                stack.enter_context(self.beside(*words, "-c", "listen_addresses="))
                wait_for(lambda: command("pg_isready", "-q", "-h", self.folder).returncode == 0, "PostgreSQL answers")
                (self.config / "served.conf").write_text(f"[Database]\nEngine=postgresql\nConnection={connection}\n")
            for line in [*[f"sqlipc-bench dataset --all={folder}"] * (" dataset " not in block), *commands(block)]:
                for pattern, text in smallest.items():
                    line = re.sub(pattern, text, line)
                verb = line.split()[1]
                line = line.replace("FILE", f"{folder}/{({'bulk': 'study', 'small': 'point'}).get(verb, verb)}.sqlite")
                run(line if verb == "soak" or "--rows" in line else f"{line} --size=tiny")
                if verb == "dataset":
                    self.publish_datasets(stack, by_root, folder)

    def publish_datasets(self, stack, by_root, folder):
        for path in [*folder.glob("*.sqlite"), *pathlib.Path("/srv").glob("study.sqlite")]:
            lines = ["Mode=read-write"] * path.stem.startswith("write")
            if by_root:
                stack.enter_context(published(path.stem, path, "AllowUsers=*", *lines))
            else:
                self.publish(path.stem, path, *lines)
        if not by_root:
            self.run("sqlipcctl", "--user", "reload")

    def play_on_system_bus(self, block):
        path = self.copy("/srv/packages.sqlite")
        with published("packages", path, "AllowUsers=*"):
            for line in commands(block):
                if "WaitChange" not in line:
                    self.play_shell(line)
                    continue
                insert = "INSERT INTO package(name) VALUES(random())"
                with contextlib.closing(sqlite3.connect(path, timeout=120, isolation_level=None)) as db, \
                        self.beside("bash", "-c", line) as has_said:
                    wait_for(lambda: db.execute(insert) and has_said("a{sv}"), "the change")  # noqa: B023

    def play_log(self, block):
        """The service refuses a database to a user, and the journal says so."""
        with published("music", self.copy("/srv/music.sqlite"), "AllowUsers=root"):
            refused("ipcq-cli", "--system", "music", "SELECT 1", user=USER)
            for line in commands(block):
                said = lambda: done("bash", "-euc", line)  # noqa: B023, E731 - it is called here
                if "journalctl" in line:
                    wait_for(lambda: "music" in said(), line)
                else:
                    said()

    def play_service_folder(self, block):
        self.copy("/srv/music.sqlite")
        done("bash", "-euc", block, cwd="/srv")
        with published("music", STATE / "music.sqlite", "AllowUsers=*"):
            equal(query("SELECT count(*) FROM package", "music"), "501\n", "rows")
        (STATE / "music.sqlite").unlink()

    def play_drop_in(self, block):
        """systemd has no complaint, and the service starts."""
        self.drop_in = block + "\n"
        pathlib.Path("/srv/notes").mkdir(exist_ok=True)
        with written("/etc/sqlipc/orders.password", "sesame"), dropped(self.drop_in):
            equal(command("systemd-analyze", "verify", "--man=no", UNIT).stderr, "", "complaints of systemd")
            done("systemctl", "start", UNIT)

    def play_acl(self, block):
        self.run("bash", "-euc", block)
        with dropped(self.drop_in), published("music", self.home / "music.sqlite", "AllowUsers=*"):
            equal(query("SELECT count(*) FROM track", "music"), "0\n", "rows")

    def play_limit_of_bus(self, block):
        limit, config = self.folder / "limit.conf", self.folder / "bus.conf"
        limit.write_text(block)
        config.write_text(f"<busconfig><listen>unix:tmpdir=/tmp</listen><include>{limit}</include></busconfig>")
        os.kill(int(done("dbus-daemon", f"--config-file={config}", "--fork", "--print-pid")), signal.SIGTERM)

    def play_own(self, block):
        true("count(*)" in self.shell(block), "the column")

    def play_published(self, block):
        """sqlipcctl(1) finds no error in a file of /etc/sqlipc/databases.d, or in this file and its drop-in."""
        path = re.search("^Path=(.*)$", block, re.M)
        if path:
            self.copy(path[1], owner="sqlipc")
            shutil.chown(pathlib.Path(path[1]).parent, "sqlipc", "sqlipc")
        is_drop_in = not path and "Engine=" not in block
        self.published = self.published if is_drop_in else block
        with written(DATABASES / "example.conf", self.published + "\n"):
            if is_drop_in:
                with written(DATABASES / "example.conf.d/50-local.conf", block + "\n"):
                    done("sqlipcctl", "check")
                (DATABASES / "example.conf.d").rmdir()
            else:
                done("sqlipcctl", "check")
        shutil.rmtree(STATE / "databases", ignore_errors=True)

    def play_limits(self, block):
        with written("/etc/sqlipc/sqlipcd.conf", block + "\n"):
            done("sqlipcctl", "check")

    def play_polkit(self, block):
        with written("/etc/polkit-1/rules.d/50-sqlipc.rules", block + "\n"), \
                published("accounts", self.copy("/srv/accounts.sqlite"), "Polkit=yes"):
            wait_for(lambda: command("ipcq-cli", "--system", "accounts", "SELECT 1", user=USER).returncode == 0, "the rule")
            refused("ipcq-cli", "--system", "accounts", "SELECT 1", user="nobody")

    def play_trigger(self, sql):
        with served.server():
            served.administer("CREATE TABLE orders(id int)")
            served.administer(sql)
            true("public.orders" in served.administer("LISTEN sqlipc_changes; INSERT INTO orders VALUES (1)"), "it is told")

    def play_stream(self, block):
        program = "import struct, sys\nsys.path.insert(0, '/usr/share/doc/libsqlipc-dev/examples')\nimport page_decoder\n" \
            f"{block}\nprint(page_decoder.decode(columns + rows + end))"
        true("42" in self.run("/usr/bin/python3", "-c", program), "the row")

    def play_administration(self, block):
        """An administrator, at a terminal, with a server of PostgreSQL."""
        self.copy(STATE / "packages.sqlite", owner="sqlipc")
        pathlib.Path("/srv/notes.sql").write_text("CREATE TABLE note(id INTEGER PRIMARY KEY, text TEXT);\n")
        lines = "Engine=postgresql", f"Connection=host={served.FOLDER} dbname=notes user=sqlipc-engine", "Mode=read-write"
        pathlib.Path("/srv/notes-on-server.conf").write_text("\n".join(["[Database]", *lines, ""]))
        with served.server(), contextlib.ExitStack() as stack:
            names = ("packages.conf", "notes.conf", "notes.conf.before-migration")
            for path in (STATE / "packages.sqlite", *(DATABASES / name for name in names)):
                stack.callback(path.unlink, missing_ok=True)
            stack.callback(shutil.rmtree, STATE / "databases", ignore_errors=True)
            stack.callback(stop)
            served.administer('CREATE DATABASE notes OWNER "sqlipc-engine"')
            for line in commands(block):
                answered(line, *["yes"] * (" migrate " in line), quits=" top " in line)
            served.administer("DROP DATABASE notes WITH (FORCE)")

    def play(self, block):
        if OF_A_CHECKOUT.match(block):
            equal([line for line in commands(block) if not OF_A_CHECKOUT.match(line) and not line.startswith(BY_BUILD)], [],
                  "commands that neither a checkout nor the build of packages has")
            return
        if any(form.match(block) for form in ELSEWHERE):
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
    r"busctl --user tree .*\nsystemctl": Reader.play_look_inside,
    r"busctl ": Reader.play_shell,
    r"ipcq-cli notes \"INSERT": Reader.play_write,
    r"ipcq-cli notes \"ATTACH": Reader.play_shell,
    r"while number=": Reader.play_waits,
    r"r = sqlipc_live_open|sqlipc_connection \*|int64_t |static int ": Reader.play_fragment,
    r"typedef struct": Reader.play_types,
    r"/\* SPDX": Reader.play_program,
    r"cc ": Reader.play_compile,
    r"sudo apt install [^\n]*\n\nSELECT": Reader.play_packages_and_sql,
    r"sudo apt install": Reader.play_packages,
    r"import gi\n": Reader.play_python_gtk,
    r"import sqlipc\n": Reader.play_python,
    r"import sqlipc.aio\n": Reader.play_aio,
    r"import sys\n\nimport sqlipc\n": Reader.play_python,
    r"with db\.watch": Reader.play_follow,
    r"\[ipcq\]": Reader.play_settings,
    r"\.tables": Reader.play_prompt,
    r"SELECT load_extension": Reader.play_sql,
    r"db = sqlite3\.connect": Reader.play_extension,
    r"echo \"CREATE TABLE note": Reader.play_first_steps,
    r"sqlipcctl add packages": Reader.play_as_root,
    r"sqlipcctl check": Reader.play_administration,
    r"systemd-analyze ": Reader.play_unit,
    r"sqlipc-bench ": Reader.play_bench,
    r"\$ (?:busctl|dbus-send) ": Reader.play_on_system_bus,
    r"\$ (?:journalctl|systemctl) ": Reader.play_log,
    r"\$ mkdir ": Reader.play_own,
    r"systemctl start": Reader.play_service_folder,
    r"\[Service\]": Reader.play_drop_in,
    r"\[Database\]": Reader.play_published,
    r"\[Limits\]": Reader.play_limits,
    r"setfacl ": Reader.play_acl,
    r"<busconfig>": Reader.play_limit_of_bus,
    r"polkit\.": Reader.play_polkit,
    r"CREATE FUNCTION": Reader.play_trigger,
    r"def frame": Reader.play_stream,
}


def documents():
    """Every block of README.md, docs and the manual works with the packages"""
    with open("/etc/group", "a", encoding="ascii") as file:
        file.write(GROUPS)
    failed = []
    for page in PAGES:
        text = text_of(page, *IN_A_BUILD * (page.name == "HACKING.md"))
        plays = [(Reader.play, block) for block in blocks(page, text)]
        if page.name == "tutorial.md":
            plays = [(Reader.play_tutorial, page)]
        if plays and page != HOME / "docs/engines.md":  # moves() plays that
            with manager() as (home, config):
                reader = Reader(home, config)
                for play, what in plays:
                    try:
                        play(reader, what)
                    except (AssertionError, OSError) as error:
                        failed.append(f"{page.name}: {error}")
    true(len(PAGES) > 40, f"only {PAGES}")
    true(not failed, "\n\n".join(failed))


def manual():
    """man -k sqlipc finds every page"""
    pages = {path.name for path in PAGES if path.suffix == ".rst"}
    done("mandb", "--quiet", "--create")
    found = {f"{name}.{section}.rst" for name, section in re.findall(r"^(\S+) \((\w+)\)", done("man", "-k", "sqlipc"), re.M)}
    equal(pages - found, set(), "pages that man -k does not find")


def answered(line, *answers, quits=False):
    """Runs a command of an administrator at a terminal, who answers its questions, or quits by a key; it must succeed."""
    line = line.replace("sudo -u postgres", f"env PGHOST={served.FOLDER} runuser -u postgres --").replace("sudo ", "")
    with Terminal(["bash", "-euc", line], os.environ, cwd="/srv") as terminal:
        for answer in answers:
            before = len(terminal.raw)  # Text that is typed before its question is lost.
            asks = lambda: re.search(rb": |\? ", terminal.raw[before:].rpartition(b"\n")[2])  # noqa: B023, E731
            terminal.wait_for(asks, "a question")
            terminal.send(f"{answer}\n")
        if quits:
            terminal.wait_for(" clients")
            terminal.send("q")
        equal(terminal.wait_exit(), 0, f"{line}, which said {terminal.raw.decode()}")


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
