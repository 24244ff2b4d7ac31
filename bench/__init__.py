"""Runs Plinth and its peers side by side on the same data and draws the report: `python -m bench`."""
