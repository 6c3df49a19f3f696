#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""SQLAlchemy's own tests of its engine, SQL, ORM and SQLite, with the dialect of this package: those files that meet a
database, and do not look at the clock. Those that fail are in sqlalchemy-differences.txt, each for a difference that
docs/programs.md describes.

usage: test_sqlalchemy.py [--verbose] [CASE]...
"""

import contextlib
import os
import queue
import re
import sqlite3
import subprocess
import sys
import threading

from harness import BUILD_ROOT, SOURCE_ROOT, main, python_package
from python_service import PythonService
from suites import VERBOSE, Suites
from tap import diagnose, equal, make_for_file, test

HERE = SOURCE_ROOT / "tests/programs"
ENVIRONMENT = BUILD_ROOT / "tests/programs/environment"
FOLDER = BUILD_ROOT / "tests/programs/sqlalchemy"
make_for_file(
    SOURCE_ROOT / "tests/adbc/make-environment.sh", ENVIRONMENT, "SQLAlchemy cannot be installed", HERE / "requirements.txt"
)
make_for_file(HERE / "make-sqlalchemy-tests.sh", FOLDER, "SQLAlchemy's tests cannot be fetched")
FILES = """
base/test_result dialect/sqlite/test_dialect dialect/sqlite/test_on_conflict dialect/sqlite/test_reflection
dialect/sqlite/test_types engine/test_ddlevents engine/test_deprecations engine/test_execute engine/test_reflection
engine/test_transaction ext/test_automap ext/test_mutable orm/declarative/test_basic orm/declarative/test_inheritance
orm/declarative/test_mixin orm/declarative/test_reflection orm/dml/test_bulk orm/dml/test_bulk_statements
orm/dml/test_evaluator orm/dml/test_orm_upd_del_assorted orm/dml/test_orm_upd_del_basic
orm/dml/test_orm_upd_del_inheritance orm/inheritance/test_abc_polymorphic orm/inheritance/test_assorted_poly
orm/inheritance/test_basic orm/inheritance/test_concrete orm/inheritance/test_magazine orm/inheritance/test_manytomany
orm/inheritance/test_poly_linked_list orm/inheritance/test_poly_loading orm/inheritance/test_poly_persistence
orm/inheritance/test_polymorphic_rel orm/inheritance/test_productspec orm/inheritance/test_relationship
orm/inheritance/test_selects orm/inheritance/test_single orm/inheritance/test_with_poly orm/test_ac_relationships
orm/test_association orm/test_assorted_eager orm/test_backref_mutations orm/test_bind orm/test_bundle orm/test_cascade
orm/test_composites orm/test_cycles orm/test_default_strategies orm/test_defaults orm/test_deferred
orm/test_deprecations orm/test_dynamic orm/test_eager_relations orm/test_events orm/test_expire orm/test_froms
orm/test_generative orm/test_immediate_load orm/test_joins orm/test_lambdas orm/test_lazy_relations orm/test_load_on_fks
orm/test_loading orm/test_manytomany orm/test_mapper orm/test_merge orm/test_naturalpks orm/test_of_type
orm/test_onetoone orm/test_options orm/test_pickled orm/test_query orm/test_recursive_loaders
orm/test_relationship_criteria orm/test_relationships orm/test_selectin_relations orm/test_session
orm/test_subquery_relations orm/test_transaction orm/test_unitofwork orm/test_unitofworkv2 orm/test_validators
orm/test_versioning sql/test_constraints sql/test_defaults sql/test_delete sql/test_functions sql/test_insert
sql/test_insert_exec sql/test_lambdas sql/test_query sql/test_quote sql/test_resultset sql/test_returning
sql/test_sequences sql/test_type_expressions sql/test_types sql/test_update
""".split()
N_FILES = 5  # of one process, whose start takes seconds
N_PROCESSES = max(2, os.cpu_count() or 2)
ITSELF = "sqlite-file"  # the difference of tests that fail with SQLAlchemy's dialect for a file of SQLite, too
SNAPSHOT = "snapshot"  # that of tests that pass if SELECT begins no transaction, as in SQLAlchemy's dialect for SQLite
CLASS = r"([^:\s]+?)(?:_sqlite\+pysqlite(?:_\d+)+)?"  # SQLAlchemy adds the version
LINE = re.compile(rf"^(PASSED|FAILED|ERROR) \S*?test/(\S+)\.py::{CLASS}::(.*?)(?: - .*)?$", re.M)

service = PythonService()
for i in range(N_PROCESSES):
    path = service.data / f"alchemy-{i}.sqlite"
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA journal_mode = wal")
    # The tests expect SQLite's default, which keeps no foreign keys.
    service.database(path.stem, Path=path, Mode="read-write", WriteSchema="yes", ForeignKeys="no")
service.driver.manager("Reload")
suites = Suites("sqlalchemy", "Difference", {}, folder="programs", page="programs")


def run(url, name, files):
    """Runs the tests of some files in a process of their own; returns what it printed."""
    folder = service.folder / name
    folder.mkdir(exist_ok=True)
    environment = os.environ | python_package() | {"DBUS_SESSION_BUS_ADDRESS": service.address}
    environment["PYTHONPATH"] += f":{HERE}"
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # SQLAlchemy would be compiled by each process
    command = [ENVIRONMENT / "python/bin/python", "-s", "-m", "pytest", "-p", "sqlalchemy_plugin"]
    command += ["-c", FOLDER / "tests/setup.cfg", "--rootdir", FOLDER / "tests", "-o", "addopts=", "-q", "-rpfE"]
    command += ["-p", "no:cacheprovider", "-p", "no:warnings", "--show-capture=no", "--tb=short", "--maxfail=1000000"]
    command += ["--disable-asyncio", "-k", "not other_process and not concurrency", "--dburi", url]
    command += [FOLDER / f"tests/test/{file}.py" for file in files]
    pipe = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    return subprocess.run(command, cwd=folder, env=environment, check=False, **pipe).stdout.decode(errors="replace")


def outcomes(output):
    """Returns file -> test -> if it passed."""
    found = {}
    for outcome, file, of_class, name in LINE.findall(output):
        tests = found.setdefault(file, {})
        title = f"{of_class}::{name}"
        tests[title] = tests.get(title, True) and outcome == "PASSED"
    return found


def run_all():
    """Runs all files in several processes, each with a database of its own."""
    groups, found, listed = queue.SimpleQueue(), {}, suites.differences()
    for i in range(0, len(FILES), N_FILES):
        groups.put(FILES[i : i + N_FILES])

    def work(name):
        with contextlib.suppress(queue.Empty):
            while True:
                output = run(f"sqlipc://user/{name}", name, groups.get_nowait())
                of_group = outcomes(output)
                found.update(of_group)
                is_expected = of_group and all(ok != (t in listed) for tests in of_group.values() for t, ok in tests.items())
                if VERBOSE or not is_expected:
                    diagnose(re.sub("^PASSED .*\n", "", output, flags=re.M)[-60000:])

    threads = [threading.Thread(target=work, args=(f"alchemy-{i}",)) for i in range(N_PROCESSES)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


@test
def sqlalchemy():
    """SQLAlchemy's tests pass, except for the list"""
    found = run_all()
    equal(sorted(found), sorted(FILES), "files that ran")
    diagnose(f"{sum(sum(tests.values()) for tests in found.values())} tests pass, {len(suites.lines())} do not")
    suites.compare_all(found)


def run_listed(difference, url, name):
    """Runs the files that have tests of a difference; returns these tests, and those of them that pass."""
    lines = [line.split(" ", 2) for line in suites.lines()]
    titles = sorted((file, title) for file, of_it, title in lines if of_it == difference)
    found = outcomes(run(url, name, sorted({file for file, _ in titles})))
    return titles, [(file, title) for file, title in titles if found[file][title]]


@test
def as_sqlite():
    """Those of the list that are said to fail with SQLAlchemy's dialect for SQLite, too, do so"""
    equal(run_listed(ITSELF, "sqlite:///file.db", "sqlite")[1], [], "tests that pass with SQLite")


@test
def without_snapshots():
    """Those of the list that fail because SELECT belongs to the transaction pass with READ COMMITTED"""
    listed, passed = run_listed(SNAPSHOT, "sqlipc://user/alchemy-0?autocommit=legacy", "read-committed")
    equal(passed, listed, "tests that pass")


main(service)
