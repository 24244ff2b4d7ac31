"""What an import takes and what comes of it: seconds over bytes of the same rows by Plinth's efforts, Parquet by zstd 1 to 9, Vortex and DuckDB.

    python -m bench.curve --plinth target/release/plinth --source hits.parquet --folder bench-data/curve --docs docs

Each way reads the same Parquet file and writes its own, in turn; of Plinth whole processes are timed, of the others what they do once Python has started.
The bytes of a way differ by a thousandth at most from time to time, or it is an error. `--docs` fills in docs/measured/import.md and draws import.svg beside it.
"""

from __future__ import annotations

import argparse
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from . import files, imports
from .data import parquet
from .engines import work
from .machine import installed
from .report import guide, io, svg
from .report.words import size
from .timing import say, summary

LEVELS = (1, 3, 6, 9)
# Who makes files: what their points are called, and the colour of their line.
MAKERS = {"Plinth": "c0", "Parquet zstd, by DuckDB": "c1", "Parquet zstd, by pyarrow": "c2", "DuckDB": "c3", "Vortex": "c4"}


@dataclass
class Way:
    """A way to make a file: writes it to the path and returns the seconds."""

    maker: str
    name: str
    write: Callable[[Path], float]
    seconds: list[float] = field(default_factory=list)
    bytes: int = 0

    @property
    def median(self) -> float:
        return summary(self.seconds)["median"]


def by_plinth(options: argparse.Namespace, more: list[str]) -> Callable[[Path], float]:
    return lambda target: imports.by_plinth(options.plinth, {"rows": options.source}, target, options.threads, None, more)[0]


def by_duckdb(options: argparse.Namespace) -> Callable[[Path], float]:
    return lambda target: imports.by_duckdb({"rows": options.source}, target / "rows.duckdb", options.threads)[0]


def parquet_by_duckdb(options: argparse.Namespace, level: int) -> Callable[[Path], float]:
    def write(target: Path) -> float:
        target.mkdir(parents=True)
        form = f"(format parquet, compression zstd, compression_level {level})"
        sql = f"copy (from read_parquet('{options.source}')) to '{target / 'rows.parquet'}' {form}"
        return work({"engine": "duckdb", "sql": sql, "repeat": 1, "threads": options.threads}).seconds[0]

    return write


def timed(options: argparse.Namespace, write: Callable[[list[tuple[Path, Path]]], None]) -> Callable[[Path], float]:
    def run(target: Path) -> float:
        target.mkdir(parents=True)
        start = time.perf_counter()
        write([(options.source, target / "rows")])
        return time.perf_counter() - start

    return run


def ways(options: argparse.Namespace) -> list[Way]:
    found = [Way("Plinth", name, by_plinth(options, more)) for name, more in PLINTH]
    found += [Way("Parquet zstd, by DuckDB", str(level), parquet_by_duckdb(options, level)) for level in LEVELS]
    found.append(Way("Parquet zstd, by pyarrow", "3", timed(options, parquet.WRITERS["Parquet zstd, pyarrow"])))
    found.append(Way("DuckDB", "a table", by_duckdb(options)))
    if installed("vortex-data"):
        found.append(Way("Vortex", "defaults", timed(options, parquet.WRITERS["Vortex"])))
    else:
        say("skipped: Vortex, the package vortex-data is not installed")
    return found


PLINTH = [("--fast", ["--fast"]), ("default", []), ("--compact", ["--compact"])]


def measure(options: argparse.Namespace) -> list[Way]:
    found = ways(options)
    files.warm([options.source])
    for turn in range(options.rounds):
        for way in found if turn % 2 == 0 else reversed(found):
            target = options.folder / "made"
            shutil.rmtree(target, ignore_errors=True)
            way.seconds.append(way.write(target))
            made = files.size([target])
            # The bytes of what several threads write side by side may differ by a little.
            if way.bytes and abs(made - way.bytes) > way.bytes / 1000:
                raise SystemExit(f"{way.maker}, {way.name}: {made} bytes, {way.bytes} before")
            way.bytes = made
            say(f"  {way.maker}, {way.name}: {way.seconds[-1]:.2f} s, {made:,} bytes")
    shutil.rmtree(options.folder / "made")
    return found


def markdown(found: list[Way], options: argparse.Namespace) -> str:
    default = next(way for way in found if way.name == "default")
    head = ["way", "seconds", "spread", "over the default's", "bytes", "over the default's"]
    rows = []
    for way in found:
        of = summary(way.seconds)
        cells = [f"{way.maker}, {way.name}", f"{of['median']:.1f}", f"{of['spread'] * 100:.0f} %" if options.rounds > 1 else "", f"{of['median'] / default.median:.2f}"]
        rows.append([*cells, size(way.bytes), f"{way.bytes / default.bytes:.2f}"])
    rounds = "one round" if options.rounds == 1 else f"{options.rounds} rounds in turn"
    head_line = f"{rounds.capitalize()}, {options.threads} threads."
    return "\n".join([head_line, "", *io.markdown_table(head, rows)]).strip() + "\n"


def drawn(found: list[Way]) -> str:
    series = []
    for maker, kind in MAKERS.items():
        points = [(way.median, float(way.bytes), way.name) for way in found if way.maker == maker]
        if points:
            series.append((maker, kind, points))
    return svg.alone(svg.points("Bytes of the file over seconds of the import", series, lambda x: f"{x:.0f} s", size))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plinth", type=Path, required=True)
    parser.add_argument("--source", type=Path, required=True, help="one Parquet file")
    parser.add_argument("--folder", type=Path, default=Path("bench-data/curve"))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--docs", type=Path)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    found = measure(options)
    text = markdown(found, options)
    print(text)
    if options.docs:
        measured = options.docs / "measured"
        (measured / "import.svg").write_text(drawn(found))
        say(guide.fill(measured / "import.md", "import", text))


if __name__ == "__main__":
    main()
