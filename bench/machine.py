"""What figures stand beside: the machine, and the versions of everything that ran on it."""

import importlib.metadata
import os
import platform
import subprocess

PACKAGES = ["duckdb", "datafusion", "polars", "pyarrow", "tableauhyperapi", "chdb-core", "vortex-data", "tpchgen-cli", "numpy"]


def machine():
    try:
        with open("/proc/cpuinfo") as lines:
            cpu = next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        cpu = platform.processor() or platform.machine()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    load = os.getloadavg()[0]
    return {
        "cpu": cpu,
        "cores": os.cpu_count(),
        "memory_gb": round(memory / 1e9, 1),
        "system": platform.platform(),
        "virtual": _virtual(),
        "load_before": round(load, 2),
    }


def _virtual():
    try:
        with open("/proc/cpuinfo") as text:
            return "hypervisor" in text.read()
    except OSError:
        return False


def versions(program):
    found = {"plinth": subprocess.run([program, "--version"], capture_output=True, text=True).stdout.strip()}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    found["python"] = platform.python_version()
    return found


def installed(package):
    try:
        importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True
