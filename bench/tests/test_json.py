"""Runs the parts of the suite json that make files of text, at quick sizes."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from bench.suites.json import BUILD

ROOT = Path(__file__).parents[2]


def test_files_made_of_text(program, tmp_path):
    if not (program.parent / "examples" / "json").is_file():
        pytest.skip(f"no example json beside {program}: {BUILD}")
    command = [sys.executable, "-m", "bench", "--quick", "--plinth", program, "--folder", tmp_path, "--suite", "json"]
    command += ["--parts", "import,memory"]
    done = subprocess.run([str(c) for c in command], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    (suite,) = json.loads((tmp_path / "figures.json").read_text())["suites"]
    assert not suite["disagreements"]
    errors = {way["key"]: way["error"] for way in suite["ways"] if "error" in way}
    assert not errors
    assert {way["key"] for way in suite["ways"]} >= {"plinth-pairs", "duckdb-logs", "polars-lineitem", "pyarrow-logs", "plinth-memory"}
    assert len(suite["verdicts"]) == 4
