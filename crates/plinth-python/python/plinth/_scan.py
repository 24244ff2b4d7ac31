"""Files and tables for libraries that say which columns and rows they want."""

from __future__ import annotations

import datetime
import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from plinth import _native
from plinth._pushdown import Alike, Condition, of_polars, of_pyarrow, quoted

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


def _plain(of: Any) -> Any:
    """A type without views, which expressions of pyarrow do not take."""
    import pyarrow.types as types
    import pyarrow as pa

    if types.is_string_view(of):
        return pa.string()
    if types.is_binary_view(of):
        return pa.binary()
    if types.is_struct(of):
        return pa.struct([_plain_field(of.field(at)) for at in range(of.num_fields)])
    if types.is_list(of):
        return pa.list_(_plain_field(of.value_field))
    if types.is_large_list(of):
        return pa.large_list(_plain_field(of.value_field))
    if types.is_map(of):
        return pa.map_(_plain(of.key_type), _plain(of.item_type))
    return of


def _plain_field(field: Any) -> Any:
    return field.with_type(_plain(field.type))


class _Fragment:
    """All of a dataset, for libraries that scan one part by part."""

    def __init__(self, whole: pyarrow.dataset.Dataset, filter: Any) -> None:
        self._whole = whole
        self._filter = filter

    @property
    def physical_schema(self) -> pyarrow.Schema:
        return self._whole.schema

    def scanner(self, schema: pyarrow.Schema | None = None, columns: Any = None, filter: Any = None, **kwargs: Any) -> Any:
        both = [one for one in (self._filter, filter) if one is not None]
        return self._whole.scanner(columns, both[0] & both[1] if len(both) == 2 else both[0] if both else None, **kwargs)

    def to_table(self, schema: pyarrow.Schema | None = None, **kwargs: Any) -> pyarrow.Table:
        return self.scanner(schema, **kwargs).to_table()

    def to_batches(self, schema: pyarrow.Schema | None = None, **kwargs: Any) -> Iterator[pyarrow.RecordBatch]:
        return self.scanner(schema, **kwargs).to_batches()

    def count_rows(self, **kwargs: Any) -> int:
        return self.scanner(**kwargs).count_rows()

    def head(self, num_rows: int, **kwargs: Any) -> pyarrow.Table:
        return self.scanner(**kwargs).head(num_rows)


def dataset(source: _Source) -> pyarrow.dataset.Dataset:
    """The source as a dataset of pyarrow: DuckDB and others that know these hand their columns and filters to it."""
    import pyarrow as pa
    import pyarrow.dataset as ds

    class Dataset(ds.Dataset):  # type: ignore[misc]
        """A Plinth file or table. A scan reads the columns that it is asked for, and of rows those that may pass the filter."""

        def __init__(self) -> None:
            stored = pa.schema(_Schema(source.query(None, None)))
            self._schema = pa.schema([_plain_field(field) for field in stored], metadata=stored.metadata)
            kinds = ((pa.types.is_integer, int), (pa.types.is_string, str), (pa.types.is_boolean, bool), (pa.types.is_date32, datetime.date))
            self._kinds = {field.name: kind for field in self._schema for is_kind, kind in kinds if is_kind(field.type)}

        @property
        def schema(self) -> pa.Schema:
            return self._schema

        def scanner(self, columns: Any = None, filter: Any = None, batch_size: int = 131_072, **_: Any) -> ds.Scanner:
            columns = list(columns) if isinstance(columns, tuple) else columns
            named = set(columns) if isinstance(columns, list) else set(self._schema.names)
            alike = Alike(self._kinds)
            condition, mentioned = (None, set()) if filter is None else of_pyarrow(filter, self._schema, alike)
            if condition is not None and alike.exact:
                try:
                    return self._scanner(columns, None, batch_size, *self._rows(named, condition))
                except _native.ProgrammingError:
                    # A value that the column's type is not compared with: the library filters all rows.
                    condition = None
            # What an unknown filter mentions may be any of the columns.
            named |= set(self._schema.names) if mentioned is None else mentioned
            try:
                rows = self._rows(named, condition)
            except _native.Error:
                if condition is None:
                    raise
                rows = self._rows(named, None)
            return self._scanner(columns, filter, batch_size, *rows)

        def _rows(self, named: set[str], condition: Condition | None) -> tuple[_native.Rows, pa.Schema]:
            # Rows of no column are counted by the first one.
            wanted = [name for name in self._schema.names if name in named] or self._schema.names[:1]
            if missing := named.difference(self._schema.names):
                raise _native.ProgrammingError(f"no column {sorted(missing)[0]!r}; there are {', '.join(self._schema.names[:20])}")
            return source.query(wanted, condition), pa.schema([self._schema.field(name) for name in wanted])

        def _scanner(self, columns: Any, filter: Any, batch_size: int, rows: _native.Rows, schema: pa.Schema) -> ds.Scanner:
            reader = pa.RecordBatchReader.from_stream(_Stream(rows), schema)
            return ds.Scanner.from_batches(reader, columns=columns, filter=filter, batch_size=batch_size)

        def to_table(self, columns: Any = None, filter: Any = None, **kwargs: Any) -> pa.Table:
            return self.scanner(columns, filter, **kwargs).to_table()

        def to_batches(self, columns: Any = None, filter: Any = None, **kwargs: Any) -> Iterator[pa.RecordBatch]:
            return self.scanner(columns, filter, **kwargs).to_batches()

        def head(self, num_rows: int, **kwargs: Any) -> pa.Table:
            return self.scanner(**kwargs).head(num_rows)

        def count_rows(self, filter: Any = None, **kwargs: Any) -> int:
            if filter is None:
                return source.connection.start(f"SELECT count(*) FROM {source.what}").fetch()[0][0]
            return self.scanner(self._schema.names[:1], filter, **kwargs).count_rows()

        def get_fragments(self, filter: Any = None) -> Iterator[Any]:
            yield _Fragment(self, filter)

        def __datafusion_table_provider__(self, session: Any) -> object:
            return source.connection.provider(source.what, session)

        def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
            return self.scanner().to_reader().__arrow_c_stream__(requested_schema)

        def __reduce__(self) -> Any:
            raise _native.NotSupportedError("a dataset of Plinth can't be pickled: open it anew where it is needed")

    return Dataset()


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
