# SPDX-License-Identifier: LGPL-2.1-or-later
"""Functions that the tests in the container share: commands as real users, the unit and its drop-ins, databases.

Each test leaves the unit as installed and the bus as booted; dropped() removes the drop-in that it added.
"""
import contextlib
import os
import pathlib
import pwd
import shutil
import subprocess
import sys
import time

HOME = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(HOME / "tests/bus"))
from client import Client, Failure, MANAGER, reference, same_rows  # noqa: E402, F401 - for the tests
from tap import PATIENCE, equal, test, true  # noqa: E402, F401 - for the tests

ADDRESS = "unix:path=/run/dbus/system_bus_socket"
CHINOOK = HOME / "tests/data/chinook.sqlite"
UNIT = "sqlipcd.service"
USER = "sqlipc-reader"
DROP_IN = pathlib.Path("/run/systemd/system/sqlipcd.service.d/test.conf")
DATABASES = pathlib.Path("/etc/sqlipc/databases.d")
STATE = pathlib.Path("/var/lib/sqlipc")
# The bus program, and whether the programs are built with sanitizers: see inside.py.
bus = sys.argv[1]
sanitized = os.environ.get("SQLIPC_SANITIZED") == "1"


def words_of(user, *words):
    """Returns the words of a command that runs as this user, with the user's groups."""
    return ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups", "--", *words]


def command(*words, user=None, **keywords):
    """Runs a command, as the user if one is given."""
    return subprocess.run(
        words_of(user, *words) if user else words,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
        timeout=2 * PATIENCE,
        **keywords,
    )


def done(*words, user=None, **keywords):
    """Runs a command that must succeed; returns its output."""
    result = command(*words, user=user, **keywords)
    if result.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, words))} ended with {result.returncode}: {result.stderr}")
    return result.stdout


def refused(*words, user=None, **keywords):
    """Runs a command that must fail; returns its error text."""
    result = command(*words, user=user, **keywords)
    if result.returncode == 0:
        raise AssertionError(f"{' '.join(map(str, words))} succeeded: {result.stdout}")
    return result.stderr


def wait_for(condition, what):
    """Polls until `condition` returns a true value; returns that value. Most conditions start a program, so what takes long
    is asked less and less often."""
    start = time.monotonic()
    while not (result := condition()):
        waited = time.monotonic() - start
        true(waited < PATIENCE, f"waited {PATIENCE} s without success: {what}")
        time.sleep(min(0.02 + waited / 10, 0.5))
    return result


def uid(user):
    return pwd.getpwnam(user).pw_uid


def session():
    """The prefix of a command on the bus of USER's own service manager."""
    runtime = f"/run/user/{uid(USER)}"
    return ["env", f"XDG_RUNTIME_DIR={runtime}", f"DBUS_SESSION_BUS_ADDRESS=unix:path={runtime}/bus", f"HOME=/home/{USER}"]


def as_user(*words):
    """Runs a command that must succeed on that bus; returns its output."""
    return done(*session(), *words, user=USER)


@contextlib.contextmanager
def manager():
    """The service manager of USER, and USER's home directory with the folder of databases."""
    home = pathlib.Path(f"/home/{USER}")
    config = home / ".config/sqlipc/databases.d"
    config.mkdir(parents=True)
    done("chown", "-R", f"{USER}:{USER}", home)
    home.chmod(0o700)
    unit = f"user@{uid(USER)}.service"
    # Tests follow each other quickly, and the limit of starts is not their subject.
    command("systemctl", "reset-failed", unit, f"user-runtime-dir@{uid(USER)}.service")
    done("systemctl", "start", unit)
    try:
        yield home, config
    finally:
        done("systemctl", "stop", unit)
        shutil.rmtree(home)


def unit(*properties):
    """Returns properties of the unit, in the order of the arguments."""
    lines = done("systemctl", "show", *(f"--property={p}" for p in properties), UNIT).splitlines()
    values = dict(line.split("=", 1) for line in lines)
    found = [values[p] for p in properties]
    return found[0] if len(found) == 1 else found


def main_pid():
    return int(unit("MainPID"))


def workers(pid):
    return [int(p) for p in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def status(pid, key):
    """Returns a field of /proc/PID/status."""
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    return text.split(f"\n{key}:\t", 1)[1].split("\n", 1)[0].strip()


def query(sql, database="chinook", user="sqlipc-reader", run=done, **keywords):
    """Returns the output of ipcq-cli for a user, without the line of column names."""
    out = run("ipcq-cli", "--system", "--mode=csv", database, sql, user=user, **keywords)
    return out if run is not done else "".join(out.splitlines(keepends=True)[1:])


def call_reload_of_bus():
    done("busctl", "call", "org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", "ReloadConfig")


def stop():
    done("systemctl", "stop", UNIT)
    command("systemctl", "reset-failed", UNIT)


@contextlib.contextmanager
def dropped(text, path=DROP_IN):
    """Adds a drop-in to the unit, for the next start. Afterwards the drop-in is removed and the unit is stopped."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    stop()
    done("systemctl", "daemon-reload")
    try:
        yield
    finally:
        path.unlink()
        done("systemctl", "daemon-reload")
        stop()


@contextlib.contextmanager
def written(path, text, then=lambda: None):
    """Creates a file for the block; `then` runs after the file is created, and after it is removed."""
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    try:
        then()
        yield
    finally:
        path.unlink()
        then()


def reload():
    """Puts the configuration into effect. A service that does not run reads its configuration at its next start."""
    if unit("ActiveState") == "active":
        done("systemctl", "reload", UNIT)


def published(name, path, *lines):
    """Publishes a database for the block."""
    text = "\n".join(["[Database]", f"Path={path}", *lines, ""])
    return written(DATABASES / f"{name}.conf", text, then=reload)


def copy_of_chinook(path, user=None, mode=0o644):
    """Makes a copy of Chinook, which is in rollback journal mode; returns its path. `user`: the owner of the copy."""
    pathlib.Path(path).parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(CHINOOK, path)
    if user:
        shutil.chown(path, user, user)
    os.chmod(path, mode)
    return path
