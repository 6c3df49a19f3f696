/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A GTK 4 window over one table of a shared database: sort, search and edit, while other programs change it. Compare
 * browser.py.
 *
 * usage: browser [--address=BUS] DATABASE TABLE KEY
 */
private static string quote (string name) {
    return "\"" + name.replace ("\"", "\"\"") + "\"";
}

private class Browser : Gtk.ApplicationWindow {
    private Sqlipc.Connection connection;
    private Sqlipc.LiveModel model;
    private string database;
    private string table;
    private string key;
    private string[] names = {};
    private bool to_top = false;
    private Gtk.ColumnView view;
    private Gtk.Label status;

    public Browser (Gtk.Application application, Sqlipc.Connection connection, string database, string table, string key) {
        Object (application: application, title: @"$table in $database", default_width: 720, default_height: 480);
        this.connection = connection;
        this.database = database;
        this.table = table;
        this.key = key;
        model = new Sqlipc.LiveModel.windowed (connection, database, select (), null, { key }, null);
        model.notify["settled"].connect (on_settled);

        view = new Gtk.ColumnView (null);
        var search = new Gtk.SearchEntry ();
        search.search_changed.connect (() => on_search (search.text));
        status = new Gtk.Label (null);
        var action = new SimpleAction ("sort", VariantType.STRING);
        action.activate.connect ((order) => {
            model.set_order ({ order.get_string () });
            to_top = true;
        });
        add_action (action);
        var scrolled = new Gtk.ScrolledWindow ();
        scrolled.child = view;
        scrolled.vexpand = true;
        var box = new Gtk.Box (Gtk.Orientation.VERTICAL, 6);
        box.append (search);
        box.append (scrolled);
        box.append (status);
        child = box;
    }

    private string select () {
        return "SELECT * FROM " + quote (table);
    }

    private void on_settled () {
        if (!model.settled)
            return;
        status.label = @"$(model.get_n_items ()) rows";
        if (to_top) /* the view would follow the row that it showed before, also if it is at the top now */
            view.get_last_child ().activate_action_variant ("list.scroll-to-item", new Variant.uint32 (0));
        to_top = false;
        if (names.length > 0)
            return;
        names = model.dup_column_names ();
        for (int i = 0; i < names.length; i++)
            view.append_column (make_column (i));
        view.model = new Gtk.SingleSelection (model); /* now, because GTK 4.18 fails with rows without columns */
    }

    private Gtk.ColumnViewColumn make_column (int index) {
        var factory = new Gtk.SignalListItemFactory ();
        factory.setup.connect ((object) => {
            var item = (Gtk.ListItem) object;
            var label = new Gtk.EditableLabel ("");
            label.editable = names[index] != key;
            label.notify["editing"].connect (() => {
                var row = item.item as Sqlipc.Row;
                if (!label.editing && row != null && label.text != row.dup_string (index))
                    edit.begin (row, index, label.text);
            });
            item.child = label;
        });
        factory.bind.connect ((object) => {
            var item = (Gtk.ListItem) object;
            var label = (Gtk.EditableLabel) item.child;
            var row = (Sqlipc.Row) item.item;
            /* The object stays the same as long as its key does; its values may change at any time. */
            ulong handler = row.notify["version"].connect (() => {
                if (!label.editing)
                    label.text = row.dup_string (index);
            });
            item.set_data<ulong> ("handler", handler);
            label.text = row.dup_string (index);
        });
        factory.unbind.connect ((object) => {
            var item = (Gtk.ListItem) object;
            item.item.disconnect (item.get_data<ulong> ("handler"));
        });
        var column = new Gtk.ColumnViewColumn (names[index], factory);
        column.expand = true;
        var menu = new Menu ();
        foreach (var suffix in new string[] { "", " DESC" }) {
            var item = new MenuItem (suffix == "" ? "Sort up" : "Sort down", null);
            item.set_action_and_target_value ("win.sort", new Variant.string (names[index] + suffix));
            menu.append_item (item);
        }
        column.header_menu = menu;
        return column;
    }

    private void on_search (string text) {
        string[] conditions = {};
        foreach (var name in names)
            conditions += @"instr(lower($(quote (name))), lower(?1)) > 0";
        if (text == "" || names.length == 0)
            model.set_query (select (), null);
        else
            model.set_query (select () + " WHERE " + string.joinv (" OR ", conditions), new Variant ("(s)", text));
    }

    /* The value that the user saw is compared, so that an edit never overwrites what somebody else has just written. */
    private async void edit (Sqlipc.Row row, int index, string text) {
        int64 changes;
        var sql = @"UPDATE $(quote (table)) SET $(quote (names[index])) = ?1" +
                  @" WHERE $(quote (key)) IS ?2 AND $(quote (names[index])) IS ?3";
        Variant[] parameters = {
            new Variant.variant (new Variant.string (text)),
            new Variant.variant (row.dup_variant (row.find_column (key))),
            new Variant.variant (row.dup_variant (index))
        };

        try {
            yield connection.execute_async (database, sql, new Variant.array (VariantType.VARIANT, parameters), null,
                                            out changes, null);
            if (changes == 0)
                status.label = "Somebody else has changed this value.";
        } catch (Error e) {
            status.label = e.message;
        }
    }
}

int main (string[] args) {
    string? address = null;
    OptionEntry[] entries = { { "address", 0, 0, OptionArg.STRING, ref address, "Bus to use", "ADDRESS" }, { null } };
    var options = new OptionContext ("DATABASE TABLE KEY");

    options.add_main_entries (entries, null);
    try {
        options.parse (ref args);
    } catch (Error e) {
        stderr.printf ("%s\n", e.message);
        return 2;
    }
    if (args.length != 4) {
        stderr.printf ("%s", options.get_help (true, null));
        return 2;
    }
    var application = new Gtk.Application ("org.sqlipc1.BrowserVala", ApplicationFlags.NON_UNIQUE);
    application.activate.connect (() => {
        try {
            var connection = address != null ? new Sqlipc.Connection.for_address (address)
                                             : new Sqlipc.Connection (Sqlipc.Bus.USER);
            new Browser (application, connection, args[1], args[2], args[3]).present ();
        } catch (Error e) {
            stderr.printf ("%s\n", e.message);
        }
    });
    return application.run ({ args[0] });
}
