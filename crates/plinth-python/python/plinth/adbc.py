"""Plinth as a driver of ADBC, the database interface of Arrow, for programs and libraries that speak it.

>>> from plinth import adbc
>>> with adbc.connect() as con, con.cursor() as cursor:
...     cursor.execute("SELECT ? + 1 AS n", [41]).fetch_arrow_table().to_pydict()
{'n': [42]}

It needs ``adbc-driver-manager``: ``pip install 'plinth[adbc]'``. The driver is the shared library of this package, which other driver
managers load by :func:`driver` and :data:`ENTRYPOINT`.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from plinth import _native

if TYPE_CHECKING:
    import adbc_driver_manager.dbapi

__all__ = ["ENTRYPOINT", "connect", "driver"]

#: The function of the library that fills in a driver.
ENTRYPOINT = "PlinthDriverInit"


def driver() -> str:
    """The path of the shared library that is the driver."""
    path = _native.__file__
    assert path is not None
    return path


def connect(
    path: str | os.PathLike[str] | None = None,
    *,
    memory: int | str | None = None,
    threads: int | None = None,
    create: bool = False,
    autocommit: bool | None = None,
    **options: Any,
) -> adbc_driver_manager.dbapi.Connection:
    """A connection of DB-API 2.0 with Arrow's extensions (``fetch_arrow_table``, ``adbc_ingest`` and others).

    ``path`` is a folder of tables (``create`` makes it), or None for tables in memory; ``memory`` and ``threads`` are those of
    ``plinth.connect``. Without ``autocommit`` changes wait for ``commit()``, as DB-API has it; tables in memory have no transactions,
    so that each statement is committed by itself there. Further options are those of ``adbc_driver_manager.dbapi.connect``.

    Raises OperationalError of that package if the folder can't be read.
    """
    from adbc_driver_manager import dbapi

    settings = {
        "path": None if path is None else os.fspath(path),
        "memory": None if memory is None else str(memory),
        "threads": None if threads is None else str(threads),
        "create": "true" if create else None,
    }
    given = {**options.pop("db_kwargs", {}), **{key: value for key, value in settings.items() if value is not None}}
    wanted = path is None if autocommit is None else autocommit
    return dbapi.connect(driver(), entrypoint=ENTRYPOINT, db_kwargs=given, autocommit=wanted, **options)
