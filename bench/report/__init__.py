"""One HTML page of the figures, complete in itself."""

from .guide import fill, markdown
from .page import write

__all__ = ["fill", "markdown", "write"]
