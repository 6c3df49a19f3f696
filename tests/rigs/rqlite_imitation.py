#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A node of a cluster that speaks rqlite's HTTP API, for tests on machines without rqlite. Python's sqlite3 has the data.

usage: rqlite_imitation.py FOLDER NUMBER NODES [USER:PASSWORD]

Prints its port once all nodes of the cluster are there, and ends when its standard input does. The nodes find each other
by files in FOLDER. They elect a leader and replicate its log as Raft does (terms, votes, a majority for each entry), but
keep everything in memory: a node that is killed does not come back. They elect another leader only if the process of the
last one has ended, not if it is slow, so a machine that stops a node makes no write fail.

The answers have rqlite's peculiarities: 1.0 is written as 1, a text like x'41' is a BLOB, no rows come if its parser does
not know a word after RETURNING, followers pass requests on to the leader or redirect, a transaction ends with its first
error.
"""
import base64
import http.client
import http.server
import json
import math
import os
import pathlib
import random
import re
import socket
import sqlite3
import sys
import threading
import time
import urllib.parse

HEARTBEAT = 0.05
ELECTION = (2, 4)
PATIENCE = 120  # only a hang reaches it


# ---- JSON as Go writes it ----

def go_float(value):
    """A finite float as encoding/json writes it: the shortest digits, without a point if it is whole"""
    if value == int(value) and abs(value) < 1e21:
        return ("-" if math.copysign(1, value) < 0 and value == 0 else "") + str(int(value))
    text = repr(value)
    return re.sub(r"e([+-])0(\d)$", r"e\1\2", text)


def go_json(value, blob_array):
    if isinstance(value, float):
        if math.isinf(value):
            raise ValueError("json: unsupported value: %sInf" % ("+" if value > 0 else "-"))
        return go_float(value)
    if isinstance(value, bytes):
        return json.dumps(list(value) if blob_array else base64.b64encode(value).decode())
    if isinstance(value, dict):
        return "{%s}" % ",".join(f"{json.dumps(k)}:{go_json(v, blob_array)}" for k, v in value.items())
    if isinstance(value, list):
        return "[%s]" % ",".join(go_json(v, blob_array) for v in value)
    return json.dumps(value, ensure_ascii=False)


def parameter(value):
    if isinstance(value, str) and re.fullmatch(r"[xX]'([0-9a-fA-F]{2})*'", value):
        return bytes.fromhex(value[2:-1])
    return bytes(value) if isinstance(value, list) else value


def statements_of(body):
    statements = []
    for item in json.loads(body):
        sql, *parameters = [item] if isinstance(item, str) else item
        statements.append((sql, [parameter(value) for value in parameters]))
    return statements


# ---- the database ----

class Database:
    def __init__(self):
        self.connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        self.connection.text_factory = lambda text: text.decode("utf-8", "replace")
        self.connection.execute("PRAGMA foreign_keys = ON")
        self.lock = threading.Lock()

    def run(self, sql, parameters, writes):
        cursor = self.connection.execute(sql, parameters)
        if not writes or cursor.description:
            rows = [list(row) for row in cursor.fetchall()]
        if not writes or (cursor.description and "NOTNULL" not in sql):
            columns = [column[0] for column in cursor.description or ()]
            result = {"columns": columns, "types": [""] * len(columns)}
            return {**result, "values": rows} if rows else result
        result = {"last_insert_id": cursor.lastrowid or 0, "rows_affected": max(cursor.rowcount, 0)}
        return {key: value for key, value in result.items() if value}

    def run_all(self, statements, transaction, writes):
        results = []
        with self.lock:
            if transaction:
                self.connection.execute("BEGIN")
            self.connection.execute(f"PRAGMA query_only = {0 if writes else 1}")
            for sql, parameters in statements:
                try:
                    results.append(self.run(sql, parameters, writes))
                except (sqlite3.Error, sqlite3.Warning, OverflowError) as e:
                    results.append({"error": str(e)})
                    if transaction:
                        break
            if self.connection.in_transaction:
                failed = any("error" in result for result in results)
                try:
                    self.connection.execute("ROLLBACK" if failed else "COMMIT")
                except sqlite3.Error as e:
                    self.connection.execute("ROLLBACK")
                    return results, str(e)
        return results, None


# ---- the log ----

class Node:
    """One server of the cluster: its role, its log, and its database"""

    def __init__(self, number, folder, n):
        self.number, self.folder, self.n = number, folder, n
        self.database = Database()
        self.lock = threading.Condition(threading.RLock())
        self.term, self.voted, self.role, self.leader = 0, None, "follower", None
        self.log = []  # of (term, statements as JSON, transaction)
        self.committed = self.applied = self.database_index = 0
        self.results = {}  # of entries that this leader proposed, by index
        self.wanted = set()
        self.heard = time.monotonic()
        self.ports = {}

    def start(self):
        while len(self.ports) < self.n:
            self.ports = {int(p.stem): int(p.read_text()) for p in self.folder.glob("*.port") if p.read_text()}
            time.sleep(0.01)
        for peer in self.ports:
            if peer != self.number:
                threading.Thread(target=self.replicate, args=(peer,), daemon=True).start()
        if self.n == 1:
            self.lead(1)
        else:
            threading.Thread(target=self.watch, daemon=True).start()
            if self.number == 1:
                self.stand()  # no test waits for the first leader
        threading.Thread(target=self.apply, daemon=True).start()

    def last(self):
        return len(self.log), self.log[-1][0] if self.log else 0

    def call(self, peer, path, message, timeout=1):
        connection = http.client.HTTPConnection("127.0.0.1", self.ports[peer], timeout=timeout)
        try:
            connection.request("POST", path, json.dumps(message))
            return json.loads(connection.getresponse().read())
        finally:
            connection.close()

    def see_term(self, term):
        if term > self.term:
            self.term, self.voted, self.role, self.leader = term, None, "follower", None
            self.lock.notify_all()

    # elections

    def watch(self):
        while True:
            patience = random.uniform(*ELECTION)
            time.sleep(patience)
            with self.lock:
                due = self.role != "leader" and time.monotonic() - self.heard > patience
            if due and not self.has_leader():
                self.stand()

    def has_leader(self):
        """True if a node leads, as far as this one or another knows, and its process goes on"""
        return any(map(self.is_there, {self.leader, *map(self.leader_of, self.ports)} - {None}))

    def leader_of(self, peer):
        try:
            return self.call(peer, "/raft/leader", [], PATIENCE)
        except (OSError, http.client.HTTPException, ValueError):
            return None

    def is_there(self, peer):
        try:
            socket.create_connection(("127.0.0.1", self.ports[peer])).close()
            return True
        except OSError:
            return False

    def stand(self):
        with self.lock:
            self.term += 1
            self.role, self.voted, self.leader, self.heard = "candidate", self.number, None, time.monotonic()
            term, (last_index, last_term) = self.term, self.last()
        votes = [1]

        def ask(peer):
            try:
                reply = self.call(peer, "/raft/vote", [term, self.number, last_index, last_term])
            except (OSError, http.client.HTTPException, ValueError):
                return
            with self.lock:
                self.see_term(reply[0])
                votes[0] += reply[1] and self.term == term
                if self.role == "candidate" and self.term == term and votes[0] > self.n // 2:
                    self.lead(term)

        threads = [threading.Thread(target=ask, args=(peer,), daemon=True) for peer in self.ports if peer != self.number]
        for thread in threads:
            thread.start()

    def lead(self, term):
        with self.lock:
            self.term, self.role, self.leader = term, "leader", self.number
            self.next = {peer: len(self.log) + 1 for peer in self.ports}
            self.matched = {peer: 0 for peer in self.ports}
            self.log.append((term, "[]", False))  # commits what earlier leaders have left
            self.count()
            self.lock.notify_all()

    def on_vote(self, message):
        term, candidate, last_index, last_term = message
        with self.lock:
            self.see_term(term)
            mine = self.last()
            grants = term == self.term and self.voted in (None, candidate) and (last_term, last_index) >= (mine[1], mine[0])
            if grants:
                self.voted, self.heard = candidate, time.monotonic()
            return [self.term, grants]

    # replication

    def replicate(self, peer):
        """Keeps one follower up to date while this node leads"""
        while True:
            with self.lock:
                if self.role != "leader":
                    self.lock.wait(1)
                    continue
                if self.next[peer] > len(self.log):
                    self.lock.wait(HEARTBEAT)
                    if self.role != "leader":
                        continue
                first = self.next[peer]
                previous = self.log[first - 2][0] if first > 1 else 0
                message = [self.term, self.number, first - 1, previous, self.log[first - 1:first + 63], self.committed]
            try:
                term, ok = self.call(peer, "/raft/append", message)
            except (OSError, http.client.HTTPException, ValueError):
                time.sleep(HEARTBEAT)
                continue
            with self.lock:
                self.see_term(term)
                if self.role != "leader" or message[0] != self.term:
                    continue
                if ok:
                    self.matched[peer] = first - 1 + len(message[4])
                    self.next[peer] = self.matched[peer] + 1
                    self.count()
                else:
                    self.next[peer] = max(1, first - 1)

    def count(self):
        """Commits what a majority has"""
        self.matched[self.number] = len(self.log)
        index = sorted(self.matched.values(), reverse=True)[self.n // 2]
        if index > self.committed and self.log[index - 1][0] == self.term:
            self.committed = index
            self.lock.notify_all()

    def on_append(self, message):
        term, leader, previous, previous_term, entries, committed = message
        with self.lock:
            self.see_term(term)
            if term < self.term:
                return [self.term, False]
            self.role, self.leader, self.heard = "follower", leader, time.monotonic()
            if previous > len(self.log) or (previous > 0 and self.log[previous - 1][0] != previous_term):
                return [self.term, False]
            for i, entry in enumerate(entries, previous):
                if i < len(self.log) and self.log[i][0] != entry[0]:
                    del self.log[i:]
                if i >= len(self.log):
                    self.log.append(tuple(entry))
            self.committed = max(self.committed, min(committed, previous + len(entries)))
            self.lock.notify_all()
            return [self.term, True]

    def apply(self):
        while True:
            with self.lock:
                while self.applied >= self.committed:
                    self.lock.wait()
                index = self.applied + 1
                term, body, transaction = self.log[index - 1]
            statements = statements_of(body)
            outcome = self.database.run_all(statements, transaction, True)
            with self.lock:
                self.applied = index
                if statements:
                    self.database_index = index
                if index in self.wanted:
                    self.results[index] = (term, outcome)
                self.lock.notify_all()

    def propose(self, body, transaction):
        """Returns (index, (results, error)), or None: this node does not lead"""
        with self.lock:
            if self.role != "leader":
                return None
            self.log.append((self.term, body, transaction))
            index, term = len(self.log), self.term
            self.wanted.add(index)
            self.count()
            self.lock.notify_all()
            self.lock.wait_for(lambda: index in self.results or self.term != term, PATIENCE)
            self.wanted.discard(index)
            if index not in self.results or self.results[index][0] != term:
                return index, ([], "leadership lost while committing log")
            return index, self.results.pop(index)[1]


# ---- HTTP ----

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *arguments):
        pass

    def reply(self, status, text, **headers):
        body = text.encode("utf-8", "replace")
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), "Content-Type": "application/json", **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def is_allowed(self):
        wanted = self.server.user and "Basic " + base64.b64encode(self.server.user.encode()).decode()
        return not wanted or self.headers.get("Authorization") == wanted

    def do_GET(self):
        node, url = self.server.node, urllib.parse.urlsplit(self.path)
        if not self.is_allowed():
            self.reply(401, "")
        elif url.path == "/status" and urllib.parse.parse_qs(url.query).get("key") == ["store.db_applied_index"]:
            self.reply(200, str(node.database_index))
        elif url.path == "/status":
            leader = {"node_id": str(node.leader or ""), "addr": ""}
            self.reply(200, json.dumps({"store": {"leader": leader, "db_applied_index": node.database_index}}))
        elif url.path == "/readyz":
            self.reply(200 if node.leader else 503, "[+]node ok")
        else:
            self.reply(404, "not found")

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        url = urllib.parse.urlsplit(self.path)
        options = urllib.parse.parse_qs(url.query, keep_blank_values=True)
        node = self.server.node
        if url.path == "/raft/leader":
            self.reply(200, json.dumps(node.leader))
        elif url.path in ("/raft/vote", "/raft/append"):
            self.reply(200, json.dumps((node.on_vote if url.path == "/raft/vote" else node.on_append)(json.loads(body))))
        elif not self.is_allowed():
            self.reply(401, "")
        elif url.path in ("/db/query", "/db/execute"):
            try:
                self.database(url, options, body)
            except (ValueError, TypeError) as e:
                self.reply(400 if "unsupported" not in str(e) else 500, str(e))
        else:
            self.reply(404, "not found")

    def database(self, url, options, body):
        node, statements = self.server.node, statements_of(body)
        reads, level = url.path == "/db/query", options.get("level", ["weak"])[0]
        if reads and level == "none":
            self.answer(options, node.database.run_all(statements, "transaction" in options, False))
        elif node.role != "leader":
            self.pass_on(options, body)
        elif reads:
            if level in ("strong", "linearizable"):
                node.propose("[]", False)
            self.answer(options, node.database.run_all(statements, "transaction" in options, False))
        else:
            proposed = node.propose(body.decode(), "transaction" in options)
            if proposed:
                self.answer(options, proposed[1], proposed[0])
            else:
                self.pass_on(options, body)

    def answer(self, options, outcome, index=None):
        results, error = outcome
        answer = {"results": results}
        if index and "raft_index" in options and self.server.tells_index:
            answer["raft_index"] = index
        if error:
            answer = {"results": [], "error": error}
        self.reply(200, go_json(answer, "blob_array" in options))

    def pass_on(self, options, body):
        node = self.server.node
        if not node.leader or node.leader == node.number:
            self.reply(500 if "redirect" in options else 503, "leader not found")
        elif "redirect" in options:
            self.reply(301, "", Location=f"http://127.0.0.1:{node.ports[node.leader]}{self.path}")
        else:
            connection = http.client.HTTPConnection("127.0.0.1", node.ports[node.leader], timeout=PATIENCE)
            try:
                headers = {"Authorization": self.headers["Authorization"]} if "Authorization" in self.headers else {}
                connection.request("POST", self.path, body, headers)
                response = connection.getresponse()
                self.reply(response.status, response.read().decode())
            except (OSError, http.client.HTTPException) as e:
                self.reply(503, f"leader not found: {e}" if isinstance(e, ConnectionRefusedError) else str(e))
            finally:
                connection.close()


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], ConnectionError):  # a client may leave at any time
            super().handle_error(request, client_address)


def main():
    folder, number, n = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    server = Server(("127.0.0.1", 0), Handler)
    server.node, server.user = Node(number, folder, n), sys.argv[4] if len(sys.argv) > 4 else None
    server.tells_index = "RQLITE_IMITATION_WITHOUT_INDEX" not in os.environ
    threading.Thread(target=server.serve_forever, daemon=True).start()
    part = folder / f"{number}.part"
    part.write_text(str(server.server_address[1]))
    part.rename(folder / f"{number}.port")
    server.node.start()
    print(server.server_address[1], flush=True)
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main()
