"""fio, which says what the device can do: what is measured beside it shares its file, size of requests and moment."""

import json
import shutil
from pathlib import Path

from . import process


def missing():
    return None if shutil.which("fio") else "fio is not installed"


def free_huge_pages():
    """Bytes of huge pages that are reserved and free."""
    try:
        lines = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
    except OSError:
        return 0
    number = [int(lines.get(name, "0").split()[0]) for name in ("HugePages_Free", "Hugepagesize")]
    return number[0] * number[1] * 1024


def memory(request, depth):
    """Where fio's buffers are: in huge pages, if as many are reserved."""
    return "mmaphuge" if free_huge_pages() >= request * depth + (4 << 20) else "malloc"


def sequential(file, request, depth):
    """Reads a file from start to end, past the page cache; bytes a second and seconds of processor time for each byte."""
    command = ["fio", "--name=limit", f"--filename={str(file).replace(':', chr(92) + ':')}", "--readonly", "--rw=read"]
    command += [f"--bs={request}", "--direct=1", "--ioengine=io_uring", f"--iodepth={depth}", "--fixedbufs=1"]
    command += [f"--iomem={memory(request, depth)}", "--output-format=json"]
    told = process.run(command).stdout
    job = json.loads(told[told.index("{") :])["jobs"][0]
    if job["error"]:
        raise process.Failed(f"fio ended with error {job['error']}")
    processor = (job["usr_cpu"] + job["sys_cpu"]) / 100 * job["read"]["runtime"] / 1e3
    return job["read"]["bw_bytes"], processor / job["read"]["io_bytes"]


def random(program, folder, seconds, size):
    """Random reads of 4 KiB, 64 in flight: (ours, fio's) requests a second, one after the other on the same file, as
    `plinth probe` compares them; None where it has no row for both."""
    folder.mkdir(parents=True, exist_ok=True)
    command = [program, "probe", folder, "--quiet", "--engine", "fio", "--seconds", seconds, "--size", size]
    told = json.loads(process.run([*command, "--json", "-", "--profile", folder / "profile.toml"]).stdout)
    for theirs, ours in told["compared"]:
        if (theirs["order"], theirs["reads"], theirs["size"], theirs["depth"]) == ("random", 100, 4096, 64):
            return ours["iops"], theirs["iops"]
    return None
