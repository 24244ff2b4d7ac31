"""Plinth files inside DuckDB, measured: the 22 and the 43, and what each step of a reader brings.

    python -m bench.extension --extension target/release/plinth.duckdb_extension --plinth target/release/plinth --folder bench-data/extension \
        --hits-sample nano_hits.parquet --hits-rows 1000000 --scale 1

needs duckdb 2.0.0. Writes figures.json, page.html and page.md into the folder.
"""

import argparse
import json
import os
import subprocess
from pathlib import Path

from ..data import hits
from ..data import tpch as tpch_data
from ..machine import machine
from ..suites import clickbench, tpch
from ..timing import say
from . import page, questions, roads, steps
from .inside import connect

PARTS = ["tpch", "hits", "steps", "threads", "files", "roads"]


def imported(given, source, target, *more):
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run([given.plinth, "import", source, "--to", target, "-q", *more], check=True)
    return target


def forms(given, tables, folder):
    """Each table as Parquet, as Plinth, and as Plinth of plain values."""
    found = {}
    for name, parquet in tables.items():
        plinth = imported(given, parquet, folder / "plinth" / f"{name}.plinth")
        plain = imported(given, parquet, folder / "plain" / f"{name}.plinth", "--plain")
        paths = {"parquet": parquet, "plinth": plinth, "plain": plain}
        found[name] = paths | {"files": {kind: [path] for kind, path in paths.items()}}
    return found


def in_files(given, lineitem, folder):
    """A part of lineitem in so many files of each form."""

    def make(count):
        base = connect(given.extension, given.threads)
        rows, paths = given.file_rows, {}
        each = -(-rows // count)
        for kind in ("plinth", "parquet"):
            place = folder / f"{count}-{kind}"
            if not place.exists():
                place.mkdir(parents=True)
                base.execute(f"create or replace temp table source as select row_number() over () - 1 as n, * from '{lineitem}' limit {rows}")
                for at in range(count):
                    base.execute(f"copy (select * exclude n from source where n between {at * each} and {(at + 1) * each - 1}) to '{place}/{at:05}.{kind}'")
            paths[kind] = f"{place}/*.{kind}"
        return paths, "select count(*), sum(l_extendedprice), max(l_shipdate), max(l_comment) from rows"

    return make


def main():
    parser = argparse.ArgumentParser(prog="python -m bench.extension", description=__doc__)
    parser.add_argument("--extension", type=Path, required=True)
    parser.add_argument("--plinth", type=Path, required=True)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--hits-sample", type=Path)
    parser.add_argument("--hits-rows", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--file-rows", type=int, default=1_000_000)
    parser.add_argument("--counts", type=lambda text: [int(part) for part in text.split(",")], default=[1, 10, 100, 1000, 10_000])
    parser.add_argument("--only", nargs="*", default=[], help="names of what steps are measured with")
    parser.add_argument("--parts", type=lambda text: text.split(","), default=PARTS)
    given = parser.parse_args()
    known = given.folder / "figures.json"
    figures = json.loads(known.read_text()) if known.exists() else {"questions": [], "steps": [], "threads": [], "files": [], "roads": [], "asked": []}
    parts = [part for part in PARTS if part in given.parts]

    lineitem = forms(given, tpch_data.make(given.folder / f"tpch-{given.scale:g}", given.scale), given.folder / f"tpch-{given.scale:g}")
    sets = [("tpch", f"TPC-H {given.scale:g}", lineitem, tpch.queries(given.scale, []))]
    if given.hits_sample:
        folder = given.folder / f"hits-{given.hits_rows}-{given.seed}"
        source = clickbench.kept(folder, lambda target: hits.make(given.hits_sample, target, given.hits_rows, given.seed))
        sets.append(("hits", f"ClickBench, {given.hits_rows:,} rows", forms(given, {"hits": source}, folder), clickbench.queries(given.hits_rows, True, [])))
    for key, name, paths, queries in sets:
        if key in parts:
            say(name)
            figures["questions"] = [of for of in figures["questions"] if of["name"] != name] + [questions.run(given, name, paths, queries)]
    if "steps" in parts:
        say("steps")
        only = {"lineitem": lineitem["lineitem"]}
        asked = [("sums of lineitem", only, [steps.SUMS]), ("a filter on lineitem", only, [steps.FILTERED])]
        asked += [(name, paths, [query.text("duckdb") for query in queries]) for _, name, paths, queries in sets]
        # Where LIMIT cuts through ties the rows are a matter of taste: answers of the whole sets were compared above.
        kept = {(of["name"], of["cold"]): of for of in figures["steps"]}
        measured = [steps.run(given, name, paths, sql, cold, given.threads, checked=len(sql) == 1, row_bytes=steps.SUMS_BYTES if sql == [steps.SUMS] else 0) for name, paths, sql in asked if not given.only or name in given.only for cold in (False, True)]
        figures["steps"] = list((kept | {(of["name"], of["cold"]): of for of in measured}).values())
    if "threads" in parts:
        say("threads")
        some = [way for way in steps.WAYS if way.key in ("fresh", "ring", "auto", "parquet")]
        figures["threads"] = [steps.run(given, "sums of lineitem", {"lineitem": lineitem["lineitem"]}, [steps.SUMS], False, threads, some) for threads in (1, 2, 4, 8)]
    if "files" in parts:
        say("files")
        figures["files"] = steps.many(given, given.counts, in_files(given, lineitem["lineitem"]["parquet"], given.folder / "files"))
    if "roads" in parts:
        say("roads")
        figures["roads"] = [of for _, name, paths, queries in sets for of in roads.off(given, name, paths, queries)]
        figures["asked"] = roads.files(given, lineitem["lineitem"], given.folder / "roads")
    about = machine()
    figures["setting"] = f"{about['cpu']}, {about['cores']} cores, {given.threads} threads, DuckDB 2.0.0, {given.rounds} rounds in turn; medians."
    known.write_text(json.dumps(figures, indent=1))
    if all(figures.get(key) for key in ("questions", "steps", "threads", "files", "roads")):
        page.write(figures, given.folder / "page.html")
        (given.folder / "page.md").write_text(page.markdown(figures))
        say(f"{given.folder / 'page.html'}")


if __name__ == "__main__":
    main()
