"""What the column must show, and what was found."""

from ...timing import paired, verdict
from . import sizes

# Questions, and how many times faster than DuckDB's own file Plinth must answer.
FASTER = {"equal-usual": 30, "prefix-3": 30, "contains": 25, "group": 2}
# What of the quoted sizes Plinth's may be, in their order.
OF_QUOTED = [0.85, 0.73]


def verdicts(found, column, uniform):
    """Only what was run is judged, and sizes of others only beside a column as large as theirs."""
    told = []
    rows, words = column.census.rows, len(column.census.words)

    def add(what, least, most, value, interval=None):
        told.append(verdict(what, least, most, value, interval))

    def add_pair(what, least, pair):
        add(what, least, None, pair["ratio"], [pair["low"], pair["high"]])

    if "sizes" in found:
        by = {s["name"]: s for s in found["sizes"]}
        ours = by["Plinth"]
        if uniform:
            add("bytes without postings, over the floor", None, 1.01, ours["bytes"] / by["floor"]["bytes"])
        if rows >= 100_000_000 and words >= 900_000:
            for (bits, name), most in zip(sizes.QUOTED, OF_QUOTED):
                add(f"bits a row, over those of {name}", None, most, ours["bits"] / bits)
        compressed = [s for name, s in by.items() if name in sizes.COMPRESSORS]
        if compressed:
            least = min(compressed, key=lambda s: s["bytes"])
            what = f"bytes, over the best compressor's ({least['name']})"
            add(what, None, 1, ours["bytes"] / least["bytes"])
    for query in found.get("queries", []):
        of = query["engines"]
        if query["name"] in FASTER and all("warm" in of.get(key, {}) for key in ("plinth", "duckdb")):
            pair = paired(of["duckdb"]["warm"]["runs"], of["plinth"]["warm"]["runs"])
            add_pair(f"DuckDB's time over Plinth's, {query['title']}", FASTER[query["name"]], pair)
    for one in found.get("inside", {}).get("times", []):
        if one["what"] == "value to code":
            add("value to code, ns", None, 400, one["median"] * 1e9)
    for way in found.get("encode", []):
        if way["key"] == "plinth-1" and "rate" in way:
            least = 0.5 if words <= 100_000 else 0.2
            add("GB/s from text to file, one thread", least, None, way["rate"] / 1e9)
    if "plinth-2" in found.get("encode_gains", {}):
        add_pair("time of one thread over that of two, text to file", 1.8, found["encode_gains"]["plinth-2"])
    return told
