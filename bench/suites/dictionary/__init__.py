"""A column of words as a search structure: its size beside the floor, what finding words costs, encoding, growth.

Every answer is held against a naive count of the text before it has a time.
"""

import copy

from ... import timing
from ...data.words import Words
from ...search import InMemory, Lines, Lookup, OtherFile, has
from ...timing import say
from . import axes, encode, inside, questions, sizes
from .column import COLUMN, make
from .verdicts import verdicts

QUICK = Words(50_000, 2_000)
PEERS = ["plinth", "plinth-parquet", "datafusion", "duckdb", "duckdb-parquet"]
PARTS = ["sizes", "queries", "lookup", "inside", "encode", "growth"]


def spec(options):
    if options.words:
        return options.words.resolve()
    if options.quick:
        return Words(QUICK.rows, QUICK.distinct, options.words_skew, options.seed)
    return Words(options.words_rows, options.words_distinct, options.words_skew, options.seed)


def engines_of(engines, column, options):
    """All that is asked, and why some are not."""
    found, missing = [e for e in engines if e.key in PEERS], {}
    plinth, program = found[0], options.plinth
    if column.indexed:
        found.insert(1, OtherFile(plinth, "plinth-indexed", "Plinth with postings", column.indexed))
    else:
        missing["Plinth with postings"] = "the program's import has no --index"
    if has(program, "sql", "--access"):
        scan = OtherFile(plinth, "plinth-scan", "Plinth, --access scan", column.file, ["--access", "scan"])
        found.insert(1, scan)
        if column.indexed:
            more = ["--access", "postings"]
            found.insert(1, OtherFile(plinth, "plinth-postings", "Plinth, --access postings", column.indexed, more))
    else:
        missing["Plinth, --access scan|postings"] = "the program's sql has no --access"
    if any(e.key == "datafusion" for e in found):
        found.append(InMemory(program, options.threads))
    found += lookup_engines(column, options, missing)
    for key, label in (("grep", "grep, of the text"), ("rg", "ripgrep, of the text")):
        lines = Lines(key, label, column.text)
        if lines.missing():
            missing[label] = lines.missing()
        else:
            found.append(lines)
    for name, why in missing.items():
        say(f"  skipped: {name}: {why}")
    return found, missing


def lookup_engines(column, options, missing):
    if not has(options.plinth, "lookup", "--equals"):
        missing["plinth lookup"] = "the program has no lookup"
        return []
    found = [Lookup(options.plinth, "lookup", "plinth lookup", column.file, COLUMN)]
    if column.indexed:
        found.append(Lookup(options.plinth, "lookup-postings", "plinth lookup, postings", column.indexed, COLUMN))
    return found


def able(engines, query):
    """Those who can be asked: all that know SQL, and those the question has words for."""
    return [e for e in engines if e.dialect in ("datafusion", "duckdb") or e.dialect in query.dialects]


def ask(queries, engines, column, options):
    records = []
    for query in queries:
        record = timing.measure(able(engines, query), column.tables, query, options)
        times = [f"{key} {of['warm']['median'] * 1e3:.2f}" for key, of in record["engines"].items() if "warm" in of]
        say(f"  {query.name}, ms: {', '.join(times)}")
        records.append(record)
    return records


def of_queries(column, engines, options):
    records = ask(questions.queries(column.census, options.only), engines, column, options)
    return {
        "queries": records,
        "warm": timing.geometric_means(records, engines),
        "cold": timing.geometric_means(records, engines, "cold"),
        "disagreements": [text for record in records for text in record["disagreements"]],
    }


def of_lookups(column, engines, options):
    """Row numbers: of `plinth lookup`, of DuckDB's own file and of programs that number lines."""
    engines = [copy.copy(e) for e in engines if e.dialect in ("lookup", "lines") or e.key == "duckdb"]
    ours = [e for e in engines if e.dialect == "lookup"]
    if not ours:
        return {}
    # With postings where there are any: that is what they are for.
    ours[-1].ours = True
    records = ask(questions.lookups(column.census, column.text), engines, column, options)
    return {"lookups": records, "disagreements": [text for record in records for text in record["disagreements"]]}


def run(engines, options):
    words = spec(options)
    say(f"dictionary: {words.name if isinstance(words, Words) else words}")
    column = make(words, options)
    known = column.census
    every, missing = engines_of(engines, column, options)
    uniform = isinstance(words, Words) and words.skew == 0
    parts = {
        "sizes": lambda: sizes.measure(column, options),
        "queries": lambda: of_queries(column, every, options),
        "lookup": lambda: of_lookups(column, every, options),
        "inside": lambda: inside.measure(column, options),
        "encode": lambda: encode.measure(column, options),
        "growth": lambda: axes.measure(words if isinstance(words, Words) else Words(1, 1), engines, options),
    }
    found, wrong = {}, []
    for name, measure in parts.items():
        if not options.parts or name in options.parts:
            say(f"dictionary: {name}")
            of = measure()
            missing |= of.pop("skipped", {})
            wrong += of.pop("disagreements", [])
            found |= of
    facts = {
        "rows": known.rows,
        "distinct": len(known.words),
        "text_bytes": known.text_bytes,
        "entropy": known.entropy(),
    }
    made = (
        f"made with seed {words.seed}, variance of log weights {words.skew:g}"
        if isinstance(words, Words)
        else f"of {words.name}"
    )
    notes = [
        f"{known.rows:,} rows, {len(known.words):,} distinct words, {known.text_bytes:,} bytes of text; {made}; {known.entropy():.3f} bits a row"
        " of entropy.",
        "Every answer was held against a naive count of the text, by pyarrow and numpy, before it has a time.",
        "Floor: a code of log2(distinct) bits for each row, and the set of the words, as likely as any other of as many words of each length.",
        "grep, ripgrep and `plinth lookup` are processes: their start is in their time. The others' is the query alone.",
        "Parquet that is queried was written by pyarrow with zstd level 3 and dictionary pages of up to 64 MB.",
    ]
    notes += [f"Skipped, {name}: {why}." for name, why in missing.items()]
    return {
        "suite": "dictionary",
        "title": "A column of words",
        "notes": notes,
        "column": facts,
        "engines": [{"key": e.key, "label": e.label} for e in every],
        "threads": options.threads,
        "verdicts": verdicts(found, column, uniform),
        "disagreements": wrong,
        **found,
    }
