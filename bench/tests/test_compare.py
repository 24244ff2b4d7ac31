import json
import subprocess
import sys
from pathlib import Path

import pytest
from bench import compare, profiles

ROOT = Path(__file__).parents[2]


def profile(**cpu):
    return {"stages": {name.replace("_", " "): {"cpu": seconds} for name, seconds in cpu.items()}}


def figures(*records):
    """Of each query its name, the seconds of Plinth's runs, a peer's seconds and Plinth's profile."""
    queries = [
        {
            "name": name,
            "part": "tpch",
            "engines": {
                "plinth": {"warm": {"median": sorted(runs)[len(runs) // 2], "runs": runs}, "profile": of},
                "duckdb": {"warm": {"median": peer, "runs": [peer]}},
                "plinth-parquet": {"warm": {"median": 100.0, "runs": [100.0]}},
            },
        }
        for name, runs, peer, of in records
    ]
    return {"suites": [{"suite": "tpch", "queries": queries}]}


def test_the_stage_that_slowed_is_named():
    before = figures(
        ("q01", [1.0, 1.1, 1.05], 2.0, profile(decode_zstd=0.6, filter=0.3)),
        ("q02", [1.0, 1.2, 1.1], 3.0, profile(decode_zstd=0.5)),
        ("q03", [0.1], 0.1, profile(scan=0.1)),
    )
    # A machine of half the speed, on which one question takes longer than that, for its filter, and one less.
    after = figures(
        ("q01", [3.0, 3.2, 3.1], 4.0, profile(decode_zstd=1.2, filter=1.7)),
        ("q02", [1.1, 1.3, 1.2], 6.0, profile(decode_zstd=0.55)),
        ("q04", [9.0], 1.0, profile(scan=9.0)),
    )
    scale, found = compare.compare(before, after)
    assert scale == pytest.approx(2)
    first, last = found
    assert first["name"] == "tpch tpch q01" and first["ratio"] == pytest.approx(3.1 / 2.1) and first["sure"]
    assert first["stage"] == ("filter", pytest.approx(0.6), 1.7)
    assert last["ratio"] == pytest.approx(1.2 / 2.2) and last["sure"] and last["stage"][0] == "decode zstd"
    told = compare.text(scale, found)
    assert "filter: 600.0 to 1700.0 ms" in told and "within noise" not in told
    assert "none changed" in compare.text(*compare.compare(before, before))


def test_command(tmp_path):
    def run(*paths):
        command = [sys.executable, "-m", "bench", "compare", *map(str, paths)]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)

    slow, fast = tmp_path / "slow.json", tmp_path / "fast"
    fast.mkdir()
    slow.write_text(json.dumps(figures(("q01", [2.0], 1.0, profile(scan=2.0)))))
    (fast / "figures.json").write_text(json.dumps(figures(("q01", [1.0], 1.0, profile(scan=1.0)))))
    assert run(fast, slow).returncode == 1 and "scan: 1000.0 to 2000.0 ms" in run(fast, slow).stdout
    assert run(slow, fast).returncode == 0 and run(fast, fast).returncode == 0
    assert run(fast, tmp_path / "none").returncode == 2
    slow.write_text("{}")
    assert run(fast, slow).returncode != 0


def test_profiles_of_the_program(program, tmp_path):
    file = tmp_path / "t.csv"
    file.write_text("a,b\n" + "".join(f"{i},{i % 7}\n" for i in range(20_000)))
    subprocess.run([program, "import", file, "--to", tmp_path / "t.plinth", "--quiet"], check=True)

    def run(more):
        sql = "select b, sum(a) from t where a % 3 = 0 group by b"
        subprocess.run([program, "sql", "--db", tmp_path, *more, "-c", sql], check=True, capture_output=True)

    of = profiles.taken(run)
    assert of["cpu"] > 0 and 0 < of["named"] <= 1 and sum(s["cpu"] for s in of["stages"].values()) <= of["cpu"] * 1.001
    assert any(name.startswith("AggregateExec: mode=") for name in of["stages"])
    assert any(name.startswith("filter") for name in of["stages"]) and "DataSourceExec" in of["stages"]
