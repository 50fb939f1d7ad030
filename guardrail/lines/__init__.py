"""JSON lines in, JSON lines out: rows, what is done with them, and how results are written."""
