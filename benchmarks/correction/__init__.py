"""Measure corrections on generated errors (values, names, yes or no) and on true texts.

python -m benchmarks.correction --data DIR [--limit 400] [--show 20]

In texts of DART and WebNLG, one value or name of a triple is replaced by another of its kind.
Domains written for this project add what those texts lack: yes and no, hours of weekdays, days,
prices. Every text is checked under ``strict-correct``.

An error is *attempted* if its sentence was released with a correction, and the correction is
*right* if the text then states exactly what it stated before the error. A correction is *not
carried* if the evidence does not contain the written value for the same subject and property.
"""
