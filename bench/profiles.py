"""Profiles of Plinth's, as the harness keeps them beside times: processor seconds by stage."""

import json
import tempfile
from pathlib import Path

NAME = 60


def stage(row):
    """A stage's name without what differs from file to file: an operator's kind, a stage and its part."""
    name = row["name"]
    if row["stage"] == "operator":
        # "AggregateExec: mode=Partial, gby=[..]" is told from its final half, and scans by nothing.
        kind, _, rest = name.partition(":")
        mode = rest.strip().partition(",")[0]
        return f"{kind}: {mode}" if mode.startswith("mode=") else kind
    return name[:NAME]


def summary(profile):
    """What is kept of a profile as the program writes it: seconds and bytes by stage, most processor time first."""
    stages = {}
    for row in profile["rows"]:
        of = stages.setdefault(stage(row), {"cpu": 0.0, "rows": 0, "bytes": 0, "hits": 0})
        of["cpu"] += row["cpu"] / 1e9
        for key in ("rows", "bytes", "hits"):
            of[key] += row[key]
    stages["other"] = {"cpu": profile["other"] / 1e9, "rows": 0, "bytes": 0, "hits": 0}
    return {
        "wall": profile["wall"] / 1e9,
        "cpu": profile["cpu"] / 1e9,
        "named": profile["named"] / max(profile["cpu"], 1),
        "waited": profile["waited"] / 1e9,
        "bound": profile["roofline"]["bound"],
        "verdict": profile["roofline"]["verdict"],
        "limits": {limit["resource"]: limit for limit in profile["roofline"]["limits"]},
        "stages": dict(sorted(stages.items(), key=lambda of: -of[1]["cpu"])),
    }


def taken(run):
    """Gives a command's options for a profile to `run`, and what was profiled."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "profile.json"
        run(["--profile=json", "--profile-to", file])
        return summary(json.loads(file.read_text()))
