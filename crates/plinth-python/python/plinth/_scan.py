"""Files and tables for libraries that say which columns and rows they want."""

from __future__ import annotations

import datetime
import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from plinth import _native
from plinth._pushdown import Alike, of_polars, quoted

if TYPE_CHECKING:
    import polars
    import pyarrow
    import pyarrow.dataset

Path = str | os.PathLike[str]


class _Source:
    """What a path or a table is, as SQL."""

    def __init__(self, connection: _native.Connection, what: str) -> None:
        self.connection = connection
        self.what = what

    def query(
        self, columns: Sequence[str] | None, where: tuple[str, list[Any]] | None, limit: int | None = None
    ) -> _native.Rows:
        # A query of no columns still has rows.
        names = "*" if columns is None else ", ".join(map(quoted, columns)) or "1 AS plinth_row"
        sql, values = f"SELECT {names} FROM {self.what}", []
        if where is not None:
            sql, values = f"{sql} WHERE {where[0]}", where[1]
        return self.connection.start(sql if limit is None else f"{sql} LIMIT {limit}", values)


# Rows that are handed over at once, so that what a call costs is small beside what is done with them.
_ROWS = 131_072


class _Stream:
    def __init__(self, rows: _native.Rows) -> None:
        self._rows = rows

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._rows.stream(requested_schema, _ROWS)


def dataset(source: _Source, path: Path | None = None) -> pyarrow.dataset.Dataset:
    """The source as a dataset of pyarrow. One of a path can be opened anew in another process."""
    # Which imports pyarrow.
    from plinth._dataset import Dataset

    return Dataset(source, path)


class _Schema:
    def __init__(self, rows: _native.Rows) -> None:
        self._rows = rows

    def __arrow_c_schema__(self) -> object:
        return self._rows.schema()


def lazy_frame(source: _Source) -> polars.LazyFrame:
    """The source as a LazyFrame of Polars, which reads the columns and rows that its query wants."""
    import polars as pl
    from polars.io.plugins import register_io_source

    # Asked for now, so that a path that is none is told now.
    schema = pl.DataFrame(_Stream(source.query(None, None, limit=0))).schema
    others = {pl.String: str, pl.Boolean: bool, pl.Date: datetime.date}
    kinds = {name: int if of.is_integer() else others[type(of)] for name, of in schema.items() if of.is_integer() or type(of) in others}

    def rows(
        with_columns: list[str] | None, predicate: pl.Expr | None, n_rows: int | None, batch_size: int | None
    ) -> Iterator[pl.DataFrame]:
        where = None
        columns = with_columns
        alike = Alike(kinds)
        if predicate is not None:
            where = of_polars(predicate, alike)
        # What the scan has filtered needs no second look, and none of the columns that the predicate alone mentions.
        filtered = where is not None and alike.exact and columns != []
        if predicate is not None and not filtered and columns is not None:
            mentioned = set(columns) | set(predicate.meta.root_names())
            columns = [name for name in schema if name in mentioned]
        # The first of the rows that pass are those of the file, which SQL with a LIMIT does not promise.
        limit = n_rows if predicate is None else None
        try:
            found = source.query(columns, where, limit)
        except _native.Error:
            if where is None:
                raise
            filtered = False
            if with_columns is not None:
                mentioned = set(with_columns) | set(predicate.meta.root_names())
                columns = [name for name in schema if name in mentioned]
            found = source.query(columns, None)
        left = n_rows
        for batch in pl_batches(found):
            if predicate is not None and not filtered:
                batch = batch.filter(predicate)
            if with_columns is not None and columns != with_columns:
                batch = batch.select(with_columns)
            if left is not None:
                batch = batch.head(left)
                left -= batch.height
            yield batch
            if left == 0:
                return

    def pl_batches(found: _native.Rows) -> Iterator[pl.DataFrame]:
        for batch in found.batches(_ROWS):
            yield pl.DataFrame(batch)

    return register_io_source(rows, schema=schema)
