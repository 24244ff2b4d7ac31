"""The suite of axes: a plot for each measure along each axis, with the slopes beside it."""

from . import svg
from .words import behind, figure, percent, seconds, significant, size, table


def section(of, engines):
    colours = {e["key"]: (e["label"], f"c{i}") for i, e in enumerate(engines)}
    return "\n".join(plot for axis in of["axes"] for plot in plots(axis, colours))


def compact(x):
    for unit, factor in (("M", 1e6), ("k", 1e3)):
        if x >= factor:
            return f"{x / factor:g}{unit}"
    return f"{x:g}"


def plots(axis, colours, suite="growth"):
    for number, (measure, slopes) in enumerate(axis["slopes"].items()):
        show = size if "bytes" in measure else seconds
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
