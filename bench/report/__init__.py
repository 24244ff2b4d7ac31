"""One HTML page of the figures, complete in itself."""

from .page import write

__all__ = ["write"]
