"""The same rows in the file formats Plinth's files are compared with, a piece of the rows in memory at a time."""

import os
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from ..engines import work
from ..files import listed
from ..machine import installed

DICTIONARY_LIMIT = 64 << 20
ROW_GROUP = 1 << 20


def binary_as_text(schema):
    """A schema whose binary columns are text, as ClickBench's hits.parquet means them."""
    fields = [f.with_type(pa.string()) if pa.types.is_binary(f.type) else f for f in schema]
    return pa.schema(fields)


def batches(source, size):
    """The rows of a Parquet file or a list of them, in their order."""
    for file in listed(source):
        yield from pq.ParquetFile(file).iter_batches(batch_size=size)


def rewrite(source, target, compression, dictionary_limit=None):
    """Writes a file or a list of them as one Parquet file, by pyarrow: row groups of 2^20 rows, zstd of level 3 or
    snappy."""
    target = Path(target)
    partial = target.with_name(target.name + ".partial")
    schema = binary_as_text(pq.read_schema(listed(source)[0]))
    options = {"compression": compression}
    if compression == "zstd":
        options["compression_level"] = 3
    if dictionary_limit:
        options["dictionary_pagesize_limit"] = dictionary_limit
    with pq.ParquetWriter(partial, schema, **options) as writer:
        for batch in batches(source, ROW_GROUP):
            writer.write_table(pa.Table.from_batches([batch]).cast(schema), row_group_size=ROW_GROUP)
    partial.rename(target)


def split(source, folder, count):
    """The rows of a Parquet file in so many files of a folder, in their order, by zstd of level 3."""
    folder.mkdir(parents=True)
    file = pq.ParquetFile(source)
    each = -(-file.metadata.num_rows // count)
    targets, writer, room = [], None, 0
    for batch in file.iter_batches(batch_size=each):
        while batch.num_rows:
            if room == 0:
                if writer:
                    writer.close()
                targets.append(folder / f"{len(targets):05}.parquet")
                writer = pq.ParquetWriter(targets[-1], batch.schema, compression="zstd", compression_level=3)
                room = each
            writer.write_batch(batch.slice(0, room))
            room, batch = room - min(room, batch.num_rows), batch.slice(room)
    writer.close()
    return targets


def rewrite_all(compression):
    def write(pairs):
        for source, target in pairs:
            rewrite(source, target, compression, DICTIONARY_LIMIT)

    return write


def strings(source):
    return [str(file) for file in listed(source)]


def by_duckdb(compression):
    """Writes Parquet by DuckDB, with its defaults otherwise."""

    def write(pairs):
        form = f"(format parquet, compression {compression})"
        sql = "; ".join(f"copy (from read_parquet({strings(source)})) to '{target}' {form}" for source, target in pairs)
        work({"engine": "duckdb", "sql": sql, "repeat": 1, "threads": os.cpu_count()})

    return write


def by_vortex(pairs):
    import vortex

    for source, target in pairs:
        reader = pa.RecordBatchReader.from_batches(pq.read_schema(listed(source)[0]), batches(source, 1 << 17))
        vortex.io.write(reader, str(target))


WRITERS = {
    "Parquet zstd, pyarrow": rewrite_all("zstd"),
    "Parquet snappy, pyarrow": rewrite_all("snappy"),
    "Parquet zstd, DuckDB": by_duckdb("zstd"),
    "Parquet snappy, DuckDB": by_duckdb("snappy"),
    "Vortex": by_vortex,
}


def sizes(sources, folder, say, writers=WRITERS):
    """Bytes of all tables in each format of some, by name; files are made, measured and removed again, for they are only weighed."""
    found = {}
    for name in writers:
        if name == "Vortex" and not installed("vortex-data"):
            say("  sizes: skipped: Vortex, the package vortex-data is not installed")
            continue
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        pairs = [(source, folder / table) for table, source in sources.items()]
        WRITERS[name](pairs)
        found[name] = sum(target.stat().st_size for _, target in pairs)
        say(f"  sizes: {name}: {found[name]:,} bytes")
    shutil.rmtree(folder, ignore_errors=True)
    return found
