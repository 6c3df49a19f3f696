#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A table whose partitions are on two PostgreSQL servers, joined by postgres_fdw. Through the service it works as a table of
one server, except for the differences in docs/engines.md.
"""
from client import Failure
from gi.repository import GLib
from harness import expect, main, wait_for
from postgres import Postgres, Relay, for_tests
from tap import equal, test, true
from watching import Watch

N = 300
DB = "shards"
front = for_tests("CREATE ROLE app LOGIN")
back = Postgres()
back.sql("CREATE ROLE app LOGIN; CREATE TABLE track_1(id int PRIMARY KEY, name text); GRANT ALL ON track_1 TO app")
front.sql(
    f"""CREATE EXTENSION postgres_fdw;
    CREATE SERVER back FOREIGN DATA WRAPPER postgres_fdw
        OPTIONS (host '{back.folder}', port '{back.port}', dbname 'postgres', application_name 'shard');
    CREATE USER MAPPING FOR app SERVER back OPTIONS (user 'app', password_required 'false');
    CREATE TABLE track(id int NOT NULL, name text) PARTITION BY RANGE (id);
    CREATE TABLE track_0 PARTITION OF track FOR VALUES FROM (MINVALUE) TO ({N // 2});
    CREATE FOREIGN TABLE track_1 PARTITION OF track FOR VALUES FROM ({N // 2}) TO (MAXVALUE) SERVER back;
    CREATE UNIQUE INDEX ON track_0(id);
    GRANT SELECT, INSERT, UPDATE, DELETE ON track, track_0, track_1 TO app;"""
)
NEAR, FAR = 1, N - 1  # rows of the one server, and of the other
INSERT = "INSERT INTO track VALUES (?1, ?2)"


def relay():
    return Relay({DB: {"Connection": front.connection("app"), "Mode": "read-write", "WriteUsers": "*"}})


def ids(client, where="TRUE"):
    return [row[0] for row in client.query(DB, f"SELECT id FROM track WHERE {where} ORDER BY id").read().rows]


def begin(client):
    values, _ = client.database(DB, "Begin", "(a{sv})", {"mode": GLib.Variant("s", "write")})
    return values[0].get_uint64()


@test
def rows():
    """Rows of both servers come in one result, sorted; statements that write reach the server that has the row"""
    with relay() as service:
        client = service.client()
        changes, _ = client.execute_batch(DB, [(INSERT, [n, f"track {n}"]) for n in range(N)])
        equal(sum(changes), N, "changes")
        equal(ids(client), list(range(N)), "rows of both")
        equal(back.sql("SELECT count(*), min(id) FROM track_1"), [f"{N - N // 2}|{N // 2}"], "rows of the second server")
        equal(client.execute(DB, "UPDATE track SET name = 'new' WHERE id IN (?, ?)", [NEAR, FAR])[0], 2, "changes on both")
        returned = client.query(DB, "DELETE FROM track WHERE id IN (?, ?) RETURNING id", [NEAR, FAR]).read()
        equal(sorted(returned.rows), [[NEAR], [FAR]], "rows that were returned")
        equal(returned.end.n_changes, 2, "changes")


@test
def transactions():
    """A transaction is rolled back, or committed, on both servers; an error of either takes back its statement on both"""
    with relay() as service:
        client = service.client()
        before = ids(client)
        for method, after in (("Rollback", before), ("Commit", sorted([*before, NEAR, FAR]))):
            number = begin(client)
            inside = {"transaction": GLib.Variant("t", number)}
            for n in (NEAR, FAR):
                client.execute(DB, INSERT, [n, "inside"], options=inside)
            for n in (NEAR, FAR):
                expect("Sql", client.execute, DB, INSERT, [n, "twice"], options=inside)
            client.database(DB, method, "(ta{sv})", number, {})
            equal(ids(client), after, f"rows after {method}")
        batch = [(INSERT, [-1, "near"]), (INSERT, [N, "far"]), (INSERT, [FAR, "there already"])]
        expect("Sql", client.execute_batch, DB, batch)
        equal(ids(client, f"id < 0 OR id >= {N}"), [], "rows of a batch that failed")


@test
def watches():
    """A commit that changes rows of both servers is told; docs/engines.md says that others may not be"""
    with relay() as service:
        client = service.client()
        watch = Watch(service.client(), "track", database=DB)
        client.execute(DB, "UPDATE track SET name = 'changed' WHERE id IN (?, ?)", [NEAR, FAR])
        true(watch.next() is not None, "the change is told")


@test
def lost_shard():
    """Without the second server only what needs its rows fails, by name; when it is there again the next query succeeds"""
    with relay() as service:
        client = service.client()
        all_rows = ids(client)
        number = begin(client)
        inside = {"transaction": GLib.Variant("t", number)}
        client.execute(DB, "UPDATE track SET name = 'lost' WHERE id = ?", [FAR], options=inside)
        back.kill()
        try:
            client.database(DB, "Commit", "(ta{sv})", number, {})
            raise AssertionError("a transaction was committed without one of its servers")
        except Failure as failure:
            print(f"# {failure}")
        expect("ServerUnreachable", lambda: ids(client))
        equal(ids(client, f"id < {N // 2}"), [n for n in all_rows if n < N // 2], "rows of the first server")
        equal(client.execute(DB, "UPDATE track SET name = 'near' WHERE id = ?", [NEAR])[0], 1, "a write to the first")
        expect("ServerUnreachable", client.execute, DB, INSERT, [N, "far"])
        back.start()
        equal(ids(client), all_rows, "rows of both")
        equal(ids(client, "name = 'lost'"), [], "rows of the lost transaction")


@test
def nothing_left():
    """No connection to either server outlives the service"""
    wait_for(lambda: not front.clients(), "connections of the service end")
    of_front = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'shard'"
    wait_for(lambda: back.sql(of_front) == ["0"], "connections between the servers end")
    back.close()


main(front)
