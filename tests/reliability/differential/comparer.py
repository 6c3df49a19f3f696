# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs the program `differential` against a service: publishes databases, sends queries in groups, returns the differences.
"""

import contextlib
import itertools
import struct
import subprocess
from collections import Counter, namedtuple

from harness import BUILD_ROOT, reachable
from queries import encode
from relay import relay_address
from schema import write

PROGRAM = BUILD_ROOT / "tests/reliability/differential/differential"
GROUP = 16

Difference = namedtuple("Difference", "number side page_size what")


def quoted(word):
    """As a word of Expose=."""
    bare = word[1:-1].replace('""', '"') if word.startswith('"') else word
    return '"' + bare.replace("\\", "\\\\").replace('"', '\\"') + '"'


class Comparer:
    """One program and one database at a time. `spoil`: SIDE:WHAT is falsified, see main.c."""

    numbers = itertools.count(1)  # of databases; several may share a service

    def __init__(self, service, spoil=None):
        self.service, self.published = service, []
        self.process = subprocess.Popen(
            [reachable(PROGRAM), service.address, relay_address(service), *([spoil] if spoil else [])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=service.environment,
        )
        self.totals = Counter()

    def _send(self, letter, payload=b""):
        self.process.stdin.write(letter + struct.pack("<I", len(payload)) + payload)

    def publish(self, script, exposed=()):
        """Makes a database and has it served, under one name whole and under another with tables `exposed` alone."""
        name = f"d{next(self.numbers)}"
        path = self.service.data / f"{name}.sqlite"
        write(path, script)
        new = [path, self.service.database(name, Path=path)]
        if exposed:
            new.append(self.service.database(f"{name}-exposed", Path=path, Expose=" ".join(map(quoted, exposed))))
        self.withdraw()
        self.published = new
        self.service.driver.manager("Reload")
        self._send(b"D", b"".join(s.encode() + b"\0" for s in (name, str(path), f"{name}-exposed")))

    def withdraw(self):
        """Takes away what the last publish() made; what is said with the next one's Reload."""
        for path in self.published:
            with contextlib.suppress(FileNotFoundError):
                path.unlink()
        self.published = []

    def ask(self, queries):
        """Differences, by the queries' places in the list."""
        found = []
        for start in range(0, len(queries), GROUP):
            for number, query in enumerate(queries[start : start + GROUP], start):
                self._send(b"Q", encode(number, query))
            self._send(b"G")
            self.process.stdin.flush()
            found += self._answers()
        return found

    def _answers(self):
        while True:
            line = self.process.stdout.readline().decode(errors="replace").rstrip("\n").split("\t")
            if line[0] == "differs":
                yield Difference(int(line[1]), line[2], int(line[3]), line[4])
            elif line[0] == "done":
                for what, n in zip(("queries", "runs", "errors", "bytes", "by pipe"), line[1:]):
                    self.totals[what] += int(n)
                return
            else:
                raise AssertionError(f"the comparing program ended with {self.process.wait()}")

    def close(self):
        self.withdraw()
        self.process.stdin.close()
        code = self.process.wait()
        self.process.stdout.close()
        if code != 0:
            raise AssertionError(f"the comparing program ended with {code}")

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            self.close()
        else:
            self.process.kill()
            self.process.wait()
