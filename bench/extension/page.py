"""The figures as a page of plots, and as tables for the docs."""

from pathlib import Path

from ..report import svg
from ..report.words import behind, escape, figure, seconds, size, table, times


def write(figures, target):
    style = (Path(__file__).parent.parent / "report" / "style.css").read_text()
    parts = [questions(of) for of in figures["questions"]] + [story(figures["steps"])] + [threads(figures["threads"])] + [files(figures["files"]), roads(figures)]
    head = f"<!doctype html><html lang='en'><head><meta charset='utf-8'><meta name='viewport' content='width=device-width, initial-scale=1'><title>Plinth inside DuckDB</title><style>{style}</style></head><body>"
    setting = f"<p class='soft'>{escape(figures['setting'])}</p>"
    Path(target).write_text(f"{head}<h1>Plinth inside DuckDB</h1>{setting}{''.join(parts)}</body></html>", encoding="utf-8")


def questions(of):
    items = [(query["name"], query["ratios"]["parquet"]["ratio"]) for query in of["queries"]]
    rows = [
        [f"{query['name']} {query['title']}", *(seconds(query["seconds"][kind]) for kind in ("plinth", "parquet", "own")), times(query["ratios"]["parquet"]["ratio"]), times(query["ratios"]["own"]["ratio"])]
        for query in of["queries"]
    ]
    told = f"DuckDB's time over Parquet, over its time over Plinth files: {times(of['means']['parquet'])} in the geometric mean. Its own tables: {times(of['means']['own'])}."
    plot = svg.ratios(f"{of['name']}: Parquet over Plinth", items)
    kept = table(["query", "Plinth", "Parquet", "own tables", "Parquet / Plinth", "own / Plinth"], rows)
    return f"<section><h2>{escape(of['name'])}</h2>{figure('Each question', told, plot, behind('All times', kept), of['name'].split()[0])}</section>"


def story(steps):
    parts = ["<section><h2>Step by step</h2>"]
    for of in steps:
        where = "from storage" if of["cold"] else "from the page cache"
        if of["cold"] and of["still_cached"]:
            where += f" ({of['still_cached']:.0%} stayed cached)"
        bars = [(way["title"], way["seconds"], "c0" if way["key"] == "auto" else "c1") for way in of["ways"]]
        rows = [[way["title"], seconds(way["seconds"]), seconds(way["processor"]), *step(way), a_byte(way), size(way["bytes"])] for way in of["ways"]]
        kept = table(["way", "time", "processor", "brings (time)", "of 95 %", "brings (processor)", "a byte of values", "files"], rows)
        parts.append(figure(f"{of['name']}, {where}, {of['threads']} threads", "", svg.bars(of["name"], bars, seconds), kept, f"{of['name']}-{of['cold']}"))
    return "".join(parts) + "</section>"


def a_byte(way):
    """Processor time for a byte of values."""
    return f"{way['a_byte'] * 1e9:.2f} ns" if way.get("a_byte") else ""


def step(way):
    found = way["step"]
    if not found or way["key"] == "parquet":
        return ["", "", ""]
    time = found["time"]
    return [times(time["ratio"]), f"{time['low']:.2f} to {time['high']:.2f}", times(found["processor"]["ratio"])]


def threads(found):
    series = [(key, title, f"c{at}", [(of["threads"], way["seconds"]) for of in found for way in of["ways"] if way["key"] == key]) for at, (key, title) in enumerate({way["key"]: way["title"] for of in found for way in of["ways"]}.items())]
    plot = svg.lines("Threads", series, str, seconds) + svg.legend([(key, title, kind) for key, title, kind, _ in series])
    return f"<section><h2>Threads</h2>{figure('Sums of lineitem by threads', '', plot, '', 'threads')}</section>"


def files(found):
    series = [(kind, title, colour, [(of["files"], of[kind]) for of in found]) for kind, title, colour in (("plinth", "Plinth", "c0"), ("parquet", "Parquet", "c1"))]
    plot = svg.lines("Files", series, lambda x: f"{x:,.0f}", seconds) + svg.legend([(key, title, kind) for key, title, kind, _ in series])
    return f"<section><h2>Files</h2>{figure('The same rows in many files', '', plot, table(FILES, files_rows(found)), 'files')}</section>"


FILES = ["files", "Plinth", "Parquet", "processor, Plinth", "processor, Parquet", "buffers of reads"]


def files_rows(found):
    keys = ("plinth", "parquet", "plinth_processor", "parquet_processor")
    return [[f"{of['files']:,}", *(seconds(of[key]) for key in keys), size(of["buffers"])] for of in found]


def lacks(figures):
    """What DuckDB's own tables lose without what an extension has no road for, and questions that Plinth files pay for it."""
    return [[of["road"], of["set"], times(of["mean"]), times(of["worst"]), of["of"]] for of in figures["roads"]], [[of["title"], seconds(of["seconds"]), seconds(of["beside"])] for of in figures["asked"]]


LACKS = ["without", "of its own tables", "mean", "at most", "which"], ["asked", "Plinth", "beside it"]


def roads(figures):
    kept = "".join(table(heads, rows) for heads, rows in zip(LACKS, lacks(figures)))
    return f"<section><h2>What an extension has no road for</h2>{kept}</section>"


def markdown(figures):
    lines = []
    for of in figures["questions"]:
        lines += [f"{of['name']}: {times(of['means']['parquet'])} DuckDB over Parquet, {times(of['means']['own'])} its own tables.", "", "| question | Plinth | Parquet | own tables | Parquet / Plinth |", "|---|--:|--:|--:|--:|"]
        lines += [f"| {q['name']} | {seconds(q['seconds']['plinth'])} | {seconds(q['seconds']['parquet'])} | {seconds(q['seconds']['own'])} | {times(q['ratios']['parquet']['ratio'])} |" for q in of["queries"]]
        lines.append("")
    for of in figures["steps"]:
        lines += [f"{of['name']}, {'from storage' if of['cold'] else 'from the page cache'}, {of['threads']} threads:", "", "| way | time | processor | brings in time | in processor time | processor, a byte of values |", "|---|--:|--:|--:|--:|--:|"]
        for way in of["ways"]:
            time, _, used = step(way)
            lines.append(f"| {way['title']} | {seconds(way['seconds'])} | {seconds(way['processor'])} | {time} | {used} | {a_byte(way)} |")
        lines.append("")
    lines += ["| threads | " + " | ".join(way["title"] for way in figures["threads"][0]["ways"]) + " |", "|--:|" + "--:|" * len(figures["threads"][0]["ways"])]
    lines += [f"| {of['threads']} | " + " | ".join(seconds(way["seconds"]) for way in of["ways"]) + " |" for of in figures["threads"]]
    for heads, rows in zip((FILES, *LACKS), (files_rows(figures["files"]), *lacks(figures))):
        lines += ["", f"| {' | '.join(heads)} |", "|---" * len(heads) + "|", *(f"| {' | '.join(row)} |" for row in rows)]
    return "\n".join(lines) + "\n"
