"""Rules and their opposites, near in wording: are the two told apart?

    python -m benchmarks.opposites [--policy strict] [--judge NAME] [--json]

Each row is a rule as evidence, the same rule in other words, and its opposite. Both are answers,
alone and behind a true sentence.
"""
