"""Forms in which a claim can hide: a heading, a table cell, a question, an aside.

    python -m benchmarks.evasion [--policy strict] [--judge NAME] [--forms FOLDER] [--json]

Each form has 8 false claims and 8 true ones in near wording, each in an answer of its own. What
counts is what a reader gets: a false claim without a mark, or a true one taken away.

``later`` holds ten more forms, four claims of each kind in each, which were written after the
engine and measured once; nothing was tuned on them.
"""
