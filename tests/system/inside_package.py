#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Inside the container of test_package.py, as its root: what dpkg installs serves, is upgraded, and goes."""
import os
import pathlib
import pwd
import re
import sys

from machine import DATABASES, HOME, CHINOOK, STATE, UNIT, command, done, main_pid, unit
from tap import diagnose, equal, run, test, true

PUBLISHED = DATABASES / "chinook.conf"
DATABASE = STATE / "chinook.sqlite"
# What maintainer scripts and dpkg write is looked for where they write.
PLACES = ["/etc", "/usr", "/var"]
before = set()


def files():
    """Everything that is named after us, and what is below it, but for the tests themselves."""
    found = done("find", *PLACES, "-xdev", "-path", HOME, "-prune", "-o", "-path", "*sqlipc*", "-print")
    return set(found.split())


def left_behind():
    """What was not there before, but for the folders that lead to it."""
    left = files() - before
    return {path for path in left if not any(other.startswith(f"{path}/") for other in left)}


def names(folder):
    return [done("dpkg-deb", "--field", package, "Package").strip() for package in sorted((HOME / folder).glob("*.deb"))]


def answers(user="sqlipc-reader"):
    """One busctl call of a user, who is nobody special, gets its row."""
    said = done(
        "busctl", "--system", "call", "org.sqlipc1", "/org/sqlipc1/database/chinook", "org.sqlipc1.Database", "QueryRows",
        "sava{sv}a{sv}", "SELECT Name FROM Genre WHERE GenreId = 1", "0", "0", "0", user=user,
    )  # fmt: skip
    true('"Rock"' in said, said)


def processes():
    """The service's processes. Their names: what the links to their programs say of a removed one depends on its sandbox."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/comm"):
        try:
            found += [path.parent.name] if path.read_text().strip() in ("sqlipcd", "sqlipc-worker") else []
        except (FileNotFoundError, ProcessLookupError):
            pass
    return found


@test
def installs():
    """dpkg --install installs every package, and starts nothing"""
    before.update(files())
    # Images of containers forbid packages to start and stop services. This one is a system that runs.
    pathlib.Path("/usr/sbin/policy-rc.d").unlink(missing_ok=True)
    (HOME / "sysusers.conf").write_text("u sqlipc-reader - - -\n")
    done("systemd-sysusers", HOME / "sysusers.conf")
    true(len(names("packages")) > 3, "packages are missing")
    done("dpkg", "--install", *(HOME / "packages").glob("*.deb"))
    equal(unit("LoadState", "ActiveState"), ["loaded", "inactive"], "the service")
    true(pwd.getpwnam("sqlipc").pw_uid != 0, "no user for the service")


@test
def catalog():
    """journalctl knows what the events of the service mean"""
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
    """What debian/tests asks of the packages holds"""
    control = (HOME / "debian/tests/control").read_text()
    scripts = re.findall(r"^Tests: *(.*)$", control, re.M)
    true(len(scripts) > 1, "no scripts")
    for script in scripts:
        result = command(HOME / "debian/tests" / script)
        # As autopkgtest does: a test that complains has failed.
        equal((result.returncode, result.stderr), (0, ""), f"{script}, which said {result.stdout}")


@test
def unpacked():
    """Between the unpacking of an upgrade and the restart, the old service still starts workers, for who had none"""
    answers()
    old = main_pid()
    done("dpkg", "--unpack", *(HOME / "newer").glob("sqlipcd_*.deb"))
    answers(user="root")
    equal(main_pid(), old, "process")


@test
def upgrade():
    """An upgrade ends the old service; the next call is served by the new one"""
    answers()
    old = main_pid()
    true(old > 0, "it does not run")
    done("dpkg", "--install", *(HOME / "newer").glob("*.deb"))
    true(done("dpkg-query", "--show", "--showformat=${Version}", "sqlipcd").endswith("+newer"), "the old version")
    true(not pathlib.Path(f"/proc/{old}").exists(), "the old process still runs")
    answers()
    true(not os.readlink(f"/proc/{main_pid()}/exe").endswith("(deleted)"), "the old program was started")


@test
def removal():
    """dpkg --remove ends the service: no process is left, and the bus does not know its name any more"""
    answers()
    true(processes(), "no process to end")
    done("dpkg", "--remove", *names("packages"))
    equal(processes(), [], "processes")
    for method in ("ListNames", "ListActivatableNames"):
        said = done("busctl", "call", "org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", method)
        true("org.sqlipc1" not in said, f"{method}: {said}")


@test
def purge():
    """dpkg --purge leaves what the administrator made, and the user, and nothing else"""
    done("dpkg", "--purge", *names("packages"))
    equal(left_behind(), {str(DATABASE), str(PUBLISHED)}, "left behind")
    # A uid that files may still carry must not be given to another: policy wants system users to stay.
    pwd.getpwnam("sqlipc")


@test
def purge_of_what_was_never_used():
    """Where the administrator made nothing, a purge leaves nothing, not even a folder"""
    DATABASE.unlink()
    PUBLISHED.unlink()
    done("dpkg", "--install", *(HOME / "packages").glob("*.deb"))
    done("dpkg", "--purge", *names("packages"))
    equal(files() - before, set(), "left behind")


sys.argv.pop(1)
sys.exit(run(on_failure=lambda: diagnose(command("journalctl", "--no-pager", "-n", "30", "-u", UNIT).stdout)))
