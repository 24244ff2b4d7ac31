"""Plinth and its peers: what each is, and how it is asked a query in a process of its own."""

import json
import shutil
import sys
from dataclasses import dataclass, field
from pathlib import Path

from . import process, profiles
from .answers import rows_of_csv
from .machine import installed


@dataclass
class Answer:
    rows: list
    seconds: list
    memory: dict


@dataclass
class Tables:
    """A data set in each form an engine reads: names to lists of files, DuckDB's one file of all, and what others made
    of the Parquet files for themselves, by the engine's key."""

    plinth: dict
    parquet: dict
    duckdb: Path | None = None
    loaded: dict = field(default_factory=dict)


class Engine:
    key = label = dialect = ""
    # Whether the engine is Plinth's format: others are what it is compared with.
    ours = False

    def __init__(self, program, threads):
        self.program, self.threads = program, threads

    def missing(self):
        """Why this engine can't run, or None."""
        return None

    def files(self, tables):
        return [file for files in tables.parquet.values() for file in files]

    def run(self, tables, sql, repeat=1):
        raise NotImplementedError

    def profile(self, tables, sql):
        """Where the time of a warm run went, or None of what keeps no profiles."""
        return None


class Plinth(Engine):
    key, label, dialect, ours = "plinth", "Plinth", "datafusion", True
    # Options of the program beyond those of every run, and statements before the query.
    more = before = ()

    def files(self, tables):
        return [file for files in tables.plinth.values() for file in files]

    def run(self, tables, sql, repeat=1):
        return self._run(self._folders(tables), self.before, sql, repeat)

    def _folders(self, tables):
        # A table is a file of the folder, or a folder in it.
        every = tables.plinth.values()
        return {file.parent if len(files) == 1 else file.parent.parent for files in every for file in files}

    def profile(self, tables, sql):
        """Where the time of a warm run went."""
        folders = self._folders(tables)
        return profiles.taken(lambda more: self._run(folders, self.before, sql, 2, more))

    def _run(self, folders, before, sql, repeat, more=()):
        if len(folders) != 1:
            raise process.Failed("the tables of a data set are files of one folder")
        command = [self.program, "sql", "--db", folders.pop(), "--threads", self.threads, "--format", "csv"]
        command += ["--repeat", repeat, "--timings", "json", *self.more, *more]
        done = process.run(command, ";\n".join([*before, sql]))
        return Answer(
            rows_of_csv(done.stdout), json.loads(done.stderr.strip().splitlines()[-1])["seconds"], done.memory
        )


class SameProgram(Plinth):
    """DataFusion over Parquet within the program that reads Plinth files: nothing but the files differs."""

    key, label, ours = "plinth-parquet", "DataFusion 55 in Plinth's program, Parquet", False
    before = ("SET plinth.parquet_scan = 'datafusion'",)

    files = Engine.files

    def run(self, tables, sql, repeat=1):
        folders, before = set(), [*self.before]
        for name, files in tables.parquet.items():
            if len(files) == 1:
                folders.add(files[0].parent)
            else:
                folders.add(files[0].parent.parent)
                before.append(f"create external table {name} stored as parquet location '{files[0].parent}/'")
        return self._run(folders, before, sql, repeat)


class Package(Engine):
    """A Python package, run by worker.py."""

    package = ""

    def missing(self):
        return None if installed(self.package) else f"the package {self.package} is not installed"

    def environment(self):
        return {}

    def request(self, tables):
        return {"tables": {name: [str(f) for f in files] for name, files in tables.parquet.items()}}

    def run(self, tables, sql, repeat=1):
        request = {
            "engine": self.package,
            "sql": sql,
            "repeat": repeat,
            "threads": self.threads,
            **self.request(tables),
        }
        return work(request, self.environment())


class DataFusion(Package):
    key, label, dialect, package = (
        "datafusion",
        "DataFusion 55 (its Python package), Parquet",
        "datafusion",
        "datafusion",
    )

    def environment(self):
        return {"TOKIO_WORKER_THREADS": str(self.threads)}


class DuckDBParquet(Package):
    key, label, dialect, package = "duckdb-parquet", "DuckDB 2.0, Parquet", "duckdb", "duckdb"


class DuckDB(Package):
    key, label, dialect, package = "duckdb", "DuckDB 2.0, its own file", "duckdb", "duckdb"

    def files(self, tables):
        return [tables.duckdb]

    def request(self, tables):
        return {"database": str(tables.duckdb)}


class Polars(Package):
    key, label, dialect, package = "polars", "Polars 2.1, Parquet", "polars", "polars"

    def environment(self):
        return {"POLARS_MAX_THREADS": str(self.threads)}


class Loaded(Package):
    """A package that is asked over tables of its own, which it makes of the Parquet files first."""

    def load(self, tables, folder):
        """Makes the tables in a folder; returns where they are."""
        target = folder / f"tables.{self.key}"
        if target.is_dir():
            shutil.rmtree(target)
        target.unlink(missing_ok=True)
        request = {"engine": f"{self.key}-import", "threads": self.threads, "target": str(target)}
        work(request | Package.request(self, tables))
        return target

    def files(self, tables):
        return [tables.loaded[self.key]]

    def request(self, tables):
        if self.key not in tables.loaded:
            raise process.Failed("it has no tables of these rows")
        return {"engine": self.key, "target": str(tables.loaded[self.key])}


class Hyper(Loaded):
    key, label, dialect, package = "hyper", "Hyper, its own file", "hyper", "tableauhyperapi"


class ClickHouse(Loaded):
    key, label, dialect, package = "clickhouse", "ClickHouse (chdb), its own tables", "clickhouse", "chdb-core"


ENGINES = [Plinth, SameProgram, DataFusion, DuckDB, DuckDBParquet, Polars, Hyper, ClickHouse]


def work(request, environment=None):
    """Has worker.py do what a request says."""
    command = [sys.executable, "-m", f"{__package__}.worker"]
    path = str(Path(__file__).parent.parent)
    done = process.run(command, json.dumps(request), {"PYTHONPATH": path, **(environment or {})})
    answer = json.loads(done.stdout)
    return Answer(answer["rows"], answer["seconds"], done.memory)
