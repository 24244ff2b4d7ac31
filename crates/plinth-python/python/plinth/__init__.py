"""Columnar tables on SSD, answered with SQL.

>>> import plinth
>>> con = plinth.connect()
>>> con.sql("SELECT 40 + 2 AS answer").fetchall()
[(42,)]

A connection reads Plinth, Parquet, CSV and JSON files by their paths, the tables of a folder by their names, and data of this
process by the names of variables. Results are streams of Arrow's: pandas, Polars, pyarrow and DuckDB take them as they are.
"""

from plinth._connection import Connection, connect, open, read_csv, read_json, read_parquet, scan, sql, write
from plinth._native import (
    DatabaseError,
    DataError,
    Error,
    IntegrityError,
    InterfaceError,
    InternalError,
    InterruptedError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    Warning,
)
from plinth._result import Result
from plinth._table import Table
from plinth._types import Interval

__all__ = [
    "Connection",
    "DataError",
    "DatabaseError",
    "Error",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "InterruptedError",
    "Interval",
    "NotSupportedError",
    "OperationalError",
    "ProgrammingError",
    "Result",
    "Table",
    "Warning",
    "connect",
    "open",
    "read_csv",
    "read_json",
    "read_parquet",
    "scan",
    "sql",
    "write",
]
