#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""libsqlipc-glib in C, Python, GJS and Vala, at the daemon of the build tree on a private bus."""
import contextlib
import os
import pathlib
import shutil
import sqlite3
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "bus"))
from harness import BUILD_ROOT, PATIENCE, SOURCE_ROOT, Service, main  # noqa: E402
from tap import Skip, equal, test, true  # noqa: E402

LIBRARY = BUILD_ROOT / "client-lib/glib"
ROWS = "WITH RECURSIVE n(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM n WHERE x < ?) INSERT INTO t SELECT x, 'name ' || x, x % 7 FROM n"
INTROSPECTION = (LIBRARY / "Sqlipc-1.typelib").exists()


@contextlib.contextmanager
def written(n_rows=1000, **keys):
    with Service(**keys) as service:
        path = service.data / "written.sqlite"
        with contextlib.closing(sqlite3.connect(path)) as db:
            db.execute("PRAGMA journal_mode = wal")
            db.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, name TEXT, v)")
            db.execute("CREATE TABLE loaded(n INTEGER, t TEXT)")
            db.execute(ROWS, (n_rows,))
            db.commit()
        service.stop()
        service.database("written", Path=path, Mode="read-write")
        service.start()
        service.path = path
        yield service


# The programs find the library and its typelib in the build tree.
ENVIRONMENT = [
    f"LD_LIBRARY_PATH={LIBRARY}:{BUILD_ROOT / 'client-lib'}",
    f"GI_TYPELIB_PATH={LIBRARY}",
    "G_DEBUG=fatal-criticals",
    "GIO_USE_VFS=local",
]


def succeed(service, *command):
    done = service.run("env", *ENVIRONMENT, *command)
    true(done.returncode == 0, f"{command[0]}: {done.returncode}\n{done.stdout.decode()[-3000:]}\n{done.stderr.decode()[-3000:]}")
    return done.stdout.decode()


def needs(program):
    if not INTROSPECTION:
        raise Skip("built without introspection")
    if not shutil.which(program):
        raise Skip(f"{program} is not installed")


@test
def in_c():
    """Every class from C, with a cancellation at each place that waits"""
    with written() as service:
        succeed(service, BUILD_ROOT / "tests/glib/glib-client", service.address)


@test
def in_c_without_leaks():
    """valgrind finds no leak and no error"""
    if os.environ.get("SQLIPC_SANITIZED") == "1":
        raise Skip("the sanitizers look for leaks")
    if not shutil.which("valgrind"):
        raise Skip("valgrind is not installed")
    suppressions = pathlib.Path("/usr/share/glib-2.0/valgrind/glib.supp")
    with written() as service:
        succeed(
            service,
            *("valgrind", "--quiet", "--error-exitcode=9", "--leak-check=full"),
            *("--errors-for-leak-kinds=definite,indirect", "--show-leak-kinds=definite,indirect"),
            *([f"--suppressions={suppressions}"] if suppressions.exists() else []),
            *(BUILD_ROOT / "tests/glib/glib-client", service.address),
        )


@test
def in_python():
    """Every class from Python"""
    needs("python3")
    with written() as service:
        succeed(service, "/usr/bin/python3", SOURCE_ROOT / "tests/glib/glib_client.py", service.address)


@test
def in_javascript():
    """Every class from GJS"""
    needs("gjs")
    with written() as service:
        succeed(service, "gjs", "-m", SOURCE_ROOT / "tests/glib/glib-client.js", service.address)


@test
def in_vala():
    """Every class from Vala"""
    program = BUILD_ROOT / "tests/glib/glib-client-vala"
    if not program.exists():
        raise Skip("built without valac")
    with written() as service:
        succeed(service, program, service.address)


main()
