# SPDX-License-Identifier: LGPL-2.1-or-later
"""A bus that passes no descriptors: the service's bus through systemd-stdio-bridge, as at the other end of ssh."""
import shutil

from tap import Skip

BRIDGE = shutil.which("systemd-stdio-bridge")


def escaped(value):
    """Escapes a value of a D-Bus address."""
    return "".join(c if c.isalnum() or c in "-_/.*" else f"%{ord(c):02x}" for c in value)


def need_bridge():
    if not BRIDGE:
        raise Skip("systemd-stdio-bridge is not there")


def relay_address(service):
    """Returns the address of a relay, which the connecting program starts as a child."""
    need_bridge()
    return f"unixexec:path={BRIDGE},argv1=--bus-path={escaped(service.address)}"
