#!/usr/bin/env python3
"""Asks DuckDB and Plinth random statements of the dialect over a small table of all types.

    statements.py PLINTH [--seed N] [--questions N] [--work DIR]

Functions of text, numbers, dates, lists and JSON; aliases, COLUMNS, PIVOT, UNPIVOT, ASOF and POSITIONAL joins, GROUP BY ALL, list
comprehensions, slices. Values are NULL, NaN, decimals of many digits, text of all planes. One line per statement whose answers differ, then
one that counts; the exit code is 1 if any differed. What Plinth refuses is counted, and told with --refused.
"""

import argparse
import datetime
import decimal
import json
import math
import random
import sys
import tempfile
from pathlib import Path

import duckdb

from program import answer_all, plinth

TEXTS = ["", "a", "hello world", "ABC", "%_", "naïve", "日本語", "🦆🦆x", "a,b,,c", "line\nbreak", "x'y", 'q"q', "12", "-3.5"]
DOUBLES = ["0.0", "1.5", "-2.25", "'nan'", "'inf'", "'-inf'", "1e300", "-1e-300", "3.0"]
DATES = ["2024-02-29", "1999-12-31", "1970-01-01", "2000-01-01", "1900-03-01", "2024-01-07"]
STAMPS = ["2024-02-29 23:59:59.999999", "1970-01-01 00:00:00", "1969-12-31 23:59:59.5", "2024-01-31 12:34:56", "2000-03-01 00:00:01"]


class Statements:
    def __init__(self, seed):
        self.random = random.Random(seed)

    def pick(self, *options):
        return self.random.choice(options)

    def some(self, values, none=0.2):
        return None if self.random.random() < none else self.random.choice(values)

    def table(self):
        rows = []
        quoted = lambda v: "NULL" if v is None else "'" + v.replace("'", "''") + "'"
        for i in range(self.random.randrange(4, 16)):
            number = lambda values: "NULL" if (v := self.some(values)) is None else str(v)
            double = self.some(DOUBLES)
            rows.append(
                f"({i}, {number([0, 1, 2, -7, 2147483647])}, {number([0, 3, -5, 9007199254740993, -9223372036854775807])}, "
                f"CAST({double or 'NULL'} AS DOUBLE), CAST({quoted(self.some(['0.01', '-12.50', '99999999.99', '3.00']))} AS DECIMAL(12, 2)), "
                f"{quoted(self.some(TEXTS))}, CAST({quoted(self.some(DATES))} AS DATE), CAST({quoted(self.some(STAMPS))} AS TIMESTAMP), "
                f"CAST({self.pick('true', 'false', 'NULL')} AS BOOLEAN))"
            )
        columns = "id BIGINT PRIMARY KEY, i INT, b BIGINT, f DOUBLE, d DECIMAL(12, 2), s TEXT, dt DATE, ts TIMESTAMP, o BOOLEAN"
        return [f"CREATE TABLE t ({columns})", f"INSERT INTO t VALUES {', '.join(rows)}"]

    def text(self, depth=1):
        p = self.pick
        inner = lambda: self.text(depth - 1)
        if depth <= 0:
            return p("s", "s", "'abc'", "'日本🦆'")
        n = lambda: self.pick("0", "1", "2", "3", "-1", "-2", "10")
        return p(
            lambda: f"upper({inner()})", lambda: f"lower({inner()})", lambda: f"trim({inner()})", lambda: f"reverse({inner()})",
            lambda: f"({inner()})[{n()}]", lambda: f"({inner()})[{n()}:{n()}]", lambda: f"({inner()})[:{p('1', '2', '5')}]",
            lambda: f"left({inner()}, {p('0', '1', '3', '-1')})", lambda: f"right({inner()}, {p('0', '1', '3')})",
            lambda: f"replace({inner()}, 'a', {p(chr(39) * 2, chr(39) + 'zz' + chr(39))})", lambda: f"({inner()} || {inner()})",
            lambda: f"concat({inner()}, {inner()})", lambda: f"concat_ws('-', {inner()}, {inner()})",
            lambda: f"lpad({inner()}, {p('0', '3', '8')}, 'x')", lambda: f"rpad({inner()}, {p('0', '3', '8')}, 'x')",
            lambda: f"md5({inner()})", lambda: f"sha256({inner()})", lambda: f"split_part({inner()}, ',', {p('1', '2', '9')})",
            lambda: f"regexp_replace({inner()}, '[a-c]', '_'{p('', ', ' + chr(39) + 'g' + chr(39))})",
            lambda: f"regexp_extract({inner()}, '([a-z])([a-z]?)'{p('', ', 1', ', 2')})",
            lambda: f"coalesce({inner()}, 'none')", lambda: f"nullif({inner()}, 'a')", lambda: f"substr({inner()}, {p('1', '2', '3')}, 2)",
            lambda: f"repeat({inner()}, {p('0', '1', '2')})", lambda: f"if({self.condition()}, {inner()}, {inner()})",
            lambda: f"printf('%s|%5d', {inner()}, i)", lambda: f"format('{{}}-{{}}', {inner()}, i)",
            lambda: f"dayname({self.date()})", lambda: f"monthname({self.date()})",
            lambda: f"strftime({p('ts', 'dt')}, {p(chr(39) + '%Y/%m/%d' + chr(39), chr(39) + '%H:%M:%S' + chr(39), chr(39) + '%j %y %p %I' + chr(39), chr(39) + '%f' + chr(39))})",
        )()

    def condition(self):
        p = self.pick
        return p(
            lambda: f"starts_with({self.text(0)}, 'a')", lambda: f"s ^@ {self.text(0)}", lambda: f"contains({self.text(0)}, 'b')",
            lambda: f"s {p('', 'NOT ')}LIKE {p(chr(39) + '%a%' + chr(39), chr(39) + '_' + chr(39))}", lambda: f"s {p('', 'NOT ')}GLOB {p(chr(39) + '*b*' + chr(39), chr(39) + '?' + chr(39), chr(39) + '[a-h]*' + chr(39))}",
            lambda: f"s {p('', 'NOT ')}SIMILAR TO {p(chr(39) + '[a-z]*' + chr(39), chr(39) + 'a.*' + chr(39))}",
            lambda: f"s ~ {p(chr(39) + '[a-z]+' + chr(39), chr(39) + '.' + chr(39))}", lambda: f"regexp_matches({self.text(0)}, '[0-9]')",
            lambda: f"regexp_full_match({self.text(0)}, '[a-z]*')",
            lambda: f"i {p('=', '<', '>=', '<>')} {p('0', '1', 'b')}", lambda: f"f {p('=', '<', '>')} {p('f', '1.5', '0.0')}", lambda: f"o IS {p('', 'NOT ')}NULL", lambda: "o",
        )()

    def number(self):
        p = self.pick
        return p(
            lambda: f"length({self.text()})", lambda: f"len({self.text(0)})", lambda: f"strlen({self.text(0)})", lambda: f"ascii({self.text(0)})", lambda: f"strpos({self.text(0)}, 'b')",
            lambda: f"levenshtein({self.text(0)}, 'abc')", lambda: f"mod(i, {p('2', '3', '-2')})", lambda: f"i % {p('2', '3', '-2')}", lambda: f"i // {p('2', '3', '-2')}",
            lambda: f"i ** 2", lambda: "f ^ 2", lambda: "2 * 3 ^ 2", lambda: "-2 ^ 2", lambda: "abs(f)", lambda: "sign(i)", lambda: "d * 2", lambda: "d + i", lambda: "round(d, 1)", lambda: "greatest(i, 1)", lambda: "least(b, 0)",
            lambda: f"{p('year', 'quarter', 'month', 'week', 'day', 'dayofweek', 'dayofyear', 'isodow', 'weekday')}({self.date()})",
            lambda: f"{p('hour', 'minute', 'second', 'millisecond', 'microsecond')}(ts)",
            lambda: f"extract({p('year', 'month', 'dow', 'doy', 'isodow', 'epoch')} FROM {self.date()})", lambda: "epoch(ts)", lambda: f"epoch_{p('ms', 'us')}(ts)",
            lambda: f"date_diff('{p('day', 'month', 'year', 'quarter', 'week')}', {self.date()}, {self.date()})", lambda: f"date_diff('{p('hour', 'minute', 'second')}', ts, TIMESTAMP '2024-01-01 00:30:00')",
            lambda: f"CAST({self.condition()} AS INT)", lambda: f"i IS DISTINCT FROM b", lambda: "TRY_CAST(s AS INT)", lambda: "TRY_CAST(s AS DOUBLE)", lambda: "TRY_CAST(f AS INT)",
            lambda: f"len({self.list()})", lambda: f"list_{p('sum', 'min', 'max')}({self.list()})", lambda: f"({self.list()})[{p('1', '2', '-1', '0', '9')}]",
            lambda: f"list_position({self.list()}, 1)", lambda: f"list_contains({self.list()}, i)", lambda: f"list_{p('count', 'unique')}({self.list()})",
            lambda: f"CAST({self.json()} ->> '$.a' AS INT)", lambda: f"json_array_length({self.json()}, '$.b')",
        )()

    def date(self):
        p = self.pick
        return p("dt", "dt", "DATE '2024-01-31'", "last_day(dt)", "make_date(2024, 2, 29)", "CAST(date_trunc('month', dt) AS DATE)", "dt + 1")

    def list(self, depth=1):
        p = self.pick
        plain = p("[i, 1, NULL]", "[3, i, 2]", "range(3)", "[1, 2, 2, i]")
        if depth <= 0:
            return plain
        return p(
            lambda: plain, lambda: f"list_sort({plain})", lambda: f"list_reverse_sort({plain})", lambda: f"list_distinct([i, i])", lambda: f"({plain})[{p('1', '2', '-2')}:{p('2', '-1', '9')}]",
            lambda: f"[x + 1 FOR x IN {plain} IF x > 1]", lambda: f"list_transform({plain}, lambda x: x * 2)", lambda: f"list_filter({plain}, lambda x: x > 1)", lambda: f"flatten([{plain}, [5]])",
            lambda: f"list_reverse({plain})", lambda: f"list_concat({plain}, [7])",
        )()

    def json(self):
        return self.pick("""'{"a": 1, "b": [1, 2, {"c": "x\\u00e9"}]}'""", "'{\"a\": null, \"b\": []}'", "to_json({'a': i, 'b': [i]})", "concat('{\"a\":', id, ',\"b\":[', id, ']}')")

    def other(self):
        p = self.pick
        return p(
            lambda: self.date(), lambda: f"date_trunc('{p('year', 'month', 'week', 'day')}', {self.date()})", lambda: f"date_trunc('{p('hour', 'minute', 'second')}', ts)",
            lambda: f"time_bucket(INTERVAL '{p('1 hour', '15 minutes', '1 day', '1 week')}', ts)", lambda: "strptime(strftime(ts, '%Y-%m-%d %H:%M:%S'), '%Y-%m-%d %H:%M:%S')", lambda: "ts + INTERVAL 1 DAY",
            lambda: f"{self.json()} -> '{p('a', 'b', '$.b[0]', '$.b[2].c', 'nope')}'", lambda: f"{self.json()} ->> '{p('a', '$.b[0]', '$.b[2].c', 'nope')}'", lambda: f"json_type({self.json()}, '$.{p('a', 'b')}')", lambda: f"json_keys({self.json()})",
            lambda: f"string_split({self.text(0)}, ',')", lambda: f"regexp_split_to_array({self.text(0)}, '[, ]')", lambda: f"regexp_extract_all({self.text(0)}, '[a-z]')", lambda: self.list(), lambda: f"typeof({p('i', 'b', 'f', 'd', 's', 'dt', 'o', '[i]')})",
            lambda: "{'x': i, 'y': s}.y", lambda: "MAP {'a': i}['a']", lambda: "make_timestamp(2024, 2, 29, 1, 2, 3.5)", lambda: f"to_json({p('i', 's', 'o', '[i, 1]')})",
        )()

    def value(self):
        return self.pick(self.text, self.text, self.number, self.number, self.other, self.condition)()

    def aggregate(self):
        p = self.pick
        return p(
            "count(*)", "count(s)", "sum(i)", "sum(d)", "min(f)", "max(f)", "min(s)", "max(ts)", "mode(1)", "arg_max(id, b + id)", "min_by(s, id)", "count_if(o IS TRUE)", "list(id ORDER BY id)", "string_agg(s, ',' ORDER BY id)",
            "histogram(i)", "bool_and(o)", "bool_or(o)", "median(i)", "quantile_cont(id, 0.25)", "count(DISTINCT i)", "first(id ORDER BY id)", "last(s ORDER BY id DESC)", "any_value(1)", "approx_count_distinct(id) > 0",
        )

    def statement(self):
        p = self.pick
        return p(
            *[lambda: f"SELECT id, {self.value()} AS v FROM t"] * 6, lambda: f"FROM t SELECT id, {self.value()} AS v WHERE {self.condition()}",
            lambda: f"SELECT i, {self.aggregate()} AS v FROM t GROUP BY ALL", lambda: f"SELECT o, i, {self.aggregate()} AS v, {self.aggregate()} AS w FROM t GROUP BY ALL", lambda: f"SELECT {self.aggregate()} AS v FROM t WHERE {self.condition()}",
            lambda: f"SELECT id, i + 1 AS x, x * 2 AS y, y - x AS z FROM t WHERE i < 1000", lambda: "SELECT id + 1 AS x FROM t WHERE x > 2", lambda: "SELECT i % 2 AS k, count(*) AS n FROM t WHERE i < 1000 GROUP BY k HAVING n > 1",
            lambda: f"SELECT COLUMNS('{p('^[ib]', '.', 's|f', 'd')}') FROM t", lambda: "SELECT min(COLUMNS(* EXCLUDE (o))) FROM t", lambda: "SELECT * LIKE 'd%' FROM t", lambda: "SELECT COLUMNS(c -> c IN ('i', 's')) FROM t".replace("c ->", "lambda c:"),
            lambda: "SELECT * RENAME (s AS zz) FROM t", lambda: "SELECT * EXCLUDE (f) REPLACE (id + 1 AS id) FROM t", lambda: "SELECT a: id, q: s FROM t",
            lambda: f"PIVOT (SELECT id % 2 AS k, i, d FROM t WHERE i IS NOT NULL) ON i {p('', 'IN (0, 1, 2)')} USING {p('sum(d)', 'count(*)', 'sum(d) AS a, count(*) AS n')}", lambda: f"PIVOT (SELECT id, i FROM t) ON i IN (0, 1) USING count(*) GROUP BY id",
            lambda: "UNPIVOT (SELECT id, i, b FROM t) ON i, b INTO NAME n VALUE v", lambda: "UNPIVOT (SELECT i, id FROM t) ON COLUMNS(* EXCLUDE (id)) INTO NAME n VALUE v",
            lambda: f"SELECT a.id, b.id AS k FROM t a ASOF {p('', 'LEFT ')}JOIN (SELECT DISTINCT ON (ts) * FROM t WHERE ts IS NOT NULL ORDER BY ts, id) b ON a.ts {p('>=', '>', '<=', '<')} b.ts",
            lambda: f"SELECT a.id, b.id AS k FROM t a ASOF JOIN (SELECT i, id FROM t) b ON a.i = b.i AND a.id {p('>=', '>', '<=', '<')} b.id", lambda: "SELECT * FROM (SELECT id, i FROM t) a ASOF JOIN (SELECT id, s FROM t) b USING (id)",
            lambda: "SELECT * FROM (SELECT id FROM t ORDER BY id) a POSITIONAL JOIN (SELECT id AS k FROM t ORDER BY id LIMIT 3) b", lambda: f"SELECT id FROM t ORDER BY id LIMIT {p('10', '50', '33')}%",
            lambda: "SELECT id, u FROM t, unnest([i, 1]) AS q(u)", lambda: "SELECT id, x FROM t, LATERAL (SELECT i + 1 AS x) b WHERE i < 1000", lambda: "SELECT id, unnest([i, 2]) AS u FROM t", lambda: f"SELECT id FROM t WHERE {self.condition()} QUALIFY row_number() OVER (PARTITION BY i ORDER BY id) = 1",
            lambda: f"SELECT DISTINCT ON (i) i, id FROM t ORDER BY i, id",
        )()


def as_number(text):
    try:
        return float(text)
    except ValueError:
        return text


def plain(value):
    """A value as both sides are compared."""
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, decimal.Decimal):
        value = float(value)
    if isinstance(value, (int, float)):
        number = float(value)
        # JSON has neither.
        if math.isnan(number) or math.isinf(number):
            return None
        return float(f"{number:.12g}") + 0.0
    if isinstance(value, datetime.datetime):
        return value.isoformat().removesuffix("T00:00:00") if value.microsecond == 0 else value.isoformat().rstrip("0")
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, dict):
        return sorted((str(plain(k)), plain(v)) for k, v in value.items())
    text = str(value)
    if len(text) > 2 and text[0] == "{" and text[-1] == "}" and ":" in text and '"' not in text:
        # A map of Plinth's.
        pairs = [pair.rsplit(": ", 1) for pair in text[1:-1].split(", ")]
        return sorted((str(plain(as_number(k))), plain(as_number(v))) for k, v in pairs)
    # A time stamp of Plinth's.
    if len(text) >= 19 and text[10:11] == "T" and text[:4].isdigit():
        try:
            return plain(datetime.datetime.fromisoformat(text))
        except ValueError:
            return text
    return text


def rows_of(text):
    rows = [json.loads(line, parse_float=float) for line in text.splitlines() if line.strip()]
    return [[plain(v) for v in row.values()] for row in rows]


def key(row):
    return [str(v) for v in row]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plinth", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--questions", type=int, default=300)
    parser.add_argument("--refused", action="store_true", help="tell of what Plinth refuses")
    parser.add_argument("--work", type=Path, help="where to make a scratch folder")
    args = parser.parse_args()
    program = str(args.plinth.resolve())
    asked = refused = differing = unknown = 0
    seed = args.seed
    while asked < args.questions:
        statements = Statements(seed)
        table = statements.table()
        wanted = [statements.statement() for _ in range(min(100, args.questions - asked))]
        with tempfile.TemporaryDirectory(dir=args.work, prefix="statements-") as folder:
            made = plinth(program, folder, table, "json")
            if isinstance(made, str):
                print(f"seed {seed}: {made}")
                return 1
            connection = duckdb.connect(config={"threads": 1})
            connection.execute("SET TimeZone = 'UTC'")
            for statement in table:
                connection.execute(statement)
            for statement, answer in zip(wanted, answer_all(program, folder, wanted, "json")):
                asked += 1
                try:
                    expected = [[plain(v) for v in row] for row in connection.sql(statement).fetchall()]
                except duckdb.Error as error:
                    unknown += 1
                    if args.refused:
                        print(f"seed {seed}: DuckDB refuses: {str(error).splitlines()[0][:160]} -- {statement}", file=sys.stderr)
                    continue
                if isinstance(answer, str):
                    refused += 1
                    if args.refused:
                        print(f"seed {seed}: refused: {answer[:200]} -- {statement}", file=sys.stderr)
                    continue
                found = rows_of(answer[0])
                if "ORDER BY id LIMIT" not in statement:
                    found.sort(key=key)
                    expected.sort(key=key)
                if found != expected:
                    differing += 1
                    pairs = [(e, f) for e, f in zip(expected, found) if e != f] or [(expected[:3], found[:3])]
                    print(f"seed {seed}: DuckDB {pairs[0][0]}, Plinth {pairs[0][1]} -- {statement}", flush=True)
        seed += 1
    print(
        f"{asked} statements, {refused} refused, {unknown} refused by DuckDB, {differing} differ (seeds {args.seed} to {seed - 1})",
        flush=True,
    )
    return 1 if differing or asked == unknown else 0


if __name__ == "__main__":
    sys.exit(main())
