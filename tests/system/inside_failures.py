# SPDX-License-Identifier: LGPL-2.1-or-later
"""Failures around the service: it does not start, or hundreds of clients connect at once."""
import contextlib
import resource

from machine import (
    ADDRESS, Client, bus, call_reload_of_bus, done, dropped, equal, main_pid, query, refused, stop, test, true, uid, written,
)

SHORT_WAIT = """<busconfig><limit name="service_start_timeout">2000</limit></busconfig>"""


@test
def unit_that_does_not_start():
    """If the unit fails to start, clients get an error: at once on dbus-broker, after the bus's timeout on dbus-daemon"""
    with dropped("[Service]\nExecStart=\nExecStart=/usr/lib/sqlipc-test/no-such-program\n"):
        if bus == "broker":
            said = query("SELECT 1", run=refused)
            true("could not be started" in said, f"the bus says it, not a client that waited 25 s: {said}")
        else:
            with written("/etc/dbus-1/system.d/sqlipc-test-wait.conf", SHORT_WAIT, then=call_reload_of_bus):
                true("time" in query("SELECT 1", run=refused).lower(), "the bus says that it timed out")
    equal(query("SELECT count(*) FROM Genre"), "25\n", "rows once it can start")


@contextlib.contextmanager
def stopped(name):
    """Freezes the processes of a unit for the block."""
    done("systemctl", "kill", "--signal=STOP", name)
    try:
        yield
    finally:
        done("systemctl", "kill", "--signal=CONT", name)


@test
def name_that_is_not_given():
    """If the bus's policy refuses the name, the service logs what to check, even if the journal is slow"""
    rule = '<busconfig><policy user="sqlipc"><deny own="org.sqlipc1"/></policy></busconfig>'
    stop()
    with (
        written("/etc/dbus-1/system.d/sqlipc-test-deny.conf", rule, then=call_reload_of_bus),
        stopped("systemd-journald.service"),  # So journald reads the message after its sender has exited.
    ):
        refused("systemctl", "start", "sqlipcd.service")
    done("journalctl", "--sync")
    said = done("journalctl", "--no-pager", "--unit=sqlipcd.service", "--lines=20")
    true("its policy, org.sqlipc1.conf," in said, said)
    stop()
    equal(query("SELECT count(*) FROM Genre"), "25\n", "rows once it is given")


@test
def hundreds_of_peers():
    """700 peers of three users stay within the default limits of the bus: all are served, the service stays on the bus"""
    stop()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
    users = [uid(user) for user in ("sqlipc-reader", "sqlipc-other", "root")]
    clients = []
    try:
        for n in range(700):
            clients.append(Client(ADDRESS, users[n % 3]))
            clients[-1].manager("ListDatabases")
        pid = main_pid()
        for client in clients[::50]:
            client.point()
        equal(main_pid(), pid, "process")
        # If the bus had closed the service's connection, the service would have lost its name.
        equal(Client(ADDRESS).bus_call("GetConnectionUnixProcessID", "(s)", "org.sqlipc1")[0], pid, "owner of the name")
    finally:
        for client in clients:
            client.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
