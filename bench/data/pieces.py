"""TPC-H with lineitem in many files: encoded and as it is in memory, as Parquet, in one file of numbers, in thousands of files."""

import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from .. import imports, process
from ..engines import Tables
from . import parquet, tpch

NUMBERS = [
    "l_orderkey",
    "l_partkey",
    "l_suppkey",
    "l_linenumber",
    "l_quantity",
    "l_extendedprice",
    "l_discount",
    "l_tax",
]

AT_ONCE = 8


@dataclass
class Pieces:
    """All forms of the data; each of `encoded`, `plain`, `many` and `one` is lineitem."""

    tables: Tables
    encoded: list
    plain: list
    # One file of eight columns of eight bytes, which are as in memory: nothing is decoded.
    numbers: Path
    many: list
    one: Path


def make(options, scale, files, many, times):
    """Makes what is missing. `times` is how often the file of numbers holds the rows, so that reading it takes a while."""
    folder = options.folder / f"io-{scale:g}-{files}-{many}"
    if not (folder / "complete").exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        sources = tpch.make(options.folder / f"tpch-{scale:g}", scale)
        _make(folder, sources, options, files, many, times)
        (folder / "complete").touch()

    def listed(*path):
        return sorted(folder.joinpath(*path).iterdir())

    others = [table for table in tpch.TABLES if table != "lineitem"]
    tables = Tables(
        {"lineitem": listed("encoded", "lineitem"), **{t: [folder / "encoded" / f"{t}.plinth"] for t in others}},
        {"lineitem": listed("parquet", "lineitem"), **{t: [folder / "parquet" / f"{t}.parquet"] for t in others}},
    )
    return Pieces(
        tables,
        encoded=tables.plinth["lineitem"],
        plain=listed("plain"),
        numbers=folder / "numbers" / "numbers.plinth",
        many=listed("many", "lineitem"),
        one=folder / "one" / "lineitem.plinth",
    )


def _make(folder, sources, options, files, many, times):
    program, threads = options.plinth, options.threads
    pieces = {f.stem: f for f in parquet.split(sources["lineitem"], folder / "parquet" / "lineitem", files)}
    others = {table: source for table, source in sources.items() if table != "lineitem"}
    for table, source in others.items():
        os.link(source, folder / "parquet" / f"{table}.parquet")
    imports.by_plinth(program, others, folder / "encoded", threads)
    imports.by_plinth(program, pieces, folder / "encoded" / "lineitem", threads)
    imports.by_plinth(program, pieces, folder / "plain", threads, more=["--plain"])
    one = {"lineitem": sources["lineitem"]}
    imports.by_plinth(program, one, folder / "one", threads)
    numbers(sources["lineitem"], folder / "numbers.parquet", times)
    imports.by_plinth(program, {"numbers": folder / "numbers.parquet"}, folder / "numbers", threads, more=["--plain"])
    (folder / "numbers.parquet").unlink()
    scatter(program, folder / "one", folder / "many" / "lineitem", many)


def numbers(source, target, times):
    """Columns of eight bytes each, of which the encodings make nothing when they are told to leave values as they are."""
    columns = [pa.field(name, pa.int64() if i < 4 else pa.float64()) for i, name in enumerate(NUMBERS)]
    with pq.ParquetWriter(target, pa.schema(columns), compression="snappy") as writer:
        for _ in range(times):
            for batch in pq.ParquetFile(source).iter_batches(1 << 17, columns=NUMBERS):
                arrays = [pc.cast(batch.column(f.name), f.type) for f in columns]
                writer.write_batch(pa.record_batch(arrays, schema=pa.schema(columns)))


def scatter(program, folder, target, count):
    """The rows of a table `lineitem`, in the order of its key, in so many files; they must hold what the table holds."""
    target.mkdir(parents=True)

    def ask(db, sql):
        return process.run([program, "sql", "--db", db, "--format", "csv"], sql).stdout

    last = int(ask(folder, "select max(l_orderkey) as m from lineitem").split()[-1])
    each = last // count + 1

    def some(first):
        statements = [
            f"copy (select * from lineitem where l_orderkey between {n * each} and {n * each + each - 1})"
            f" to '{target}/{n:05}.plinth'"
            for n in range(first, count, AT_ONCE)
        ]
        ask(folder, ";\n".join(statements))

    # Each file waits until it is on the device: several can wait at once.
    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(some, range(min(AT_ONCE, count))))
    same = "select count(*) as c, sum(l_orderkey) as k, sum(l_extendedprice) as e, max(l_comment) as m from lineitem"
    if ask(folder, same) != ask(target.parent, same):
        raise process.Failed(f"{target} does not hold the rows of {folder}")
