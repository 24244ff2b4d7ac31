"""What answers questions about a column of words besides the engines of all suites: Plinth's `lookup`, programs that
scan lines, and other forms of the same column."""

import shlex
import shutil
import subprocess
from pathlib import Path

from . import process
from .engines import Answer, DataFusion, Engine, Plinth, Tables


def has(program, command, option=""):
    """Whether the program knows a command, and one of its options."""
    try:
        told = subprocess.run([program, command, "--help"], capture_output=True, text=True)
    except OSError:
        return False
    return told.returncode == 0 and option in told.stdout.split()


class OtherFile(Plinth):
    """Plinth over another file of the same rows, or told to answer in one way."""

    ours = False

    def __init__(self, of, key, label, file, more=()):
        super().__init__(of.program, of.threads)
        self.key, self.label, self.more, self.tables = key, label, more, Tables({"words": [file]}, {})

    def files(self, tables):
        return super().files(self.tables)

    def run(self, tables, sql, repeat=1):
        return super().run(self.tables, sql, repeat)


class InMemory(DataFusion):
    """DataFusion over the column in memory as Utf8View; filling it is not timed."""

    key, label = "datafusion-memory", "DataFusion 55, Utf8View in memory"

    def request(self, tables):
        return super().request(tables) | {"in_memory": True}


class Command(Engine):
    """A program that is run anew for each answer; its start is part of its time."""

    def command(self, tables, text):
        raise NotImplementedError

    def rows(self, stdout, text):
        raise NotImplementedError

    def run(self, tables, sql, repeat=1):
        seconds = []
        for _ in range(repeat):
            done = process.run(self.command(tables, sql), env={"LC_ALL": "C"})
            seconds.append(done.seconds)
        return Answer(self.rows(done.stdout, sql), seconds, done.memory)


class Lines(Command):
    """grep or ripgrep over the text."""

    dialect = "lines"

    def __init__(self, key, label, text):
        super().__init__(shutil.which(key), 1)
        self.key, self.label, self.file = key, label, text

    def missing(self):
        return None if self.program else f"no program {self.key}"

    def files(self, tables):
        return [self.file]

    def command(self, tables, text):
        # No line found is an answer too.
        return ["/bin/sh", "-c", '"$@" || [ $? = 1 ]', "sh", self.program, *shlex.split(text), self.file]

    def rows(self, stdout, text):
        if text.startswith("-n"):
            return [[str(int(line.partition(":")[0]) - 1)] for line in stdout.splitlines()]
        return [[stdout.strip() or "0"]]


class Lookup(Command):
    """`plinth lookup`: a word, a prefix or a pattern, without SQL."""

    dialect = "lookup"

    def __init__(self, program, key, label, file: Path, column):
        super().__init__(program, 1)
        self.key, self.label, self.file, self.column = key, label, file, column

    def files(self, tables):
        return [self.file]

    def command(self, tables, text):
        return [self.program, "lookup", self.file, self.column, *shlex.split(text)]

    def rows(self, stdout, text):
        lines = stdout.split()[1:]
        # Of a count: how many values, how many rows.
        return [[line] for line in lines] if "--rows" in text.split() else [[lines[-1].split(",")[-1]]]
