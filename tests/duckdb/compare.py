#!/usr/bin/env python3
"""Asks DuckDB over Parquet files and Plinth over tables imported from them, and reports every answer that differs.

    compare.py PLINTH [--data DIR] [--work DIR] [--only NAME]

PLINTH is the program; --data the folder of clickbench/nano_hits.parquet (that part is skipped, visibly, without it). One line per
query that differs, then one that counts; the exit code is 1 if any differed.
"""

import argparse
import csv
import io
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa

sys.path.insert(0, str(Path(__file__).parent))
import nasty
from values import cell, difference, parse_json

HERE = Path(__file__).resolve().parent
TPCH = HERE.parents[1] / "bench" / "tpch"
# Queries of TPC-H whose ORDER BY leaves ties.
TIES = {"q03", "q05", "q10", "q11", "q18"}
MARK = "end of answer "


@dataclass
class Query:
    name: str
    duckdb: str
    plinth: str
    ordered: bool = False
    format: str = "json"


def read_queries(path):
    """Queries of a file; its head tells the form."""
    queries = []
    for part in path.read_text().split("\n-- name: ")[1:]:
        head, *lines = part.split("\n")
        body = "\n".join(line for line in lines if not line.startswith("-- "))
        words = head.split()
        ordered, as_csv = "ordered" in words, "csv" in words
        name = " ".join(w for w in words if w not in ("ordered", "csv"))
        if "--| duckdb\n" in body:
            ours, theirs = body.split("--| duckdb\n")[1].split("--| plinth\n")
        else:
            ours = theirs = body
        queries.append(Query(name, ours.strip(), theirs.strip(), ordered, "csv" if as_csv else "json"))
    return queries


def column_queries(table, schema):
    """Whole rows; and for each column what statistics can answer, and the same where they can't."""
    floats = [f.name for f in schema if pa.types.is_floating(f.type)]
    exact = ", ".join(f'"{f.name}"' for f in schema if f.name not in floats)
    queries = [Query(f"{table}: count", *[f"select count(*) from {table}"] * 2)]
    queries.append(Query(f"{table}: all rows", *[f"select {exact} from {table}"] * 2))
    first = schema[0].name
    if floats:
        text = ", ".join(f'"{c}"' for c in dict.fromkeys([first, *floats]))
        queries.append(Query(f"{table}: all floats", *[f"select {text} from {table}"] * 2, format="csv"))
    for field in schema:
        type_, c = field.type, f'"{field.name}"'
        parts = [f"count({c})"]
        if not pa.types.is_nested(type_):
            parts += [f"min({c})", f"max({c})"] if not pa.types.is_boolean(type_) else []
        text = f"select {', '.join(parts)} from {table}"
        queries.append(Query(f"{table}.{field.name}: statistics", text, text, format="csv" if field.name in floats else "json"))
        if not pa.types.is_nested(type_):
            # Adding zero makes one zero of two: DataFusion counts -0.0 and 0.0 apart here (and together in GROUP BY).
            value = f"{c} + 0.0" if pa.types.is_floating(type_) else c
            parts.append(f"count(distinct {value})")
        if pa.types.is_integer(type_):
            parts.append(f"sum(cast({c} as decimal(38, 0)))")
        elif pa.types.is_decimal(type_) or (pa.types.is_floating(type_) and field.name != "odd"):
            parts.append(f"sum({c})")
        elif values_are_text(type_):
            parts.append(f"sum(length({c}))")
        text = f'select {", ".join(parts)} from {table} where "{first}" is not null or {c} is null'
        queries.append(Query(f"{table}.{field.name}: scan", text, text, format="csv" if field.name in floats else "json"))
    return queries


def values_are_text(type_):
    return pa.types.is_string(type_) or pa.types.is_large_string(type_)


class Plinth:
    def __init__(self, program, database):
        self.command = [str(program), "sql", "--db", str(database)]

    def run(self, queries, form):
        """Texts answered by one process, as a list, or the error it ended with."""
        statements = [f"{q};\nselect '{MARK}{i}' as mark" for i, q in enumerate(queries)]
        done = subprocess.run(
            [*self.command, "--format", form], input=";\n".join(statements), capture_output=True, text=True, encoding="utf-8"
        )
        if done.returncode != 0:
            return done.stderr.strip() or f"ended with {done.returncode}"
        return split_answers(done.stdout, form, len(queries))

    def answers(self, queries):
        """For each query its answer's text, or an exception: all of a format in one process, one by one if that fails."""
        answers = {}
        for form in ("json", "csv"):
            of_form = [q for q in queries if q.format == form]
            texts = self.run([q.plinth for q in of_form], form)
            if isinstance(texts, str):
                for q in of_form:
                    text = self.run([q.plinth], form)
                    answers[q.name] = RuntimeError(text) if isinstance(text, str) else text[0]
            else:
                answers.update((q.name, text) for q, text in zip(of_form, texts))
        return answers


def split_answers(text, form, count):
    answers, rest = [], text
    for i in range(count):
        mark = f'{{"mark":"{MARK}{i}"}}\n' if form == "json" else f"mark\n{MARK}{i}\n"
        answer, found, rest = rest.partition(mark)
        if not found:
            raise ValueError(f"no {mark!r} in the output of Plinth")
        answers.append(answer)
    return answers


def parse_answer(text, form, schema):
    """Rows of Plinth's answer, by DuckDB's types."""
    types = schema.types
    rows = []
    if form == "json":
        for line in text.split("\n"):
            if line:
                values = list(parse_json(line).values())
                rows.append(values)
    else:
        rows = [[v if v != "" else None for v in row or [""]] for row in list(csv.reader(io.StringIO(text)))[1:]]
    for row in rows:
        if len(row) != len(types):
            raise ValueError(f"{len(types)} columns in DuckDB, {len(row)} in Plinth")
    return [tuple(cell(v, t) for v, t in zip(row, types)) for row in rows]


def ask_duckdb(connection, query):
    table = connection.sql(query).to_arrow_table()
    columns = [column.to_pylist() for column in table.columns]
    rows = zip(*columns) if columns else []
    return table.schema, [tuple(cell(v, t) for v, t in zip(row, table.schema.types)) for row in rows]


def compare(name, program, parquet, tables, queries):
    """Compares the answers to queries over the tables (stems) of a folder; returns how many were asked and how many differed."""
    work = parquet.with_name(parquet.name + "-plinth")
    work.mkdir()
    connection = duckdb.connect(config={"threads": 2})
    connection.execute("set TimeZone = 'UTC'")
    for table in tables:
        source = parquet / f"{table}.parquet"
        done = subprocess.run([program, "import", "-q", source, "--to", work / f"{table}.plinth"], capture_output=True, text=True)
        if done.returncode != 0:
            print(f"{name}: import of {source.name} failed: {done.stderr.strip()}")
            return len(queries), len(queries)
        connection.execute(f"create view {table} as select * from read_parquet('{source}')")
    if not queries:
        return 0, 0
    over_plinth, over_parquet = Plinth(program, work), Plinth(program, parquet)
    texts = over_plinth.answers(queries)
    differing = 0
    for query in queries:
        schema, expected = ask_duckdb(connection, query.duckdb)
        found = judge(texts[query.name], query, schema, expected)
        if found is None:
            continue
        differing += 1
        # The same engine over the Parquet file tells whether the file or the engine is to blame.
        parquet_text = over_parquet.answers([query])[query.name]
        blame = "over Parquet it agrees" if judge(parquet_text, query, schema, expected) is None else "over Parquet it differs too"
        print(f"{name} {query.name!r}: {found} ({blame}) -- {' '.join(query.plinth.split())[:300]}", flush=True)
    return len(queries), differing


def judge(text, query, schema, expected):
    if isinstance(text, Exception):
        return f"Plinth failed: {text}"
    try:
        rows = parse_answer(text, query.format, schema)
    except (ValueError, TypeError, KeyError, ArithmeticError) as error:
        return f"the answer can't be read: {type(error).__name__} {error}"
    return difference(expected, rows, schema.types, query.ordered)


def schema_of(folder, table):
    return duckdb.sql(f"select * from read_parquet('{folder / f'{table}.parquet'}') limit 0").to_arrow_table().schema


def make_tpch(folder):
    program = Path(sys.executable).parent / "tpchgen-cli"
    subprocess.run([program, "parquet", "-s", "0.01", "--quiet", "--output-dir", folder], check=True)
    tables = sorted(p.stem for p in folder.glob("*.parquet"))
    queries = [q for t in tables for q in column_queries(t, schema_of(folder, t))]
    for path in sorted(TPCH.glob("q*.sql")):
        text = path.read_text().strip().rstrip(";")
        queries.append(Query(path.stem, text, text, path.stem not in TIES))
    return tables, queries + read_queries(HERE / "queries" / "tpch.sql")


def make_nasty(folder):
    nasty.write(folder)
    queries = column_queries("nasty", schema_of(folder, "nasty")) + column_queries("other", schema_of(folder, "other"))
    return ["nasty", "other"], queries + read_queries(HERE / "queries" / "nasty.sql")


def make_hits(folder, data):
    shutil.copyfile(data / "clickbench" / "nano_hits.parquet", folder / "hits.parquet")
    return ["hits"], column_queries("hits", schema_of(folder, "hits")) + read_queries(HERE / "queries" / "hits.sql")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plinth", type=Path)
    parser.add_argument("--data", type=Path, help="folder with clickbench/nano_hits.parquet")
    parser.add_argument("--work", type=Path, help="where to make a scratch folder")
    parser.add_argument("--only", help="one of tpch, nasty, hits")
    args = parser.parse_args()
    makers = {"nasty": make_nasty, "tpch": make_tpch}
    if args.data and (args.data / "clickbench" / "nano_hits.parquet").is_file():
        makers["hits"] = lambda folder: make_hits(folder, args.data)
    else:
        print(f"skipped: hits (no clickbench/nano_hits.parquet in {args.data})", file=sys.stderr)
    asked = differing = 0
    with tempfile.TemporaryDirectory(dir=args.work, prefix="compare-") as scratch:
        for name, make in makers.items():
            if args.only and name != args.only:
                continue
            folder = Path(scratch) / name
            folder.mkdir()
            tables, queries = make(folder)
            names = [q.name for q in queries]
            assert len(names) == len(set(names)), f"{name}: two queries of one name"
            n, d = compare(name, args.plinth.resolve(), folder, tables, queries)
            print(f"{name}: {n} queries, {d} differ", flush=True)
            asked, differing = asked + n, differing + d
    if asked == 0:
        print("nothing was compared")
        return 1
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
