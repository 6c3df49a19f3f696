# SPDX-License-Identifier: LGPL-2.1-or-later
"""A proxy between a client and its PostgreSQL server, with the faults of networks and of broken servers.

    with Proxy(server) as proxy:
        proxy.connection("app")        # the text for Connection=, through the proxy
        proxy.hold()                   # from now on no byte gets through, in either direction
        proxy.spoil(4, cut)            # message 4 of the server, of each connection, is another one

Messages of the server are counted from 0 for each connection. A message is a byte for its type, its length with itself in
four bytes, and the rest. Each connection has two threads, which end with it.
"""
import contextlib
import pathlib
import socket
import struct
import threading

SIZE = 65536
RESET = struct.pack("ii", 1, 0)  # SO_LINGER: close() sends RST
UNAWAITED = (b"DEALLOCATE", b"RESET ALL", b"DISCARD TEMP")  # in pipelines whose answers are read with the next ones
CANCEL = struct.pack("!i", 80877102)  # the code of a request to cancel, after its length


class Closed(Exception):
    """The connection ends here."""


class Silence(Exception):
    """The server says nothing more."""


# ---- what becomes of a message ----


def ends(_message):
    raise Closed


def cut(message):
    raise Closed(message[: max(1, len(message) // 2)])


def silent(_message):
    raise Silence


def half_silent(message):
    raise Silence(message[: max(1, len(message) // 2)])


def other_type(message):
    return b"\xff" + message[1:]


def short_length(message):
    return message[:1] + struct.pack("!i", 3) + message[5:]


def negative_length(message):
    return message[:1] + struct.pack("!i", -1) + message[5:]


def huge_length(message):
    return message[:1] + struct.pack("!i", 0x7FFFFFFF) + message[5:]


def ones(message):
    return message[:5] + b"\xff" * (len(message) - 5)


def empty(message):
    return message[:1] + struct.pack("!i", 4)


def twice(message):
    return message + message


def left_out(_message):
    return b""


def http(_message):
    raise Closed(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")


# The server's words are still true, or it says nothing: a write that is acknowledged must be there, after one that has
# failed it must not.
HONEST = (ends, cut, silent, half_silent)
LIES = (other_type, short_length, negative_length, huge_length, ones, empty, twice, left_out, http)


class Proxy:
    """`tls`: what passes is encrypted, so its messages are not seen, and the server must listen at 127.0.0.1."""

    def __init__(self, server, tls=False):
        self.tls, self.family = tls, socket.AF_INET if tls else socket.AF_UNIX
        path = str(pathlib.Path(server.folder) / f".s.PGSQL.{server.port}")
        self.address = ("127.0.0.1", server.port) if tls else path
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.lock, self.sockets = threading.Lock(), set()
        self.open = threading.Event()  # cleared: nothing gets through
        self.open.set()
        self.cancels = threading.Event()  # cleared: requests to cancel do not get through
        self.cancels.set()
        self.n_cancels = 0
        self.piece = SIZE  # how many bytes of the server go in one packet
        self.spoiled, self.how, self.n_spoiled = None, None, 0
        self.n_messages = 0  # of the last connection
        self.n_connections = 0
        self.n_trips = 0  # pipelines of a client with one connection, without those whose answers it does not wait for
        threading.Thread(target=self._accept, daemon=True).start()

    def connection(self, user, database="postgres", **more):
        words = {"host": "127.0.0.1", "port": self.port, "user": user, "dbname": database, "sslmode": "disable",
                 "gssencmode": "disable"} | more  # fmt: skip
        return " ".join(f"{k}={v}" for k, v in words.items())

    # ---- what it does ----

    def hold(self):
        self.open.clear()

    def let_go(self):
        self.open.set()

    def spoil(self, number, how):
        self.spoiled, self.how, self.n_spoiled = number, how, 0

    def reset(self):
        """Resets each connection there is."""
        with self.lock:
            for one in self.sockets:
                with contextlib.suppress(OSError):
                    one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                    one.shutdown(socket.SHUT_RD)  # wakes the thread that reads
        self.open.set()

    def close(self):
        self.cancels.set()
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.reset()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # ---- threads ----

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            server = socket.socket(self.family)
            try:
                server.connect(self.address)
            except OSError:
                client.close()
                continue
            with self.lock:
                self.sockets |= {client, server}
            self.n_connections += 1
            threading.Thread(target=self._serve, args=(client, server), daemon=True).start()

    def _serve(self, client, server):
        answers = self._pieces(server) if self.tls else self._messages(server)
        back = threading.Thread(target=self._pump, args=(server, client, answers), daemon=True)
        back.start()
        self._pump(client, server, self._pieces(client) if self.tls else self._requests(client))
        back.join()
        with self.lock:
            self.sockets -= {client, server}
        server.close()
        client.close()

    def _pump(self, source, target, pieces):
        with contextlib.suppress(OSError, Closed):
            for data in pieces:
                self.open.wait()
                for at in range(0, len(data), self.piece):
                    target.sendall(data[at : at + self.piece])
        for one in (source, target):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def _pieces(self, source):
        while data := source.recv(SIZE):
            if data[4:8] == CANCEL:
                self.n_cancels += 1
                self.cancels.wait()
            yield data

    def _requests(self, source):
        """Yields what the client sends, and counts its pipelines, which end with a Sync."""
        unread, pipeline, at = b"", b"", 0  # the first message has no type
        for data in self._pieces(source):
            unread += data
            while len(unread) >= at + 4 and len(unread) >= (end := at + struct.unpack_from("!i", unread, at)[0]):
                pipeline += unread[:end]
                if at and unread[:1] == b"S":
                    self.n_trips += not any(word in pipeline for word in UNAWAITED)
                    pipeline = b""
                unread, at = unread[end:], 1
            yield data

    def _messages(self, source):
        """Yields the server's messages, except the spoiled one."""
        file, self.n_messages, number = source.makefile("rb"), 0, 0
        while head := file.read(5):
            message = head + file.read(struct.unpack("!i", head[1:])[0] - 4)
            if self.spoiled == number:
                self.n_spoiled += 1
                try:
                    message = self.how(message)
                except (Closed, Silence) as end:
                    if end.args:
                        yield end.args[0]
                    if isinstance(end, Closed):
                        return
                    while file.read1(SIZE):  # until the client gives up
                        pass
                    return
            number += 1
            self.n_messages = number
            yield message
