"""Connections, and what they answer."""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

from plinth import _native
from plinth._native import InterfaceError
from plinth._progress import watch
from plinth._scan import _Source, dataset, lazy_frame
from plinth._table import Table, data_of
from plinth._result import Result
from plinth._variables import caller, finder

if TYPE_CHECKING:
    import polars
    import pyarrow.dataset

Params = Sequence[Any] | Mapping[str, Any]
Path = str | os.PathLike[str]

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


class Connection:
    """A session: SQL over files, over the tables of a folder, and over data of this process.

    A connection may be used by several threads: statements start one after the other, and their rows come side by side. A
    transaction is the connection's, not a thread's.
    """

    def __init__(
        self,
        db: Path | None = None,
        memory: int | str | None = None,
        threads: int | None = None,
        progress: bool | None = None,
    ) -> None:
        self._native = _native.Connection(None if db is None else os.fspath(db), memory, threads)
        #: Whether bars of progress are shown: None for in notebooks and at the prompt of an interpreter.
        self.progress = progress
        _open.add(self)

    def _watch(self) -> AbstractContextManager[None]:
        return watch(self._native, self.progress)

    def _start(self, query: str, params: Params | None = None, variables: Any = None) -> _native.Rows:
        with self._watch():
            return self._native.start(query, params, variables)

    def sql(self, query: str, params: Params | None = None) -> Result:
        """Runs statements; the result is the last one's.

        A query is planned now, so that mistakes are told, and runs when its rows are asked for. Any other statement is over when
        this returns. ``params`` are values for ``?`` and ``$1`` (a list) or for ``$name`` (a dict).

        A table's name that the database does not know is looked for among the variables of the caller: ``FROM df``.
        """
        return Result(self._start(query, params, finder(caller(1))), self._watch)

    def execute(self, query: str, params: Params | None = None) -> Result:
        """As ``sql``, and a query begins to run at once."""
        rows = self._start(query, params, finder(caller(1)))
        if rows.is_query:
            rows.start()
        return Result(rows, self._watch)

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
        table = data_of(data)
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
        rows = self._start(f"COPY ({query}) TO {_literal(path)} OPTIONS ({given})", None, variables)
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
        return self._start(text, params, finder(caller(1))).changed or 0

    def table(self, name: str) -> Table:
        """A table by its name. Raises ProgrammingError if there is none."""
        table = Table(self._native, name)
        # Which raises, if there is none.
        _ = table.columns
        return table

    def open(self, path: Path) -> pyarrow.dataset.Dataset:
        """A file, a folder or a pattern of them as a dataset of pyarrow: ``plinth.open``, within this connection's memory."""
        return dataset(_Source(self._native, _path(path)), path)

    def scan(self, path: Path) -> polars.LazyFrame:
        """A file, a folder or a pattern of them as a LazyFrame of Polars: ``plinth.scan``, within this connection's memory."""
        return lazy_frame(_Source(self._native, _path(path)))

    def tables(self) -> list[str]:
        """The names of tables that need no path."""
        return self._native.tables()

    def register(self, name: str, data: Any) -> None:
        """Makes a DataFrame or any stream of Arrow's known by a name, for all threads."""
        self._native.register(name, data_of(data))

    def unregister(self, name: str) -> None:
        """Forgets a name that ``register`` made known."""
        self._native.unregister(name)

    def begin(self) -> None:
        """Begins a transaction: what follows is seen by others, and kept, all at once or not at all."""
        self._start("BEGIN")

    def commit(self) -> None:
        """Ends the transaction and keeps its changes, on the device as well."""
        self._start("COMMIT")

    def rollback(self) -> None:
        """Ends the transaction as if nothing had been."""
        self._start("ROLLBACK")

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
    db: Path | None = None,
    *,
    memory: int | str | None = None,
    threads: int | None = None,
    create: bool = False,
    progress: bool | None = None,
) -> Connection:
    """Opens a session.

    ``db`` is a folder whose files are tables by their names, and into which CREATE TABLE writes; without, files are named by
    their paths. ``create`` makes the folder if it is not there. ``memory`` is what queries may use together, in bytes or as a text
    such as "4GB" (default: a quarter of the machine's), ``threads`` what they run on (default: all cores).
    ``progress`` shows how far a statement is that takes longer than a second (default: in notebooks and at the prompt of an
    interpreter in a terminal).

    Raises OperationalError if the folder can't be read.
    """
    if create and db is not None:
        os.makedirs(db, exist_ok=True)
    return Connection(db, memory, threads, progress)


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
    shared = _shared()
    return Result(shared._start(query, params, finder(caller(1))), shared._watch)


def read_json(path: Path | Sequence[Path], **options: Any) -> Result:
    """Files of JSON as a table: ``Connection.read_json``."""
    return _shared().read_json(path, **options)


def read_csv(path: Path | Sequence[Path], **options: Any) -> Result:
    """Files of CSV as a table: ``Connection.read_csv``."""
    return _shared().read_csv(path, **options)


def read_parquet(path: Path) -> Result:
    """Files of Parquet as a table: ``Connection.read_parquet``."""
    return _shared().read_parquet(path)


def open(path: Path) -> pyarrow.dataset.Dataset:
    """A Plinth, Parquet, CSV or JSON file, a folder or a pattern of them as a ``pyarrow.dataset.Dataset``.

    DuckDB, pandas and whatever else scans such datasets hand over the columns and the filters of their queries, and read no more of
    the file than these ask for. The filter is applied to each row as pyarrow has it.
    """
    return _shared().open(path)


def scan(path: Path) -> polars.LazyFrame:
    """A Plinth, Parquet, CSV or JSON file, a folder or a pattern of them as a LazyFrame of Polars.

    Columns, predicates and limits of its query reach the file. Comparisons, AND and OR pass over what is stored; whatever else a
    predicate says, Polars filters.
    """
    return _shared().scan(path)


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
