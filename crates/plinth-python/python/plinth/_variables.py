"""Variables of a caller as tables: what gives its rows as a stream of Arrow's, found by its name."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any


class _Columns:
    """An object of which a scan can ask for some columns, so that the others are not converted."""

    def __init__(self, object: Any, select: Callable[[Any, Sequence[str]], Any], schema: Callable[[Any], Any] | None):
        self._object = object
        self._select = select
        self._schema = schema

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._object.__arrow_c_stream__(requested_schema)

    def _plinth_select(self, columns: Sequence[str]) -> Any:
        return self._select(self._object, columns)


def as_table(value: Any) -> Any:
    """The value as it is best read, or None if it is no data."""
    module = type(value).__module__.partition(".")[0]
    name = type(value).__name__
    if module == "polars":
        if name == "LazyFrame":
            # Only its plan is known: what it is made of is read here.
            value = value.collect()
        if type(value).__name__ == "DataFrame":
            return _Columns(value, lambda frame, columns: frame.select(columns), None)
    if module == "pyarrow":
        if name == "Table":
            return _Columns(value, lambda table, columns: table.select(columns), None)
        if hasattr(value, "scanner"):
            return _Dataset(value)
    return value if hasattr(value, "__arrow_c_stream__") else None


class _Dataset:
    """A dataset of pyarrow, read anew by each scan, and only the columns that it asks for."""

    def __init__(self, dataset: Any, columns: Sequence[str] | None = None):
        self._dataset = dataset
        self._columns = columns

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        columns = None if self._columns is None else list(self._columns)
        reader = self._dataset.scanner(columns=columns).to_reader()
        return reader.__arrow_c_stream__(requested_schema)

    def _plinth_select(self, columns: Sequence[str]) -> _Dataset:
        return _Dataset(self._dataset, columns)


_MISSING = object()


def finder(frame: FrameType | None) -> Callable[[str], Any]:
    """Finds data by the name that a variable has in a frame, or in one that called it."""

    def find(name: str) -> Any:
        at = frame
        while at is not None:
            for variables in (at.f_locals, at.f_globals):
                value = variables.get(name, _MISSING)
                if value is not _MISSING:
                    table = as_table(value)
                    if table is not None:
                        return table
            at = at.f_back
        return None

    return find


def caller(depth: int) -> FrameType | None:
    """The frame that called into this package, `depth` calls above the caller of this function."""
    at: FrameType | None = sys._getframe(depth + 1)
    while at is not None and at.f_globals.get("__name__", "").partition(".")[0] == "plinth":
        at = at.f_back
    return at
