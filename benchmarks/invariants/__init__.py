"""Violations of the guarantees of ``DESIGN.md``, without labels.

    python -m benchmarks.invariants [--collections alder,dart,…] [--data DIR] [--most N]
        [--judge NAME]

Collections are the companies of ``benchmarks.newcomer``, and the sets of ``benchmarks.verdicts`` if
``--data`` names the folder of public data. ``guardrail eval --invariants FILE`` does the same for
rows of your own.
"""
