"""A service for hours in miniature: many small requests, some of whose parts fail.

    python -m benchmarks.soak [--requests 50000] [--share 0.01] [--rate 25] [--seed 1] [--json]

Requests come to the gateway's application in this process at a fixed rate, whatever became of
those before: chat completions, whole and streamed, and checks. Model, graph and judge are those of
``benchmarks.faults``, and fail as a request asks them to; callers go away, too. First some requests
without a fault tell what is usual, then each fault has its share of the rest. ``traffic`` draws and
sends the requests, ``__main__`` runs them and counts.
"""
