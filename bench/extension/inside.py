"""DuckDB with the extension, over Plinth files, Parquet files and its own tables."""

import resource
import time

import duckdb

SETTINGS = ("plinth_io", "plinth_fresh_buffers", "plinth_read_ahead", "plinth_pushdown")


def connect(extension, threads):
    base = duckdb.connect(config={"allow_unsigned_extensions": "true", "threads": threads})
    base.execute(f"LOAD '{extension}'")
    # What was read stays with neither of them, where files are read cold.
    base.execute("SET enable_external_file_cache = false")
    return base


def tables(base, kinds):
    """Schemas of one name a kind: {kind: {table: path or list of paths}}; a kind without paths is made of Parquet."""
    for kind, of in kinds.items():
        base.execute(f"CREATE SCHEMA {kind}")
        for name, path in of.items():
            made = "TABLE" if kind == "own" else "VIEW"
            base.execute(f"CREATE {made} {kind}.{name} AS FROM '{path}'")


def counters(base):
    return dict(base.execute("FROM plinth_buffers()").fetchall())


def processor():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def ask(base, kind, sql):
    """Rows, seconds, seconds of processors."""
    base.execute(f"SET schema = '{kind}'")
    begun, used = time.perf_counter(), processor()
    rows = base.execute(sql).fetchall()
    return rows, time.perf_counter() - begun, processor() - used


def settle(base, settings):
    """The given settings, and the defaults of the others."""
    for name in SETTINGS:
        base.execute(f"SET {name} = '{settings[name]}'" if name in settings else f"RESET {name}")
