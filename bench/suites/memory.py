"""Whether `plinth sql --memory` holds, for whatever is asked.

The 22, the 43, and every aggregate, window, join and function that the program lists itself, over large input and under three limits, a
process each, in a control group. A query answers, or is refused by a sentence that names who needed how much; either way what it
held at its peak may be at most 1.2 times the limit and 64 MB. What is answered under one limit must be answered alike under the others.
"""

import re
import signal

from .. import process
from ..answers import agree, rows_of_csv
from ..data import tpch
from ..imports import bytes_of
from ..timing import say, verdict
from . import clickbench
from . import tpch as tpch_suite

LIMITS = ["64MB", "256MB", "1GB"]
TIMES, BESIDE = 1.2, 64e6
# A machine is to survive what a program should not do.
MOST = 6e9
SECONDS = 600
PARTS = ["tpch", "clickbench", "sorts", "joins", "aggregates", "windows", "functions", "large"]
# An error that tells what to do: who, a size, the limit.
CLEAR = re.compile(r"out of memory: .+ needs .+ more.* of the memory limit of .+ are left.*: raise --memory")

# What functions are tried with, by kind of argument: the first list that a function takes is used.
VALUES = {
    "n": "l_orderkey",
    "i": "l_linenumber",
    "x": "cast(l_extendedprice as double)",
    "t": "l_comment",
    "s": "l_shipmode",
    "d": "l_shipdate",
    "m": "cast(l_shipdate as timestamp)",
    "b": "(l_linenumber > 3)",
    "a": "make_array(l_orderkey, l_partkey)",
    "f": "make_array(cast(l_tax as double), cast(l_discount as double))",
    "w": "make_array(l_comment, l_shipmode)",
    "l": "make_array(make_array(l_orderkey), make_array(l_partkey))",
    "k": "map([l_shipmode], [l_orderkey])",
    "y": "cast(l_comment as bytea)",
    "1": "1",
    "3": "3",
    "h": "0.5",
    "D": "'day'",
    "H": "'sha256'",
    "X": "'hex'",
    "F": "'%Y'",
    "P": "'a+'",
    "C": "','",
    "I": "interval '1 day'",
    "J": "interval '1 month'",
    "T": "'Int64'",
    "N": "'c0'",
    "S": "struct(l_orderkey, l_shipmode)",
    "q": "'1'",
}
SHAPES = (
    " n t x a d m b n,n x,x t,1 t,t a,n a,a a,1 f f,f f,h w w,C l k k,s x,h x,1 t,3,C t,C t,C,1 t,1,1 t,t,t t,P t,P,q s,C,1 D,d D,m I,m I,d,d"
    " I,m,m m,F t,F x,h,1 x,x,h n,1 1,n,n n,n,1 a,1,n a,n,n a,1,1 a,n,n,1 t,H t,X y,X y X q S S,N t,T n,T 1,1,1 b,n n,n,n s,C,q t,q,1 t,1,t k,n"
).split(" ")
# What is not called over a table's columns.
ELSEWHERE = {"input_file_name": "of files other than Plinth's", "file_row_index": "of files other than Plinth's"}

SORTS = {
    "all columns": "select max(l_comment) from (select *, row_number() over (order by l_comment, l_orderkey, l_linenumber) as r from lineitem) as s where r > 5",
    "text, written": "copy (select * from lineitem order by l_comment, l_orderkey, l_linenumber) to '{scratch}/sorted.parquet'",
    "a number": "copy (select l_extendedprice, l_orderkey from lineitem order by l_extendedprice, l_orderkey) to '{scratch}/sorted.parquet'",
    "all columns of hits": "copy (select * from hits order by \"URL\", \"Title\", \"WatchID\") to '{scratch}/sorted.parquet'",
    "text of a dictionary": "copy (select l_shipinstruct, l_shipmode, l_comment from lineitem order by l_shipinstruct, l_shipmode, l_comment) to '{scratch}/sorted.parquet'",
    "with LIMIT": "select l_comment from lineitem order by l_comment, l_orderkey limit 100000",
}
JOINS = {
    "a small side": "select count(*), sum(l_quantity) from lineitem join supplier on l_suppkey = s_suppkey",
    "no side fits": "select count(*), sum(a.l_quantity) from lineitem as a join lineitem as b on a.l_orderkey = b.l_orderkey and a.l_linenumber = b.l_linenumber",
    "by text": "select count(*) from lineitem as a join lineitem as b on a.l_comment = b.l_comment and a.l_orderkey = b.l_orderkey and a.l_linenumber = b.l_linenumber",
    "left": "select count(*), count(o_orderkey) from lineitem left join orders on l_orderkey = o_orderkey and o_custkey > 1000",
    "right": "select count(*), count(l_orderkey) from lineitem right join orders on l_orderkey = o_orderkey and l_tax > 0",
    "full": "select count(*) from lineitem full join orders on l_orderkey = o_orderkey and o_custkey > 1000",
    "semi": "select count(*) from orders where exists (select 1 from lineitem where l_orderkey = o_orderkey)",
    "anti": "select count(*) from orders where o_orderkey not in (select l_orderkey from lineitem where l_tax > 0)",
    "cross": "select max(l_comment || c) from lineitem, (select c_name as c from customer limit 20) as b",
    "cross, no side fits": "select max(a.l_comment || b.c) from lineitem as a, (select l_comment as c from lineitem limit 2000000) as b where length(b.c) < 0",
    "by a range": "select count(*) from orders as o join (select o_totalprice as p from orders limit 300) as q on o_totalprice < q.p",
    "union": "select count(*) from (select l_comment from lineitem union select o_comment from orders) as u",
    "except": "select count(*) from (select l_orderkey, l_comment from lineitem except select o_orderkey, o_comment from orders) as u",
}
MIXED = {
    "GROUP BY, 1 number": "select count(*), sum(n) from (select l_orderkey, count(*) as n from lineitem group by l_orderkey) as g",
    "GROUP BY, 2 texts": "select count(*), sum(n) from (select l_comment, l_shipmode, count(*) as n from lineitem group by l_comment, l_shipmode) as g",
    "median, count(distinct)": "select count(*), sum(d) from (select l_orderkey, median(l_extendedprice) as m, count(distinct l_partkey) as d from lineitem group by l_orderkey) as g",
    "count(distinct) of text": "select count(*), sum(d) from (select l_orderkey, count(distinct l_comment) as d from lineitem group by l_orderkey) as g",
    "DISTINCT": "select count(*) from (select distinct l_orderkey, l_comment from lineitem) as d",
    "CUBE": "select count(*) from (select l_partkey, l_suppkey, l_shipmode, count(*) from lineitem group by cube (l_partkey, l_suppkey, l_shipmode)) as g",
}
LARGE = {
    "repeat, a value": "select length(repeat('x', 2000000000))",
    "repeat, a column": "select sum(length(repeat(l_comment, 2000))) from lineitem where l_orderkey < 600000",
    "repeat, by a column": "select sum(length(repeat(l_comment, l_orderkey))) from lineitem where l_orderkey < 60000",
    "repeat of a literal in each row": "select count(r), max(l_orderkey) from (select repeat('x', 1000000) as r, l_orderkey from lineitem) as s where length(r) > 5 and l_orderkey < 60000",
    "lpad": "select sum(length(lpad(l_comment, 100000))) from lineitem where l_orderkey < 60000",
    "rpad, a value": "select length(rpad('x', 2000000000, 'y'))",
    "replace": "select sum(length(replace(l_comment, 'e', repeat('y', 10000)))) from lineitem where l_orderkey < 60000",
    "regexp_replace": "select sum(length(regexp_replace(l_comment, 'e', repeat('y', 10000), 'g'))) from lineitem where l_orderkey < 60000",
    "concat": "select sum(length(concat(l_comment, repeat('y', 100000)))) from lineitem where l_orderkey < 60000",
    "range": "select cardinality(range(0, 1000000000))",
    "unnest of a range": "select count(*) from (select unnest(range(0, 1000000000)) as u) as s",
    "unnest of ranges": "select count(*), sum(u) from (select unnest(range(0, l_orderkey)) as u from lineitem where l_orderkey < 3000) as s",
    "generate_series, a table": "select count(*), max(value) from generate_series(1, 20000000)",
    "array_repeat": "select cardinality(array_repeat('x', 2000000000))",
    "array_repeat, a column": "select sum(cardinality(array_repeat(l_comment, 10000))) from lineitem where l_orderkey < 60000",
    "array_resize": "select cardinality(array_resize([1], 2000000000, 1))",
    "string_agg": "select length(string_agg(l_comment, ',')) from lineitem",
    "array_agg": "select cardinality(array_agg(l_comment)) from lineitem",
    "a recursive query": "with recursive t as (select 1 as n union all select n + 1 from t where n < 200000) select count(*), sum(n) from t",
    "a recursive query that doubles": "with recursive t as (select 'x' as s union all select s || s from t where length(s) < 2000000000) select max(length(s)) from t",
}


def ask(options, folder, sql, limit):
    command = ["timeout", "-k", "10", SECONDS, options.plinth, "sql", "--db", folder, "--threads", options.threads]
    done = process.run([*command, "--format", "csv", "--memory", limit], sql, limit=MOST)
    return rows_of_csv(done.stdout), done


def listed(options, folder):
    """Functions by kind, as the program lists them."""
    rows, _ = ask(options, folder, "select distinct routine_name, function_type from information_schema.routines order by 1", "1GB")
    kinds = {}
    for name, kind in rows:
        kinds.setdefault(kind.upper(), []).append(name)
    return kinds


def called(options, folder, name, over=""):
    """The first call of a function that the program takes, or None."""
    for shape in SHAPES:
        args = ", ".join(VALUES[letter] for letter in shape.split(",") if letter)
        for call in (f"{name}({args})", f"{name}({VALUES['h']}) within group (order by {args})" if shape in ("x", "n") else None):
            if call is None:
                continue
            try:
                # Types are not all that is checked, so a few rows are asked for.
                ask(options, folder, f"select {call}{over} from (select * from lineitem limit 3) as l", "1GB")
            except process.Failed:
                continue
            return call
    return None


def of_functions(options, folder, parts):
    """Queries for each function that is listed, and those that no call was found for."""
    kinds, found, missing = listed(options, folder), [], []
    table = "(select * from lineitem where l_orderkey < 600000) as l"
    kept = {"aggregates": ["AGGREGATE"], "windows": ["WINDOW", "AGGREGATE"], "functions": ["SCALAR"]}
    calls = {}
    for part, of in kept.items():
        for name in sorted({name for kind in of for name in kinds.get(kind, [])}) if part in parts else []:
            if name in ELSEWHERE or (name in ("grouping",) and part == "windows"):
                continue
            over = " over (order by l_orderkey)" if name in kinds.get("WINDOW", []) and name not in kinds.get("AGGREGATE", []) else ""
            if (name, over) not in calls:
                grouped = " group by l_orderkey" if name == "grouping" else ""
                calls[name, over] = "grouping(l_orderkey)" if grouped else called(options, folder, name, over)
            call = calls[name, over]
            if call is None:
                if not (part == "windows" and name in kinds.get("AGGREGATE", [])):
                    missing.append(name)
            elif part == "functions":
                found.append((part, name, f"select count(v) from (select {call} as v from {table}) as s"))
            elif part == "aggregates":
                if name != "grouping":
                    found.append((part, name, f"select count(v) from (select {call} as v from lineitem) as s"))
                found.append((part, f"{name}, by group", f"select count(v) from (select {call} as v from lineitem group by l_orderkey) as s"))
            elif "within group" not in call:
                for what, frame in (("of all", "" if over else "()"), ("by key", "(partition by l_suppkey order by l_orderkey, l_linenumber)")):
                    if frame:
                        found.append((part, f"{name}, {what}", f"select count(v) from (select {call} over {frame} as v from lineitem) as s"))
    return found, missing


def queries(options, folder, scale, rows, parts):
    found, missing = of_functions(options, folder, parts)
    fixed = {"sorts": SORTS, "joins": JOINS, "large": LARGE}
    asked = [(part, name, sql) for part, of in fixed.items() if part in parts for name, sql in of.items()]
    if "aggregates" in parts:
        asked += [("aggregates", name, sql) for name, sql in MIXED.items()]
    if "tpch" in parts:
        asked += [("tpch", q.name, q.sql) for q in tpch_suite.queries(scale, [])]
    if rows and "clickbench" in parts:
        asked += [("clickbench", q.name, q.sql) for q in clickbench.queries(rows, True, [])]
    if not rows:
        asked = [each for each in asked if " hits " not in each[2]]
    return asked + found, missing


def measured(options, folder, sql, limit):
    """What came of a query, what it held, and the rows that it gave."""
    most = TIMES * bytes_of(limit) + BESIDE
    try:
        rows, done = ask(options, folder, sql, limit)
    except process.Failed as error:
        peak = process.held(error.memory) if error.memory else 0
        text = str(error)
        outcome = "refused" if CLEAR.search(text) else "too slow" if "ended with 124" in text else "failed"
        if f"ended with {-signal.SIGKILL}" in text or "group's limit" in text:
            outcome, peak = "ended by the group", MOST
        return {"outcome": outcome, "why": text, "peak": peak, "seconds": error.seconds, "within": peak <= most}, None
    peak = process.held(done.memory)
    return {"outcome": "answered", "why": "", "peak": peak, "seconds": done.seconds, "within": peak <= most}, rows


def tables(options, scale, rows):
    """A folder of the files of both suites."""
    folder = options.folder / f"memory-{scale:g}-{rows}-{options.seed}"
    sources = tpch.make(options.folder / f"tpch-{scale:g}", scale)
    if rows:
        sources = {**sources, "hits": clickbench.made(options)[0]}
    folder.mkdir(parents=True, exist_ok=True)
    for name, source in sources.items():
        if not (folder / f"{name}.plinth").exists():
            process.run([options.plinth, "import", "--quiet", source, "--to", folder / f"{name}.plinth"])
    return folder


def run(_, options):
    parts = [part for part in PARTS if part in options.parts] or PARTS
    scale = 0.01 if options.quick else options.scale
    rows = (20_000 if options.quick else options.hits_rows) if options.hits_sample else 0
    folder = tables(options, scale, rows)
    scratch = options.folder / "scratch"
    scratch.mkdir(parents=True, exist_ok=True)
    asked, missing = queries(options, folder, scale, rows, parts)
    lines, disagreements = [], [f"no call was found for the function {name}" for name in missing]
    for part, name, sql in asked:
        if options.only and name not in options.only:
            continue
        runs, answers = {}, {}
        for limit in LIMITS:
            runs[limit], answer = measured(options, folder, sql.replace("{scratch}", str(scratch)), limit)
            if answer is not None:
                answers[limit] = answer
            for leftover in scratch.glob("sorted.*"):
                leftover.unlink()
        first = next(iter(answers.values()), None)
        # What is picked from rows without an order may be another.
        if "large" != part and any(not agree(answer, first) for answer in answers.values()):
            disagreements.append(f"{part}: {name}: answers differ by the limit")
        shown = ", ".join(f"{limit} {of['peak'] / 1e6:,.0f} MB {of['outcome']}{'' if of['within'] else ', TOO MUCH'}" for limit, of in runs.items())
        say(f"  {part}: {name}: {shown}")
        for limit, of in runs.items():
            if of["outcome"] == "failed":
                say(f"    {limit}: {of['why']}")
        lines.append({"part": part, "name": name, "sql": sql, "runs": runs})
    idle = {limit: process.held(ask(options, folder, "select 1", limit)[1].memory) for limit in LIMITS}
    notes = [
        f"TPC-H {scale:g}" + (f" and {rows:,} rows of the shape of hits" if rows else "") + f", {options.threads} threads.",
        "Peaks are of anonymous memory in a control group, looked at every 10 ms, where one can be made, else of the resident set.",
    ]
    figures = {"lines": lines, "idle": idle, "verdicts": verdicts(lines), "disagreements": disagreements}
    return {"suite": "memory", "title": "Memory within its limit", "notes": notes, **figures}


def verdicts(lines):
    told = []
    for limit in LIMITS:
        most = TIMES * bytes_of(limit) + BESIDE
        peaks = [line["runs"][limit]["peak"] / most for line in lines]
        if peaks:
            told.append(verdict(f"--memory {limit}: the largest peak, of 1.2 times the limit and 64 MB", None, 1, max(peaks)))
        bad = sum(line["runs"][limit]["outcome"] not in ("answered", "refused") for line in lines)
        told.append(verdict(f"--memory {limit}: queries that neither answered nor were refused by a sentence", None, 0, bad))
    return told
