"""A slower device: a control group (version 1 or 2) whose processes get only so many bytes a second of it."""

import contextlib
import os
from pathlib import Path

V1, V2 = Path("/sys/fs/cgroup/blkio"), Path("/sys/fs/cgroup")


def device_of(folder):
    """The number, such as 8:0, of the disk that a folder is on; None where it is on no disk, or on several."""
    number = os.stat(folder).st_dev
    known = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}")
    if not known.exists():
        return None
    known = known.resolve()
    # What is limited is a disk, not a part of one.
    disk = known.parent if (known / "partition").exists() else known
    return (disk / "dev").read_text().strip()


@contextlib.contextmanager
def device(folder, bytes_per_second):
    """Gives what puts a command into the group, or, in words, why there is none."""
    number = device_of(folder)
    if number is None:
        yield None, f"{folder} is on no disk that could be slowed down"
        return
    name, path, why = f"plinth-bench-slow-{os.getpid()}", None, ""
    limits = (
        (V1, "blkio.throttle.read_bps_device", f"{number} {bytes_per_second}"),
        (V2, "io.max", f"{number} rbps={bytes_per_second}"),
    )
    for root, file, limit in limits:
        try:
            (root / name).mkdir()
        except OSError as error:
            why = why or str(error)
            continue
        try:
            if not (root / name / file).exists():
                raise OSError(f"no {file} in {root}")
            (root / name / file).write_text(limit)
        except OSError as error:
            why = why or str(error)
            (root / name).rmdir()
            continue
        path = root / name
        break
    if path is None:
        yield None, f"no control group slows it down: {why}"
        return

    def within(command):
        # The shell enters the group and becomes the program.
        return ["/bin/sh", "-c", f'echo $$ > "{path}/cgroup.procs" && exec "$@"', "sh", *command]

    try:
        yield within, None
    finally:
        with contextlib.suppress(OSError):
            path.rmdir()
