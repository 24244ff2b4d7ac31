"""Figures of a suite as Markdown, for the pages of docs/measured: between two marks."""

import re

from . import dictionary, growth, io, json, keys, memory, profile, pushdown, rows

OF = {
    "io": io.markdown,
    "dictionary": dictionary.markdown,
    "growth": growth.markdown,
    "pushdown": pushdown.markdown,
    "json": json.markdown,
    "keys": keys.markdown,
    "memory": memory.markdown,
    "profile": profile.markdown,
    "rows": rows.markdown,
}


def markdown(of):
    return OF[of["suite"]](of)


def fill(page, name, text):
    """Replaces what stands between a page's marks; returns a line that says what was done."""
    if not page.is_file():
        return f"{page}: no such page: its figures were left out"
    start, end = f"<!-- figures: {name} -->", f"<!-- /figures: {name} -->"
    before = page.read_text()
    after, count = re.subn(
        f"{re.escape(start)}.*?{re.escape(end)}", lambda _: f"{start}\n{text}{end}", before, flags=re.S
    )
    if count != 1:
        return f"{page}: {count} pairs of the marks {start} and {end}, one is needed: it was left as it is"
    page.write_text(after)
    return f"figures replaced in {page}"
