# SPDX-License-Identifier: LGPL-2.1-or-later
"""The service of a single user, on the bus of the user's own manager, with the user's configuration and rights."""
import pathlib
import shutil

from machine import copy_of_chinook, done, equal, status, test, true, uid

USER = "sqlipc-reader"


def as_user(*words):
    runtime = f"/run/user/{uid(USER)}"
    bus = f"DBUS_SESSION_BUS_ADDRESS=unix:path={runtime}/bus"
    return done("env", f"XDG_RUNTIME_DIR={runtime}", bus, f"HOME=/home/{USER}", *words, user=USER)


def property_of(name):
    return as_user("systemctl", "--user", "show", f"--property={name}", "--value", "sqlipcd.service").strip()


@test
def users_own_service():
    """A user's own manager starts the service on the first call; it reads files that are closed to others, and reloads"""
    home = pathlib.Path(f"/home/{USER}")
    config = home / ".config/sqlipc/databases.d"
    config.mkdir(parents=True)
    copy_of_chinook(home / "mine.sqlite", mode=0o600)
    (config / "mine.conf").write_text(f"[Database]\nPath={home}/mine.sqlite\n")
    done("chown", "-R", f"{USER}:{USER}", home)
    home.chmod(0o700)
    manager = f"user@{uid(USER)}.service"
    done("systemctl", "start", manager)
    try:
        equal(as_user("ipcq-cli", "--user", "--mode=csv", "mine", "SELECT count(*) FROM Genre"), "count(*)\n25\n", "rows")
        pid = int(property_of("MainPID"))
        equal(status(pid, "Uid").split()[0], str(uid(USER)), "it runs as")
        equal((status(pid, "NoNewPrivs"), status(pid, "Seccomp")), ("1", "2"), "its sandbox")
        true(property_of("ControlGroup").split("/")[-1] == "sqlipcd.service", "it is the unit that the bus started")
        (config / "more.conf").write_text(f"[Database]\nPath={home}/mine.sqlite\n")
        as_user("systemctl", "--user", "reload", "sqlipcd.service")
        equal(as_user("ipcq-cli", "--user", "--mode=csv", "more", "SELECT 1"), "1\n1\n", "rows of the new database")
        equal(int(property_of("MainPID")), pid, "process")
    finally:
        done("systemctl", "stop", manager)
        shutil.rmtree(home)
