#!/usr/bin/env python3
"""Asks DuckDB and Plinth random questions of three-valued logic over small tables full of NULL, NaN and infinities.

    logic.py PLINTH [--seed N] [--questions N] [--work DIR]

Predicates of IN and NOT IN (lists, subqueries), ANY and ALL, IS [NOT] DISTINCT FROM, BETWEEN, EXISTS, CASE, within one another, in
WHERE, SELECT, HAVING, ON, DELETE and UPDATE; set operations with ALL; minima and maxima. One line per question whose answers
differ, then one that counts; the exit code is 1 if any differed. What Plinth refuses as not supported is counted.
"""

import argparse
import csv
import io
import math
import random
import sys
import tempfile
from pathlib import Path

import duckdb

from program import answer_all, plinth

INTS, FLOATS, TEXTS = ["a", "b"], ["f", "r"], ["s"]


class Questions:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.count = 0

    def pick(self, *options):
        return self.random.choice(options)

    def rows(self, count):
        r = self.random
        ints = [None, None, 0, 1, 2, 3, -1]
        floats = ["NULL", "0.0", "1.0", "-1.5", "2.0", "'nan'", "'inf'", "'-inf'"]
        texts = [None, "", "x", "y", "X"]
        for i in range(count):
            a, b = (r.choice(ints) for _ in INTS)
            f, g = (r.choice(floats) for _ in FLOATS)
            s = r.choice(texts)
            cells = [i, "NULL" if a is None else a, "NULL" if b is None else b, f"CAST({f} AS DOUBLE)", f"CAST({g} AS REAL)"]
            cells.append("NULL" if s is None else f"'{s}'")
            yield f"({', '.join(map(str, cells))})"

    def tables(self):
        statements = []
        for name, count in (("t", self.random.randrange(5, 25)), ("u", self.random.choice([0, 1, 3, 8, 20]))):
            statements.append(f"CREATE TABLE {name} (id BIGINT PRIMARY KEY, a INT, b INT, f DOUBLE, r REAL, s TEXT)")
            if count:
                statements.append(f"INSERT INTO {name} VALUES {', '.join(self.rows(count))}")
        return statements

    def kind(self):
        return self.pick(INTS, INTS, INTS, FLOATS, TEXTS)

    def value(self, kind, scope):
        r = self.random.random()
        if r < 0.75:
            return f"{self.random.choice(scope)}.{self.random.choice(kind)}"
        if kind is INTS:
            column = f"{self.random.choice(scope)}.{self.random.choice(kind)}"
            return self.pick("1", "2", "CAST(NULL AS INT)", f"{column} + 1", f"nullif({column}, 1)", f"coalesce({column}, 2)")
        if kind is FLOATS:
            return self.pick("CAST(1.0 AS DOUBLE)", "CAST('nan' AS DOUBLE)", "CAST('inf' AS DOUBLE)", "CAST(NULL AS DOUBLE)")
        return self.pick("'x'", "''", "CAST(NULL AS TEXT)")

    def subquery(self, kind, scope, depth):
        """One column; of the table that is asked, too, by the same name."""
        self.count += 1
        inner = self.pick("t", "u", "u")
        alias = f"q{self.count}"
        column = self.random.choice(kind)
        if self.random.random() < 0.3:
            # Without an alias: the names of the outer table.
            where = self.pick("", f" WHERE {inner}.a > 0", f" WHERE {inner}.{column} IS NOT NULL", " WHERE false")
            return f"SELECT {column} FROM {inner}{where}"
        conditions = []
        if self.random.random() < 0.4:
            conditions.append(f"{alias}.b = {self.random.choice(scope)}.b")
        if self.random.random() < 0.5:
            conditions.append(self.predicate([alias], depth - 2))
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        column = self.pick(f"{alias}.{column}", f"{alias}.{column}", f"{alias}.{column}", f"max({alias}.{column})")
        return f"SELECT {column} FROM {inner} AS {alias}{where}"

    def predicate(self, scope, depth):
        r = self.random
        kind = self.kind()
        value = lambda: self.value(kind, scope)
        if depth > 0 and r.random() < 0.7:
            p = lambda: self.predicate(scope, depth - 1)
            return self.pick(
                lambda: f"({p()} AND {p()})",
                lambda: f"({p()} OR {p()})",
                lambda: f"({p()} AND {p()} OR {p()})",
                lambda: f"NOT ({p()})",
                lambda: f"({p()}) IS {self.pick('', 'NOT ')}{self.pick('NULL', 'TRUE', 'FALSE')}",
                lambda: f"CASE WHEN {p()} THEN {p()} ELSE {p()} END",
                lambda: f"({p()}) {self.pick('=', '<>')} ({p()})",
                lambda: f"({p()}) IS {self.pick('', 'NOT ')}DISTINCT FROM ({p()})",
                lambda: f"({value()} IS {self.pick('', 'NOT ')}DISTINCT FROM {value()} {self.pick('AND', 'OR')} {p()})",
            )()
        choice = r.random()
        no = self.pick("", "NOT ")
        if choice < 0.15:
            return f"{value()} {self.pick('=', '<>', '<', '<=', '>', '>=')} {value()}"
        if choice < 0.25:
            return f"{value()} {no}IN ({', '.join(value() for _ in range(r.randrange(1, 6)))})"
        if choice < 0.30:
            return f"{value()} {no}BETWEEN {value()} AND {value()}"
        if choice < 0.35:
            return f"({value()} IS {no}DISTINCT FROM {value()})"
        if choice < 0.40:
            return f"{value()} IS {no}NULL"
        if choice < 0.75 or depth < -1:
            return f"{value()} {no}IN ({self.subquery(kind, scope, depth)})"
        if choice < 0.90:
            op, quantifier = self.pick("=", "<>", "<", "<=", ">", ">="), self.pick("ANY", "ALL")
            return f"{value()} {op} {quantifier} ({self.subquery(kind, scope, depth)})"
        self.count += 1
        alias = f"q{self.count}"
        return f"{no}EXISTS (SELECT 1 FROM {self.pick('t', 'u')} AS {alias} WHERE {alias}.a = {r.choice(scope)}.a AND {self.predicate([alias], depth - 2)})"

    def question(self):
        """What Plinth is asked, and DuckDB."""
        p = self.predicate(["t"], self.random.randrange(0, 4))
        return self.pick(
            lambda: [f"SELECT t.id FROM t WHERE {p}"] * 2,
            lambda: [f"SELECT t.id FROM t WHERE {p}"] * 2,
            lambda: [f"SELECT t.id, {p} AS p FROM t"] * 2,
            lambda: [f"SELECT t.id, CASE WHEN {p} THEN 1 WHEN ({p}) IS NULL THEN 2 ELSE 3 END AS p FROM t"] * 2,
            lambda: [f"SELECT count(*) FILTER (WHERE {p}) AS c, count(*) AS n FROM t"] * 2,
            lambda: [f"SELECT t.id, u.id AS i FROM t {self.pick('', 'LEFT ')}JOIN u ON t.a = u.a AND {p}"] * 2,
            lambda: [
                f"BEGIN; DELETE FROM t WHERE {p}; SELECT id FROM t; ROLLBACK",
                f"SELECT id FROM t WHERE ({p}) IS NOT TRUE",
            ],
            lambda: [
                f"BEGIN; UPDATE t SET b = b + 100 WHERE {p}; SELECT id, b FROM t; ROLLBACK",
                f"SELECT id, CASE WHEN {p} THEN b + 100 ELSE b END AS b FROM t",
            ],
            self.having,
            self.set_operation,
            self.set_operation,
            self.extremes,
        )()

    def having(self):
        condition = self.predicate(["t"], 2)
        for column in ("b", "f", "r", "s"):
            condition = condition.replace(f"t.{column}", f"max(t.{column})")
        if "q" in condition and "max(t." in condition:
            # Of aggregates within subqueries the two have other opinions.
            condition = "t.a NOT IN (SELECT a FROM u) OR max(t.b) > 1"
        return [f"SELECT t.a, count(*) AS c FROM t GROUP BY t.a HAVING {condition}"] * 2

    def set_operation(self):
        columns = self.pick("a", "a, b", "f", "s, a", "r, s")
        one, two = (f"SELECT {columns} FROM {table} WHERE {self.predicate([table], 1)}" for table in ("t", "u"))
        operation = self.pick("EXCEPT", "INTERSECT", "UNION") + self.pick(" ALL", " ALL", "")
        return [f"{one} {operation} {two}"] * 2

    def extremes(self):
        group = self.pick("", " GROUP BY a", " GROUP BY s")
        values = "min(f) AS w, max(f) AS x, min(r) AS y, max(r) AS z, min(b) AS b"
        return [f"SELECT {values} FROM t{group}"] * 2


def cell(value):
    if value is None or value == "":
        return ""
    if isinstance(value, bool) or value in ("true", "false"):
        return str(value).lower()
    try:
        number = float(value)
    except ValueError:
        return str(value)
    return "nan" if math.isnan(number) else repr(number + 0.0)


def rows_of(text):
    # Empty text is "" in CSV, and NULL nothing: told apart before they are read.
    rows = list(csv.reader(io.StringIO(text.replace('""', "<empty>"))))
    return sorted(tuple(cell(v) for v in row) or ("",) for row in rows[1:])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plinth", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--questions", type=int, default=300)
    parser.add_argument("--work", type=Path, help="where to make a scratch folder")
    args = parser.parse_args()
    program = str(args.plinth.resolve())
    asked = refused = differing = 0
    seed = args.seed
    while asked < args.questions:
        questions = Questions(seed)
        tables = questions.tables()
        wanted = [questions.question() for _ in range(min(60, args.questions - asked))]
        with tempfile.TemporaryDirectory(dir=args.work, prefix="logic-") as folder:
            made = plinth(program, folder, tables, "csv")
            if isinstance(made, str):
                print(f"seed {seed}: {made}")
                return 1
            connection = duckdb.connect(config={"threads": 1})
            for statement in tables:
                connection.execute(statement)
            answers = answer_all(program, folder, [ours for ours, _ in wanted], "csv")
            for i, (ours, theirs) in enumerate(wanted):
                asked += 1
                try:
                    expected = connection.sql(theirs).fetchall()
                except duckdb.Error as error:
                    print(f"seed {seed}: DuckDB refuses: {str(error)[:200]} -- {theirs}", file=sys.stderr)
                    continue
                answer = answers[i]
                if isinstance(answer, str):
                    if "not supported" in answer:
                        refused += 1
                        continue
                    found = answer
                else:
                    as_text = lambda v: "<empty>" if v == "" else cell(v)
                    left = sorted(tuple(as_text(v) for v in row) for row in expected)
                    right = rows_of(answer[0])
                    found = None if left == right else f"DuckDB {left[:8]}, Plinth {right[:8]}"
                if found:
                    differing += 1
                    print(f"seed {seed}: {found} -- {ours}", flush=True)
        seed += 1
    print(f"{asked} questions, {refused} refused, {differing} differ (seeds {args.seed} to {seed - 1})", flush=True)
    return 1 if differing or asked == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
