"""JSON into columns: the reference document, `{"pairs":[{"x0":..},...]}`, and the same pairs a line each; text into files.

The example program `json` makes them from a seed, and beside them the mean of the distances and a digest of each column. A way that reads
other bits has no time. Ways to read take turns, a process each. `import` has those pairs, rows of a log (`data/logs.py`) and TPC-H's
lineitem as CSV made files of; `memory` is what the import of a large document holds.
"""

import json
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from .. import process, texts
from ..data import logs, tpch
from ..process import Failed, held
from ..timing import paired, say, summary, verdict

BUILD = "cargo build --release -p plinth-ingest --example json"
PEERS = "cargo build --release in bench/documents"
DOCUMENTS = Path(__file__).parents[1] / "documents" / "target" / "release" / "documents"
PARTS = ["read", "import", "memory"]
QUICK = 20_000
# Rows of the log for each pair, and the most an import may hold.
LOGS, MOST = 0.5, 256 << 20
CLOSE = 1e-12


@dataclass(frozen=True)
class Way:
    key: str
    label: str
    lines: bool
    threads: int
    command: tuple
    env: tuple = ()


def ways(options, example):
    found = []
    for threads in dict.fromkeys([1, *options.threads_axis]):
        for lines, what in ((False, "the document"), (True, "lines")):
            key = f"plinth-{'lines' if lines else 'document'}-{threads}"
            found.append(Way(key, f"Plinth, {what}", lines, threads, (example, "read")))
    if DOCUMENTS.is_file():
        for key, label, lines in (
            ("simdjson", "simdjson On-Demand, the document in memory", False),
            ("serde-json", "serde_json, streamed, the document", False),
            ("arrow-json", "arrow-json, lines", True),
        ):
            found.append(Way(key, label, lines, 1, (DOCUMENTS, key)))
    else:
        say(f"json: without simdjson, serde_json and arrow-json: no {DOCUMENTS}: {PEERS}")
    for key, label, lines in (
        ("duckdb-lines", "DuckDB, lines", True),
        ("duckdb-document", "DuckDB, the document", False),
        ("polars", "Polars, lines", True),
        ("pyarrow", "pyarrow, lines", True),
    ):
        for threads in dict.fromkeys([1, *options.threads_axis]):
            # One thread of DuckDB reads the document whatever it may have.
            if key != "duckdb-document" or threads == 1:
                command = (sys.executable, "-m", "bench.reader", key)
                env = (("POLARS_MAX_THREADS", str(threads)), ("OMP_NUM_THREADS", str(threads)))
                found.append(Way(f"{key}-{threads}", label, lines, threads, command, env))
    return found


def ask(way, files, runs):
    file = files[way.lines]
    # The other Rust program knows no threads.
    threads = () if way.command[0] == DOCUMENTS else (way.threads,)
    done = process.run([*way.command, file, *threads, runs], env=dict(way.env))
    return json.loads(done.stdout), done.memory


def make(options, example):
    """The document, the lines and what is expected of both."""
    pairs = QUICK if options.quick else options.pairs
    how = "clustered" if options.clustered else "uniform"
    folder = options.folder / f"json-{how}-{pairs}-{options.seed}"
    folder.mkdir(parents=True, exist_ok=True)
    files = {False: folder / "pairs.json", True: folder / "pairs.ndjson"}
    for file in files.values():
        beside = file.with_name(file.name + ".expected")
        if not beside.exists():
            process.run([example, "generate", file, pairs, options.seed, how])
    expected = json.loads(beside.read_text())
    return files, expected, f"{pairs:,} pairs, {how}, seed {options.seed}"


def wrong(told, expected):
    if told["rows"] != expected["rows"] or told["digests"] != expected["digests"]:
        return "other numbers than were written"
    if "mean" in told and abs(told["mean"] / expected["mean"] - 1) > CLOSE:
        return f"a mean of {told['mean']} where {expected['mean']} is expected"
    return None


def run(_, options):
    example = options.plinth.parent / "examples" / "json"
    if not example.is_file():
        raise Failed(f"no {example}: build it beside the program with `{BUILD}`")
    parts = [part for part in PARTS if part in options.parts] or PARTS
    suite = {"suite": "json", "title": "JSON into columns, text into files", "notes": [], "ways": [], "verdicts": [], "disagreements": []}
    for part in parts:
        for name, found in {"read": read, "import": imported, "memory": memory}[part](options, example).items():
            suite[name] += found
    return suite


def imported(options, example):
    """Pairs and logs as NDJSON and lineitem as CSV made files of, beside DuckDB and others."""
    files, _, what = make(options, example)
    rows = int((QUICK if options.quick else options.pairs) * LOGS)
    folder = files[True].parent
    scale = 0.01 if options.quick else options.scale
    lines = folder / f"lineitem-{scale:g}.csv"
    if not lines.exists():
        source = tpch.make(options.folder / f"tpch-{scale:g}", scale)["lineitem"]
        process.run([options.plinth, "convert", source, "--to", lines])
    every = [
        texts.Text("pairs", "NDJSON of pairs", files[True], ("count(*)", "sum(x0)", "sum(y1)", "min(x1)", "max(y0)"), 2),
        texts.Text(
            "logs",
            "NDJSON of logs",
            logs.write(folder / f"logs-{rows}.ndjson", rows, options.seed),
            ("count(*)", "sum(status)", "sum(seconds)", "sum(bytes)", "count(error)", "sum(length(message))", "count(distinct service)"),
            2,
        ),
        texts.Text(
            "lineitem",
            "CSV of lineitem",
            lines,
            ("count(*)", "sum(l_orderkey)", "sum(l_extendedprice)", "sum(l_tax)", "max(l_comment)", "min(l_shipdate)", "count(distinct l_shipinstruct)"),
            1.3,
        ),
    ]
    suite = {"notes": [f"Files made of {what}, {rows:,} rows of a log and lineitem of scale {scale:g}; DuckDB's seconds are without those Python takes to start."]}
    for text in every:
        say(f"json: import of {text.label}, {text.file.stat().st_size:,} bytes")
        records, told, wrong = texts.measure(text, folder / "imported", options)
        for name, found in (("ways", records), ("verdicts", told), ("disagreements", wrong)):
            suite.setdefault(name, []).extend(found)
    shutil.rmtree(folder / "imported", ignore_errors=True)
    return suite


def memory(options, example):
    """What the import of one large document holds."""
    pairs = QUICK if options.quick else options.memory_pairs
    folder = options.folder / "json-memory"
    folder.mkdir(parents=True, exist_ok=True)
    document, target = folder / "pairs.json", folder / "pairs.plinth"
    process.run([example, "generate", document, pairs, options.seed, "uniform"])
    size = document.stat().st_size
    command = [options.plinth, "import", "--quiet", "--replace", "--root", "pairs", "--threads", options.threads]
    done = process.run([*command, document, "--to", target])
    counted = process.run([options.plinth, "sql", "--format", "csv", "-c", f"select count(*) from '{target}'"])
    wrong = [] if counted.stdout.split()[-1] == str(pairs) else [f"memory: {counted.stdout.split()[-1]} rows of {pairs}"]
    shutil.rmtree(folder)
    most = held(done.memory)
    say(f"json: a document of {size:,} bytes imported in {done.seconds:.1f} s within {most / 1e6:,.0f} MB")
    title = f"megabytes held by the import of a document of {size / 1e9:.1f} GB"
    record = {"key": "plinth-memory", "label": f"a document of {size / 1e9:.1f} GB: Plinth", "threads": options.threads}
    record |= summary([done.seconds]) | {"rate": size / done.seconds, "memory": most}
    return {"ways": [record], "verdicts": [verdict(title, None, MOST / 1e6, most / 1e6)], "disagreements": wrong}


def read(options, example):
    """The document and its lines read into columns."""
    files, expected, what = make(options, example)
    sizes = {lines: file.stat().st_size for lines, file in files.items()}
    say(f"json: {what}, {sizes[False]:,} bytes")
    found, memories, errors, means = {}, {}, {}, set()
    every = ways(options, example)
    for way in every:
        try:
            told, _ = ask(way, files, 1)
            why = wrong(told, expected)
            if "mean" in told:
                means.add(told["mean"])
        except Failed as error:
            why = str(error)
        if why:
            errors[way.key] = why
            say(f"  {way.key}: {why}")
    able = [way for way in every if way.key not in errors]
    for turn in range(options.rounds):
        for way in able if turn % 2 == 0 else reversed(able):
            told, held_by = ask(way, files, options.repeat)
            found.setdefault(way.key, []).extend(told["seconds"])
            memories[way.key] = max(memories.get(way.key, 0), held(held_by))
    records = []
    for way in every:
        record = {"key": way.key, "label": way.label, "threads": way.threads}
        if way.key in errors:
            record["error"] = errors[way.key]
        else:
            of = summary(found[way.key])
            record |= of | {"rate": sizes[way.lines] / of["median"], "memory": memories[way.key]}
            say(f"  {way.key}: {record['rate'] / 1e9:.3f} GB/s, {memories[way.key] / 1e6:,.0f} MB")
        records.append(record)
    # A way of Plinth's that is wrong fails the run; a peer's is only left out.
    disagreements = [f"{key}: {why}" for key, why in errors.items() if key.startswith("plinth")]
    if len(means) > 1:
        disagreements.append(f"the mean is not the same for every way to read: {sorted(means)}")
    return {
        "notes": [
            f"{what}: {sizes[False]:,} bytes as one document, {sizes[True]:,} as lines; read from the page cache.",
            "Timed: the file read, parsed into four columns of doubles, and these added up. Each way's bits were checked before.",
            "simdjson reads the whole file into memory before it parses it, and is compiled for AVX2; the others choose at run time.",
        ],
        "ways": records,
        "verdicts": verdicts(found),
        "disagreements": disagreements,
    }


def verdicts(found):
    told = []

    def times(title, over, under, least):
        if over in found and under in found:
            pair = paired(found[over], found[under])
            told.append(verdict(title, least, None, pair["ratio"], (pair["low"], pair["high"])))

    document = "plinth-document-1"
    times("the document, times DuckDB's speed over lines, one thread", "duckdb-lines-1", document, 3)
    times("the document, times DuckDB's speed over it, one thread", "duckdb-document-1", document, 35)
    times("the document, times arrow-json's speed over lines", "arrow-json", document, 5)
    times("the document, times simdjson On-Demand's speed", "simdjson", document, 1)
    times("the document, two threads over one", document, "plinth-document-2", 1.8)
    return told
