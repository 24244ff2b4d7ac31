"""Import: Plinth's program and DuckDB's CREATE TABLE AS over the same Parquet files, in turn, with time and memory."""

import shutil

import pyarrow as pa
import pyarrow.parquet as pq

from . import process
from .engines import work
from .files import listed
from .timing import summary


def by_plinth(program, sources, folder, threads, memory=None, more=()):
    """Imports each table, a file or a list of them, into a folder; returns the seconds of the processes and the largest
    memory among them."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    seconds, peak = 0.0, {}
    for table, source in sources.items():
        command = [program, "import", "--quiet", "--threads", threads, "--to", folder / f"{table}.plinth", *more]
        if memory:
            command += ["--memory", memory]
        done = process.run([*command, *listed(source)])
        seconds += done.seconds
        if not peak or process.held(done.memory) > process.held(peak):
            peak = done.memory
    return seconds, peak


def by_duckdb(sources, file, threads, memory=None, order=""):
    """CREATE TABLE AS of each table into a new file of the latest storage version; returns the engine's own seconds,
    without those Python takes to start, and the process' memory."""
    file.parent.mkdir(parents=True, exist_ok=True)
    for old in (file, file.with_name(file.name + ".wal")):
        old.unlink(missing_ok=True)
    request = {
        "engine": "duckdb-import",
        "database": str(file),
        "tables": {table: [str(file) for file in listed(source)] for table, source in sources.items()},
        "threads": threads,
        "memory": memory,
        "order": order,
        "repeat": 1,
    }
    answer = work(request)
    return answer.seconds[0], answer.memory


def idle(program, folder, threads):
    """The memory of an import of one row: what the process holds without any work."""
    folder.mkdir(parents=True, exist_ok=True)
    source = folder / "one-row.parquet"
    pq.write_table(pa.table({"x": [1]}), source)
    return by_plinth(program, {"one_row": source}, folder / "one-row", threads)[1]


def measure(sources, ours, theirs, folder, options, say):
    """Times each way of importing; the last files stay as those the queries read."""
    program, threads, limit = options.plinth, options.threads, options.import_memory
    ways = {
        "Plinth": lambda: by_plinth(program, sources, ours, threads),
        f"Plinth, --memory {limit}": lambda: by_plinth(program, sources, folder / "limited", threads, limit),
        "DuckDB, CREATE TABLE AS": lambda: by_duckdb(sources, theirs, threads),
        f"DuckDB, memory_limit {limit}": lambda: by_duckdb(sources, folder / "limited.duckdb", threads, limit),
    }
    runs, memory, errors = {way: [] for way in ways}, {}, {}
    for turn in range(options.import_rounds):
        for way in ways if turn % 2 == 0 else reversed(ways):
            if way in errors:
                continue
            try:
                seconds, peak = ways[way]()
            except process.Failed as error:
                if way in ("Plinth", "DuckDB, CREATE TABLE AS"):
                    raise
                errors[way] = str(error)
                continue
            runs[way].append(seconds)
            if way not in memory or process.held(peak) > process.held(memory[way]):
                memory[way] = peak
            say(f"  import: {way}: {seconds:.2f} s, {process.held(peak) / 1e6:,.0f} MB")
    shutil.rmtree(folder, ignore_errors=True)
    found = [{"way": way, **summary(runs[way]), "memory": memory[way]} for way in ways if way not in errors]
    found += [{"way": way, "error": text} for way, text in errors.items()]
    resting = idle(program, folder, threads)
    shutil.rmtree(folder, ignore_errors=True)
    bound = None
    if f"Plinth, --memory {limit}" in memory:
        most = process.held(resting) + 1.1 * bytes_of(limit)
        bound = {"held": process.held(memory[f"Plinth, --memory {limit}"]), "most": most}
    return {"ways": found, "idle": resting, "limit": limit, "bound": bound}


def bytes_of(text):
    """The bytes of a size such as 512MB or 2GiB."""
    units = {"kB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
    for unit, factor in units.items():
        if text.endswith(unit):
            return float(text.removesuffix(unit)) * factor
    return float(text)
