# SPDX-License-Identifier: LGPL-2.1-or-later
"""sqlipcctl and the unit: its verdict on a database agrees with the service's, also when the unit has drop-ins."""
import pathlib
import shutil

from machine import (
    DROP_IN, HOME, STATE, command, copy_of_chinook, done, dropped, equal, published, query, refused, stop, test, true,
    written,
)

HOME_DROP_IN = HOME / "docs/examples/home.conf"


def found(database):
    """Returns the findings of check about one database, and its exit code."""
    result = command("sqlipcctl", "check")
    lines = [line for line in result.stdout.splitlines() if line.split(": ")[1:2] == [database]]
    return result.returncode, lines


def agrees(database, *settings, opened):
    """Fails unless check and the service agree about a database."""
    code, lines = found(database)
    if opened:
        equal((code, lines), (0, []), f"check with {settings}")
        equal(query("SELECT count(*) FROM Genre", database), "25\n", f"rows with {settings}")
    else:
        true(lines, f"check finds nothing with {settings}")
        true("CannotOpen" in query("SELECT 1", database, run=refused), f"the service opens it with {settings}")


@test
def check_knows_groups():
    """check: a folder of a group is an error until a drop-in gives the unit that group, by name or number"""
    folder = pathlib.Path("/srv/accounts")
    path = copy_of_chinook(folder / "accounts.sqlite", mode=0o640)
    folder.chmod(0o750)
    for one in (folder, path):
        shutil.chown(one, "root", "accounting")
    gid = path.stat().st_gid
    with published("accounts", path, "AllowUsers=*"):
        agrees("accounts", opened=False)
        equal(found("accounts")[0], 1, "exit code")
        for group in ("accounting", gid):
            with dropped(f"[Service]\nSupplementaryGroups={group}\n"):
                agrees("accounts", group, opened=True)
        agrees("accounts", opened=False)
    shutil.rmtree(folder)


@test
def check_knows_what_is_hidden():
    """check: home directories and /tmp are hidden until a drop-in shows them, or the one folder"""
    home = pathlib.Path("/home/sqlipc-reader")
    home.mkdir(mode=0o755)
    path = copy_of_chinook(home / "mine.sqlite")
    with published("mine", path, "AllowUsers=*"):
        agrees("mine", opened=False)
        true("ProtectHome=" in found("mine")[1][0], "what hides it")
        for setting in (HOME_DROP_IN.read_text(), f"[Service]\nProtectHome=tmpfs\nBindReadOnlyPaths={home}\n"):
            with dropped(setting):
                agrees("mine", setting, opened=True)
        with dropped("[Service]\nProtectHome=tmpfs\nBindReadOnlyPaths=/srv\n"):
            true("ProtectHome=" in found("mine")[1][0], "another folder is shown")
    path = copy_of_chinook(pathlib.Path("/tmp/mine.sqlite"))
    with published("mine", path, "AllowUsers=*"):
        true("PrivateTmp=" in found("mine")[1][0], "what hides it")
        with dropped("[Service]\nPrivateTmp=no\n"):
            agrees("mine", "PrivateTmp=no", opened=True)
    path.unlink()
    shutil.rmtree(home)


@test
def check_knows_of_a_restart():
    """check: reports a drop-in that the running service does not have yet, until the service is restarted"""
    stop()
    with written(DROP_IN, "[Service]\nNice=1\n", then=lambda: done("systemctl", "daemon-reload")):
        equal(found("unit"), (0, []), "without the service")
        query("SELECT 1")
        equal(found("unit"), (0, []), "with a service that was started later")
        DROP_IN.write_text("[Service]\nNice=2\n")
        done("systemctl", "daemon-reload")
        true("systemctl restart sqlipcd" in found("unit")[1][0], "with a service that was started before")
        done("systemctl", "restart", "sqlipcd")
        equal(found("unit"), (0, []), "after a restart")
    stop()


@test
def check_of_another_user():
    """check: names the user that the service runs as because of a drop-in"""
    path = copy_of_chinook(pathlib.Path("/srv/private.sqlite"), "sqlipc-other", mode=0o600)
    with published("private", path, "AllowUsers=*"):
        true("the user sqlipc may not read" in found("private")[1][0], "the unit as it is installed")
        with dropped("[Service]\nUser=sqlipc-other\n"):
            equal(found("private"), (1, []), "with the owner of the file, who may not read the configuration")
        with dropped("[Service]\nUser=sqlipc-other\nSupplementaryGroups=sqlipc\n"):
            equal(found("private"), (0, []), "with the owner of the file, who may")
    path.unlink()


INSERT = "INSERT INTO note VALUES('new')"


@test
def create_in_the_state_directory():
    """create: makes a database that the unit can write to, in its own folder; the users that are named write, others read"""
    schema = pathlib.Path("/root/note.sql")
    schema.write_text("CREATE TABLE note(text);")
    path = STATE / "databases/notes.sqlite"
    words = (f"--schema={schema}", "--allow-user=*", "--write-user=sqlipc-reader", "--reload")
    out = done("sqlipcctl", "create", "notes", *words)
    true(out.startswith(f"Created {path}.\n"), out)
    equal([(p.owner(), p.group(), oct(p.stat().st_mode & 0o777)) for p in (path.parent, path)],
          [("sqlipc", "sqlipc", "0o700"), ("sqlipc", "sqlipc", "0o600")], "owners and modes")
    equal(found("notes"), (0, []), "findings")
    query(INSERT, "notes")
    true("may only read" in query(INSERT, "notes", user="sqlipc-other", run=refused), "a user that is not named")
    equal(query("SELECT count(*) FROM note", "notes", user="sqlipc-other"), "1\n", "rows")
    stop()
    done("sqlipcctl", "remove", "notes")
    shutil.rmtree(path.parent)
    schema.unlink()


@test
def check_knows_where_the_unit_writes():
    """check: a database that is elsewhere cannot be written to until a drop-in lets the service write there"""
    folder, schema = pathlib.Path("/srv/notes"), pathlib.Path("/root/note.sql")
    folder.mkdir()
    shutil.chown(folder, "sqlipc", "sqlipc")
    schema.write_text("CREATE TABLE note(text);")
    words = (f"--schema={schema}", "--allow-user=*", "--write-user=sqlipc-reader", "--reload")
    done("sqlipcctl", "create", "notes", folder / "notes.sqlite", *words)
    code, lines = found("notes")
    true(code == 0 and "ProtectSystem=" in lines[0] and "ReadWritePaths=" in lines[0], f"findings {lines}")
    true("sqlipcctl check" in query(INSERT, "notes", run=refused), "a file in a folder that the sandbox closes")
    with dropped(f"[Service]\nReadWritePaths={folder}\n"):
        equal(found("notes"), (0, []), "findings with the drop-in")
        query(INSERT, "notes")
    done("sqlipcctl", "remove", "notes")
    shutil.rmtree(folder)
    schema.unlink()


@test
def check_needs_no_service_manager():
    """check: uses the unit as installed if there is no bus to ask"""
    done("env", "DBUS_SYSTEM_BUS_ADDRESS=unix:path=/nonexistent", "sqlipcctl", "check")
