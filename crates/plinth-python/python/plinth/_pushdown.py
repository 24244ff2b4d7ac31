"""Filters of other libraries as SQL, so that a scan passes over what they leave out.

What is translated holds for every row that the filter holds for. If it may hold for others, too, the library's own filter goes over
the rows once more: where a part that has no counterpart was left out, and where values are not compared alike everywhere, as NaN.
"""

from __future__ import annotations

import datetime
import json
import math
import struct
from collections.abc import Mapping, Sequence
from typing import Any

#: A condition in SQL with places for its values, and these.
Condition = tuple[str, list[Any]]

_EPOCH = datetime.datetime(1970, 1, 1)
_COMPARISONS = {"equal": "=", "not_equal": "<>", "lt": "<", "lte": "<=", "gt": ">", "gte": ">="}


class _Unknown(Exception):
    """A part that is not translated."""


class Alike:
    """Whether a condition holds for the rows of the filter and for no others."""

    def __init__(self, kinds: Mapping[str, type]) -> None:
        #: The type of a column's values, where all libraries compare these alike.
        self.kinds = kinds
        self.exact = True

    def compare(self, column: str, *values: Any) -> None:
        kind = self.kinds.get(column)
        if kind is None or any(type(value) is not kind for value in values):
            self.exact = False


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _joined(parts: Sequence[Condition], word: str) -> Condition:
    return "(" + f" {word} ".join(sql for sql, _ in parts) + ")", [value for _, values in parts for value in values]


def _fields(message: bytes) -> dict[int, list[Any]]:
    """The fields of a message of Protocol Buffers, by their numbers."""
    found: dict[int, list[Any]] = {}
    at = 0

    def number() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(message):
        key = number()
        kind = key & 7
        if kind == 0:
            value: Any = number()
        else:
            length = {1: 8, 5: 4}.get(kind) or number()
            value = message[at : at + length]
            at += length
        found.setdefault(key >> 3, []).append(value)
    return found


class _Substrait:
    """An expression of Substrait, as pyarrow writes its own."""

    def __init__(self, plan: bytes, names: Sequence[str], alike: Alike) -> None:
        top = _fields(plan)
        self.names = names
        self.alike = alike
        #: Columns that the expression mentions.
        self.columns: set[str] = set()
        self.functions: dict[int, str] = {}
        for extension in top.get(2, []):
            for function in _fields(extension).get(3, []):
                known = _fields(function)
                name = bytes(known[3][0]).decode().partition(":")[0]
                self.functions[known.get(2, [0])[0]] = name
        self.expression = _fields(top[3][0])[1][0]
        self._mention(self.expression)

    def _mention(self, expression: bytes) -> None:
        of = _fields(expression)
        if 2 in of:
            self.columns.add(self._root(of[2][0])[0])
        for function in of.get(3, []):
            for argument in _fields(function).get(4, []):
                for value in _fields(argument).get(3, []):
                    self._mention(value)
        for one in of.get(8, []):
            for value in _fields(one).get(1, []) + _fields(one).get(2, []):
                self._mention(value)
        for cast in of.get(11, []):
            for value in _fields(cast).get(2, []):
                self._mention(value)
        for choice in of.get(6, []):
            clauses, others = self._choice(choice)
            for clause in clauses:
                self._mention(clause[0])
                self._mention(clause[1])
            for value in others:
                self._mention(value)
        if not of.keys() <= {1, 2, 3, 6, 8, 11}:
            raise _Unknown

    def _choice(self, choice: bytes) -> tuple[list[tuple[bytes, bytes]], list[bytes]]:
        """The conditions and values of `if_else`, and the value of all other rows."""
        parts = _fields(choice)
        clauses = [_fields(clause) for clause in parts.get(1, [])]
        return [(clause[1][0], clause[2][0]) for clause in clauses], parts.get(2, [])

    def _root(self, reference: bytes) -> tuple[str, bool]:
        """The column of a reference, and whether a part of it is meant."""
        of = _fields(reference)
        if 1 not in of:
            raise _Unknown
        segment = _fields(of[1][0])
        if 2 not in segment:
            raise _Unknown
        field = _fields(segment[2][0])
        return self.names[field.get(1, [0])[0]], 2 in field

    def _column(self, expression: bytes) -> str:
        of = _fields(expression)
        if 2 not in of:
            raise _Unknown
        name, part = self._root(of[2][0])
        if part:
            raise _Unknown
        return name

    def _value(self, expression: bytes) -> Any:
        of = _fields(expression)
        if 1 not in of:
            raise _Unknown
        literal = _fields(of[1][0])
        if len(literal) != 1:
            raise _Unknown
        ((kind, (value,)),) = literal.items()
        if kind == 1:
            return bool(value)
        if kind in (2, 3, 5, 7):
            return value - (1 << 64) if value >= 1 << 63 else value
        if kind == 10:
            value = struct.unpack("<f", value)[0]
        elif kind == 11:
            value = struct.unpack("<d", value)[0]
        elif kind == 12:
            return bytes(value).decode()
        elif kind == 14:
            micros = value - (1 << 64) if value >= 1 << 63 else value
            return _EPOCH + datetime.timedelta(microseconds=micros)
        elif kind == 16:
            days = value - (1 << 64) if value >= 1 << 63 else value
            return _EPOCH.date() + datetime.timedelta(days=days)
        else:
            raise _Unknown
        if math.isnan(value):
            # Equal to itself in SQL, and not elsewhere.
            raise _Unknown
        return value

    def _compared(self, expression: bytes, *values: Any) -> str:
        name = self._column(expression)
        self.alike.compare(name, *values)
        return quoted(name)

    def condition(self, expression: bytes) -> Condition:
        of = _fields(expression)
        for one in of.get(8, []):
            parts = _fields(one)
            values = [self._value(value) for value in parts[2]]
            return f"{self._compared(parts[1][0], *values)} IN ({', '.join('?' * len(values))})", values
        for choice in of.get(6, []):
            clauses, others = self._choice(choice)
            # if_else(is_valid(a), a IN (...), NULL), as DuckDB has it: rows that are NULL do not pass.
            if len(clauses) != 1 or not all(_fields(_fields(value)[1][0]).keys() == {29} for value in others):
                raise _Unknown
            return self._and(clauses[0])
        if 3 not in of:
            raise _Unknown
        function = _fields(of[3][0])
        name = self.functions[function.get(1, [0])[0]]
        arguments = [_fields(argument)[3][0] for argument in function.get(4, [])]
        if name == "and":
            return self._and(arguments)
        if name == "or":
            return _joined([self.condition(argument) for argument in arguments], "OR")
        if name in _COMPARISONS:
            left, right = arguments
            try:
                value = self._value(right)
                return f"{self._compared(left, value)} {_COMPARISONS[name]} ?", [value]
            except _Unknown:
                value = self._value(left)
                return f"? {_COMPARISONS[name]} {self._compared(right, value)}", [value]
        if name in ("is_null", "is_not_null"):
            (column,) = arguments
            return f"{self._compared(column)} IS {'' if name == 'is_null' else 'NOT '}NULL", []
        raise _Unknown

    def _and(self, arguments: Sequence[bytes]) -> Condition:
        parts = []
        for argument in arguments:
            try:
                parts.append(self.condition(argument))
            except _Unknown:
                self.alike.exact = False
        if not parts:
            raise _Unknown
        return _joined(parts, "AND")


def of_pyarrow(expression: Any, schema: Any, alike: Alike) -> tuple[Condition | None, set[str] | None]:
    """A filter of pyarrow: a condition if there is one, and the columns that it mentions if they are known."""
    try:
        filter = _Substrait(bytes(expression.to_substrait(schema)), schema.names, alike)
    except Exception:
        # Whatever can't be read is no more than work for the library.
        return None, None
    try:
        return filter.condition(filter.expression), filter.columns
    except Exception:
        return None, filter.columns


_OF_POLARS = {"Eq": "=", "NotEq": "<>", "Lt": "<", "LtEq": "<=", "Gt": ">", "GtEq": ">="}


def _polars_value(node: Any) -> Any:
    literal = node["Literal"]
    while isinstance(literal, dict) and literal.keys() & {"Scalar", "Dyn"}:
        literal = literal.get("Scalar", literal.get("Dyn"))
    ((kind, value),) = literal.items()
    if kind in ("Int", "Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64"):
        return int(value)
    if kind in ("Float", "Float32", "Float64") and isinstance(value, (int, float)) and not math.isnan(value):
        return float(value)
    if kind in ("String", "StringOwned", "Str") and isinstance(value, str):
        return value
    if kind == "Boolean" and isinstance(value, bool):
        return value
    if kind == "Date":
        return _EPOCH.date() + datetime.timedelta(days=int(value))
    if kind == "Datetime":
        number, unit, zone = value
        if zone is None and unit in ("Milliseconds", "Microseconds"):
            return _EPOCH + datetime.timedelta(**{unit.lower(): int(number)})
    raise _Unknown


def _polars_list(node: Any) -> list[Any]:
    """The values of a list, which is written as a stream of Arrow's."""
    import polars as pl

    written = bytes(node["Literal"]["Scalar"]["List"])
    values = [value for value in pl.read_ipc_stream(written).to_series().to_list() if value is not None]
    if not values or any(isinstance(value, float) and math.isnan(value) for value in values):
        raise _Unknown
    if not all(isinstance(value, (bool, int, float, str, datetime.date)) for value in values):
        raise _Unknown
    return values


#: Comparisons with the lower and the upper end of a range.
_BETWEEN = {"Both": (">=", "<="), "Left": (">=", "<"), "Right": (">", "<="), "None": (">", "<")}


def _polars_function(node: Any, alike: Alike) -> Condition:
    function = node["function"]
    if not isinstance(function, dict) or "Boolean" not in function:
        raise _Unknown
    function = function["Boolean"]
    column = _polars_column(node["input"][0])
    if function in ("IsNull", "IsNotNull"):
        alike.compare(column)
        return f"{quoted(column)} IS {'' if function == 'IsNull' else 'NOT '}NULL", []
    if "IsBetween" in function:
        low, high = map(_polars_value, node["input"][1:])
        above, below = _BETWEEN[function["IsBetween"]["closed"]]
        alike.compare(column, low, high)
        return f"({quoted(column)} {above} ? AND {quoted(column)} {below} ?)", [low, high]
    if "IsIn" in function and function["IsIn"]["nulls_equal"] is False:
        values = _polars_list(node["input"][1])
        alike.compare(column, *values)
        return f"{quoted(column)} IN ({', '.join('?' * len(values))})", values
    raise _Unknown


def _polars_column(node: Any) -> str:
    name = node.get("Column")
    if not isinstance(name, str):
        raise _Unknown
    return name


def _polars(node: Any, alike: Alike) -> Condition:
    if isinstance(node, dict) and "Function" in node:
        return _polars_function(node["Function"], alike)
    if not isinstance(node, dict) or "BinaryExpr" not in node:
        raise _Unknown
    binary = node["BinaryExpr"]
    left, op, right = binary["left"], binary["op"], binary["right"]
    if op in ("And", "LogicalAnd"):
        parts = []
        for side in (left, right):
            try:
                parts.append(_polars(side, alike))
            except _Unknown:
                alike.exact = False
        if not parts:
            raise _Unknown
        return _joined(parts, "AND")
    if op in ("Or", "LogicalOr"):
        return _joined([_polars(left, alike), _polars(right, alike)], "OR")
    if op not in _OF_POLARS:
        raise _Unknown
    first = "Column" in left
    column, value = _polars_column(left if first else right), _polars_value(right if first else left)
    alike.compare(column, value)
    return f"{quoted(column)} {_OF_POLARS[op]} ?" if first else f"? {_OF_POLARS[op]} {quoted(column)}", [value]


def of_polars(predicate: Any, alike: Alike) -> Condition | None:
    """A predicate of Polars, as far as its written form, which changes between releases, is understood."""
    try:
        import warnings

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _polars(json.loads(predicate.meta.serialize(format="json")), alike)
    except Exception:
        return None
