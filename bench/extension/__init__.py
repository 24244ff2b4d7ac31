"""Plinth files inside DuckDB: the 22 and the 43, and what each step of a reader brings."""
