"""Correction: contradicted sentences with the words of the evidence, judged again as they leave."""
