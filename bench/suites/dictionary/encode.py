"""From text to a file and back, by ever more threads, in turn with peers; the bytes must be those of one thread.

So many threads have so many cores: a thread that reads ahead beside them gets no core more.
"""

import hashlib
import os
import shutil
import statistics
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow.compute as pc

from ... import process
from ...data.words import COLUMN
from ...engines import work
from ...process import Failed
from ...timing import paired, say, summary
from .column import by_duckdb, by_plinth


def digest(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def of_text(text, head=""):
    """The digest of a text below a head, its last line ended."""
    found = hashlib.sha256(head.encode())
    with open(text, "rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            found.update(block)
            last = block[-1:]
    if last != b"\n":
        found.update(b"\n")
    return found.hexdigest()


def needs_quotes(words):
    """Whether CSV has to quote some of the words."""
    return pc.any(pc.match_substring_regex(words, '[,"\r]')).as_py()


@dataclass
class Run:
    """One run. Processor time is that of a process that does nothing else; of peers, Python's start would be in it."""

    seconds: float
    memory: dict
    digest: str | None = None
    cpu: float | None = None


def of_process(done, made):
    return Run(done.seconds, done.memory, digest(made), done.cpu)


def of_worker(answer, made=None):
    return Run(answer.seconds[0], answer.memory, digest(made) if made else None)


@contextmanager
def on_cores(count):
    """Keeps processes that are started to so many cores, where the system can."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    every = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(every)[:count])
    try:
        yield
    finally:
        os.sched_setaffinity(0, every)


def way(key, who, threads, run):
    return {"key": f"{key}-{threads}", "who": who, "threads": threads, "run": run, "runs": []}


def into(column, options, folder):
    """The ways from text to a file: of Plinth's files the digest is asked for."""
    program, text = options.plinth, column.text

    def plinth(threads, more=()):
        return of_process(
            by_plinth(program, text, folder / "plinth", threads, more), folder / "plinth" / "words.plinth"
        )

    def pyarrow(threads):
        request = {"engine": "pyarrow-text", "text": str(text), "target": str(folder / "words.parquet")}
        return of_worker(work(request | {"column": COLUMN, "threads": threads, "repeat": 1}))

    found = []
    for n in options.threads_axis:
        found.append(way("plinth", "Plinth", n, lambda n=n: plinth(n)))
        if column.indexed:
            found.append(way("indexed", "Plinth with postings", n, lambda n=n: plinth(n, ["--index", COLUMN])))
        duckdb = folder / "words.duckdb"
        found.append(way("duckdb", "DuckDB, CREATE TABLE AS", n, lambda n=n: of_worker(by_duckdb(text, duckdb, n))))
        found.append(way("pyarrow", "pyarrow, Parquet", n, lambda n=n: pyarrow(n)))
    return found


def back(column, options, folder):
    """The ways from a file to text."""
    out = folder / "words.csv"

    def plinth(threads):
        command = [options.plinth, "export", "--quiet", "--replace", "--threads", threads, "--to", out]
        return of_process(process.run([*command, column.file]), out)

    def duckdb(threads):
        sql = f"copy words to '{out}' (format csv, header false, delimiter e'\\x01', quote '', escape '')"
        request = {"engine": "duckdb", "database": str(column.tables.duckdb), "sql": sql, "repeat": 1}
        return of_worker(work(request | {"threads": threads}), out)

    found = []
    for n in options.threads_axis:
        found.append(way("plinth", "Plinth, export", n, lambda n=n: plinth(n)))
        found.append(way("duckdb", "DuckDB, COPY TO", n, lambda n=n: duckdb(n)))
    return found


def in_turn(ways, column, options, wanted, what):
    """Runs ways in turn; returns their figures and, in words, whose bytes were not those that are wanted."""
    wrong = {}
    for turn in range(options.import_rounds):
        for one in ways if turn % 2 == 0 else reversed(ways):
            name = f"{one['who']}, {one['threads']} threads"
            try:
                with on_cores(one["threads"]):
                    run = one["run"]()
            except Failed as error:
                one["error"] = str(error)
                say(f"  {what}: {name}: {error}")
                continue
            if run.digest is not None and run.digest != wanted.setdefault(one["who"], run.digest):
                wrong[one["key"]] = f"{what}: {name}: not the bytes of {wanted['from']}"
            one["runs"].append(run)
            say(f"  {what}: {name}: {run.seconds:.2f} s, {column.census.text_bytes / run.seconds / 1e9:.3f} GB/s")
    found = []
    for one in ways:
        kept = {name: one[name] for name in ("key", "who", "threads")}
        if one["key"] in wrong or "error" in one or not one["runs"]:
            found.append(kept | {"error": wrong.get(one["key"]) or one.get("error", "did not run")})
            continue
        times = summary([run.seconds for run in one["runs"]])
        kept |= times | {"memory": max(process.held(run.memory) for run in one["runs"])}
        kept["rate"] = column.census.text_bytes / times["median"]
        if all(run.cpu for run in one["runs"]):
            kept["processor_rate"] = column.census.text_bytes / statistics.median(run.cpu for run in one["runs"])
        found.append(kept)
    return found, list(wrong.values())


def gains(ways):
    """What each number of threads brings: the time of one over the time of so many."""
    found, one = {}, {w["who"]: w for w in ways if w["threads"] == 1 and "runs" in w}
    for w in ways:
        if w["threads"] > 1 and "runs" in w and w["who"] in one:
            found[w["key"]] = paired(one[w["who"]]["runs"], w["runs"]) | {"who": w["who"], "threads": w["threads"]}
    return found


def measure(column, options):
    folder = column.folder / "encode"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    # The first file of a way says what its bytes are; text must be that which was imported.
    wanted = {"from": "the first run"}
    ways, wrong = in_turn(into(column, options, folder), column, options, wanted, "encode")
    wanted = {"from": "the text"}
    if not needs_quotes(column.census.words):
        wanted |= {"Plinth, export": of_text(column.text, COLUMN + "\n"), "DuckDB, COPY TO": of_text(column.text)}
    ways_back, wrong_back = in_turn(back(column, options, folder), column, options, wanted, "decode")
    shutil.rmtree(folder)
    return {
        "encode": ways,
        "encode_gains": gains(ways),
        "decode": ways_back,
        "decode_gains": gains(ways_back),
        "disagreements": wrong + wrong_back,
    }
