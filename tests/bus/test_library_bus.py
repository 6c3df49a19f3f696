#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The bus on which libsqlipc, the shell and Python find a database, by the rule of sqlipc_open(3)."""
import contextlib
import os
import signal
import socket
import sqlite3
import sys

from client import Text
from harness import BUILD_ROOT, CLI, UID_A, Service, main, needs_root, python_package
from library import NOTHING, Library
from tap import Skip, equal, test, true

CONNREFUSED, NOENT = 111, 2


def add(service, name, text):
    """Publishes a database with one row, the name of its bus."""
    path = service.data / f"{name}.sqlite"
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.executescript(f"CREATE TABLE place(name); INSERT INTO place VALUES ('{text}')")
    service.database(name, Path=path)
    service.driver.manager("Reload")


@contextlib.contextmanager
def two_buses():
    """A user's service and the system's, and the environment of a program that sees both."""
    with Service() as user, Service() as system:
        for service, text in ((user, "user"), (system, "system")):
            add(service, text + "s", text)
            add(service, "both", text)
        yield user, system, {"DBUS_SESSION_BUS_ADDRESS": user.address, "DBUS_SYSTEM_BUS_ADDRESS": system.address}


def place(service, environment, name, bus=""):
    """Opens a database, and returns the bus, after a look at the row."""
    with Library(service, opening=f"find {name} {bus}", environment=environment) as library:
        bus_name = library.ask("bus-name")[1].removeprefix("bus ")
        library.ok(f"query {name} SELECT name FROM place")
        equal(library.ask("rows 0")[0][0][0], Text(bus_name.encode()), "the row")
        return bus_name


def failure(service, environment, name, bus=""):
    """Returns errno, name and message of an attempt to open a database that must fail."""
    with started(service, environment) as library:
        return library.failure(f"find {name} {bus}")


def started(service, environment):
    """Returns a library-client that has opened nothing."""
    return Library(service, opening=NOTHING, environment=environment)


@test
def looked_up():
    """A name is looked up on the user's bus, and then on the system's; the connection keeps the service that it found"""
    with two_buses() as (user, system, both):
        equal(place(user, both, "users"), "user", "only the user has it")
        equal(place(user, both, "systems"), "system", "only the system has it")
        equal(place(user, both, "both"), "user", "both have it")
        error, name, message = failure(user, both, "nowhere")
        equal((error, name), (NOENT, "UnknownDatabase"), message)
        true("neither" in message and "nowhere" in message, message)
        with Library(user, opening="find systems", environment=both) as library:
            add(user, "systems", "user")
            system.kill()
            system.start()
            library.ok("query systems SELECT name FROM place")
            equal(library.ask("rows 0")[0], [[Text(b"system")]], "the same service after a restart")


@test
def without_a_bus_of_the_user():
    """Without a user's bus, or without the service on it, the system's bus is asked; that is no error"""
    with two_buses() as (user, _, both):
        none = both | {"DBUS_SESSION_BUS_ADDRESS": "unix:path=/nowhere/bus"}
        equal(place(user, none, "both"), "system", "without a bus")
        user.kill()
        equal(place(user, both, "both"), "system", "without the service")
        error, name, message = failure(user, both, "nowhere")
        equal((error, name), (NOENT, "UnknownDatabase"), message)


@test
def errors_do_not_lead_on():
    """If the user's service cannot be asked, or its database is broken, that is an error, which names the other bus"""
    with two_buses() as (user, _, both), socket.socket(socket.AF_UNIX) as closed:
        closed.bind(str(user.folder / "closed"))
        error, _, _ = failure(user, both | {"DBUS_SESSION_BUS_ADDRESS": f"unix:path={user.folder}/closed"}, "both")
        equal(error, CONNREFUSED, "a bus that refuses")
        user.database("both", Path="relative")
        user.driver.manager("Reload")
        error, name, message = failure(user, both, "both")
        equal((error, name), (NOENT, "UnknownDatabase"), message)
        true("configuration" in message and "SQLIPC_BUS=system" in message, message)
        equal(place(user, both | {"SQLIPC_BUS": "system"}, "both"), "system", "as the message says")


@test
def chosen():
    """The argument and SQLIPC_BUS choose one bus; if another one has the database, the error says so"""
    with two_buses() as (user, system, both):
        for environment, bus in ((both, "{}"), (both | {"SQLIPC_BUS": "{}"}, "")):
            for which, other in (("user", "system"), ("system", "user")):
                variable = {key: value.format(which) for key, value in environment.items()}
                equal(place(user, variable, "both", bus.format(which)), which, f"{which}, {bus}")
                error, name, message = failure(user, variable, other + "s", bus.format(which))
                equal((error, name), (NOENT, "UnknownDatabase"), message)
                true(f"on the {which} bus" in message and f"SQLIPC_BUS={other}" in message, message)
        with Library(user, opening="find both", environment=both | {"SQLIPC_BUS": system.address}) as library:
            library.ok("query both SELECT name FROM place")
            equal(library.ask("rows 0")[0], [[Text(b"system")]], "an address")
        equal(failure(user, both | {"SQLIPC_BUS": "sytem"}, "both")[0], 22, "a typing error")


@test
def shell():
    """The shell follows the rule: for its argument, .open, --list, SQLIPC_BUS and a choice that is wrong"""

    def ask(*arguments, code=0, **more):
        done = user.run(CLI, "--mode=csv", *arguments, environment=both | more)
        equal(done.returncode, code, done.stderr)
        return done.stdout.decode(), done.stderr.decode()

    with two_buses() as (user, _, both):
        row = "SELECT name FROM place"
        for name, found in (("users", "user"), ("systems", "system"), ("both", "user")):
            equal(ask(name, row)[0].split()[-1], found, name)
        equal(ask("both", row, SQLIPC_BUS="system")[0].split()[-1], "system", "SQLIPC_BUS")
        equal(ask("--system", "both", row)[0].split()[-1], "system", "--system")
        out, _ = ask("users", row, ".open systems", row, ".open both", row)
        equal([line for line in out.split() if line != "name"], ["user", "system", "user"], ".open")
        _, err = ask("nowhere", row, code=1)
        true("neither on the user's bus" in err, err)
        _, err = ask("--user", "systems", row, code=1)
        true("the system bus has a database systems" in err and "--system" in err, err)
        out, err = ask("--list")
        listed = [tuple(line.split(",")[i] for i in (0, -1)) for line in out.splitlines()[1:]]
        equal(listed, [("both", "user"), ("users", "user"), ("both", "system"), ("systems", "system")], out)
        true("both is on both buses" in err, err)
        out, err = ask("--list", "--system")
        equal(("users" in out, "systems" in out, err), (False, True, ""), "the list of one bus")


@test
def python():
    """Python follows the rule, also in an event loop, and keeps the service"""
    program = """
import asyncio, sqlipc, sqlipc.aio
for name in ("users", "systems", "both"):
    print(name, sqlipc.connect(name).execute("SELECT name FROM place").fetchone()[0])
async def ask(name):
    async with sqlipc.aio.connect(name) as db, db.execute("SELECT name FROM place") as cursor:
        return (await cursor.fetchone())[0]
for name in ("users", "systems", "both"):
    print(name, asyncio.run(ask(name)))
try:
    sqlipc.connect("nowhere")
except sqlipc.OperationalError as error:
    print(error.sqlite_errorname, error.service_error)
"""
    if not (BUILD_ROOT / "client-lib/python/sqlipc/_native.abi3.so").exists():
        raise Skip("the Python package is not built")
    with two_buses() as (user, _, both):
        done = user.run(sys.executable, "-c", program, environment=both | python_package())
        lines = ["users user", "systems system", "both user"] * 2
        lines += ["SQLITE_CANTOPEN org.sqlipc1.Error.UnknownDatabase"]
        equal((done.stdout.decode().splitlines(), done.stderr), (lines, b""), "output")


@needs_root
def of_another_user():
    """A program with a changed uid does not use the bus of another user, which the environment still names"""
    with two_buses() as (user, _, both):
        address = user.folder / "theirs"
        with socket.socket(socket.AF_UNIX) as theirs:
            theirs.bind(str(address))
            ready, tell = os.pipe()
            pid = os.fork()
            if pid == 0:  # the process that listens is the owner
                os.setresuid(UID_A, UID_A, UID_A)
                theirs.listen()
                os.write(tell, b"x")
                signal.pause()
            try:
                os.read(ready, 1)
                sudo = both | {"DBUS_SESSION_BUS_ADDRESS": f"unix:path={address}"}
                equal(place(user, sudo, "both"), "system", "the bus")
                equal(failure(user, sudo, "both", "user")[0], 1, "EPERM if it is chosen")
            finally:
                os.kill(pid, 9)
                os.waitpid(pid, 0)
                os.close(ready)
                os.close(tell)


main()
