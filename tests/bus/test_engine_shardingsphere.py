#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A distributed database of PostgreSQL's protocol: ShardingSphere-Proxy, with two PostgreSQL servers, and a table whose rows
are on one or the other. Through the service it works as a table of one server, except for the differences in
docs/engines.md.
"""
import pathlib
import subprocess
import tempfile

from client import Failure, Text
from gi.repository import GLib
from harness import BUILD_ROOT, SOURCE_ROOT, die_with_test, expect, free_ports, main, wait_for
from postgres import ACCESS, Relay, for_tests
from tap import equal, make_for_file, test, true

FOLDER = BUILD_ROOT / "tests/shardingsphere"
N = 20
DB = "shards"
INSERT = "INSERT INTO track (id, name) VALUES (?1, ?2)"
SERVER = """
rules:
  - !AUTHORITY
    users: ["app@%:sesame"]
    provider: {type: ALL_PRIVILEGES_PERMITTED}
props: {proxy-frontend-database-protocol-type: PostgreSQL}
"""
SHARDS = """
schemaName: app
dataSources:
  shard_0:
    {{url: "jdbc:postgresql://127.0.0.1:{}/postgres", username: app, password: "", connectionTimeoutMilliseconds: 1000}}
  shard_1:
    {{url: "jdbc:postgresql://127.0.0.1:{}/postgres", username: app, password: "", connectionTimeoutMilliseconds: 1000}}
rules:
  - !SHARDING
    tables:
      track:
        actualDataNodes: "shard_${{0..1}}.track"
        databaseStrategy: {{standard: {{shardingColumn: id, shardingAlgorithmName: by_id}}}}
    shardingAlgorithms:
      by_id:
        type: INLINE
        props: {{algorithm-expression: "shard_${{id % 2}}", allow-range-query-with-inline-sharding: true}}
"""

make_for_file(SOURCE_ROOT / "tests/shardingsphere/fetch-proxy.sh", FOLDER, "ShardingSphere-Proxy cannot be fetched")


def shard(port):
    access = ACCESS + "host all all 127.0.0.1/32 trust\n"
    return for_tests(
        "CREATE ROLE app LOGIN;"
        "CREATE TABLE track (id bigint PRIMARY KEY, name text, price numeric); GRANT ALL ON track TO app",
        access=access, port=port, listen_addresses="127.0.0.1",
    )  # fmt: skip


class Proxy:
    def __init__(self, ports):
        self.port = free_ports(1)[0]
        self.folder = tempfile.TemporaryDirectory(prefix="sqlipc-shardingsphere-")
        folder = pathlib.Path(self.folder.name)
        (folder / "server.yaml").write_text(SERVER)
        (folder / "config-shards.yaml").write_text(SHARDS.format(*ports))
        (folder / "logback.xml").write_text("<configuration/>")  # otherwise it logs each packet
        self.password = folder / "password"
        self.password.write_text("sesame\n")
        command = ["java", "-Xmx400m", "-XX:TieredStopAtLevel=1", "-cp", f"{folder}:{FOLDER}/lib/*",
                   "org.apache.shardingsphere.proxy.Bootstrap", str(self.port), folder]  # fmt: skip
        self.log = open(folder / "log", "wb")
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
                                        cwd=folder, preexec_fn=die_with_test)  # fmt: skip
        self.connection = f"host=127.0.0.1 port={self.port} user=app dbname=app sslmode=disable gssencmode=disable"

    def relay(self):
        keys = {"Connection": self.connection, "PasswordFile": self.password, "Mode": "read-write", "WriteUsers": "*"}
        return Relay({DB: keys})

    def close(self):
        self.process.kill()
        self.process.wait()
        self.log.close()
        self.folder.cleanup()


even, odd = map(shard, free_ports(2))
proxy = Proxy([even.port, odd.port])


def ids(client, where="id >= 0"):
    return [row[0] for row in client.query(DB, f"SELECT id FROM track WHERE {where} ORDER BY id").read().rows]


def answers(client):
    true(proxy.process.poll() is None, "the proxy runs")
    try:
        return ids(client) is not None
    except Failure:
        return False


@test
def rows():
    """Rows of both servers come in one result, sorted; statements that write reach the server that has the row"""
    with proxy.relay() as service:
        client = service.client()
        wait_for(lambda: answers(client), "the proxy answers")
        for n in range(N):
            equal(client.execute(DB, INSERT, [n, f"track {n}"])[0], 1, "changes")
        equal(ids(client), list(range(N)), "rows of both")
        for server, first in ((even, 0), (odd, 1)):
            equal(server.sql("SELECT count(*), min(id) FROM track"), [f"{N // 2}|{first}"], "rows of a server")
        equal(client.query(DB, "SELECT name FROM track WHERE id = ?", [3]).read().rows, [[Text(b"track 3")]], "one row")
        equal(client.query(DB, "SELECT count(*) FROM track").read().rows, [[N]], "number of rows of both")
        equal(client.execute(DB, "UPDATE track SET name = 'new' WHERE id IN (?, ?)", [2, 3])[0], 2, "changes on both")
        equal(even.sql("SELECT id FROM track WHERE name = 'new'"), ["2"])
        equal(odd.sql("SELECT id FROM track WHERE name = 'new'"), ["3"])


@test
def transactions():
    """A transaction is rolled back, or committed, on both servers"""
    with proxy.relay() as service:
        client = service.client()
        before = ids(client)
        for method, after in (("Rollback", before), ("Commit", sorted([*before, N, N + 1]))):
            values, _ = client.database(DB, "Begin", "(a{sv})", {"mode": GLib.Variant("s", "write")})
            number = values[0].get_uint64()
            for n in (N, N + 1):
                client.execute(DB, INSERT, [n, "inside"], options={"transaction": GLib.Variant("t", number)})
            client.database(DB, method, "(ta{sv})", number, {})
            equal(ids(client), after, f"rows after {method}")


@test
def errors():
    """What it does not understand, and a violated constraint, are errors of the statement, and the next one succeeds"""
    with proxy.relay() as service:
        client = service.client()
        expect("InputOutput", lambda: client.query(DB, "SELEC id FROM track").read())
        expect("Sql", client.execute, DB, INSERT, [1, "twice"])
        odd.sql("UPDATE track SET price = 0.5 WHERE id = 1")
        expect("ServerUnreachable", lambda: client.query(DB, "SELECT price FROM track WHERE id = 1").read())
        equal(ids(client, "id < 2"), [0, 1])


@test
def lost_shard():
    """Without one of its servers the proxy's error is that of the call; when it is there again the next query succeeds"""
    with proxy.relay() as service:
        client = service.client()
        everything = ids(client)
        odd.kill()
        expect("ServerUnreachable", lambda: ids(client))
        odd.start()
        wait_for(lambda: answers(client), "the proxy is connected again")
        equal(ids(client), everything, "rows of both")


@test
def lost_proxy():
    """Without the proxy the error says so"""
    with proxy.relay() as service:
        client = service.client()
        equal(ids(client, "id = 2"), [2])
        proxy.process.kill()
        proxy.process.wait()
        expect("ServerUnreachable", lambda: ids(client))
    proxy.close()
    odd.close()


main(even)
