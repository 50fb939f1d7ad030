"""Answers, errors, leaks and time while parts fail.

    python -m benchmarks.faults [--runs 3000] [--seed 1] [--ways check gateway …] [--json]

``facts`` holds the questions and the faults that they trigger; ``server`` fakes a model server and
a graph endpoint, ``judge`` a judge of another package; ``disk`` damages files; ``ways`` and
``files`` run one case through each entry point; ``seen`` classifies the outcome; ``leaks`` counts
open resources. ``--slack`` is the number of seconds past a deadline that still count as in time,
for busy machines.
"""
