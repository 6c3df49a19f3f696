# SPDX-License-Identifier: LGPL-2.1-or-later
"""Adapters, from Python objects to values, and converters, from values to Python objects."""

import datetime

from . import _native

adapters = {}  # as in sqlite3: by type and protocol, which is PrepareProtocol
converters = {}


_BASE_TYPES = frozenset((int, float, str, bytearray, type(None)))


class PrepareProtocol:
    """The second argument of an object's __conform__() when its value is wanted."""


def register_adapter(type, adapter, /):  # noqa: A002 - the name is sqlite3's
    """Use `adapter`, a callable with one argument, to turn objects of the Python type `type` into values."""
    adapters[type, PrepareProtocol] = adapter
    if type in _BASE_TYPES:
        _native.adapt_base_types()


def register_converter(typename, converter, /):
    """Use `converter`, a callable with one argument of bytes, for columns of this type; see `detect_types`."""
    converters[typename.upper()] = converter


_NOTHING = object()


def adapt(value, protocol=PrepareProtocol, alternative=_NOTHING, /):
    """Returns the value that the adapter of an object, the __adapt__() of the protocol or the object's __conform__() makes
    of it; else `alternative`, or raises."""
    adapter = adapters.get((type(value), protocol))
    if adapter is not None:
        return adapter(value)
    for method, argument in ((getattr(protocol, "__adapt__", None), value), (getattr(value, "__conform__", None), protocol)):
        try:
            result = None if method is None else method(argument)
        except TypeError:  # as in sqlite3: the method is for other objects
            continue
        if result is not None:
            return result
    if alternative is not _NOTHING:
        return alternative
    from . import _errors

    raise _errors.ProgrammingError("can't adapt")


def adapt_parameter(value):
    """Returns the value that is bound for an object."""
    return adapt(value, PrepareProtocol, value)


def _convert_date(value):
    return datetime.date(*map(int, value.split(b"-")))


def _convert_timestamp(value):
    """Without a time zone, because the default adapter writes none that this converter could read."""
    day, _, time = value.partition(b" ")
    seconds, _, fraction = time.partition(b".")
    hour, minute, second = map(int, seconds.split(b":"))
    microsecond = int(fraction.ljust(6, b"0")[:6]) if fraction else 0
    year, month, day = map(int, day.split(b"-"))
    return datetime.datetime(year, month, day, hour, minute, second, microsecond)


register_adapter(datetime.date, datetime.date.isoformat)
register_adapter(datetime.datetime, lambda value: value.isoformat(" "))
register_converter("date", _convert_date)
register_converter("timestamp", _convert_timestamp)
