# SPDX-License-Identifier: LGPL-2.1-or-later
"""The service as installed: activation by the bus, queries of separate users, reload, stop and restart."""
import os
import pathlib
import shutil

from machine import (
    ADDRESS, CHINOOK, Client, Failure, MANAGER, UNIT, bus, call_reload_of_bus, command, done, dropped, equal, main_pid,
    published, query, reference, refused, same_rows, stop, test, true, uid, unit, wait_for, workers,
)


@test
def bus_is_the_one_asked_for():
    """The system bus runs the bus program that the command line names"""
    driver = Client(ADDRESS).bus_call("GetConnectionUnixProcessID", "(s)", "org.freedesktop.DBus")[0]
    true({"broker": "dbus-broker", "daemon": "dbus-daemon"}[bus] in os.readlink(f"/proc/{driver}/exe"), "another bus runs")


@test
def users_are_made():
    """sysusers creates the service's user, and the bus reports the service under that user"""
    done("systemd-sysusers")
    call_reload_of_bus()
    true(0 < uid("sqlipc") < 1000, "a system user")


@test
def units_are_in_order():
    """systemd-analyze verify reports nothing about either unit"""
    for scope in ("--system", "--user"):
        environment = os.environ | {"XDG_RUNTIME_DIR": "/run"}
        equal(command("systemd-analyze", "verify", scope, "--man=no", UNIT, env=environment).stderr, "", scope)


@test
def first_call_starts_it():
    """The first call of an unprivileged user starts the service, with Type=notify and under its own user"""
    equal(unit("ActiveState"), "inactive", "before the call")
    said = done(
        "busctl", "--system", "call", "org.sqlipc1", "/org/sqlipc1/database/chinook", "org.sqlipc1.Database", "QueryRows",
        "sava{sv}a{sv}", "SELECT Name FROM Genre WHERE GenreId = 1", "0", "0", "0", user="sqlipc-reader",
    )
    true('"Rock"' in said, said)
    equal(unit("ActiveState", "Type", "User"), ["active", "notify", "sqlipc"], "after it")
    owner = Client(ADDRESS).bus_call("GetConnectionUnixUser", "(s)", "org.sqlipc1")[0]
    equal(owner, uid("sqlipc"), "owner of the name")


@test
def kept_stopped():
    """A masked unit stays stopped, whatever is called; once it is unmasked, the next call starts it"""
    done("systemctl", "mask", "--runtime", "--now", UNIT)
    try:
        said = refused("ipcq-cli", "--system", "chinook", "SELECT 1", user="sqlipc-reader")
        # dbus-broker does not pass the reason on.
        true(("masked" if bus == "daemon" else "could not be started") in said, said)
        equal(unit("ActiveState"), "inactive", "after the call")
    finally:
        done("systemctl", "unmask", "--runtime", UNIT)
    equal(done("ipcq-cli", "--system", "--mode=list", "chinook", "SELECT 1 AS n", user="sqlipc-reader"), "n\n1\n", "rows")


@test
def nobody_else_owns_the_name():
    """A user cannot take the service's name"""
    stop()
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
def pages_for_several_users():
    """Several users read whole tables over pipes at the same time"""
    expected = reference(CHINOOK, "SELECT * FROM Track")[1]
    runs = [
        Client(ADDRESS, uid(user)).query("chinook", "SELECT * FROM Track")
        for user in ("sqlipc-reader", "sqlipc-other", "root")
    ]
    for one in runs:
        same_rows(one.read().rows, expected)


@test
def users_are_apart():
    """A user cannot use the objects of another user, and cannot administer the service"""
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
            # By polkit's default an administrator must authenticate before other users may manage the service.
            names = ("org.sqlipc1.Error.UnknownStatement", "org.freedesktop.DBus.Error.InteractiveAuthorizationRequired")
            true(failure.name in names, str(failure))
    equal(other.manager("ListStatements")[0], [], "statements of a stranger")
    equal(len(Client(ADDRESS).manager("ListStatements")[0]), 1, "statements for root")
    statement.close()


@test
def clients_that_vanish():
    """The service frees everything of a client that leaves the bus"""
    watcher = Client(ADDRESS)
    for _ in range(5):
        client = Client(ADDRESS, uid("sqlipc-reader"))
        client.prepare("chinook", "SELECT * FROM Track a, Track b").fetch()
        client.close()

    def nothing_left():
        left = watcher.properties(MANAGER)
        return left["NStatements"] == left["NRuns"] == 0

    wait_for(nothing_left, "nothing is left")


@test
def reload_waits():
    """systemctl reload returns after the new configuration takes effect, and keeps the process"""
    query("SELECT 1")
    pid = main_pid()
    for turn in range(10):
        with published(f"added-{turn}", CHINOOK, "AllowUsers=*"):
            equal(query("SELECT count(*) FROM Genre", f"added-{turn}"), "25\n", "rows of the database that was added")
        refused("ipcq-cli", "--system", f"added-{turn}", "SELECT 1", user="sqlipc-reader")
    equal(main_pid(), pid, "process")


@test
def killed_and_back():
    """After kill -9 of the supervisor no worker is left, and the next call starts the service again"""
    query("SELECT 1")
    pid = main_pid()
    helpers = workers(pid)
    true(helpers, "no worker")
    watcher = Client(ADDRESS)
    owner = watcher.bus_call("GetNameOwner", "(s)", "org.sqlipc1")[0]
    os.kill(pid, 9)
    # Until the bus has noticed, it hands calls to the dying process, and the outcome of those is unknown.
    wait_for(lambda: not watcher.bus_call("NameHasOwner", "(s)", owner)[0], "the bus notices")
    equal(query("SELECT count(*) FROM Genre"), "25\n", "rows")
    true(main_pid() not in (0, pid), "the same process")
    wait_for(lambda: not any(pathlib.Path(f"/proc/{p}").exists() for p in helpers), "workers of the dead one are gone")


@test
def stops_cleanly():
    """systemctl stop ends the service with success, and no process is left"""
    query("SELECT 1")
    pid = main_pid()
    done("systemctl", "stop", UNIT)
    equal(unit("ActiveState", "Result", "ExecMainStatus"), ["inactive", "success", "0"], "state of the unit")
    true(not pathlib.Path(f"/proc/{pid}").exists(), "it still runs")
    left = [p for p in pathlib.Path("/proc").glob("[0-9]*/exe") if "sqlipc-worker" in str(p.resolve())]
    equal(left, [], "workers left")


@test
def upgrade():
    """An upgrade replaces both programs while the service is stopped, and the next call runs the new programs"""
    query("SELECT 1")
    folder = pathlib.Path(os.readlink(f"/proc/{main_pid()}/exe")).parent
    stop()
    new = {}
    for name in ("sqlipcd", "sqlipc-worker"):
        shutil.copy2(folder / name, folder / f"{name}.new")
        os.rename(folder / f"{name}.new", folder / name)
        new[name] = os.stat(folder / name).st_ino
    equal(query("SELECT count(*) FROM Genre"), "25\n", "rows")
    running = {os.readlink(f"/proc/{p}/exe"): os.stat(f"/proc/{p}/exe").st_ino for p in [main_pid(), *workers(main_pid())]}
    equal(running, {str(folder / name): number for name, number in new.items()}, "programs that run")


@test
def unpacked_while_it_runs():
    """After a package is unpacked and before the restart, the running service still starts its own old workers"""
    query("SELECT 1")
    folder = pathlib.Path(os.readlink(f"/proc/{main_pid()}/exe")).parent
    before = os.stat(folder / "sqlipc-worker").st_ino
    shutil.copy2(folder / "sqlipc-worker", folder / "sqlipc-worker.new")
    os.rename(folder / "sqlipc-worker.new", folder / "sqlipc-worker")
    for pid in workers(main_pid()):
        os.kill(pid, 9)
    wait_for(lambda: not workers(main_pid()), "the old workers are gone")
    equal(query("SELECT count(*) FROM Genre"), "25\n", "rows")
    equal({os.stat(f"/proc/{p}/exe").st_ino for p in workers(main_pid())}, {before}, "programs of workers")
    stop()


@test
def stuck_loop():
    """The watchdog ends a supervisor that hangs: the next call starts a new one"""
    with dropped("[Service]\nWatchdogSec=20s\n"):  # A supervisor that only waits for a CPU still notifies in this time.
        query("SELECT 1")
        pid = main_pid()
        first = unit("WatchdogTimestampMonotonic")
        wait_for(lambda: unit("WatchdogTimestampMonotonic") != first, "it tells the watchdog that it lives")
        equal((main_pid(), unit("Result")), (pid, "success"), "process that lives")
        os.kill(pid, 19)  # SIGSTOP
        wait_for(lambda: unit("Result") == "watchdog", "the watchdog ends it")
        wait_for(lambda: main_pid() != pid, "it is gone")  # An earlier call could end with the old process.
        equal(query("SELECT count(*) FROM Genre"), "25\n", "rows")
        true(main_pid() not in (0, pid), "the same process")
