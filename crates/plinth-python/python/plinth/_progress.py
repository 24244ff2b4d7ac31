"""How far a statement is, for those who wait for it at a terminal or in a notebook."""

from __future__ import annotations

import html
import sys
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from plinth import _native

#: Seconds before a bar appears: most statements are over by then.
DELAY = 1.0
#: Seconds between two looks.
EVERY = 0.1
#: Characters of a bar.
WIDTH = 30

#: Rows read, rows there are if that is known, and bytes read.
State = tuple[int, "int | None", int]


def _size(count: int) -> str:
    size = float(count)
    for unit in ("bytes", "KB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"


def _share(state: State) -> float | None:
    rows, of_rows, _ = state
    # A file may be read twice by one statement.
    return min(rows / of_rows, 1.0) if of_rows else None


def _text(state: State) -> str:
    rows, of_rows, read = state
    counted = f"{rows:,} rows" if of_rows is None else f"{rows:,} of {of_rows:,} rows"
    return f"{counted}, {_size(read)} read"


class _Terminal:
    """One line that is written over, and cleared at the end."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def draw(self, state: State) -> None:
        share = _share(state)
        bar = ""
        if share is not None:
            full = int(share * WIDTH)
            bar = f"[{'█' * full}{' ' * (WIDTH - full)}] {share:4.0%} "
        self._stream.write(f"\r{bar}{_text(state)}\x1b[K")
        self._stream.flush()

    def clear(self) -> None:
        self._stream.write("\r\x1b[K")
        self._stream.flush()


class _Notebook:
    """An output of the cell that is replaced, and empty at the end."""

    def __init__(self, display: Callable[..., Any], as_html: Callable[[str], Any]) -> None:
        self._html = as_html
        self._handle = display(as_html(""), display_id=True)

    def draw(self, state: State) -> None:
        share = _share(state)
        bar = "<progress></progress>" if share is None else f'<progress max="1" value="{share:.3f}"></progress>'
        self._handle.update(self._html(f"{bar} {html.escape(_text(state))}"))

    def clear(self) -> None:
        self._handle.update(self._html(""))


def _in_notebook() -> bool:
    shell = sys.modules.get("IPython")
    running = shell.get_ipython() if shell is not None and hasattr(shell, "get_ipython") else None
    return getattr(running, "kernel", None) is not None


def _place() -> _Terminal | _Notebook:
    if _in_notebook():
        from IPython.display import HTML, display

        return _Notebook(display, HTML)
    return _Terminal(sys.stderr)


def _wanted() -> bool:
    """Whether a person waits: in a notebook, or at the prompt of an interpreter."""
    if _in_notebook():
        return True
    return hasattr(sys, "ps1") and sys.stderr is not None and sys.stderr.isatty()


class _Watch:
    """A thread that looks at a connection until what is waited for is over."""

    def __init__(self, connection: _native.Connection) -> None:
        self._connection = connection
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, name="plinth-progress", daemon=True)

    def _look(self) -> None:
        if self._over.wait(DELAY):
            return
        place = None
        try:
            while not self._over.is_set():
                state = self._connection.progress()
                if state is not None:
                    place = place or _place()
                    place.draw(state)
                self._over.wait(EVERY)
            if place is not None:
                place.clear()
        except (_native.Error, OSError, ValueError):
            # The connection or the terminal was closed meanwhile; whoever waits hears of it, not the one who looks.
            return

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()


def watch(connection: _native.Connection, shown: bool | None) -> AbstractContextManager[None]:
    """Shows how far a connection is during a ``with`` block; None is for those who seem to wait for it."""
    return _Watch(connection) if (_wanted() if shown is None else shown) else nullcontext()
