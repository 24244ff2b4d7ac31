"""The suite of memory: what must be shown, how many queries answered within each limit, and the largest peaks."""

from . import io
from .words import table

WORST = 25


def parts(of):
    limits = list(of["idle"])
    head = ["", *(f"{limit}: {what}" for limit in limits for what in ("answered", "refused", "largest peak, MB"))]
    rows = []
    for part in dict.fromkeys(line["part"] for line in of["lines"]):
        lines, row = [line for line in of["lines"] if line["part"] == part], [f"{part} ({sum(l['part'] == part for l in of['lines'])})"]
        for limit in limits:
            runs = [line["runs"][limit] for line in lines]
            count = {what: sum(run["outcome"] == what for run in runs) for what in ("answered", "refused")}
            peak = max(lines, key=lambda line: line["runs"][limit]["peak"])
            row += [str(count["answered"]), str(count["refused"]), f"{peak['runs'][limit]['peak'] / 1e6:,.0f} ({peak['name']})"]
        rows.append(row)
    rows.append(["SELECT 1", *(cell for limit in limits for cell in ("1", "0", f"{of['idle'][limit] / 1e6:,.0f}"))])
    return head, rows


def worst(of):
    """Each query's peaks, those first that came nearest to what they may hold."""
    limits = list(of["idle"])

    def nearness(line):
        return max(line["runs"][limit]["peak"] / (1.2 * size(limit) + 64e6) for limit in limits)

    lines = sorted(of["lines"], key=nearness, reverse=True)[:WORST]
    shown = lambda run: f"{run['peak'] / 1e6:,.0f}" + ("" if run["outcome"] == "answered" else f", {run['outcome']}") + ("" if run["within"] else ", **too much**")  # noqa: E731
    return ["", *limits], [[f"{line['part']}: {line['name']}", *(shown(line["runs"][limit]) for limit in limits)] for line in lines]


def size(limit):
    return float(limit[:-2]) * {"MB": 1e6, "GB": 1e9}[limit[-2:]]


def section(of):
    return "\n".join([io.verdicts(of), table(*parts(of), "By part"), table(*worst(of), "Peaks, MB: nearest to the bound")])


def markdown(of):
    lines = [*of["notes"], "", *io.markdown_verdicts(of), "", "By part:", *io.markdown_table(*parts(of))]
    lines += ["", f"The {WORST} queries that came nearest to the bound, peaks in MB:", *io.markdown_table(*worst(of))]
    refused = {}
    for line in of["lines"]:
        for limit, run in line["runs"].items():
            if run["outcome"] == "refused":
                refused.setdefault(limit, []).append(f"{line['part']}: {line['name']}")
    for limit, names in refused.items():
        lines += ["", f"Refused at {limit}: {'; '.join(names)}."]
    return "\n".join(lines).strip() + "\n"
