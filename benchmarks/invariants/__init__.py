"""Violations of the guarantees of ``DESIGN.md``, without labels.

    python -m benchmarks.invariants [--collections alder,dart,…] [--data DIR] [--most N]
        [--judge NAME] [--show N]

Collections are the companies of ``benchmarks.newcomer``, the public sets of ``benchmarks.verdicts``
if ``--data`` names the folder of public data, and JSON-lines files of your own, with rows as for
``guardrail check``.
"""
