"""Values in another notation than the evidence's: other units, signs, separators, words, dates.

    python -m benchmarks.notations [--policy strict] [--judge NAME] [--json]

Each fact is stated in other notations with its value and with a wrong one, against triples and
against prose. What counts is what a reader gets: a true claim called contradicted or taken away,
or a false one without a mark.
"""
