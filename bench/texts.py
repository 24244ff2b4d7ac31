"""Text into files: Plinth's program, DuckDB's CREATE TABLE AS, and Polars and pyarrow into Parquet, over the same CSV or NDJSON, in turn.

Each file that was written is asked the same; an engine that answers otherwise than Plinth has no time.
"""

import csv
import io
import math
from dataclasses import dataclass
from pathlib import Path

from . import process
from .engines import work
from .timing import paired, say, summary, verdict

CLOSE = 1e-9


@dataclass(frozen=True)
class Text:
    """What is imported, under a name, and what is asked of it, as expressions that all engines understand."""

    key: str
    label: str
    file: Path
    asked: tuple
    # How many times DuckDB's speed is wanted.
    least: float


@dataclass(frozen=True)
class Way:
    key: str
    label: str


PLINTH = Way("plinth", "Plinth")
WAYS = (
    PLINTH,
    Way("plinth-fast", "Plinth, --fast"),
    Way("duckdb", "DuckDB, CREATE TABLE AS"),
    Way("polars", "Polars, to Parquet"),
    Way("pyarrow", "pyarrow, to Parquet"),
)


def write(way, text, folder, options):
    """Imports the text; the seconds it took, its memory, and the file. Plinth's seconds are those of the process."""
    folder.mkdir(parents=True, exist_ok=True)
    if way.key.startswith("plinth"):
        to = folder / f"{way.key}.plinth"
        command = [options.plinth, "import", "--quiet", "--replace", "--threads", options.threads, "--to", to]
        command += ["--fast"] if way.key == "plinth-fast" else []
        done = process.run([*command, text.file])
        return done.seconds, done.memory, to
    to = folder / f"{way.key}.{'duckdb' if way.key == 'duckdb' else 'parquet'}"
    for old in (to, to.with_name(to.name + ".wal")):
        old.unlink(missing_ok=True)
    request = {
        "engine": f"{way.key}-rows",
        "file": str(text.file),
        "target": str(to),
        "threads": options.threads,
        "repeat": 1,
    }
    answer = work(request, {"POLARS_MAX_THREADS": str(options.threads)})
    return answer.seconds[0], answer.memory, to


def ask(way, text, file, options):
    """What the file answers, as numbers where they are such."""
    asked = ", ".join(text.asked)
    if way.key.startswith("plinth"):
        done = process.run([options.plinth, "sql", "--format", "csv", "-c", f"select {asked} from '{file}'"])
        row = list(csv.reader(io.StringIO(done.stdout)))[1]
    else:
        table = {"database": str(file)} if way.key == "duckdb" else {"tables": {"rows": [str(file)]}}
        request = {"engine": "duckdb", "sql": f'select {asked} from "rows"', "repeat": 1, "threads": options.threads}
        row = work(request | table).rows[0]
    return [number(cell) for cell in row]


def number(cell):
    try:
        return float(cell)
    except (TypeError, ValueError):
        return str(cell)


def alike(left, right):
    def same(a, b):
        both = isinstance(a, float) and isinstance(b, float)
        return math.isclose(a, b, rel_tol=CLOSE) if both else a == b

    return len(left) == len(right) and all(map(same, left, right))


def measure(text, folder, options):
    """The figures of each way, and of Plinth's what is wrong."""
    runs, memory, errors, wrong, expected = {}, {}, {}, [], None
    for turn in range(options.import_rounds):
        for way in WAYS if turn % 2 == 0 or expected is None else reversed(WAYS):
            if way.key in errors:
                continue
            try:
                seconds, peak, file = write(way, text, folder, options)
                found = ask(way, text, file, options) if turn == 0 else expected
            except process.Failed as error:
                errors[way.key] = str(error)
                wrong += [f"{text.key}: {way.key}: {error}"] if way.key.startswith("plinth") else []
                continue
            if expected is None:
                expected = found
            if not alike(found, expected):
                errors[way.key] = f"answers otherwise: {found} instead of {expected}"
                wrong += [f"{text.key}: {way.key}: {errors[way.key]}"] if way.key.startswith("plinth") else []
                continue
            runs.setdefault(way.key, []).append(seconds)
            memory[way.key] = max(memory.get(way.key, 0), process.held(peak))
            say(f"  {text.key}: {way.label}: {seconds:.2f} s, {process.held(peak) / 1e6:,.0f} MB")
    size = text.file.stat().st_size
    records = []
    for way in WAYS:
        record = {"key": f"{way.key}-{text.key}", "label": f"{text.label}: {way.label}", "threads": options.threads}
        if way.key in runs:
            of = summary(runs[way.key])
            record |= of | {"rate": size / of["median"], "memory": memory[way.key]}
        else:
            record["error"] = errors.get(way.key, "it was not run")
        records.append(record)
    told = []
    if "duckdb" in runs and PLINTH.key in runs:
        pair = paired(runs["duckdb"], runs[PLINTH.key])
        title = f"{text.label} imported, times the speed of DuckDB's CREATE TABLE AS"
        told.append(verdict(title, text.least, None, pair["ratio"], (pair["low"], pair["high"])))
    return records, told, wrong
