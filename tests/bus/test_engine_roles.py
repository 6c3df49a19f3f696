#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Rights on a PostgreSQL server: a database is published with a role of the server, and each client gets what this role and
the configuration allow, whatever SQL it sends. The password of a role appears nowhere.
"""
import os
import pathlib

from client import Failure, Text
from harness import CTL, PATIENT, UID_A, UID_B, expect, main, needs_root, test_unsanitized, wait_for
from postgres import Relay, for_tests
from tap import Skip, cases, equal, test, true

SECRET, WRONG = "a-password-to-look-for", "another-one-to-look-for"
SCHEMA = f"""
    CREATE ROLE sales LOGIN PASSWORD '{SECRET}';
    CREATE ROLE staff LOGIN;
    CREATE ROLE chief LOGIN SUPERUSER;
    CREATE TABLE orders(id int PRIMARY KEY, what text);
    CREATE TABLE salaries(id int PRIMARY KEY, amount int);
    INSERT INTO orders VALUES (1, 'lamp');
    INSERT INTO salaries VALUES (1, 5000), (2, 6000);
    CREATE SEQUENCE numbers;
    GRANT SELECT, INSERT ON orders TO sales;
    GRANT SELECT ON salaries TO staff;
    GRANT USAGE, SELECT, UPDATE ON SEQUENCE numbers TO sales, chief;
    CREATE FUNCTION add_order(i int) RETURNS int LANGUAGE sql
        AS 'INSERT INTO orders VALUES (i, ''by function'') RETURNING id';
    CREATE FUNCTION owner_adds(i int) RETURNS int LANGUAGE sql SECURITY DEFINER
        AS 'INSERT INTO orders VALUES (i, ''by its owner'') RETURNING id';
    CREATE FUNCTION may_write_then(i int) RETURNS int LANGUAGE plpgsql AS
        'BEGIN PERFORM set_config(''transaction_read_only'', ''off'', false);
               INSERT INTO orders VALUES (i, ''later''); RETURN i; END';
    CREATE FUNCTION becomes_chief() RETURNS text LANGUAGE plpgsql AS
        'BEGIN SET SESSION ROLE chief; RETURN current_user; END';
    CREATE FUNCTION ends_transaction(i int) RETURNS int LANGUAGE plpgsql AS
        'BEGIN COMMIT; INSERT INTO orders VALUES (i, ''after commit''); RETURN i; END';
    CREATE PROCEDURE commits(i int) LANGUAGE plpgsql AS
        'BEGIN COMMIT; SET default_transaction_read_only = off; COMMIT;
               INSERT INTO orders VALUES (i, ''by procedure''); END';
"""
server = for_tests(SCHEMA)


def relay(**keywords):
    """orders, with the role sales; salaries, with the role staff; and all of it, with a superuser's."""
    return Relay(
        {
            "orders": {"Connection": server.connection("sales"), "AllowUsers": UID_A},
            "salaries": {"Connection": server.connection("staff"), "AllowUsers": UID_B},
            "all": {"Connection": server.connection("chief")},
            "written": {"Connection": server.connection("sales"), "Mode": "read-write", "WriteUsers": "*"},
        },
        **keywords,
    )


def state():
    """Everything that a statement could have changed, as the server tells."""
    return server.sql(
        "SELECT * FROM orders ORDER BY id; SELECT * FROM salaries ORDER BY id; SELECT last_value, is_called FROM numbers;"
        "SELECT rolname, rolsuper, rolconfig FROM pg_roles WHERE rolname !~ '^pg_' ORDER BY 1;"
        "SELECT count(*), max(relname) FROM pg_class WHERE relnamespace = 'public'::regnamespace;"
        "SELECT count(*) FROM pg_largeobject_metadata; SELECT count(*) FROM pg_prepared_xacts"
    )


def rows(client, database, sql):
    """Returns the rows of a query, with str for TEXT."""
    return [[v.decode() if isinstance(v, Text) else v for v in row] for row in client.query_rows(database, sql)[1]]


def error_of(function, *arguments):
    try:
        function(*arguments)
    except Failure as failure:
        return failure.name.rsplit(".", 1)[1]
    return None


@needs_root
def two_users():
    """Two users of two roles: each sees what its role may see, and does not learn of the other's database"""
    with relay() as service:
        sales, staff = service.client(UID_A), service.client(UID_B)
        equal(rows(sales, "orders", "SELECT what FROM orders"), [["lamp"]], "rows of the first")
        equal(staff.query_rows("salaries", "SELECT sum(amount) FROM salaries")[1], [[11000]], "rows of the second")
        expect("NotAllowed", sales.query_rows, "orders", "SELECT * FROM salaries")
        expect("NotAllowed", staff.query_rows, "salaries", "SELECT * FROM orders")
        true("salaries" not in str(sales.databases()) and "orders" not in str(staff.databases()), "lists of databases")
        for client, name in (sales, "salaries"), (staff, "orders"):
            true(error_of(client.query_rows, name, "SELECT 1") is not None, "the other's database is refused")
        backends = server.sql("SELECT usename FROM pg_stat_activity WHERE application_name = 'sqlipc' ORDER BY 1")
        equal(backends, ["sales", "staff"], "each has a connection of its own role")


# Attempts of a client to be another role.
WIDEN = (
    "SET ROLE chief",
    "SET SESSION AUTHORIZATION chief",
    "RESET ROLE",
    "RESET ALL",
    "SET LOCAL ROLE chief",
    "SELECT set_config('role', 'chief', false)",
    "SELECT set_config('session_authorization', 'chief', false)",
    "SELECT set_config('role', 'staff', true)",
    "SELECT becomes_chief()",
    "DISCARD ALL",
    "DO 'BEGIN SET ROLE chief; END'",
    "GRANT SELECT ON salaries TO sales",
    "ALTER ROLE sales SUPERUSER",
    "SECURITY LABEL ON TABLE salaries IS 'x'",
)


@test
def no_wider():
    """No statement makes a role another one, not even for a statement after it"""
    with relay() as service:
        client, before = service.client(), state()
        for database in ("orders", "written"):
            for sql in WIDEN:
                for method in (client.query_rows, client.execute):
                    error_of(method, database, sql)
                    now = rows(client, database, "SELECT current_user::text, session_user::text")
                    equal(now, [["sales", "sales"]], f"role after {sql}")
                    expect("NotAllowed", client.query_rows, database, "SELECT count(*) FROM salaries")
        equal(state(), before, "the server's state")
        cases("another role", 4 * len(WIDEN), "SET ROLE, set_config() and the like, to read and to write")


WRITES = (
    "INSERT INTO orders VALUES ({n}, 'plain')",
    "UPDATE orders SET what = 'changed'",
    "DELETE FROM orders",
    "TRUNCATE orders",
    "MERGE INTO orders o USING (SELECT {n} AS id) s ON o.id = s.id WHEN NOT MATCHED THEN INSERT VALUES (s.id, 'merged')",
    "WITH w AS (INSERT INTO orders VALUES ({n}, 'cte') RETURNING id) SELECT id FROM w",
    "WITH w AS MATERIALIZED (DELETE FROM orders RETURNING id) SELECT count(*) FROM w",
    "SELECT add_order({n})",
    "SELECT owner_adds({n})",
    "SELECT may_write_then({n})",
    "SELECT ends_transaction({n})",
    "CALL commits({n})",
    "SELECT set_config('transaction_read_only', 'off', false)",
    "SELECT set_config('default_transaction_read_only', 'off', false)",
    "SELECT set_config('transaction_read_only', 'off', true), add_order({n})",
    "SET TRANSACTION READ WRITE",
    "SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE",
    "BEGIN READ WRITE",
    "COMMIT",
    "END",
    "ROLLBACK",
    "COMMIT AND CHAIN",
    "START TRANSACTION READ WRITE",
    "PREPARE TRANSACTION 'x'",
    "SAVEPOINT a",
    "RELEASE sqlipc_statement",
    "ROLLBACK TO sqlipc_statement",
    "COMMIT; INSERT INTO orders VALUES ({n}, 'second')",
    "SELECT 1; COMMIT; INSERT INTO orders VALUES ({n}, 'third')",
    "PREPARE p AS INSERT INTO orders VALUES ({n}, 'prepared')",
    "EXECUTE p",
    "SELECT nextval('numbers')",
    "SELECT setval('numbers', 100)",
    "SELECT lo_create(0)",
    "SELECT lo_from_bytea(0, 'x')",
    "COPY orders FROM PROGRAM 'echo {n},x' (FORMAT csv)",
    "COPY orders TO PROGRAM 'cat > {file}'",
    "COPY (SELECT 1) TO PROGRAM 'touch {file}'",
    "COPY orders TO '{file}'",
    "COPY orders FROM STDIN",
    "COPY orders TO STDOUT",
    "DO 'BEGIN INSERT INTO orders VALUES ({n}, ''do''); END'",
    "DO 'BEGIN COMMIT; INSERT INTO orders VALUES ({n}, ''do''); END'",
    "CREATE TABLE made(n int)",
    "CREATE TEMP TABLE made(n int)",
    "CREATE TABLE made AS SELECT 1",
    "SELECT 1 AS n INTO made",
    "EXPLAIN ANALYZE INSERT INTO orders VALUES ({n}, 'explained')",
    "EXPLAIN (ANALYZE) SELECT add_order({n})",
    "DROP TABLE orders",
    "ALTER TABLE orders ADD c int",
    "ALTER SYSTEM SET work_mem = '1MB'",
    "ALTER ROLE CURRENT_USER SET default_transaction_read_only = off",
    "CREATE DATABASE made",
    "VACUUM orders",
    "CLUSTER orders",
    "REINDEX TABLE orders",
    "REFRESH MATERIALIZED VIEW orders",
    "LOCK TABLE orders",
    "SELECT * FROM orders FOR UPDATE",
    "SELECT pg_reload_conf()",
    "SELECT pg_notify('orders', 'x')",
    "NOTIFY orders",
    "LISTEN orders",
    "CHECKPOINT",
    "LOAD 'plpgsql'",
    "SELECT pg_advisory_lock(1)",
    "IMPORT FOREIGN SCHEMA public FROM SERVER s INTO public",
)


@test
def readers_write_nothing():
    """A reader writes nothing, neither by its own role nor by a superuser's, and changes no later statement"""
    file = server.folder / "from-the-server"
    with relay() as service:
        client, before = service.client(), state()
        for database, role in (("orders", "sales"), ("all", "chief")):
            for number, pattern in enumerate(WRITES, 1000):
                sql = pattern.replace("{n}", str(number)).replace("{file}", str(file))
                for method in (client.query_rows, client.execute):
                    error = error_of(method, database, sql)
                    true(error not in ("Internal", "WorkerLost", "OutcomeUnknown"), f"{sql} as {role}: {error}")
                    now = rows(client, database, "SELECT current_setting('transaction_read_only'), current_user::text")
                    equal(now, [["on", role]], f"the statement after {sql}")
                equal(state(), before, f"the server's state after {sql}")
        true(not file.exists(), "no program of the server ran")
        true(server.sql("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'") == ["0"], "no lock is left")
        cases("a write by a reader", 4 * len(WRITES), "statements and functions, by two roles")


@test
def writers_keep_their_rights():
    """A writer has what its role may write, and keeps nothing of a transaction for the next one"""
    with relay() as service:
        client, before = service.client(), server.sql("SELECT count(*) FROM orders")
        equal(client.execute("written", "INSERT INTO orders VALUES (2, 'chair')")[0], 1, "changes")
        equal(client.query_rows("written", "SELECT count(*) FROM orders")[1], [[int(before[0]) + 1]], "rows it sees at once")
        expect("NotAllowed", client.execute, "written", "DELETE FROM orders")
        expect("NotAllowed", client.execute, "written", "INSERT INTO salaries VALUES (3, 1)")
        error_of(client.execute, "written", "UPDATE orders SET what = set_config('search_path', 'nowhere', false)")
        equal(client.execute("written", "INSERT INTO orders VALUES (3, 'table')")[0], 1, "changes after it")
        server.sql("DELETE FROM orders WHERE id IN (2, 3)")


def processes_with(text):
    """Returns the processes, except this one, whose arguments or environment have the text."""
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        for name in ("cmdline", "environ"):
            try:
                data = (folder / name).read_bytes()
            except OSError:
                continue
            if text.encode() in data and folder.name != str(os.getpid()):
                found.append(f"{folder.name}/{name}")
    return found


def memory_has(pid, text):
    """True if the process has the text in memory that it may write."""
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for line in maps:
            place, rights = line.split()[:2]
            start, end = (int(n, 16) for n in place.split("-"))
            if not rights.startswith("rw"):
                continue
            memory.seek(start)
            if text.encode() in memory.read(end - start):
                return True
    return False


@test_unsanitized  # which maps terabytes
def wiped():
    """The service does not keep a password in its memory when it has told the worker"""
    if os.geteuid() != 0:
        raise Skip("needs root, to read the memory of the service")
    server.write("pg_hba.conf", "local all sales scram-sha-256\nlocal all all trust\n")
    server.reload()
    try:
        with relay(limits=PATIENT) as service:
            file = service.data / "password"
            file.write_text(SECRET)
            service.database("orders", Engine="postgresql", Connection=server.connection("sales"), PasswordFile=file)
            service.driver.manager("Reload")
            equal(service.client().query("orders", "SELECT 1").read().rows, [[1]])
            true(memory_has(service.pid(), str(file)), "the memory that is searched is the service's")
            true(not memory_has(service.pid(), SECRET), "the password is not there")
    finally:
        server.write("pg_hba.conf", "local all all trust\n")
        server.reload()


@test
def secrets():
    """A password, right or wrong, is in no message, list, log, command line or environment"""
    server.write("pg_hba.conf", "local all sales scram-sha-256\nlocal all all trust\n")
    server.reload()
    try:
        with relay(limits=PATIENT) as service:
            seen, client, file = [], service.client(), service.data / "password"
            keys = {"Engine": "postgresql", "Connection": server.connection("sales"), "PasswordFile": file}
            service.database("orders", **keys)
            service.driver.manager("Reload")
            for content, error in ((SECRET, None), (f"{SECRET}\nmore", None), (WRONG, "LoginFailed"), ("", None)):
                file.write_text(content)
                service.database("orders", **keys, Description=content.count("m"))  # a change, so that its workers end
                service.driver.manager("Reload")
                try:
                    run = client.query("orders", "SELECT generate_series(1, 10000000)")
                    run.frame()
                    equal(processes_with(SECRET) + processes_with(WRONG), [], "processes with a password")
                    run.close()
                    equal(None, error, "error")
                except Failure as failure:
                    seen.append(str(failure))
                    equal(failure.name, f"org.sqlipc1.Error.{error or 'LoginFailed'}", "error")
            expect("LoginFailed", client.query_rows, "written", "SELECT 1")
            service.database("orders", Engine="postgresql", Connection=f"{server.connection('sales')} password={WRONG}")
            service.driver.manager("Reload")
            seen.append(str(error_of(client.query_rows, "orders", "SELECT 1")))  # such a file is refused
            seen += [str(client.databases()), str(service.driver.manager("ListRuns")), service.log_text()]
            for verb in ("status", "security", "list"):
                done = service.run(CTL, f"--address={service.address}", f"--config-dir={service.config_dir}", verb)
                seen.append((done.stdout + done.stderr).decode(errors="replace"))
            for secret in (SECRET, WRONG):
                true(secret not in "\n".join(seen), f"{secret} appears: {[s for s in seen if secret in s]}")
    finally:
        server.write("pg_hba.conf", "local all all trust\n")
        server.reload()


@test
def nothing_left():
    """No connection to the server outlives the service"""
    wait_for(lambda: not server.clients(), "the server's processes for sqlipc end")


main(server)
