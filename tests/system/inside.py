#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Inside the container of test_system.py, as its root: sqlipcd runs as a system user on the real system bus, and users who
are neither it nor root get their rows.

usage: inside.py broker|daemon
"""
import os
import pathlib
import pwd
import subprocess
import sys
import time

HOME = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(HOME / "tests/bus"))
from client import Client, Failure, MANAGER, reference, same_rows  # noqa: E402
from tap import equal, run, test, true  # noqa: E402

BUS = sys.argv.pop(1)
ADDRESS = "unix:path=/run/dbus/system_bus_socket"
CHINOOK = HOME / "tests/data/chinook.sqlite"


def command(*words, user=None):
    """Runs a command, as a user where one is given."""
    prefix = ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups", "--"] if user else []
    return subprocess.run([*prefix, *words], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)


def done(*words, user=None):
    """The same for one that must succeed: its output."""
    result = command(*words, user=user)
    if result.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, words))} ended with {result.returncode}: {result.stderr}")
    return result.stdout


def uid(user):
    return pwd.getpwnam(user).pw_uid


def main_pid():
    return int(done("systemctl", "show", "--property=MainPID", "--value", "sqlipcd.service"))


@test
def bus_is_the_one_asked_for():
    """The system bus is the one that was asked for"""
    driver = Client(ADDRESS).bus_call("GetConnectionUnixProcessID", "(s)", "org.freedesktop.DBus")[0]
    true({"broker": "dbus-broker", "daemon": "dbus-daemon"}[BUS] in os.readlink(f"/proc/{driver}/exe"), "another bus runs")


@test
def starts_as_a_system_user():
    """sqlipcd starts as a notifying service under a system user, and owns its name"""
    done("systemd-sysusers")
    done("busctl", "call", "org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", "ReloadConfig")
    (program,) = list(pathlib.Path("/usr").glob("*/sqlipcd"))
    done(
        "systemd-run", "--unit=sqlipcd", "--property=Type=notify", "--property=User=sqlipc-daemon", "--", program, "--system"
    )
    owner = Client(ADDRESS).bus_call("GetConnectionUnixUser", "(s)", "org.sqlipc1")[0]
    equal(owner, uid("sqlipc-daemon"), "owner of the name")


@test
def nobody_else_owns_the_name():
    """A user cannot take the service's name"""
    reader = Client(ADDRESS, uid("sqlipc-reader"))
    try:
        reader.bus_call("RequestName", "(su)", "org.sqlipc1", 4)
        raise AssertionError("an unprivileged user got the name")
    except Failure as failure:
        equal(failure.name, "org.freedesktop.DBus.Error.AccessDenied", "error")


@test
def rows_for_an_unprivileged_user():
    """ipcq-cli --system as an unprivileged user prints what sqlite3 prints"""
    for sql in (
        "SELECT * FROM Customer",
        "SELECT Name, count(*) FROM Artist JOIN Album USING(ArtistId) GROUP BY 1 ORDER BY 2 DESC, 1",
    ):
        equal(
            done("ipcq-cli", "--system", "--mode=csv", "chinook", sql, user="sqlipc-reader"),
            done("sqlite3", "-csv", "-header", CHINOOK, sql),
            sql,
        )


@test
def busctl_as_an_unprivileged_user():
    """busctl --system call QueryRows as an unprivileged user"""
    said = done(
        "busctl",
        "--system",
        "call",
        "org.sqlipc1",
        "/org/sqlipc1/database/chinook",
        "org.sqlipc1.Database",
        "QueryRows",
        "sava{sv}a{sv}",
        "SELECT Name FROM Genre WHERE GenreId = 1",
        "0",
        "0",
        "0",
        user="sqlipc-reader",
    )
    true('"Rock"' in said, said)


@test
def pages_for_several_users():
    """Whole tables down the pipe, for several users side by side"""
    expected = reference(CHINOOK, "SELECT * FROM Track")[1]
    runs = [
        Client(ADDRESS, uid(user)).query("chinook", "SELECT * FROM Track")
        for user in ("sqlipc-reader", "sqlipc-other", "root")
    ]
    for one in runs:
        same_rows(one.read().rows, expected)


@test
def processes_are_confined():
    """Supervisor and workers run as the daemon's user; workers under seccomp, and without a bus"""
    pid = main_pid()
    Client(ADDRESS, uid("sqlipc-reader")).point()
    workers = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    true(workers, "no worker")
    for process in [str(pid), *workers]:
        status = pathlib.Path(f"/proc/{process}/status").read_text()
        equal(status.split("\nUid:\t")[1].split()[0], str(uid("sqlipc-daemon")), "uid")
        if process != str(pid) and "libasan" not in pathlib.Path(f"/proc/{process}/maps").read_text():
            equal(status.split("\nSeccomp:\t")[1].split()[0], "2", "seccomp of a worker")


@test
def users_are_apart():
    """A user cannot name what another owns, and cannot administer"""
    mine, other = Client(ADDRESS, uid("sqlipc-reader")), Client(ADDRESS, uid("sqlipc-other"))
    statement = mine.prepare("chinook", "SELECT 1")
    for call in (
        lambda: other.finalize("chinook", statement.number),
        lambda: other.manager("Reload"),
        lambda: other.manager("CancelRun", "(ta{sv})", 1),
    ):
        try:
            call()
            raise AssertionError("allowed")
        except Failure as failure:
            true(failure.name in ("org.sqlipc1.Error.UnknownStatement", "org.sqlipc1.Error.AccessDenied"), str(failure))
    equal(other.manager("ListStatements")[0], [], "statements of a stranger")
    equal(len(Client(ADDRESS).manager("ListStatements")[0]), 1, "statements for root")
    statement.close()


@test
def clients_that_vanish():
    """A client that leaves the bus leaves nothing"""
    watcher = Client(ADDRESS)
    for _ in range(5):
        client = Client(ADDRESS, uid("sqlipc-reader"))
        client.prepare("chinook", "SELECT * FROM Track a, Track b").fetch()
        client.close()
    end = time.monotonic() + 30
    while (left := watcher.properties(MANAGER))["NStatements"] or left["NRuns"]:
        true(time.monotonic() < end, f"left behind: {left}")
        time.sleep(0.05)


@test
def stops_cleanly():
    """systemctl stop ends it, with success and nobody left"""
    pid = main_pid()
    done("systemctl", "stop", "sqlipcd.service")
    # A transient unit that succeeded is forgotten; one that failed would stay.
    equal(command("systemctl", "is-failed", "sqlipcd.service").stdout.strip(), "inactive", "state of the unit")
    true(not pathlib.Path(f"/proc/{pid}").exists(), "it still runs")
    left = [p for p in pathlib.Path("/proc").glob("[0-9]*/exe") if "sqlipc-worker" in str(p.resolve())]
    equal(left, [], "workers left")


@test
def the_bus_starts_it():
    """As it is installed: the first call of a user has the system bus start it, as root"""
    said = done("ipcq-cli", "--system", "--mode=csv", "chinook", "SELECT count(*) FROM Genre", user="sqlipc-reader")
    equal(said, "count(*)\n25\n", "rows")
    owner = Client(ADDRESS).bus_call("GetConnectionUnixUser", "(s)", "org.sqlipc1")[0]
    equal(owner, 0, "owner of the name")


sys.exit(run())
