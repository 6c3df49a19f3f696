# SPDX-License-Identifier: LGPL-2.1-or-later
"""A database of a PostgreSQL server, by sqlipc-engine.socket and its sandbox, as ordinary users."""
import contextlib
import glob
import os
import pathlib
import pwd
import shutil
import signal
import subprocess

from inside_sandbox import exposure
from machine import (
    DATABASES, HOME, command, done, dropped, equal, main_pid, query, refused, reload, sanitized, status, stop, test,
    true, wait_for, written,
)
from tap import Skip

SOCKET = "sqlipc-engine.socket"
FOLDER = pathlib.Path("/srv/postgres")
ENGINE_DROP_IN = pathlib.Path("/run/systemd/system/sqlipc-engine@.service.d/test.conf")
NETWORK = HOME / "docs/examples/network.conf"
NAMESPACE = HOME / "docs/examples/network-namespace.conf"
PASSWORD = "sesame"


def instances():
    """The units of engine processes that are there now."""
    lines = done("systemctl", "list-units", "--plain", "--no-legend", "--all", "sqlipc-engine@*").splitlines()
    return [line.split()[0] for line in lines]


def processes():
    """Returns the pids of engine processes, keepers and workers."""
    return [int(pid) for pid in command("pidof", "sqlipc-engine").stdout.split()]


@contextlib.contextmanager
def server():
    """A PostgreSQL server: its socket knows users of the system, and the port of this machine takes passwords."""
    programs = sorted(map(pathlib.Path, glob.glob("/usr/lib/postgresql/*/bin")))
    if not programs:
        raise Skip("PostgreSQL is not installed")
    entry = pwd.getpwnam("postgres")
    FOLDER.mkdir(mode=0o755)
    os.chown(FOLDER, entry.pw_uid, entry.pw_gid)
    done(programs[-1] / "initdb", "-D", FOLDER / "data", "-A", "trust", "-N", user="postgres")
    (FOLDER / "data/pg_hba.conf").write_text(
        "local all postgres trust\nlocal all all peer\nhost all all 127.0.0.1/32 scram-sha-256\n"
    )
    run = ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups", "--", programs[-1] / "postgres"]
    process = subprocess.Popen([*run, "-D", FOLDER / "data", "-k", FOLDER, "-c", "listen_addresses=127.0.0.1"],
                               stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for(lambda: command("pg_isready", "-q", "-h", FOLDER).returncode == 0, "PostgreSQL answers")
        done("psql", "-qh", FOLDER, "-U", "postgres", "-c",
             "CREATE TABLE genre (id int, name text); INSERT INTO genre VALUES (1, 'Rock');"
             f"CREATE ROLE \"sqlipc-engine\" LOGIN; CREATE ROLE reader LOGIN PASSWORD '{PASSWORD}';"
             "GRANT SELECT ON genre TO \"sqlipc-engine\", reader")
        done("systemctl", "start", SOCKET)
        yield
    finally:
        stop()
        command("systemctl", "stop", SOCKET)
        # At once: without network.conf the end of a connection does not reach the server, which would wait for it.
        process.send_signal(signal.SIGINT)
        process.wait()
        shutil.rmtree(FOLDER)


def published(connection, *lines):
    text = "\n".join(["[Database]", "Engine=postgresql", f"Connection={connection}", "AllowUsers=*", *lines, ""])
    return written(DATABASES / "served.conf", text, then=reload)


def genre(user="sqlipc-reader", run=done):
    return query("SELECT name FROM genre", "served", user, run=run)


@test
def exposure_of_engines():
    """systemd-analyze security rates the unit of engines 0.2, by TCP 0.5 or 1.0, and verify reports nothing about it"""
    exposure("sqlipc-engine@.service", 2)
    for drop_in, limit in ((NAMESPACE, 5), (NETWORK, 10)):
        with dropped(drop_in.read_text(), ENGINE_DROP_IN):
            exposure("sqlipc-engine@.service", limit)
    for scope in ("--system", "--user"):
        environment = os.environ | {"XDG_RUNTIME_DIR": "/run"}
        for name in (SOCKET, "sqlipc-engine@1.service"):
            verified = command("systemd-analyze", "verify", scope, "--man=no", name, env=environment)
            equal(verified.stderr, "", f"{scope} {name}")


@test
def engine_answers():
    """Two users get rows of a server by two instances of the unit, which the server knows by the unit's user"""
    with server(), published(f"host={FOLDER} dbname=postgres user=sqlipc-engine"):
        equal(genre(), "Rock\n", "rows of a reader")
        equal(genre("sqlipc-other"), "Rock\n", "rows of another user")
        equal(len(instances()), 2, "instances")
        equal(len(processes()), 4, "keepers and workers")
        for pid in processes():
            equal(status(pid, "Uid").split()[0], str(pwd.getpwnam("sqlipc-engine").pw_uid), "user")
            equal(status(pid, "CapBnd"), "0" * 16, "capabilities")
            equal(status(pid, "NoNewPrivs"), "1", "NoNewPrivs")
            true(sanitized or os.stat(f"/proc/{pid}/exe").st_mode & 0o777 == 0o711, "its user cannot read it")
            true(sanitized or int(status(pid, "Seccomp_filters")) > 1, "filters of the unit and of the process")
        os.kill(main_pid(), 9)
        wait_for(lambda: not processes(), "engine processes end with the service")
        wait_for(lambda: not instances(), "and so do their units")
        equal(genre(), "Rock\n", "after the service's death")


@test
def only_the_service_starts_engines():
    """No other user can connect to the socket of engines"""
    with server():
        code = "import socket; socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET).connect('/run/sqlipc-engine/socket')"
        true("PermissionError" in refused("/usr/bin/python3", "-c", code, user="sqlipc-reader"), "what a user gets")
        true("PermissionError" in refused("/usr/bin/python3", "-c", code, user="sqlipc-engine"), "what an engine gets")
        equal(instances(), [], "instances")


@test
def password_and_network():
    """A password file that only the service may read; a server is reached by TCP only with network.conf"""
    connection, file = "host=127.0.0.1 dbname=postgres user=reader", pathlib.Path("/etc/sqlipc/served.password")
    with server(), written(file, PASSWORD + "\n"), published(connection, f"PasswordFile={file}"):
        file.chmod(0o600)
        true("PasswordFile=" in genre(run=refused), "the service may not read the file of root")
        shutil.chown(file, "sqlipc", "sqlipc")
        true("server" in genre(run=refused), "without a network there is no server")
        with dropped(NETWORK.read_text(), ENGINE_DROP_IN):
            equal(genre(), "Rock\n", "rows by TCP")
        ours = {"/run/netns/sqlipc-engine": "/proc/1/ns/net", "192.0.2.0/24": "localhost"}
        text = NAMESPACE.read_text()
        for old, new in ours.items():
            text = text.replace(old, new)
        with dropped(text, ENGINE_DROP_IN):
            equal(genre(), "Rock\n", "rows by TCP in a network namespace")
        journal = done("journalctl", "--no-pager", "-o", "cat", "-b", "-u", "sqlipcd.service", "-u", "sqlipc-engine@*")
        true(PASSWORD not in journal, "the password is not in the journal")


@test
def no_unit_no_server():
    """Without the socket unit the error says what to install"""
    with published("host=/nonexistent"):
        command("systemctl", "stop", SOCKET)
        true("sqlipc-engine.socket" in genre(run=refused), "the error names the unit")
        true("sqlipc-engine.socket" in command("sqlipcctl", "check").stdout, "so does check")
