/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Every class of libsqlipc-glib from Vala, for test_glib.py. usage: glib-client-vala ADDRESS */
const string DB = "written";
const string ENDLESS = "WITH RECURSIVE n(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM n) SELECT max(x) FROM n";

async void settled (Sqlipc.LiveModel model) {
    if (model.settled)
        return;
    ulong id = model.notify["settled"].connect (() => {
        if (model.settled)
            Idle.add (settled.callback);
    });
    yield;
    model.disconnect (id);
}

async void run (string address) throws Error {
    var connection = new Sqlipc.Connection.for_address (address);
    assert ((yield connection.list_databases_async (null)).n_children () == 1);

    var cursor = yield connection.query_async (DB, "SELECT ?1, ?2, NULL", new Variant ("(sd)", "text", 0.5), null);
    var row = yield cursor.next_async (null);
    assert (row.get_text (0) == "text" && row.get_double (1) == 0.5 && row.is_null (2));
    assert ((yield cursor.next_async (null)) == null);

    cursor = yield connection.query_async (DB, "SELECT id, name FROM t ORDER BY id", null, null);
    var rows = yield cursor.next_rows_async (5, null);
    assert (rows.dup_int64s (0)[4] == 5 && rows.dup_strings (1)[0] == "name 1");

    try {
        yield connection.query_async (DB, "SELECT nothing FROM t", null, null);
        assert_not_reached ();
    } catch (Sqlipc.Error.SQL e) {
        assert (connection.get_error_sql_offset () == 7);
    }

    var cancellable = new Cancellable ();
    Timeout.add (20, () => {
        cancellable.cancel ();
        return Source.REMOVE;
    });
    try {
        yield connection.query_async (DB, ENDLESS, null, cancellable);
        assert_not_reached ();
    } catch (IOError.CANCELLED e) {
    }

    var statement = yield connection.prepare_async (DB, "SELECT name FROM t WHERE id = ?", null);
    statement.bind_int64 (1, 7);
    cursor = yield statement.query_async (null);
    assert (cursor.next (null).get_text (0) == "name 7");

    int64 changes, rowid;
    var transaction = yield connection.begin_async (DB, Sqlipc.TransactionMode.WRITE, null);
    yield connection.execute_async (DB, "UPDATE t SET v = 'vala' WHERE id = 3", null, null, out changes, out rowid);
    assert (changes == 1);
    yield transaction.commit_async (null);

    var load = connection.load (DB, "INSERT INTO loaded VALUES(?, ?)");
    yield load.add_rows_async (new Variant.parsed ("[(1, 'x'), (2, 'y')]"), null);
    yield load.complete_async (null, out changes);
    assert (changes == 2);

    var model = new Sqlipc.LiveModel (connection, DB, "SELECT id, name, v FROM t WHERE id <= 10 ORDER BY id", null, { "id" });
    yield settled (model);
    assert (model.get_n_items () == 10);
    row = (Sqlipc.Row) model.get_item (2);
    assert (row.get_text (2) == "vala");
    yield connection.execute_async (DB, "DELETE FROM t WHERE id = 1", null, null, null, null);
    model.refresh ();
    yield settled (model);
    assert (model.get_item (1) == row);

    var watch = connection.watch_tables (DB, { "loaded" });
    while (watch.get_sequence () == 0) {
        Timeout.add (5, run.callback);
        yield;
    }
    yield connection.execute_async (DB, "DELETE FROM loaded", null, null, null, null);
    assert (yield watch.next_async (null));
    watch.close ();
    var live = connection.live_query (DB, "SELECT id, name FROM t WHERE id = 5", null, { 0 });
    var change = yield live.next_async (null);
    assert (change.get_kind () == Sqlipc.LiveKind.ADDED && change.get_row ().get_text (1) == "name 5");
    live.close ();
    connection.close ();
}

int main (string[] args) {
    var loop = new MainLoop ();
    int code = 1;

    run.begin (args[1], (source, result) => {
        try {
            run.end (result);
            code = 0;
        } catch (Error e) {
            stderr.printf ("%s\n", e.message);
        }
        loop.quit ();
    });
    loop.run ();
    return code;
}
