// SPDX-License-Identifier: LGPL-2.1-or-later
// A cancellation at each place where a program of libsqlipc-glib waits, from GJS: as glib-cancel.c.
// usage: gjs -m glib-cancel.js ADDRESS
import Gio from 'gi://Gio';
import GLib from 'gi://GLib';
import Sqlipc from 'gi://Sqlipc?version=1';
import System from 'system';

const DB = 'written';
const ENDLESS = 'WITH RECURSIVE n(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM n) SELECT max(x) FROM n';
const rows = n => new GLib.Variant('a(is)', Array.from({length: n}, (_, i) => [i, 'x'.repeat(n > 1 ? 100000 : 1)]));

function cursor(connection) {
    const opened = connection.query(DB, `SELECT 1 UNION ALL SELECT * FROM (${ENDLESS})`, null, null);
    opened.next(null);
    return opened;
}

function live(connection) {
    const opened = connection.live_query(DB, 'SELECT id FROM t WHERE id < 4', null, null);
    while (opened.next(null).get_kind() !== Sqlipc.LiveKind.SETTLED)
        continue;
    return opened;
}

function transaction(connection) {
    const begun = connection.begin(DB, Sqlipc.TransactionMode.WRITE, null);
    connection.execute(DB, "INSERT INTO loaded VALUES(1, 'x')", null, null);
    return begun;
}

function load(connection) {
    const opened = connection.load(DB, 'INSERT INTO loaded VALUES(?, ?)');
    opened.add_rows(rows(1), null);
    return opened;
}

function loaded(connection) {
    const n = connection.query(DB, 'SELECT count(*) FROM loaded', null, null).next(null).get_int64(0);
    connection.execute(DB, 'DELETE FROM loaded', null, null);
    return n;
}

// The outcome of a load: how many rows it has written.
function completed(load) {
    try {
        return load.complete(null)[1];
    } catch (e) {
        if (!e.matches(Sqlipc.Error, Sqlipc.Error.CANCELLED))
            throw e;
        return 0;
    }
}

// The object that a call belongs to, its arguments, and a check for afterwards.
const self = connection => connection;
const calls = {
    'Watch.next_async': [c => c.watch_tables(DB, ['many']), []],
    'Connection.begin_async': [self, [DB, Sqlipc.TransactionMode.WRITE]],
    'Connection.execute_async': [self, [DB, ENDLESS, null]],
    'Connection.list_databases_async': [self, []],
    'Connection.prepare_async': [self, [DB, 'SELECT 1']],
    'Connection.query_async': [self, [DB, ENDLESS, null]],
    'Cursor.next_async': [cursor, []],
    'Cursor.next_rows_async': [cursor, [0]],
    'LiveQuery.next_async': [live, []],
    'Load.add_rows_async': [load, [rows(100)], c => loaded(c) === 0],
    'Load.complete_async': [load, [], (c, o) => completed(o) === loaded(c)],
    'Statement.query_async': [c => c.prepare(DB, ENDLESS, null), []],
    'Transaction.commit_async': [transaction, [], (c, o) => o.commit(null) && loaded(c) === 1],
    'Transaction.rollback_async': [transaction, [], (c, o) => o.rollback(null) && loaded(c) === 0],
};

// These may have written, and the service is stopped, so that their outcome is unknown.
const unknown = ['Load.complete_async', 'Transaction.commit_async'];

const context = GLib.MainContext.default();
const input = new Gio.DataInputStream({base_stream: Gio.UnixInputStream.new(0, false)});

// Says something to the test, and runs the loop until it answers.
function tell(what, name) {
    let answer;
    print(`${what} ${name}`);
    input.read_line_async(GLib.PRIORITY_DEFAULT, null, (_, result) => {
        [answer] = input.read_line_finish(result);
    });
    while (answer === undefined)
        context.iteration(true);
    if (answer === null)
        throw new Error('the test has ended');
}

function turnFor(msec) {
    let over = false;
    GLib.timeout_add(GLib.PRIORITY_DEFAULT, msec, () => {
        over = true;
        return GLib.SOURCE_REMOVE;
    });
    while (!over)
        context.iteration(true);
}

for (const [name, [make, args, check]] of Object.entries(calls)) {
    const connection = Sqlipc.Connection.new_for_address(ARGV[0]);
    const target = make(connection);
    const start = name.split('.')[1];
    const cancellable = new Gio.Cancellable();
    let result = null;
    let error = null;
    tell('ready', name);
    target[start](...args, cancellable, (_, given) => {
        result = given;
    });
    turnFor(20);
    tell('waiting', name);
    if (result !== null)
        throw new Error(`${name}: it did not wait`);
    cancellable.cancel();
    while (result === null)
        context.iteration(true);
    try {
        target[start.replace('_async', '_finish')](result);
    } catch (e) {
        error = e;
    }
    const expected = unknown.includes(name) ? [Sqlipc.Error, Sqlipc.Error.OUTCOME_UNKNOWN]
        : [Gio.IOErrorEnum, Gio.IOErrorEnum.CANCELLED];
    if (!error?.matches(...expected))
        throw new Error(`${name}: ${error}`);
    tell('cancelled', name);
    if (check && !check(connection, target))
        throw new Error(`${name}: what was cancelled`);
    connection.close();
}
System.exit(0);
