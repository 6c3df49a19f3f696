# SPDX-License-Identifier: LGPL-2.1-or-later
"""A PostgreSQL server in the container, a database of it that is published as "served", and the processes of its engine."""
import contextlib
import glob
import pathlib
import shutil
import signal
import subprocess

from machine import DATABASES, command, done, query, reload, stop, wait_for, words_of, written
from tap import Skip

SOCKET = "sqlipc-engine.socket"
FOLDER = pathlib.Path("/srv/postgres")
PASSWORD = "sesame"


def instances():
    """The units of engine processes that are there now."""
    lines = done("systemctl", "list-units", "--plain", "--no-legend", "--all", "sqlipc-engine@*").splitlines()
    return [line.split()[0] for line in lines]


def processes():
    """Returns the pids of engine processes, keepers and workers."""
    return [int(pid) for pid in command("pidof", "sqlipc-engine").stdout.split()]


def programs():
    """Returns the folder of the server's programs."""
    found = sorted(map(pathlib.Path, glob.glob("/usr/lib/postgresql/*/bin")))
    if not found:
        raise Skip("PostgreSQL is not installed")
    return found[-1]


def initialize():
    """Makes the server's folder, once for all tests: it goes with the container."""
    FOLDER.mkdir(mode=0o755)
    shutil.chown(FOLDER, "postgres", "postgres")
    done(programs() / "initdb", "-D", FOLDER / "data", "-A", "trust", "-N", user="postgres")
    (FOLDER / "data/pg_hba.conf").write_text(
        "local all postgres trust\nlocal all reader scram-sha-256\nlocal all all peer\nhost all all all scram-sha-256\n"
    )


def administer(sql):
    """Runs SQL as the administrator of the server; returns its output."""
    return done("psql", "-qAth", FOLDER, "-U", "postgres", "-d", "postgres", "-c", sql).strip()


@contextlib.contextmanager
def server():
    """A PostgreSQL server. By its socket it knows users of the system; "reader" has a password, as all have by TCP."""
    is_new = not FOLDER.exists()
    if is_new:
        initialize()
    run = words_of("postgres", programs() / "postgres")
    process = subprocess.Popen([*run, "-D", FOLDER / "data", "-k", FOLDER, "-c", "listen_addresses=0.0.0.0"],
                               stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for(lambda: command("pg_isready", "-q", "-h", FOLDER).returncode == 0, "PostgreSQL answers")
        if is_new:
            administer("CREATE TABLE genre (id int, name text); INSERT INTO genre VALUES (1, 'Rock');"
                       f"CREATE ROLE \"sqlipc-engine\" LOGIN; CREATE ROLE reader LOGIN PASSWORD '{PASSWORD}';"
                       "CREATE ROLE \"sqlipc-reader\" LOGIN;"
                       "GRANT SELECT ON genre TO \"sqlipc-engine\", reader, \"sqlipc-reader\"")
        done("systemctl", "start", SOCKET)
        yield
    finally:
        stop()
        command("systemctl", "stop", SOCKET)
        # At once: without network.conf the end of a connection does not reach the server, which would wait for it.
        process.send_signal(signal.SIGINT)
        process.wait()


def published(connection, *lines):
    text = "\n".join(["[Database]", "Engine=postgresql", f"Connection={connection}", "AllowUsers=*", *lines, ""])
    return written(DATABASES / "served.conf", text, then=reload)


def genre(user="sqlipc-reader", run=done):
    return query("SELECT name FROM genre", "served", user, run=run)
