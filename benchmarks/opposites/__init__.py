"""Rules and their opposites in similar wording: are they distinguished?

    python -m benchmarks.opposites [--policy strict] [--judge NAME] [--json]

Each row is a rule as evidence, the same rule in other words, and its opposite. Both are answers,
alone and behind a true sentence.
"""
