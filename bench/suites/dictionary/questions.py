"""What is asked of the column, and the answers by counting naively."""

import shlex
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

import numpy as np

from ...answers import Query
from ...data.words import COLUMN, rows_of_words
from ...process import Failed

REGEX = "^[aeiou].*in.$"
TAKEN = 10


@dataclass
class Chosen:
    """Words and parts of words that are asked for: the most frequent, one in the middle, the rarest, one that is not
    there."""

    frequent: str
    usual: str
    rare: str
    absent: str
    several: list
    low: str
    high: str


def choose(census):
    """Of words of letters and digits alone, so that neither SQL, patterns nor a shell read more into them."""
    plain = pc.and_(pc.utf8_is_alnum(census.words), pc.greater_equal(pc.utf8_length(census.words), 4))
    at = np.flatnonzero(plain)
    if len(at) < 2:
        raise Failed("the text has hardly a word of four letters or more")
    order = at[np.argsort(census.counts[at], kind="stable")]

    def word(number):
        return census.words[int(number)].as_py()

    every = set(census.words.to_pylist())
    usual = word(order[len(order) // 2])
    absent = next(a for a in (usual[:-1] + c for c in [*"qxzjkvwy", usual[-1] + "qxz"]) if a not in every)
    several = [word(n) for n in at[np.linspace(0, len(at) - 1, TAKEN).astype(int)]]
    low, high = word(at[len(at) * 2 // 5]), word(at[len(at) // 2])
    return Chosen(word(order[-1]), usual, word(order[0]), absent, sorted(set(several)), low, high)


def queries(census, only=()):
    """The questions of SQL, some of which programs that scan lines and `plinth lookup` answer too."""
    of, words, found = choose(census), census.words, []
    middle = of.usual[:3]

    def add(name, title, sql, expected, keys=(), **dialects):
        full = {key: text.replace("@", COLUMN) for key, text in dialects.items()}
        if not only or name in only:
            found.append(Query(name, title, sql.replace("@", COLUMN), full, keys=keys, expected=expected))

    def add_count(name, title, where, mask, **dialects):
        add(name, title, f"select count(*) as c from words where {where}", [[str(census.count(mask))]], **dialects)

    for name, title in (
        ("frequent", "= the most frequent word"),
        ("usual", "= a word"),
        ("rare", "= the rarest word"),
        ("absent", "= a word that is not there"),
    ):
        word = getattr(of, name)
        lines, lookup = f"-c -x -F -e {word}", f"--equals {word} --count"
        add_count(f"equal-{name}", title, f"@ = '{word}'", pc.equal(words, word), lines=lines, lookup=lookup)
    for letters in (2, 3, 4):
        prefix = of.usual[:letters]
        add_count(
            f"prefix-{letters}",
            f"a prefix of {letters} letters",
            f"@ like '{prefix}%'",
            pc.starts_with(words, prefix),
            lines=f"-c -e ^{prefix}",
            lookup=f"--prefix {prefix} --count",
        )
    has_middle = pc.match_substring(words, middle)
    add_count("contains", "three letters anywhere", f"@ like '%{middle}%'", has_middle, lines=f"-c -F -e {middle}")
    add_count("not-contains", "three letters nowhere", f"@ not like '%{middle}%'", pc.invert(has_middle))
    matching = pc.match_substring_regex(words, REGEX)
    add(
        "regex",
        "a regular expression",
        f"select count(*) as c from words where regexp_like(@, '{REGEX}')",
        [[str(census.count(matching))]],
        duckdb=f"select count(*) as c from words where regexp_matches(@, '{REGEX}')",
        lines=f"-c -e {shlex.quote(REGEX)}",
        lookup=f"--matches {shlex.quote(REGEX)} --count",
    )
    listed = ", ".join(f"'{w}'" for w in of.several)
    is_in = pc.is_in(words, value_set=pa.array(of.several))
    lines = "-c -x -F " + " ".join(f"-e {w}" for w in of.several)
    add_count("in", f"in {len(of.several)} words", f"@ in ({listed})", is_in, lines=lines)
    binary = words.cast(pa.binary())
    low, high = (pa.scalar(w.encode(), pa.binary()) for w in (of.low, of.high))
    between = pc.and_(pc.greater_equal(binary, low), pc.less_equal(binary, high))
    add_count("range", "between two words", f"@ between '{of.low}' and '{of.high}'", between)
    top = np.argsort(-census.counts, kind="stable")[:TAKEN]
    add(
        "group",
        "the ten most frequent words",
        f"select @, count(*) as c from words group by @ order by c desc limit {TAKEN}",
        [[words[int(n)].as_py(), str(census.counts[n])] for n in top],
        keys=(1,),
    )
    add("distinct", "distinct words", "select count(distinct @) as c from words", [[str(len(words))]])
    letters = pc.utf8_length(words).to_numpy()
    total = [[str(int((letters.astype(np.int64) * census.counts).sum()))]]
    add("length", "sum of lengths", "select sum(length(@)) as c from words", total)
    ends = [[words[0].as_py(), words[len(words) - 1].as_py()]]
    add("ends", "first and last word", "select min(@) as a, max(@) as b from words", ends)
    return found


def lookups(census, text):
    """The questions of rows: their numbers, from nought, by `plinth lookup`, DuckDB and programs that number lines."""
    of, found = choose(census), []
    words = [of.frequent, of.usual, of.rare]
    prefix = of.usual[:3]
    first = len(words)
    words += census.words.filter(pc.starts_with(census.words, prefix)).to_pylist()
    # A word may be asked for twice, but is looked for once.
    once = sorted(set(words))
    rows = dict(zip(once, rows_of_words(text, once)))

    def add(name, title, numbers, where, lookup, lines):
        sql = f"select rowid from words where {COLUMN} {where}"
        expected = [[str(n)] for n in numbers]
        found.append(Query(name, title, sql, {"lookup": f"{lookup} --rows", "lines": f"-n {lines}"}, expected=expected))

    for name, title in (("frequent", "the most frequent word"), ("usual", "a word"), ("rare", "the rarest word")):
        word = getattr(of, name)
        add(f"rows-{name}", title, rows[word], f"= '{word}'", f"--equals {word}", f"-x -F -e {word}")
    numbers = np.sort(np.concatenate([rows[w] for w in words[first:]]))
    add("rows-prefix", "a prefix of 3 letters", numbers, f"like '{prefix}%'", f"--prefix {prefix}", f"-e ^{prefix}")
    return found
