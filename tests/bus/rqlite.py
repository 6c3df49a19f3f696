# SPDX-License-Identifier: LGPL-2.1-or-later
"""A cluster of rqlite: of the program that SQLIPC_RQLITED names, or of its imitation."""
import base64
import json
import os
import pathlib
import ssl
import subprocess
import sys
import tempfile
import urllib.request

from harness import PATIENCE, die_with_test, free_ports, wait_for

IMITATION = pathlib.Path(__file__).resolve().parents[1] / "rigs/rqlite_imitation.py"
RQLITED = os.environ.get("SQLIPC_RQLITED", "")


class Cluster:
    """`n` nodes, which know the user app by its password, or let in all without one. `connection` is for Connection=;
    `options`: more arguments for rqlited, which then is asked by `scheme`."""

    def __init__(self, n=3, password="sesame", options=(), scheme="http"):
        self.password, self.options, self.scheme = password, options, scheme
        self.folder = tempfile.TemporaryDirectory(prefix="sqlipc-rqlite-")
        self.nodes, self.ports = [], []
        try:
            if RQLITED:
                self.start_rqlited(n)
            else:
                self.start_imitation(n)
        except BaseException:
            self.close()
            raise
        user = "app@" if password else ""
        self.connection = " ".join(f"{scheme}://{user}127.0.0.1:{port}" for port in self.ports)

    def start_imitation(self, n):
        for i in range(n):
            command = [sys.executable, IMITATION, self.folder.name, str(i + 1), str(n)]
            if self.password:
                command.append(f"app:{self.password}")
            self.nodes.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE))
        self.ports = [int(node.stdout.readline()) for node in self.nodes]

    def start_rqlited(self, n):
        folder = pathlib.Path(self.folder.name)
        login = []
        if self.password:
            users = folder / "users.json"
            users.write_text(json.dumps([{"username": "app", "password": self.password, "perms": ["all"]}]))
            login = ["-join-as", "app", "-auth", users]
        ports = free_ports(2 * n)
        self.ports, raft = ports[:n], ports[n:]
        join = ",".join(f"127.0.0.1:{port}" for port in raft)
        self.commands = [
            [
                RQLITED, "-node-id", str(i + 1), "-http-addr", f"127.0.0.1:{self.ports[i]}", "-raft-addr",
                f"127.0.0.1:{raft[i]}", "-bootstrap-expect", str(n), "-join", join, *login, *self.options,
                folder / str(i + 1),
            ]  # fmt: skip
            for i in range(n)
        ]
        self.nodes = [self.start_node(i) for i in range(n)]
        self.wait_until_ready()

    def start_node(self, i):
        with open(pathlib.Path(self.folder.name) / f"log-{i + 1}", "ab") as log:
            return subprocess.Popen(
                self.commands[i], stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=die_with_test
            )

    def kill(self, i):
        """Without a chance to write anything more."""
        self.nodes[i].kill()
        self.nodes[i].wait()

    def restart(self, i):
        self.nodes[i] = self.start_node(i)

    def wait_until_ready(self):
        wait_for(lambda: all(map(self.is_ready, self.ports)), "the cluster has a leader")

    def leader(self):
        """Returns the leader's index."""
        return int(self.ask("/status")["store"]["leader"]["node_id"]) - 1

    def ask(self, path, data=None, kind="application/json", port=None):
        """Asks the first node, or the one of `port`, past the service; returns its answer."""
        request = urllib.request.Request(
            f"{self.scheme}://127.0.0.1:{port or self.ports[0]}{path}", data, {"Content-Type": kind}
        )
        if self.password:
            login = base64.b64encode(f"app:{self.password}".encode()).decode()
            request.add_header("Authorization", f"Basic {login}")
        trusting = ssl._create_unverified_context() if self.scheme == "https" else None  # noqa: S323
        with urllib.request.urlopen(request, timeout=PATIENCE, context=trusting) as answer:
            text = answer.read()
        return json.loads(text) if text.startswith(b"{") else text

    def is_ready(self, port):
        try:
            return self.ask("/readyz", port=port) is not None
        except OSError:
            return False

    def close(self):
        for node in self.nodes:
            if node.stdin:
                node.stdin.close()  # the imitation ends with it
            else:
                node.terminate()
        for node in self.nodes:
            node.wait()
            if node.stdout:
                node.stdout.close()
        self.folder.cleanup()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
