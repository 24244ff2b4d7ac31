"""Runs a program to its end and says what it printed, how long it took and how much memory it held.

Memory is that of a control group of the program's own (version 1 or 2): its peak, which counts the pages of files it
read and what the kernel needs to keep track of them, and the peak of its anonymous memory, looked at every few milliseconds.
Where no group can be made, it is the largest resident set. A group can be given a limit: what the kernel can't take back within
it ends the program.
"""

import atexit
import itertools
import os
import signal
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

LOOK_EVERY = 0.01
V1, V2 = Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")
_number = itertools.count()


class Failed(Exception):
    """A program ended with an error; the text is its last words."""

    seconds, memory = 0.0, None


@dataclass
class Done:
    stdout: str
    stderr: str
    seconds: float
    memory: dict
    # Seconds of processor time, its own and the kernel's for it.
    cpu: float
    # Bytes that devices gave for it.
    fetched: int


class Group:
    """A control group that measures memory, or nothing where there is none."""

    def __init__(self, limit=None):
        self.path, self.version = None, 0
        name = f"plinth-bench-{os.getpid()}-{next(_number)}"
        for version, root in ((1, V1), (2, V2)):
            path = root / name
            try:
                path.mkdir()
            except OSError:
                continue
            if (path / "memory.stat").exists():
                self.path, self.version = path, version
                if limit is not None:
                    (path / ("memory.limit_in_bytes" if version == 1 else "memory.max")).write_text(str(int(limit)))
                return
            path.rmdir()

    def command(self, command):
        if self.path is None:
            return command
        # The shell enters the group and becomes the program.
        return ["/bin/sh", "-c", f'echo $$ > "{self.path}/cgroup.procs" && exec "$@"', "sh", *command]

    def now(self):
        """Bytes of anonymous memory."""
        stat = dict(line.split() for line in (self.path / "memory.stat").read_text().splitlines())
        return int(stat.get("total_rss" if self.version == 1 else "anon", 0))

    def peak(self):
        return self._read("memory.max_usage_in_bytes" if self.version == 1 else "memory.peak")

    def _read(self, name):
        try:
            return int((self.path / name).read_text())
        except (OSError, ValueError):
            return 0

    def close(self):
        if self.path is not None:
            for _ in range(50):
                try:
                    self.path.rmdir()
                    return
                except OSError:
                    time.sleep(0.01)
            atexit.register(lambda: self.path.exists() and self.path.rmdir())


def run(command, text=None, env=None, limit=None):
    """Runs a command, in a group of so many bytes if there is a limit; its output is text. Raises Failed."""
    group = Group(limit)
    peaks = [0]
    try:
        with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            given.write((text or "").encode())
            given.seek(0)
            started = time.perf_counter()
            argv = [str(part) for part in group.command(command)]
            child = subprocess.Popen(argv, stdin=given, stdout=out, stderr=err, env={**os.environ, **(env or {})})
            ended = threading.Event()
            watcher = threading.Thread(target=_watch, args=(group, ended, peaks), daemon=True)
            watcher.start()
            _, status, usage = os.wait4(child.pid, 0)
            seconds = time.perf_counter() - started
            child.returncode = os.waitstatus_to_exitcode(status)
            ended.set()
            watcher.join()
            texts = []
            for file in (out, err):
                file.seek(0)
                texts.append(file.read().decode("utf-8", "replace"))
        memory = {"how": f"cgroup v{group.version}" if group.path else "largest resident set"}
        memory["resident"] = usage.ru_maxrss * 1024
        if group.path is not None:
            memory |= {"own": peaks[0], "group": group.peak()}
    finally:
        group.close()
    if child.returncode != 0:
        killed = child.returncode == -signal.SIGKILL and limit is not None
        ended = f"was ended by the group's limit of {limit / 1e6:,.0f} MB" if killed else f"ended with {child.returncode}"
        words = texts[1].strip().splitlines() or [ended]
        # A program says what is wrong first and then how to get help, or, as Python does, last.
        failed = Failed(next((line for line in words if line.startswith("error")), words[-1])[:500])
        failed.seconds, failed.memory = seconds, memory
        raise failed
    return Done(*texts, seconds, memory, usage.ru_utime + usage.ru_stime, usage.ru_inblock * 512)


def _watch(group, ended, peaks):
    while group.path is not None and not ended.wait(LOOK_EVERY):
        try:
            peaks[0] = max(peaks[0], group.now())
        except (OSError, ValueError):
            return


def held(memory):
    """The bytes to compare: a program's own at their peak, or the resident set where that is all there is."""
    return memory.get("own") or memory["resident"]
