"""A new user's first day: tables, handbooks and answers that nothing was fitted on.

    python -m benchmarks.newcomer [--domains alder,birch,cedar] [--policy strict]
        [--judge NAME] [--confirm] [--json]

Each domain lies in ``domains/``: three linked tables, a handbook and 60 answers, every sentence of
which a person labelled before the program saw it. Nothing is tuned on these rows: a class of
faults is mended by rows of its own elsewhere. With ``--confirm`` the question has told the answer
before: what a user supposes supports nothing, and spoils nothing that is true.
"""
