#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# tools/screenshots.sh
#
# Takes the pictures in docs/screenshots: ipcq-cli in a real xterm on an X server without a screen (Xvfb), keys typed by
# xdotool, and the example of libsqlipc-glib; pictures by import of ImageMagick. Installs missing packages (Debian), builds
# into build-demo, and queries the sample database of tests/data, and a small one that changes, on a private bus. Leaves only
# the pictures and the build folder.
set -eu
cd "$(dirname "$0")/.."

. tools/private-bus.sh

build=$PWD/build-demo pictures=$PWD/docs/screenshots
patience=30 # seconds until what must be shown is shown

tools/install-dependencies.sh screenshots
if [ ! -e "$build/build.ninja" ]; then
    meson setup "$build" --buildtype=release -Dtests=false -Ddocs=false >/dev/null
fi
ninja -C "$build" --quiet

make_private_folder sqlipc-screenshots
pids=()
clean_up() {
    [ ${#pids[@]} = 0 ] || kill "${pids[@]}" 2>/dev/null || true
    leave_nothing
}
trap clean_up EXIT

cp tests/data/chinook.sqlite "$folder/chinook.sqlite"
sqlite3 "$folder/shop.sqlite" "CREATE TABLE orders(id INTEGER PRIMARY KEY, customer TEXT, items INT, total REAL, state TEXT);
    INSERT INTO orders(customer, items, total, state) VALUES ('Leonie Köhler', 2, 1.98, 'packed'),
        ('François Tremblay', 6, 5.94, 'sent'), ('Bjørn Hansen', 4, 3.96, 'paid'),
        ('František Wichterlová', 14, 13.86, 'new'),
        ('Luís Gonçalves', 9, 8.91, 'packed'), ('Astrid Gruber', 1, 0.99, 'new')"
publish_database "$folder" chinook "$folder/chinook.sqlite" "Sample: a store of music"
publish_database "$folder" shop "$folder/shop.sqlite" "Orders of today"
start_private_bus "$folder" "$build"
mkdir -p "$folder/home" "$pictures"

Xvfb -displayfd 3 -screen 0 1400x1000x24 -nolisten tcp 3>"$folder/display" 2>/dev/null &
pids+=($!)
for _ in $(seq $((patience * 20))); do
    [ ! -s "$folder/display" ] || break
    sleep 0.05
done
DISPLAY=:$(cat "$folder/display")
export DISPLAY

# open_shell ROWS DATABASE: starts xterm with the shell, and keeps its output, so that the script can wait for it.
open_shell() {
    : >"$folder/written"
    env -u NO_COLOR HOME="$folder/home" PATH="$build/tools/cli:$PATH" LANG=C.UTF-8 TERM=xterm-256color PAGER= \
        xterm -fa 'DejaVu Sans Mono' -fs 11 -geometry "100x$1" -b 8 -en UTF-8 -title shell \
        -bg '#1d1f21' -fg '#d8dad6' -xrm '*VT100.cursorColor: #d8dad6' \
        -xrm '*VT100.color4: #81a2be' -xrm '*VT100.color12: #81a2be' \
        -e script --quiet --flush --command "ipcq-cli --user $2" "$folder/written" &
    xterm=$!
    pids+=("$xterm")
    wait_for 'Ctrl-D leaves'
    window=$(xdotool search --onlyvisible --name '^shell$' | head -n 1)
    xdotool mousemove --window "$window" 20 20 # without a window manager, keys go to where the pointer is
}

# Waits until PATTERN was written N times (default 1).
wait_for() {
    for _ in $(seq $((patience * 20))); do
        [ "$(grep -a -c -e "$1" "$folder/written")" -lt "${2:-1}" ] || return 0
        sleep 0.05
    done
    echo "tools/screenshots.sh: the shell does not show: $1" >&2
    exit 1
}

keys() { xdotool type --delay 15 -- "$1"; }
press() { xdotool key "$@"; }
enter() {
    keys "$1"
    press Return
}

# Takes the picture when two in a row are equal: then everything is drawn.
take() {
    local before='' now
    for _ in $(seq "$patience"); do
        import -window "$window" "$folder/now.png"
        now=$(convert "$folder/now.png" rgba:- | cksum)
        [ "$now" != "$before" ] || break
        before=$now
        sleep 0.2
    done
    convert "$folder/now.png" -strip -colors 48 -define png:compression-level=9 "PNG8:$pictures/$1.png"
    echo "docs/screenshots/$1.png: $(stat -c %s "$pictures/$1.png") bytes"
}

close_shell() {
    press ctrl+c ctrl+d
    wait "$xterm" 2>/dev/null || true
}

open_shell 10 chinook
keys 'SELECT al.Title, count(*) AS tracks, sum(t.Bytes) / 1e6 AS MB'
press Return
keys "  FROM Album al JOIN Track t USING (AlbumId) JOIN Genre g ON g.GenreId = t.GenreId"
press Return
keys " WHERE g.Name = 'Jazz' AND t.Milliseconds > 300000 -- longer than five minutes"
press Return
keys ' GROUP BY al.AlbumId ORDER BY t.'
press Tab Tab
wait_for UnitPrice
take completion
close_shell

open_shell 21 chinook
enter '.timer on'
enter "SELECT InvoiceId, date(InvoiceDate) AS day, BillingCity, BillingState, Total, x'c0de' AS tag FROM Invoice LIMIT 12;"
wait_for ' rows'
take table
close_shell

open_shell 22 chinook
enter ".chart bar SELECT g.Name, count(*) FROM Track JOIN Genre g USING (GenreId) GROUP BY 1 ORDER BY 2 DESC LIMIT 13;"
wait_for 'Rock'
take chart
close_shell

open_shell 11 shop
enter '.watch 1 SELECT * FROM orders;'
wait_for 'Astrid'
sqlite3 "$folder/shop.sqlite" "UPDATE orders SET state = 'sent' WHERE id IN (1, 5);
    UPDATE orders SET items = 15, total = 14.85 WHERE id = 4; INSERT INTO orders VALUES (7, 'Mark Philips', 3, 2.97, 'new')"
wait_for 'Philips'
take watch
press ctrl+c
close_shell

open_shell 9 chinook
enter 'SELECT Name, Composer, Lenght / 1000 AS seconds FROM Track WHERE GenreId = 1;'
wait_for 'Lenght' 2
enter '.tabels'
wait_for 'tables'
take error
close_shell

# The example of libsqlipc-glib: a window of GTK, which is drawn when the picture does not change any more.
export LD_LIBRARY_PATH="$build/client-lib/glib:$build/client-lib" GI_TYPELIB_PATH="$build/client-lib/glib"
env HOME="$folder/home" GDK_BACKEND=x11 GSK_RENDERER=cairo GTK_A11Y=none \
    docs/examples/glib/browser.py --address="$DBUS_SESSION_BUS_ADDRESS" chinook Invoice InvoiceId &
pids+=($!)
window=$(timeout "$patience" xdotool search --sync --onlyvisible --name '^Invoice in chinook$' | head -n 1)
sleep 1
take browser
