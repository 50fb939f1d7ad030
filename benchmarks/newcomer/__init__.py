"""A new user's first day: tables, handbooks and answers that nothing was fitted on.

    python -m benchmarks.newcomer [--domains alder,birch,cedar] [--policy strict]
        [--judge NAME] [--confirm] [--json]

Each domain in ``domains/`` has three linked tables, a handbook and 60 answers whose sentences a
person labelled before the program saw them. Nothing is tuned on these rows. With ``--confirm`` the
question repeats the answer: what a user supposes supports nothing and changes no true verdict.
"""
