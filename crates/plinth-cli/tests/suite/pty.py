"""Runs a program on a pseudo-terminal and plays a user.

Reads one JSON object: command, columns, rows, environment, and steps: ["expect", text] waits until text has come since
the last step, ["send", keys] types, ["pause", seconds] waits, ["run", command] runs another program and takes what it says for what came. Prints all that came, without colours, and exits as the program did; 125 if
something that was expected did not come. Where "raw" names a file, it gets the bytes that came as they were.
"""

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time

PATIENCE = 120.0
play = json.load(sys.stdin)
size = struct.pack("HHHH", play["rows"], play["columns"], 0, 0)
child, terminal = pty.fork()
if child == 0:
    fcntl.ioctl(0, termios.TIOCSWINSZ, size)
    environment = {"PATH": os.environ["PATH"], "TERM": "xterm", "HOME": os.getcwd(), **play["environment"]}
    os.execvpe(play["command"][0], play["command"], environment)
fcntl.ioctl(terminal, termios.TIOCSWINSZ, size)

everything = ""
seen = 0


def clean(text):
    text = re.sub(r"\x1b\][^\x07]*\x07|\x1b\[[0-9;?<>=]*[a-zA-Z]|\x1b[=>]", "", text)
    return text.replace("\r\n", "\n").replace("\r", "\n")


raw = b""


def read(seconds):
    """False when the program has closed the terminal."""
    global raw, everything
    ready, _, _ = select.select([terminal], [], [], seconds)
    if not ready:
        return True
    try:
        data = os.read(terminal, 65536)
    except OSError:
        return False
    raw += data
    everything = clean(raw.decode("utf-8", "replace"))
    return bool(data)


def fail(message):
    print(everything)
    print(f"--- {message}", file=sys.stderr)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    sys.exit(125)


for kind, text in play["steps"]:
    if kind == "send":
        time.sleep(0.05)
        os.write(terminal, text.encode())
        continue
    if kind == "pause":
        time.sleep(float(text))
        continue
    if kind == "run":
        raw += subprocess.run(text, shell=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False).stdout
        everything = clean(raw.decode("utf-8", "replace"))
        continue
    deadline = time.monotonic() + PATIENCE
    while text not in everything[seen:]:
        if time.monotonic() > deadline:
            fail(f"{text!r} did not come")
        if not read(0.2) and text not in everything[seen:]:
            fail(f"the program ended before {text!r}")
    seen = everything.index(text, seen) + len(text)

deadline = time.monotonic() + PATIENCE
while read(0.2):
    if time.monotonic() > deadline:
        fail("the program did not end")
_, status = os.waitpid(child, 0)
if play.get("raw"):
    with open(play["raw"], "wb") as file:
        file.write(raw)
print(everything)
sys.exit(os.waitstatus_to_exitcode(status))
