"""Joins of one large table with tables of many sizes: key types, skew, selectivity, multiplicity, kinds."""

from ..answers import Query
from ..data import joins
from ..timing import say
from . import tables

# Of the rows of the large table, those that a filter of the small one leaves.
SHARES = ["0.000001", "0.0001", "0.01", "0.1", "0.5"]
TYPES = {"k6": "k", "sparse": "sparse", "text": "text", "money": "money"}


def queries(most, only=()):
    """Every query, of the tables of at most so many rows."""
    found = []

    def ask(name, title, sql):
        if not only or name in only:
            found.append(Query(name, title, sql))

    sizes = [size for size in joins.SIZES if size <= most]
    for size in sizes:
        zeros = len(str(size)) - 1
        ask(
            f"size{zeros}",
            f"{size:,} keys, all of which are found",
            f"select count(*) as c, sum(big.v) as s, sum(b.v) as t from big join build{zeros} as b on big.k{zeros} = b.k",
        )
    middle = len(str(min(joins.KEYS, most))) - 1
    for share in SHARES:
        part = round(float(share) * 1_000_000)
        ask(
            f"share{share.removeprefix('0.')}",
            f"a filter that leaves {float(share) * 100:g} % of {min(joins.KEYS, most):,} keys",
            f"select count(*) as c, sum(big.v) as s, sum(b.v) as t from big join build{middle} as b"
            f" on big.k{middle} = b.k where b.part < {part}",
        )
    for ours, theirs in TYPES.items():
        ours = f"k{middle}" if ours == "k6" else ours
        ask(
            f"type-{ours}",
            f"keys of a tenth of {min(joins.KEYS, most):,} as {ours}",
            f"select count(*) as c, sum(big.v) as s, sum(b.v) as t from big join build{middle} as b"
            f" on big.{ours} = b.{theirs} where b.part < 100000",
        )
    if most >= 10_000:
        ask(
            "type-day",
            "10,000 days",
            "select count(*) as c, sum(big.v) as s, sum(b.v) as t from big join build4 as b on big.day = b.day"
            " where b.part < 100000",
        )
    ask(
        "type-two",
        "keys of two columns",
        f"select count(*) as c, sum(big.v) as s, sum(b.v) as t from big join build{middle} as b"
        f" on big.k{middle} = b.k and big.money = b.money where b.part < 100000",
    )
    ask(
        "skewed",
        "keys of which the first are most frequent",
        f"select count(*) as c, sum(big.v) as s, sum(b.v) as t from big join build{middle} as b on big.skewed = b.k"
        " where b.part < 500000",
    )
    for several in joins.SEVERAL:
        ask(
            f"several{several}",
            f"{several} rows a key, some keys without",
            f"select count(*) as c, sum(big.v) as s, sum(b.v) as t from big join several{several} as b"
            f" on big.k{middle} = b.k",
        )
    small = f"(select k from build{middle} where part < 100000)"
    ask("semi", "rows with a partner", f"select count(*) as c, sum(v) as s from big where k{middle} in {small}")
    ask(
        "anti",
        "rows without a partner",
        f"select count(*) as c, sum(v) as s from big where not exists (select 1 from build{middle} as b"
        f" where b.part < 100000 and b.k = big.k{middle})",
    )
    ask(
        "left",
        "rows with and without a partner",
        f"select count(*) as c, count(b.k) as d, sum(b.v) as t from big left join"
        f" (select * from build{middle} where part < 100000) as b on big.k{middle} = b.k",
    )
    ask(
        "residual",
        "a further condition of both sides",
        f"select count(*) as c, sum(big.v) as s from big join build{middle} as b on big.k{middle} = b.k"
        " and big.v < b.v where b.part < 500000",
    )
    return found


def run(engines, options):
    rows = 50_000 if options.quick else options.join_rows
    most = 10_000 if options.quick else options.join_keys
    say(f"joins: {rows:,} rows, tables of up to {most:,} keys")
    folder = options.folder / f"joins-{rows}-{most}-{options.seed}"
    sources = joins.tables(folder / "parquet", rows, most, options.seed)
    figures = tables.run(sources, queries(most, options.only), engines, options, folder)
    notes = [
        (
            f"A table of {rows:,} rows is joined with tables of 1,000 to {most:,} keys, whose rows lie in no order of their"
            " keys. Every engine imports the same Parquet."
        ),
    ]
    return {"suite": "joins", "title": f"Joins of {rows:,} rows", "notes": notes, **figures}
