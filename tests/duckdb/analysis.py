#!/usr/bin/env python3
"""Asks DuckDB and Plinth random analytical questions over the same files: joins of up to eight tables, groups, tops, sets.

    analysis.py PLINTH [--seed N] [--questions N] [--rows N] [--work DIR]

Each seed makes tables of other shapes: keys with skew, integers of every width, decimals of several precisions, dates, time stamps,
text of few and of many values, NULLs. DuckDB writes them as Parquet; Plinth reads that, and files of its own, one or several a
table. Doubles are multiples of 1/4, so that their sums have no rounding. One line per question whose answers differ, then one that
counts; the exit code is 1 if any differed.
"""

import argparse
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import duckdb

from compare import Plinth, Query, ask_duckdb, judge

# Columns by what they may be compared with; each table has those of `Tables.columns`.
KINDS = {
    "k": ["k", "fk"],
    "number": ["i8", "i16", "i32", "i64", "u32"],
    "decimal": ["d9", "d18", "d38"],
    "date": ["day", "later"],
    "moment": ["ts"],
    "text": ["few", "many"],
    "double": ["x"],
}
EXPRESSIONS = {
    "k": "(hash(i * 7 + {seed}) % {distinct})::{key}",
    "fk": "(CASE WHEN hash(i + {seed}) % 5 < 2 THEN 3 ELSE hash(i * 3 + {seed}) % {distinct} END)::{other}",
    "i8": "(hash(i + 1) % 200)::INT - 100",
    "i16": "(hash(i + 2) % 60000)::INT - 30000",
    "i32": "(hash(i + 3) % 1000)::INT * {scale}",
    "i64": "(hash(i + 4) % 1000003)::BIGINT * {scale} - 7",
    "u32": "(hash(i + 5) % 4294967296)",
    "d9": "((hash(i + 6) % 20000)::BIGINT - 5000)::DECIMAL(18, 0) / 100",
    "d18": "((hash(i + 7) % 90000000000)::BIGINT)::DECIMAL(18, 0) / 10000",
    "d38": "((hash(i + 8) % 900000000000000)::BIGINT)::DECIMAL(20, 0)",
    "day": "DATE '1995-01-01' + (hash(i + 9) % 2000)::INT",
    "later": "DATE '1995-01-01' + (i // 10 % 2000)::INT",
    "ts": "TIMESTAMP '2020-01-01' + INTERVAL 1 SECOND * (hash(i + 10) % 100000000)::BIGINT",
    "few": "['', 'a', 'b', 'B', 'aä', 'long enough not to be within a view'][(hash(i + 11) % 6)::INT + 1]",
    "many": "'v' || (hash(i + 12) % {distinct})::VARCHAR || CASE WHEN i % 3 = 0 THEN 'é 𝄞' ELSE '' END",
    "x": "((hash(i + 13) % 4001)::INT - 2000) / 4.0::DOUBLE",
}
TYPES = {
    "i8": "TINYINT", "i16": "SMALLINT", "i32": "INTEGER", "i64": "BIGINT", "u32": "UINTEGER", "d9": "DECIMAL(9, 2)",
    "d18": "DECIMAL(18, 4)", "d38": "DECIMAL(38, 6)", "day": "DATE", "later": "DATE", "ts": "TIMESTAMP", "few": "VARCHAR",
    "many": "VARCHAR", "x": "DOUBLE",
}  # fmt: skip


class Tables:
    """Tables of one seed, as statements for DuckDB."""

    def __init__(self, seed, rows):
        r = self.random = random.Random(seed)
        self.names = [f"t{i}" for i in range(r.randrange(2, 6))]
        self.made = []
        self.files = {}
        for name in self.names:
            many = max(1, int(rows ** r.choice([0.3, 0.6, 0.9, 1.0])))
            given = {
                "seed": r.randrange(1000),
                "distinct": r.choice([1, 7, max(1, many // 4), many * 3]),
                "key": r.choice(["INTEGER", "BIGINT", "SMALLINT" if many < 10000 else "BIGINT"]),
                "other": r.choice(["INTEGER", "BIGINT"]),
                "scale": r.choice([1, 1000]),
            }
            columns = []
            for column, sql in EXPRESSIONS.items():
                value = f"({sql.format(**given)})"
                if column in TYPES:
                    value = f"{value}::{TYPES[column]}"
                nulls = r.choice([0, 0, 0, 3, 20])
                if nulls:
                    value = f"CASE WHEN hash(i + {r.randrange(99)}) % 100 >= {nulls} THEN {value} END"
                columns.append(f"{value} AS {column}")
            order = r.choice(["", " ORDER BY later", " ORDER BY k", " ORDER BY few, k"])
            self.made.append(f"CREATE TABLE {name} AS SELECT {', '.join(columns)} FROM range({many}) AS s(i){order}")
            self.files[name] = r.choice([1, 1, 3])


class Questions:
    def __init__(self, seed, names):
        self.random = random.Random(seed * 7919 + 1)
        self.names = names

    def pick(self, *options):
        return self.random.choice(options)

    def column(self, scope, kind):
        return f"{self.random.choice(scope)}.{self.random.choice(KINDS[kind])}"

    def constant(self, kind):
        n = self.random.randrange
        return {
            "k": lambda: str(n(50)),
            "number": lambda: str(n(-100, 1000)),
            "decimal": lambda: f"{n(-50, 5000)}.{n(100):02}",
            "date": lambda: f"DATE '{n(1995, 2001)}-0{n(1, 10)}-{n(10, 29)}'",
            "moment": lambda: f"TIMESTAMP '2020-0{n(1, 10)}-{n(10, 29)} 0{n(10)}:00:00'",
            "text": lambda: self.pick("''", "'a'", "'aä'", "'v7'", "'long enough not to be within a view'"),
            "double": lambda: f"{n(-500, 500)}.25::DOUBLE",
        }[kind]()

    def predicate(self, scope, depth=1):
        if depth > 0 and self.random.random() < 0.4:
            one, two = self.predicate(scope, depth - 1), self.predicate(scope, depth - 1)
            return self.pick(f"({one} AND {two})", f"({one} OR {two})", f"NOT ({one})")
        kind = self.random.choice(list(KINDS))
        left = self.column(scope, kind)
        right = self.pick(self.constant(kind), self.constant(kind), self.column(scope, kind))
        return self.pick(
            f"{left} {self.pick('=', '<>', '<', '<=', '>', '>=')} {right}",
            f"{left} BETWEEN {self.constant(kind)} AND {self.constant(kind)}",
            f"{left} IN ({self.constant(kind)}, {self.constant(kind)}, {self.constant(kind)})",
            f"{left} IS {self.pick('', 'NOT ')}NULL",
            f"{self.column(scope, 'text')} LIKE {self.pick(repr('%a%'), repr('v1%'), repr('%7'), repr('_'))}",
        )

    def equal(self, one, two):
        """A condition of a join: mostly of keys, so that few rows meet many."""
        kind = self.pick("k", "k", "k", "k", "number", "date", "text", "decimal")
        left, right = self.column([one], kind), self.column([two], kind)
        if kind == "number" and self.random.random() < 0.3:
            left = f"{left} + 1"
        return f"{left} = {right}"

    def tables(self, most):
        """FROM and its names. Rows are cut so that no join grows beyond what a test waits for."""
        count = self.random.randrange(1, most + 1)
        scope, text = [], ""
        for i in range(count):
            name = f"r{i}"
            table = self.random.choice(self.names)
            cut = "" if count == 1 else f" WHERE {self.predicate([table], 0)}" if count == 2 else f" WHERE {table}.k < {self.pick(4, 9, 30)} AND hash_part"
            # Few rows of each of many tables, by columns whose values both engines see alike.
            cut = cut.replace("hash_part", f"{table}.i16 % {self.pick(40, 90)} = {self.random.randrange(5)}")
            source = f"(SELECT * FROM {table}{cut})" if cut else table
            if i == 0:
                text = f"{source} AS {name}"
            else:
                on = self.equal(self.random.choice(scope), name)
                if self.random.random() < 0.3:
                    on += f" AND {self.equal(self.random.choice(scope), name)}"
                if self.random.random() < 0.2:
                    on += f" AND {self.predicate([*scope, name], 0)}"
                text += f" {self.pick('JOIN', 'JOIN', 'JOIN', 'LEFT JOIN', 'RIGHT JOIN', 'FULL JOIN')} {source} AS {name} ON {on}"
            scope.append(name)
        return text, scope

    def aggregate(self, scope):
        number = self.column(scope, self.pick("number", "k", "decimal", "double"))
        decimal = self.column(scope, "decimal")
        other = self.pick(f"{self.column(scope, 'decimal')} * (1 - {scope[0]}.d9)", f"{self.column(scope, 'number')} * 2 + 1")
        condition = self.predicate(scope, 0)
        return self.pick(
            "count(*)",
            f"count({number})",
            f"count(DISTINCT {self.column(scope, self.random.choice(list(KINDS)))})",
            f"sum({number})",
            f"sum({self.column(scope, 'number')})",
            f"sum({decimal})",
            f"sum({other})",
            f"sum(CASE WHEN {condition} THEN {number} ELSE 0 END)",
            f"min({self.column(scope, self.random.choice(list(KINDS)))})",
            f"max({self.column(scope, self.random.choice(list(KINDS)))})",
            f"avg({self.column(scope, 'double')})",
            f"count(*) FILTER (WHERE {condition})",
            f"sum({number}) FILTER (WHERE {condition})",
        )

    def key(self, scope):
        return self.pick(
            self.column(scope, self.random.choice(list(KINDS))),
            self.column(scope, "text"),
            self.column(scope, "k"),
            f"extract(year FROM {self.column(scope, 'date')})",
            f"length({self.column(scope, 'text')})",
            f"upper({self.column(scope, 'text')})",
            f"date_trunc('month', {self.column(scope, 'moment')})",
            f"({self.column(scope, 'number')} > 100)",
        )

    def grouped(self):
        text, scope = self.tables(self.pick(1, 2, 3, 5, 8))
        keys = list(dict.fromkeys(self.key(scope) for _ in range(self.random.randrange(1, 4))))
        values = [self.aggregate(scope) for _ in range(self.random.randrange(1, 5))]
        where = f" WHERE {self.predicate(scope)}" if self.random.random() < 0.6 else ""
        having = f" HAVING count(*) > {self.pick(1, 2, 5)}" if self.random.random() < 0.3 else ""
        names = [f"c{i}" for i in range(len(keys) + len(values))]
        columns = ", ".join(f"{value} AS {name}" for value, name in zip([*keys, *values], names))
        # All columns are in the order: which rows LIMIT leaves is no matter of chance.
        limit = f" ORDER BY {', '.join(self.ordered(names))} LIMIT {self.pick(1, 5, 30)}" if self.random.random() < 0.5 else ""
        return f"SELECT {columns} FROM {text}{where} GROUP BY {', '.join(keys)}{having}{limit}"

    def ordered(self, names):
        names = self.random.sample(names, len(names))
        return [f"{name}{self.pick('', ' DESC')} NULLS {self.pick('FIRST', 'LAST')}" for name in names]

    def whole(self):
        text, scope = self.tables(self.pick(1, 2, 4, 8))
        values = ", ".join(f"{self.aggregate(scope)} AS c{i}" for i in range(self.random.randrange(1, 6)))
        where = f" WHERE {self.predicate(scope)}" if self.random.random() < 0.6 else ""
        return f"SELECT {values} FROM {text}{where}"

    def top(self):
        text, scope = self.tables(self.pick(1, 2))
        columns = [self.column(scope, kind) for kind in self.random.sample(list(KINDS), self.random.randrange(1, 5))]
        names = [f"c{i}" for i in range(len(columns))]
        listed = ", ".join(f"{column} AS {name}" for column, name in zip(columns, names))
        where = f" WHERE {self.predicate(scope)}" if self.random.random() < 0.6 else ""
        offset = f" OFFSET {self.pick(1, 100)}" if self.random.random() < 0.2 else ""
        distinct = self.pick("", "", "DISTINCT ")
        return f"SELECT {distinct}{listed} FROM {text}{where} ORDER BY {', '.join(self.ordered(names))} LIMIT {self.pick(1, 10, 200)}{offset}"

    def subquery(self):
        one, two = self.random.choice(self.names), self.random.choice(self.names)
        test = self.pick(
            f"{self.pick('', 'NOT ')}EXISTS (SELECT 1 FROM {two} AS b WHERE {self.equal('a', 'b')} AND {self.predicate(['b'], 0)})",
            f"a.k {self.pick('', 'NOT ')}IN (SELECT b.fk FROM {two} AS b WHERE {self.predicate(['b'], 0)})",
            f"a.d9 > (SELECT avg(b.x) FROM {two} AS b WHERE b.k = a.k)",
            f"a.i32 >= (SELECT max(b.i32) FROM {two} AS b WHERE b.fk = a.fk)",
        )
        more = f" {self.pick('AND', 'AND', 'OR')} {self.predicate(['a'], 0)}" if self.random.random() < 0.5 else ""
        return f"SELECT count(*) AS n, sum(a.k) AS s, max(a.many) AS m FROM {one} AS a WHERE {test}{more}"

    def sets(self):
        columns = self.pick("k, few", "few", "day", "i32, d9", "fk")
        one, two = (f"SELECT {columns} FROM {t} WHERE {self.predicate([t], 0)}" for t in self.random.choices(self.names, k=2))
        operation = self.pick("UNION", "EXCEPT", "INTERSECT", "UNION ALL")
        return f"SELECT count(*) AS n, min({columns.split(',')[0]}) AS m FROM ({one} {operation} {two}) AS q"

    def question(self):
        return self.pick(self.grouped, self.grouped, self.grouped, self.whole, self.top, self.subquery, self.sets)()

    def query(self, number):
        text = self.question()
        return Query(f"question {number}", text, text)


def files(program, folder, tables, connection):
    """Folders that are databases of all tables: of Plinth's files, some tables of several, and of Parquet."""
    own, foreign = folder / "own", folder / "parquet"
    own.mkdir()
    foreign.mkdir()
    for name in tables.names:
        parts = tables.files[name]
        (own / name).mkdir()
        whole = "(FORMAT parquet, ROW_GROUP_SIZE 4096)"
        connection.execute(f"COPY {name} TO '{foreign / name}.parquet' {whole}")
        for part in range(parts):
            path = folder / f"{name}-{part}.parquet"
            rows = f"SELECT * FROM {name} WHERE rowid % {parts} = {part} ORDER BY rowid"
            connection.execute(f"COPY ({rows}) TO '{path}' {whole}")
            subprocess.run([program, "import", "--quiet", path, "--to", own / name / f"{part}.plinth"], check=True)
    return own, foreign


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plinth", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--rows", type=int, default=4000, help="of the largest table")
    parser.add_argument("--work", type=Path, help="where to make a scratch folder")
    args = parser.parse_args()
    program = str(args.plinth.resolve())
    asked = refused = differing = 0
    seed = args.seed
    while asked < args.questions:
        tables = Tables(seed, args.rows)
        questions = Questions(seed, tables.names)
        # Each is asked of two kinds of files.
        wanted = [questions.query(i) for i in range(min(60, (args.questions - asked + 1) // 2))]
        connection = duckdb.connect(config={"threads": 1})
        for statement in tables.made:
            connection.execute(statement)
        with tempfile.TemporaryDirectory(dir=args.work, prefix="analysis-") as folder:
            for kind in files(program, Path(folder), tables, connection):
                answers = Plinth(program, kind).answers(wanted)
                for query in wanted:
                    asked += 1
                    answer = answers[query.name]
                    try:
                        schema, expected = ask_duckdb(connection, query.duckdb)
                    except duckdb.Error as error:
                        # Results that leave their type are refused by both, but DuckDB keeps to small types longer.
                        refused += 1
                        beyond = isinstance(answer, Exception) or "Overflow" in str(error)
                        found = None if beyond else f"DuckDB refuses: {str(error)[:200]}"
                    else:
                        refused += (beyond := isinstance(answer, Exception) and "range" in str(answer))
                        found = None if beyond else judge(answer, query, schema, expected)
                    if found:
                        differing += 1
                        print(f"seed {seed}, {kind.name}: {found} -- {query.plinth}", flush=True)
        seed += 1
    print(f"{asked} questions, {refused} refused, {differing} differ (seeds {args.seed} to {seed - 1})", flush=True)
    return 1 if differing or asked == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
