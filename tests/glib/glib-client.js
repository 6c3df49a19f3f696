// SPDX-License-Identifier: LGPL-2.1-or-later
// Every class of libsqlipc-glib from GJS, for test_glib.py. usage: gjs -m glib-client.js ADDRESS
import Gio from 'gi://Gio';
import GLib from 'gi://GLib';
import Sqlipc from 'gi://Sqlipc?version=1';
import System from 'system';

const DB = 'written';
const ENDLESS = 'WITH RECURSIVE n(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM n) SELECT max(x) FROM n';

Gio._promisify(Sqlipc.Connection.prototype, 'query_async', 'query_finish');
Gio._promisify(Sqlipc.Connection.prototype, 'execute_async', 'execute_finish');
Gio._promisify(Sqlipc.Connection.prototype, 'prepare_async', 'prepare_finish');
Gio._promisify(Sqlipc.Connection.prototype, 'begin_async', 'begin_finish');
Gio._promisify(Sqlipc.Connection.prototype, 'list_databases_async', 'list_databases_finish');
Gio._promisify(Sqlipc.Cursor.prototype, 'next_async', 'next_finish');
Gio._promisify(Sqlipc.Cursor.prototype, 'next_rows_async', 'next_rows_finish');
Gio._promisify(Sqlipc.Statement.prototype, 'query_async', 'query_finish');
Gio._promisify(Sqlipc.Transaction.prototype, 'commit_async', 'commit_finish');
Gio._promisify(Sqlipc.LiveQuery.prototype, 'next_async', 'next_finish');
Gio._promisify(Sqlipc.Load.prototype, 'add_rows_async', 'add_rows_finish');
Gio._promisify(Sqlipc.Load.prototype, 'complete_async', 'complete_finish');

function check(condition, what) {
    if (!condition)
        throw new Error(what);
}

function settled(model) {
    if (model.settled)
        return Promise.resolve();
    return new Promise(resolve => {
        const id = model.connect('notify::settled', () => {
            if (model.settled) {
                model.disconnect(id);
                resolve();
            }
        });
    });
}

async function main() {
    const connection = Sqlipc.Connection.new_for_address(ARGV[0]);
    const list = await connection.list_databases_async(null);
    check(list.deepUnpack()[0][0] === DB, 'databases');

    let cursor = await connection.query_async(DB, 'SELECT ?1, ?2, NULL',
        new GLib.Variant('(sd)', ['text', 0.5]), null);
    let row = await cursor.next_async(null);
    check(row.get_text(0) === 'text' && row.get_double(1) === 0.5 && row.is_null(2), 'typed getters');
    check(row.get_value(0) === 'text' && row.get_value(2) === null, 'GValue');
    check(row.to_variant().recursiveUnpack()[0] === 'text', 'GVariant');
    check(await cursor.next_async(null) === null, 'end');

    cursor = await connection.query_async(DB, 'SELECT id, name FROM t ORDER BY id', null, null);
    const rows = await cursor.next_rows_async(5, null);
    check(rows.dup_strings(1).join() === 'name 1,name 2,name 3,name 4,name 5', 'strings of a column');
    check(rows.dup_doubles(0)[4] === 5, 'numbers of a column');

    try {
        await connection.query_async(DB, 'SELECT nothing FROM t', null, null);
        check(false, 'no error');
    } catch (e) {
        check(e.matches(Sqlipc.Error, Sqlipc.Error.SQL), `${e}`);
        check(connection.get_error_sql_offset() === 7, 'offset');
    }

    const cancellable = new Gio.Cancellable();
    GLib.timeout_add(GLib.PRIORITY_DEFAULT, 20, () => cancellable.cancel());
    try {
        await connection.query_async(DB, ENDLESS, null, cancellable);
        check(false, 'no error');
    } catch (e) {
        check(e.matches(Gio.IOErrorEnum, Gio.IOErrorEnum.CANCELLED), `${e}`);
    }

    const statement = await connection.prepare_async(DB, 'SELECT name FROM t WHERE id = ?', null);
    statement.bind_int64(1, 7);
    cursor = await statement.query_async(null);
    check(cursor.next(null).get_text(0) === 'name 7', 'statement');

    const transaction = await connection.begin_async(DB, Sqlipc.TransactionMode.WRITE, null);
    await connection.execute_async(DB, "UPDATE t SET v = 'js' WHERE id = 3", null, null);
    await transaction.commit_async(null);

    const load = connection.load(DB, 'INSERT INTO loaded VALUES(?, ?)');
    await load.add_rows_async(new GLib.Variant('a(is)', [[1, 'x'], [2, 'y']]), null);
    await load.complete_async(null);

    const model = Sqlipc.LiveModel.new(connection, DB, 'SELECT id, name, v FROM t WHERE id <= 10 ORDER BY id', null, ['id']);
    await settled(model);
    check(model.get_n_items() === 10, 'rows of a model');
    row = model.get_item(2);
    check(row.get_text(2) === 'js', 'committed');
    await connection.execute_async(DB, 'DELETE FROM t WHERE id = 1', null, null);
    model.refresh();
    await settled(model);
    check(model.get_item(1) === row, 'same object');

    const watch = connection.watch_tables(DB, ['loaded']);
    const changed = new Promise(resolve => watch.connect('changed', resolve));
    watch.start();
    await new Promise(resolve => GLib.timeout_add(GLib.PRIORITY_DEFAULT, 5, () => {
        if (watch.get_sequence() === 0)
            return GLib.SOURCE_CONTINUE;
        resolve();
        return GLib.SOURCE_REMOVE;
    }));
    await connection.execute_async(DB, 'DELETE FROM loaded', null, null);
    await changed;
    watch.close();
    const live = connection.live_query(DB, 'SELECT id, name FROM t WHERE id = 5', null, [0]);
    const change = await live.next_async(null);
    check(change.get_kind() === Sqlipc.LiveKind.ADDED && change.get_row().get_text(1) === 'name 5', 'live query');
    live.close();
    connection.close();
}

let failure = null;
const loop = new GLib.MainLoop(null, false);
main().catch(e => {
    failure = e;
}).finally(() => loop.quit());
loop.run();
if (failure) {
    printerr(`${failure}\n${failure.stack}`);
    System.exit(1);
}
