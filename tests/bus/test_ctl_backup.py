#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""sqlipcctl backup, vacuum and integrity, while programs use the database.

The database has accounts. Each transaction moves an amount from one to another, so the sum is always the same.
"""
import contextlib
import json
import os
import pathlib
import pwd
import signal
import sqlite3
import subprocess
import sys
import threading
import time

from harness import CTL, PATIENCE, SANITIZED, UID_A, UID_B, UID_DAEMON, Service, children, main, needs_root, wait_for
from tap import equal, test, true

OK, FAILED, USAGE = 0, 1, 2
ACCOUNTS, AMOUNT = 1000, 100
SUM = ACCOUNTS * AMOUNT


def connected(path):
    return contextlib.closing(sqlite3.connect(path, timeout=PATIENCE, isolation_level=None))


def make_accounts(path, journal="wal", megabytes=4):
    with connected(path) as db:
        db.execute(f"PRAGMA journal_mode={journal}")
        db.execute("CREATE TABLE account(id INTEGER PRIMARY KEY, amount INTEGER, filler BLOB)")
        db.execute("CREATE TABLE note(account REFERENCES account(id))")
        db.execute(
            "WITH n(x) AS (VALUES (1) UNION ALL SELECT x + 1 FROM n WHERE x < ?) "
            "INSERT INTO account SELECT x, ?, randomblob(?) FROM n",
            (ACCOUNTS, AMOUNT, megabytes * 1000000 // ACCOUNTS),
        )
    return path


@contextlib.contextmanager
def accounts(journal="wal", megabytes=4, uid=None, **keys):
    """A service that publishes the accounts for writing, in a folder of its user."""
    with Service({}, uid=uid) as service:
        folder = service.folder / "owned"
        folder.mkdir()
        service.file = make_accounts(folder / "accounts.sqlite", journal, megabytes)
        if uid is not None:
            for path in (folder, service.file):
                os.chown(path, uid, uid)
        service.user = pwd.getpwuid(os.geteuid() if uid is None else uid).pw_name
        service.database("accounts", **{"Path": service.file, "Mode": "read-write", **keys})
        service.driver.manager("Reload")
        yield service


def ask(service, *arguments, code=OK, before=(), **keywords):
    done = service.run(*before, CTL, f"--address={service.address}", f"--config-dir={service.config_dir}", *arguments,
                       f"--service-user={service.user}", **keywords)  # fmt: skip
    out, err = done.stdout.decode(), done.stderr.decode()
    equal(done.returncode, code, f"exit code of {arguments}, which said {err!r} and printed {out!r}")
    return out, err


class Writer(threading.Thread):
    """Moves amounts until it is told to stop; with a pause, only as often as it may."""

    def __init__(self, path, pause):
        super().__init__()
        self.path, self.pause = path, pause
        self.n_commits = 0
        self.turns = threading.Semaphore(1)
        self.stopped = threading.Event()

    def run(self):
        with connected(self.path) as db:
            while not self.stopped.wait(self.pause):
                if self.pause > 0:
                    self.turns.acquire()
                a, b = self.n_commits % ACCOUNTS + 1, (self.n_commits * 7 + 500) % ACCOUNTS + 1
                db.execute("BEGIN IMMEDIATE")
                db.execute("UPDATE account SET amount = amount - 1 WHERE id = ?", (a,))
                db.execute("UPDATE account SET amount = amount + 1 WHERE id = ?", (b,))
                db.execute("COMMIT")
                self.n_commits += 1

    def __enter__(self):
        self.start()
        wait_for(lambda: self.n_commits > 0, "a commit of the writer")
        return self

    def __exit__(self, *_):
        self.stopped.set()
        self.turns.release()
        self.join()


def check_copy(path):
    with connected(path) as db:
        equal(db.execute("PRAGMA integrity_check").fetchall(), [("ok",)], "integrity_check")
        equal(db.execute("SELECT sum(amount), count(*) FROM account").fetchone(), (SUM, ACCOUNTS), "sum and accounts")


def files(folder):
    return sorted(path.name for path in folder.iterdir())


@test
def backup_beside_writers():
    """backup: while a program writes, the copy is one moment of the database, and passes integrity_check"""
    for journal, pause in (("wal", 0), ("delete", 0.2)):
        with accounts(journal, megabytes=16) as service, Writer(service.file, pause) as writer:
            folder = service.folder / "copies"
            folder.mkdir()
            copy = folder / "copy.sqlite"
            end = time.monotonic() + PATIENCE
            during = 0
            while not during and time.monotonic() < end:
                before = writer.n_commits
                writer.turns.release(20)  # in rollback mode each change has the copy begin again, at most 100 times
                ask(service, "backup", "accounts", copy, "--force")
                during = writer.n_commits - before
                equal(files(folder), ["copy.sqlite"], "files")
                check_copy(copy)
                for suffix in ("-wal", "-shm"):
                    (folder / f"copy.sqlite{suffix}").unlink(missing_ok=True)
            true(during > 0, f"no commit during a backup in mode {journal}")


@test
def backup_file():
    """backup: the copy is the caller's alone; --force replaces a file, but no folder, no link and not the database"""
    with accounts() as service:
        folder = service.folder / "copies"
        folder.mkdir()
        copy, other = folder / "copy.sqlite", folder / "other"
        out, err = ask(service, "backup", "accounts", copy)
        true(out.startswith(f"Wrote {copy}: ") and err == "", out + err)
        equal((copy.stat().st_mode & 0o777, copy.stat().st_uid), (0o600, os.geteuid()), "mode and owner")
        check_copy(copy)
        before = copy.stat().st_ino
        true("--force replaces it" in ask(service, "backup", "accounts", copy, code=FAILED)[1], "an existing file")
        equal(copy.stat().st_ino, before, "the file")
        told = json.loads(ask(service, "--json", "backup", "accounts", copy, "--force")[0])
        equal(told, {"database": "accounts", "file": str(copy), "bytes": copy.stat().st_size}, "document")
        true(copy.stat().st_ino != before, "the file was not replaced")
        other.write_text("precious")
        (folder / "link").symlink_to(other)
        (folder / "dangling").symlink_to(folder / "absent")
        for path, words in (
            (folder, "no regular file"),
            (folder / "link", "no regular file"),
            (folder / "dangling", "no regular file"),
            (service.file, "the database itself"),
            (folder / "absent/copy", "cannot be written"),
        ):
            err = ask(service, "backup", "accounts", path, "--force", code=FAILED)[1]
            true(words in err, f"{path}: {err}")
        (folder / "x-wal").write_text("a log")
        true("x-wal is there" in ask(service, "backup", "accounts", folder / "x", code=FAILED)[1], "a log beside the file")
        true("no database" in ask(service, "backup", "nosuch", folder / "x", code=FAILED)[1], "a name")
        equal(files(folder), ["copy.sqlite", "dangling", "link", "other", "x-wal"], "files")
        equal(other.read_text(), "precious", "the target of the link")
        check_copy(service.file)


@test
def backup_failures():
    """backup: a full disk, a damaged database and Ctrl-C leave no file, and the old one"""
    with accounts() as service:
        folder = service.folder / "copies"
        folder.mkdir()
        copy = folder / "copy.sqlite"
        copy.write_text("old")
        full = ("env", "--ignore-signal=XFSZ", "prlimit", "--fsize=1000000")
        err = ask(service, "backup", "accounts", copy, "--force", code=FAILED, before=full)[1]
        true("full" in err, err)
        with connected(service.file) as lock:
            lock.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            lock.execute("PRAGMA journal_mode=DELETE")
            lock.execute("BEGIN EXCLUSIVE")
            program = subprocess.Popen(
                [CTL, f"--config-dir={service.config_dir}", f"--address={service.address}", "backup", "accounts", copy,
                 "--force", f"--service-user={service.user}"], stderr=subprocess.PIPE, start_new_session=True)  # fmt: skip
            wait_for(lambda: len(files(folder)) == 2, "the file that is being written")
            wait_for(lambda: children(program.pid), "the child")
            program.send_signal(signal.SIGINT)
            err = program.communicate(timeout=PATIENCE)[1].decode()
            equal(program.returncode, FAILED, err)
        with open(service.file, "r+b") as file:
            file.seek(4096 * 8)
            file.write(b"\xff" * 4096 * 64)
        err = ask(service, "backup", "accounts", copy, "--force", code=FAILED)[1]
        true("it is damaged" in err, err)
        equal((files(folder), copy.read_text()), (["copy.sqlite"], "old"), "files")


@needs_root
def backup_as_root():
    """backup: root's copy is written with root's rights, and the database is read with those of the service's user"""
    with accounts(uid=UID_DAEMON) as service:
        folder = service.folder / "private"
        folder.mkdir(mode=0o700)
        ask(service, "backup", "accounts", folder / "copy")
        equal(((folder / "copy").stat().st_uid, (folder / "copy").stat().st_mode & 0o777), (0, 0o600), "owner and mode")
        check_copy(folder / "copy")
        for path in service.file.parent.iterdir():
            equal(path.stat().st_uid, UID_DAEMON, f"owner of {path.name}")
        secret = make_accounts(folder / "secret.sqlite")
        service.file.unlink()
        service.file.symlink_to(secret)
        err = ask(service, "backup", "accounts", service.folder / "stolen", code=FAILED)[1]
        true("Permission denied" in err and not (service.folder / "stolen").exists(), err)


def refused(service, what):
    """Each verb refuses the database "users", and nothing of it is copied."""
    copy = service.folder / "stolen"
    for arguments in (("backup", "users", copy), ("integrity", "users"), ("vacuum", "users")):
        err = ask(service, *arguments, code=FAILED)[1]
        true("link" in err or "does not own" in err, f"{arguments[0]}, {what}: {err!r}")
    true("link" in ask(service, "backup", "users", copy, code=FAILED)[1], f"the reason, {what}")
    true(not copy.exists(), f"a copy was made, {what}")


@needs_root
def links_of_a_user():
    """backup, integrity, vacuum: a link of a user at any component of Path=, or beside the file, is not followed"""
    with accounts(uid=UID_DAEMON) as service:
        secret = service.folder / "secret" / "home" / "users.sqlite"
        secret.parent.mkdir(parents=True)
        make_accounts(secret, "delete")
        for path in (secret.parent.parent, secret.parent, secret):
            os.chown(path, UID_DAEMON, UID_DAEMON)
        before = (secret.read_bytes(), secret.stat().st_mtime_ns, files(secret.parent))
        top = service.folder / "top"
        file = top / "home" / "users.sqlite"
        service.database("users", Path=file, Mode="read-write")

        def populate():
            subprocess.run(["rm", "-rf", top], check=True)
            file.parent.mkdir(parents=True)
            make_accounts(file, "delete")
            file.chmod(0o644)
            for path in (top, file.parent, file):
                os.chown(path, UID_A, UID_A)

        def replace(path, target):
            populate()
            path.rename(f"{path}.away")
            path.symlink_to(target)
            os.lchown(path, UID_A, UID_A)

        populate()
        ask(service, "backup", "users", service.folder / "copy")
        for path, target in ((file, secret), (file.parent, secret.parent), (file, "/proc/self/mem")):
            replace(path, target)
            refused(service, f"{path.name} -> {target}")
        replace(file.parent, secret.parent)
        os.chown(top, 0, 0)  # the link is still the user's
        refused(service, "a link of the user in a folder of root")
        os.lchown(file.parent, 0, 0)
        ask(service, "backup", "users", service.folder / "trusted")
        populate()
        with connected(file) as db:
            db.execute("PRAGMA journal_mode=wal")
            db.execute("INSERT INTO note VALUES (1)")
            for suffix in ("-wal", "-shm"):
                path = file.parent / (file.name + suffix)
                path.chmod(0o644)
                path.rename(f"{path}.away")
                path.symlink_to(secret)
                os.lchown(path, UID_A, UID_A)
                refused(service, suffix)
                path.unlink()
                path.with_name(f"{path.name}.away").rename(path)
        equal((secret.read_bytes(), secret.stat().st_mtime_ns, files(secret.parent)), before, "the other database")


@needs_root
def swapped_links():
    """backup: a user who keeps exchanging a folder for a link gets no copy of another database"""
    exchange = (
        "import ctypes, sys\nc = ctypes.CDLL(None)\n"
        "while True: c.renameat2(-100, sys.argv[1].encode(), -100, sys.argv[2].encode(), 2)"
    )
    with accounts(uid=UID_DAEMON) as service:
        top = service.folder / "top"
        for name in ("home", "secret"):
            (top / name).mkdir(parents=True)
            with connected(top / name / "users.sqlite") as db:
                db.execute(f"CREATE TABLE {name}(a)")
            os.chown(top / name / "users.sqlite", UID_A if name == "home" else UID_DAEMON, 0)
        (top / "link").symlink_to("secret")
        os.lchown(top / "link", UID_A, UID_A)
        service.database("users", Path=top / "home" / "users.sqlite")
        copy = service.folder / "copy"
        swapper = subprocess.Popen([sys.executable, "-c", exchange, top / "home", top / "link"])
        try:
            outcomes = set()
            for _ in range(200):
                options = f"--config-dir={service.config_dir}", f"--address={service.address}"
                arguments = "backup", "users", copy, "--force", f"--service-user={service.user}"
                done = service.run(CTL, *options, *arguments)
                outcomes.add(done.returncode)
                if done.returncode == OK:
                    with connected(copy) as db:
                        equal(db.execute("SELECT name FROM sqlite_schema").fetchall(), [("home",)], "tables of the copy")
        finally:
            swapper.kill()
            swapper.wait()
        true(FAILED in outcomes and outcomes <= {OK, FAILED}, f"exit codes {outcomes}")


@needs_root
def confined_child():
    """integrity: the child that reads the file has a session of its own, no descriptor of root's, and a worker's limits

    It writes to root's terminal, and cannot read what is typed there."""
    with accounts("delete", uid=UID_DAEMON) as service, connected(service.file) as lock:
        lock.execute("BEGIN EXCLUSIVE")
        command = [CTL, f"--config-dir={service.config_dir}", f"--address={service.address}", "integrity", "accounts",
                   f"--service-user={service.user}"]  # fmt: skip
        read_fd, write_fd = os.pipe()
        terminal, terminal_end = os.openpty()
        program = subprocess.Popen(command, stdin=read_fd, stdout=subprocess.PIPE, stderr=terminal_end,
                                   pass_fds=(write_fd,))  # fmt: skip
        terminal_name = os.ttyname(terminal_end)
        for fd in (read_fd, write_fd, terminal_end):
            os.close(fd)
        wait_for(lambda: children(program.pid), "the child")
        (child,) = children(program.pid)

        def seen(what):
            return pathlib.Path(f"/proc/{child}/{what}").read_text()

        def opened():
            return {os.readlink(f"/proc/{child}/fd/{fd}") for fd in os.listdir(f"/proc/{child}/fd")}

        wait_for(lambda: str(service.file) in opened(), "the child opens the database")
        status = dict(line.split(":\t", 1) for line in seen("status").splitlines() if ":\t" in line)
        equal(status["Uid"].split(), [str(UID_DAEMON)] * 4, "uids")
        equal((status["NoNewPrivs"], status["Seccomp"]), ("1", "0" if SANITIZED else "2"), "privileges and filter")
        equal(os.getsid(child), child, "session")
        true("Max core file size        0                    0" in seen("limits"), seen("limits"))
        names = [name for name in opened() if name not in ("/dev/null", str(service.file))]
        equal(sorted(name.split(":")[0] for name in names if not name.startswith(str(service.file.parent))),
              [terminal_name, "pipe"], f"descriptors beside its output: {names}")  # fmt: skip
        (flags,) = [line.split()[1] for line in seen("fdinfo/2").splitlines() if line.startswith("flags:")]
        equal(int(flags, 8) & os.O_ACCMODE, os.O_WRONLY, "access to the terminal")
        os.close(terminal)
        lock.execute("ROLLBACK")
        equal(program.communicate(timeout=PATIENCE)[0].decode(), "accounts: no problems.\n", "output")


@needs_root
def backup_into_a_foreign_folder():
    """backup: links in the folder of another user are not followed"""
    with accounts(uid=UID_DAEMON) as service:
        folder, precious = service.folder / "foreign", service.folder / "precious"
        folder.mkdir()
        os.chown(folder, UID_A, UID_A)
        precious.write_text("precious")
        (folder / "link").symlink_to(precious)
        for more in ((), ("--force",)):
            ask(service, "backup", "accounts", folder / "link", *more, code=FAILED)
        ask(service, "backup", "accounts", folder / "copy")
        equal((folder / "copy").stat().st_uid, 0, "owner")
        equal((precious.read_text(), files(folder)), ("precious", ["copy", "link"]), "files")


@needs_root
def foreign_wal():
    """backup, integrity: no file is made beside a WAL database of another user; vacuum does not touch it"""
    with accounts(uid=UID_DAEMON) as service:
        os.chown(service.file, UID_B, UID_B)
        service.file.chmod(0o666)
        for arguments in (("backup", "accounts", service.folder / "copy"), ("integrity", "accounts")):
            true("belongs to another user" in ask(service, *arguments, code=FAILED)[1], "a database without its log")
        true("does not own" in ask(service, "vacuum", "accounts", code=FAILED)[1], "vacuum")
        equal(files(service.file.parent), ["accounts.sqlite"], "files")
        with connected(service.file) as db:  # it makes the log, and keeps it
            db.execute("INSERT INTO note VALUES (1)")
            for suffix in ("-wal", "-shm"):
                os.chmod(f"{service.file}{suffix}", 0o644)
            ask(service, "backup", "accounts", service.folder / "copy")
            equal(ask(service, "integrity", "accounts")[0], "accounts: no problems.\n", "integrity")
        check_copy(service.folder / "copy")


@test
def vacuum():
    """vacuum: says what was gained, while the service uses the database; a read-only one is not changed"""
    for journal in ("wal", "delete"):
        with accounts(journal, AllowUsers="*") as service:
            client = service.client()
            equal(client.query_rows("accounts", "SELECT count(*) FROM account")[1], [[ACCOUNTS]], "rows")
            equal(client.execute("accounts", "DELETE FROM account WHERE id > 100")[0], 900, "changes")
            before = service.file.stat().st_size
            told = json.loads(ask(service, "--json", "vacuum", "accounts")[0])
            equal(told["log-kept-by-readers"], False, f"log in mode {journal}")
            equal(told["bytes"], service.file.stat().st_size, "size")
            true(told["bytes"] < told["bytes-before"] // 2, f"{told}, {before}")
            equal(client.query_rows("accounts", "SELECT count(*) FROM account")[1], [[100]], "rows after it")
            equal(client.execute("accounts", "INSERT INTO account(amount) VALUES (1)")[0], 1, "changes after it")
            true(" less than before.\n" in ask(service, "vacuum", "accounts")[0], "what it printed")
            with connected(service.file) as other:
                other.execute("BEGIN IMMEDIATE")
                err = ask(service, "vacuum", "accounts", "--timeout=0.1", code=FAILED)[1]
                true("locked for 0.1 s" in err, err)
            ask(service, "vacuum", "accounts", "--timeout=-1", code=USAGE)
    with accounts(Mode="read-only") as service:
        before = service.file.read_bytes()
        true("Mode=read-write" in ask(service, "vacuum", "accounts", code=FAILED)[1], "a database that is read-only")
        equal(service.file.read_bytes(), before, "the file")


@test
def vacuum_with_a_reader():
    """vacuum: a reader of a WAL database does not prevent it, and keeps its moment"""
    with accounts() as service, connected(service.file) as reader:
        with connected(service.file) as db:
            db.execute("DELETE FROM account WHERE id > 100")
        reader.execute("BEGIN")
        equal(reader.execute("SELECT count(*) FROM account").fetchone(), (100,), "rows")
        out = ask(service, "vacuum", "accounts", "--timeout=0.1")[0]
        true("less than before.\nReaders still use the log" in out, out)
        equal(reader.execute("SELECT count(*) FROM account").fetchone(), (100,), "rows of the reader")


@test
def integrity():
    """integrity: a sound database, a row without its parent, and damage of the file; text that is safe to show"""
    with accounts() as service:
        equal(ask(service, "integrity", "accounts"), ("accounts: no problems.\n", ""), "a sound database")
        equal(json.loads(ask(service, "--json", "integrity", "accounts")[0]),
              {"database": "accounts", "ok": True, "problems": []}, "document")
        with connected(service.file) as db:
            db.execute("INSERT INTO note VALUES (7777)")
            db.execute('CREATE TABLE "a\x1b[2Jb"(x REFERENCES account(id))')
            db.execute('INSERT INTO "a\x1b[2Jb" VALUES (8888)')
        out = ask(service, "integrity", "accounts", code=FAILED)[0]
        true("accounts: row 1 of table note refers to a missing row of table account\n" in out, out)
        true("\\x1b[2Jb" in out and "\x1b" not in out, out)
        with connected(service.file) as db:
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            db.execute("PRAGMA journal_mode=DELETE")
        with open(service.file, "r+b") as file:
            file.seek(4096 * 8)
            file.write(b"\xff" * 4096 * 64)
        told = json.loads(ask(service, "--json", "integrity", "accounts", code=FAILED)[0])
        true(not told["ok"] and told["problems"], f"{told}")
        service.file.write_text("no database " * 100)
        ask(service, "integrity", "accounts", code=FAILED)


main()
