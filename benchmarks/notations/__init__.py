"""Values in another notation than the evidence's: other units, signs, separators, words, dates.

    python -m benchmarks.notations [--policy strict] [--judge NAME] [--json]

Each fact is told in other notations with its value and with another one, against triples and
against prose. What counts is what a reader gets: a true claim called contradicted or taken away,
or a false one without a mark.
"""
