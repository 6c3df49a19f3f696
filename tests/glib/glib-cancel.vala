/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A cancellation at each place where a program of libsqlipc-glib waits, from Vala: as glib-cancel.c.
 * usage: glib-cancel-vala ADDRESS */
const string DB = "written";
const string ENDLESS = "WITH RECURSIVE n(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM n) SELECT max(x) FROM n";

const string[] CALLS = {
    "Watch.next_async",
    "Connection.begin_async", "Connection.execute_async", "Connection.list_databases_async", "Connection.prepare_async",
    "Connection.query_async", "Cursor.next_async", "Cursor.next_rows_async", "LiveQuery.next_async", "Load.add_rows_async",
    "Load.complete_async", "Statement.query_async", "Transaction.commit_async", "Transaction.rollback_async"
};

/* Says something to the test, and runs the loop until it answers. */
void tell (string what, string name) {
    bool here = false;

    stdout.printf ("%s %s\n", what, name);
    stdout.flush ();
    new IOChannel.unix_new (0).add_watch (IOCondition.IN | IOCondition.HUP, () => {
        here = true;
        return false;
    });
    while (!here)
        MainContext.default ().iteration (true);
    assert (stdin.read_line () != null);
}

Variant many_rows () {
    var builder = new VariantBuilder (new VariantType ("a(xs)"));
    for (int64 i = 0; i < 100; i++)
        builder.add ("(xs)", i, string.nfill (100000, 'x'));
    return builder.end ();
}

async int64 loaded (Sqlipc.Connection connection) throws Error {
    var n = connection.query (DB, "SELECT count(*) FROM loaded", null, null).next (null).get_int64 (0);
    connection.execute (DB, "DELETE FROM loaded", null, null, null, null);
    return n;
}

/* Says "waiting" while the call waits, and cancels it. */
void cancel_soon (string name, Cancellable cancellable) {
    Timeout.add (20, () => {
        tell ("waiting", name);
        cancellable.cancel ();
        return Source.REMOVE;
    });
}

Sqlipc.Cursor open_cursor (Sqlipc.Connection connection) throws Error {
    var cursor = connection.query (DB, "SELECT 1 UNION ALL SELECT * FROM (" + ENDLESS + ")", null, null);
    cursor.next (null);
    return cursor;
}

Sqlipc.Transaction begin (Sqlipc.Connection connection) throws Error {
    var transaction = connection.begin (DB, Sqlipc.TransactionMode.WRITE, null);
    connection.execute (DB, "INSERT INTO loaded VALUES(1, 'x')", null, null, null, null);
    return transaction;
}

Sqlipc.Load open_load (Sqlipc.Connection connection) throws Error {
    var load = connection.load (DB, "INSERT INTO loaded VALUES(?, ?)");
    load.add_rows (new Variant.parsed ("[(1, 'x')]"), null);
    return load;
}

async void cancel_call (string name, Sqlipc.Connection connection) throws Error {
    var cancellable = new Cancellable ();
    Sqlipc.Cursor? cursor = null;
    Sqlipc.Statement? statement = null;
    Sqlipc.Transaction? transaction = null;
    Sqlipc.Load? load = null;
    Sqlipc.Watch? watch = null;
    Sqlipc.LiveQuery? live = null;
    bool cancelled = false;
    int64 changes = 0;

    if (name.has_prefix ("Cursor"))
        cursor = open_cursor (connection);
    if (name.has_prefix ("Statement"))
        statement = connection.prepare (DB, ENDLESS, null);
    if (name.has_prefix ("Transaction"))
        transaction = begin (connection);
    if (name.has_prefix ("Load"))
        load = open_load (connection);
    if (name.has_prefix ("Watch"))
        watch = connection.watch_tables (DB, { "many" });
    if (name.has_prefix ("LiveQuery")) {
        live = connection.live_query (DB, "SELECT id FROM t WHERE id < 4", null, {});
        while (live.next (null).get_kind () != Sqlipc.LiveKind.SETTLED) {
        }
    }
    tell ("ready", name);
    cancel_soon (name, cancellable);
    try {
        switch (name) {
        case "Connection.begin_async":
            yield connection.begin_async (DB, Sqlipc.TransactionMode.WRITE, cancellable);
            break;
        case "Connection.execute_async":
            yield connection.execute_async (DB, ENDLESS, null, cancellable, null, null);
            break;
        case "Connection.list_databases_async":
            yield connection.list_databases_async (cancellable);
            break;
        case "Connection.prepare_async":
            yield connection.prepare_async (DB, "SELECT 1", cancellable);
            break;
        case "Connection.query_async":
            yield connection.query_async (DB, ENDLESS, null, cancellable);
            break;
        case "Cursor.next_async":
            yield cursor.next_async (cancellable);
            break;
        case "Cursor.next_rows_async":
            yield cursor.next_rows_async (0, cancellable);
            break;
        case "LiveQuery.next_async":
            yield live.next_async (cancellable);
            break;
        case "Load.add_rows_async":
            yield load.add_rows_async (many_rows (), cancellable);
            break;
        case "Load.complete_async":
            yield load.complete_async (cancellable, null);
            break;
        case "Statement.query_async":
            yield statement.query_async (cancellable);
            break;
        case "Transaction.commit_async":
            yield transaction.commit_async (cancellable);
            break;
        case "Transaction.rollback_async":
            yield transaction.rollback_async (cancellable);
            break;
        case "Watch.next_async":
            yield watch.next_async (cancellable);
            break;
        }
    } catch (IOError.CANCELLED e) {
        cancelled = true;
    } catch (Sqlipc.Error.OUTCOME_UNKNOWN e) { // they may have written, and the service is stopped
        cancelled = name == "Load.complete_async" || name == "Transaction.commit_async";
    }
    assert (cancelled);
    tell ("cancelled", name);
    switch (name) {
    case "Load.add_rows_async":
        assert ((yield loaded (connection)) == 0);
        break;
    case "Load.complete_async":
        try {
            load.complete (out changes, null);
        } catch (Sqlipc.Error.CANCELLED e) {
            changes = 0;
        }
        assert ((yield loaded (connection)) == changes);
        break;
    case "Transaction.rollback_async":
        assert (transaction.rollback (null) && (yield loaded (connection)) == 0);
        break;
    case "Transaction.commit_async":
        assert (transaction.commit (null) && (yield loaded (connection)) == 1);
        break;
    }
}

async void run (string address) throws Error {
    foreach (unowned string name in CALLS)
        yield cancel_call (name, new Sqlipc.Connection.for_address (address));
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
