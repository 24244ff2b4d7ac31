"""A peer that is a Python package, in a process of its own: a request as JSON on standard input, the answer as JSON
on standard output.

Only the engine is timed: from handing it a query to having all of its rows as Arrow (of Polars
as its frame, of Hyper as Python's values).
"""

import contextlib
import json
import sys
import time


def repeated(request, once):
    seconds = []
    for _ in range(request["repeat"]):
        started = time.perf_counter()
        result = once()
        seconds.append(time.perf_counter() - started)
    return result, seconds


def duckdb(request):
    import duckdb

    connection = duckdb.connect(config=_duckdb_config(request))
    if "database" in request:
        connection.execute(f"attach '{request['database']}' as bench (read_only); use bench")
    for name, files in request.get("tables", {}).items():
        connection.execute(f"create view {name} as select * from read_parquet({files!r})")
    return repeated(request, lambda: connection.execute(request["sql"]).to_arrow_table())


def _duckdb_config(request):
    config = {"threads": request["threads"]}
    if request.get("memory"):
        config["memory_limit"] = request["memory"]
    return config


def duckdb_import(request):
    """Creates a database of the latest storage version from Parquet files; the time ends when all of it is on disk."""
    import duckdb

    def once():
        connection = duckdb.connect(config=_duckdb_config(request))
        connection.execute(f"attach '{request['database']}' as bench (storage_version 'latest'); use bench")
        for name, files in request["tables"].items():
            connection.execute(
                f"create table {name} as select * from read_parquet({files!r}) {request.get('order', '')}"
            )
        connection.execute("checkpoint bench")
        connection.close()

    return repeated(request, once)


def duckdb_text(request):
    """Creates a database of the latest storage version from a text of a word a line; as above."""
    import duckdb

    def once():
        connection = duckdb.connect(config=_duckdb_config(request))
        connection.execute(f"attach '{request['database']}' as bench (storage_version 'latest'); use bench")
        connection.execute(
            f"create table words as select * from read_csv('{request['text']}', header=false, auto_detect=false,"
            f" columns={{'{request['column']}': 'VARCHAR'}}, delim=e'\\x01', quote='', escape='')"
        )
        connection.execute("checkpoint bench")
        connection.close()

    return repeated(request, once)


def _is_csv(request):
    return request["file"].endswith(".csv")


def duckdb_rows(request):
    """Creates a database of the latest storage version from CSV or NDJSON, with types as DuckDB infers them."""
    import duckdb

    def once():
        connection = duckdb.connect(config=_duckdb_config(request))
        connection.execute("set enable_progress_bar = false")
        connection.execute(f"attach '{request['target']}' as bench (storage_version 'latest'); use bench")
        read = "read_csv" if _is_csv(request) else "read_json"
        connection.execute(f"create table \"rows\" as select * from {read}('{request['file']}')")
        connection.execute("checkpoint bench")
        connection.close()

    return repeated(request, once)


def polars_rows(request):
    """Writes Parquet from CSV or NDJSON."""
    import polars as pl

    def once():
        scan = pl.scan_csv(request["file"], try_parse_dates=True) if _is_csv(request) else pl.scan_ndjson(request["file"])
        scan.sink_parquet(request["target"])

    return repeated(request, once)


def pyarrow_rows(request):
    """Writes Parquet from CSV or NDJSON."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyarrow import csv
    from pyarrow import json as reader

    pa.set_cpu_count(request["threads"])

    def once():
        table = csv.read_csv(request["file"]) if _is_csv(request) else reader.read_json(request["file"])
        pq.write_table(table, request["target"], compression="zstd")

    return repeated(request, once)


def pyarrow_text(request):
    """Writes Parquet from a text of a word a line, with zstd of level 3 and dictionary pages of up to 64 MB."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyarrow import csv

    pa.set_cpu_count(request["threads"])

    def once():
        table = csv.read_csv(
            request["text"],
            csv.ReadOptions(column_names=[request["column"]]),
            csv.ParseOptions(delimiter="\x01", quote_char=False),
            csv.ConvertOptions(column_types={request["column"]: pa.string()}),
        )
        options = {"compression": "zstd", "compression_level": 3, "dictionary_pagesize_limit": 64 << 20}
        pq.write_table(table, request["target"], row_group_size=1 << 20, **options)

    return repeated(request, once)


def datafusion(request):
    from datafusion import SessionConfig, SessionContext

    context = SessionContext(SessionConfig().with_target_partitions(request["threads"]))
    for name, files in request["tables"].items():
        known = f"file_of_{name}" if request.get("in_memory") else name
        if len(files) > 1:
            context.register_listing_table(known, files[0].rsplit("/", 1)[0])
        else:
            context.register_parquet(known, files[0])
        if known != name:
            # Text of Parquet is read as Utf8View, and stays that in memory.
            context.sql(f"create table {name} as select * from {known}").collect()

    def once():
        frame = context.sql(request["sql"])
        return frame.to_arrow_table()

    return repeated(request, once)


def polars(request):
    import polars as pl

    frames = {name: pl.scan_parquet(files) for name, files in request["tables"].items()}
    if "hits" in frames:
        # Polars' SQL has no function that makes a time of seconds; the column costs nothing where it is not asked for.
        at = pl.from_epoch("EventTime", time_unit="s").alias("EventTimestamp")
        frames["hits_at"] = frames["hits"].with_columns(at)
    if request["sql"].startswith("python:"):
        names = {"pl": pl, **frames}
        code = compile(f"({request['sql'].removeprefix('python:').strip()})", "query", "eval")
        result, seconds = repeated(request, lambda: eval(code, dict(names)).collect())
    else:
        context = pl.SQLContext(frames)
        result, seconds = repeated(request, lambda: context.execute(request["sql"]).collect())
    return result.to_arrow(), seconds


def hyper(request):
    """Asks a file of Hyper's, by the server that its package brings: on a socket, without a log, sending nothing."""
    with _hyper(request, "NONE") as connection:
        rows, seconds = repeated(request, lambda: connection.execute_list_query(request["sql"]))
    return [[_of_hyper(value) for value in row] for row in rows], seconds


def hyper_import(request):
    with _hyper(request, "CREATE_AND_REPLACE") as connection:
        for name, files in request["tables"].items():
            listed = ", ".join(f"'{file}'" for file in files)
            of = f"external(array[{listed}], format => 'parquet')"
            connection.execute_command(f"create table {name} as select * from {of}")
    return None, []


@contextlib.contextmanager
def _hyper(request, mode):
    from tableauhyperapi import Connection, CreateMode, HyperProcess, Telemetry

    limits = {f"{kind}_concurrent_query_thread_limit": str(request["threads"]) for kind in ("hard", "soft")}
    silent = Telemetry.DO_NOT_SEND_USAGE_DATA_TO_TABLEAU
    with HyperProcess(silent, parameters={"log_config": "", **limits}) as server:
        with Connection(server.endpoint, request["target"], CreateMode[mode]) as connection:
            yield connection


def _of_hyper(value):
    """A value of the package's own kind as Python's."""
    for name in ("to_datetime", "to_date"):
        if hasattr(value, name):
            return getattr(value, name)()
    return value


def clickhouse(request):
    """Asks tables of ClickHouse, the engine within this process. Outer joins give NULL, as in SQL."""
    import pyarrow as pa

    session = _clickhouse(request)
    session.query("use bench")

    def once():
        answer = session.query(request["sql"], "Arrow")
        return pa.ipc.open_file(pa.BufferReader(answer.bytes())).read_all()

    return repeated(request, once)


def clickhouse_import(request):
    """Tables in the order of the rows, as other engines have them, without a key; merged into one part each."""
    session = _clickhouse(request)
    session.query("create database bench")
    for name, files in request["tables"].items():
        listed = "{" + ",".join(files) + "}" if len(files) > 1 else files[0]
        # Parts that were merged go at once.
        swept = "old_parts_lifetime = 0, merge_tree_clear_old_parts_interval_seconds = 1"
        # A column that the Parquet file says has no NULL can have none here.
        read = f"select * from file('{listed}', Parquet) settings schema_inference_make_columns_nullable = 'auto'"
        session.query(f"create table bench.{name} engine = MergeTree order by tuple() settings {swept} as {read}")
        session.query(f"optimize table bench.{name} final settings optimize_skip_merged_partitions = 1")
    merged = "select count() from system.parts where database = 'bench' and not active"
    give_up = time.monotonic() + 60
    while session.query(merged, "TSV").bytes().strip() != b"0" and time.monotonic() < give_up:
        time.sleep(0.2)
    return None, []


def _clickhouse(request):
    from chdb.session import Session

    session = Session(request["target"])
    session.query(f"set max_threads = {request['threads']}, join_use_nulls = 1")
    return session


def main():
    from .answers import cell, rows_of

    request = json.load(sys.stdin)
    engines = {
        "duckdb": duckdb,
        "datafusion": datafusion,
        "polars": polars,
        "duckdb-import": duckdb_import,
        "duckdb-text": duckdb_text,
        "pyarrow-text": pyarrow_text,
        "duckdb-rows": duckdb_rows,
        "polars-rows": polars_rows,
        "pyarrow-rows": pyarrow_rows,
        "hyper": hyper,
        "hyper-import": hyper_import,
        "clickhouse": clickhouse,
        "clickhouse-import": clickhouse_import,
    }
    try:
        result, seconds = engines[request["engine"]](request)
    except Exception as error:
        sys.exit(f"{type(error).__name__}: {' '.join(str(error).split())[:400]}")
    if isinstance(result, list):
        rows = [[cell(value) for value in row] for row in result]
    else:
        rows = rows_of(result) if result is not None else []
    json.dump({"seconds": seconds, "rows": rows}, sys.stdout)


if __name__ == "__main__":
    main()
