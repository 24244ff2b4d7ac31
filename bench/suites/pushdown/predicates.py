"""One table and predicates over it: of every selectivity, clustered and random, correlated, nested, wide, with a limit."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ...answers import Query

ROWS = 4_000_000
SHARES = [0.0001, 0.001, 0.01, 0.1, 0.5, 0.9, 0.99]
PAYLOAD = 20
GROUP = 1 << 20


def make(target, rows, seed):
    """A million rows a row group: `seq` grows; `r` and `q` are random, `p` is `r` but for one row in ten; `u` is as rare as `r` but in
    runs; text that repeats and text that does not; a struct, a list; and numbers and text that no predicate filters."""
    target.parent.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(seed)
    partial, writer = target.with_name(target.name + ".partial"), None
    words = np.array([f"word number {i} of many" for i in range(5_000)])
    for first in range(0, rows, GROUP):
        n = min(GROUP, rows - first)
        r = random.integers(0, 1_000_000, n)
        p = np.where(random.random(n) < 0.1, random.integers(0, 1_000_000, n), r)
        runs = np.repeat(random.integers(0, 1_000_000, n // 500 + 1), 500)[:n]
        word = pa.array(words[random.integers(0, len(words), n)].tolist())
        line = [f"/path/{a:x}/{b:x}?from={c}" for a, b, c in zip(r, runs, word)]
        lengths = random.integers(0, 4, n)
        items = random.integers(0, 1000, int(lengths.sum()))
        columns = {
            "seq": pa.array(np.arange(first, first + n)),
            "r": pa.array(r, mask=random.random(n) < 0.05),
            "p": pa.array(p),
            "q": pa.array(random.integers(0, 1_000_000, n)),
            "u": pa.array(runs),
            "word": word,
            "line": pa.array(line),
            "s": pa.StructArray.from_arrays([pa.array(r % 1000), word], ["x", "word"]),
            "l": pa.ListArray.from_arrays(pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32()), items),
        }
        for i in range(PAYLOAD):
            numbers = random.integers(0, 1 << (2 * i + 1), n)
            columns[f"n{i:02}"] = pa.array(numbers) if i % 4 else pa.array([f"text {v:x}" for v in numbers])
        table = pa.table(columns)
        if writer is None:
            writer = pq.ParquetWriter(partial, table.schema, compression="zstd", compression_level=3)
        writer.write_table(table, row_group_size=GROUP)
    writer.close()
    partial.rename(target)


def queries(rows, only):
    found = []

    def ask(name, title, sql, keys=()):
        if not only or name in only:
            found.append(Query(name, title, sql, keys=tuple(keys)))

    narrow = "select count(*), sum(n01), max(n06) from t where"
    wide = ", ".join(["count(*)", "sum(seq)", "max(line)", "max(word)"] + [
        f"max(n{i:02})" if i % 4 == 0 else f"sum(n{i:02})" for i in range(PAYLOAD)
    ])
    for share in SHARES:
        percent = f"{share * 100:g} %"
        bound = int(share * 1_000_000)
        ask(f"random-{share:g}", f"{percent} of the rows, anywhere", f"{narrow} r < {bound}")
        ask(f"runs-{share:g}", f"{percent} of the rows, in runs of 500", f"{narrow} u < {bound}")
        ask(f"sorted-{share:g}", f"{percent} of the rows, the first", f"{narrow} seq < {int(share * rows)}")
        ask(f"wide-{share:g}", f"{percent}, anywhere, 24 columns", f"select {wide} from t where r < {bound}")
    ask("correlated", "two conjuncts, the second nearly implied", f"{narrow} r < 100000 and p < 100000 and q < 500000")
    ask("independent", "three conjuncts, independent", f"{narrow} r < 500000 and q < 500000 and n05 % 3 = 0")
    ask("either", "one of two, on two columns", f"{narrow} r < 1000 or q < 1000")
    ask("alternating", "every other row", f"{narrow} seq % 2 = 0")
    ask("same", "the filter's column is the only one put out", "select max(line) from t where line like '%word number 77 %'")
    ask("unequal", "nearly all, of text", "select count(*), max(line) from t where line <> ''")
    ask("text", "text that contains", f"{narrow} line like '%3f3f%'")
    ask("regex", "a regular expression, and a cheap conjunct", f"{narrow} regexp_like(line, 'f[0-9]f/') and q < 10000", ())
    ask("struct", "a field of a struct", "select count(*), max(s.word) from t where s.x = 77")
    ask("list", "lists that hold a value", "select count(*), sum(cardinality(l)) from t where l[1] = 77")
    ask("nothing", "no row", f"{narrow} q < 0 or q > 2000000")
    ask("rare-rows", "SELECT * of few", "select * from t where r = 77 and q < 400000 order by seq limit 50", (0,))
    ask("limit", "any ten rows", "select seq, line from t where r < 100000 order by seq limit 10", (0,))
    ask("top", "the ten largest", "select seq, line, word from t order by q desc, seq limit 10", (0,))
    ask("top-filtered", "the ten largest of some", "select * from t where line like '%7f%' order by seq desc limit 10", (0,))
    return found
