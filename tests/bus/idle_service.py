# SPDX-License-Identifier: LGPL-2.1-or-later
"""A service that tests can call at the moment of its idle exit."""
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
    """A service that does not exit yet, with a simulated service manager."""

    def __init__(self):
        self.notified = Notified()
        super().__init__({"chinook": CHINOOK}, service={"IdleExitSec": 600}, environment=self.notified.environment)
        self.notified.until("READY")

    def close(self, check=True):
        super().close(check)
        self.notified.close()

    def make_impatient(self):
        """Lets the service exit as soon as it is idle."""
        self.service_keys = {"IdleExitSec": "0.001"}
        self.limits()
        self.daemon.send_signal(signal.SIGHUP)
        self.notified.until("RELOADING")
        self.notified.until("READY")

    def wait_for_exit(self):
        wait_for(lambda: self.daemon.poll() is not None, "the service exits")
        equal(self.daemon.returncode, 0, "exit code")
        self.daemon = None
        if SANITIZED:  # The leak check of a worker is a separate process, and may outlive the worker for a moment.
            wait_for(lambda: not self.left_behind(), "what looked for leaks ends")
        equal(self.left_behind(), [], "workers left behind")

    def left_behind(self):
        """Returns the workers that belong to no other running service."""
        others = [pid for other in Service.alive if other is not self and other.daemon for pid in other.workers()]
        return [pid for pid in processes(WORKER) if pid not in others]

    def stop_bus(self):
        """Stops the bus while it sleeps, so that it later reads messages in the order of arrival."""
        stat = pathlib.Path(f"/proc/{self.bus.pid}/stat")
        wait_for(lambda: stat.read_text().rsplit(")", 1)[1].split()[0] == "S", "the bus sleeps")
        os.kill(self.bus.pid, signal.SIGSTOP)

    def give_up_name(self, client):
        """Waits until the stopped bus has a call of the client in its socket; then lets the service begin its exit."""
        wait_for(lambda: n_unread(client) > 0, "the call lies with the bus")
        self.make_impatient()
        self.notified.until("STOPPING", "1")

    def meet_exit(self, client, call):
        """Lets the bus get and route `call` before the release of the name. Returns the result of `call`."""
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
    """Returns our descendants that run `program`. Orphans are our children, others are below the service or the bus."""
    below = [found for pid in children(parent) for found in processes(program, pid)]
    return below + [pid for pid in children(parent) if executable(pid) == str(program)]


def n_unread(client):
    """Returns the number of bytes that the bus has not read yet."""
    fd = client.connection.get_stream().get_socket().get_fd()
    return struct.unpack("i", fcntl.ioctl(fd, termios.TIOCOUTQ, bytes(4)))[0]
