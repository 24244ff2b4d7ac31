"""Plots as SVG: bars, ratios to either side of one, dots and lines on logarithmic scales. Colours are the page's, by
class."""

import math
import re
from pathlib import Path

from .words import escape

WIDTH = 560
ROW = 22
LABEL = 150


def _svg(height, parts, title):
    head = f"<svg viewBox='0 0 {WIDTH} {height:.0f}' role='img' aria-label='{escape(title)}'>"
    return "\n".join([head, f"<title>{escape(title)}</title>", *parts, "</svg>"])


def _text(x, y, text, kind="", anchor="start"):
    return f"<text x='{x:.1f}' y='{y:.1f}' text-anchor='{anchor}' class='{kind}'>{escape(text)}</text>"


def _line(x1, y1, x2, y2, kind):
    return f"<line x1='{x1:.1f}' y1='{y1:.1f}' x2='{x2:.1f}' y2='{y2:.1f}' class='{kind}'/>"


def short(label, room=23):
    return label if len(label) <= room else label[: room - 1] + "…"


def bars(title, items, show):
    """Horizontal bars from nought: (label, value, class)."""
    left = 205
    top = max(value for _, value, _ in items) or 1
    parts, y = [], 6
    for label, value, kind in items:
        width = (WIDTH - left - 75) * value / top
        parts.append(_text(left - 8, y + 14, short(label, 32), "label", "end"))
        parts.append(
            f"<rect x='{left}' y='{y + 3}' width='{max(width, 1):.1f}' height='{ROW - 7}' rx='2' class='fill {kind}'>"
        )
        parts.append(f"<title>{escape(label)}: {escape(show(value))}</title></rect>")
        parts.append(_text(left + width + 6, y + 14, show(value), "value"))
        y += ROW
    return _svg(y + 6, parts, title)


def ratios(title, items, better="Plinth is faster →", worse="← slower"):
    """Bars to the right of one for what is faster, to the left for what is slower: (label, ratio)."""
    lost, won = _side(items, -1), _side(items, 1)
    # A label, room for a value, the bars to the left, those to the right, room for a value.
    left, value = LABEL + 28, 38
    scale = (WIDTH - left - 2 * value) / (lost + won)
    middle = left + value + lost * scale
    height = 28 + ROW * len(items) + 4
    parts = [_text(middle + 5, 14, better, "label")]
    parts.append(_text(middle - 5, 14, worse, "label", "end"))
    parts.append(_line(middle, 20, middle, height, "axis"))
    y = 24
    for label, ratio in items:
        reach = math.log2(ratio) * scale
        x, width, kind = (middle, reach, "won") if reach >= 0 else (middle + reach, -reach, "lost")
        parts.append(_text(6, y + 14, short(label, 24), "label"))
        parts.append(
            f"<rect x='{x:.1f}' y='{y + 3}' width='{max(width, 1):.1f}' height='{ROW - 7}' rx='2' class='{kind}'>"
        )
        parts.append(f"<title>{escape(label)}: {ratio:.2f}</title></rect>")
        if reach >= 0:
            parts.append(_text(middle + reach + 5, y + 14, f"{ratio:.2f}", "value"))
        else:
            parts.append(_text(middle + reach - 5, y + 14, f"{ratio:.2f}", "value", "end"))
        y += ROW
    return _svg(height, parts, title)


def _side(items, sign):
    """How many doublings a side of a plot of ratios must hold."""
    return max([sign * math.log2(r) for _, r in items] + [0.5])


def _ticks(low, high):
    """Round values on a logarithmic scale."""
    few = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = (1,) if len(few) > 4 else (1, 2, 5)
    return [step * 10.0**power for power in few for step in steps if low * 0.999 <= step * 10.0**power <= high * 1.001]


def round_off(text):
    """A round figure without the noughts behind its point."""
    return text.replace(".00 ", " ").replace(".0 ", " ")


def _thin(ticks, at, room):
    """Ticks no closer than some room."""
    kept, last = [], None
    for tick in ticks:
        if last is None or abs(at(tick) - at(last)) >= room:
            kept.append(tick)
            last = tick
    return kept


def dots(title, rows, series, show):
    """Rows of dots on one logarithmic scale: rows are (label, {key: value}); series are (key, label, class)."""
    values = [v for _, of in rows for v in of.values() if v > 0]
    low, high = min(values) * 0.9, max(values) * 1.1
    left, right = LABEL + 42, WIDTH - 16

    def at(value):
        return left + (right - left) * math.log(value / low) / math.log(high / low)

    height = 24 + ROW * len(rows) + 6
    parts = []
    for tick in _thin(_ticks(low, high), at, 52):
        parts.append(_line(at(tick), 20, at(tick), height, "grid"))
        parts.append(_text(at(tick), 14, round_off(show(tick)), "tick", "middle"))
    y = 24
    for label, of in rows:
        parts.append(_text(6, y + 14, short(label, 24), "label"))
        shown = [v for v in of.values() if v > 0]
        if shown:
            parts.append(_line(at(min(shown)), y + 10, at(max(shown)), y + 10, "span"))
        # Plinth's dot lies above the others.
        for key, name, kind in reversed(series):
            if of.get(key, 0) > 0:
                parts.append(
                    f"<circle cx='{at(of[key]):.1f}' cy='{y + 10}' r='{6 if kind == 'c0' else 4.5}' class='dot {kind}'>"
                )
                parts.append(f"<title>{escape(label)}, {escape(name)}: {escape(show(of[key]))}</title></circle>")
        y += ROW
    return _svg(height, parts, title)


def lines(title, series, show_x, show_y):
    """Lines on two logarithmic scales: (key, label, class, [(x, y)])."""
    points = [p for *_, of in series for p in of if p[0] > 0 and p[1] > 0]
    xs, ys = [p[0] for p in points], [p[1] for p in points]
    low_x, high_x, low_y, high_y = min(xs), max(xs) * (1 if max(xs) > min(xs) else 2), min(ys) * 0.8, max(ys) * 1.25
    left, right, top, bottom = 66, WIDTH - 22, 10, 270

    def at_x(value):
        return left + (right - left) * math.log(value / low_x) / math.log(high_x / low_x)

    def at_y(value):
        return bottom - (bottom - top) * math.log(value / low_y) / math.log(high_y / low_y)

    parts = []
    for tick in _thin(_ticks(low_y, high_y), at_y, 20):
        parts.append(_line(left, at_y(tick), right, at_y(tick), "grid"))
        parts.append(_text(left - 6, at_y(tick) + 4, round_off(show_y(tick)), "tick", "end"))
    for x in _thin(sorted(set(xs)), at_x, 44):
        parts.append(_line(at_x(x), bottom, at_x(x), bottom + 4, "axis"))
        parts.append(_text(at_x(x), bottom + 18, show_x(x), "tick", "middle"))
    parts.append(_line(left, bottom, right, bottom, "axis"))
    for _, name, kind, of in reversed(series):
        of = [(x, y) for x, y in of if x > 0 and y > 0]
        path = " ".join(f"{at_x(x):.1f},{at_y(y):.1f}" for x, y in of)
        parts.append(f"<polyline points='{path}' class='stroke {kind}'/>")
        for x, y in of:
            parts.append(
                f"<circle cx='{at_x(x):.1f}' cy='{at_y(y):.1f}' r='{4.5 if kind == 'c0' else 3.5}' class='dot {kind}'>"
            )
            parts.append(f"<title>{escape(name)}, {escape(show_x(x))}: {escape(show_y(y))}</title></circle>")
    return _svg(bottom + 26, parts, title)


def points(title, series, show_x, show_y):
    """Named points from nought on two scales, those of a series joined: (label, class, [(x, y, name)])."""
    every = [point for *_, of in series for point in of]
    far_x, far_y = (max(point[axis] for point in every) * 1.1 for axis in (0, 1))
    left, right, top, bottom = 66, WIDTH - 60, 10, 300

    def at_x(value):
        return left + (right - left) * value / far_x

    def at_y(value):
        return bottom - (bottom - top) * value / far_y

    parts = []
    for tick in _round_steps(far_y):
        parts.append(_line(left, at_y(tick), right, at_y(tick), "grid"))
        parts.append(_text(left - 6, at_y(tick) + 4, round_off(show_y(tick)), "tick", "end"))
    for tick in _round_steps(far_x):
        parts.append(_line(at_x(tick), bottom, at_x(tick), bottom + 4, "axis"))
        parts.append(_text(at_x(tick), bottom + 18, show_x(tick), "tick", "middle"))
    parts.append(_line(left, bottom, right, bottom, "axis"))
    for label, kind, of in reversed(series):
        path = " ".join(f"{at_x(x):.1f},{at_y(y):.1f}" for x, y, _ in of)
        parts.append(f"<polyline points='{path}' class='stroke {kind}'/>")
        for x, y, name in of:
            parts.append(f"<circle cx='{at_x(x):.1f}' cy='{at_y(y):.1f}' r='4.5' class='dot {kind}'>")
            parts.append(f"<title>{escape(label)}, {escape(name)}: {escape(show_x(x))}, {escape(show_y(y))}</title></circle>")
            parts.append(_text(at_x(x) + 7, at_y(y) - 6, name, "tick"))
    y = bottom - 16 * len(series) + 4
    for label, kind, _ in series:
        parts.append(f"<circle cx='{left + 14}' cy='{y - 4}' r='4.5' class='dot {kind}'/>")
        parts.append(_text(left + 24, y, label, "label"))
        y += 16
    return _svg(bottom + 26, parts, title)


def _round_steps(far):
    """Round values from nought, about five of them."""
    power = 10.0 ** math.floor(math.log10(far / 5))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor * 6 >= far)
    return [step * at for at in range(1, int(far / step) + 1)]


def alone(svg):
    """A plot as a file of its own, with the page's light colours written out: not all that shows such files knows variables."""
    style = Path(__file__).with_name("style.css").read_text()
    colours = dict(re.findall(r"--(\w+): (#\w+)", style[: style.index("@media")]))
    kept = [line for line in style.splitlines() if line.startswith(("svg ", ".grid", ".dot", ".fill", ".stroke"))]
    rules = re.sub(r"var\(--(\w+)\)", lambda found: colours[found[1]], "\n".join(kept))
    head, rest = svg.split(">", 1)
    head = head.replace("<svg ", "<svg xmlns='http://www.w3.org/2000/svg' ")
    ground = f"<rect width='100%' height='100%' fill='{colours['ground']}'/>"
    return f"{head}>\n<style>\n{rules}\n</style>\n{ground}{rest}\n"


def legend(series):
    """The colours' meanings: (key, label, class)."""
    entries = [f"<span><i class='swatch {kind}'></i>{escape(label)}</span>" for _, label, kind in series]
    return f"<p class='legend'>{''.join(entries)}</p>"
