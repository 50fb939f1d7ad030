"""CONNER: the tables of the paper, knowledge and demonstration selection, sensitivity, cost."""
