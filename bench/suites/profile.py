"""The profiler asked about itself: what it costs, how much it names, and whether what it says is so."""

import re
import shutil
import statistics
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from .. import files, process, profiles, slower, timing
from ..engines import Plinth
from ..process import Failed
from ..timing import paired, say, verdict
from . import pushdown
from .json import BUILD

PARTS = ["overhead", "named", "honest", "perf"]
# Bytes a second of the device that is slowed down.
SLOW = 200_000_000
COLUMNS = 4
# Rows of the tables whose bound is known: integers of all 64 bits, which nothing packs, and of 17.
WIDE_ROWS, PACKED_ROWS = 24_000_000, 100_000_000
PACKED_BITS = 17


class Profiled(Plinth):
    key, label, ours = "plinth-profiled", "Plinth, every statement profiled", False
    before = ("SET plinth.profile = true",)


# Stages of the profile, and symbols, by what they do. The first that fits counts.
FAMILIES = [
    ("operators", r"^operator", r"datafusion_|hashbrown|arrow_arith|arrow_ord|arrow_cast|arrow_row|arrow_select"),
    ("gather", r"^gather", r"dictionary::"),
    ("filter", r"^filter", r"evaluate|::fused::|::compare|predicate"),
    ("JSON", r"^(structure|parse|build|json)", r"plinth_ingest|lexical|fast_float"),
    ("decode", r"^(decode|decompress)", r"plinth_encoding|ZSTD_|HUF_|FSE_|\bpco\b"),
    ("checksum", r"^checksum", r"xxh|twox"),
    ("reading", r"^(page cache|drive reads|submit|wait|read)", r"^\[k\]"),
]


def run(_, options):
    parts = [part for part in PARTS if not options.parts or part in options.parts]
    figures = {"suite": "profile", "title": "The profiler", "notes": [], "queries": [], "disagreements": [], "verdicts": []}
    for part in parts:
        say(f"profile: {part}")
        DO[part](options, figures)
    return figures


def skipped(figures, part, why):
    say(f"  skipped: {why}")
    figures["notes"].append(f"{part}: skipped: {why}")


def questions(options):
    for part in ("clickbench", "tpch"):
        tables, queries, why = pushdown.DATA[part](options)
        yield part, tables, queries, why


def overhead(options, figures):
    """The 43 with and without profiles, in turn."""
    engines = [kind(options.plinth, options.threads) for kind in (Plinth, Profiled)]
    part, tables, queries, why = next(questions(options))
    if tables is None:
        return skipped(figures, "overhead", why)
    ratios = []
    for query in queries:
        record = timing.measure(engines, tables, query, options.without_cold()) | {"part": part}
        figures["queries"].append(record)
        figures["disagreements"] += record["disagreements"]
        runs = [record["engines"].get(engine.key, {}).get("warm", {}).get("runs") for engine in engines]
        if all(runs):
            ratios.append(paired(runs[1], runs[0])["ratio"])
            say(f"  {query.name}: {ratios[-1]:.3f}")
    if ratios:
        # Of the geometric mean, by how much the questions differ.
        logs = np.log(ratios)
        spread = 1.96 * logs.std(ddof=1) / len(logs) ** 0.5 if len(logs) > 1 else 0.0
        mean = statistics.geometric_mean(ratios)
        between = [mean * float(np.exp(-spread)), mean * float(np.exp(spread))]
        figures["verdicts"].append(verdict(f"time with profiles over that without, {len(ratios)} questions", None, 1.01, mean, between))


def named(options, figures):
    """The share of processor time in named stages, of each question."""
    engine = Plinth(options.plinth, options.threads)
    for part, tables, queries, why in questions(options):
        if tables is None:
            skipped(figures, f"named, {part}", why)
            continue
        shares = {}
        for query in queries:
            of = engine.profile(tables, query.text(engine.dialect))
            shares[query.name] = of["named"]
            figures.setdefault("named", {}).setdefault(part, {})[query.name] = of["named"]
        least = min(shares, key=shares.get)
        below = [f"{name} {share:.3f}" for name, share in shares.items() if share < 0.95]
        what = f"processor time in named stages, the least of {len(shares)} of {part} ({least}; below: {', '.join(below) or 'none'})"
        figures["verdicts"].append(verdict(what, 0.95, None, shares[least]))


def table(options, name, rows, columns, bits):
    """A table of random integers, imported."""
    folder = options.folder / f"profile-{rows}"
    ours = folder / "plinth" / f"{name}.plinth"
    if not ours.exists():
        random = np.random.default_rng(options.seed)
        made = {f"c{i}": pa.array(random.integers(0, 2 ** (bits - 1), rows)) for i in range(columns)}
        ours.parent.mkdir(parents=True, exist_ok=True)
        source = folder / f"{name}.parquet"
        pq.write_table(pa.table(made), source, compression="none", use_dictionary=False)
        process.run([options.plinth, "import", source, "--to", ours, "--quiet"])
        source.unlink()
    return ours


def honest(options, figures):
    """What bounds a scan from a device known to be slow, and one of packed integers in memory."""
    shrink = 100 if options.quick else 1
    wide = table(options, "wide", WIDE_ROWS // shrink, COLUMNS, 64)
    packed = table(options, "packed", PACKED_ROWS // shrink, 1, PACKED_BITS)
    sums = ", ".join(f"sum(c{i} % 1000)" for i in range(COLUMNS))

    def profile(file, sql, within=lambda command: command, *more):
        command = [options.plinth, "sql", "--db", file.parent, "--threads", options.threads]
        return profiles.taken(lambda given: process.run(within([*map(str, [*command, *given, *more])]), sql))

    with slower.device(options.folder, SLOW) as (within, why):
        if why:
            skipped(figures, "honest, the device", why)
        else:
            seconds, size = ("6", "32MiB") if options.quick else ("20", "512MiB")
            known = options.folder / "slow-device.toml"
            command = [options.plinth, "probe", options.folder, "--quiet", "--seconds", seconds, "--size", size, "--profile", known]
            process.run(within([str(part) for part in command]))
            files.drop([wide])
            of = profile(wide, f"select {sums} from wide", within, "--device", known)
            device = of["limits"]["device"]
            say(f"  {of['verdict']}")
            rate = device["moved"] / of["wall"] / SLOW
            figures["honest"] = {"slow": of}
            figures["verdicts"] += [
                verdict("slow device: said to be device-bound", 1, None, float(of["bound"] == "device")),
                verdict("slow device: the share of its speed it says, at least", 0.9, None, device["reached"] or 0.0),
                verdict("slow device: the share of its speed it says, at most", None, 1.05, device["reached"] or 9.0),
                verdict(f"slow device: bytes a second over {SLOW / 1e6:.0f} MB", 0.9, None, rate),
            ]
    files.warm([packed])
    of = profile(packed, "select sum(c0) from packed")
    say(f"  {of['verdict']}")
    figures.setdefault("honest", {})["packed"] = of
    bound = of["bound"] in ("memory", "decode")
    figures["verdicts"].append(verdict(f"packed integers in memory: memory- or decode-bound ({of['bound']})", 1, None, float(bound)))


def families(of):
    """Shares of the time by what it was for, from pairs of a name and a weight."""
    shares = {}
    for name, weight in of:
        family = next((family for family, *patterns in FAMILIES if any(re.search(p, name) for p in patterns)), "other")
        shares[family] = shares.get(family, 0.0) + weight
    whole = sum(shares.values()) or 1.0
    return {family: weight / whole for family, weight in sorted(shares.items(), key=lambda pair: -pair[1])}


def sampled(command, text):
    """Symbols and their samples, of a command under perf."""
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "perf.data"
        process.run(["perf", "record", "-q", "-F", "2000", "-o", data, *command], text)
        told = subprocess.run(
            ["perf", "report", "-i", data, "--stdio", "--no-children", "-g", "none", "-F", "sample,sym"],
            capture_output=True, text=True, check=True,
        ).stdout
    lines = [line.split(None, 1) for line in told.splitlines() if line.strip() and not line.startswith("#")]
    # The kernel's symbols are all of a family, the program's are told by their paths.
    return [(symbol if symbol.startswith("[k]") else symbol.removeprefix("[.] "), int(count)) for count, symbol in lines]


def perf(options, figures):
    """The families of stages with most of the time, by the profile and by perf."""
    if shutil.which("perf") is None:
        return skipped(figures, "perf", "no perf")
    cases = []
    for part, tables, queries, why in questions(options):
        if part == "tpch" and tables is not None:
            folder = next(iter(tables.plinth.values()))[0].parent
            cases += [(f"TPC-H {q.name}", folder, q.sql, 100) for q in queries if q.name in ("q01", "q06")]
    example = options.plinth.parent / "examples" / "json"
    if example.is_file():
        pairs = 20_000 if options.quick else 5_000_000
        document = options.folder / f"profile-pairs-{pairs}.json"
        if not document.exists():
            process.run([example, "generate", document, pairs, options.seed, "uniform"])
        sql = f"select avg(haversine(y0, x0, y1, x1)) from read_json('{document}', root => 'pairs')"
        cases.append(("the reference document", options.folder, sql, 8))
    else:
        skipped(figures, "perf, the reference document", f"no {example}: build it beside the program with `{BUILD}`")
    # perf sees all runs, the profile is of the last: of short ones there are many, so that the first weigh little.
    for title, folder, sql, repeat in cases:
        command = [options.plinth, "sql", "--db", folder, "--threads", options.threads, "--repeat", repeat]
        command += ["--timings", "json"]
        command = [str(part) for part in command]
        try:
            seen = families(sampled(command, sql))
        except (Failed, subprocess.CalledProcessError) as error:
            skipped(figures, f"perf, {title}", str(error))
            continue
        of = profiles.taken(lambda more: process.run([*command, *map(str, more)], sql))
        rows = [(f"operator {name}" if "Exec" in name else name, stage["cpu"]) for name, stage in of["stages"].items()]
        told = families(rows)
        figures.setdefault("perf", []).append({"case": title, "perf": seen, "profile": told})
        say(f"  {title}: perf {show(seen)}; the profile {show(told)}")
        # Of those that have a name: what perf calls other is the symbols of no family.
        first = [next(family for family in shares if family != "other") for shares in (seen, told)]
        what = f"{title}: the same family first by perf and by the profile ({', '.join(dict.fromkeys(first))})"
        figures["verdicts"].append(verdict(what, 1, None, float(first[0] == first[1])))


def show(shares):
    return ", ".join(f"{family} {share:.0%}" for family, share in list(shares.items())[:4])


DO = {"overhead": overhead, "named": named, "honest": honest, "perf": perf}
