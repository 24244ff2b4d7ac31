"""The column of a run in each form: text, Plinth's files, Parquet, DuckDB's file; and how its words are distributed."""

import shutil
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from ... import files, process
from ...data.words import COLUMN, Census, Words, census, to_parquet
from ...engines import Tables, work
from ...search import has

# A line is a word, whatever is in it.
AS_TEXT = ["--format", "csv", "--no-header", "--quote", "none", "--delimiter", "\x01", "--schema", f"{COLUMN} TEXT"]
PARQUET = {"compression": "zstd", "compression_level": 3, "dictionary_pagesize_limit": 64 << 20}


@dataclass
class Column:
    """The column's forms. `indexed` is Plinth's file with postings, or None where the program can't make them."""

    folder: Path
    text: Path
    census: Census
    tables: Tables
    indexed: Path | None
    # Seconds of the imports that made the files.
    seconds: dict

    @property
    def file(self):
        return self.tables.plinth["words"][0]

    def bytes(self):
        """Bytes of each engine's file."""
        of = {"plinth": self.file, "plinth-parquet": self.tables.parquet["words"][0], "duckdb": self.tables.duckdb}
        of |= {"plinth-indexed": self.indexed} if self.indexed else {}
        return {key: files.size([file]) for key, file in of.items()}


def by_plinth(program, text, folder, threads, more=()):
    """Imports the text into a folder; returns the process that did."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    command = [program, "import", "--quiet", "--threads", threads, "--to", folder / "words.plinth", *more, *AS_TEXT]
    return process.run([*command, text])


def by_duckdb(text, file, threads):
    """CREATE TABLE AS from the text; returns the engine's answer, its seconds without those Python takes to start."""
    file.parent.mkdir(parents=True, exist_ok=True)
    for old in (file, file.with_name(file.name + ".wal")):
        old.unlink(missing_ok=True)
    request = {"engine": "duckdb-text", "database": str(file), "text": str(text), "column": COLUMN}
    return work(request | {"threads": threads, "repeat": 1})


def counted(text, folder):
    """The census of a text, which is kept, for a long text takes minutes."""
    kept = folder / "census.parquet"
    if not kept.exists():
        found = census(text)
        pq.write_table(pa.table({"word": found.words, "n": found.counts}), kept.with_suffix(".partial"))
        kept.with_suffix(".partial").rename(kept)
    table = pq.read_table(kept)
    found = Census(table["word"].combine_chunks(), table["n"].to_numpy(), text.stat().st_size)
    if not found.words[0].as_py():
        raise process.Failed(f"{text}: empty lines are not words")
    return found


def folder_of(options, column):
    """Where the forms of a made column, or of a given text, are kept."""
    if isinstance(column, Words):
        return options.folder / column.name
    told = column.stat()
    return options.folder / f"words-of-{column.stem}-{told.st_size}-{told.st_mtime_ns}"


def make(column, options):
    """Makes what is missing of a column, Words or the path of a text. Plinth's files are always made anew."""
    folder = folder_of(options, column)
    folder.mkdir(parents=True, exist_ok=True)
    text = folder / "words.txt" if isinstance(column, Words) else column
    if not text.exists():
        column.write(text)
    known = counted(text, folder)
    parquet, duckdb = folder / "parquet" / "words.parquet", folder / "words.duckdb"
    parquet.parent.mkdir(exist_ok=True)
    if not parquet.exists():
        to_parquet(text, parquet, **PARQUET)
    program, threads = options.plinth, options.threads
    seconds = {"plinth": by_plinth(program, text, folder / "plinth", threads).seconds}
    seconds["duckdb"] = by_duckdb(text, duckdb, threads).seconds[0]
    indexed = None
    shutil.rmtree(folder / "indexed", ignore_errors=True)
    if has(program, "import", "--index"):
        seconds["plinth-indexed"] = by_plinth(program, text, folder / "indexed", threads, ["--index", COLUMN]).seconds
        indexed = folder / "indexed" / "words.plinth"
    tables = Tables({"words": [folder / "plinth" / "words.plinth"]}, {"words": [parquet]}, duckdb)
    return Column(folder, text, known, tables, indexed, seconds)
