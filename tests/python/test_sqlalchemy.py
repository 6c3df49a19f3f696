#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""SQLAlchemy's own tests of dialects, with the dialect of this package; and programs that use SQLAlchemy.

SQLAlchemy 2 and pytest come from the registry of Python's packages, into a folder of the build, once. "test_sqlalchemy.py
both" also runs the suite with SQLAlchemy's dialect for SQLite, and with the excluded cases: each must fail there, too.
"""

import os
import re
import subprocess
import sys

from harness import BUILD_ROOT, SOURCE_ROOT, main
from python_service import PythonService
from tap import Skip, diagnose, equal, test, true

SUITE = SOURCE_ROOT / "tests/python/sqlalchemy_suite"
VENV = BUILD_ROOT / "sqlalchemy-venv"
BOTH = "both" in sys.argv[1:]
if BOTH:
    sys.argv.remove("both")

service = PythonService()
service.add("alchemy")
PROGRAM = """
import sqlalchemy as sa
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

class Base(DeclarativeBase):
    pass

class Artist(Base):
    __tablename__ = "Artist"
    ArtistId: Mapped[int] = mapped_column(primary_key=True)
    Name: Mapped[str]

engine = sa.create_engine("sqlipc://user/chinook")
with Session(engine) as session:
    print(session.scalars(sa.select(Artist.Name).where(Artist.ArtistId < 3)).all())
print(len(sa.inspect(engine).get_table_names()))
print(engine.dialect.server_version_info >= (3, 40), sa.create_engine("sqlipc:///x?timeout=3").url.database)
for url in ("sqlipc://elsewhere/x", "sqlipc://user"):
    try:
        sa.create_engine(url).connect()
    except sa.exc.ArgumentError as error:
        print("refused")
"""
ARGUMENTS = """
import sqlalchemy as sa
import sqlipc

def arguments(url):
    engine = sa.create_engine(url)
    return engine.dialect.create_connect_args(engine.url)[1]

passed = arguments("sqlipc:///x?bus=user&host=box&timeout=3&isolation_level=IMMEDIATE&detect_types=2"
                   "&check_same_thread=true&cached_statements=7")
assert passed == dict(bus="user", host="box", timeout=3.0, isolation_level="IMMEDIATE", detect_types=2,
                      check_same_thread=True, cached_statements=7), passed
assert arguments("sqlipc://system/x?host=box") == dict(bus="system", host="box", check_same_thread=False)
for url in ("sqlipc:///x?hots=box", "sqlipc:///x?host=a&host=b", "sqlipc:///x?timeout=soon", "sqlipc:///x?mode=ro",
            "sqlipc:///x?check_same_thread=perhaps", "sqlipc:///x?cached_statements=1.5", "sqlipc:///x?uri=true",
            "sqlipc://user/x?bus=system", "sqlipc://me@user/x", "sqlipc://user:5/x"):
    try:
        print(url, arguments(url))
    except sa.exc.ArgumentError:
        pass
class Connection:
    isolation_level = "IMMEDIATE"

dialect = sa.create_engine("sqlipc:///x?isolation_level=IMMEDIATE").dialect
for level, meant in (("AUTOCOMMIT", None), ("SERIALIZABLE", "IMMEDIATE")):
    dialect.set_isolation_level(Connection, level)
    assert Connection.isolation_level == meant, (level, Connection.isolation_level)
calls = []
def connect(*arguments, **keywords):
    calls.append((arguments, keywords))
    raise sqlipc.OperationalError("not here")
sqlipc.connect = connect
try:
    sa.create_engine("sqlipc:///main?host=box&isolation_level=EXCLUSIVE").connect()
except sa.exc.OperationalError:
    pass
assert calls == [(("main",), dict(host="box", isolation_level="EXCLUSIVE", check_same_thread=False))], calls
"""


def python():
    """Returns the interpreter that has SQLAlchemy 2 and pytest."""
    program = VENV / "bin/python"
    check = [program, "-c", "import sqlalchemy, pytest; assert sqlalchemy.__version__ >= '2'"]
    if not program.exists() or subprocess.run(check, capture_output=True, check=False).returncode != 0:
        subprocess.run([sys.executable, "-m", "venv", VENV], check=True)
        packages = ["sqlalchemy>=2.0,<2.1", "pytest"]
        done = subprocess.run([program, "-m", "pip", "install", "--quiet", *packages], capture_output=True, check=False)
        if done.returncode != 0:
            raise Skip("SQLAlchemy 2 cannot be installed: " + done.stderr.decode().strip().split("\n")[-1])
    return program


def environment(**more):
    paths = [BUILD_ROOT / "client-lib/python", SUITE]
    return os.environ | {"DBUS_SESSION_BUS_ADDRESS": service.address, "PYTHONPATH": ":".join(map(str, paths))} | more


def suite(url, log, **more):
    """Runs the suite; returns the results of all its cases by their names."""
    command = [
        python(),
        "-m",
        "pytest",
        SUITE / "dialect_suite.py",
        f"--rootdir={SUITE}",
        "-q",
        "-rA",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:logging",
    ]
    command += ["-p", "no:warnings", "--dburi", url, "--disable-asyncio", "--tb=short", "--maxfail=1000000"]
    with open(service.folder / log, "w+", encoding="utf-8") as output:
        subprocess.run(command, env=environment(**more), cwd=service.folder, stdout=output, stderr=output, check=False)
        output.seek(0)
        text = output.read()
    lines = re.findall(
        r"^(PASSED|FAILED|ERROR) \S*dialect_suite\.py::(\S+?)_sqlite\+\w+?(?:_\d+)+::(.*?)(?: - .*)?$", text, re.M
    )
    if not lines:
        diagnose(text[-3000:])
    return {f"{of_class}::{case}": result for result, of_class, case in lines}, text


@test
def program():
    """A program with the ORM finds the dialect by its entry point"""
    done = subprocess.run([python(), "-c", PROGRAM], env=environment(), capture_output=True, text=True, check=False)
    equal(
        (done.stdout.splitlines(), done.stderr),
        (["['AC/DC', 'Accept']", "11", "True x", "refused", "refused"], ""),
        "output",
    )


@test
def arguments_of_urls():
    """All arguments of a URL reach connect(); one that is unknown, repeated, malformed or contradictory is an error"""
    done = subprocess.run([python(), "-c", ARGUMENTS], env=environment(), capture_output=True, text=True, check=False)
    equal((done.stdout, done.stderr), ("", ""), "URLs that were taken, and failures")


@test
def dialect_suite():
    """SQLAlchemy's suite passes"""
    results, text = suite("sqlipc://user/alchemy", "sqlipc.log")
    failed = [case for case, result in results.items() if result != "PASSED"]
    if failed:
        diagnose(text[-60000:])
    equal(failed, [], "cases that fail")
    true(len(results) > 500, f"only {len(results)} cases ran")
    diagnose(f"{len(results)} cases passed")


if BOTH:

    @test
    def as_far_as_sqlite():
        """What passes with SQLAlchemy's dialect for SQLite passes with ours; what is excluded fails with both"""
        ours, _ = suite("sqlipc://user/alchemy", "both-sqlipc.log", SQLIPC_TEST_EXCLUDED="1")
        theirs, _ = suite("sqlite://", "both-sqlite.log", SQLIPC_TEST_EXCLUDED="1")
        passed = {case for case, result in theirs.items() if result == "PASSED"}
        equal(sorted(case for case in passed if ours.get(case) != "PASSED"), [], "cases that pass with SQLite only")
        for case in sorted(set(theirs) - passed):
            diagnose(f"fails with SQLite, too: {case}: {ours.get(case)}")


main(service)
