"""The same rows in the file formats Plinth's files are compared with, a piece of the rows in memory at a time."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from ..engines import work
from ..machine import installed

DICTIONARY_LIMIT = 64 << 20
ROW_GROUP = 1 << 20


def binary_as_text(schema):
    """A schema whose binary columns are text, as ClickBench's hits.parquet means them."""
    fields = [f.with_type(pa.string()) if pa.types.is_binary(f.type) else f for f in schema]
    return pa.schema(fields)


def rewrite(source, target, compression, dictionary_limit=None):
    """Writes Parquet by pyarrow: row groups of 2^20 rows, zstd of level 3 or snappy."""
    target = Path(target)
    partial = target.with_name(target.name + ".partial")
    file = pq.ParquetFile(source)
    schema = binary_as_text(file.schema_arrow)
    options = {"compression": compression}
    if compression == "zstd":
        options["compression_level"] = 3
    if dictionary_limit:
        options["dictionary_pagesize_limit"] = dictionary_limit
    with pq.ParquetWriter(partial, schema, **options) as writer:
        for batch in file.iter_batches(batch_size=ROW_GROUP):
            writer.write_table(pa.Table.from_batches([batch]).cast(schema), row_group_size=ROW_GROUP)
    partial.rename(target)


def by_duckdb(source, target, compression):
    """Writes Parquet by DuckDB, with its defaults otherwise."""
    partial = Path(target).with_name(Path(target).name + ".partial")
    sql = f"copy (from read_parquet('{source}')) to '{partial}' (format parquet, compression {compression})"
    work({"engine": "duckdb", "sql": sql, "repeat": 1, "threads": 2})
    partial.rename(target)


def by_vortex(source, target):
    import vortex

    file = pq.ParquetFile(source)
    reader = pa.RecordBatchReader.from_batches(file.schema_arrow, file.iter_batches(batch_size=1 << 17))
    partial = Path(target).with_name(Path(target).name + ".partial")
    vortex.io.write(reader, str(partial))
    partial.rename(target)


WRITERS = {
    "Parquet zstd, pyarrow": (lambda s, t: rewrite(s, t, "zstd", DICTIONARY_LIMIT), "pyarrow-zstd.parquet"),
    "Parquet snappy, pyarrow": (lambda s, t: rewrite(s, t, "snappy", DICTIONARY_LIMIT), "pyarrow-snappy.parquet"),
    "Parquet zstd, DuckDB": (lambda s, t: by_duckdb(s, t, "zstd"), "duckdb-zstd.parquet"),
    "Parquet snappy, DuckDB": (lambda s, t: by_duckdb(s, t, "snappy"), "duckdb-snappy.parquet"),
    "Vortex": (by_vortex, "vortex"),
}


def sizes(sources, folder, say):
    """Bytes of all tables in each format; files are made, measured and removed again, for they are only weighed."""
    folder.mkdir(parents=True, exist_ok=True)
    found = {}
    for name, (write, ending) in WRITERS.items():
        if name == "Vortex" and not installed("vortex-data"):
            say("  sizes: skipped: Vortex, the package vortex-data is not installed")
            continue
        total = 0
        for table, source in sources.items():
            target = folder / f"{table}.{ending}"
            write(source, target)
            total += target.stat().st_size
            target.unlink()
        found[name] = total
        say(f"  sizes: {name}: {total:,} bytes")
    return found
