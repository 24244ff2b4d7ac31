"""Runs the suite rows at a quick size."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from bench import stores
from bench.suites.rows import BUILD

ROOT = Path(__file__).parents[2]


def test_rows_as_rust_makes_them():
    duckdb = pytest.importorskip("duckdb")
    sql = stores.ROWS.format(id="i * 2", first=0, last=1000)
    assert duckdb.sql(sql).fetchall() == [stores.row(i * 2) for i in range(1000)]


def test_all_parts(program, tmp_path):
    if not (program.parent / "examples" / "rows").is_file():
        pytest.skip(f"no example rows beside {program}: {BUILD}")
    command = [sys.executable, "-m", "bench", "--quick", "--plinth", program, "--folder", tmp_path, "--suite", "rows"]
    done = subprocess.run([str(c) for c in command], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    (suite,) = json.loads((tmp_path / "figures.json").read_text())["suites"]
    assert not suite["disagreements"] and suite["reads"] and suite["indexes"] and suite["commits"] and suite["growth"]
