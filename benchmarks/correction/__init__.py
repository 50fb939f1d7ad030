"""What corrections are worth: generated errors of values, names, and yes or no, and true texts.

python -m benchmarks.correction --data DIR [--limit 400] [--show 20]

Texts of DART and WebNLG stand beside their triples; one value or name that a triple tells is
exchanged for another of its kind. Domains written for this project add what those texts lack:
yes and no, hours of weekdays, days, prices. Every text is checked under ``strict-correct``.

*Attempted* is an error whose sentence was released corrected; it is *right* where the text then
tells what it told before the error, all of it and no more. A correction is *not carried* where what
was written, in whatever sentence, is no value that the evidence has of the same subject and
property.
"""
