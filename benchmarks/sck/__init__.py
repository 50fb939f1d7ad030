"""SCK: the tables of the paper, intents, sensitivity, cost."""
