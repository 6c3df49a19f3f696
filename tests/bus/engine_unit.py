# SPDX-License-Identifier: LGPL-2.1-or-later
"""sqlipc-engine.socket without systemd: systemd-socket-activate starts an engine process for each connection."""
import contextlib
import os
import pathlib
import shutil
import subprocess
import tempfile

from harness import BUILD_ROOT, SANITIZED, children, executable, reachable, wait_for
from tap import Skip

FILE_ENGINE = BUILD_ROOT / "tests/bus/file-engine"
ENGINE = BUILD_ROOT / "daemon/worker/sqlipc-engine"


def has_memory_of(pid, parent):
    """True if both run in the same memory: LeakSanitizer looks for leaks of the parent in a process of its own. A test that
    killed it would leave the parent waiting for ever."""
    with contextlib.suppress(OSError):
        return pathlib.Path(f"/proc/{pid}/maps").read_bytes() == pathlib.Path(f"/proc/{parent}/maps").read_bytes()
    return False


class EngineUnit:
    """`program` is started for each connection to `socket`, as `uid` if that is given; `within`: a command that runs the
    unit."""

    def __init__(self, program=FILE_ENGINE, uid=None, supervisor_uid=None, within=()):
        if not shutil.which("systemd-socket-activate"):
            raise Skip("systemd-socket-activate is not installed")
        self.program, self.uid = reachable(program) if isinstance(program, pathlib.Path) else program, uid
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="sqlipc-engine-"))
        self.folder.chmod(0o755)
        self.socket = self.folder / "socket"
        self.environment = {"SQLIPC_ENGINE_SOCKET": str(self.socket)}
        self.log = open(self.folder / "log", "ab")
        who = {} if uid is None else {"user": uid, "group": uid, "extra_groups": []}
        if uid is not None:
            os.chown(self.folder, uid, uid)
        self.process, self.within = None, within
        self.start(who)
        if supervisor_uid is not None:
            os.chown(self.socket, supervisor_uid, supervisor_uid)

    def start(self, who):
        self.process = subprocess.Popen(
            [*self.within, "systemd-socket-activate", "--accept", "--seqpacket", f"--listen={self.socket}",
             str(self.program)],  # fmt: skip
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=self.log,
            cwd="/",
            **who,
        )
        wait_for(self.socket.exists, "the socket is there")

    def keepers(self):
        return [pid for pid in children(self.process.pid) if executable(pid) == str(self.program)]

    def workers(self):
        return [
            pid
            for keeper in self.keepers()
            for pid in children(keeper)
            if executable(pid) == str(self.program) and not (SANITIZED and has_memory_of(pid, keeper))
        ]

    def log_text(self):
        return (self.folder / "log").read_text(errors="replace")

    def close(self):
        wait_for(lambda: not self.keepers(), "engine processes end with their supervisor")
        self.process.terminate()
        self.process.wait()
        self.log.close()
        shutil.rmtree(self.folder)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if error[0]:
            print(f"# {self.log_text()}".replace("\n", "\n# "))
            with contextlib.suppress(OSError):
                self.process.terminate()
            self.process.wait()
        else:
            self.close()
