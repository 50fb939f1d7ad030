"""The verdict on a sentence: one pass of the judge, few checks, and what follows from them."""
