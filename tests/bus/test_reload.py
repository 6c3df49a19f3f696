#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Names of users in the configuration are looked up beside the service, and a reload is answered when it is in force.

A program of this test stands in place of the child that asks NSS: it waits at a gate until the test opens it.
"""
import concurrent.futures
import contextlib
import grp
import os
import pwd
import signal
import subprocess

from harness import (
    CHINOOK, PATIENCE, SQLIPCD, UID_A, UID_B, Service, children, executable, expect, main, needs_root, wait_for,
)
from notified import Notified
from overheard import Overheard
from tap import equal, test, true

NAME, GROUP = pwd.getpwuid(os.geteuid()).pw_name, grp.getgrgid(0).gr_name
pool = concurrent.futures.ThreadPoolExecutor(max_workers=16)  # more than calls that wait at once, on one CPU, too


class Gate:
    """A resolver that waits; `started` counts those that were started."""

    def __init__(self, folder, then=f"exec '{SQLIPCD}' --resolve"):
        self.fifo, self.log, self.program = (folder / name for name in ("gate", "resolvers", "resolver"))
        os.mkfifo(self.fifo)
        self.log.write_text("")
        self.program.write_text(f"#!/bin/sh\necho \"$*\" >>'{self.log}'\nread line <'{self.fifo}'\n{then}\n")
        self.program.chmod(0o755)

    def started(self):
        return len(self.log.read_text().splitlines())

    def open(self):
        """Lets one through, which must be there or come."""

        def write():
            with contextlib.suppress(OSError):
                os.close(os.open(self.fifo, os.O_WRONLY | os.O_NONBLOCK))
                return True

        wait_for(write, "a resolver waits at the gate")


@contextlib.contextmanager
def gated(then=None, start=True, environment=None, **databases):
    """A service whose resolver waits at a gate, and the gate."""
    service = Service({"chinook": CHINOOK} | databases, start=False)
    with service:
        gate = Gate(service.folder, **({"then": then} if then else {}))
        service.environment |= {"SQLIPC_RESOLVER_PATH": str(gate.program)} | (environment or {})
        if start:
            service.start()
        yield service, gate


def reload_soon(service):
    """The future reply of a Reload that is in the service's socket, before all later calls."""
    client, overheard = service.client(), Overheard(service.address)
    reply = pool.submit(lambda: client.manager("Reload")[0])
    wait_for(lambda: "Reload" in overheard.members, "the bus has routed it")
    overheard.close()
    return reply


def published(client):
    return [name for name, _, _ in client.manager("ListDatabases")[0]]


@test
def resolve():
    """sqlipcd --resolve reads names and writes the ids of those that exist"""
    done = subprocess.run(
        [SQLIPCD, "--resolve"],
        input=f"u {NAME}\ng {GROUP}\nu no-such-user\nu \nnonsense\n".encode(),
        capture_output=True,
        timeout=PATIENCE,
        check=True,
    )
    equal(done.stdout.decode(), f"u {NAME} {os.geteuid()}\ng {GROUP} 0\n", "answer")
    done = subprocess.run(
        [SQLIPCD, "--resolve"], input=b"u x\n" * 300000, capture_output=True, timeout=PATIENCE, check=False
    )
    equal((done.returncode, done.stdout), (1, b""), "what becomes of a question without bounds")


@needs_root
def names_let_in():
    """Users and groups that AllowUsers= and AllowGroups= name, by name or number, may use a database; others may not"""
    name = pwd.getpwuid(UID_A).pw_name
    group = grp.getgrgid(UID_B).gr_name
    databases = {
        "user": {"Path": CHINOOK, "AllowUsers": f"no-such-user {name}"},
        "group": {"Path": CHINOOK, "AllowUsers": "", "AllowGroups": group},
        "numbers": {"Path": CHINOOK, "AllowUsers": f"4000000 {UID_A}"},
        "nobody": {"Path": CHINOOK, "AllowUsers": ""},
        "everybody": {"Path": CHINOOK},
    }
    with Service(databases) as service:
        equal(published(service.client(UID_A)), ["everybody", "numbers", "user"], "databases of the one")
        equal(published(service.client(UID_B)), ["everybody", "group"], "databases of the other")
        equal(published(service.client()), sorted(databases), "databases of root")
        expect("UnknownDatabase", service.client(UID_B).manager, "GetDatabase", "(sa{sv})", "user")
        service.database("user", Path=CHINOOK, AllowUsers=pwd.getpwuid(UID_B).pw_name)
        service.driver.manager("Reload")
        equal(published(service.client(UID_B)), ["everybody", "group", "user"], "databases after a reload")
        expect("UnknownDatabase", service.client(UID_A).manager, "GetDatabase", "(sa{sv})", "user")


@test
def unknown_names():
    """An unknown name is a warning with file and line, and the database stays published for the others"""
    with Service({"chinook": CHINOOK}) as service:
        lines = ["[Database]", f"Path={CHINOOK}", f"AllowUsers={NAME} no-such-user", "AllowGroups=no-such-group", ""]
        service.database("x", text="\n".join(lines))
        info = service.client().manager("Reload")[0]
        equal((info["databases"], info["broken"]), (2, {}), "databases and errors")
        file = service.config_dir / "databases.d/x.conf"
        equal(
            info["warnings"],
            [
                f"{file}:3: user no-such-user is not known; the name gives no access to x",
                f"{file}:4: group no-such-group is not known; the name gives no access to x",
            ],
            "warnings",
        )
        true(info["warnings"][0] in service.log_text(), "nothing in the log")


@test
def nobody_waits():
    """During the look-up of names the service keeps the old configuration; Reload returns with the new one"""
    with gated() as (service, gate):
        client = service.client()
        equal(gate.started(), 0, "resolvers for a configuration without names")
        service.database("named", Path=CHINOOK, AllowUsers=NAME)
        reply = reload_soon(service)
        wait_for(lambda: gate.started() == 1, "a resolver is started")
        client.point()
        statement = client.prepare("chinook", "SELECT 1")
        equal(published(client), ["chinook"], "databases meanwhile")
        true(not reply.done(), "Reload was answered before anything was known")
        gate.open()
        equal(reply.result(PATIENCE)["databases"], 2, "databases")
        equal(published(client), ["chinook", "named"], "databases after that")
        equal(statement.fetch().read().rows, [[1]], "rows of a statement that was made meanwhile")
        client.point("named")
        equal(gate.log.read_text(), "--resolve\n", "arguments of the resolver")
        wait_for(lambda: set(children(service.pid())) == set(service.workers()), "the resolver is reaped")
        service.forget()


@test
def reloads_share():
    """A Reload during a look-up waits for a load that begins later; all such calls share one"""
    with gated(named={"Path": CHINOOK}) as (service, gate):
        service.database("named", Path=CHINOOK, AllowUsers=NAME)
        first = reload_soon(service)
        wait_for(lambda: gate.started() == 1, "a resolver is started")
        service.database("late", Path=CHINOOK)
        others = [reload_soon(service) for _ in range(5)]
        os.kill(service.pid(), signal.SIGHUP)
        client = service.client()
        client.point()
        gate.open()
        equal(first.result(PATIENCE)["databases"], 2, "databases of the first load")
        wait_for(lambda: gate.started() == 2, "the second load has begun")
        true(not any(reply.done() for reply in others), "answered by a load that began before the call")
        gate.open()
        equal([reply.result(PATIENCE)["databases"] for reply in others], [3] * 5, "databases of the second load")
        equal(published(client), ["chinook", "late", "named"], "databases")
        equal(gate.started(), 2, "resolvers for seven reloads")


@test
def callers_that_leave():
    """A client that asks for a reload and leaves changes nothing for the others"""
    with gated() as (service, gate):
        service.database("named", Path=CHINOOK, AllowUsers=NAME)
        leaver = service.client()
        pool.submit(leaver.manager, "Reload")
        wait_for(lambda: gate.started() == 1, "a resolver is started")
        reply = reload_soon(service)
        service.client().point()
        leaver.close()
        gate.open()
        wait_for(lambda: gate.started() == 2, "the second load has begun")
        gate.open()
        equal(reply.result(PATIENCE)["databases"], 2, "databases")


@test
def name_after_names():
    """At start the service takes its bus name after the names are resolved, and obeys SIGTERM before"""
    with gated(start=False, named={"Path": CHINOOK, "AllowUsers": NAME}) as (service, gate):
        starting = pool.submit(service.start)
        wait_for(lambda: gate.started() == 1, "a resolver is started")
        true(not service.has_owner(), "the name was taken before the configuration was known")
        gate.open()
        starting.result(PATIENCE)
        equal(published(service.client()), ["chinook", "named"], "databases of the first call")
        service.stop()

        daemon = subprocess.Popen(
            [SQLIPCD, f"--address={service.address}", f"--config-dir={service.config_dir}"],
            env=service.environment,
            stderr=service.log,
        )
        wait_for(lambda: gate.started() == 2, "a resolver is started")
        os.kill(daemon.pid, signal.SIGTERM)
        equal(daemon.wait(PATIENCE), 0, "exit code")
        true(not service.has_owner(), "the name was taken")


@test
def stop_meanwhile():
    """A reload under way at the service's stop gets an error, and its child ends"""
    with gated() as (service, gate):
        service.database("named", Path=CHINOOK, AllowUsers=NAME)
        replies = [reload_soon(service)]
        wait_for(lambda: gate.started() == 1, "a resolver is started")
        replies.append(reload_soon(service))
        service.client().point()
        resolvers = children(service.pid())
        service.stop()
        for reply in replies:
            expect("ShuttingDown", reply.result, PATIENCE)
        wait_for(lambda: not any(executable(pid) for pid in resolvers), "the child is gone")


@test
def asked_while_stopping():
    """SIGHUP to a stopping service loads nothing, and notifies systemd of nothing"""
    with Notified() as notified, Service({"chinook": CHINOOK}, environment=notified.environment) as service:
        service.driver.point()
        for worker in service.workers():
            os.kill(worker, signal.SIGSTOP)  # so the stop takes its second
        service.daemon.send_signal(signal.SIGTERM)
        notified.until("STOPPING")
        service.daemon.send_signal(signal.SIGHUP)
        equal(service.daemon.wait(PATIENCE), 0, "exit code")
        service.daemon = None
        equal(set().union(*notified.rest()) & {"RELOADING", "READY"}, set(), "said while it stops")


@test
def resolvers_that_fail():
    """A resolver that is missing, fails or returns nonsense admits no user by name, and harms nothing else"""
    cases = {
        "fails": "exit 3",
        "dies": "kill -9 $$",
        "shouts": "exec head -c 3000000 /dev/zero",
        "lies": f"echo 'u {NAME} -1'; echo '{NAME} 0'; echo 'u other 0'",
    }
    for what, then in cases.items():
        with gated(then=then) as (service, gate):
            service.database("named", Path=CHINOOK, AllowUsers=f"{NAME} 0")
            reply = reload_soon(service)
            gate.open()
            info = reply.result(PATIENCE)
            equal((info["databases"], len(info["warnings"])), (2, 1), f"databases and warnings if it {what}")
            wanted = "is not known" if what == "lies" else "could not be looked up"
            true(wanted in info["warnings"][0], f"if it {what}: {info['warnings']}")
            service.client().point("named")
    with Service({"chinook": CHINOOK}, environment={"SQLIPC_RESOLVER_PATH": "/nonexistent"}) as service:
        service.database("named", Path=CHINOOK, AllowUsers=NAME)
        info = service.client().manager("Reload")[0]
        equal((info["databases"], len(info["warnings"])), (2, 1), "databases and warnings without a resolver")
        true("cannot be started" in service.log_text(), "nothing in the log")


@test
def resolver_that_hangs():
    """A resolver that never answers is killed, and Reload is answered without it"""
    with gated() as (service, gate):
        service.database("named", Path=CHINOOK, AllowUsers=NAME)
        reply = reload_soon(service)
        wait_for(lambda: gate.started() == 1, "a resolver is started")
        (resolver,) = [pid for pid in children(service.pid()) if executable(pid) not in ("", str(SQLIPCD))]
        info = reply.result(PATIENCE)
        equal((info["databases"], len(info["warnings"])), (2, 1), "databases and warnings")
        wait_for(lambda: not os.path.exists(f"/proc/{resolver}"), "it is killed, and reaped")
        true("within 10 seconds" in service.log_text(), "nothing in the log")


@test
def service_manager_hears():
    """RELOADING=1 comes before, READY=1 after the last of several loads"""
    with Notified() as notified, gated(environment=notified.environment) as (service, gate):
        notified.until("READY")
        service.database("named", Path=CHINOOK, AllowUsers=NAME)
        first = reload_soon(service)
        true("MONOTONIC_USEC" in notified.until("RELOADING", "1")[-1], "systemd wants the time beside RELOADING=1")
        wait_for(lambda: gate.started() == 1, "a resolver is started")
        second = reload_soon(service)
        service.client().point()
        gate.open()
        first.result(PATIENCE)
        gate.open()
        second.result(PATIENCE)
        said = [key for message in notified.until("READY") for key in message if key in ("READY", "RELOADING")]
        equal(said, ["RELOADING", "READY"], "what is said of the second load")


@test
def outdated_workers():
    """Idle workers end if their limits change, and stay if they do not"""
    with Service({"chinook": CHINOOK, "other": CHINOOK}, limits={"WorkersMax": 1}) as service:
        client = service.client()
        client.point()
        before = service.workers()
        service.database("more", Path=CHINOOK)
        client.manager("Reload")
        client.point()
        equal(service.workers(), before, "workers after a reload that changes nothing for them")
        service.limits(WorkersMax=1, HeapMax="1M")
        client.manager("Reload")
        wait_for(lambda: not set(before) & set(service.workers()), "workers with the old limits end")
        client.point("other")
        before = service.workers()
        (service.config_dir / "databases.d/other.conf").unlink()
        client.manager("Reload")
        wait_for(lambda: not set(before) & set(service.workers()), "workers of the removed database end")
        expect("OutOfMemory", lambda: client.query("chinook", "SELECT length(hex(zeroblob(2000000)))").read())


main()
