"""Whether engines answer alike: no time is printed of an answer that was not checked."""

import csv
import datetime
import decimal
import hashlib
import io
import re
from dataclasses import dataclass, field

MOMENT = re.compile(r"^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?)Z$")
NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][-+]?\d+)?")


@dataclass(frozen=True)
class Query:
    """A question, in the dialects that differ.

    `check` asks for more than is timed where rows beyond a LIMIT are a matter of taste. `keys` are the places of the
    sort keys in its answer: where given, rows that tie with the first or the last are compared by their keys
    alone. `expected` is the answer where it is known otherwise than by asking Plinth."""

    name: str
    title: str
    sql: str
    dialects: dict = field(default_factory=dict)
    check: str = ""
    keys: tuple = ()
    note: str = ""
    expected: list | None = None

    def text(self, dialect, checked=False):
        if checked and self.check:
            return self.dialects.get(f"{dialect} check", self.check)
        return self.dialects.get(dialect, self.sql)


def cell(value):
    """A value as all engines' answers are compared: text."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime.datetime):
        return value.replace(tzinfo=None).isoformat()
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, decimal.Decimal):
        return f"{value:f}"
    return str(value)


def rows_of_csv(text):
    """The rows of CSV beneath its header. A line of nothing is a row whose one value is NULL. Moments are in UTC, as all engines' are."""
    rows = [row or [""] for row in csv.reader(io.StringIO(text))][1:]
    return [[MOMENT.sub(r"\1", value) for value in row] for row in rows]


def rows_of(table):
    """The rows of an Arrow table as text."""
    columns = [[cell(v) for v in column.to_pylist()] for column in table.columns]
    return [list(row) for row in zip(*columns)]


def is_fraction(text):
    found = NUMBER.fullmatch(text)
    return found is not None and (found[1] is not None or found[2] is not None)


def in_order(rows):
    """Rows sorted, by what is exact first, so that rounding can't change which rows meet."""

    def key(row):
        fractions = [is_fraction(c) for c in row]
        exact = [c for c, fraction in zip(row, fractions) if not fraction]
        return exact, [float(c) for c, fraction in zip(row, fractions) if fraction]

    return sorted(rows, key=key)


def digest(rows):
    """A digest of rows in any order, byte for byte."""
    return hashlib.sha256("\x1e".join("\x1f".join(row) for row in in_order(rows)).encode()).hexdigest()


def same(a, b):
    """Whether two cells are alike: the same text, but for numbers one of which has a fraction, which may differ by
    1e-9 or by one unit of the last of at least four decimal places (engines give averages and quotients of decimals
    different places)."""
    if a == b:
        return True
    if not (NUMBER.fullmatch(a) and NUMBER.fullmatch(b) and (is_fraction(a) or is_fraction(b))):
        return False
    # As decimals: a unit of the last place is no binary fraction.
    x, y = decimal.Decimal(a), decimal.Decimal(b)
    if abs(x - y) <= decimal.Decimal("1e-9") * max(abs(x), abs(y)):
        return True
    places = [len(n.partition(".")[2]) for n in (a, b) if "e" not in n.lower() and "." in n]
    return len(places) == 2 and min(places) >= 4 and abs(x - y) <= decimal.Decimal(10) ** -min(places)


def agree(left, right):
    """Whether two lists of rows are alike in any order."""
    pairs = zip(in_order(left), in_order(right))
    return len(left) == len(right) and all(len(a) == len(b) and all(map(same, a, b)) for a, b in pairs)


def agree_but_ties(left, right, keys, offset=False):
    """Whether two answers in order are alike, but for rows that tie with the last (or, under OFFSET, the first):
    other rows of the same key may stand there, as LIMIT cuts through a tie."""
    if len(left) != len(right):
        return False
    for a, b in zip(left, right):
        if len(a) != len(b) or not all(same(a[k], b[k]) for k in keys):
            return False
    if not left:
        return True
    cut = [[row[k] for k in keys] for row in ([left[0]] if offset else []) + [left[-1]]]
    inner = [
        [r for r in rows if not any(all(same(r[k], c[i]) for i, k in enumerate(keys)) for c in cut)]
        for rows in (left, right)
    ]
    return agree(*inner)


def alike(query, left, right):
    if query.keys:
        return agree_but_ties(left, right, query.keys, " offset " in query.sql)
    return agree(left, right)
