"""The suite of axes: a plot for each measure along each axis, with the slopes beside it."""

from . import io, svg
from .words import behind, figure, percent, seconds, significant, size, table

# What is measured beside engines and files of other kinds.
LABELS = {"plinth-limited": "Plinth, with a limit of memory"}
LIMITED = "peak memory (bytes)"


def section(of):
    colours = {e["key"]: (e["label"], f"c{i}") for i, e in enumerate(of["engines"])}
    colours |= {key: (label, "c5") for key, label in LABELS.items()}
    parts = [io.verdicts(of)]
    for axis in of["axes"]:
        if "questions" in axis:
            parts.append(table(*exponents(axis, colours), "Questions: exponents of time in the rows"))
        parts += plots(axis, colours)
    return "\n".join(part for part in parts if part)


def shown(measure):
    """How a measure's figures are written, by the unit at the end of its name."""
    if "rows/s" in measure:
        return lambda value: f"{value:,.0f}"
    return size if "bytes" in measure else seconds


def exponent(slope):
    return "none" if slope is None else f"{slope:.2f}"


def exponents(axis, labels):
    """Of each question its exponent for each engine, whose is more than linear, and the memory of the most rows."""
    last, keys = axis["points"][-1], list(dict.fromkeys(key for q in axis["questions"] for key in q["slopes"]))
    names = [labels[key][0] for key in keys]
    memory = [f"{name}: memory at {compact(last['x'])}" for name in names]
    head = ["question", *names, f"above {axis['linear']}", *memory]
    rows = []
    for q in axis["questions"]:
        beyond = [labels[key][0] for key in q["beyond"]]
        verdict = "every engine" if len(beyond) == len(keys) else ", ".join(beyond)
        peaks = last["measures"][f"{q['title']}, {LIMITED}"]
        memory = [size(peaks[key]) if key in peaks else "none" for key in keys]
        rows.append([q["title"], *(exponent(q["slopes"].get(key)) for key in keys), verdict, *memory])
    return head, rows


def markdown(of):
    """What must hold, and each axis: figures and exponents."""
    labels = {e["key"]: e["label"] for e in of["engines"]} | LABELS
    lines = [*of["notes"], "", *io.markdown_verdicts(of)]
    for axis in of["axes"]:
        unit, points = axis["unit"], axis["points"]
        rows = []
        for measure, slopes in axis["slopes"].items():
            show, name = shown(measure), measure.removesuffix(" (s)").removesuffix(" (bytes)")
            for key, slope in slopes.items():
                cells = [_cell(p, measure, key, show) for p in points]
                rows.append([name, labels.get(key, key), *cells, exponent(slope)])
        head = [unit, "", *(f"{p['x']:,}" for p in points), "exponent"]
        lines += ["", f"By {axis['axis']} ({axis['note']}):", *io.markdown_table(head, rows)]
        if "questions" in axis:
            beyond = {tuple(q["beyond"]): [] for q in axis["questions"]}
            for q in axis["questions"]:
                beyond[tuple(q["beyond"])].append(q["name"])
            told = [f"for {' and '.join(labels[k] for k in keys)} {', '.join(q)}" for keys, q in beyond.items() if keys]
            lines += ["", f"Exponents above {axis['linear']}: {'; '.join(told) or 'none'}.", ""]
            lines += [f"- {q['title']}: {q['why']}" for q in axis["questions"]]
    return "\n".join(lines).strip() + "\n"


def compact(x):
    for unit, factor in (("M", 1e6), ("k", 1e3)):
        if x >= factor:
            return f"{x / factor:g}{unit}"
    return f"{x:g}"


def plots(axis, colours, suite="growth"):
    for number, (measure, slopes) in enumerate(axis["slopes"].items()):
        if measure.endswith(f", {LIMITED}"):
            continue
        show = shown(measure)
        series = []
        for key in slopes:
            name, kind = colours.get(key, (key, "c6"))
            points = [
                (p["x"], p["measures"][measure][key]) for p in axis["points"] if key in p["measures"].get(measure, {})
            ]
            series.append((key, name, kind, points))
        stated = ", ".join(f"{name} {slopes[key]:.2f}" for key, name, *_ in series if slopes[key] is not None)
        text = f"{axis['note'].capitalize()}. Slopes (exponents): {stated or 'one point alone has none'}."
        if "metadata" in measure:
            text += (
                f" Of the last point's metadata {axis['metadata_share']:.2%} was read; at most"
                f" {percent(axis['metadata_limit'])} is wanted."
            )
        plot = svg.legend([s[:3] for s in series]) + svg.lines(f"{measure} by {axis['axis']}", series, compact, show)
        head = [axis["unit"], *(name for _, name, *_ in series)]
        rows = [[f"{p['x']:,}", *(_cell(p, measure, key, show) for key, *_ in series)] for p in axis["points"]]
        rows.append(["slope", *("none" if slopes[k] is None else significant(slopes[k]) for k, *_ in series)])
        title = f"{axis['axis'].capitalize()}: {measure.partition(' (')[0]}"
        identity = f"{suite}-{axis['axis'].replace(' ', '-')}-{number}"
        yield figure(title, text, plot, behind("Table", table(head, rows)), identity)
    errors = [[f"{p['x']:,}", name, text] for p in axis["points"] for name, text in p["errors"].items()]
    if errors:
        yield "<h3>No time, and why</h3>" + table([axis["unit"], "query, engine", "why"], errors)


def _cell(point, measure, key, show):
    value = point["measures"].get(measure, {}).get(key)
    return "none" if value is None else show(value)
