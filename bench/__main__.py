"""The one command: makes or finds the data, runs the suites and writes the figures as JSON and as a page."""

import argparse
import dataclasses
import datetime
import json
import os
import shlex
import shutil
import sys
from pathlib import Path

from . import compare, report
from .engines import ENGINES
from .machine import machine, versions
from .process import Failed
from .suites import PARTS, SUITES
from .timing import say


@dataclasses.dataclass
class Options:
    """What a run was asked for."""

    plinth: Path
    folder: Path
    threads: int
    rounds: int
    repeat: int
    cold: int
    quick: bool
    scale: float
    hits: Path | None
    hits_sample: Path | None
    hits_rows: int
    sort_rows: int
    table_rows: int
    join_rows: int
    join_keys: int
    words: Path | None
    words_rows: int
    words_distinct: int
    words_skew: float
    compressors: bool
    pairs: int
    memory_pairs: int
    clustered: bool
    keys_rows: int
    keys_many: int
    keys_sorted: int
    docs: Path | None
    seed: int
    only: list
    axes: list
    parts: list
    threads_axis: list
    wide_rows: int
    hits_axis: list
    import_memory: str
    import_rounds: int

    def without_cold(self):
        return dataclasses.replace(self, cold=0)


def names(text):
    return [part for part in text.split(",") if part]


def positive(text):
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return value


def millions(text):
    """A number of rows, M for millions."""
    return positive(text.removesuffix("M")) * (1_000_000 if text.endswith("M") else 1)


def parse():
    cores = os.cpu_count() or 1
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--plinth", type=Path, required=True, help="the program, built with --release")
    parser.add_argument(
        "--folder", type=Path, default=Path("bench-data"), help="where data and figures go [default: bench-data]"
    )
    parser.add_argument("--suite", type=names, default=list(SUITES), help=f"some of {','.join(SUITES)} [default: all]")
    every = ",".join(e.key for e in ENGINES)
    parser.add_argument(
        "--engines", type=names, default=names(every), help=f"Plinth and some of its peers [default: {every}]"
    )
    parser.add_argument(
        "--quick", action="store_true", help="tiny data and one round: a check of the harness, no figures"
    )
    parser.add_argument("--threads", type=positive, default=cores, help="of every engine [default: all cores]")
    parser.add_argument("--rounds", type=positive, default=3, help="processes of each engine and query [default: 3]")
    parser.add_argument("--repeat", type=positive, default=3, help="counted runs in each [default: 3]")
    parser.add_argument("--cold", type=int, default=1, help="cold runs of each engine and query [default: 1]")
    parser.add_argument("--only", type=names, default=[], help="queries, such as q01,q21")
    parser.add_argument("--scale", type=float, default=1.0, help="TPC-H's scale factor [default: 1]")
    parser.add_argument("--hits", type=Path, help="the real hits.parquet")
    parser.add_argument(
        "--hits-sample", type=Path, help="a small part of hits as Parquet, of whose rows others are made"
    )
    parser.add_argument("--hits-rows", type=positive, default=10_000_000, help="how many are made [default: 10000000]")
    parser.add_argument(
        "--sort-rows", type=positive, default=60_000_000, help="rows of the suite sort [default: 60000000]"
    )
    parser.add_argument(
        "--table-rows", type=positive, default=10_000_000, help="rows of the suite rows [default: 10000000]"
    )
    parser.add_argument(
        "--join-rows", type=positive, default=10_000_000, help="rows of the suite joins [default: 10000000]"
    )
    parser.add_argument(
        "--join-keys", type=positive, default=10_000_000, help="keys of its largest table [default: 10000000]"
    )
    parser.add_argument("--words", type=Path, help="a text of one word a line, in place of the suite dictionary's own")
    parser.add_argument(
        "--words-rows", type=positive, default=10_000_000, help="rows of the suite dictionary [default: 10000000]"
    )
    parser.add_argument("--words-distinct", type=positive, default=70_000, help="its distinct words [default: 70000]")
    parser.add_argument(
        "--words-skew", type=float, default=0.0, help="variance of its rows' log weights; 0 is uniform [default: 0]"
    )
    parser.add_argument(
        "--compressors", action="store_true", help="ask xz, zstd and 7z for its size too, which takes minutes"
    )
    parser.add_argument("--pairs", type=positive, default=1_000_000, help="pairs of the suite json [default: 1000000]")
    parser.add_argument(
        "--memory-pairs", type=positive, default=40_000_000, help="pairs of its large document [default: 40000000]"
    )
    parser.add_argument("--clustered", action="store_true", help="its pairs are near a few places [default: anywhere]")
    for name, rows, what in (("rows", 1_000_000, "keys of the suite keys"), ("many", 100_000_000, "keys of its largest lookups"), ("sorted", 10_000_000, "rows of its sorts")):
        parser.add_argument(f"--keys-{name}", type=positive, default=rows, help=f"{what} [default: {rows}]")
    parser.add_argument("--docs", type=Path, help="the folder docs, whose figures (of measured/SUITE.md) are replaced")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--axes",
        type=names,
        default=[],
        help="some of growth's: rows,columns,distinct,files,threads,hits; dictionary has rows,distinct",
    )
    parts = "; ".join(f"some of {suite}'s: {','.join(of)}" for suite, of in PARTS.items())
    parser.add_argument("--parts", type=names, default=[], help=parts)
    parser.add_argument("--threads-axis", type=names, help="such as 1,2,4,8 [default: doubling up to all cores]")
    parser.add_argument(
        "--wide-rows", type=positive, default=100_000, help="rows of growth's wide tables [default: 100000]"
    )
    parser.add_argument(
        "--hits-axis",
        type=lambda text: sorted({millions(part) for part in names(text)}),
        help="rows of growth's axis of hits, such as 1M,10M,30M,100M [default: 1M,10M]",
    )
    parser.add_argument("--import-memory", default="1GB", help="the limit of the limited imports [default: 1GB]")
    parser.add_argument("--import-rounds", type=positive, default=2, help="[default: 2]")
    args = parser.parse_args()
    for kind, given, known in (("suite", args.suite, SUITES), ("engine", args.engines, names(every))):
        for name in given:
            if name not in known:
                parser.error(f"no {kind} {name!r}: there are {', '.join(known)}")
    every_part = list(dict.fromkeys(part for suite in args.suite for part in PARTS.get(suite, [])))
    for part in args.parts:
        if part not in every_part:
            parser.error(f"no part {part!r} of {','.join(args.suite)}: there are {', '.join(every_part) or 'none'}")
    if args.words_skew < 0:
        parser.error("--words-skew is a variance: at least 0")
    for path in (args.plinth, args.hits, args.hits_sample, args.words):
        if path is not None and not path.is_file():
            parser.error(f"{path}: no such file")
    if "plinth" not in args.engines:
        args.engines.insert(0, "plinth")
    if args.threads_axis is None:
        args.threads_axis = sorted({min(2**n, cores) for n in range(cores.bit_length() + 1)})
    args.threads_axis = [positive(str(n)) for n in args.threads_axis]
    if args.quick:
        args.rounds = args.repeat = args.import_rounds = 1
        args.cold = min(args.cold, 1)
    return args


def main():
    if sys.argv[1:2] == ["compare"]:
        compare.main(sys.argv[2:])
    args = parse()
    fields = {f.name: getattr(args, f.name) for f in dataclasses.fields(Options)}
    options = Options(**fields | {"plinth": args.plinth.resolve(), "folder": args.folder.resolve()})
    options.folder.mkdir(parents=True, exist_ok=True)
    engines = []
    for kind in ENGINES:
        engine = kind(options.plinth, options.threads)
        why = engine.missing() if kind.key in args.engines else "not asked for"
        if why is None:
            engines.append(engine)
        else:
            say(f"without {engine.label}: {why}")
    figures = {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "command": shlex.join(["python", "-m", "bench", *sys.argv[1:]]),
        "quick": options.quick,
        "machine": machine(),
        "versions": versions(options.plinth),
        "options": {name: str(value) for name, value in fields.items() if value not in (None, [])},
        "engines": [{"key": e.key, "label": e.label} for e in engines],
        "suites": [],
    }
    failed = False
    for name in args.suite:
        try:
            suite = SUITES[name](engines, options)
        except Failed as error:
            say(f"error: {name}: {error}")
            suite, failed = {"suite": name, "title": name, "skipped": f"it failed: {error}"}, True
        failed |= bool(suite.get("disagreements"))
        figures["suites"].append(suite)
        # After each suite, so that an interrupted run leaves what it found.
        (options.folder / "figures.json").write_text(json.dumps(figures, indent=1) + "\n")
        report.write(figures, options.folder / "report.html")
        if "verdicts" in suite:
            table = options.folder / f"{name}.md"
            table.write_text(report.markdown(suite))
            print(table.read_text())
            if options.docs:
                say(report.fill(options.docs / "measured" / f"{name}.md", name, table.read_text()))
    say(f"figures in {options.folder / 'figures.json'}, the page is {options.folder / 'report.html'}")
    shutil.rmtree(options.folder / "scratch", ignore_errors=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
