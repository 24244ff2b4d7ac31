"""The suite of JSON: how fast each way reads it, and the memory it takes."""

from . import io, svg
from .words import behind, figure, percent, seconds, size, table


def name(way):
    return f"{way['label']}, {way['threads']} thread{'s' if way['threads'] > 1 else ''}"


def section(of):
    done = sorted((way for way in of["ways"] if "rate" in way), key=lambda way: -way["rate"])
    rows = [
        [name(w), f"{size(w['rate'])}/s", seconds(w["median"]), percent(w["spread"]), size(w["memory"])] for w in done
    ]
    rows += [[name(w), (w["error"][:120], "bad"), "", "", ""] for w in of["ways"] if "error" in w]
    inner = table(["way", "a second", "median", "spread", "own memory"], rows)
    items = [(name(w), w["rate"], "c0" if w["key"].startswith("plinth") else "c5") for w in done]
    bars = svg.bars("Bytes a second", items, lambda rate: f"{size(rate)}/s")
    return io.verdicts(of) + figure("Speed", "Bytes of JSON a second.", bars, behind("Table", inner), "json-speed")


def markdown(of):
    rows = [
        [name(w), f"{w['rate'] / 1e9:.2f} GB/s", size(w["memory"])]
        for w in sorted((w for w in of["ways"] if "rate" in w), key=lambda w: -w["rate"])
    ]
    rows += [[name(w), w["error"][:120], ""] for w in of["ways"] if "error" in w]
    lines = [*of["notes"], "", *io.markdown_verdicts(of), "", *io.markdown_table(["way", "speed", "own memory"], rows)]
    return "\n".join(lines).strip() + "\n"
