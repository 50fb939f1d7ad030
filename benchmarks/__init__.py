"""What the shipped engine is worth: each benchmark is a module that prints its table."""
