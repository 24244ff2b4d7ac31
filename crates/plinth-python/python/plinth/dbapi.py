"""DB-API 2.0 (PEP 249), for programs and libraries that speak it.

>>> from plinth import dbapi
>>> with dbapi.connect() as con, con.cursor() as cursor:
...     cursor.execute("SELECT ? + 1", [41]).fetchone()
(42,)

A connection commits each statement by itself until ``begin`` (or the statement BEGIN) opens a transaction; ``commit`` and
``rollback`` end it, and do nothing where none is open. ``connect(..., autocommit=False)`` opens one before the first statement that
changes a table, as PEP 249 has it; such a transaction changes one table.
"""

from __future__ import annotations

import datetime
import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from plinth import _native
from plinth._native import (
    DatabaseError,
    DataError,
    Error,
    IntegrityError,
    InterfaceError,
    InternalError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    Warning,
)
from plinth._variables import caller, finder

__all__ = [
    "BINARY",
    "DATETIME",
    "NUMBER",
    "ROWID",
    "STRING",
    "Binary",
    "Connection",
    "Cursor",
    "DataError",
    "DatabaseError",
    "Date",
    "DateFromTicks",
    "Error",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "NotSupportedError",
    "OperationalError",
    "ProgrammingError",
    "Time",
    "TimeFromTicks",
    "Timestamp",
    "TimestampFromTicks",
    "Warning",
    "apilevel",
    "connect",
    "paramstyle",
    "threadsafety",
]

apilevel = "2.0"
#: Threads may share the module and connections.
threadsafety = 2
#: ``?``; ``$1`` and ``$name`` are taken as well.
paramstyle = "qmark"

Date = datetime.date
Time = datetime.time
Timestamp = datetime.datetime
Binary = bytes


def DateFromTicks(ticks: float) -> datetime.date:
    """The local date of a number of seconds since the epoch."""
    return Date(*time.localtime(ticks)[:3])


def TimeFromTicks(ticks: float) -> datetime.time:
    """The local time of day of a number of seconds since the epoch."""
    return Time(*time.localtime(ticks)[3:6])


def TimestampFromTicks(ticks: float) -> datetime.datetime:
    """The local date and time of a number of seconds since the epoch."""
    return Timestamp(*time.localtime(ticks)[:6])


class _Type:
    """A group of types: equal to each type code that belongs to it."""

    def __init__(self, name: str, *beginnings: str) -> None:
        self._name = name
        self._beginnings = beginnings

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, str) and other.startswith(self._beginnings))

    def __hash__(self) -> int:
        return hash(self._name)

    def __repr__(self) -> str:
        return f"plinth.dbapi.{self._name}"


STRING = _Type("STRING", "Utf8", "LargeUtf8")
BINARY = _Type("BINARY", "Binary", "LargeBinary", "FixedSizeBinary")
NUMBER = _Type("NUMBER", "Int8", "Int16", "Int32", "Int64", "UInt", "Float", "Decimal", "Boolean")
DATETIME = _Type("DATETIME", "Date", "Time", "Duration", "Interval")
#: No column has this type.
ROWID = _Type("ROWID", "RowId")

_CHANGES = re.compile(r"\s*(?:--[^\n]*\n\s*|/\*.*?\*/\s*)*(insert|update|delete|merge|truncate)\b", re.IGNORECASE | re.DOTALL)


class Cursor:
    """Runs statements and goes through their rows."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        #: Rows of a ``fetchmany`` that does not say.
        self.arraysize = 1
        self._rows: _native.Rows | None = None
        self._changed = -1
        self._closed = False

    @property
    def description(self) -> list[tuple[Any, ...]] | None:
        """Seven values a column: name, type code, None four times, whether there may be NULL. None without rows."""
        if self._rows is None or not self._rows.columns:
            return None
        if not self._rows.is_query and self._rows.changed is not None:
            # A count of rows, which rowcount has.
            return None
        return [(name, type, None, None, None, None, null) for name, type, null in self._rows.columns]

    @property
    def rowcount(self) -> int:
        """Rows that the last statement has changed; -1 if it is a query, or none ran."""
        return self._changed

    def _check(self) -> None:
        if self._closed:
            raise InterfaceError("the cursor is closed")
        self.connection._check()

    def _run(self, operation: str, parameters: Any) -> _native.Rows:
        self.connection._before(operation)
        return self.connection._native.start(operation, parameters, finder(caller(2)))

    def execute(self, operation: str, parameters: Sequence[Any] | Mapping[str, Any] | None = None) -> Cursor:
        """Runs a statement; the cursor itself, so that a fetch may follow."""
        self._check()
        self._rows, self._changed = None, -1
        rows = self._run(operation, parameters)
        if rows.is_query:
            rows.start()
        elif rows.changed is not None:
            self._changed = rows.changed
        self._rows = rows
        return self

    def executemany(
        self, operation: str, seq_of_parameters: Iterable[Sequence[Any] | Mapping[str, Any]]
    ) -> Cursor:
        """Runs a statement with each of several lots of values, all or none of which take effect."""
        self._check()
        self._rows, self._changed = None, -1
        native = self.connection._native
        own = not native.in_transaction and self.connection.autocommit and _CHANGES.match(operation) is not None
        if own:
            native.start("BEGIN")
        total, counted = 0, False
        try:
            for parameters in seq_of_parameters:
                rows = self._run(operation, parameters)
                if rows.is_query:
                    raise ProgrammingError("executemany: a query has rows, and execute runs it")
                if rows.changed is not None:
                    total, counted = total + rows.changed, True
        except BaseException:
            if own and native.in_transaction:
                native.start("ROLLBACK")
            raise
        if own:
            native.start("COMMIT")
        self._changed = total if counted else -1
        return self

    def callproc(self, procname: str, parameters: Sequence[Any] = ()) -> Any:
        """There are no procedures."""
        raise NotSupportedError(f"{procname}: there are no stored procedures")

    def _of_query(self) -> _native.Rows:
        self._check()
        if self._rows is None or self.description is None:
            raise ProgrammingError("no statement with rows was executed")
        return self._rows

    def fetchone(self) -> tuple[Any, ...] | None:
        """The next row, or None after the last."""
        rows = self._of_query().fetch(1)
        return rows[0] if rows else None

    def fetchmany(self, size: int | None = None) -> list[tuple[Any, ...]]:
        """The next rows: at most so many, or ``arraysize``."""
        size = self.arraysize if size is None else size
        if size < 0:
            raise InterfaceError(f"fetchmany({size}): a number of rows is expected")
        return self._of_query().fetch(size)

    def fetchall(self) -> list[tuple[Any, ...]]:
        """All rows that are left."""
        return self._of_query().fetch()

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return self

    def __next__(self) -> tuple[Any, ...]:
        row = self.fetchone()
        if row is None:
            raise StopIteration
        return row

    def nextset(self) -> None:
        """There is one set of rows: None."""
        self._of_query()

    def setinputsizes(self, sizes: Any) -> None:
        """Sizes need not be known."""
        self._check()

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Sizes need not be known."""
        self._check()

    def close(self) -> None:
        """Lets go of the rows. Closing twice does nothing."""
        self._closed = True
        if self._rows is not None:
            self._rows.close()
            self._rows = None

    def __enter__(self) -> Cursor:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Connection:
    """A connection as DB-API has it."""

    Warning = Warning
    Error = Error
    InterfaceError = InterfaceError
    DatabaseError = DatabaseError
    DataError = DataError
    OperationalError = OperationalError
    IntegrityError = IntegrityError
    InternalError = InternalError
    ProgrammingError = ProgrammingError
    NotSupportedError = NotSupportedError

    def __init__(self, native: _native.Connection, autocommit: bool) -> None:
        self._native = native
        #: Whether each statement is a transaction by itself.
        self.autocommit = autocommit

    def _check(self) -> None:
        if self._native.closed:
            raise InterfaceError("the connection is closed")

    def _before(self, operation: str) -> None:
        if not self.autocommit and not self._native.in_transaction and _CHANGES.match(operation):
            self._native.start("BEGIN")

    def cursor(self) -> Cursor:
        """A new cursor."""
        self._check()
        return Cursor(self)

    def execute(self, operation: str, parameters: Sequence[Any] | Mapping[str, Any] | None = None) -> Cursor:
        """A new cursor that has executed a statement."""
        return self.cursor().execute(operation, parameters)

    def begin(self) -> None:
        """Opens a transaction."""
        self._check()
        self._native.start("BEGIN")

    def commit(self) -> None:
        """Ends the transaction and keeps its changes."""
        self._check()
        if self._native.in_transaction:
            self._native.start("COMMIT")

    def rollback(self) -> None:
        """Ends the transaction as if nothing had been."""
        self._check()
        if self._native.in_transaction:
            self._native.start("ROLLBACK")

    def interrupt(self) -> None:
        """Stops what runs, from any thread."""
        self._native.interrupt()

    def close(self) -> None:
        """Closes it; a transaction that is open is rolled back. It can't be used afterwards."""
        self._check()
        self._native.close()

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        """Commits, or rolls back after an exception, and closes."""
        if self._native.closed:
            return
        try:
            self.commit() if kind is None else self.rollback()
        finally:
            self._native.close()


def connect(
    database: str | os.PathLike[str] | None = None,
    *,
    memory: int | str | None = None,
    threads: int | None = None,
    autocommit: bool = True,
) -> Connection:
    """A connection to the tables of a folder, or to none: files are then named by their paths."""
    path = None if database is None else os.fspath(database)
    return Connection(_native.Connection(path, memory, threads), autocommit)
