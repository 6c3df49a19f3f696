# SPDX-License-Identifier: LGPL-2.1-or-later
"""A program that has loaded the extension of SQLite, in a separate process: extension-client.c, which gets a line of SQL."""
import os
import select
import signal
import subprocess

from client import SECONDS
from harness import BUILD_ROOT, reachable
from library import value
from tap import equal

PROGRAM = reachable(BUILD_ROOT / "tests/bus/extension-client")
EXTENSION = reachable(BUILD_ROOT / "client-lib/extension/sqlipc.so")


class Extension:
    """An extension-client process."""

    def __init__(self, service, environment=None, **keywords):
        self.process = subprocess.Popen(
            [PROGRAM, EXTENSION],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=service.environment
            | {"DBUS_SESSION_BUS_ADDRESS": service.address, "DBUS_SYSTEM_BUS_ADDRESS": service.address}
            | (environment or {}),
            text=True,
            **keywords,
        )

    def say(self, line):
        self.process.stdin.write(" ".join(line.split()) + "\n")
        self.process.stdin.flush()

    def hear(self):
        """Returns the received rows, and the last line."""
        rows = []
        while (line := self.process.stdout.readline()).startswith("row"):
            rows.append([value(word) for word in line.split()[1:]])
        if not line:
            raise AssertionError(f"extension-client ended with {self.process.wait()}")
        return rows, line.rstrip("\n")

    def ask(self, line):
        self.say(line)
        return self.hear()

    def ok(self, line):
        rows, answer = self.ask(line)
        equal(answer, "ok", line)
        return rows

    def failure(self, line):
        """Returns SQLite's code and the message of an answer that must be an error."""
        _, answer = self.ask(line)
        word, code, message = (answer + "  ").split(" ", 2)
        equal(word, "error", f"{line}: {answer}")
        return int(code), message.strip()

    def table(self, name, database, remote=None):
        """Creates a virtual table `name` of the shared table `remote`, or of the same name."""
        self.ok(f'CREATE VIRTUAL TABLE "{name}" USING sqlipc({database}, "{remote or name}", user)')

    def has_answer(self):
        return bool(select.select([self.process.stdout], [], [], 0)[0])

    def interrupt(self):
        os.kill(self.process.pid, signal.SIGUSR1)

    def close(self):
        self.process.stdin.close()
        code = self.process.wait(SECONDS)
        self.process.stdout.close()
        equal(code, 0, "exit code of extension-client")

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind:
            self.process.kill()
            self.process.wait()
        else:
            self.close()
