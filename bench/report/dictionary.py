"""The suite of the column of words: sizes beside the floor, questions, row numbers, encoding, growth."""

from . import growth, io, queries, svg
from .words import behind, escape, figure, percent, seconds, significant, size, table, times

# The peers of the claims are drawn first.
AGAINST = ["duckdb", "plinth-parquet"]
# What the page of the guide has no room for.
NOT_IN_GUIDE = ["plinth-indexed", "datafusion", "duckdb-parquet"]


def section(of):
    labels = {e["key"]: e["label"] for e in of["engines"]}
    colours = {e["key"]: (e["label"], f"c{i}") for i, e in enumerate(of["engines"])}
    parts = [io.verdicts(of)]
    parts += [sizes(of)] if "sizes" in of else []
    if "queries" in of:
        parts += [queries.means(of, labels), queries.prominent(of, labels)]
        parts += [
            queries.against(of, k, labels[k], f"dictionary-ratio-{k}", "warm") for k in AGAINST if k in of["warm"]
        ]
        parts += [queries.all_times(of, shown(of, of["queries"]), "dictionary-times", "warm")]
        parts += [queries.all_times(of, shown(of, of["queries"]), "dictionary-cold", "cold")] if of["cold"] else []
        parts += [queries.memory(of, shown(of, of["queries"]), "dictionary-memory"), queries.absent(of, labels)]
    if "lookups" in of:
        rows = {"queries": of["lookups"]}
        parts += [
            "<h3>Numbers of rows</h3>",
            queries.all_times(rows, shown(of, of["lookups"]), "dictionary-rows", "warm"),
        ]
        parts += [queries.all_times(rows, shown(of, of["lookups"]), "dictionary-rows-cold", "cold")]
        parts += [queries.absent(rows, labels), queries.questions(rows)]
    parts += [inside(of)] if "inside" in of else []
    for what, title in (("encode", "From text to a file"), ("decode", "From a file to text")):
        parts += [rates(of, what, title)] if what in of else []
    parts += [plot for axis in of.get("axes", []) for plot in growth.plots(axis, colours, "dictionary")]
    parts += [queries.questions(of)] if "queries" in of else []
    return "\n".join(part for part in parts if part)


def shown(of, records):
    seen = {key for record in records for key, e in record["engines"].items() if "warm" in e}
    return [(e["key"], e["label"], f"c{i}") for i, e in enumerate(of["engines"]) if e["key"] in seen]


def in_bits(bits):
    return f"{bits:.2f}"


def size_rows(of):
    """Of each size its bytes, its bits a row and its share of the floor and of Plinth; of what is quoted, its bits."""
    by = {s["name"]: s["bytes"] for s in of["sizes"]}
    rows = []
    for one in sorted(of["sizes"], key=lambda s: s["bits"]):
        if one["bytes"] is None:
            rows.append([one["name"], "", in_bits(one["bits"]), "", ""])
            continue
        over = [f"{one['bytes'] / by['floor']:.3f}", f"{one['bytes'] / by['Plinth']:.3f}"]
        rows.append([one["name"], f"{one['bytes']:,.0f}", in_bits(one["bits"]), *over])
    return ["what", "bytes", "bits a row", "over the floor", "over Plinth's"], rows


def sizes(of):
    def kind(one):
        name = one["name"]
        if one.get("quoted") or name in ("floor", "text"):
            return "c6"
        return queries.kind_of(name) if name.startswith(("Plinth", "DuckDB", "Parquet")) else "c5"

    items = [(one["name"], one["bits"], kind(one)) for one in sorted(of["sizes"], key=lambda s: s["bits"])]
    floor = of["floor"]
    text = (
        f"Bits a row. The floor is {size(floor['codes'])} of codes and {size(floor['words'])} of words; with the rows'"
        f" entropy in place of log2(distinct) it were {size(floor['with_skew'])}. What is quoted is others' figures of"
        " another column and was not measured."
    )
    return figure(
        "Size", text, svg.bars("Bits a row", items, in_bits), behind("Table", table(*size_rows(of))), "dictionary-sizes"
    )


def nanoseconds(value):
    return f"{significant(value * 1e9)} ns"


def inside(of):
    rows = [[t["what"], nanoseconds(t["least"]), nanoseconds(t["median"])] for t in of["inside"]["times"]]
    made = "The example `lookup` makes a column of as many rows and words, and asks it within one process."
    return (
        f"<h3>Within one process</h3><p class='soft'>{made}</p>"
        + table(["for each", "least", "median"], rows)
        + behind("All it told", f"<pre>{escape(of['inside']['told'])}</pre>")
    )


def threads_of(way):
    return f"{way['who']}, {way['threads']} thread{'s' if way['threads'] > 1 else ''}"


def per_second(rate):
    return f"{size(rate)}/s"


def rates(of, what, title):
    done = [way for way in of[what] if "rate" in way]
    rows, gained = [], of[f"{what}_gains"]
    for way in done:
        gain = gained.get(way["key"])
        rows.append([threads_of(way), seconds(way["median"]), percent(way["spread"]), per_second(way["rate"])])
        rows[-1] += [
            per_second(way["rate"] / way["threads"]),
            per_second(way["processor_rate"]) if "processor_rate" in way else "",
            size(way["memory"]),
            f"{times(gain['ratio'])} ({io.interval(gain)})" if gain else "",
        ]
    rows += [
        [threads_of(way), (way["error"][:120], "bad"), "", "", "", "", "", ""] for way in of[what] if "error" in way
    ]
    head = ["way", "median", "spread", "of text", "a thread", "of processor time", "own memory", "over one thread"]
    inner = table(head, rows)
    if not done:
        return f"<h3>{title}: no time, and why</h3>{inner}"
    items = [(threads_of(way), way["rate"], queries.kind_of(way["who"])) for way in done]
    text = "Bytes of text a second; of processor time, all threads' together. Plinth's time is that of the process; peers' is the engine's alone. Plinth's"
    text += (
        " files are the same to the byte whatever the threads."
        if what == "encode"
        else " text is that which was imported."
    )
    return figure(title, text, svg.bars(title, items, per_second), behind("Table", inner), f"dictionary-{what}")


def markdown(of):
    """Sizes and ratios for the page of the guide."""
    column = of["column"]
    lines = [
        f"{column['rows']:,} rows, {column['distinct']:,} distinct words, {column['text_bytes'] / 1e6:,.1f} MB of text; queries by"
        f" {of['threads']} thread{'s' if of['threads'] > 1 else ''}."
    ]
    lines += io.markdown_verdicts(of)
    if "sizes" in of:
        lines += io.markdown_table(*size_rows(of))
    if of.get("queries"):
        lines += ["", "Time, and in brackets how many times Plinth's:", *answers(of, of["queries"], "plinth")]
    if of.get("lookups"):
        ours = [key for key, *_ in shown(of, of["lookups"]) if key.startswith("lookup")][-1]
        lines += ["", "Numbers of rows, and how many times that of `plinth lookup`:", *answers(of, of["lookups"], ours)]
    if "inside" in of:
        rows = [[t["what"], nanoseconds(t["least"]), nanoseconds(t["median"])] for t in of["inside"]["times"]]
        lines += io.markdown_table(["within one process, for each", "least", "median"], rows)
    for what, title in (("encode", "From text to a file"), ("decode", "From a file to text")):
        if what in of:
            rows = []
            for way in of[what]:
                gain = of[f"{what}_gains"].get(way["key"])
                told = per_second(way["rate"]) if "rate" in way else way["error"]
                cost = per_second(way["processor_rate"]) if "processor_rate" in way else ""
                gained = f"{gain['ratio']:.2f} ({io.interval(gain)})" if gain else ""
                rows.append([threads_of(way), told, cost, gained])
            lines += io.markdown_table([title, "text", "of processor time", "times one thread's"], rows)
    for axis in of.get("axes", []):
        measures = [m for m in axis["slopes"] if "plinth" in axis["slopes"][m]]
        rows = []
        for point in axis["points"]:
            of_plinth = [point["measures"].get(m, {}).get("plinth") for m in measures]
            show = [size if "bytes" in m else seconds for m in measures]
            rows.append([f"{point['x']:,}", *("" if v is None else s(v) for s, v in zip(show, of_plinth))])
            sizes_of = point["measures"]["file (bytes)"]
            rows[-1].append(f"{sizes_of['plinth'] / sizes_of['floor']:.3f}")
        slopes = [axis["slopes"][m]["plinth"] for m in measures]
        rows.append(["slope", *("" if s is None else significant(s) for s in slopes), ""])
        lines += io.markdown_table([axis["unit"], *(m.partition(" (")[0] for m in measures), "over the floor"], rows)
    return "\n".join(lines).strip() + "\n"


def answers(of, records, ours):
    """Each question's times beside those of the engine that is ours."""
    engines = [e for e in shown(of, records) if e[0] not in NOT_IN_GUIDE]
    rows = []
    for record in records:
        own = record["engines"].get(ours, {}).get("warm")
        rows.append([record["title"]])
        for key, *_ in engines:
            other = record["engines"].get(key, {}).get("warm")
            told = seconds(other["median"]) if other else ""
            if other and own and key != ours:
                told += f" ({significant(other['median'] / own['median'])})"
            rows[-1].append(told)
    return io.markdown_table(["question", *(label for _, label, _ in engines)], rows)
