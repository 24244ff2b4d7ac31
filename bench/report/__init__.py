"""One HTML page of the figures, complete in itself."""

from .io import markdown
from .page import write

__all__ = ["markdown", "write"]
