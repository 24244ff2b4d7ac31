"""Answers of both engines as plain values that compare: types are spelled alike, never made looser.

A row is a tuple of cells. A cell is None, a bool, a str, a tuple or dict of cells, a `Number` that is exact, or a float.
"""

import json
from datetime import datetime, timezone
from decimal import Decimal

import pyarrow as pa

RELATIVE = 1e-9


class Literal(str):
    """A number as JSON spelled it."""


def parse_json(line):
    return json.loads(line, parse_int=Literal, parse_float=Literal)


def is_text(type_):
    return pa.types.is_string(type_) or pa.types.is_large_string(type_) or pa.types.is_string_view(type_)


def is_binary(type_):
    return pa.types.is_binary(type_) or pa.types.is_large_binary(type_) or pa.types.is_binary_view(type_)


def moment(value):
    """A time stamp in UTC, to the microsecond."""
    if isinstance(value, str):
        value = datetime.fromisoformat(value.replace("Z", "+00:00"))
    return value.astimezone(timezone.utc).replace(tzinfo=None).isoformat() if value.tzinfo else value.isoformat()


def cell(value, type_):
    """A value of DuckDB (by Arrow) or of Plinth (by JSON or CSV) where DuckDB says its type is `type_`."""
    if value is None:
        return None
    kind = pa.types
    if kind.is_boolean(type_):
        return value if isinstance(value, bool) else {"true": True, "false": False}[value]
    if kind.is_integer(type_) or kind.is_decimal(type_):
        return Decimal(value)
    if kind.is_floating(type_):
        # A number with decimal places of the other engine is kept: `same` knows its last place.
        return value if isinstance(value, float) else Decimal(value) if is_plain(value) else float(value)
    if kind.is_timestamp(type_):
        return moment(value)
    if kind.is_date(type_):
        return value if isinstance(value, str) else value.isoformat()
    if is_text(type_):
        if type(value) is not str:
            raise TypeError(f"{value!r} where text is expected")
        return value
    if is_binary(type_):
        return value if isinstance(value, str) else value.hex()
    if kind.is_list(type_) or kind.is_large_list(type_):
        return tuple(cell(v, type_.value_type) for v in value)
    if kind.is_struct(type_):
        return tuple((f.name, cell(value[f.name], f.type)) for f in type_)
    if kind.is_map(type_):
        pairs = value.items() if isinstance(value, dict) else value
        return tuple((k, cell(v, type_.item_type)) for k, v in pairs)
    raise TypeError(f"no comparison of {type_} is written")


def is_plain(text):
    """Whether a number is written without exponent, infinity or NaN."""
    return text.lstrip("-").replace(".", "", 1).isdigit()


def same(left, right):
    """Whether DuckDB's cell is Plinth's. Only where DuckDB answers in floating point is there a tolerance: a relative one, or
    one unit of the last place where Plinth answers with a decimal of fewer places (averages and quotients of decimals)."""
    if isinstance(left, tuple) and isinstance(right, tuple):
        return len(left) == len(right) and all(same(a, b) for a, b in zip(left, right))
    if isinstance(left, float):
        if right is None:
            return False
        as_float = float(right)
        if left != left or as_float != as_float:
            return left != left and as_float != as_float
        if left == as_float:
            return True
        if abs(left) == float("inf") or abs(as_float) == float("inf"):
            return False
        gap = abs(left - as_float)
        if isinstance(right, Decimal) and gap <= 10.0 ** right.as_tuple().exponent and right.as_tuple().exponent <= -4:
            return True
        return gap <= RELATIVE * max(abs(left), abs(as_float))
    return left == right


def sort_key(row):
    """Orders rows by what is exact first, so that rounding can't change which rows meet."""

    def key(value):
        if isinstance(value, tuple):
            return (4, tuple(key(v) for v in value))
        if value is None:
            return (0,)
        if isinstance(value, bool):
            return (1, value)
        if isinstance(value, str):
            return (3, value)
        number = float(value)
        return (2, 1, 0.0) if number != number else (2, 0, value if isinstance(value, Decimal) else Decimal(number))

    return key(row)


def sorted_rows(rows, types):
    loose = [pa.types.is_floating(t) for t in types]

    def key(row):
        exact = tuple(v for v, is_loose in zip(row, loose) if not is_loose)
        return sort_key(exact), sort_key(tuple(v for v, is_loose in zip(row, loose) if is_loose))

    return sorted(rows, key=key)


def difference(left, right, types, ordered):
    """None, or a line that tells the first difference."""
    if len(left) != len(right):
        return f"{len(left)} rows in DuckDB, {len(right)} in Plinth; first: {short(left[:2])} and {short(right[:2])}"
    if not ordered:
        left, right = sorted_rows(left, types), sorted_rows(right, types)
    differing = [i for i, (a, b) in enumerate(zip(left, right)) if not same(a, b)]
    if not differing:
        return None
    a, b = left[differing[0]], right[differing[0]]
    cells = [i for i, (x, y) in enumerate(zip(a, b)) if not same(x, y)]
    where = f"{len(differing)} of {len(left)} rows differ; first in columns {cells}"
    if len(a) > 6:
        a, b = [a[i] for i in cells], [b[i] for i in cells]
    return f"{where}: DuckDB {short(a)}, Plinth {short(b)}"


def short(value):
    text = repr(value).replace("Decimal('", "").replace("')", "")
    return text if len(text) < 400 else text[:400] + "..."
