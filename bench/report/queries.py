"""A suite of queries over fixed tables: what was won and lost, times, memory, sizes, import."""

from . import svg
from .words import behind, escape, figure, percent, seconds, size, table, times

# The peer of the claim is drawn first.
FIRST = ["plinth-parquet", "datafusion", "duckdb", "duckdb-parquet", "polars", "hyper", "clickhouse"]


def series(of, engines):
    """The engines that answered anything, in the order and colour of all."""
    seen = {key for q in of["queries"] for key, e in q["engines"].items() if "warm" in e}
    return [(e["key"], e["label"], f"c{i}") for i, e in enumerate(engines) if e["key"] in seen]


def section(of, engines):
    identity, shown = of["suite"], series(of, engines)
    labels = {e["key"]: e["label"] for e in engines}
    parts = [means(of, labels), prominent(of, labels), best(of, labels, f"{identity}-best")]
    for key in [k for k in FIRST if k in of["warm"]]:
        parts.append(against(of, key, labels[key], f"{identity}-ratio-{key}", "warm"))
    parts.append(all_times(of, shown, f"{identity}-times", "warm"))
    if of["cold"]:
        parts.append(all_times(of, shown, f"{identity}-cold", "cold"))
    parts += [
        memory(of, shown, f"{identity}-memory"),
        sizes(of, f"{identity}-sizes"),
        imports(of, f"{identity}-import"),
    ]
    parts += [absent(of, labels), replaced(of), questions(of)]
    return "\n".join(part for part in parts if part)


def verdict(ratio):
    return times(ratio), "good" if ratio >= 1 else "bad"


def means(of, labels):
    rows = []
    for which in ("warm", "cold"):
        for key, mean in of[which].items():
            lost = f"{mean['lost']} of {mean['queries']}"
            rows.append(
                [f"{labels[key]}, {which}", verdict(mean["mean"]), verdict(mean["best"]), verdict(mean["worst"]), lost]
            )
    head = ["Plinth is faster than", "geometric mean", "best", "worst", "queries lost"]
    return table(head, rows) if rows else ""


def best(of, labels, identity):
    """The quickest peer of each query, whichever it is: a mean against one engine hides what others do better."""
    found = of.get("best")
    if not found:
        return ""
    ratios = [(named(q), q["ratio"]) for q in found["queries"]]
    plot = svg.ratios("Plinth against the best peer of each query", ratios)
    rows = [
        [named(q), labels[q["peer"]], seconds(q["seconds"]), seconds(q["ours"]), verdict(q["ratio"])]
        for q in found["queries"]
    ]
    text = (
        f"Geometric mean of {len(rows)} queries, each against its best peer: {times(found['mean'])}; {found['lost']}"
        " lost. Each bar is the peer's time over ours, warm."
    )
    head = ["query", "best peer", "its time", "Plinth's", "ratio"]
    return figure("The best peer of each query", text, plot, table(head, rows), identity)


def pairs(of, key, which="warm"):
    """(query, its ratio) over the queries both answered."""
    found = []
    for query in of["queries"]:
        ours, theirs = query["engines"].get("plinth", {}), query["engines"].get(key, {})
        if which in ours and which in theirs:
            found.append((query, theirs[which]["median"] / ours[which]["median"]))
    return found


def prominent(of, labels):
    """The five greatest gains and the five worst losses against anyone, side by side."""
    every = [(r, q["name"], labels[key]) for key in of["warm"] for q, r in pairs(of, key)]

    def listed(kind, title, chosen):
        items = (
            "".join(f"<li>{escape(n)}: {times(r)} {escape(label)}</li>" for r, n, label in chosen) or "<li>none</li>"
        )
        return f"<div class='{kind}'><strong>{title}</strong><ul>{items}</ul></div>"

    lost = sorted(e for e in every if e[0] < 1)
    won = sorted((e for e in every if e[0] >= 1), reverse=True)
    gains = listed("gains", f"{len(won)} won, the clearest", won[:5])
    losses = listed("losses", f"{len(lost)} lost, the worst", lost[:5])
    return f"<div class='both'>{losses}{gains}</div>"


def named(query):
    return f"{query['name']} {query['title']}"


def against(of, key, label, identity, which):
    found = pairs(of, key, which)
    plot = svg.ratios(f"Plinth against {label}", [(named(q), r) for q, r in found])
    rows = []
    for query, ratio in found:
        ours, theirs = query["engines"]["plinth"][which], query["engines"][key][which]
        rows.append(
            [
                named(query),
                seconds(ours["median"]),
                percent(ours["spread"]),
                seconds(theirs["median"]),
                percent(theirs["spread"]),
                verdict(ratio),
            ]
        )
    mean = of[which][key]
    text = (
        f"Geometric mean of {mean['queries']} queries: {times(mean['mean'])}; {mean['lost']} lost. Each bar is their"
        " time over ours."
    )
    head = ["query", "Plinth", "spread", label, "spread", "ratio"]
    return figure(f"Against {label}, {which}", text, plot, behind("Table", table(head, rows)), identity)


def all_times(of, shown, identity, which):
    rows = [(named(q), {k: e[which]["median"] for k, e in q["engines"].items() if which in e}) for q in of["queries"]]
    rows = [row for row in rows if row[1]]
    if not rows:
        return ""
    plot = svg.legend(shown) + svg.dots(f"Seconds of each query, {which}", rows, shown, seconds)
    cells = [[label, *(seconds(v[k]) if k in v else "none" for k, *_ in shown)] for label, v in rows]
    inner = table(["query", *(label for _, label, _ in shown)], cells)
    text = "Medians, on a logarithmic scale: further left is faster."
    if which == "cold":
        left = [e["cold"]["still_cached"] for q in of["queries"] for e in q["engines"].values() if "cold" in e]
        known = [s for s in left if s is not None]
        text += (
            f" Of the files at most {percent(max(known))} stayed cached."
            if known
            else " Whether the cache was left is not known."
        )
    return figure(f"Time of each query, {which}", text, plot, behind("Table", inner), identity)


def memory(of, shown, identity):
    def own(m):
        return m.get("own") or m["resident"]

    rows = [(named(q), {k: own(e["memory"]) for k, e in q["engines"].items() if "memory" in e}) for q in of["queries"]]
    rows = [row for row in rows if row[1]]
    if not rows:
        return ""
    how = next(e["memory"]["how"] for q in of["queries"] for e in q["engines"].values() if "memory" in e)
    plot = svg.legend(shown) + svg.dots("Peak memory of each query", rows, shown, size)
    cells = []
    for query in of["queries"]:
        have = {k: e["memory"] for k, e in query["engines"].items() if "memory" in e}
        cells.append([named(query)])
        for k, *_ in shown:
            cells[-1] += (
                [size(own(have[k])), size(have[k]["group"]) if "group" in have[k] else ""]
                if k in have
                else ["none", ""]
            )
    head = ["query", *(t for _, label, _ in shown for t in (label, "with cache"))]
    return figure(
        "Peak memory of each query", f"Measured by {how}.", plot, behind("Table", table(head, cells)), identity
    )


def kind_of(name):
    kinds = {"Plinth": "c0", "DuckDB": "c3", "Parquet": "c1", "Vortex": "c5", "Hyper": "c6", "ClickHouse": "c7"}
    return next((kind for start, kind in kinds.items() if name.startswith(start)), "c1")


def sizes(of, identity):
    items = sorted(of["sizes"].items(), key=lambda item: item[1])
    plot = svg.bars("Bytes on disk", [(name, bytes_, kind_of(name)) for name, bytes_ in items], size)
    ours = of["sizes"]["Plinth"]
    parquet = [b for n, b in items if n.startswith("Parquet")]
    text = f"Plinth's files are {ours / min(parquet):.3f} of the smallest Parquet's." if parquet else ""
    text += " Parquet by pyarrow: zstd level 3 or snappy, dictionary pages of up to 64 MB; by DuckDB: its defaults."
    inner = table(["format", "bytes", "Plinth's over it"], [[n, f"{b:,}", f"{ours / b:.3f}"] for n, b in items])
    return figure("Size of all tables", text, plot, behind("Table", inner), identity)


def imports(of, identity, title="Import from the same Parquet files"):
    done = [w for w in of["imports"]["ways"] if "error" not in w]
    if not done:
        failed = [[w["way"], w["error"]] for w in of["imports"]["ways"]]
        return f"<h3>No time, and why</h3>{_texts(['way', 'why'], failed)}"
    plot = svg.bars("Seconds of import", [(w["way"], w["median"], kind_of(w["way"])) for w in done], seconds)
    held = {w["way"]: w["memory"].get("own") or w["memory"]["resident"] for w in done}
    plot += "<h3>Its peak memory</h3>" + svg.bars(
        "Memory of import", [(w, b, kind_of(w)) for w, b in held.items()], size
    )
    idle = of["imports"]["idle"]
    rows = []
    for way in done:
        group = way["memory"].get("group")
        resident = size(way["memory"]["resident"])
        mine = [size(held[way["way"]]), size(group) if group else "", resident]
        rows.append([way["way"], seconds(way["median"]), percent(way["spread"]), *mine])
    rows += [[w["way"], (w["error"][:120], "bad"), "", "", "", ""] for w in of["imports"]["ways"] if "error" in w]
    rows.append(
        [
            "Plinth, one row",
            "",
            "",
            size(idle.get("own") or idle["resident"]),
            size(idle.get("group", 0)),
            size(idle["resident"]),
        ]
    )
    head = ["way", "median", "spread", "own memory", "with cache", "resident"]
    bound = of["imports"].get("bound")
    best = {n: [w["median"] for w in done if w["way"].startswith(n)] for n in ("Plinth", "DuckDB")}
    text = ""
    if all(best.values()):
        text = (
            "DuckDB's time over Plinth's, each the quicker of its two:"
            f" {times(min(best['DuckDB']) / min(best['Plinth']))}. "
        )
    text += (
        "Plinth's time is that of whole processes, one for each table; DuckDB's is the engine's alone, up to its"
        " checkpoint."
    )
    if bound:
        said = "within" if bound["held"] <= bound["most"] else "MORE THAN"
        text += f" With --memory {of['imports']['limit']} Plinth held {size(bound['held'])},"
        text += f" {said} the {size(bound['most'])} that an idle process and 1.1 times the limit make."
    return figure(title, text, plot, behind("Table", table(head, rows)), identity)


def absent(of, labels):
    rows = []
    for query in of["queries"]:
        rows += [[named(query), labels[k], e["error"]] for k, e in query["engines"].items() if "error" in e]
    if not rows:
        return ""
    return f"<h3>No time, and why</h3>{_texts(['query', 'engine', 'why'], rows)}"


def replaced(of):
    rows = [[named(q), q["note"]] for q in of["queries"] if q["note"]]
    return f"<h3>Replaced literals</h3>{_texts(['query', 'what became what'], rows)}" if rows else ""


def _texts(head, rows):
    return table(head, rows).replace(' class="n"', "")


def questions(of):
    return behind(
        "The questions",
        "".join(f"<h3>{escape(named(q))}</h3><pre>{escape(q['sql'].strip())}</pre>" for q in of["queries"]),
    )
