/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Opening of buses (bus-open.h), here or over ssh. Library.
 *
 * A bus that is reached through a program (unixexec:), such as ssh, passes no descriptors, even if both ends negotiate
 * them: each end talks to a socket on its own machine, and the path between them carries only bytes. sd-bus may believe that
 * descriptors pass, but a call that returns a descriptor never gets its reply there. So the library decides by the address
 * instead of asking sd-bus.
 */
#include <stdio.h>
#include <string.h>

#include "client-lib/bus-open.h"
#include "client-lib/sqlipc.h"
#include "dbus-interfaces/bus-owner.h"

/* Prefixes of address entries whose transport carries only bytes. */
static const char *const relays[] = { "unixexec:", "tcp:" };

/* Starts ssh with SIGINT ignored. Otherwise a Ctrl-C at the terminal that is meant for a query would end the connection. */
#define SSH_PREFIX "unixexec:path=/bin/sh,argv1=-c,argv2=trap%20%27%27%20INT%3b%20exec%20%22%24%40%22,argv3=sh,argv4=ssh"

int bus_open_system(sd_bus **ret, const char *address) {
        (void) address;
        return sd_bus_open_system_with_description(ret, "sqlipc");
}

int bus_open_user(sd_bus **ret, const char *address) {
        _cleanup_(sd_bus_close_unrefp) sd_bus *bus = NULL;
        int r;

        (void) address;
        r = sd_bus_open_user_with_description(&bus, "sqlipc");
        if (r < 0)
                return r;
        if (bus_owner_is_another_user(sd_bus_get_fd(bus)))
                return -EPERM;
        *ret = steal(bus);
        return 0;
}

bool bus_open_is_relayed(const char *address) {
        for (; address; address = strchr(address, ';')) {
                address += *address == ';';
                for (size_t i = 0; i < sizeof relays / sizeof relays[0]; i++)
                        if (strncmp(address, relays[i], strlen(relays[i])) == 0)
                                return true;
        }
        return false;
}

int bus_open_address(sd_bus **ret, const char *address) {
        _cleanup_(sd_bus_unrefp) sd_bus *bus = NULL;
        bool relayed = bus_open_is_relayed(address);
        int r;

        r = sd_bus_new(&bus);
        if (r < 0)
                return r;
        r = sd_bus_set_address(bus, address);
        if (r < 0)
                return r;
        r = sd_bus_set_bus_client(bus, true);
        if (r < 0)
                return r;
        r = sd_bus_negotiate_fds(bus, !relayed);
        if (r < 0)
                return r;
        r = sd_bus_start(bus);
        /* If the relay (ssh) has ended, the first call reports that, whether it ended before our first write or after it. */
        if (r < 0 && !(relayed && (r == -EPIPE || r == -ECONNRESET)))
                return r;
        *ret = steal(bus);
        return 0;
}

/* ---- Over ssh ----------------------------------------------------------------------------------------------------- */

/* Writes a value of an address, escaped as the D-Bus specification says. */
static void put_escaped(FILE *f, const char *value, size_t size) {
        static const char plain[] = "-_/.\\*0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

        for (size_t i = 0; i < size; i++)
                if (value[i] != 0 && strchr(plain, value[i]))
                        (void) putc(value[i], f);
                else
                        (void) fprintf(f, "%%%02x", (uint8_t) value[i]);
}

/* The parts of [USER@]HOST[:PORT], where HOST is in brackets if it contains colons. */
typedef struct RemoteHost {
        const char *user, *name, *port; /* user with its '@'; NULL: none */
        size_t user_size, name_size, port_size;
} RemoteHost;

static int parse_host(const char *host, RemoteHost *ret) {
        const char *at = strrchr(host, '@'), *end;

        *ret = (RemoteHost) { .name = at ? at + 1 : host };
        if (at) {
                ret->user = host;
                ret->user_size = (size_t) (at + 1 - host);
        }
        if (*ret->name == '[') {
                ret->name++;
                end = strchr(ret->name, ']');
                if (!end)
                        return -EINVAL;
                ret->name_size = (size_t) (end++ - ret->name);
        } else {
                ret->name_size = strcspn(ret->name, ":");
                end = ret->name + ret->name_size;
        }
        if (*end == ':') {
                ret->port = end + 1;
                ret->port_size = strspn(ret->port, "0123456789");
                end = ret->port + ret->port_size;
        }
        /* ssh never takes a word that begins with a dash as a host */
        if (*end || ret->name_size == 0 || *ret->name == '-' || *host == '-' || ret->user_size == 1 ||
            (ret->port && ret->port_size == 0))
                return -EINVAL;
        return 0;
}

/* Connects to the user's bus of the other machine. `systemd-stdio-bridge --user` does not, up to systemd 252 at least: it
 * ignores the option and connects to the system bus. The command is for sh, because the user's login shell may be another
 * one, and has no quotes that one of them reads differently. The address is never empty, so that the bridge never connects
 * to another bus by default. */
static const char user_bridge[] = "exec sh -c 'exec systemd-stdio-bridge "
        "--bus-path=\"${DBUS_SESSION_BUS_ADDRESS:-unix:path=${XDG_RUNTIME_DIR:-/run/user/$(id -u)}/bus}\"'";

static void put_remote(FILE *f, const RemoteHost *host, bool user) {
        const char *bridge = user ? user_bridge : "systemd-stdio-bridge";
        unsigned n = 6;

        fputs(SSH_PREFIX ",argv5=-xT", f);
        if (host->port) {
                fprintf(f, ",argv6=-p,argv7=%.*s", (int) host->port_size, host->port);
                n = 8;
        }
        fprintf(f, ",argv%u=--,argv%u=", n, n + 1);
        put_escaped(f, host->user, host->user_size);
        put_escaped(f, host->name, host->name_size);
        fprintf(f, ",argv%u=", n + 2);
        put_escaped(f, bridge, strlen(bridge));
}

/* Gets the address of the bus on `host`; the caller frees it. */
static int remote_address(const char *host, bool user, char **ret) {
        _cleanup_free_ char *address = NULL;
        RemoteHost parts;
        size_t size;
        FILE *f;
        int r;

        r = parse_host(host, &parts);
        if (r < 0)
                return r;
        f = open_memstream(&address, &size);
        if (!f)
                return -ENOMEM;
        put_remote(f, &parts, user);
        if (fclose(f) != 0)
                return -ENOMEM;
        *ret = steal(address);
        return 0;
}

static int open_remote(const char *host, bool user, sqlipc_connection **ret) {
        _cleanup_free_ char *address = NULL;
        int r;

        if (!host || !ret)
                return -EINVAL;
        r = remote_address(host, user, &address);
        return r < 0 ? r : sqlipc_open_address(address, ret);
}

_public_ int sqlipc_open_system_remote(const char *host, sqlipc_connection **ret_connection) {
        return open_remote(host, false, ret_connection);
}

_public_ int sqlipc_open_user_remote(const char *host, sqlipc_connection **ret_connection) {
        return open_remote(host, true, ret_connection);
}
