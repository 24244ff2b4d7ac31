"""TPC-H tables of a scale, as Parquet."""

import shutil
import subprocess
import sys
from pathlib import Path

from .parquet import rewrite

TABLES = ["customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier"]


def make(folder, scale):
    """The Parquet file of each table; what is missing is made by tpchgen-cli and rewritten by pyarrow with zstd level
    3."""
    parquet, raw = folder / "parquet", folder / "raw"
    missing = [t for t in TABLES if not (parquet / f"{t}.parquet").exists()]
    if missing:
        parquet.mkdir(parents=True, exist_ok=True)
        generator = Path(sys.executable).parent / "tpchgen-cli"
        command = [generator, "parquet", "-s", str(scale), "--quiet", "--overwrite", "--output-dir", raw]
        subprocess.run([*command, f"--tables={','.join(missing)}"], check=True)
        for table in missing:
            rewrite(raw / f"{table}.parquet", parquet / f"{table}.parquet", "zstd")
        shutil.rmtree(raw)
    return {table: parquet / f"{table}.parquet" for table in TABLES}
