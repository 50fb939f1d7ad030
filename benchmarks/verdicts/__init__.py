"""How good verdicts are, over every set, for the engine, the bare judge, and without each check.

    python -m benchmarks.verdicts --data DIR [--sets dart,people,…] [--limit N] [--json]

Every change to verdicts is decided by this table.
"""
