"""What becomes of values: from Python to SQL and back, and from columns of Arrow's."""

import datetime as dt
import decimal
import math
import uuid

import numpy
import pandas
import pyarrow as pa
import pytest

import plinth

UTC = dt.timezone.utc

SAME = [
    None,
    True,
    False,
    0,
    -5,
    2**63 - 1,
    -(2**63),
    2**63,
    2**64 - 1,
    1.5,
    -0.0,
    math.inf,
    "",
    "text with 'quotes', \0 and 🦀",
    b"",
    b"\x00\xff",
    dt.date(1, 1, 1),
    dt.date(1969, 12, 31),
    dt.date(2024, 2, 29),
    dt.date(9999, 12, 31),
    dt.datetime(1, 1, 1),
    dt.datetime(1969, 12, 31, 23, 59, 59, 999_999),
    dt.datetime(2024, 2, 29, 12, 30, 0, 1),
    dt.datetime(9999, 12, 31, 23, 59, 59, 999_999),
    dt.datetime(2024, 7, 1, tzinfo=UTC),
    dt.time(0, 0),
    dt.time(23, 59, 59, 999_999),
    dt.timedelta(0),
    dt.timedelta(days=-3, microseconds=1),
    decimal.Decimal("0"),
    decimal.Decimal("-12.340"),
    decimal.Decimal("1E-10"),
    decimal.Decimal("9" * 38),
    decimal.Decimal("9" * 40 + ".5"),
    [],
    [1, 2, None],
    ["a", None],
    [[1], [], None],
    {"a": 1, "b": {"c": "x"}},
    [{"a": 1}, {"a": 2}],
]


@pytest.mark.parametrize("value", SAME, ids=repr)
def test_parameters_come_back(con, value):
    for result in (con.sql("SELECT ? AS v", [value]), con.sql("SELECT $v AS v", {"v": value})):
        ((found,),) = result.fetchall()
        assert found == value and type(found) is type(value)
    if isinstance(value, decimal.Decimal):
        assert found.as_tuple() == value.as_tuple()


OTHER = [
    (2**64, decimal.Decimal(2**64)),
    (decimal.Decimal("1E+3"), decimal.Decimal(1000)),
    ((1, 2), [1, 2]),
    ([1, 2.5], [1.0, 2.5]),
    (bytearray(b"x"), b"x"),
    (memoryview(b"x"), b"x"),
    (uuid.UUID(int=5), str(uuid.UUID(int=5))),
    (numpy.int32(7), 7),
    (numpy.float32(0.5), 0.5),
    (numpy.bool_(True), True),
    (numpy.str_("s"), "s"),
    (numpy.array([1, 2]), [1, 2]),
    (numpy.datetime64("2024-01-02T03:04:05"), dt.datetime(2024, 1, 2, 3, 4, 5)),
    (dt.datetime(2024, 7, 1, 12, tzinfo=dt.timezone(dt.timedelta(hours=2))), dt.datetime(2024, 7, 1, 10, tzinfo=UTC)),
    (pandas.Timestamp("2024-01-01"), dt.datetime(2024, 1, 1)),
]


@pytest.mark.parametrize("value, expected", OTHER, ids=lambda value: repr(value))
def test_other_parameters_become_what_sql_has(con, value, expected):
    assert con.sql("SELECT ? AS v", [value]).fetchall() == [(expected,)]


def test_nan_comes_back(con):
    assert math.isnan(con.sql("SELECT ?", [math.nan]).fetchall()[0][0])


def test_nanoseconds_of_a_parameter_are_kept(con):
    at = pandas.Timestamp("2024-01-01T00:00:00.000000001")
    assert con.sql("SELECT ? AS v", [at]).arrow()["v"].type == pa.timestamp("ns")


@pytest.mark.parametrize(
    "value, error",
    [
        (object(), plinth.NotSupportedError),
        (1j, plinth.NotSupportedError),
        (10**80, plinth.DataError),
        (decimal.Decimal("NaN"), plinth.DataError),
        (decimal.Decimal("1E+100"), plinth.DataError),
        (dt.time(1, tzinfo=UTC), plinth.NotSupportedError),
        ({}, plinth.DataError),
        ({1: 2}, plinth.DataError),
        ([1, "x", b"y", dt.date(2024, 1, 1)], plinth.DataError),
    ],
    ids=repr,
)
def test_parameters_that_sql_has_not_are_refused(con, value, error):
    with pytest.raises(error):
        con.sql("SELECT ? AS v", [value])


def test_parameters_that_contain_themselves_are_refused(con):
    endless = []
    endless.append(endless)
    with pytest.raises(plinth.DataError, match="deep"):
        con.sql("SELECT ?", [endless])


def test_parameters_are_compared_by_the_engine(con):
    series = "SELECT count(*) FROM generate_series(1, 10) t WHERE "
    assert con.sql(series + "value > ? AND value <= ?", [3, 7.5]).fetchall() == [(4,)]
    assert con.sql(series + "value < ?", [decimal.Decimal("2.5")]).fetchall() == [(2,)]
    assert con.sql("SELECT value FROM generate_series(1, 9) LIMIT ?", [2]).fetchall() == [(1,), (2,)]
    assert con.sql("SELECT array_has(?, 'b'), ? || 'x'", [["a", "b"], "y"]).fetchall() == [(True, "yx")]
    assert con.sql("SELECT DATE '2024-03-01' > ?", [dt.date(2024, 2, 29)]).fetchall() == [(True,)]
    assert con.sql("SELECT DATE '2024-03-01' = ?", ["2024-03-01"]).fetchall() == [(True,)]
    # The text has them in another order than the planner meets them.
    ordered = "SELECT ? AS a, value FROM generate_series(1, 5) WHERE value > ? ORDER BY 2 LIMIT ? OFFSET ?"
    assert con.sql(ordered, ["x", 1, 2, 1]).fetchall() == [("x", 3), ("x", 4)]


COLUMNS = {
    "null": (pa.null(), [None, None]),
    "bool": (pa.bool_(), [True, None]),
    "int8": (pa.int8(), [-128, 127]),
    "int16": (pa.int16(), [-1, None]),
    "int32": (pa.int32(), [-1, None]),
    "int64": (pa.int64(), [-(2**63), None]),
    "uint8": (pa.uint8(), [255, None]),
    "uint16": (pa.uint16(), [65535, None]),
    "uint32": (pa.uint32(), [2**32 - 1, None]),
    "uint64": (pa.uint64(), [2**64 - 1, None]),
    "float16": (pa.float16(), [1.5, None]),
    "float32": (pa.float32(), [0.5, None]),
    "float64": (pa.float64(), [0.1, None]),
    "string": (pa.string(), ["a", None, ""]),
    "large_string": (pa.large_string(), ["a", None]),
    "string_view": (pa.string_view(), ["a", None, "longer than twelve bytes"]),
    "binary": (pa.binary(), [b"a", None]),
    "large_binary": (pa.large_binary(), [b"a", None]),
    "binary_view": (pa.binary_view(), [b"a", None, b"longer than twelve bytes"]),
    "fixed_binary": (pa.binary(2), [b"ab", None]),
    "date32": (pa.date32(), [dt.date(2024, 1, 2), None]),
    "date64": (pa.date64(), [dt.date(1960, 1, 2), None]),
    "time32s": (pa.time32("s"), [dt.time(1, 2, 3), None]),
    "time32ms": (pa.time32("ms"), [dt.time(1, 2, 3, 4000), None]),
    "time64us": (pa.time64("us"), [dt.time(1, 2, 3, 4), None]),
    "time64ns": (pa.time64("ns"), [dt.time(1, 2, 3, 4), None]),
    "timestamp_s": (pa.timestamp("s"), [dt.datetime(1960, 1, 1, 1, 2, 3), None]),
    "timestamp_ms": (pa.timestamp("ms"), [dt.datetime(1960, 1, 1, 1, 2, 3, 4000), None]),
    "timestamp_us": (pa.timestamp("us"), [dt.datetime(1960, 1, 1, 1, 2, 3, 4), None]),
    "timestamp_ns": (pa.timestamp("ns"), [dt.datetime(1960, 1, 1, 1, 2, 3, 4), None]),
    "duration_s": (pa.duration("s"), [dt.timedelta(days=-2, seconds=1), None]),
    "duration_us": (pa.duration("us"), [dt.timedelta(microseconds=5), None]),
    "decimal32": (pa.decimal32(5, 2), [decimal.Decimal("-123.45"), None]),
    "decimal64": (pa.decimal64(15, 3), [decimal.Decimal("1.500"), None]),
    "decimal128": (pa.decimal128(38, 10), [decimal.Decimal("-0.0000000001"), None]),
    "decimal256": (pa.decimal256(50, 2), [decimal.Decimal("1" * 48 + ".25"), None]),
    "list": (pa.list_(pa.int32()), [[1, None], [], None]),
    "large_list": (pa.large_list(pa.string()), [["a"], None]),
    "fixed_list": (pa.list_(pa.int8(), 2), [[1, 2], None]),
    "list_view": (pa.list_view(pa.int32()), [[1, None], [], None]),
    "struct": (pa.struct([("a", pa.int8()), ("b", pa.string())]), [{"a": 1, "b": None}, None]),
    "map": (pa.map_(pa.string(), pa.int64()), [[("a", 1), ("b", None)], None]),
    "dictionary": (pa.dictionary(pa.int8(), pa.string()), ["a", "b", None, "a"]),
}


def there(name, value):
    return dict(value) if name == "map" and value is not None else value


@pytest.mark.parametrize("name", COLUMNS)
def test_columns_of_arrow_come_back_as_they_were(con, name):
    of, values = COLUMNS[name]
    data = pa.table({"v": pa.array(values, of)})
    result = con.sql("SELECT v FROM data")
    assert result.fetchall() == [(there(name, value),) for value in values]
    assert result.arrow() == data
    # Rows from the middle: arrays with offsets.
    sliced = data.slice(1)
    result = con.sql("SELECT v FROM sliced")
    assert result.fetchall() == [(there(name, value),) for value in values[1:]]
    assert result.arrow() == sliced
    doubled = pa.concat_tables([data, data])
    assert con.sql("SELECT v FROM doubled").arrow() == doubled


@pytest.mark.parametrize("name", sorted(set(COLUMNS) - {"null"}))
def test_files_keep_values(con, tmp_path, name):
    of, values = COLUMNS[name]
    data = pa.table({"v": pa.array(values, of), "at": pa.array(range(len(values)))})
    path = tmp_path / "x.plinth"
    assert con.write(path, data) == len(values)
    found = con.sql(f"SELECT v FROM '{path}' ORDER BY at").fetchall()
    assert found == [(there(name, value),) for value in values]


def test_zones_are_kept(con):
    import zoneinfo

    at = dt.datetime(2024, 7, 1, 12, tzinfo=UTC)
    for zone, hours in [("UTC", 0), ("Europe/Berlin", 2), ("+05:30", 5.5), ("-03:00", -3)]:
        data = pa.table({"v": pa.array([at, None], pa.timestamp("us", zone))})
        result = con.sql("SELECT v FROM data")
        (found,), (missing,) = result.fetchall()
        assert found == at and found.utcoffset() == dt.timedelta(hours=hours) and missing is None
        assert result.arrow() == data
    berlin = con.sql("SELECT ? AS v", [dt.datetime(2024, 7, 1, 14, tzinfo=zoneinfo.ZoneInfo("Europe/Berlin"))])
    assert berlin.fetchall() == [(at,)]


def test_uuids_are_uuids(con):
    values = [uuid.uuid4(), None, uuid.UUID(int=0)]
    storage = pa.array([v and v.bytes for v in values], pa.binary(16))
    data = pa.table({"v": pa.ExtensionArray.from_storage(pa.uuid(), storage)})
    result = con.sql("SELECT v FROM data")
    assert [row[0] for row in result.fetchall()] == values
    assert result.arrow()["v"].type == pa.uuid()


def test_intervals_have_three_parts(con):
    (value,) = con.sql("SELECT INTERVAL '1 month 2 days 3 seconds'").fetchone()
    assert value == plinth.Interval(1, 2, 3_000_000_000)


def test_dates_that_python_has_not_are_told(con):
    data = pa.table({"v": pa.array([10**6 * 4], pa.date32())})
    result = con.sql("SELECT v FROM data")
    with pytest.raises(plinth.DataError, match='column "v": a date outside'):
        result.fetchall()
    assert result.arrow() == data


def test_unions_pass_through(con):
    dense = pa.UnionArray.from_dense(pa.array([0, 1], pa.int8()), pa.array([0, 0], pa.int32()), [pa.array([1]), pa.array(["a"])])
    sparse = pa.UnionArray.from_sparse(pa.array([0, 1], pa.int8()), [pa.array([1, 2]), pa.array(["a", "b"])])
    data = pa.table({"d": dense, "s": sparse})
    assert con.sql("SELECT d, s FROM data").arrow().equals(data)
    with pytest.raises(plinth.DataError, match="no counterpart in Python"):
        con.sql("SELECT d FROM data").fetchall()


def test_types_that_are_not_known_are_named(con):
    data = pa.table({"v": pa.RunEndEncodedArray.from_arrays([1, 3], [5, 6])})
    with pytest.raises(plinth.InterfaceError, match="not known here"):
        con.sql("SELECT v FROM data")
