"""Hostile input for everything that reads what others wrote.

    python -m benchmarks.fuzz [--target markers sse …] [--minutes 10] [--kept DIR]
    python -m benchmarks.fuzz --linear [--target …]

Each target takes what hypothesis draws and may answer by a typed error alone. What made one fail is
kept in a folder and tried first in the next run. ``--linear`` times each target on hostile texts of
up to a mebibyte. ``inputs`` draws, ``texts``, ``prose`` and ``exchanges`` hold the targets; tests
run the same targets for a moment each.
"""
