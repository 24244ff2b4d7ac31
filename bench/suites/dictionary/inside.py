"""Times too short for a process: the example program `lookup` asks a file it makes, within one process; so does a program of
two libraries that do nothing but keep sorted words, `fst` and `fcsd`, with the same words."""

import re
from pathlib import Path

from ... import process
from ...timing import say

BUILD = "cargo build --release -p plinth-format --example lookup"
OTHERS = Path(__file__).parents[2] / "dictionaries"
BUILD_OTHERS = "cargo build --release --manifest-path bench/dictionaries/Cargo.toml"
LINE = re.compile(r"^( *)(\S.*?) +([\d.]+) ns, median +([\d.]+)$")


def parse(text):
    """The lines of times; what is indented belongs to the line before that is not."""
    found, above = [], ""
    for line in text.splitlines():
        told = LINE.match(line)
        if told is None:
            above = line.partition(":")[0]
            continue
        what = f"{above}, {told[2]}" if told[1] else told[2]
        found.append({"what": what, "least": float(told[3]) / 1e9, "median": float(told[4]) / 1e9})
    return found


def measure(column, options):
    program = options.plinth.parent / "examples" / "lookup"
    if not program.is_file():
        why = f"no {program}: build it beside the program with `{BUILD}`"
        say(f"  skipped: {why}")
        return {"skipped": {"times within a process": why}}
    folder = column.folder / "inside"
    folder.mkdir(exist_ok=True)
    told = process.run([program, column.census.rows, len(column.census.words), folder]).stdout
    folder.rmdir()
    others = OTHERS / "target" / "release" / "dictionaries"
    if others.is_file():
        words = column.folder / "distinct.txt"
        words.write_text("".join(f"{word}\n" for word in sorted(column.census.words.to_pylist())))
        told += process.run([others, words]).stdout
        words.unlink()
    else:
        say(f"  without fst and fcsd: no {others}: build it with `{BUILD_OTHERS}`")
    print(told)
    return {"inside": {"times": parse(told), "told": told}}
