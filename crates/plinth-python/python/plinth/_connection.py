"""Connections, and what they answer."""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from plinth import _native, _show
from plinth._native import InterfaceError
from plinth._variables import as_table, caller, finder

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

Params = Sequence[Any] | Mapping[str, Any]
Path = str | os.PathLike[str]

#: Rows that a result shows.
SHOWN = 20

_open: weakref.WeakSet[Connection] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    for connection in list(_open):
        connection.close()


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _name(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def _path(path: Path) -> str:
    return _literal(os.fspath(path))


def _option(value: Any) -> str:
    """A value as an argument of a table function."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, str)):
        return _literal(str(value))
    if isinstance(value, os.PathLike):
        return _path(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_literal(str(k))}: {_literal(str(v))}" for k, v in value.items()) + "}"
    if isinstance(value, Iterable):
        return "[" + ", ".join(_option(one) for one in value) + "]"
    raise InterfaceError(f"an option of type {type(value).__name__}")


def _columns(columns: str | Sequence[str]) -> list[str]:
    return [columns] if isinstance(columns, str) else list(columns)


def _order(sort_by: str | Sequence[str] | None) -> str:
    """ORDER BY of columns such as `name` and `name:desc`."""
    if not sort_by:
        return ""
    keys = []
    for key in _columns(sort_by):
        name, _, direction = key.rpartition(":")
        keys.append(_name(name) + " DESC" if name and direction == "desc" else _name(key))
    return " ORDER BY " + ", ".join(keys)


class Result:
    """What a statement answers: rows that are made as they are asked for.

    ``fetchone``, ``fetchmany`` and ``fetchall`` go through the rows once, as a cursor does, and so does a ``for`` loop. Everything
    else takes all rows, from the first, and may be done as often as one likes: the query then runs once more.

    Any library that knows Arrow's PyCapsule interface takes a result as it is: ``polars.DataFrame(result)``,
    ``pyarrow.table(result)``, ``duckdb.sql("FROM result")``.
    """

    def __init__(self, rows: _native.Rows) -> None:
        self._rows = rows

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


class Table:
    """A table by its name: what ``Connection.table`` returns."""

    def __init__(self, connection: Connection, name: str) -> None:
        self._connection = connection
        self.name = name

    def _query(self) -> Result:
        return self._connection.sql(f"SELECT * FROM {_name(self.name)}")

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return self._query().columns

    def __len__(self) -> int:
        return self._connection.sql(f"SELECT count(*) FROM {_name(self.name)}").fetchall()[0][0]

    def __arrow_c_schema__(self) -> object:
        return self._query().__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._query().__arrow_c_stream__(requested_schema)

    def sql(self) -> Result:
        """All rows."""
        return self._query()

    def arrow(self) -> pyarrow.Table:
        """All rows as a table of pyarrow."""
        return self._query().arrow()

    def df(self) -> pandas.DataFrame:
        """All rows as a DataFrame of pandas."""
        return self._query().df()

    def pl(self) -> polars.DataFrame:
        """All rows as a DataFrame of Polars."""
        return self._query().pl()

    def insert(self, data: Any) -> int:
        """Adds the rows of a DataFrame or of any stream of Arrow's: how many there were.

        The columns are matched by their names. Raises IntegrityError if a key is there already; nothing is added then.
        """
        return self._connection._insert(self.name, data)

    def __repr__(self) -> str:
        return repr(self._query())

    def _repr_html_(self) -> str:
        return self._query()._repr_html_()


class Connection:
    """A session: SQL over files, over the tables of a folder, and over data of this process.

    A connection may be used by several threads: statements start one after the other, and their rows come side by side. A
    transaction is the connection's, not a thread's.
    """

    def __init__(self, db: Path | None = None, memory: int | str | None = None, threads: int | None = None) -> None:
        self._native = _native.Connection(None if db is None else os.fspath(db), memory, threads)
        _open.add(self)

    def sql(self, query: str, params: Params | None = None) -> Result:
        """Runs statements; the result is the last one's.

        A query is planned now, so that mistakes are told, and runs when its rows are asked for. Any other statement is over when
        this returns. ``params`` are values for ``?`` and ``$1`` (a list) or for ``$name`` (a dict).

        A table's name that the database does not know is looked for among the variables of the caller: ``FROM df``.
        """
        return Result(self._native.start(query, params, finder(caller(1))))

    def execute(self, query: str, params: Params | None = None) -> Result:
        """As ``sql``, and a query begins to run at once."""
        rows = self._native.start(query, params, finder(caller(1)))
        if rows.is_query:
            rows.start()
        return Result(rows)

    def read_json(self, path: Path | Sequence[Path], **options: Any) -> Result:
        """Files of JSON as a table; options are those of SQL's ``read_json``, such as ``root=`` and ``schema=``."""
        return self._read("read_json", path, options)

    def read_csv(self, path: Path | Sequence[Path], **options: Any) -> Result:
        """Files of CSV as a table; options are those of SQL's ``read_csv``, such as ``delimiter=`` and ``schema=``."""
        return self._read("read_csv", path, options)

    def read_parquet(self, path: Path) -> Result:
        """A file, a folder or a pattern of Parquet as a table."""
        return self.sql(f"SELECT * FROM read_parquet({_path(path)})")

    def _read(self, function: str, path: Path | Sequence[Path], options: Mapping[str, Any]) -> Result:
        return self.sql("SELECT * FROM " + self._source(function, path, options))

    @staticmethod
    def _source(function: str, path: Path | Sequence[Path], options: Mapping[str, Any]) -> str:
        files = _path(path) if isinstance(path, (str, os.PathLike)) else _option(list(path))
        given = "".join(f", {name} => {_option(value)}" for name, value in options.items())
        return f"{function}({files}{given})"

    def import_(
        self,
        path: Path | Sequence[Path],
        to: Path,
        *,
        format: str | None = None,
        sort_by: str | Sequence[str] | None = None,
        index: str | Sequence[str] | None = None,
        effort: str = "balanced",
        replace: bool = False,
        **options: Any,
    ) -> int:
        """Writes files of JSON, CSV or Parquet to a Plinth file: how many rows it has.

        ``format`` is "json", "csv" or "parquet", whatever the names say. ``sort_by`` are columns to order by (``"at:desc"`` is the
        latest first), ``index`` columns that get an index, ``effort`` is "plain", "fast", "balanced" or "compact". Further options
        are those of ``read_json`` and ``read_csv``.
        """
        first = os.fspath(path if isinstance(path, (str, os.PathLike)) else path[0])
        kind = format or _format_of(first)
        if kind == "parquet":
            if not isinstance(path, (str, os.PathLike)) or options:
                raise InterfaceError("Parquet: one file, folder or pattern is expected, and no options")
            source = f"read_parquet({_path(path)})"
        elif kind in ("json", "csv"):
            source = self._source(f"read_{kind}", path, options)
        else:
            raise InterfaceError(f"{first}: the name does not say which format it has; say format='json', 'csv' or 'parquet'")
        return self._copy(f"SELECT * FROM {source}{_order(sort_by)}", to, index, effort, replace)

    def write(
        self,
        to: Path,
        data: Any,
        *,
        sort_by: str | Sequence[str] | None = None,
        index: str | Sequence[str] | None = None,
        effort: str = "balanced",
        replace: bool = False,
    ) -> int:
        """Writes a DataFrame, a result or any stream of Arrow's to a Plinth file: how many rows it has.

        The file appears when it is complete, and not at all if something goes wrong. The other arguments are those of ``import_``.
        """
        table = _data(data)
        query = f"SELECT * FROM plinth_data{_order(sort_by)}"
        return self._copy(query, to, index, effort, replace, lambda name: table if name == "plinth_data" else None)

    def _copy(
        self,
        query: str,
        to: Path,
        index: str | Sequence[str] | None,
        effort: str,
        replace: bool,
        variables: Any = None,
    ) -> int:
        path = os.fspath(to)
        if not path.endswith(".plinth"):
            raise InterfaceError(f"{path}: the output's name must end in .plinth")
        options = {"effort": effort, "replace": "true" if replace else "false"}
        if index:
            options["index"] = ",".join(_columns(index))
        given = ", ".join(f"{name} {_literal(value)}" for name, value in options.items())
        rows = self._native.start(f"COPY ({query}) TO {_literal(path)} OPTIONS ({given})", None, variables)
        return rows.changed or 0

    def export(self, query: str, to: Path, params: Params | None = None, **options: Any) -> int:
        """Writes what a query or a table gives to a file of Parquet, CSV, JSON or Plinth, by its extension: how many rows.

        ``query`` is a SELECT, or the name of a table. Options are those of SQL's COPY.
        """
        words = query.split(None, 1)
        if len(words) == 1:
            query = f"SELECT * FROM {_name(query)}"
        given = ", ".join(f"{name} {_literal(str(value))}" for name, value in options.items())
        text = f"COPY ({query.rstrip().rstrip(';')}) TO {_path(to)}" + (f" OPTIONS ({given})" if given else "")
        return self._native.start(text, params, finder(caller(1))).changed or 0

    def table(self, name: str) -> Table:
        """A table by its name. Raises ProgrammingError if there is none."""
        table = Table(self, name)
        table.columns
        return table

    def tables(self) -> list[str]:
        """The names of tables that need no path."""
        return self._native.tables()

    def register(self, name: str, data: Any) -> None:
        """Makes a DataFrame or any stream of Arrow's known by a name, for all threads."""
        self._native.register(name, _data(data))

    def unregister(self, name: str) -> None:
        """Forgets a name that ``register`` made known."""
        self._native.unregister(name)

    def _insert(self, name: str, data: Any) -> int:
        table = _data(data)
        columns = ", ".join(_name(column) for column in _names_of(self._native, table))
        query = f"INSERT INTO {_name(name)} ({columns}) SELECT {columns} FROM plinth_data"
        rows = self._native.start(query, None, lambda name: table if name == "plinth_data" else None)
        return rows.changed or 0

    def begin(self) -> None:
        """Begins a transaction: what follows is seen by others, and kept, all at once or not at all."""
        self._native.start("BEGIN")

    def commit(self) -> None:
        """Ends the transaction and keeps its changes, on the device as well."""
        self._native.start("COMMIT")

    def rollback(self) -> None:
        """Ends the transaction as if nothing had been."""
        self._native.start("ROLLBACK")

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""
        return self._native.in_transaction

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """A transaction that is committed at the end of a ``with`` block, and rolled back if an exception leaves it."""
        self.begin()
        try:
            yield self
        except BaseException:
            if not self._native.closed and self._native.in_transaction:
                self.rollback()
            raise
        self.commit()

    def interrupt(self) -> None:
        """Stops what runs, from any thread: it raises InterruptedError where it was waited for."""
        self._native.interrupt()

    def close(self) -> None:
        """Ends what runs and lets go of files and threads. Closing twice does nothing."""
        _open.discard(self)
        self._native.close()

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._native.closed

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<plinth.Connection{' (closed)' if self.closed else ''}>"


def _names_of(connection: _native.Connection, table: Any) -> list[str]:
    rows = connection.start("SELECT * FROM plinth_data", None, lambda _: table)
    return [name for name, _, _ in rows.columns]


def _data(data: Any) -> Any:
    table = as_table(data)
    if table is None:
        raise InterfaceError(
            f"a value of type {type(data).__name__} gives no Arrow data (__arrow_c_stream__): a DataFrame, a table of pyarrow or a "
            "result is expected"
        )
    return table


def _format_of(path: str) -> str | None:
    name = path.lower()
    for packed in (".gz", ".zst", ".lz4", ".bz2"):
        name = name.removesuffix(packed)
    if name.endswith((".json", ".ndjson", ".jsonl")):
        return "json"
    if name.endswith((".csv", ".tsv")):
        return "csv"
    return "parquet" if name.endswith(".parquet") else None


def connect(
    db: Path | None = None, *, memory: int | str | None = None, threads: int | None = None, create: bool = False
) -> Connection:
    """Opens a session.

    ``db`` is a folder whose files are tables by their names, and into which CREATE TABLE writes; without, files are named by
    their paths. ``create`` makes the folder if it is not there. ``memory`` is what queries may use together, in bytes or as a text
    such as "4GB" (default: a quarter of the machine's), ``threads`` what they run on (default: all cores).

    Raises OperationalError if the folder can't be read.
    """
    if create and db is not None:
        os.makedirs(db, exist_ok=True)
    return Connection(db, memory, threads)


_lock = threading.Lock()
_default: Connection | None = None


def _shared() -> Connection:
    """The connection of the functions of this module, which has no folder."""
    global _default
    with _lock:
        # In a process that was forked it is closed, too.
        if _default is None or _default.closed:
            _default = Connection()
        return _default


def sql(query: str, params: Params | None = None) -> Result:
    """As ``Connection.sql``, with a connection of the module that has no folder."""
    return Result(_shared()._native.start(query, params, finder(caller(1))))


def read_json(path: Path | Sequence[Path], **options: Any) -> Result:
    """Files of JSON as a table: ``Connection.read_json``."""
    return _shared().read_json(path, **options)


def read_csv(path: Path | Sequence[Path], **options: Any) -> Result:
    """Files of CSV as a table: ``Connection.read_csv``."""
    return _shared().read_csv(path, **options)


def read_parquet(path: Path) -> Result:
    """Files of Parquet as a table: ``Connection.read_parquet``."""
    return _shared().read_parquet(path)


def write(
    to: Path,
    data: Any,
    *,
    sort_by: str | Sequence[str] | None = None,
    index: str | Sequence[str] | None = None,
    effort: str = "balanced",
    replace: bool = False,
) -> int:
    """Writes a DataFrame, a result or any stream of Arrow's to a Plinth file: ``Connection.write``."""
    return _shared().write(to, data, sort_by=sort_by, index=index, effort=effort, replace=replace)
