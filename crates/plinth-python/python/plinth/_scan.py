"""Files and tables for libraries that say which columns and rows they want."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from plinth import _native
from plinth._pushdown import of_polars, of_pyarrow, quoted

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

    def reader(self, columns: Sequence[str] | None, where: tuple[str, list[Any]] | None) -> pyarrow.RecordBatchReader:
        import pyarrow

        try:
            rows = self.query(columns, where)
        except _native.Error:
            if where is None:
                raise
            # A value that the column's type is not compared with: the library filters all rows.
            rows = self.query(columns, None)
        return pyarrow.RecordBatchReader.from_stream(_Stream(rows))


class _Stream:
    def __init__(self, rows: _native.Rows) -> None:
        self._rows = rows

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._rows.stream()


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

        @property
        def schema(self) -> pa.Schema:
            return self._schema

        def scanner(self, columns: Any = None, filter: Any = None, batch_size: int = 131_072, **_: Any) -> ds.Scanner:
            condition, mentioned = (None, set()) if filter is None else of_pyarrow(filter, self._schema)
            wanted = self._schema.names
            if isinstance(columns, (list, tuple)) and mentioned is not None:
                named = {*columns, *mentioned}
                wanted = [name for name in wanted if name in named]
                if missing := named.difference(wanted):
                    raise _native.ProgrammingError(f"no column {sorted(missing)[0]!r}; there are {', '.join(self._schema.names[:20])}")
            if not wanted:
                # Rows are counted by the first column.
                wanted = self._schema.names[:1]
            reader = source.reader(wanted, condition)
            schema = pa.schema([self._schema.field(name) for name in wanted])

            def batches() -> Iterator[pa.RecordBatch]:
                for batch in reader:
                    yield batch.cast(schema)

            columns = list(columns) if isinstance(columns, tuple) else columns
            rows = pa.RecordBatchReader.from_batches(schema, batches())
            return ds.Scanner.from_batches(rows, columns=columns, filter=filter, batch_size=batch_size)

        def to_table(self, columns: Any = None, filter: Any = None, **kwargs: Any) -> pa.Table:
            return self.scanner(columns, filter, **kwargs).to_table()

        def to_batches(self, columns: Any = None, filter: Any = None, **kwargs: Any) -> Iterator[pa.RecordBatch]:
            return self.scanner(columns, filter, **kwargs).to_batches()

        def head(self, num_rows: int, **kwargs: Any) -> pa.Table:
            return self.scanner(**kwargs).head(num_rows)

        def count_rows(self, filter: Any = None, **kwargs: Any) -> int:
            if filter is None:
                return source.connection.start(f"SELECT count(*) FROM {source.what}").fetch()[0][0]
            return self.scanner([], filter, **kwargs).count_rows()

        def get_fragments(self, filter: Any = None) -> Iterator[Any]:
            yield _Fragment(self, filter)

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

    def rows(
        with_columns: list[str] | None, predicate: pl.Expr | None, n_rows: int | None, batch_size: int | None
    ) -> Iterator[pl.DataFrame]:
        where = None
        columns = with_columns
        if predicate is not None:
            where = of_polars(predicate)
            if columns is not None:
                mentioned = set(columns) | set(predicate.meta.root_names())
                columns = [name for name in schema if name in mentioned]
        # Of rows that a predicate looks at, none can be left out beforehand.
        limit = n_rows if predicate is None else None
        try:
            found = source.query(columns, where, limit)
        except _native.Error:
            if where is None:
                raise
            found = source.query(columns, None, limit)
        left = n_rows
        for batch in pl_batches(found):
            if predicate is not None:
                batch = batch.filter(predicate)
            if with_columns is not None:
                batch = batch.select(with_columns)
            if left is not None:
                batch = batch.head(left)
                left -= batch.height
            yield batch
            if left == 0:
                return

    def pl_batches(found: _native.Rows) -> Iterator[pl.DataFrame]:
        for batch in found.batches():
            yield pl.DataFrame(batch)

    return register_io_source(rows, schema=schema)
