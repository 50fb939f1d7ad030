"""What comes out while parts fail: answers, errors, leaks, time.

    python -m benchmarks.faults [--runs 3000] [--seed 1] [--ways check gateway …] [--json]

``facts`` holds what is asked, and of which part a question makes which fault; ``server`` stands in
for a model's server and a graph's endpoint, ``judge`` for a judge of another package; ``disk``
spoils files; ``ways`` and ``files`` run one case by each way in; ``seen`` says what came of it;
``leaks`` counts what the process holds. A machine that is busy with other work misses deadlines by
itself: ``--slack`` is how many seconds past them still count as in time.
"""
