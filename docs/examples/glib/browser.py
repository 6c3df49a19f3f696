#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A GTK 4 window over one table of a shared database: sort, search and edit, while other programs change it.

usage: browser.py [--address=BUS] DATABASE TABLE KEY

Sorting and searching are the service's work: the model asks for the rows that are on the screen, so a table with a million
rows opens as fast as a small one. An edit is an UPDATE; the new value comes back by the model, as do the changes of others.
"""
import sys

import gi

gi.require_version("Gtk", "4.0")
gi.require_version("Sqlipc", "1")
from gi.repository import Gio, GLib, Gtk, Sqlipc  # noqa: E402


def quote(name):
    return '"' + name.replace('"', '""') + '"'


class Browser(Gtk.ApplicationWindow):
    def __init__(self, application, connection, database, table, key):
        super().__init__(application=application, title=f"{table} in {database}", default_width=720, default_height=480)
        self.connection, self.database, self.table, self.key = connection, database, table, key
        self.to_top = False
        self.model = Sqlipc.LiveModel.new_windowed(connection, database, f"SELECT * FROM {quote(table)}", None, [key], None)
        self.model.connect("notify::settled", self.on_settled)
        self.model.connect("notify::error", self.on_error)

        action = Gio.SimpleAction.new("sort", GLib.VariantType("s"))
        action.connect("activate", self.on_sort)
        self.add_action(action)

        self.view = Gtk.ColumnView(show_row_separators=True)
        self.search = Gtk.SearchEntry(placeholder_text="Search", hexpand=True)
        self.search.connect("search-changed", self.on_search)
        self.status = Gtk.Label(xalign=0, margin_start=6, margin_end=6)
        box = Gtk.Box(orientation=Gtk.Orientation.VERTICAL, spacing=6)
        box.append(self.search)
        box.append(Gtk.ScrolledWindow(child=self.view, vexpand=True))
        box.append(self.status)
        self.set_child(box)

    # ---- columns ----

    def make_columns(self):
        """Makes a column of the view for each column of the table, when the first rows have come."""
        self.names = self.model.dup_column_names()
        for index, name in enumerate(self.names):
            factory = Gtk.SignalListItemFactory()
            factory.connect("setup", self.on_setup, index)
            factory.connect("bind", self.on_bind, index)
            factory.connect("unbind", self.on_unbind)
            column = Gtk.ColumnViewColumn(title=name, factory=factory, resizable=True, expand=True)
            menu = Gio.Menu()
            for title, order in (("Sort up", name), ("Sort down", f"{name} DESC")):
                item = Gio.MenuItem.new(title)
                item.set_action_and_target_value("win.sort", GLib.Variant("s", order))
                menu.append_item(item)
            column.set_header_menu(menu)
            self.view.append_column(column)
        self.view.set_model(Gtk.SingleSelection(model=self.model))  # now, because GTK 4.18 fails with rows without columns

    def on_setup(self, factory, item, index):
        label = Gtk.EditableLabel(editable=self.names[index] != self.key)
        label.connect("notify::editing", self.on_editing, item, index)
        item.set_child(label)

    def on_bind(self, factory, item, index):
        row = item.get_item()
        # The object stays the same as long as its key does; its values may change at any time.
        item.handler = row.connect("notify::version", self.show_value, item, index)
        self.show_value(row, None, item, index)

    def on_unbind(self, factory, item):
        item.get_item().disconnect(item.handler)

    def show_value(self, row, _, item, index):
        label = item.get_child()
        if not label.get_editing():
            label.set_text(row.dup_string(index))

    # ---- sort, search, edit ----

    def on_sort(self, action, order):
        self.model.set_order([order.get_string()])
        self.to_top = True

    def on_search(self, entry):
        text = entry.get_text()
        if not text:
            self.model.set_query(f"SELECT * FROM {quote(self.table)}", None)
            return
        where = " OR ".join(f"instr(lower({quote(name)}), lower(?1)) > 0" for name in self.names)
        self.model.set_query(f"SELECT * FROM {quote(self.table)} WHERE {where}", GLib.Variant("(s)", (text,)))

    def on_editing(self, label, _, item, index):
        row = item.get_item()
        if label.get_editing() or row is None or label.get_text() == row.dup_string(index):
            return
        # The value that the user saw is compared, so that an edit never overwrites what another program has just written.
        sql = (
            f"UPDATE {quote(self.table)} SET {quote(self.names[index])} = ?1"
            f" WHERE {quote(self.key)} IS ?2 AND {quote(self.names[index])} IS ?3"
        )
        key = row.dup_variant(self.names.index(self.key))
        parameters = GLib.Variant("av", [GLib.Variant("s", label.get_text()), key, row.dup_variant(index)])
        self.connection.execute_async(
            self.database, sql, parameters, None, lambda source, result: self.on_executed(result, row, item, index)
        )

    def on_executed(self, result, row, item, index):
        try:
            _, changes, _ = self.connection.execute_finish(result)
            if changes == 0:
                self.status.set_text("Somebody else has changed this value.")
        except GLib.Error as error:
            self.status.set_text(error.message)
        if item.get_item() is row:
            self.show_value(row, None, item, index)

    # ---- state ----

    def on_settled(self, model, _):
        if model.is_settled() and model.dup_column_names() and not self.view.get_columns().get_n_items():
            self.make_columns()
        if model.is_settled():
            self.status.set_text(f"{model.get_n_items()} rows")
            if self.to_top:  # The view would follow the row that it showed before, also if it is at the top now.
                self.view.get_last_child().activate_action("list.scroll-to-item", GLib.Variant("u", 0))
                self.to_top = False

    def on_error(self, model, _):
        error = model.get_error()
        if error is not None:
            self.status.set_text(error.message)


class Application(Gtk.Application):
    def __init__(self):
        super().__init__(application_id="org.sqlipc1.Browser", flags=Gio.ApplicationFlags.HANDLES_COMMAND_LINE)
        self.add_main_option("address", 0, GLib.OptionFlags.NONE, GLib.OptionArg.STRING, "Bus to use", "ADDRESS")
        self.set_flags(self.get_flags() | Gio.ApplicationFlags.NON_UNIQUE)

    def do_command_line(self, command_line):
        arguments = command_line.get_arguments()[1:]
        address = command_line.get_options_dict().end().unpack().get("address")
        if len(arguments) != 3:
            print("usage: browser.py [--address=BUS] DATABASE TABLE KEY", file=sys.stderr)
            return 2
        try:
            if address:
                connection = Sqlipc.Connection.new_for_address(address)
            else:
                connection = Sqlipc.Connection.new(Sqlipc.Bus.USER)
        except GLib.Error as error:
            print(error.message, file=sys.stderr)
            return 1
        Browser(self, connection, *arguments).present()
        return 0


if __name__ == "__main__":
    sys.exit(Application().run(sys.argv))
