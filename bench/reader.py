"""Reads pairs of points from JSON by a Python package, in a process of its own, and tells what it found as JSON.

    python -m bench.reader WAY FILE THREADS RUNS

WAY is `duckdb-lines`, `duckdb-document`, `polars` or `pyarrow`. As the example program `json` does, a run adds up the four columns; rows
and digests are of one more run that no time is taken of.
"""

import json
import sys
import time

NAMES = ["x0", "y0", "x1", "y1"]


def digests(columns):
    """Of each column the sum of each value's bits times twice its place plus one."""
    import numpy

    def digest(column):
        bits = numpy.ascontiguousarray(column, dtype=numpy.float64).view(numpy.uint64)
        places = numpy.arange(len(bits), dtype=numpy.uint64) * 2 + 1
        return int((bits * places).sum(dtype=numpy.uint64))

    return [digest(column) for column in columns]


def duckdb_ways(way, file, threads):
    import duckdb

    base = duckdb.connect(config={"threads": threads})
    struct = "STRUCT(" + ", ".join(f"{name} DOUBLE" for name in NAMES) + ")"
    if way == "duckdb-lines":
        types = "{" + ", ".join(f"{name}: 'DOUBLE'" for name in NAMES) + "}"
        rows = f"read_json('{file}', format='newline_delimited', columns={types})"
    else:
        whole = f"read_json('{file}', columns={{pairs: '{struct}[]'}}, maximum_object_size=4294967295)"
        rows = f"(select unnest(pairs, recursive := true) from {whole})"

    def run():
        base.sql("select " + ", ".join(f"sum({name})" for name in NAMES) + f" from {rows}").fetchall()

    def columns():
        table = base.sql(f"select {', '.join(NAMES)} from {rows}").to_arrow_table()
        return [table[name].to_numpy() for name in NAMES]

    return run, columns


def polars_ways(file):
    import polars

    def frame():
        schema = dict.fromkeys(NAMES, polars.Float64)
        return polars.scan_ndjson(file, schema=schema)

    def columns():
        found = frame().collect()
        return [found[name].to_numpy() for name in NAMES]

    return lambda: frame().sum().collect(), columns


def pyarrow_ways(file, threads):
    import pyarrow
    from pyarrow import compute
    from pyarrow import json as reader

    schema = pyarrow.schema([(name, pyarrow.float64()) for name in NAMES])

    def table():
        read = reader.ReadOptions(use_threads=threads > 1)
        return reader.read_json(file, read, reader.ParseOptions(explicit_schema=schema))

    def run():
        found = table()
        return [compute.sum(found[name]) for name in NAMES]

    return run, lambda: [found.to_numpy() for found in table().select(NAMES).columns]


def main():
    way, file, threads, runs = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    if way.startswith("duckdb"):
        run, columns = duckdb_ways(way, file, threads)
    elif way == "polars":
        run, columns = polars_ways(file)
    else:
        run, columns = pyarrow_ways(file, threads)
    seconds = []
    for _ in range(runs + 1):
        started = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - started)
    found = columns()
    print(json.dumps({"rows": len(found[0]), "digests": digests(found), "seconds": seconds[1:]}))


if __name__ == "__main__":
    main()
