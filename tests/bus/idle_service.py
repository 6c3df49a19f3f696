# SPDX-License-Identifier: LGPL-2.1-or-later
"""A service that can be met at the very moment when it exits for being idle."""
import fcntl
import os
import pathlib
import signal
import struct
import termios
import threading

from harness import CHINOOK, SANITIZED, WORKER, Service, children, executable, wait_for
from notified import Notified
from tap import equal


class Idle(Service):
    """A service that does not exit yet, with a service manager that listens."""

    def __init__(self):
        self.notified = Notified()
        super().__init__({"chinook": CHINOOK}, service={"IdleExitSec": 600}, environment=self.notified.environment)
        self.notified.until("READY")

    def close(self, check=True):
        super().close(check)
        self.notified.close()

    def make_impatient(self):
        """From now on it exits as soon as it may."""
        self.service_keys = {"IdleExitSec": "0.001"}
        self.limits()
        self.daemon.send_signal(signal.SIGHUP)
        self.notified.until("RELOADING")
        self.notified.until("READY")

    def wait_for_exit(self):
        wait_for(lambda: self.daemon.poll() is not None, "the service exits")
        equal(self.daemon.returncode, 0, "exit code")
        self.daemon = None
        if SANITIZED:  # what looks for leaks in a worker is a process of its own, and may outlive it for a moment
            wait_for(lambda: not self.left_behind(), "what looked for leaks ends")
        equal(self.left_behind(), [], "workers left behind")

    def left_behind(self):
        """Workers that are no other service's."""
        others = [pid for other in Service.alive if other is not self and other.daemon for pid in other.workers()]
        return [pid for pid in processes(WORKER) if pid not in others]

    def stop_bus(self):
        """While it sleeps: then it takes up what comes from now on in that order. Else whom it has just read comes first."""
        stat = pathlib.Path(f"/proc/{self.bus.pid}/stat")
        wait_for(lambda: stat.read_text().rsplit(")", 1)[1].split()[0] == "S", "the bus sleeps")
        os.kill(self.bus.pid, signal.SIGSTOP)

    def give_up_name(self, client):
        """Once a call of the client's lies with the bus, which is stopped, the service begins to exit, and stays at that."""
        wait_for(lambda: n_unread(client) > 0, "the call lies with the bus")
        self.make_impatient()
        self.notified.until("STOPPING", "1")

    def meet_exit(self, client, call):
        """Has `call` sent to the bus before the name is given up, and routed before, too. Returns what it returned."""
        results = []
        self.stop_bus()
        try:
            thread = threading.Thread(target=lambda: results.append(call()))
            thread.start()
            self.give_up_name(client)
        finally:
            os.kill(self.bus.pid, signal.SIGCONT)
        thread.join()
        equal(len(results), 1, "calls answered")
        return results[0]


def processes(program, parent=os.getpid()):
    """Our descendants that run it: orphans come to us, others are those of the service, or of the bus."""
    below = [found for pid in children(parent) for found in processes(program, pid)]
    return below + [pid for pid in children(parent) if executable(pid) == str(program)]


def n_unread(client):
    """Bytes that the bus has not read yet."""
    fd = client.connection.get_stream().get_socket().get_fd()
    return struct.unpack("i", fcntl.ioctl(fd, termios.TIOCOUTQ, bytes(4)))[0]
