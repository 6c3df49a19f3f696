#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A server that breaks rqlite's HTTP API, for tests of its clients.

usage: rqlite_hostile.py [schema:]MODE

Prints its port, and ends when its standard input does. It answers the client's question about the schema (one table:
t(id INTEGER PRIMARY KEY, a)), and then does what MODE says; with "schema:" it does that at once. With "tls" it has a
certificate that no authority has signed.
"""
import os
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time

SCHEMA = ('{"results":[{"columns":["schema_version"],"types":[""],"values":[[1]]},'
          '{"columns":["a","b"],"types":["",""],"values":[["tt","tCREATE TABLE t(id INTEGER PRIMARY KEY, a)"]]}]}')
FIRST = '{"results":[{"columns":["schema_version"],"types":[""],"values":[[1]]},'
ROW = '["t' + "x" * 1000 + '"]'
ENDLESS = {
    "endless": (FIRST + '{"columns":["a"],"types":[""],"values":[["t"]', ("," + ROW) * 64),
    "endless-row": (FIRST + '{"columns":["a"],"types":[""],"values":[["t', "x" * 65536),
    "endless-nulls": (FIRST + '{"columns":["a"],"types":[""],"values":[[null', ",null" * 10000),
    "endless-items": ('{"results":[{}', ",{}" * 10000),
    "endless-depth": ('{"other":', "[" * 65536),
    "endless-space": ("", " " * 65536),
}
BODIES = {
    "garbage": "<html>hello</html>",
    "empty": "",
    "cut-json": FIRST + '{"columns":["a"],"types":[""],"values":[["tx"]',
    "types": '{"results":[{"values":[["1"]]},{"values":[[1]]}]}',
    "columns": FIRST + '{"columns":["a","b"],"types":["",""],"values":[["tx","ty"]]}]}',
    "tags": FIRST + '{"columns":["a"],"types":[""],"values":[["no tag"]]}]}',
    "no-items": '{"results":[]}',
    "one-item": FIRST[:-1] + "]}",
    "more-items": FIRST + "{},{},{}" + "]}",
    "other-schema": SCHEMA.replace("[[1]]", "[[2]]"),
    "error": '{"results":[],"error":"something is wrong"}',
    "latin1": FIRST + '{"error":"\xff"}]}',
}


def send(peer, status, body, size=None, headers=""):
    data = body.encode("latin1")
    size = len(data) if size is None else size
    peer.sendall(f"HTTP/1.1 {status}\r\nContent-Length: {size}\r\n{headers}\r\n".encode() + data)


def chunks(peer, status, start, more):
    """Never ends"""
    peer.sendall(f"HTTP/1.1 {status}\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
    data = start
    while True:
        if data:
            peer.sendall(b"%x\r\n%s\r\n" % (len(data), data.encode()))
        data = more


def attack(peer, mode, port, path):
    if mode in BODIES:
        send(peer, "200 OK", BODIES[mode])
    elif mode in ENDLESS:
        chunks(peer, "200 OK", *ENDLESS[mode])
    elif mode == "endless-error":
        chunks(peer, "500 Internal Server Error", "x", "x" * 65536)
    elif mode == "endless-headers":
        peer.sendall(b"HTTP/1.1 200 OK\r\n")
        while True:
            peer.sendall(b"X-More: " + b"x" * 1000 + b"\r\n")
    elif mode == "truncated":
        send(peer, "200 OK", FIRST, size=100000)
        peer.close()
    elif mode == "close":
        peer.close()
    elif mode == "silent":
        time.sleep(1000)
    elif mode == "slow":
        peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
        for c in FIRST * 100:
            peer.sendall(c.encode())
            time.sleep(0.02)
    elif mode == "loop":
        send(peer, "301 Moved Permanently", "", headers=f"Location: http://127.0.0.1:{port}{path}\r\n")
    elif mode == "away":
        send(peer, "301 Moved Permanently", "", headers="Location: http://127.0.0.2:1/db/query\r\n")
    elif mode == "file":
        send(peer, "302 Found", "", headers="Location: file:///etc/passwd\r\n")
    else:
        send(peer, mode, "the server's own words")


def serve(peer, mode, port):
    data = b""
    try:
        while True:
            while b"\r\n\r\n" not in data:
                more = peer.recv(65536)
                if not more:
                    return
                data += more
            head, _, data = data.partition(b"\r\n\r\n")
            lines = head.decode("latin1").split("\r\n")
            size = next((int(line.split(":")[1]) for line in lines if line.lower().startswith("content-length:")), 0)
            while len(data) < size:
                data += peer.recv(65536)
            body, data = data[:size], data[size:]
            if b"sqlite_schema" in body and not mode.startswith("schema:"):
                send(peer, "200 OK", SCHEMA)
            elif body == b'[["PRAGMA schema_version"]]' and not mode.startswith("schema:"):
                send(peer, "200 OK", FIRST[:-1] + "]}")
            else:
                attack(peer, mode.removeprefix("schema:"), port, lines[0].split(" ")[1])
    except OSError:
        pass


def own_certificate():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.NamedTemporaryFile(suffix=".pem") as file:
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=127.0.0.1", "-addext",
             "subjectAltName=IP:127.0.0.1", "-keyout", file.name, "-out", file.name + ".crt"],
            check=True, capture_output=True,
        )
        context.load_cert_chain(file.name + ".crt", file.name)
        os.unlink(file.name + ".crt")
    return context


def main():
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    context = own_certificate() if sys.argv[1] == "tls" else None

    def accept():
        while True:
            peer = listener.accept()[0]
            try:
                peer = context.wrap_socket(peer, server_side=True) if context else peer
            except OSError:  # it is not trusted
                continue
            threading.Thread(target=serve, args=(peer, sys.argv[1], port), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    print(port, flush=True)
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main()
