"""The suite of rows: point reads, commits, growth."""

from . import io, svg
from .words import behind, figure, seconds, table


def cells(line):
    return {store["key"]: store for store in line["stores"]}


def labels(lines):
    return {store["key"]: store["label"] for line in lines for store in line["stores"]}


def times(line, key):
    store = cells(line).get(key)
    return f"{store['ratio']:.2f} ({store['low']:.2f} to {store['high']:.2f})" if store else ""


def section(of):
    parts = [io.verdicts(of)]
    for key, title in (("reads", "Point reads, cached"), ("indexes", "By an index"), ("commits", "Durable commits"), ("growth", "Point reads by rows")):
        lines = of[key]
        if not lines:
            continue
        names = labels(lines)
        rows = [
            [line["what"], *(seconds(cells(line)[k]["median"]) if k in cells(line) else "" for k in names)] for line in lines
        ]
        bars = [
            (f"{line['what']}: {store['label']}", store["ratio"], "c0" if store["key"] == "plinth" else "c5")
            for line in lines
            for store in line["stores"]
        ]
        plot = svg.bars("Time over Plinth's", bars, lambda ratio: f"{ratio:.2f}")
        inner = table(["", *names.values()], rows)
        parts.append(figure(title, "Time over Plinth's: above 1, Plinth is faster.", plot, behind("Times", inner), key))
    return "\n".join(part for part in parts if part)


def markdown(of):
    lines = [*io.markdown_verdicts(of)]
    for key, title in (("reads", "Cached point reads"), ("indexes", "By an index"), ("commits", "Durable commits"), ("growth", "Point reads by rows")):
        found = of[key]
        if not found:
            continue
        names = {k: label for k, label in labels(found).items() if k != "plinth"}
        rows = [[line["what"], *(times(line, k) for k in names)] for line in found]
        lines += ["", f"{title}, time over Plinth's:", *io.markdown_table(["", *names.values()], rows)]
        if key == "commits":
            bare = [(s["label"], s["bare"]) for s in found[0]["stores"] if "bare" in s]
            rows = [[label, f"{b['ratio']:.2f} ({b['low']:.2f} to {b['high']:.2f})"] for label, b in bare]
            lines += ["", "A row by one writer, time over that of a bare write and fdatasync:"]
            lines += io.markdown_table(["", "over fdatasync"], rows)
        slopes = [(s["label"], s["slope"]) for s in found[-1]["stores"] if "slope" in s]
        if slopes:
            lines += ["", "Exponent of that time in the rows: " + ", ".join(f"{n} {slope:.2f}" for n, slope in slopes) + "."]
    return "\n".join(lines).strip() + "\n"
