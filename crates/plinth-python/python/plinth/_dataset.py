"""Plinth files and tables as datasets of pyarrow: DuckDB and others that know these hand their columns and filters to them."""

from __future__ import annotations

import datetime
import os
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.fs as fs
import pyarrow.types as types

from plinth import _native
from plinth._pushdown import Alike, Condition, of_pyarrow
from plinth._scan import Path, _Schema, _Source, _Stream

#: Types whose values pyarrow and SQL compare alike.
_KINDS: tuple[tuple[Callable[[pa.DataType], bool], type], ...] = (
    (types.is_integer, int),
    (types.is_string, str),
    (types.is_boolean, bool),
    (types.is_date32, datetime.date),
)


def _plain(of: pa.DataType) -> pa.DataType:
    """A type without views, which expressions of pyarrow do not take."""
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


def _plain_field(field: pa.Field) -> pa.Field:
    return field.with_type(_plain(field.type))


def _both(one: pc.Expression | None, other: pc.Expression | None) -> pc.Expression | None:
    return other if one is None else one if other is None else one & other


class _Fragment:
    """All of a dataset, for libraries that scan one part by part."""

    def __init__(self, whole: Dataset, filter: pc.Expression | None) -> None:
        self._whole = whole
        self._filter = filter

    @property
    def physical_schema(self) -> pa.Schema:
        return self._whole.schema

    @property
    def partition_expression(self) -> pc.Expression:
        return self._whole.partition_expression

    def scanner(self, schema: pa.Schema | None = None, columns: Any = None, filter: Any = None, **kwargs: Any) -> ds.Scanner:
        whole = self._whole if schema is None else self._whole.replace_schema(schema)
        return whole.scanner(columns, _both(self._filter, filter), **kwargs)

    def to_table(self, schema: pa.Schema | None = None, **kwargs: Any) -> pa.Table:
        return self.scanner(schema, **kwargs).to_table()

    def to_batches(self, schema: pa.Schema | None = None, **kwargs: Any) -> Iterator[pa.RecordBatch]:
        return self.scanner(schema, **kwargs).to_batches()

    def take(self, indices: Any, **kwargs: Any) -> pa.Table:
        return self.scanner(**kwargs).take(indices)

    def count_rows(self, **kwargs: Any) -> int:
        return self.scanner(**kwargs).count_rows()

    def head(self, num_rows: int, **kwargs: Any) -> pa.Table:
        return self.scanner(**kwargs).head(num_rows)


def _refuse(*_: Any, **__: Any) -> Any:
    raise _native.NotSupportedError(
        "pyarrow can't scan a dataset of Plinth without its methods: give it dataset.to_table() or ds.InMemoryDataset(dataset.to_table())"
    )


def _methods() -> dict[str, Any]:
    named: dict[str, Any] = {name: _refuse for name in fs.FileSystemHandler.__abstractmethods__}
    return named | {"get_type_name": lambda _: "plinth", "__eq__": lambda one, other: one is other, "__ne__": lambda one, other: one is not other}


_ELSEWHERE = ds.IpcFileFormat()
#: Where C++ looks for the rows of our datasets, and is told that they are not there.
_nowhere = fs.PyFileSystem(type("Nowhere", (fs.FileSystemHandler,), _methods())())


class Dataset(ds.FileSystemDataset):  # type: ignore[misc]
    """A Plinth file or table. A scan reads the columns that it is asked for, and of rows those that may pass the filter.

    Rows come in the order of the file. What pyarrow does with datasets in C++ alone (unions, ``Scanner.from_dataset``, a join of another
    dataset with this one) it can't do with this one, and says so; ``join``, ``join_asof`` and ``sort_by`` read all rows into memory.
    """

    def __init__(
        self,
        source: _Source,
        path: Path | None = None,
        filter: pc.Expression | None = None,
        schema: pa.Schema | None = None,
        stored: pa.Schema | None = None,
    ) -> None:
        self._source, self._path, self._filter = source, path, filter
        if stored is None:
            found = pa.schema(_Schema(source.query(None, None)))
            stored = pa.schema([_plain_field(field) for field in found], metadata=found.metadata)
        super().__init__([_ELSEWHERE.make_fragment("rows", _nowhere)], stored, _ELSEWHERE, _nowhere)
        self._stored = stored
        self._schema = self._stored if schema is None else schema
        # Values of another type than the stored one are compared by pyarrow alone.
        self._as_stored = self._schema.equals(self._stored)
        fields = self._stored if self._as_stored else ()
        self._kinds = {field.name: kind for field in fields for is_kind, kind in _KINDS if is_kind(field.type)}

    @property
    def schema(self) -> pa.Schema:
        return self._schema

    @property
    def partition_expression(self) -> pc.Expression:
        return pc.scalar(True)

    @property
    def files(self) -> list[str]:
        """The path that was opened, if it was one."""
        return [] if self._path is None else [os.fspath(self._path)]

    def __repr__(self) -> str:
        return f"<plinth dataset of {self._source.what}: {', '.join(self._schema.names)}>"

    def replace_schema(self, schema: pa.Schema) -> Dataset:
        return Dataset(self._source, self._path, self._filter, schema, self._stored)

    def filter(self, expression: pc.Expression) -> Dataset:
        if not isinstance(expression, pc.Expression):
            raise TypeError(f"a filter is an expression of pyarrow, not {type(expression).__name__}")
        return Dataset(self._source, self._path, _both(self._filter, expression), self._schema, self._stored)

    def scanner(self, columns: Any = None, filter: Any = None, batch_size: int = 131_072, **_: Any) -> ds.Scanner:
        columns = list(columns) if isinstance(columns, tuple) else columns
        filter = _both(self._filter, filter)
        named = self._named(columns)
        alike = Alike(self._kinds)
        condition, mentioned = (None, set()) if filter is None else of_pyarrow(filter, self._schema, alike)
        if not self._as_stored:
            condition = None
        if condition is not None and alike.exact:
            try:
                return self._scanner(columns, None, batch_size, named, condition)
            except _native.ProgrammingError:
                # A value that the column's type is not compared with: the library filters all rows.
                condition = None
        # What an unknown filter mentions may be any of the columns.
        named |= set(self._schema.names) if mentioned is None else mentioned
        try:
            return self._scanner(columns, filter, batch_size, named, condition)
        except _native.Error:
            if condition is None:
                raise
            return self._scanner(columns, filter, batch_size, named, None)

    def _named(self, columns: Any) -> set[str]:
        """The columns that a projection mentions."""
        names = set(self._schema.names)
        if columns is None:
            return names
        named: set[str] = set()
        if isinstance(columns, dict):
            for expression in columns.values():
                if not isinstance(expression, pc.Expression):
                    return names
                mentioned = of_pyarrow(expression, self._schema, Alike({}))[1]
                named |= names if mentioned is None else mentioned
            return named
        # Expressions of Substrait mention whatever they mention.
        if not isinstance(columns, list):
            return names
        for column in columns:
            if not isinstance(column, str):
                return names
            # A path to a field within it, if it is no column.
            parts = column.split(".")
            paths = (".".join(parts[:count]) for count in range(len(parts), 0, -1))
            root = next((path for path in paths if path in names), None)
            if root is None:
                raise pa.ArrowInvalid(f"no column {column!r}; there are {', '.join(self._schema.names[:20])}")
            named.add(root)
        return named

    def _scanner(self, columns: Any, filter: Any, batch_size: int, named: set[str], condition: Condition | None) -> ds.Scanner:
        stored = self._stored.names
        # Rows of no column are counted by the first one.
        there = [name for name in self._schema.names if name in named and name in stored]
        rows = self._source.query(there or stored[:1], condition)
        wanted = [field for field in self._schema if field.name in named or field.name in there]
        if there and len(there) == len(wanted):
            reader = pa.RecordBatchReader.from_stream(_Stream(rows), pa.schema(wanted, self._schema.metadata))
        else:
            found = pa.schema([self._schema.field(name) for name in there] or [self._stored.field(0)])
            reader = _with_nulls(pa.RecordBatchReader.from_stream(_Stream(rows), found), pa.schema(wanted or found, self._schema.metadata))
        return ds.Scanner.from_batches(reader, columns=columns, filter=filter, batch_size=batch_size)

    def to_table(self, columns: Any = None, filter: Any = None, **kwargs: Any) -> pa.Table:
        return self.scanner(columns, filter, **kwargs).to_table()

    def to_batches(self, columns: Any = None, filter: Any = None, **kwargs: Any) -> Iterator[pa.RecordBatch]:
        return self.scanner(columns, filter, **kwargs).to_batches()

    def take(self, indices: Any, **kwargs: Any) -> pa.Table:
        return self.scanner(**kwargs).take(indices)

    def head(self, num_rows: int, **kwargs: Any) -> pa.Table:
        return self.scanner(**kwargs).head(num_rows)

    def count_rows(self, filter: Any = None, **kwargs: Any) -> int:
        filter = _both(self._filter, filter)
        if filter is None:
            return self._source.connection.start(f"SELECT count(*) FROM {self._source.what}").fetch()[0][0]
        return self.scanner(self._schema.names[:1], filter, **kwargs).count_rows()

    def get_fragments(self, filter: Any = None) -> Iterator[Any]:
        if self._filter is not None:
            raise ValueError("a filtered dataset has no fragments of its own")
        return iter([_Fragment(self, filter)])

    def _in_memory(self) -> ds.Dataset:
        return ds.InMemoryDataset(self.to_table())

    def join(self, right_dataset: ds.Dataset, *args: Any, **kwargs: Any) -> ds.Dataset:
        return self._in_memory().join(_of_pyarrow(right_dataset), *args, **kwargs)

    def join_asof(self, right_dataset: ds.Dataset, *args: Any, **kwargs: Any) -> ds.Dataset:
        return self._in_memory().join_asof(_of_pyarrow(right_dataset), *args, **kwargs)

    def sort_by(self, sorting: Any, **kwargs: Any) -> ds.Dataset:
        return self._in_memory().sort_by(sorting, **kwargs)

    def __datafusion_table_provider__(self, session: Any) -> object:
        return self._source.connection.provider(self._source.what, session)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.scanner().to_reader().__arrow_c_stream__(requested_schema)

    def __reduce__(self) -> Any:
        if self._path is None:
            raise _native.NotSupportedError("the dataset of a table can't be pickled: open the table anew where it is needed")
        schema = None if self._schema is self._stored else self._schema
        return _open, (os.path.abspath(os.fspath(self._path)), self._filter, schema)


def _open(path: str, filter: pc.Expression | None, schema: pa.Schema | None) -> Dataset:
    """A dataset that was pickled."""
    import plinth

    dataset = plinth.open(path)
    return Dataset(dataset._source, path, filter, schema, dataset._stored)


def _of_pyarrow(dataset: ds.Dataset) -> ds.Dataset:
    """A dataset that C++ can read."""
    return dataset._in_memory() if isinstance(dataset, Dataset) else dataset


def _with_nulls(reader: pa.RecordBatchReader, schema: pa.Schema) -> pa.RecordBatchReader:
    """Rows with NULL in the columns that they lack."""

    def whole(batch: pa.RecordBatch) -> pa.RecordBatch:
        have = set(batch.schema.names)
        columns = [batch[field.name] if field.name in have else pa.nulls(batch.num_rows, field.type) for field in schema]
        return pa.record_batch(columns, schema=schema)

    return pa.RecordBatchReader.from_batches(schema, (whole(batch) for batch in reader))
