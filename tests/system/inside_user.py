# SPDX-License-Identifier: LGPL-2.1-or-later
"""The service of a single user, on the bus of the user's own manager, with the user's configuration and rights."""
import shutil

from machine import USER, as_user, copy_of_chinook, equal, manager, status, test, true, uid
from served import FOLDER, PASSWORD, SOCKET, server


def property_of(name):
    return as_user("systemctl", "--user", "show", f"--property={name}", "--value", "sqlipcd.service").strip()


@test
def users_own_service():
    """A user's own manager starts the service on the first call; it reads files that are closed to others, and reloads"""
    with manager() as (home, config):
        copy_of_chinook(home / "mine.sqlite", USER, mode=0o600)
        (config / "mine.conf").write_text(f"[Database]\nPath={home}/mine.sqlite\n")
        equal(as_user("ipcq-cli", "--user", "--mode=csv", "mine", "SELECT count(*) FROM Genre"), "count(*)\n25\n", "rows")
        pid = int(property_of("MainPID"))
        equal(status(pid, "Uid").split()[0], str(uid(USER)), "it runs as")
        equal((status(pid, "NoNewPrivs"), status(pid, "Seccomp")), ("1", "2"), "its sandbox")
        true(property_of("ControlGroup").split("/")[-1] == "sqlipcd.service", "it is the unit that the bus started")
        (config / "more.conf").write_text(f"[Database]\nPath={home}/mine.sqlite\n")
        as_user("systemctl", "--user", "reload", "sqlipcd.service")
        equal(as_user("ipcq-cli", "--user", "--mode=csv", "more", "SELECT 1"), "1\n1\n", "rows of the new database")
        equal(int(property_of("MainPID")), pid, "process")


@test
def users_own_engine():
    """A user's own service reads databases of a server by the user's units: as this user, or by TCP with a password"""
    with server(), manager() as (home, config):
        (home / "password").write_text(PASSWORD + "\n")
        shutil.chown(home / "password", USER, USER)
        (home / "password").chmod(0o600)
        as_user("systemctl", "--user", "start", SOCKET)
        for name, lines in {
            "peer": f"Connection=host={FOLDER} dbname=postgres user={USER}\n",
            "tcp": f"Connection=host=127.0.0.1 dbname=postgres user=reader sslmode=disable\nPasswordFile={home}/password\n",
        }.items():
            (config / f"{name}.conf").write_text(f"[Database]\nEngine=postgresql\n{lines}")
            as_user("sqlipcctl", "--user", "reload")
            said = as_user("ipcq-cli", "--user", "--mode=csv", name, "SELECT name FROM genre")
            equal(said, "name\nRock\n", f"rows of {name}")
            units = as_user("systemctl", "--user", "list-units", "--plain", "--no-legend", "sqlipc-engine@*")
            true(units, "the user's manager runs the engine")
        as_user("systemctl", "--user", "stop", "sqlipcd.service")
