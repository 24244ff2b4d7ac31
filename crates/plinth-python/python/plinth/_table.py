"""Tables by their names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from plinth import _native
from plinth._native import InterfaceError, ProgrammingError
from plinth._pushdown import quoted
from plinth._result import Result
from plinth._scan import _Source, dataset, lazy_frame
from plinth._variables import as_table

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow.dataset

#: Keys of one statement.
_AT_ONCE = 1000


def data_of(data: Any) -> Any:
    """The data as it is best read. Raises InterfaceError if it is none."""
    table = as_table(data)
    if table is None:
        raise InterfaceError(
            f"a value of type {type(data).__name__} gives no Arrow data (__arrow_c_stream__): a DataFrame, a table of pyarrow or a "
            "result is expected"
        )
    return table


class Table:
    """A table by its name: what ``Connection.table`` returns."""

    def __init__(self, native: _native.Connection, name: str) -> None:
        self._native = native
        self.name = name

    def _query(self) -> Result:
        return Result(self._native.start(f"SELECT * FROM {quoted(self.name)}"))

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return self._query().columns

    def __len__(self) -> int:
        return self._native.start(f"SELECT count(*) FROM {quoted(self.name)}").fetch()[0][0]

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
        return self._add(data, "")

    @property
    def key(self) -> list[str]:
        """The columns of the key; none if the table has no key."""
        return self._native.key(self.name)

    def _key(self) -> list[str]:
        if key := self.key:
            return key
        raise ProgrammingError(f"the table {self.name!r} has no key")

    def _add(self, data: Any, conflict: str) -> int:
        table = data_of(data)
        variables = {"plinth_data": table}.get
        names = [quoted(name) for name, _, _ in self._native.start("SELECT * FROM plinth_data", None, variables).columns]
        columns = ", ".join(names)
        query = f"INSERT INTO {quoted(self.name)} ({columns}) SELECT {columns} FROM plinth_data{conflict}"
        return self._native.start(query, None, variables).changed or 0

    def upsert(self, data: Any) -> int:
        """Adds rows, in place of those that have their keys: how many there were. No key may come twice.

        Columns that the data lacks become NULL in rows that are added, and stay as they are in others.
        """
        key = self._key()
        given = data_of(data)
        columns = [name for name, _, _ in self._native.start("SELECT * FROM plinth_data", None, lambda _: given).columns]
        sets = ", ".join(f"{quoted(name)} = excluded.{quoted(name)}" for name in columns if name not in key)
        action = f"DO UPDATE SET {sets}" if sets else "DO NOTHING"
        return self._add(data, f" ON CONFLICT ({', '.join(map(quoted, key))}) {action}")

    def _where(self, keys: Sequence[tuple[Any, ...]]) -> tuple[str, list[Any]]:
        names = [quoted(name) for name in self._key()]
        if len(names) == 1:
            return f"{names[0]} IN ({', '.join('?' * len(keys))})", [key for (key,) in keys]
        one = "(" + " AND ".join(f"{name} = ?" for name in names) + ")"
        return " OR ".join([one] * len(keys)), [part for key in keys for part in key]

    def _keys(self, keys: Any) -> list[tuple[Any, ...]]:
        """Keys as tuples: of a list, of an array of NumPy, of a Series."""
        width = len(self._key())
        values = keys.tolist() if hasattr(keys, "tolist") else keys.to_list() if hasattr(keys, "to_list") else list(keys)
        found = [tuple(key) if isinstance(key, (tuple, list)) else (key,) for key in values]
        for key in found:
            if len(key) != width:
                raise InterfaceError(f"{key!r}: the key of {self.name!r} has {width} columns: {', '.join(self.key)}")
        return found

    def delete(self, keys: Any) -> int:
        """Removes the rows that have some keys, all or none: how many there were.

        ``keys`` is a list of values or an array of NumPy; of tuples, where the key has several columns.
        """
        found = list(dict.fromkeys(self._keys(keys)))
        if not found:
            return 0
        where, values = self._where(found)
        return self._native.start(f"DELETE FROM {quoted(self.name)} WHERE {where}", values).changed or 0

    def get(self, key: Any) -> dict[str, Any] | None:
        """The row that has a key, or None."""
        return self.get_many([key])[0]

    def get_many(self, keys: Any) -> list[dict[str, Any] | None]:
        """The rows that have some keys, in the order of the keys: None where there is no row."""
        wanted = self._keys(keys)
        distinct = list(dict.fromkeys(wanted))
        names = self._key()
        rows: dict[tuple[Any, ...], dict[str, Any]] = {}
        for start in range(0, len(distinct), _AT_ONCE):
            where, values = self._where(distinct[start : start + _AT_ONCE])
            result = self._native.start(f"SELECT * FROM {quoted(self.name)} WHERE {where}", values)
            columns = [name for name, _, _ in result.columns]
            for row in result.fetch():
                one = dict(zip(columns, row))
                rows[tuple(one[name] for name in names)] = one
        return [rows.get(key) for key in wanted]

    def dataset(self) -> pyarrow.dataset.Dataset:
        """The table as a dataset of pyarrow: as ``plinth.open``."""
        return dataset(_Source(self._native, quoted(self.name)))

    def scan(self) -> polars.LazyFrame:
        """The table as a LazyFrame of Polars: as ``plinth.scan``."""
        return lazy_frame(_Source(self._native, quoted(self.name)))

    def __repr__(self) -> str:
        return repr(self._query())

    def _repr_html_(self) -> str:
        return self._query()._repr_html_()
