#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs inside the container of test_package.py, as its root: installs, uses, upgrades and removes the packages."""
import os
import pathlib
import pwd
import re
import sys

import inside_documents
import served
from machine import DATABASES, HOME, CHINOOK, STATE, UNIT, command, done, main_pid, unit, wait_for
from tap import diagnose, equal, run, test, true

PUBLISHED = DATABASES / "chinook.conf"
DATABASE = STATE / "chinook.sqlite"
# The tests look for leftovers in the folders that maintainer scripts and dpkg write to.
PLACES = ["/etc", "/usr", "/var"]
before = set()


def files():
    """Returns every path that has our name in it, and all below it, except for the tests themselves."""
    found = done("find", *PLACES, "-xdev", "-path", HOME, "-prune", "-o", "-path", "*sqlipc*", "-print")
    return set(found.split())


def left_behind():
    """Returns the paths that did not exist before, without the folders that contain them."""
    left = files() - before
    return {path for path in left if not any(other.startswith(f"{path}/") for other in left)}


def names(folder):
    return [done("dpkg-deb", "--field", package, "Package").strip() for package in sorted((HOME / folder).glob("*.deb"))]


def answers(user="sqlipc-reader"):
    """Fails unless a busctl call of an ordinary user gets its row."""
    said = done(
        "busctl", "--system", "call", "org.sqlipc1", "/org/sqlipc1/database/chinook", "org.sqlipc1.Database", "QueryRows",
        "sava{sv}a{sv}", "SELECT Name FROM Genre WHERE GenreId = 1", "0", "0", "0", user=user,
    )  # fmt: skip
    true('"Rock"' in said, said)


def processes():
    """Returns the service's processes, found by name: the link to a removed program depends on the sandbox."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/comm"):
        try:
            found += [path.parent.name] if path.read_text().strip() in ("sqlipcd", "sqlipc-worker") else []
        except (FileNotFoundError, ProcessLookupError):
            pass
    return found


@test
def installs():
    """dpkg --install installs every package, and starts only the socket of engines"""
    before.update(files())
    # Container images forbid packages to start and stop services, but this container runs a booted system.
    pathlib.Path("/usr/sbin/policy-rc.d").unlink(missing_ok=True)
    (HOME / "sysusers.conf").write_text("u sqlipc-reader - - /home/sqlipc-reader -\n")
    done("systemd-sysusers", HOME / "sysusers.conf")
    true(len(names("packages")) > 3, "packages are missing")
    done("dpkg", "--install", *(HOME / "packages").glob("*.deb"))
    equal(unit("LoadState", "ActiveState"), ["loaded", "inactive"], "the service")
    equal(done("systemctl", "is-active", served.SOCKET), "active\n", "the socket")
    equal(done("systemctl", "--global", "is-enabled", served.SOCKET), "enabled\n", "the socket of users")
    true(pwd.getpwnam("sqlipc").pw_uid != 0, "no user for the service")


@test
def catalog():
    """journalctl explains the events of the service"""
    message = re.search("^-- ([0-9a-f]{32})$", pathlib.Path("/usr/lib/systemd/catalog/sqlipc.catalog").read_text(), re.M)[1]
    true(message in done("journalctl", "--list-catalog"), message)


@test
def first_call():
    """The first busctl call of an unprivileged user starts the service, and is answered"""
    done("install", "-d", "-o", "sqlipc", "-g", "sqlipc", STATE)
    done("install", "-m", "644", CHINOOK, DATABASE)
    PUBLISHED.write_text(f"[Database]\nPath={DATABASE}\nAllowUsers=sqlipc-reader\n")
    answers()
    equal(pathlib.Path(f"/proc/{main_pid()}").owner(), "sqlipc", "user of the service")


@test
def package_tests():
    """The tests in debian/tests pass"""
    control = (HOME / "debian/tests/control").read_text()
    scripts = re.findall(r"^Tests: *(.*)$", control, re.M)
    true(len(scripts) > 1, "no scripts")
    for script in scripts:
        result = command(HOME / "debian/tests" / script)
        # As in autopkgtest, a test that writes to stderr has failed.
        equal((result.returncode, result.stderr), (0, ""), f"{script}, which said {result.stdout}")


test(inside_documents.documents)
test(inside_documents.manual)
test(inside_documents.moves)


@test
def unpacked():
    """After an upgrade is unpacked and before the restart, the old service still starts workers for users without one"""
    answers()
    old = main_pid()
    done("dpkg", "--unpack", *(HOME / "newer").glob("sqlipcd_*.deb"))
    answers(user="root")
    equal(main_pid(), old, "process")


@test
def upgrade():
    """An upgrade ends the old service and its engines; the next calls are served by the new ones"""
    with served.server(), served.published(f"host={served.FOLDER} dbname=postgres user=sqlipc-engine"):
        answers()
        equal(served.genre(), "Rock\n", "rows of a server")
        old, engines = main_pid(), served.processes()
        true(old > 0 and engines, "it does not run")
        done("dpkg", "--install", *(HOME / "newer").glob("*.deb"))
        equal(served.genre(), "Rock\n", "rows of a server, after the upgrade")
        wait_for(lambda: not set(engines) & set(served.processes()), "old engines end")
    true(done("dpkg-query", "--show", "--showformat=${Version}", "sqlipcd").endswith("+newer"), "the old version")
    true(not pathlib.Path(f"/proc/{old}").exists(), "the old process still runs")
    answers()
    true(not os.readlink(f"/proc/{main_pid()}/exe").endswith("(deleted)"), "the old program was started")


@test
def removal():
    """dpkg --remove ends the service: no process is left, and the bus cannot activate its name any more"""
    answers()
    true(processes(), "no process to end")
    done("dpkg", "--remove", *names("packages"))
    equal(processes(), [], "processes")
    for method in ("ListNames", "ListActivatableNames"):
        said = done("busctl", "call", "org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", method)
        true("org.sqlipc1" not in said, f"{method}: {said}")


@test
def purge():
    """dpkg --purge leaves only the administrator's files and the service's user"""
    done("dpkg", "--purge", *names("packages"))
    equal(left_behind(), {str(DATABASE), str(PUBLISHED)}, "left behind")
    # Files may still belong to the uid, so it must not be reused: Debian policy wants system users to stay.
    pwd.getpwnam("sqlipc")


@test
def purge_of_what_was_never_used():
    """If the administrator created no files, a purge leaves no file and no folder"""
    DATABASE.unlink()
    PUBLISHED.unlink()
    done("dpkg", "--install", *(HOME / "packages").glob("*.deb"))
    done("dpkg", "--purge", *names("packages"))
    equal(files() - before, set(), "left behind")


sys.argv.pop(1)
sys.exit(run(on_failure=lambda: diagnose(command("journalctl", "--no-pager", "-n", "30", "-u", UNIT).stdout)))
