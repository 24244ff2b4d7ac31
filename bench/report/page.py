"""The page: what was run on what, then each suite."""

from pathlib import Path

from . import dictionary, growth, io, json, keys, memory, profile, pushdown, queries, rows
from .words import behind, escape, table


# Suites with a section of their own; others are told by what they measured.
SECTIONS = {
    "dictionary": dictionary,
    "growth": growth,
    "json": json,
    "keys": keys,
    "memory": memory,
    "profile": profile,
    "pushdown": pushdown,
    "rows": rows,
}


def write(figures, target):
    Path(target).write_text(page(figures), encoding="utf-8")


def page(figures):
    style = (Path(__file__).parent / "style.css").read_text()
    suites = [suite(of, figures["engines"]) for of in figures["suites"]]
    links = " ".join(f"<a href='#{escape(of['suite'])}'>{escape(of['title'])}</a>" for of in figures["suites"])
    return "\n".join(
        [
            "<!doctype html><html lang='en'><head><meta charset='utf-8'>",
            "<meta name='viewport' content='width=device-width, initial-scale=1'>",
            f"<title>Plinth beside its peers</title><style>{style}</style></head><body>",
            "<h1>Plinth beside its peers</h1>",
            f"<p class='soft'>{escape(figures['date'])}, {escape(figures['versions']['plinth'])}</p>",
            quick(figures),
            alarms(figures),
            f"<nav>{links} <a href='#setting'>Machine and method</a></nav>",
            *suites,
            setting(figures),
            "</body></html>",
        ]
    )


def quick(figures):
    if not figures["quick"]:
        return ""
    return (
        "<p class='alarm'>A quick run: tiny data, one round. It shows that the harness works; the figures mean"
        " nothing.</p>"
    )


def alarms(figures):
    lines = [f"{of['title']}: {text}" for of in figures["suites"] for text in of.get("disagreements", [])]
    if not lines:
        return ""
    return (
        "<div class='alarm'><strong>Answers that differ</strong><ul>"
        + "".join(f"<li>{escape(t)}</li>" for t in lines)
        + "</ul></div>"
    )


def suite(of, engines):
    head = f"<section id='{escape(of['suite'])}'><h2>{escape(of['title'])}</h2>"
    if "skipped" in of:
        return f"{head}<p class='alarm'>Skipped: {escape(of['skipped'])}.</p></section>"
    notes = "<ul class='soft'>" + "".join(f"<li>{escape(n)}</li>" for n in of["notes"]) + "</ul>"
    if of["suite"] in SECTIONS:
        return head + notes + SECTIONS[of["suite"]].section(of) + "</section>"
    if "verdicts" in of:
        return head + notes + io.section(of) + "</section>"
    if "queries" in of:
        return head + notes + queries.section(of, engines) + "</section>"
    return head + notes + queries.imports(of, f"{of['suite']}-import", "Sorted import") + "</section>"


METHOD = [
    (
        "Every answer was compared with Plinth's before its engine was timed: to the byte, but for numbers with a"
        " fraction (1e-9, or the last of at least four places). Where LIMIT cuts through rows of equal sort key, other"
        " rows of that key may stand there. An engine that answers otherwise, or not at all, has no time and is named."
    ),
    (
        "Each engine runs in a process of its own. Its rounds alternate with the others', and who begins alternates"
        " too. The first run in a process is not counted: figures are warm unless they say cold."
    ),
    (
        "Timed is the engine: from a query's text to all of its rows, not the start of the process nor making tables"
        " known."
    ),
    (
        "Cold: a new process' first run, after the kernel was asked to forget the files' cached pages (posix_fadvise)."
        " Below a virtual machine its host may still have them."
    ),
    (
        "Memory is of the whole process (of Python packages with Python): the peak of what is its own (anonymous"
        " memory, looked at every 10 ms), and the peak of its control group, which counts the cached pages of"
        " files it read."
    ),
    (
        "Ratios are a peer's median over Plinth's: above 1, Plinth is faster. Spread is the slowest run less the"
        " fastest, over the median."
    ),
]


def setting(figures):
    machine, options = figures["machine"], figures["options"]
    rows = [
        ["processor", machine["cpu"]],
        ["cores", machine["cores"]],
        ["memory", f"{machine['memory_gb']} GB"],
        ["system", machine["system"] + (", a virtual machine" if machine["virtual"] else "")],
        ["load before the run", machine["load_before"]],
    ]
    rows += [[name, version] for name, version in figures["versions"].items()]
    kept = table(["what", "how"], rows)
    chosen = table(["option", "value"], [[k, v] for k, v in options.items() if v is not None])
    lines = "".join(f"<li>{escape(line)}</li>" for line in METHOD)
    command = f"<pre>{escape(figures['command'])}</pre>"
    return (
        f"<section id='setting'><h2>Machine and method</h2><ul>{lines}</ul>{kept}<h3>The command</h3>{command}"
        f"{behind('All options', chosen)}</section>"
    )
