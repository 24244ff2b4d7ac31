"""A table of awkward values, the same on every run and machine."""

import datetime as dt
import random
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

ROWS = 30_000
EPOCH = dt.date(1970, 1, 1)

# Empty, blank, quoted, escaped, combining, right to left, beyond the basic plane, almost equal, sharing long prefixes.
TEXTS = [
    "", " ", "  two", "quote\"d", "it's", "comma, and\nline", "tab\there", "back\\slash", "%", "_", "a_b", "a%b", "100%",
    "Straße", "STRASSE", "straße", "e\u0301", "é", "שלום", "日本語", "日本", "🦀", "🦀🦀", "\u0001", "null", "NULL", "NaN",
    "a", "A", "aa", "aA", "prefix-common-and-long-0001", "prefix-common-and-long-0002", "prefix-common-and-long",
    "z" * 12, "z" * 13, "z" * 300,
]  # fmt: skip

FLOATS = [0.0, -0.0, 1.0, -1.0, 0.1, 1e-300, -1e300, 5e-324, 123456.789, float("inf"), float("-inf"), float("nan")]


def schema():
    point = pa.struct([("x", pa.int32()), ("label", pa.string()), ("deep", pa.struct([("y", pa.float64())]))])
    return pa.schema(
        [
            pa.field("id", pa.int64(), nullable=False),
            ("tiny", pa.int8()),
            ("small", pa.uint16()),
            ("whole", pa.int32()),
            ("wide", pa.int64()),
            ("unsigned", pa.uint64()),
            ("flag", pa.bool_()),
            ("price", pa.decimal128(12, 2)),
            ("exact", pa.decimal128(38, 10)),
            ("ratio", pa.float64()),
            ("odd", pa.float64()),
            ("single", pa.float32()),
            ("day", pa.date32()),
            ("moment", pa.timestamp("us")),
            ("zoned", pa.timestamp("us", tz="UTC")),
            ("low", pa.string()),
            ("text", pa.string()),
            ("key", pa.string()),
            ("comment", pa.string()),
            ("bytes", pa.binary()),
            ("nothing", pa.int32()),
            ("same", pa.string()),
            ("run", pa.int32()),
            ("tags", pa.list_(pa.string())),
            ("numbers", pa.list_(pa.int64())),
            ("point", point),
            ("points", pa.list_(pa.struct([("x", pa.int32()), ("label", pa.string())]))),
            ("attributes", pa.map_(pa.string(), pa.int64())),
        ]
    )


def rows(count):
    random_ = random.Random(20_240_229)
    pick, below, chance = random_.choice, random_.randrange, random_.random

    def maybe(value, share=0.1):
        return None if chance() < share else value

    words = [f"w{below(10**9):x}" for _ in range(500)]
    for i in range(count):
        label = maybe(pick(TEXTS))
        yield {
            "id": i,
            "tiny": maybe(below(-128, 128)),
            "small": maybe(below(65_536)),
            "whole": maybe(pick([-(2**31), 2**31 - 1, 0, -1, below(-1000, 1000)])),
            "wide": maybe(pick([-(2**62), 2**62, below(-(2**40), 2**40), i])),
            "unsigned": maybe(pick([0, 2**64 - 1, 2**63, below(1000)])),
            "flag": maybe(chance() < 0.3, 0.2),
            "price": maybe(Decimal(below(-1_000_000, 1_000_000)).scaleb(-2)),
            "exact": maybe(Decimal(below(-(10**24), 10**24)).scaleb(-10)),
            "ratio": maybe(below(-10_000, 10_000) / 64),
            "odd": maybe(pick(FLOATS), 0.05),
            "single": maybe(below(-4096, 4096) / 16),
            "day": maybe(EPOCH + dt.timedelta(days=below(-40_000, 40_000))),
            "moment": maybe(dt.datetime(1969, 12, 31, 23, 59, 59) + dt.timedelta(microseconds=below(-(10**15), 10**15))),
            "zoned": maybe(dt.datetime(2024, 3, 31, tzinfo=dt.timezone.utc) + dt.timedelta(seconds=below(-(10**6), 10**6))),
            "low": maybe(pick(["red", "green", "blue", ""])),
            "text": label,
            "key": f"key-{i * 7919 % count:08d}" if i % 97 else None,
            "comment": maybe(" ".join(pick(words) for _ in range(below(12)))),
            "bytes": maybe(bytes(below(256) for _ in range(below(6)))),
            "nothing": None,
            "same": "one value",
            "run": i // 1000 if i // 5000 % 2 else None,
            "tags": maybe([maybe(pick(TEXTS)) for _ in range(below(4))]),
            "numbers": maybe([maybe(below(-5, 50)) for _ in range(below(5))]),
            "point": maybe({"x": maybe(below(100)), "label": label, "deep": maybe({"y": maybe(below(100) / 4)})}),
            "points": maybe([maybe({"x": maybe(below(9)), "label": maybe(pick(TEXTS))}) for _ in range(below(3))]),
            "attributes": maybe([(k, maybe(below(100))) for k in ("a", "b", "ü", "")[: below(5)]]),
        }


def write(folder: Path):
    """Writes nasty.parquet, and other.parquet to join with: half of its keys are found, some are null, some twice."""
    table = pa.Table.from_pylist(list(rows(ROWS)), schema=schema())
    pq.write_table(table, folder / "nasty.parquet", row_group_size=7_000, compression="zstd")
    keys = [None if i % 50 == 0 else f"key-{i * 2 // 3 * 2:08d}" for i in range(5_000)]
    other = {"k": keys, "text": [TEXTS[i % len(TEXTS)] for i in range(5_000)], "n": [i % 77 or None for i in range(5_000)]}
    pq.write_table(pa.table(other), folder / "other.parquet")
