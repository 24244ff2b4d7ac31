"""What statements answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from plinth import _native, _show
from plinth._native import InterfaceError

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

#: Rows that a result shows.
SHOWN = 20


class Result:
    """What a statement answers: rows that are made as they are asked for.

    ``fetchone``, ``fetchmany`` and ``fetchall`` go through the rows once, as a cursor does, and so does a ``for`` loop. Everything
    else takes all rows, from the first, and may be done as often as one likes: the query then runs once more.

    Any library that knows Arrow's PyCapsule interface takes a result as it is: ``polars.DataFrame(result)``,
    ``pyarrow.table(result)``, ``duckdb.sql("FROM result")``.
    """

    def __init__(self, rows: _native.Rows, watch: Callable[[], AbstractContextManager[None]] = nullcontext) -> None:
        self._rows = rows
        #: Shows how far the query is while it is waited for.
        self._watch = watch

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return [name for name, _, _ in self._rows.columns]

    @property
    def types(self) -> list[str]:
        """The types of the columns, as Arrow writes them."""
        return [type for _, type, _ in self._rows.columns]

    @property
    def description(self) -> list[tuple[Any, ...]] | None:
        """Seven values a column, as DB-API has them: name, type, None four times, whether there may be NULL."""
        return [(name, type, None, None, None, None, null) for name, type, null in self._rows.columns] or None

    @property
    def rowcount(self) -> int:
        """Rows that the statement has changed; -1 for a query."""
        changed = self._rows.changed
        return -1 if changed is None else changed

    def fetchone(self) -> tuple[Any, ...] | None:
        """The next row, or None after the last."""
        rows = self._rows.fetch(1)
        return rows[0] if rows else None

    def fetchmany(self, size: int = 1) -> list[tuple[Any, ...]]:
        """The next rows, at most so many."""
        if size < 0:
            raise InterfaceError(f"fetchmany({size}): a number of rows is expected")
        return self._rows.fetch(size)

    def fetchall(self) -> list[tuple[Any, ...]]:
        """All rows that are left, as tuples of Python's values."""
        with self._watch():
            return self._rows.fetch()

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        while rows := self._rows.fetch(1024):
            yield from rows

    def close(self) -> None:
        """Ends the fetching of rows."""
        self._rows.close()

    def __arrow_c_schema__(self) -> object:
        return self._rows.schema()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._rows.stream()

    def _given_to(self, take: Any) -> Any:
        """What a library makes of the stream; the error of the query, if there is one, rather than the library's."""
        try:
            with self._watch():
                return take(self)
        except Exception as error:
            try:
                self._rows.raise_failure()
            except _native.Error as own:
                raise own from error
            raise

    def arrow(self) -> pyarrow.Table:
        """All rows as a table of pyarrow."""
        import pyarrow

        return self._given_to(pyarrow.table)

    def reader(self) -> pyarrow.RecordBatchReader:
        """All rows as a reader of pyarrow, a batch at a time."""
        import pyarrow

        return pyarrow.RecordBatchReader.from_stream(self)

    def df(self) -> pandas.DataFrame:
        """All rows as a DataFrame of pandas."""
        return self.arrow().to_pandas()

    def pl(self) -> polars.DataFrame:
        """All rows as a DataFrame of Polars."""
        import polars

        return self._given_to(polars.DataFrame)

    def _first(self, rows: int) -> tuple[list[tuple[Any, ...]], bool]:
        # A cursor of its own, so that what is looked at is not taken away.
        looked = self._rows.again()
        found = looked.fetch(rows + 1)
        looked.close()
        return found[:rows], len(found) > rows

    def show(self, rows: int = SHOWN) -> None:
        """Prints the first rows."""
        print(self._shown(rows))

    def _shown(self, rows: int) -> str:
        found, more = self._first(rows)
        return _show.table(self._rows.columns, found, more)

    def __repr__(self) -> str:
        return self._shown(SHOWN)

    def _repr_html_(self) -> str:
        found, more = self._first(SHOWN)
        return _show.html_table(self._rows.columns, found, more)
