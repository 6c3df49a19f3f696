# SPDX-License-Identifier: LGPL-2.1-or-later
"""Sites of the test builds (faults/inject.h), armed from outside while the programs run.

    faults = Faults(folder, "sqlipcd", program)     folder: the one that SQLIPC_FAULTS= names to the programs
    faults.sites                                    all sites of the program, also those in code that is never reached
    faults.arm(site, error, skip); ...; faults.fired()
"""
import errno
import mmap
import os
import pathlib
import re
import struct
import subprocess
from collections import namedtuple

SHORT = -1  # in place of an error: less is read or written than was asked for
SITES_MAX = 4096  # as inject.c has it, and the layout
HEADER = struct.Struct("IiIII")

Site = namedtuple("Site", "index call file line function errors")


def describe(site, error=0):
    name = "" if error == 0 else " short" if error == SHORT else " " + errno.errorcode[error]
    return f"{site.file}:{site.line} {site.function}(): {site.call}{name}"


def sites_of(program):
    """The sites that the program reports."""
    listing = subprocess.run([program], env=os.environ | {"SQLIPC_FAULTS_LIST": "1"}, capture_output=True, check=True)
    sites = []
    for index, line in enumerate(listing.stdout.decode().splitlines()):
        call, file, number, function, errors = line.split("\t")
        file = re.sub(r".*/(daemon|client-lib|dbus-interfaces)/", r"\1/", file)
        sites.append(Site(index, call, file, int(number), function, tuple(map(int, errors.split(",")))))
    return sites


class Faults:
    def __init__(self, folder, name, program):
        """Before the first process of `program` starts."""
        path = pathlib.Path(folder, name)
        path.write_bytes(bytes(HEADER.size + 4 * SITES_MAX))
        path.chmod(0o666)
        with open(path, "r+b") as file:
            self.map = mmap.mmap(file.fileno(), 0)
        self.folder, self.sites = str(folder), sites_of(program)

    def arm(self, site, error, skip=0, times=1):
        """The site fails, once (or so many times), in whichever process reaches it for the `skip` + 1st time from now on."""
        HEADER.pack_into(self.map, 0, 0, error, skip, 0, times - 1)
        self.map[0:4] = struct.pack("I", site.index + 1)

    def site(self, function, call):
        return next(site for site in self.sites if (site.function, site.call) == (function, call))

    def disarm(self):
        self.map[0:4] = bytes(4)

    def stop(self):
        """Disarms a site that was armed for many failures."""
        HEADER.pack_into(self.map, 0, 0, 0, 0, self.fired(), 0)

    def fired(self):
        """How often it did."""
        return HEADER.unpack_from(self.map)[3]

    def reached(self):
        """How often each site was, in all."""
        return struct.unpack_from(f"{len(self.sites)}I", self.map, HEADER.size)
