#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Random scripts for PostgreSQL with statements inside of strings, dollar quotes, comments and bodies of functions: only the
statements outside are run, as the server runs them one by one.

The shell (from standard input, a file and -c) and executescript() divide a script into statements. Each statement outside
inserts a number and a text with traps, and each trap has statements that insert negative numbers. The table must then equal
that of the server, and have no negative number.

    test_server_scripts.py [--scripts N] [--seed N]
"""
import os
import random
import subprocess
import sys

from settled import option

from harness import CLI, SANITIZED, main, python_package
from postgres import Relay, for_tests
from sizes import LONG
from tap import cases, diagnose, equal, test, true

SEED = option("--seed", random.randrange(2**32))
N_SCRIPTS = option("--scripts", 200 if LONG else 20)
N_STATEMENTS = 12
DB = "scripts"
SCHEMA = "CREATE TABLE ran(place bigint GENERATED ALWAYS AS IDENTITY, n bigint, t text);"
EXECUTE = """
import sqlipc, sys
db = sqlipc.connect(sys.argv[2], bus=sys.argv[1], isolation_level=None)
db.executescript(sys.stdin.read())
"""

server = for_tests(SCHEMA)


class Generator:
    """Makes scripts. A trap is text that holds statements, and is none."""

    def __init__(self, seed):
        self.chance = random.Random(seed)
        self.n = self.n_functions = 0

    def bait(self):
        """Statements that must not run."""
        c = self.chance
        insert = f"INSERT INTO ran(n) VALUES (-{c.randint(1, 999)})"
        return c.choice(("", " ", "\n", "x", "1")) + c.choice((";", "; ", ";\n", "\n;\n")) + insert + c.choice(
            (";", ";\n", "; ROLLBACK;", ";\n.quit\n", "; COMMIT; ", ";\n\\q\n", "; -- ", "; /* "))  # fmt: skip

    def noise(self):
        """Pieces that begin or end another kind of trap."""
        pieces = ("'", '"', "''", "$$", "$a$", "$1", "--", "/*", "*/", "\\", "\\\\", "E'", "BEGIN ATOMIC", "END", "?", ":x",
                  "ä", "$é$", "\n", ";", "U&'")  # fmt: skip
        return "".join(self.chance.choice(pieces) + self.chance.choice((" ", "", "\n"))
                       for _ in range(self.chance.randint(0, 4)))  # fmt: skip

    def inside(self):
        return self.noise() + self.bait() + self.noise()

    def plain(self):
        return "'" + self.inside().replace("'", "''") + "'"

    def escaped(self):
        text = self.inside().replace("\\", "\\\\")
        quote = self.chance.choice(("\\'", "''"))
        end = self.chance.choice(("", "\\\\", "\\'", "\\n"))
        return self.chance.choice("Ee") + "'" + text.replace("'", quote) + end + "'"

    def continued(self):
        """Two literals with a line end between them are one, of the first one's kind."""
        return self.chance.choice((f"E'\\'{self.bait()}'\n  '\\'{self.bait()}'", f"'\\'\n '{self.bait()}'"))

    def dollar(self):
        tag = self.chance.choice(("", "a", "A", "body", "_1", "é"))
        text = self.inside().replace(f"${tag}$", "")
        return f"${tag}${text.rstrip('$')} ${tag}$"

    def comment(self, depth=0):
        """A comment in a comment counts; quotes in it do not."""
        text = self.inside().replace("/*", "").replace("*/", "")
        if depth < 3 and self.chance.random() < 0.5:
            text += self.comment(depth + 1) + self.bait().replace("/*", "").replace("*/", "")
        return f"/*{text} */"

    def line_comment(self):
        return "--" + self.inside().replace("\n", " ") + "\n"

    def name(self):
        return 'AS "' + (self.noise() + self.bait()).replace('"', '""')[:60].replace("\n", " ").rstrip('"') + '"'

    def gap(self):
        return self.chance.choice((" ", "\n", " ", f" {self.comment()} ", f" {self.line_comment()}"))

    def text(self):
        return self.chance.choice((self.plain, self.escaped, self.continued, self.dollar))()

    def function(self):
        """A function that is never called."""
        self.n_functions += 1
        head = f"CREATE FUNCTION f{self.n_functions}(){self.gap()}RETURNS void LANGUAGE"
        bait = f"INSERT INTO ran(n) VALUES (-{self.chance.randint(1, 999)})"
        tag = self.chance.choice(("$$", "$x$"))
        return self.chance.choice((
            f"{head} plpgsql AS {tag} BEGIN {bait}; /* {tag[:-1]} */ {bait}; END; {tag}",
            f"{head} sql BEGIN ATOMIC{self.gap()}{bait};{self.gap()}{bait}; END",
            f"{head} sql BEGIN ATOMIC SELECT CASE WHEN true THEN 1 END; {bait}; END",
            f"{head} sql AS '{bait}; SELECT '''' ;{bait}'",
        ))  # fmt: skip

    def statement(self):
        if self.chance.random() < 0.2:
            return self.function()
        self.n += 1
        return f"INSERT INTO ran(n, t){self.gap()}SELECT {self.n},{self.gap()}{self.text()}{self.gap()}{self.name()}"

    def statements(self):
        return [self.gap() + self.statement() + self.chance.choice(("", self.gap())) for _ in range(N_STATEMENTS)]


def ran(database):
    """Returns the numbers and texts, in the order of the statements."""
    text = "encode(convert_to(t, 'UTF8'), 'hex')"
    return server.sql(f"SELECT n, {text} FROM (SELECT * FROM ran ORDER BY place) AS r", database)


def ways(service):
    """Each way to run a script, as a command whose standard input it is."""
    shell = [CLI, f"--address={service.address}", "--no-init", "--bail"]
    program = ["/usr/bin/python3", "-c", EXECUTE, service.address]
    return {
        "shell": lambda name, script: (([*shell, name]), script),
        "shell, -f": lambda name, script: (([*shell, "-f", "-", name]), script),
        "shell, -c": lambda name, script: (([*shell, "-c", script, name]), ""),
        "executescript()": lambda name, script: ([*program, name], script),
    }  # fmt: skip


def one_by_one(statements):
    """Gives the statements to the server as they are. psql itself would divide some wrongly: it reads line by line, and
    forgets that a literal goes on after a line end."""
    command = [f"{server.programs}/psql", "-XAtq", "-v", "ON_ERROR_STOP=1", "-h", server.folder, "-U", "postgres", "psql"]
    for statement in statements:
        command += ["-c", statement]
    done = subprocess.run(command, capture_output=True, check=False)
    equal(done.returncode, 0, f"{done.stderr.decode()}\n{statements}")


@test
def bodies_are_not_run():
    """Statements within strings, dollar quotes, comments, names and bodies of functions are never run"""
    diagnose(f"--seed {SEED}")
    names = ["psql", *(f"{DB}{i}" for i in range(4))]
    for name in names:
        server.sql(f"CREATE DATABASE {name} TEMPLATE postgres", "template1")
    keys = {name: {"Connection": server.connection("postgres", name), "Mode": "read-write", "WriteSchema": "yes"}
            for name in names[1:]}  # fmt: skip
    n_statements = 0
    with Relay(keys) as service:
        environment = service.environment | python_package() | {"HOME": str(service.data)}
        for i in range(N_SCRIPTS if not SANITIZED else N_SCRIPTS // 4):
            generator = Generator(f"{SEED} {i}")
            generator.n_functions = i * N_STATEMENTS
            statements = generator.statements()
            script = ";".join(statements) + ";\n"
            one_by_one(statements)
            expected = ran("psql")
            true(len(expected) == generator.n and not any(line.startswith("-") for line in expected),
                 f"script {i}: the server ran {len(expected)} of {generator.n}\n{script}")  # fmt: skip
            for (what, way), name in zip(ways(service).items(), names[1:]):
                command, text = way(name, script)
                done = subprocess.run(command, input=text.encode(), capture_output=True, env=environment, check=False)
                said = done.stderr.decode(errors="replace")[-1500:]
                got = ran(name)
                equal((done.returncode, got), (0, expected), f"{what}, --seed {SEED}, script {i}: {said}\n{script}")
                n_statements += generator.n
            for name in names:
                server.sql("TRUNCATE ran", name)
    cases("statement of a script", n_statements, "a statement for PostgreSQL beside traps that hold statements")


main(server)
