"""The suite of reading: what each way costs, what each step brings, and the limit beside it; as a page and as Markdown."""

from . import queries, svg
from .words import behind, escape, figure, percent, seconds, significant, size, table, times

CONDITIONS = {
    "resident": "resident",
    "cold": "cold",
    "slow": "cold, from a slower device",
}


def section(of):
    parts = [verdicts(of)]
    every = of.get("scans", []) + of.get("slow", [])
    for condition in CONDITIONS:
        for data in ("plain", "encoded"):
            those = [r for r in every if r["condition"] == condition and r["data"] == data]
            if those:
                parts += [speeds(of, those, condition, data), gains(those, condition, data)]
    parts += [limit(of["device"])] if "device" in of else []
    parts += [many(of["many"])] if "many" in of else []
    parts += [resident(of["resident"])] if "resident" in of else []
    if "queries" in of:
        labels = {e["key"]: e["label"] for e in of["engines"]}
        parts += [queries.means(of, labels), all_queries(of, "warm")]
        parts += [all_queries(of, "cold")] if of["cold"] else []
        parts += [queries.absent(of, labels)]
    return "\n".join(part for part in parts if part)


def interval(pair):
    return f"{pair['low']:.2f} to {pair['high']:.2f}"


def verdicts(of):
    rows = []
    for told in of["verdicts"]:
        between = f"{told['interval'][0]:.3f} to {told['interval'][1]:.3f}" if told["interval"] else ""
        met = (answer(told), "good" if told["met"] else "bad")
        rows.append([told["what"], told["wanted"], f"{told['found']:.3f}", between, met])
    head = ["what must be shown", "wanted", "found", "interval", "met"]
    return table(head, rows) if rows else ""


def answer(told):
    return ("yes" if told["met"] else "no") + ("" if told["sure"] else ", not certain")


def columns_of(record):
    count = record["columns"]
    return "all columns" if count is None else "1 column" if count == 1 else f"{count} columns"


def speeds(of, records, condition, data):
    """Bytes a second and processor time of each way; a dot for each number of columns."""
    titles = {way["key"]: way["title"] for record in records for way in record["ways"]}
    shown = [(columns_of(r), columns_of(r), f"c{i}") for i, r in enumerate(records)]

    def dots(title, what, show):
        by = {columns_of(r): {w["key"]: w[what] for w in r["ways"] if what in w} for r in records}
        rows = [(titles[key], {c: values[key] for c, values in by.items() if key in values}) for key in titles]
        return svg.dots(title, [row for row in rows if row[1]], shown, show)

    plot = svg.legend(shown) + "<h3>Bytes a second</h3>" + dots("Bytes a second", "rate", per_second)
    plot += "<h3>Processor time for each GB</h3>" + dots("Processor time a GB", "processor", per_gigabyte)
    rows = [[f"{w['title']}, {columns_of(r)}", *cells(w)] for r in records for w in r["ways"]]
    head = [
        "way",
        "bytes a second",
        "spread of time",
        "processor, a GB",
        "fetched over asked",
        "slabs",
        "of memory",
        "peak memory",
    ]
    text = "Medians, on logarithmic scales."
    left = [r["still_cached"] for r in records if r["still_cached"] is not None]
    text += f" Of the files at most {percent(max(left))} stayed in the page cache." if left else ""
    if condition == "resident":
        text += f" At most {percent(max(r['not_there'] for r in records))} of a run's bytes were not in the page cache."
    text += f" The device gives {per_second(of['slow_rate'])}." if condition == "slow" else ""
    identity = f"io-{condition}-{data}"
    return figure(
        f"Ways to read {data} files, {CONDITIONS[condition]}", text, plot, behind("Table", table(head, rows)), identity
    )


def per_second(rate):
    return f"{size(rate)}/s"


def per_gigabyte(cost):
    return seconds(cost * 1e9)


def cells(way):
    if "error" in way:
        return [way["error"], "", "", "", "", "", ""]
    spread, mapped = percent(way["time"]["spread"]), size(way["mapped_bytes"])
    cost = per_gigabyte(way["processor"])
    return [
        per_second(way["rate"]),
        spread,
        cost,
        f"{way['fetched']:.2f}",
        f"{way['slabs']:,}",
        mapped,
        size(way["memory"]),
    ]


def judged(pair):
    """What an interval of ratios, without over with, says of a step."""
    # One or two rounds say nothing.
    if pair["pairs"] < 3 or pair["low"] <= 1 <= pair["high"]:
        return "no difference", ""
    return ("helps", "good") if pair["low"] > 1 else ("hurts", "bad")


def gains(records, condition, data):
    """What each step brings, over the most columns."""
    record = records[-1]
    plot = ""
    for what, title in (("time", "Time without it over time with it"), ("cpu", "The same of processor time")):
        items = [(s["step"], s[what]["ratio"]) for s in record["steps"]]
        plot += f"<h3>{title}</h3>" + svg.ratios(title, items, "it helps →", "← it hurts")
    rows = []
    for r in records:
        for s in r["steps"]:
            name = f"{s['step']}, {columns_of(r)}"
            time, cost = s["time"], s["cpu"]
            rows.append([name, times(time["ratio"]), interval(time), judged(time)])
            rows[-1] += [times(cost["ratio"]), interval(cost), judged(cost)]
    head = ["step", "time", "interval", "it", "processor time", "interval", "it"]
    text = f"Of {columns_of(record)}; the table has the others. An interval on both sides of 1 shows no difference."
    title = f"What each step brings, {data} files, {CONDITIONS[condition]}"
    return figure(title, text, plot, behind("Table", table(head, rows)), f"io-steps-{condition}-{data}")


def limit(of):
    names = {"fresh": "Plinth, pread into fresh buffers", "registered": "Plinth, ring"}

    def kind(name):
        return "c0" if name in names else "c1"

    items = [(names.get(n, n), r["median"], kind(n)) for n, r in of["rates"].items()]
    plot = "<h3>Bytes a second</h3>" + svg.bars("Bytes a second past the page cache", items, per_second)
    items = [(names.get(n, n), c["median"], kind(n)) for n, c in of["processor"].items()]
    plot += "<h3>Processor time for each GB</h3>" + svg.bars("Processor time a GB", items, per_gigabyte)
    text = "One file of eight columns of eight bytes, past the page cache, requests of 256 KiB."
    if "sequential" in of:
        text += f" Ours over {of['best']}: {of['sequential']['ratio']:.3f} ({interval(of['sequential'])})."
        text += f" fio's buffers: {', '.join(of['fio_buffers'])}."
    if "random" in of:
        requests = [f"{who} {r['median']:,.0f} (spread {percent(r['spread'])})" for who, r in of["requests"].items()]
        text += f" Random reads of 4 KiB, 64 in flight, a second: {', '.join(requests)}; ours over fio's, one after the"
        text += f" other on the same file: {of['random']['ratio']:.3f} ({interval(of['random'])})."
    rows = [[names.get(n, n), per_second(r["median"]), percent(r["spread"])] for n, r in of["rates"].items()]
    for row, cost in zip(rows, of["processor"].values()):
        row += [per_gigabyte(cost["median"]), percent(cost["spread"])]
    head = ["who", "bytes a second", "spread", "processor, a GB", "spread"]
    return figure("Beside fio", text, plot, behind("Table", table(head, rows)), "io-device")


def many(points):
    ways = {"auto": ("auto", "c0"), "registered": ("ring", "c1")}
    plot = svg.legend([(key, label, kind) for key, (label, kind) in ways.items()])
    for what, title, show in (
        ("memory", "Peak memory", size),
        ("slabs", "Slabs", lambda n: f"{n:,.0f}"),
        ("extents", "Buffers used in one pass, each a piece of a slab", lambda n: f"{n:,.0f}"),
    ):
        series = []
        for key, (label, kind) in ways.items():
            of = [(p["files"], p[what]) for p in points if p["way"] == key and p["form"] == "files"]
            series.append((key, label, kind, of))
        plot += f"<h3>{title}</h3>" + svg.lines(f"{title} by files", series, lambda x: f"{x:,}", show)
    rows = [
        [f"{p['way']}, {p['form']}", f"{p['files']:,}", size(p["memory"]), f"{p['slabs']:,}", size(p["mapped_bytes"])]
        + [f"{p['extents']:,}"]
        for p in points
    ]
    head = ["way", "files", "peak memory", "slabs", "of memory", "buffers in a pass"]
    text = (
        "Eight columns by two threads, twice as many files holding twice as many rows. A reader that allocates for each"
        " column and file would make as many buffers as there are pieces. The table ends with the same rows in one file."
    )
    return figure("Memory by the number of files", text, plot, behind("Table", table(head, rows)), "io-many")


def resident(of):
    items, rows = [], []
    for one in of:
        for what in ("cached", "fresh"):
            pair = one[f"auto over {what}"]
            name = f"{one['data']}, {'pread' if what == 'cached' else 'pread, fresh buffers'}"
            items.append((name, 1 / pair["ratio"]))
            rows.append([name, f"{pair['ratio']:.3f}", f"{pair['low']:.3f} to {pair['high']:.3f}", f"{pair['pairs']}"])
    plot = svg.ratios("Time of pread over time of auto, resident data", items, "auto is faster →")
    head = ["auto's time over that of", "ratio", "interval", "pairs"]
    text = "Four columns, all in the page cache; each bar is pread's time over that of auto, pairs of runs in turn."
    return figure("Auto beside pread, resident", text, plot, behind("Table", table(head, rows)), "io-auto")


def all_queries(of, which):
    shown = [(e["key"], e["label"], f"c{i}") for i, e in enumerate(of["engines"])]
    return queries.all_times(of, shown, f"io-queries-{which}", which)


def markdown(of):
    """Ratios alone, for a page of the guide: they outlive the machine better than speeds do."""
    lines = markdown_verdicts(of)

    def add(head, rows):
        lines.extend(markdown_table(head, rows))

    cold = [r for r in of.get("scans", []) if r["condition"] == "cold"]
    if cold:
        lines += ["", "Bytes that the device gave over bytes that were asked for, cold:"]
        rows = []
        for key, title in (("cached", "through the page cache"), ("auto", "auto"), ("registered", "by ring")):
            ways = [next(w for w in r["ways"] if w["key"] == key) for r in cold]
            rows.append([title, *(f"{w['fetched']:.1f}" if "fetched" in w else "" for w in ways)])
        add(["", *(f"{r['data']}, {columns_of(r)}" for r in cold)], rows)
    several = steps_by(of.get("scans", []) + of.get("slow", []))
    for what, title in (("time", "Time"), ("cpu", "Processor time")):
        if several:
            lines += ["", f"{title} without a step over {title.lower()} with it:"]
            titles = dict.fromkeys(step for steps in several.values() for step in steps)
            rows = [
                [step, *(cell(steps[step][what]) if step in steps else "" for steps in several.values())]
                for step in titles
            ]
            add(["", *several], rows)
    if "queries" in of:
        labels = {e["key"]: e["label"] for e in of["engines"]}
        lines += ["", "The 22 queries: time over that of `--io auto`, geometric means:"]
        rows = []
        for key, label in labels.items():
            if key in of["warm"]:
                cold = of["cold"].get(key)
                rows.append([label, f"{of['warm'][key]['mean']:.2f}", f"{cold['mean']:.2f}" if cold else ""])
        add(["", "warm", "cold"], rows)
    return "\n".join(lines).strip() + "\n"


def markdown_table(head, rows):
    lines = ["", "| " + " | ".join(head) + " |", "|---|" + "--:|" * (len(head) - 1)]
    return lines + ["| " + " | ".join(map(str, row)) + " |" for row in rows]


def markdown_verdicts(of):
    rows = []
    for told in of["verdicts"]:
        between = f" ({told['interval'][0]:.2f} to {told['interval'][1]:.2f})" if told["interval"] else ""
        rows.append([told["what"], told["wanted"], f"{told['found']:.2f}{between}", answer(told)])
    return markdown_table(["what", "wanted", "found", "met"], rows) if rows else []


def steps_by(records):
    """The steps of each kind of data and condition, over the most columns that have the step."""
    found = {}
    for record in sorted(records, key=lambda r: (r["data"] != "plain", list(CONDITIONS).index(r["condition"]))):
        steps = found.setdefault(f"{record['data']}, {record['condition']}", {})
        steps |= {s["step"]: s for s in record["steps"]}
    order = list(dict.fromkeys(step for steps in found.values() for step in steps))
    return {name: {step: steps[step] for step in order if step in steps} for name, steps in found.items()}


def cell(pair):
    low, high = pair["low"], pair["high"]
    shown = f"{significant(pair['ratio'])} ({significant(low)} to {significant(high)})"
    return {"helps": f"**{shown}**", "hurts": f"*{shown}*"}.get(judged(pair)[0], shown)
