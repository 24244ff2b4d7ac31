"""What the tests need from outside: the program, and perhaps a sample of hits and a browser. What is absent is
skipped, and said."""

import os
import shutil
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))


@pytest.fixture(scope="session")
def program():
    given = os.environ.get("PLINTH")
    for path in [Path(given)] if given else [ROOT / "target" / kind / "plinth" for kind in ("release", "debug")]:
        if path.is_file():
            return path.resolve()
    pytest.skip("no program: build it, or say where it is with PLINTH")


@pytest.fixture(scope="session")
def sample():
    folder = Path(os.environ.get("PLINTH_DATA", ROOT.parent / "shared" / "data"))
    path = folder / "clickbench" / "nano_hits.parquet"
    if not path.is_file():
        pytest.skip(f"no {path}: set PLINTH_DATA to a folder with clickbench/nano_hits.parquet")
    return path


@pytest.fixture(scope="session")
def browser():
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    return found or pytest.skip("no chromium: apt-get install chromium")
