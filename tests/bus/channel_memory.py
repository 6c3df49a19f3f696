# SPDX-License-Identifier: LGPL-2.1-or-later
"""The client's side of a channel's memory (sqlipc-channel(5)) in Python, independent of libsqlipc.

With CHANNEL_MEMORY=1 in the environment, the channels of channel.py have memory.
"""
import mmap
import os
import select

HEAD, RING = 4096, 65536
SIZE = HEAD + 2 * RING
REQUESTS, ANSWERS = 0, 128
WRITTEN, WRITER_SLEEPS, WITHDRAWN, READ, READER_SLEEPS = 0, 4, 8, 64, 68
EVERYWHERE = os.environ.get("CHANNEL_MEMORY") == "1"


class Memory:
    def __init__(self, fd, socket):
        self.map = mmap.mmap(fd, SIZE)
        os.close(fd)
        # Of an index the worker must see the old value or the new one. struct.pack_into() clears the bytes first.
        self.words = memoryview(self.map)[:HEAD].cast("I")
        self.socket = socket
        self.written = self.read = 0
        self.at_end = False

    def close(self):
        self.words.release()
        self.map.close()

    def get(self, at):
        return self.words[at // 4]

    def set(self, at, value):
        self.words[at // 4] = value & 0xFFFFFFFF
        select.select([], [], [], 0)  # a call of the kernel before the next look at the memory

    def wake(self, flag):
        """Wakes the worker if it set the flag; raises what the socket raises."""
        select.select([], [], [], 0)
        if self.get(flag):
            self.set(flag, 0)
            self.socket.send(b"\0")

    def empty_socket(self):
        try:
            while piece := self.socket.recv(4096):
                del piece
            self.at_end = True
        except BlockingIOError:
            pass
        except ConnectionResetError:
            self.at_end = True

    # ---- requests ----

    def write(self, data):
        """Returns how many bytes fitted."""
        size = min(len(data), RING - ((self.written - self.get(REQUESTS + READ)) & 0xFFFFFFFF))
        at = self.written % RING
        first = min(size, RING - at)
        self.map[HEAD + at : HEAD + at + first] = data[:first]
        self.map[HEAD : HEAD + size - first] = data[first:size]
        self.written += size
        if size:
            self.set(REQUESTS + WRITTEN, self.written)
            self.wake(REQUESTS + READER_SLEEPS)
        return size

    def wait_for_room(self, seconds):
        """False: there is none in time. At the end of the socket, `at_end` is set."""
        self.empty_socket()
        self.set(REQUESTS + WRITER_SLEEPS, 1)
        full = ((self.written - self.get(REQUESTS + READ)) & 0xFFFFFFFF) == RING
        return not full or bool(select.select([self.socket], [], [], seconds)[0])

    # ---- answers ----

    def fill(self):
        return (self.get(ANSWERS + WRITTEN) - self.read) & 0xFFFFFFFF

    def take(self):
        """Returns what has come."""
        size, at = self.fill(), self.read % RING
        assert size <= RING, "the worker wrote an impossible index"
        first, start = min(size, RING - at), HEAD + RING
        data = self.map[start + at : start + at + first] + self.map[start : start + size - first]
        self.read += size
        if size:
            self.set(ANSWERS + READ, self.read)
            try:
                self.wake(ANSWERS + WRITER_SLEEPS)
            except (BrokenPipeError, ConnectionResetError, BlockingIOError):
                pass
        return data

    def wait(self, seconds):
        """Waits for bytes, or the end. False: none came in time; perhaps the socket had an old byte."""
        if self.fill():
            return True
        self.empty_socket()
        self.set(ANSWERS + READER_SLEEPS, 1)
        if self.fill() or self.at_end:
            return True
        return bool(select.select([self.socket], [], [], seconds)[0])
