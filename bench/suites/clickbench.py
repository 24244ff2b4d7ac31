"""ClickBench's 43 questions over `hits`, or over rows shaped like it.

The questions are those of ClickBench (https://github.com/ClickHouse/ClickBench, ClickHouse, Inc. and contributors),
put into words of our own: times and dates stay the integers they are in hits.parquet, so that every engine reads the
same columns. Over made rows, literals that would match nothing are replaced; the page says where.
"""

import re

import pyarrow.parquet as pq

from ..answers import Query
from ..data import hits, parquet
from ..timing import say
from . import tables

# A question is written with @Column for a quoted column. Dialects differ in these:
FUNCTIONS = {
    "datafusion": {
        "minute": 'extract(minute from to_timestamp_seconds("EventTime"))',
        "by_minute": "date_trunc('minute', to_timestamp_seconds(\"EventTime\"))",
        "bytes": "octet_length",
        "hits": "hits",
    },
    "duckdb": {
        "minute": 'extract(minute from make_timestamp("EventTime" * 1000000))',
        "by_minute": "date_trunc('minute', make_timestamp(\"EventTime\" * 1000000))",
        "bytes": "strlen",
        "hits": "hits",
    },
    "polars": {
        "minute": 'extract(minute from "EventTimestamp")',
        "by_minute": "date_trunc('minute', \"EventTimestamp\")",
        "bytes": "octet_length",
        "hits": "hits_at",
    },
    "hyper": {
        "minute": "extract(minute from to_timestamp(\"EventTime\") at time zone 'UTC')",
        "by_minute": "date_trunc('minute', to_timestamp(\"EventTime\") at time zone 'UTC')",
        "bytes": "octet_length",
        "hits": "hits",
    },
    "clickhouse": {
        "minute": "toMinute(toDateTime(\"EventTime\", 'UTC'))",
        "by_minute": "date_trunc('minute', fromUnixTimestamp64Second(\"EventTime\", 'UTC'))",
        "bytes": "length",
        "hits": "hits",
    },
}

# What is asked of the real rows, and of rows made from a sample in which only three sites, one host and so on occur.
REAL = {
    "user": "435090932899640449",
    "in_url": "google",
    "in_title": "Google",
    "not_in_url": ".google.",
    "site": "62",
    "is_link": "<> 0",
    "referer_hash": "3594120000172545465",
    "url_hash": "2868770270353813622",
    "window_offset": "10000",
}
MADE = REAL | {
    "user": "-6262052664889826449",
    "in_url": "kinopoisk",
    "site": "38",
    "is_link": "= 0",
    "referer_hash": "2947180871991420512",
    "url_hash": "2649717405027890163",
    "window_offset": "100",
}
WHY = {
    "user": "a user of the sample",
    "in_url": "no URL of the sample has google in it",
    "site": "the sample has three sites, nearly all of it this one",
    "is_link": "IsLink is 0 throughout the sample",
    "referer_hash": "a referer of the sample",
    "url_hash": "a page of the sample",
    "window_offset": "fewer window sizes occur",
    "many": "a thousandth of the rows, as in the original",
}

JULY = "@EventDate >= 15887 and @EventDate <= 15917"
SITE = "@CounterID = {site} and " + JULY
WIDTHS = ", ".join(f"sum(@ResolutionWidth + {n})" if n else "sum(@ResolutionWidth)" for n in range(90))
TOP = "order by c desc limit 10"
HOST = r"regexp_replace(@Referer, '^https?://(?:www\.)?([^/]+)/.*$', '\1')"
SOURCE = "case when @SearchEngineID = 0 and @AdvEngineID = 0 then @Referer else '' end"

# (what is asked, the question, places of its sort keys if it has a LIMIT, a question in whose place answers are
# compared)
QUESTIONS = [
    ("rows", "select count(*) from hits"),
    ("rows with an ad", "select count(*) from hits where @AdvEngineID <> 0"),
    ("a sum, a count, a mean", "select sum(@AdvEngineID), count(*), avg(@ResolutionWidth) from hits"),
    ("mean of a wide integer", "select avg(@UserID) from hits"),
    ("distinct users", "select count(distinct @UserID) from hits"),
    ("distinct phrases", "select count(distinct @SearchPhrase) from hits"),
    ("first and last day", "select min(@EventDate), max(@EventDate) from hits"),
    (
        "ad engines",
        "select @AdvEngineID, count(*) as c from hits where @AdvEngineID <> 0 group by @AdvEngineID order by c desc",
    ),
    ("regions by users", f"select @RegionID, count(distinct @UserID) as c from hits group by @RegionID {TOP}", (1,)),
    (
        "regions by rows",
        (
            "select @RegionID, sum(@AdvEngineID), count(*) as c, avg(@ResolutionWidth), count(distinct @UserID) from"
            f" hits group by @RegionID {TOP}"
        ),
        (2,),
    ),
    (
        "phone models by users",
        (
            "select @MobilePhoneModel, count(distinct @UserID) as c from hits where @MobilePhoneModel <> '' "
            f"group by @MobilePhoneModel {TOP}"
        ),
        (1,),
    ),
    (
        "phones and models by users",
        (
            "select @MobilePhone, @MobilePhoneModel, count(distinct @UserID) as c from hits where @MobilePhoneModel <>"
            f" '' group by @MobilePhone, @MobilePhoneModel {TOP}"
        ),
        (2,),
    ),
    (
        "phrases by rows",
        f"select @SearchPhrase, count(*) as c from hits where @SearchPhrase <> '' group by @SearchPhrase {TOP}",
        (1,),
    ),
    (
        "phrases by users",
        (
            "select @SearchPhrase, count(distinct @UserID) as c from hits where @SearchPhrase <> '' group by"
            f" @SearchPhrase {TOP}"
        ),
        (1,),
    ),
    (
        "engines and phrases",
        (
            "select @SearchEngineID, @SearchPhrase, count(*) as c from hits where @SearchPhrase <> '' "
            f"group by @SearchEngineID, @SearchPhrase {TOP}"
        ),
        (2,),
    ),
    ("busiest users", f"select @UserID, count(*) as c from hits group by @UserID {TOP}", (1,)),
    (
        "users and phrases",
        f"select @UserID, @SearchPhrase, count(*) as c from hits group by @UserID, @SearchPhrase {TOP}",
        (2,),
    ),
    (
        "any ten users and phrases",
        "select @UserID, @SearchPhrase, count(*) as c from hits group by @UserID, @SearchPhrase limit 10",
        (),
        (
            "select count(*), sum(c), max(c) from (select @UserID, @SearchPhrase, count(*) as c from hits "
            "group by @UserID, @SearchPhrase) as g"
        ),
    ),
    (
        "users, minutes and phrases",
        "select @UserID, {minute} as m, @SearchPhrase, count(*) as c from {hits} group by @UserID, m, @SearchPhrase "
        + TOP,
        (3,),
    ),
    ("one user", "select @UserID from hits where @UserID = {user}"),
    ("a word in URLs", "select count(*) from hits where @URL like '%{in_url}%'"),
    (
        "phrases of pages with a word in the URL",
        "select @SearchPhrase, min(@URL), count(*) as c from hits where @URL like '%{in_url}%' and @SearchPhrase <> '' "
        "group by @SearchPhrase " + TOP,
        (2,),
    ),
    (
        "phrases of pages with a word in the title",
        "select @SearchPhrase, min(@URL), min(@Title), count(*) as c, count(distinct @UserID) from hits where @Title"
        " like '%{in_title}%' and @URL not like '%{not_in_url}%' and @SearchPhrase <> '' group by @SearchPhrase " + TOP,
        (3,),
    ),
    ("whole rows", "select * from hits where @URL like '%{in_url}%' order by @EventTime limit 10", (4,)),
    (
        "phrases in the order of time",
        "select @SearchPhrase from hits where @SearchPhrase <> '' order by @EventTime limit 10",
        (1,),
        "select @SearchPhrase, @EventTime from hits where @SearchPhrase <> '' order by @EventTime limit 10",
    ),
    (
        "phrases in the order of the alphabet",
        "select @SearchPhrase from hits where @SearchPhrase <> '' order by @SearchPhrase limit 10",
    ),
    (
        "phrases in the order of time, then of the alphabet",
        "select @SearchPhrase from hits where @SearchPhrase <> '' order by @EventTime, @SearchPhrase limit 10",
    ),
    (
        "sites by length of URL",
        (
            "select @CounterID, avg({bytes}(@URL)) as l, count(*) as c from hits where @URL <> '' group by @CounterID "
            "having count(*) > {many} order by l desc limit 25"
        ),
        (1,),
    ),
    (
        "hosts of referers",
        "select "
        + HOST
        + " as k, avg({bytes}(@Referer)) as l, count(*) as c, min(@Referer) from hits where @Referer <> '' "
        "group by k having count(*) > {many} order by l desc limit 25",
        (1,),
    ),
    ("ninety sums", f"select {WIDTHS} from hits"),
    (
        "engines and addresses",
        (
            "select @SearchEngineID, @ClientIP, count(*) as c, sum(@IsRefresh), avg(@ResolutionWidth) from hits "
            f"where @SearchPhrase <> '' group by @SearchEngineID, @ClientIP {TOP}"
        ),
        (2,),
    ),
    (
        "views and addresses with a phrase",
        (
            "select @WatchID, @ClientIP, count(*) as c, sum(@IsRefresh), avg(@ResolutionWidth) from hits "
            f"where @SearchPhrase <> '' group by @WatchID, @ClientIP {TOP}"
        ),
        (2,),
    ),
    (
        "views and addresses",
        (
            "select @WatchID, @ClientIP, count(*) as c, sum(@IsRefresh), avg(@ResolutionWidth) from hits "
            f"group by @WatchID, @ClientIP {TOP}"
        ),
        (2,),
    ),
    ("busiest pages", f"select @URL, count(*) as c from hits group by @URL {TOP}", (1,)),
    (
        "busiest pages beside a constant",
        f"select 1 as one, @URL, count(*) as c from hits group by one, @URL {TOP}",
        (2,),
    ),
    (
        "addresses and their neighbours",
        (
            "select @ClientIP, @ClientIP - 1 as x, @ClientIP - 2 as y, @ClientIP - 3 as z, count(*) as c from hits "
            f"group by @ClientIP, @ClientIP - 1, @ClientIP - 2, @ClientIP - 3 {TOP}"
        ),
        (4,),
    ),
    (
        "a site's pages",
        (
            f"select @URL, count(*) as c from hits where {SITE} and @DontCountHits = 0 and @IsRefresh = 0 and @URL <>"
            f" '' group by @URL {TOP}"
        ),
        (1,),
    ),
    (
        "a site's titles",
        (
            f"select @Title, count(*) as c from hits where {SITE} and @DontCountHits = 0 and @IsRefresh = 0 and @Title"
            f" <> '' group by @Title {TOP}"
        ),
        (1,),
    ),
    (
        "a site's links",
        (
            f"select @URL, count(*) as c from hits where {SITE} and @IsRefresh = 0 and @IsLink {{is_link}} and"
            f" @IsDownload = 0 group by @URL {TOP} offset 1000"
        ),
        (1,),
    ),
    (
        "a site's sources",
        (
            f"select @TraficSourceID, @SearchEngineID, @AdvEngineID, {SOURCE} as src, @URL as dst, count(*) as c from"
            f" hits where {SITE} and @IsRefresh = 0 group by @TraficSourceID, @SearchEngineID, @AdvEngineID, src, dst"
            f" {TOP} offset 1000"
        ),
        (5,),
    ),
    (
        "a referer's pages and days",
        (
            f"select @URLHash, @EventDate, count(*) as c from hits where {SITE} and @IsRefresh = 0 and @TraficSourceID"
            f" in (-1, 6) and @RefererHash = {{referer_hash}} group by @URLHash, @EventDate {TOP} offset 100"
        ),
        (2,),
    ),
    (
        "a page's windows",
        (
            f"select @WindowClientWidth, @WindowClientHeight, count(*) as c from hits where {SITE} and @IsRefresh = 0"
            " and @DontCountHits = 0 and @URLHash = {url_hash} group by @WindowClientWidth, @WindowClientHeight"
            f" {TOP} offset {{window_offset}}"
        ),
        (2,),
    ),
    (
        "a site's minutes",
        (
            "select {by_minute} as m, count(*) as c from {hits} where @CounterID = {site} and @EventDate >= 15900 and"
            " @EventDate <= 15901 and @IsRefresh = 0 and @DontCountHits = 0 group by {by_minute} order by m limit 10"
            " offset 1000"
        ),
    ),
]

# Polars' SQL has no regular expression that replaces.
BY_HAND = {
    "hosts of referers": (
        r"""python: hits.filter(pl.col("Referer") != "").group_by(pl.col("Referer").str.replace(
        r"^https?://(?:www\.)?([^/]+)/.*$", "$1").alias("k")).agg(pl.col("Referer").str.len_bytes().mean().alias("l"),
        pl.len().alias("c"), pl.col("Referer").min().alias("r")).filter(pl.col("c") > {many})
        .sort("l", descending=True).limit(25)"""
    ),
}


# Questions that ClickHouse has to be asked in other words: a mean of integers is summed in 64 bits there, which overflows,
# and a backslash in a literal is an escape.
BY_CLICKHOUSE = {
    "mean of a wide integer": lambda text: text.replace("avg(@UserID)", "avg(toFloat64(@UserID))"),
    "hosts of referers": lambda text: text.replace("\\", "\\\\"),
}


def in_dialect(dialect, title, text):
    if dialect == "polars":
        return BY_HAND.get(title, text)
    if dialect == "clickhouse" and title in BY_CLICKHOUSE:
        return BY_CLICKHOUSE[title](text)
    return text


def fill(text, values):
    return re.sub(r"@(\w+)", r'"\1"', re.sub(r"\{(\w+)\}", lambda found: str(values[found[1]]), text))


def queries(rows, made, only):
    """The 43, with the literals of the real rows or of made ones."""
    literals = (MADE if made else REAL) | {"many": max(rows // 1000, 1) if made else 100_000}
    found = []
    for number, (title, text, *more) in enumerate(QUESTIONS, 1):
        name = f"q{number:02}"
        if only and name not in only:
            continue
        keys, check = (*more, (), "")[:2]
        dialects = {}
        for dialect, functions in FUNCTIONS.items():
            dialects[dialect] = fill(in_dialect(dialect, title, text), literals | functions)
        changed = [
            n for n in re.findall(r"\{(\w+)\}", text) if n in literals and literals[n] != (REAL | {"many": 100_000})[n]
        ]
        note = "; ".join(f"{_original(n)} became {literals[n]}: {WHY[n]}" for n in dict.fromkeys(changed))
        sql = dialects["datafusion"]
        found.append(Query(name, title, sql, dialects, fill(check, literals) if check else "", tuple(keys), note))
    return found


def _original(name):
    return {"many": "100000"}.get(name, REAL.get(name))


NONE_GIVEN = "neither --hits nor --hits-sample was given"


def kept(folder, write):
    """The Parquet file of a folder, written if it is not there."""
    source = folder / "parquet" / "hits.parquet"
    source.parent.mkdir(parents=True, exist_ok=True)
    if not source.exists():
        write(source)
    return source


def made(options):
    """The file of rows made of the sample, and how many they are. Rows of each seed are kept apart."""
    rows = 20_000 if options.quick else options.hits_rows
    folder = options.folder / f"hits-{rows}-{options.seed}"
    return kept(folder, lambda source: hits.make(options.hits_sample, source, rows, options.seed)), rows


def prepare(options):
    """The rows to ask, given or made: their Parquet file, their number, and whether they were made; None if there is
    nothing to make them of."""
    if options.hits is not None:
        source = kept(options.folder / "hits-given", lambda target: parquet.rewrite(options.hits, target, "zstd"))
        return source, pq.ParquetFile(source).metadata.num_rows, False
    return (*made(options), True) if options.hits_sample is not None else None


def run(engines, options):
    found = prepare(options)
    if found is None:
        say(f"clickbench: skipped: {NONE_GIVEN}")
        return {"suite": "clickbench", "title": "ClickBench", "skipped": NONE_GIVEN}
    source, rows, are_made = found
    say(f"clickbench: {rows:,} rows")
    asked = queries(rows, are_made, options.only)
    figures = tables.run({"hits": source}, asked, engines, options, source.parent.parent)
    notes = [
        f"{rows:,} rows, 105 columns, as Parquet by pyarrow with zstd level 3, about a million rows a row group.",
        (
            "The questions are ClickBench's 43 (github.com/ClickHouse/ClickBench); times and dates stay the integers"
            " they are in the file."
        ),
    ]
    if are_made:
        notes.append(
            "The rows are not the real hits: they were made from a sample of it by a seeded generator (seed"
            f" {options.seed}) that draws users' sessions, moves them in time, varies their texts and gives them to"
            " other users, so that users, URLs, titles, referers and phrases grow with the rows. Compare engines by"
            " them, not with published ClickBench times."
        )
    return {
        "suite": "clickbench",
        "title": f"ClickBench-shaped, {rows:,} rows" if are_made else "ClickBench",
        "notes": notes,
        **figures,
    }
