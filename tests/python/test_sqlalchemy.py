#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""SQLAlchemy's own tests of dialects, with the dialect of this package; and programs that use SQLAlchemy.

SQLAlchemy 2 and pytest come from the registry of Python's packages, into a folder of the build, once. "test_sqlalchemy.py
both" also runs the suite with SQLAlchemy's dialect for SQLite, in which the excluded cases must fail, too.
"""

import fnmatch
import os
import re
import signal
import subprocess
import sys

import broken_schema
from harness import BUILD_ROOT, PATIENCE, SOURCE_ROOT, children, main, sqlalchemy_python, wait_for
from python_service import PythonService
from tap import diagnose, equal, test, true

SUITE = SOURCE_ROOT / "tests/python/sqlalchemy_suite"
BOTH = "both" in sys.argv[1:]
if BOTH:
    sys.argv.remove("both")

service = PythonService(limits={"TransactionsMax": 8})  # so that some programs meet it
service.add("alchemy")
SUMS = "CREATE TABLE number(id INTEGER PRIMARY KEY, n); INSERT INTO number VALUES (1, 0)"
service.add("sums", SUMS)
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
            "sqlipc:///x?check_same_thread=perhaps",
            "sqlipc:///x?autocommit=perhaps", "sqlipc:///x?cached_statements=1.5", "sqlipc:///x?uri=true",
            "sqlipc://user/x?bus=system", "sqlipc://me@user/x", "sqlipc://user:5/x"):
    try:
        print(url, arguments(url))
    except sa.exc.ArgumentError:
        pass
for text, value in (("true", True), ("false", False), ("legacy", sqlipc.LEGACY_TRANSACTION_CONTROL)):
    assert arguments("sqlipc:///x?autocommit=" + text)["autocommit"] is value, text
calls = []
def connect(*arguments, **keywords):
    calls.append((arguments, keywords))
    raise sqlipc.OperationalError("not here")
sqlipc.connect = connect
for url, connect_args in (("sqlipc:///main?host=box&isolation_level=EXCLUSIVE", {}), ("sqlipc:///main", {}),
                          ("sqlipc:///main?autocommit=legacy", {}), ("sqlipc:///main", {"isolation_level": None}),
                          ("sqlipc:///main", {"autocommit": True})):
    try:
        sa.create_engine(url, connect_args=connect_args).connect()
    except sa.exc.OperationalError:
        pass
passed = [{"host": "box", "isolation_level": "EXCLUSIVE"}, {"autocommit": False},
          {"autocommit": sqlipc.LEGACY_TRANSACTION_CONTROL}, {"isolation_level": None}, {"autocommit": True}]
assert calls == [(("main",), {"check_same_thread": False} | keywords) for keywords in passed], calls
"""
LOST = """
import sys
import sqlalchemy as sa

for pings in (True, False):
    engine = sa.create_engine("sqlipc://user/alchemy", pool_pre_ping=pings)
    with engine.connect() as connection:
        connection.execute(sa.text("CREATE TEMP TABLE note AS SELECT 1 AS a"))
        connection.commit()
        held = connection.connection.dbapi_connection
    print("lose", flush=True)
    sys.stdin.readline()
    failures = []
    for _ in range(3):
        try:
            with engine.connect() as connection:
                connection.execute(sa.text("SELECT 1")).all()
                assert connection.connection.dbapi_connection is not held, pings
        except sa.exc.OperationalError as error:
            failures.append((error.orig.service_error.rpartition(".")[2], error.connection_invalidated))
    assert failures == ([] if pings else [("PinLost", True)]), (pings, failures)
    engine.dispose()
"""
CONNECT = """
import sqlalchemy as sa

engine = sa.create_engine("sqlipc://user/alchemy")

@sa.event.listens_for(engine, "connect")
def on_connect(connection, record):
    cursor = connection.cursor()
    for pragma in ("foreign_keys=ON", "journal_mode=WAL", "synchronous=NORMAL", "busy_timeout=5000", "cache_size=-64000",
                   "temp_store=MEMORY", "mmap_size=134217728"):
        cursor.execute("PRAGMA " + pragma)
    cursor.close()

metadata = sa.MetaData()
table = sa.Table("begun", metadata, sa.Column("id", sa.Integer, primary_key=True))
with engine.begin() as connection:
    for name, value in (("foreign_keys", 1), ("journal_mode", "wal"), ("busy_timeout", 5000)):
        assert connection.execute(sa.text("PRAGMA " + name)).scalar() == value, name
    for i in range(2):
        connection.execute(sa.schema.CreateTable(table, if_not_exists=True))
    assert connection.execute(table.insert().returning(table.c.id)).scalar() == 1
assert sa.inspect(engine).get_schema_names() == ["main"]
with engine.begin() as connection:
    for i in range(2):
        connection.execute(sa.schema.DropTable(table, if_exists=True))
"""
LEVELS = """
import sqlalchemy as sa

S, R, A = "SERIALIZABLE", "READ COMMITTED", "AUTOCOMMIT"
for query, keywords, level, mode in (
    ("", {}, S, (False, "")),
    ("?autocommit=legacy", {}, R, (-1, "")),
    ("?autocommit=true", {}, A, (True, "")),
    ("?isolation_level=IMMEDIATE", {}, R, (-1, "IMMEDIATE")),
    ("", {"connect_args": {"isolation_level": None}}, A, (-1, None)),
    ("", {"isolation_level": A}, A, (-1, None)),
    ("", {"isolation_level": R}, R, (-1, "")),
    ("?autocommit=legacy", {"isolation_level": S}, S, (False, "")),
):
    def check(connection, level):
        raw = connection.connection.dbapi_connection
        got = connection.get_isolation_level(), (raw.autocommit, raw.isolation_level)
        known = mode if level == engine_level else got[1]
        assert got[0] == level and got[1] in (known, (-1, None) if level == A else known), (query, keywords, level, got)
        connection.execute(sa.text("SELECT count(*) FROM number")).scalar()
        holds = raw._core.transaction is not None
        assert holds == (level == S), (query, keywords, level, holds)
        connection.execute(sa.text("UPDATE number SET n = n"))
        holds = raw._core.transaction is not None
        assert holds == (level != A), (query, keywords, level, holds)
        connection.rollback()
        assert raw._core.transaction is None and not raw._core.is_pending

    engine, engine_level = sa.create_engine("sqlipc://user/sums" + query, **keywords), level
    with engine.connect() as connection:
        check(connection, level)
    for other in (A, R, S):
        with engine.connect().execution_options(isolation_level=other) as connection:
            check(connection, other)
        with engine.connect() as connection:  # the same one, from the pool
            check(connection, level)
    engine.dispose()
with sa.create_engine("sqlipc://user/sums").connect() as connection:
    try:
        connection.execution_options(isolation_level="READ UNCOMMITTED")
        print("taken")
    except sa.exc.ArgumentError:
        pass
"""
UPDATES = """
import sys
import threading

import sqlalchemy as sa
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

class Base(DeclarativeBase):
    pass

class Number(Base):
    __tablename__ = "number"
    id: Mapped[int] = mapped_column(primary_key=True)
    n: Mapped[int]

def core(engine):
    with engine.begin() as connection:
        n = connection.execute(sa.select(Number.n).where(Number.id == 1)).scalar_one()
        connection.execute(sa.update(Number).where(Number.id == 1).values(n=n + 1))

def orm(engine):
    with Session(engine) as session:
        session.get(Number, 1).n += 1
        session.commit()

def nested(engine):
    with Session(engine) as session:
        with session.begin_nested():
            session.get(Number, 1).n += 1
        session.commit()

def loaded_before(engine):
    with Session(engine) as session, session.begin():
        number = session.scalars(sa.select(Number)).one()
        session.execute(sa.text("SELECT 1"))
        number.n = number.n + 1

def immediate(engine):
    with Session(engine) as session, session.begin():
        session.execute(sa.text("BEGIN IMMEDIATE"))
        session.get(Number, 1).n += 1

n_failed = dict.fromkeys((core, orm, nested, loaded_before, immediate), 0)

def work(way, engine):
    n = 0
    while n < N_EACH:
        try:
            way(engine)
            n += 1
        except sa.exc.OperationalError as error:
            if not (error.orig.sqlite_errorname.startswith("SQLITE_BUSY") or "transactions open" in str(error)):
                raise  # the second one: a SAVEPOINT that comes first
            n_failed[way] += 1
    done.append(n)

N_EACH, done = 15, []
url, n_threads = sys.argv[1], int(sys.argv[2])
engine = sa.create_engine(url, pool_size=n_threads)
threads = [threading.Thread(target=work, args=(list(n_failed)[i % 5], engine)) for i in range(n_threads)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
with engine.connect() as connection:
    n = connection.execute(sa.select(Number.n)).scalar_one()
print(n, {way.__name__: n for way, n in n_failed.items()}, file=sys.stderr)
assert n == sum(done) == N_EACH * n_threads, (n, done)
assert n_threads > 8 or n_failed[immediate] == 0, "one that says that it will write waits for its turn"
"""
READS = """
import sqlalchemy as sa
from sqlalchemy.orm import Session

engine = sa.create_engine("sqlipc://user/sums", pool_size=100)
read, write = sa.text("SELECT n FROM number"), sa.text("UPDATE number SET n = n + 1")
sessions = [Session(engine) for _ in range(100)]
for session in sessions:
    session.execute(read).scalar_one()
levels = [session.connection().get_isolation_level() for session in sessions]
assert levels == ["SERIALIZABLE"] * 8 + ["READ COMMITTED"] * 92, levels
input("100 Sessions read")
beyond = sessions[50]
for statement in (write, write, sa.text("SAVEPOINT x"), sa.text("CREATE TABLE x(a)")):
    try:
        beyond.execute(statement)
        raise AssertionError("a transaction that has read beyond the limit writes")
    except sa.exc.OperationalError as error:
        assert error.orig.sqlite_errorname == "SQLITE_BUSY_SNAPSHOT" and "TransactionsMax=" in str(error), error
    beyond.execute(read)
beyond.rollback()
for session in sessions:
    if session is not beyond:
        session.rollback()
beyond.execute(read)
assert beyond.connection().get_isolation_level() == "SERIALIZABLE"
beyond.execute(write)
beyond.commit()
for session in sessions:
    session.close()
input("all are in the pool")
"""


# Prints what reflection finds, or its error without the name of the package.
REFLECTION = """
import re, sys, warnings
import sqlalchemy as sa

warnings.simplefilter("ignore")  # of an index that SQLAlchemy skips
engine = sa.create_engine(sys.argv[1])
inspector = sa.inspect(engine)
names = inspector.get_table_names() + inspector.get_view_names()

def tell(title, function, *arguments):
    try:
        result = function(*arguments)
    except sa.exc.SQLAlchemyError as error:
        result = type(error).__name__, re.sub(r"^[(][^)]*[)] |\\[SQL.*", "", str(error), flags=re.S)
    print(title, re.sub(r" at 0x\\w+", "", str(result)))

def reflect(**keywords):
    metadata = sa.MetaData()
    metadata.reflect(engine, **keywords)
    return [(table.name, [column.name for column in table.columns]) for table in metadata.sorted_tables]

for name in names:
    for function in ("columns", "pk_constraint", "foreign_keys", "indexes", "unique_constraints", "check_constraints"):
        tell((name, function), getattr(inspector, "get_" + function), name)
    tell(name, lambda: [(c.name, str(c.type)) for c in sa.Table(name, sa.MetaData(), autoload_with=engine).columns])
tell("views", lambda: [inspector.get_view_definition(name) for name in inspector.get_view_names()])
tell("all", reflect)
tell("all with views", lambda: reflect(views=True))
tell("all that can be used", lambda: reflect(views=True, only=lambda name, _: name not in sys.argv[2:]))
"""


def environment():
    paths = [BUILD_ROOT / "client-lib/python", SUITE]
    return os.environ | {"DBUS_SESSION_BUS_ADDRESS": service.address, "PYTHONPATH": ":".join(map(str, paths))}


def run_program(*arguments):
    """Runs a program that uses SQLAlchemy."""
    command = [sqlalchemy_python(), "-c", *arguments]
    return subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)


def suite(url, log):
    """Runs the suite; returns the results of all its cases by their names."""
    command = [
        sqlalchemy_python(),
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
        subprocess.run(command, env=environment(), cwd=service.folder, stdout=output, stderr=output, check=False)
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
    done = run_program(PROGRAM)
    equal(
        (done.stdout.splitlines(), done.stderr),
        (["['AC/DC', 'Accept']", "11", "True x", "refused", "refused"], ""),
        "output",
    )


@test
def arguments_of_urls():
    """All arguments of a URL reach connect(); one that is unknown, repeated, malformed or contradictory is an error"""
    done = run_program(ARGUMENTS)
    equal((done.stdout, done.stderr), ("", ""), "URLs that were taken, and failures")


@test
def connect_events():
    """The PRAGMAs that programs send when they connect, and IF [NOT] EXISTS"""
    done = run_program(CONNECT)
    equal((done.stdout, done.stderr), ("", ""), "failures")


@test
def isolation_levels():
    """Each isolation level does what get_isolation_level() says; an engine has its own again after another one"""
    done = run_program(LEVELS)
    equal((done.stdout, done.stderr), ("", ""), "failures")


@test
def reflection_beside_broken_objects():
    """Reflection finds, and says, what it does with SQLAlchemy's dialect for SQLite on the same file"""
    path = broken_schema.make(service.data / "broken.sqlite", "wal", odd_names=False)
    service.database("broken", Path=path, Mode="read-write", WriteSchema="yes")
    service.driver.manager("Reload")
    ours, theirs = (
        run_program(REFLECTION, url, *broken_schema.UNREADABLE) for url in ("sqlipc://user/broken", f"sqlite:///{path}")
    )
    equal((ours.stderr, theirs.stderr), ("", ""), "failures")
    for line, expected in zip(ours.stdout.splitlines(), theirs.stdout.splitlines(), strict=True):
        equal(line, expected, "reflection")
    true("('good_view', ['id', 'upper'])" in ours.stdout.splitlines()[-1], ours.stdout.splitlines()[-1])


@test
def no_update_is_lost():
    """Threads read a number, add 1 and write it, by Core and ORM, within and beyond TransactionsMax=: none is lost"""
    for journal in ("wal", "delete"):
        for n_threads in (8, 12):
            service.add(f"sums-{journal}-{n_threads}", SUMS, journal)
            url = f"sqlipc://user/sums-{journal}-{n_threads}?timeout={PATIENCE}"
            done = run_program(UPDATES, url, str(n_threads))
            diagnose(f"{journal}, {n_threads} threads: {done.stderr}")
            equal(done.returncode, 0, f"{journal}, {n_threads} threads: {done.stderr}")


@test
def reads_beyond_the_limit():
    """100 Sessions read at once, with 8 transactions; those beyond cannot write; those in the pool have no transaction"""
    command = [sqlalchemy_python(), "-c", READS]
    child = subprocess.Popen(
        command, env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    with child:
        for n, at in ((8, "100 Sessions read"), (0, "all are in the pool")):
            equal(child.stdout.read(len(at)).decode() or child.stderr.read().decode(), at, "where the program is")
            equal(len(service.driver.manager("ListTransactions")[0]), n, f"transactions, {at}")
            child.stdin.write(b"\n")
            child.stdin.flush()
        equal((child.wait(), child.stderr.read()), (0, b""), "the program")


@test
def lost_temp_tables():
    """A connection of the pool that has lost its TEMP tables is replaced: a ping finds it, else one user gets the error"""
    command = [sqlalchemy_python(), "-c", LOST]
    child = subprocess.Popen(
        command, env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    with child:
        for _ in range(2):
            equal(child.stdout.readline() or child.stderr.read(), "lose\n", "where the program is")
            workers = children(service.pid())
            for worker in workers:
                os.kill(worker, signal.SIGKILL)
            wait_for(lambda workers=workers: not set(workers) & set(children(service.pid())), "the service knows")
            child.stdin.write("\n")
            child.stdin.flush()
        equal((child.wait(), child.stderr.read()), (0, ""), "the program")


def excluded():
    """Returns the patterns of excluded.txt."""
    lines = (SUITE / "excluded.txt").read_text().splitlines()
    return ["::".join(line.split()[:2]) for line in lines if not line.startswith("#")]


@test
def dialect_suite():
    """SQLAlchemy's suite passes, except for the excluded cases"""
    results, text = suite("sqlipc://user/alchemy", "sqlipc.log")
    failed = {case for case, result in results.items() if result != "PASSED"}
    listed = {pattern: set(fnmatch.filter(failed, pattern)) for pattern in excluded()}
    unlisted = failed.difference(*listed.values())
    if unlisted:
        diagnose(text[-60000:])
    equal(sorted(unlisted), [], "cases that fail")
    equal([pattern for pattern, cases in listed.items() if not cases], [], "patterns of excluded cases that pass")
    true(len(results) > 500, f"only {len(results)} cases ran")
    diagnose(f"{len(results) - len(failed)} of {len(results)} cases passed")


if BOTH:

    @test
    def as_far_as_sqlite():
        """What passes with SQLAlchemy's dialect for SQLite passes with ours; what is excluded fails with both"""
        ours, _ = suite("sqlipc://user/alchemy", "both-sqlipc.log")
        theirs, _ = suite("sqlite://", "both-sqlite.log")
        passed = {case for case, result in theirs.items() if result == "PASSED"}
        equal(sorted(case for case in passed if ours.get(case) != "PASSED"), [], "cases that pass with SQLite only")
        for case in sorted(set(theirs) - passed):
            diagnose(f"fails with SQLite, too: {case}: {ours.get(case)}")


main(service)
